//! When to probe which path, and what the answers say of it; without sockets and without a clock.
//!
//! A probe that is not answered may have been lost on its path, or nobody answers there. Beside its paths, each
//! receiver is therefore probed by ways that switches choose, for reference. A probe counts as lost only if such probes
//! sent shortly before it and shortly after it were answered.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

/// A probe that is not answered for so long is not answered.
const WAIT: Duration = Duration::from_millis(500);
/// Intervals before and after a lost probe in which others must have been answered.
const NEAR: u32 = 3;

/// What is probed: a path from one address to another, or for reference the way that switches choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Way {
    /// The sender.
    pub src: IpAddr,
    /// The receiver.
    pub dst: IpAddr,
    /// The path; `None`: whichever.
    pub choice: Option<u32>,
}

/// How paths are probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// One probe of each path in this time.
    pub every: Duration,
    /// Probes by which a path is judged.
    pub window: usize,
    /// Most probes in a second, of all paths.
    pub most: u32,
    /// Most paths that are probed, references included.
    pub most_ways: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            every: Duration::from_millis(100),
            window: 20,
            most: 2_000,
            most_ways: 1_024,
        }
    }
}

/// What probes say of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Lost probes of a million.
    pub loss_ppm: u32,
    /// The least round-trip time, where one was answered.
    pub rtt: Option<Duration>,
}

/// How much was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Probes that were sent.
    pub sent: u64,
    /// Probes that were answered.
    pub answered: u64,
    /// Paths that are probed, and those that are not as there are too many.
    pub ways: usize,
    /// Paths beyond the limit.
    pub left_out: usize,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    number: u64,
    at: Duration,
    rtt: Option<Duration>,
}

#[derive(Clone, Debug)]
struct Track {
    due: Duration,
    /// The last ones.
    probes: VecDeque<Probe>,
    /// Of a reference: probes of this number and above take the way that it has now.
    first: u64,
}

/// The plan of all probes.
#[derive(Clone, Debug)]
pub struct Prober {
    options: Options,
    tracks: BTreeMap<Way, Track>,
    due: BTreeSet<(Duration, Way)>,
    last: u64,
    /// Probes that may be sent now, in billionths, and since when.
    allowance: (u128, Duration),
    tally: Tally,
}

impl Prober {
    /// Nothing is probed at first.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            tracks: BTreeMap::new(),
            due: BTreeSet::new(),
            last: 0,
            allowance: (0, Duration::ZERO),
            tally: Tally::default(),
        }
    }

    /// These paths are to be probed and no others; gives the ways that were added, references included, and those that
    /// were removed.
    pub fn want(
        &mut self,
        now: Duration,
        paths: impl Iterator<Item = Way>,
    ) -> (Vec<Way>, Vec<Way>) {
        let mut wanted = BTreeSet::new();
        self.tally.left_out = 0;
        for path in paths {
            let any = Way {
                choice: None,
                ..path
            };
            let more = usize::from(!wanted.contains(&any)) + usize::from(!wanted.contains(&path));
            if wanted.len() + more > self.options.most_ways {
                self.tally.left_out += 1;
                continue;
            }
            wanted.extend([any, path]);
        }
        let gone = self.tracks.keys().filter(|way| !wanted.contains(way));
        let gone: Vec<Way> = gone.copied().collect();
        for way in &gone {
            if let Some(track) = self.tracks.remove(way) {
                self.due.remove(&(track.due, *way));
            }
        }
        let known = |way: &Way| self.tracks.contains_key(way);
        let added: Vec<Way> = wanted.into_iter().filter(|way| !known(way)).collect();
        let count = u32::try_from(added.len()).expect("no more tracks than options allow");
        for (way, turn) in added.iter().zip(0..) {
            // Not all at once.
            let due = now + self.options.every * turn / count;
            let track = Track {
                due,
                probes: VecDeque::new(),
                first: 0,
            };
            self.due.insert((due, *way));
            self.tracks.insert(*way, track);
        }
        self.tally.ways = self.tracks.len();
        (added, gone)
    }

    /// Probes to be sent now, each with its number.
    pub fn due(&mut self, now: Duration) -> Vec<(Way, u64)> {
        const WHOLE: u128 = 1_000_000_000;
        let (left, since) = self.allowance;
        let more = now.saturating_sub(since).as_nanos() * u128::from(self.options.most);
        // No more at once than in the tenth of a second.
        let burst = u128::from(self.options.most.div_ceil(10)) * WHOLE;
        let mut left = (left + more).min(burst);
        let mut sent = Vec::new();
        while let Some(&(due, way)) = self.due.first().filter(|(due, _)| *due <= now) {
            if left < WHOLE {
                break;
            }
            left -= WHOLE;
            self.due.pop_first();
            let next = due.max(now.saturating_sub(self.options.every)) + self.options.every;
            self.due.insert((next, way));
            self.last += 1;
            let kept = self.kept();
            if let Some(track) = self.tracks.get_mut(&way) {
                track.due = next;
                track.probes.push_back(Probe {
                    number: self.last,
                    at: now,
                    rtt: None,
                });
                if track.probes.len() > kept {
                    track.probes.pop_front();
                }
                sent.push((way, self.last));
            }
        }
        self.allowance = (left, now);
        self.tally.sent += sent.len() as u64;
        sent
    }

    /// An answer came.
    pub fn answered(&mut self, now: Duration, way: Way, number: u64) {
        let probes = self.tracks.get_mut(&way).map(|track| &mut track.probes);
        let mut probes = probes.into_iter().flatten();
        if let Some(probe) = probes.find(|probe| probe.number == number) {
            let rtt = now.saturating_sub(probe.at);
            if probe.rtt.is_none() && rtt < WAIT {
                probe.rtt = Some(rtt);
                self.tally.answered += 1;
            }
        }
    }

    /// References whose way may be broken: they are to take another.
    pub fn to_turn(&mut self, now: Duration) -> Vec<Way> {
        let mut turned = Vec::new();
        let next = self.last + 1;
        for (way, track) in &mut self.tracks {
            let first = track.first;
            let is_lost = |probe: &Probe| {
                let is_over = now.saturating_sub(probe.at) >= WAIT;
                probe.rtt.is_none() && is_over && probe.number >= first
            };
            if way.choice.is_none() && track.probes.iter().any(is_lost) {
                track.first = next;
                turned.push(*way);
            }
        }
        turned
    }

    /// Returns what is known of a path; `None` where too few probes say something of it.
    pub fn verdict(&self, now: Duration, way: Way) -> Option<Verdict> {
        let track = self.tracks.get(&way)?;
        let any = Way {
            choice: None,
            ..way
        };
        let reference = self.tracks.get(&any)?;
        let near = self.options.every * NEAR;
        // Of those that are not over yet the lost ones are not known, so that the others must not count either.
        let is_known = |probe: &&Probe| {
            let is_over = now.saturating_sub(probe.at) >= WAIT + near;
            is_over && (probe.rtt.is_some() || reference.is_answered_around(probe.at, near))
        };
        let known = track.probes.iter().rev().filter(is_known);
        let known: Vec<&Probe> = known.take(self.options.window).collect();
        if known.len() * 2 < self.options.window {
            return None;
        }
        let lost = known.iter().filter(|probe| probe.rtt.is_none()).count();
        Some(Verdict {
            loss_ppm: u32::try_from(lost * 1_000_000 / known.len()).expect("a part of a million"),
            rtt: known.iter().filter_map(|probe| probe.rtt).min(),
        })
    }

    /// Returns how much was done.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Probes of a way that are remembered: a window of those that are over, and those that are not.
    fn kept(&self) -> usize {
        let pending = (WAIT + self.options.every * NEAR).as_nanos();
        let pending = pending.div_ceil(self.options.every.as_nanos().max(1));
        let pending = u32::try_from(pending).unwrap_or(u32::MAX);
        self.options.window + pending as usize + 2 * NEAR as usize
    }
}

impl Track {
    /// Returns whether probes sent shortly before and shortly after a time were answered.
    fn is_answered_around(&self, at: Duration, near: Duration) -> bool {
        let answered = || self.probes.iter().filter(|probe| probe.rtt.is_some());
        let is_before = answered().any(|probe| probe.at <= at && probe.at + near >= at);
        is_before && answered().any(|probe| probe.at >= at && probe.at <= at + near)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Duration = Duration::from_millis(10);
    const RTT: Duration = Duration::from_micros(300);

    fn way(dst: u8, choice: Option<u32>) -> Way {
        Way {
            src: [10, 0, 0, 1].into(),
            dst: [10, 0, 1, dst].into(),
            choice,
        }
    }

    struct Run {
        prober: Prober,
        now: Duration,
        sent: Vec<(Duration, Way)>,
        /// How often the reference was turned: each time it takes the other of two ways.
        turns: u32,
    }

    impl Run {
        fn new(options: Options, paths: &[Way]) -> Self {
            let mut prober = Prober::new(options);
            prober.want(Duration::ZERO, paths.iter().copied());
            Self {
                prober,
                now: Duration::ZERO,
                sent: Vec::new(),
                turns: 0,
            }
        }

        /// Returns time passes; probes are answered where `answers` says so, of the path that they take.
        fn pass(&mut self, time: Duration, answers: impl Fn(Duration, u32) -> Option<Duration>) {
            let end = self.now + time;
            while self.now < end {
                for (way, number) in self.prober.due(self.now) {
                    self.sent.push((self.now, way));
                    let choice = way.choice.unwrap_or(self.turns % 2);
                    if let Some(rtt) = answers(self.now, choice) {
                        self.prober.answered(self.now + rtt, way, number);
                    }
                }
                self.turns += u32::try_from(self.prober.to_turn(self.now).len()).unwrap();
                self.now += TURN;
            }
        }

        fn loss(&self, choice: u32) -> Option<u32> {
            let verdict = self.prober.verdict(self.now, way(1, Some(choice)));
            verdict.map(|verdict| verdict.loss_ppm)
        }
    }

    #[test]
    fn a_path_that_loses_all_is_told_from_one_that_does_not() {
        for reference in 0..2 {
            let paths = [way(1, Some(0)), way(1, Some(1))];
            let mut run = Run::new(Options::default(), &paths);
            run.turns = reference;
            assert_eq!(run.loss(0), None);
            run.pass(Duration::from_secs(3), |_, _| Some(RTT));
            assert_eq!((run.loss(0), run.loss(1)), (Some(0), Some(0)));
            let verdict = run.prober.verdict(run.now, paths[0]).unwrap();
            assert_eq!(verdict.rtt, Some(RTT));
            run.pass(Duration::from_secs(2), |_, choice| {
                (choice == 1).then_some(RTT)
            });
            assert!(run.loss(0) >= Some(200_000), "{:?}", run.loss(0));
            run.pass(Duration::from_secs(3), |_, choice| {
                (choice == 1).then_some(RTT)
            });
            assert_eq!((run.loss(0), run.loss(1)), (Some(1_000_000), Some(0)));
            run.pass(Duration::from_secs(4), |_, _| Some(RTT));
            assert_eq!((run.loss(0), run.loss(1)), (Some(0), Some(0)));
        }
    }

    #[test]
    fn a_receiver_that_does_not_answer_is_not_held_against_its_paths() {
        let mut run = Run::new(Options::default(), &[way(1, Some(0))]);
        run.pass(Duration::from_secs(10), |_, _| None);
        assert_eq!(run.loss(0), None);
        // It starts, dies, and comes back; that is no loss at any time.
        for time in 0..200 {
            let answers = !(70..130).contains(&time);
            run.pass(Duration::from_millis(100), |_, _| answers.then_some(RTT));
            assert!(
                matches!(run.loss(0), None | Some(0)),
                "{time}: {:?}",
                run.loss(0)
            );
        }
        assert_eq!(run.loss(0), Some(0));
    }

    #[test]
    fn one_probe_of_five_lost_is_a_fifth_and_the_least_time_counts() {
        let mut run = Run::new(Options::default(), &[way(1, Some(0))]);
        run.pass(Duration::from_secs(6), |now, choice| {
            let turn = u32::try_from(now.as_millis() / 100).unwrap();
            (choice == 1 || turn % 5 != 0).then_some(RTT * (1 + turn % 3))
        });
        // The reference takes path 1 from its first loss on.
        let verdict = run.prober.verdict(run.now, way(1, Some(0))).unwrap();
        assert_eq!((verdict.loss_ppm, verdict.rtt), (200_000, Some(RTT)));
    }

    #[test]
    fn work_is_bounded() {
        let options = Options {
            most: 100,
            most_ways: 50,
            ..Options::default()
        };
        let paths: Vec<Way> = (0..40)
            .flat_map(|dst| (0..4).map(move |choice| way(dst, Some(choice))))
            .collect();
        let mut run = Run::new(options, &paths);
        run.pass(Duration::from_secs(10), |_, _| Some(RTT));
        assert!(
            (900..=1_011).contains(&run.sent.len()),
            "{}",
            run.sent.len()
        );
        let probed: BTreeSet<Way> = run.sent.iter().map(|(_, way)| *way).collect();
        assert_eq!(probed.len(), 50);
        let tally = run.prober.tally();
        assert_eq!((tally.ways, tally.left_out), (50, 120));
        // Without the limit each is probed once in an interval.
        let mut run = Run::new(Options::default(), &paths[..1]);
        run.pass(Duration::from_secs(10), |_, _| Some(RTT));
        assert_eq!(run.sent.len(), 200);
        let (_, gone) = run.prober.want(run.now, std::iter::empty());
        assert_eq!(gone.len(), 2);
        assert!(run.prober.due(run.now + Duration::from_secs(1)).is_empty());
    }
}
