//! A delay line: frames that come out of one device go into another a while later.
//!
//! Devices are TAP devices of Linux, whose frames a program reads and writes. They are opened with a header that says what
//! offloading has left undone, so that a frame of 64 kB passes as a whole and headers pass as they are.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

/// Longest frame, with its headers.
const FRAME: usize = (64 << 10) + 256;

/// How long to wait where nothing is under way.
const IDLE: Duration = Duration::from_secs(1);

/// What happens to frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    /// How long each is held.
    pub time: Duration,
    /// Share of frames that are dropped, from 0 to 1.
    pub loss: f64,
    /// From which it is drawn which frames are dropped.
    pub seed: u64,
}

/// A frame that is under way.
struct Frame {
    due: Instant,
    to: usize,
    bytes: Vec<u8>,
}

/// Passes frames between the devices of each pair, both ways, until `stop` has something to read or its other end is closed.
/// Gives the number of frames that were passed, and that were dropped.
pub fn relay(pairs: &[(OwnedFd, OwnedFd)], delay: Delay, stop: BorrowedFd<'_>) -> (u64, u64) {
    let ends: Vec<&OwnedFd> = pairs.iter().flat_map(|(one, other)| [one, other]).collect();
    let mut under_way: VecDeque<Frame> = VecDeque::new();
    let mut spare: Vec<Vec<u8>> = Vec::new();
    let (mut passed, mut dropped) = (0, 0);
    let mut draw = Sample(delay.seed);
    loop {
        let now = Instant::now();
        let most = under_way
            .front()
            .map_or(IDLE, |first| first.due.saturating_duration_since(now));
        let mut polled: Vec<PollFd<'_>> = vec![PollFd::from_borrowed_fd(stop, PollFlags::IN)];
        polled.extend(ends.iter().map(|end| PollFd::new(*end, PollFlags::IN)));
        crate::poll::wait(&mut polled, most);
        if !polled[0].revents().is_empty() {
            return (passed, dropped);
        }
        let readable: Vec<usize> = (0..ends.len())
            .filter(|&end| polled[1 + end].revents().contains(PollFlags::IN))
            .collect();
        for end in readable {
            loop {
                let mut bytes = spare.pop().unwrap_or_default();
                bytes.resize(FRAME, 0);
                let Ok(read) = rustix::io::read(ends[end].as_fd(), &mut bytes[..]) else {
                    spare.push(bytes);
                    break;
                };
                if read == 0 || draw.below_one() < delay.loss {
                    dropped += u64::from(read > 0);
                    spare.push(bytes);
                    continue;
                }
                bytes.truncate(read);
                under_way.push_back(Frame {
                    due: Instant::now() + delay.time,
                    to: end ^ 1,
                    bytes,
                });
            }
        }
        // All are held equally long, so that the first to come is the first to go.
        let now = Instant::now();
        while under_way.front().is_some_and(|first| first.due <= now) {
            let Some(frame) = under_way.pop_front() else {
                break;
            };
            // A device that is down takes nothing, as a cable that is cut.
            let taken = rustix::io::write(ends[frame.to].as_fd(), &frame.bytes).is_ok();
            passed += u64::from(taken);
            dropped += u64::from(!taken);
            spare.push(frame.bytes);
        }
    }
}

/// Numbers that follow from a seed (splitmix64).
struct Sample(u64);

impl Sample {
    /// Returns the next, from 0 to below 1.
    fn below_one(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::os::unix::net::UnixDatagram;

    use super::*;

    fn pair() -> (UnixDatagram, OwnedFd) {
        let (outside, inside) = UnixDatagram::pair().unwrap();
        inside.set_nonblocking(true).unwrap();
        (outside, inside.into())
    }

    /// Runs a relay between two pairs of sockets while `work` runs; gives what the relay counted.
    fn relayed(delay: Delay, work: impl FnOnce([&UnixDatagram; 4])) -> (u64, u64) {
        let (a, a_end) = pair();
        let (b, b_end) = pair();
        let (c, c_end) = pair();
        let (d, d_end) = pair();
        let (mut stop, stopped) = std::os::unix::net::UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            let pairs = [(a_end, b_end), (c_end, d_end)];
            let running = scope.spawn(move || relay(&pairs, delay, stopped.as_fd()));
            work([&a, &b, &c, &d]);
            stop.write_all(b".").unwrap();
            let counts = running.join().unwrap();
            assert!(matches!(stop.read(&mut [0]), Ok(0) | Err(_)));
            counts
        })
    }

    /// Frames of this length, few at a time, fit the queues of sockets.
    const LONG: usize = 30_000;

    #[test]
    fn frames_pass_both_ways_in_order_and_no_sooner_than_they_are_due() {
        let time = Duration::from_millis(20);
        let delay = Delay {
            time,
            loss: 0.0,
            seed: 0,
        };
        let counts = relayed(delay, |[a, b, c, d]| {
            for each in [a, b, c] {
                each.set_read_timeout(Some(Duration::from_secs(20)))
                    .unwrap();
            }
            let begun = Instant::now();
            for number in 0..3u8 {
                a.send(&[number; LONG]).unwrap();
            }
            d.send(b"other pair").unwrap();
            let mut room = vec![0; FRAME];
            for number in 0..3u8 {
                assert_eq!(b.recv(&mut room).unwrap(), LONG);
                assert!(room[..LONG].iter().all(|&each| each == number));
                assert!(begun.elapsed() >= time);
            }
            assert_eq!(c.recv(&mut room).unwrap(), 10);
            assert_eq!(&room[..10], b"other pair");
            b.send(b"back").unwrap();
            assert_eq!(a.recv(&mut room).unwrap(), 4);
            a.set_nonblocking(true).unwrap();
            assert_eq!(a.recv(&mut room).unwrap_err().kind(), ErrorKind::WouldBlock);
        });
        assert_eq!(counts, (5, 0));
    }

    #[test]
    fn frames_that_are_dropped_do_not_come() {
        let delay = Delay {
            time: Duration::ZERO,
            loss: 1.0,
            seed: 7,
        };
        let (passed, dropped) = relayed(delay, |[a, b, ..]| {
            a.send(b"gone").unwrap();
            b.set_read_timeout(Some(Duration::from_millis(200)))
                .unwrap();
            assert!(b.recv(&mut [0; 8]).is_err());
        });
        assert_eq!(passed, 0);
        assert!(dropped <= 1);
    }

    #[test]
    fn as_many_are_drawn_as_the_share_says() {
        const DRAWN: u32 = 4000;
        let mut draw = Sample(7);
        let lost = (0..DRAWN).filter(|_| draw.below_one() < 0.25).count();
        // Five standard deviations of a binomial.
        let drawn = f64::from(DRAWN);
        let (mean, deviation) = (drawn * 0.25, (drawn * 0.25 * 0.75).sqrt());
        assert!((lost as f64 - mean).abs() < 5.0 * deviation, "{lost}");
    }
}
