//! Links that sockets do not have: streams that share them take turns, and send no faster than they carry.
//!
//! All ranks that share a [`Pacer`] are threads of one process. A stream reserves a piece of its message on every link of
//! its route, behind what others have reserved there, and writes it when its last byte would have crossed the last link. It
//! reserves the next one when the first link begins with this one: streams that share a link have it in turns.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that a stream reserves at a time, so long as its message has them.
pub(crate) const PIECE: usize = 64 << 10;

/// For how long links make up for what they stood idle: programs come late by what it takes to wake them, where a queue would
/// have kept a link busy. A message that nothing is ahead of is early by it.
const BURST: Duration = Duration::from_micros(300);

/// Links, and until when each is reserved.
#[derive(Debug)]
pub struct Pacer {
    links: Mutex<Vec<Link>>,
    latency: Duration,
}

#[derive(Debug)]
struct Link {
    /// Bytes per second.
    rate: u64,
    free: Instant,
    carried: u64,
}

impl Pacer {
    /// Returns the links of these rates, in bytes per second and above 0, each of which takes `latency` besides.
    pub fn new(rates: &[u64], latency: Duration) -> Self {
        let free = Instant::now();
        let link = |&rate: &u64| Link {
            rate: rate.max(1),
            free,
            carried: 0,
        };
        Self {
            links: Mutex::new(rates.iter().map(link).collect()),
            latency,
        }
    }

    /// Returns the number of links.
    pub fn len(&self) -> usize {
        self.links().len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes that each link has carried, or is about to.
    pub fn carried(&self) -> Vec<u64> {
        self.links().iter().map(|link| link.carried).collect()
    }

    fn links(&self) -> std::sync::MutexGuard<'_, Vec<Link>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves bytes on the links of a route, one behind the other; when the first link begins, and when the last byte is
    /// across.
    fn reserve(&self, route: &[u32], bytes: usize, now: Instant) -> (Instant, Instant) {
        let mut links = self.links();
        let start = now.checked_sub(BURST).unwrap_or(now);
        let (mut head, mut last, mut begins) = (start, start, None);
        for &number in route {
            let link = &mut links[number as usize];
            head = head.max(link.free);
            begins.get_or_insert(head);
            let nanoseconds = bytes as u128 * 1_000_000_000 / u128::from(link.rate);
            link.free =
                head + Duration::from_nanos(nanoseconds.try_into().unwrap_or(u64::MAX >> 1));
            link.carried += bytes as u64;
            last = last.max(link.free) + self.latency;
            head += self.latency;
        }
        (begins.unwrap_or(now), last)
    }
}

/// Which links the streams of a rank take.
#[derive(Clone, Debug)]
pub struct Pace {
    /// The links.
    pub pacer: Arc<Pacer>,
    /// Of streams to ranks, by rank and number; streams that are missing are not slowed down.
    pub routes: BTreeMap<(u32, u32), Vec<u32>>,
}

impl PartialEq for Pace {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.pacer, &other.pacer) && self.routes == other.routes
    }
}

impl Eq for Pace {}

/// What a stream has reserved.
#[derive(Debug)]
pub(crate) struct Turns {
    pacer: Arc<Pacer>,
    route: Vec<u32>,
    /// When pieces are due, and their bytes.
    pieces: VecDeque<(Instant, usize)>,
    /// When the first link begins with the last of them.
    begins: Option<Instant>,
    /// Bytes that may be written now, and all that are reserved and not written.
    allowed: usize,
    reserved: usize,
}

impl Turns {
    pub(crate) fn of(pace: &Pace, stream: (u32, u32)) -> Option<Self> {
        Some(Self {
            pacer: Arc::clone(&pace.pacer),
            route: pace.routes.get(&stream)?.clone(),
            pieces: VecDeque::new(),
            begins: None,
            allowed: 0,
            reserved: 0,
        })
    }

    /// Returns the bytes that may be written now of messages with so many bytes left each.
    pub(crate) fn allow(
        &mut self,
        left: impl Iterator<Item = usize> + Clone,
        now: Instant,
    ) -> usize {
        loop {
            if let Some(&(due, bytes)) = self.pieces.front()
                && due <= now
            {
                self.allowed += bytes;
                self.pieces.pop_front();
            } else if self.begins.is_none_or(|begins| begins <= now)
                && let Some(bytes) = self.next(left.clone())
            {
                let (begins, due) = self.pacer.reserve(&self.route, bytes, now);
                self.begins = Some(begins);
                self.reserved += bytes;
                self.pieces.push_back((due, bytes));
            } else {
                return self.allowed;
            }
        }
    }

    /// Returns the bytes of the next piece: it ends where a message does.
    fn next(&self, left: impl Iterator<Item = usize>) -> Option<usize> {
        let mut ends = 0;
        for bytes in left {
            ends += bytes;
            if ends > self.reserved {
                return Some((ends - self.reserved).min(PIECE));
            }
        }
        None
    }

    /// Notes that bytes were written.
    pub(crate) fn wrote(&mut self, bytes: usize) {
        self.allowed -= bytes;
        self.reserved -= bytes;
    }

    /// When there will be more to do, if nothing may be written now.
    pub(crate) fn due(&self, left: impl Iterator<Item = usize>) -> Option<Instant> {
        if self.allowed > 0 {
            return None;
        }
        let due = self.pieces.front().map(|&(due, _)| due);
        let begins = self.begins.filter(|_| self.next(left).is_some());
        due.into_iter().chain(begins).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 1_000_000;

    fn turns(pacer: &Arc<Pacer>, route: &[u32]) -> Turns {
        let routes = [((1, 0), route.to_vec())].into();
        let pacer = Arc::clone(pacer);
        Turns::of(&Pace { pacer, routes }, (1, 0)).unwrap()
    }

    /// Sends messages by streams on a clock of their own; when each has sent each of them, from `start` on [us].
    fn sent(streams: &mut [(Turns, Vec<usize>)], start: Instant) -> Vec<Vec<u128>> {
        let mut done = vec![Vec::new(); streams.len()];
        let mut now = start;
        while streams.iter().any(|(_, left)| !left.is_empty()) {
            let mut next: Option<Instant> = None;
            for ((turns, left), done) in streams.iter_mut().zip(&mut done) {
                loop {
                    let may = turns.allow(left.iter().copied(), now);
                    if may == 0 || left.is_empty() {
                        break;
                    }
                    let writes = may.min(left[0]);
                    turns.wrote(writes);
                    left[0] -= writes;
                    if left[0] == 0 {
                        left.remove(0);
                        done.push((now - start).as_micros());
                    }
                }
                let due = turns.due(left.iter().copied());
                next = next.into_iter().chain(due).min();
            }
            match next {
                Some(next) => now = now.max(next),
                None => break,
            }
        }
        done
    }

    #[test]
    fn messages_of_a_stream_follow_each_other_without_a_gap() {
        let pacer = Arc::new(Pacer::new(&[RATE], Duration::ZERO));
        let start = Instant::now() + Duration::from_secs(1);
        let mut streams = [(turns(&pacer, &[0]), vec![100_000, 500, 300_000])];
        assert_eq!(sent(&mut streams, start), [[99_700, 100_200, 400_200]]);
        assert_eq!(pacer.carried(), [400_500]);
    }

    #[test]
    fn streams_that_share_a_link_have_it_in_turns() {
        let pacer = Arc::new(Pacer::new(&[RATE, RATE, RATE], Duration::ZERO));
        let start = Instant::now() + Duration::from_secs(1);
        let whole = 10 * PIECE;
        let mut streams = [
            (turns(&pacer, &[0, 2]), vec![whole]),
            (turns(&pacer, &[1, 2]), vec![whole]),
        ];
        let ends = sent(&mut streams, start);
        // Link 2 carries both; the last to end does so when it has carried all, the other a piece before.
        let early = BURST.as_micros();
        assert_eq!(ends[1], [2 * whole as u128 - early]);
        assert_eq!(ends[0], [(2 * whole - PIECE) as u128 - early]);
        assert_eq!(
            pacer.carried(),
            [whole as u64, whole as u64, 2 * whole as u64]
        );
    }

    #[test]
    fn a_route_cuts_through_and_takes_the_latency_of_each_link() {
        let pacer = Arc::new(Pacer::new(
            &[RATE, RATE / 2, RATE],
            Duration::from_micros(7),
        ));
        let start = Instant::now() + Duration::from_secs(1);
        let mut streams = [(turns(&pacer, &[0, 1, 2]), vec![1000, 1000])];
        // The second link is the slowest: 2 ms a message; three latencies.
        assert_eq!(sent(&mut streams, start), [[1721, 3721]]);
    }

    #[test]
    fn a_link_that_was_idle_makes_up_for_little_of_it() {
        let pacer = Arc::new(Pacer::new(&[RATE], Duration::ZERO));
        let start = Instant::now() + Duration::from_secs(1);
        let mut one = [(turns(&pacer, &[0]), vec![1000])];
        assert_eq!(sent(&mut one, start), [[700]]);
        let later = start + Duration::from_millis(50);
        one[0].1 = vec![1000];
        assert_eq!(sent(&mut one, later), [[700]]);
        // Late by 100 us, which the link makes up for.
        one[0].1 = vec![1000];
        assert_eq!(sent(&mut one, later + Duration::from_micros(800)), [[900]]);
    }
}
