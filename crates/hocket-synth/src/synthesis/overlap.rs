//! Sums and copies in one timetable: one after the other, or at the same time where links allow.

use super::compile::Timetables;
use super::delivery::{Delivery, Wanted};
use super::greedy::{Failure, Trials};
use super::least::least;
use super::problem::Problem;
use super::timetable::{Send, Timetable, timing};
use crate::id::narrow;
use crate::plan::Lists;
use crate::progress::Progress;
use crate::units::{Seed, whole};

/// Sends up to which all chunks are also staggered at once.
const MANY: u64 = 200_000;
/// Sends of a group that is staggered, where there are more than that.
const SOME: u64 = 100_000;
/// Trials of copies in the gaps of a group's sums: those of no group get to a bound and end there.
const WINDOW_TRIALS: u64 = 8;
/// Over what share of the time that all sums take their ends are spread.
const STAGGERS: [f64; 2] = [1.0, 0.7];
/// Trials of each.
const STAGGER_TRIALS: u64 = 4;
/// Groups of an all-reduce's chunks that follow each other, at most.
const GROUPS: usize = 8;

/// Returns the best timetables found.
///
/// Where sums and copies are of different chunks, copies go into the gaps that the sums leave, or sums at
/// the end. Of an all-reduce, whose chunks are summed and then copied, the pieces go in groups: while one
/// group is copied, the next is summed in the gaps. Chunks are also staggered: each is copied as soon as it
/// is summed, while others are still summed; where there are many, in groups one after the other.
pub(super) fn solve(
    problem: &Problem,
    trials: Trials,
    progress: &mut dyn Progress,
) -> Result<Timetables, Failure> {
    let (sums, copies) = problem.parts();
    if copies.is_empty() {
        let sums = problem.sums(&sums.spread, trials, progress)?;
        return Ok(Timetables {
            sums,
            copies: Timetable::default(),
        });
    }
    if sums.is_empty() {
        let copies = problem.copies(&copies.spread, &[], trials, progress)?;
        return Ok(Timetables {
            sums: Timetable::default(),
            copies,
        });
    }
    if sums.ids == copies.ids {
        let mut best = in_groups(problem, trials, progress)?;
        if let Some(group) = Group::to_stagger(problem, best.sums.sends.len() as u64) {
            for share in STAGGERS {
                let found = staggered(problem, &group, share, trials, progress)?;
                let found = group.repeated(&found);
                if found.end() < best.end() {
                    best = found;
                }
            }
        }
        return Ok(best);
    }
    let summed_ids: std::collections::HashSet<u32> = sums.ids.iter().copied().collect();
    let shared = copies.ids.iter().any(|id| summed_ids.contains(id));
    let summed = problem.sums(&sums.spread, trials, progress)?;
    let copied = problem.copies(&copies.spread, &[], trials, progress)?;
    let mut best = after(&summed, &copied);
    if !shared {
        let late = summed.later(copied.end.saturating_sub(summed.end));
        for summed in [summed, late] {
            let gaps = (&summed, &sums.spread);
            let copied = beside(problem, &copies.spread, gaps, trials, progress)?;
            let found = Timetables {
                sums: summed,
                copies: copied,
            };
            if found.end() < best.end() {
                best = found;
            }
        }
    }
    Ok(best)
}

/// Sums, and when they have ended copies.
pub(super) fn apart(
    problem: &Problem,
    trials: Trials,
    progress: &mut dyn Progress,
) -> Result<Timetables, Failure> {
    let (sums, copies) = problem.parts();
    let summed = problem.sums(&sums.spread, trials, progress)?;
    let copied = problem.copies(&copies.spread, &[], trials, progress)?;
    Ok(after(&summed, &copied))
}

fn after(sums: &Timetable, copies: &Timetable) -> Timetables {
    Timetables {
        sums: sums.clone(),
        copies: copies.later(sums.end),
    }
}

/// Copies in the gaps that sums leave, which are of chunks of their own.
fn beside(
    problem: &Problem,
    copies: &Delivery,
    (sums, spread): (&Timetable, &Delivery),
    trials: Trials,
    progress: &mut dyn Progress,
) -> Result<Timetable, Failure> {
    let mut reserved = vec![Vec::new(); problem.network.edges().len()];
    for send in &sums.sends {
        let occupied = timing(&problem.sum_times, spread, send).occupied;
        reserved[send.edge as usize].push((send.start, send.start + occupied));
    }
    problem.copies(copies, &reserved, trials, progress)
}

/// As many of the pieces of each NPU's share as are treated alike, group after group.
struct Group {
    sums: Delivery,
    copies: Delivery,
    /// Chunks of the first group.
    members: Vec<u32>,
    /// Pieces of a group.
    size: usize,
    groups: usize,
}

impl Group {
    /// `groups` groups of equal size, or `None` where pieces cannot be shared out so.
    fn of(problem: &Problem, groups: usize) -> Option<Self> {
        let (sums, copies) = problem.parts();
        let pieces = pieces(problem)?;
        let size = pieces.is_multiple_of(groups).then(|| pieces / groups)?;
        let first = |chunk: usize| chunk % pieces < size;
        let (some_sums, members) = subset(&sums.spread, first);
        Some(Self {
            sums: some_sums,
            copies: subset(&copies.spread, first).0,
            members,
            size,
            groups,
        })
    }

    /// Returns all chunks, or groups of them where there are many.
    fn to_stagger(problem: &Problem, sends: u64) -> Option<Self> {
        if sends <= MANY {
            let (sums, copies) = problem.parts();
            return Some(Self {
                sums: sums.spread.clone(),
                copies: copies.spread.clone(),
                members: (0..narrow(sums.spread.chunks())).collect(),
                size: 0,
                groups: 1,
            });
        }
        let pieces = pieces(problem)?;
        let of_at_most = |most: u64| {
            let is_right =
                |&groups: &usize| pieces.is_multiple_of(groups) && sends / groups as u64 <= most;
            (2..=pieces).find(is_right)
        };
        let groups = of_at_most(SOME).or_else(|| of_at_most(MANY))?;
        Self::of(problem, groups)
    }

    /// Returns which chunk of a group a chunk of the first one is.
    fn chunk_of(&self, group: usize) -> impl Fn(u32) -> u32 {
        move |chunk| self.members[chunk as usize] + narrow(group * self.size)
    }

    /// Returns the same for every group, one after the other.
    fn repeated(&self, times: &Timetables) -> Timetables {
        let mut all = Timetables::default();
        for group in 0..self.groups {
            let now = group as u64 * times.end();
            all.sums.add(&times.sums, now, self.chunk_of(group));
            all.copies.add(&times.copies, now, self.chunk_of(group));
        }
        all
    }
}

/// Into how many pieces every share of an all-reduce is cut; `None` for anything else.
fn pieces(problem: &Problem) -> Option<usize> {
    let owners = &problem.parts().0.spread.holders;
    let mut pieces = owners.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len);
    let first = pieces.next()?;
    // Runs of one owner are pieces of one demand only where there is one demand.
    (problem.is_all_reduce() && pieces.all(|pieces| pieces == first)).then_some(first)
}

/// Sums of a group that end one after the other, over `share` of the time that they take alone, as early as
/// can be. Each chunk is copied, in the gaps, from when it is summed.
fn staggered(
    problem: &Problem,
    group: &Group,
    share: f64,
    trials: Trials,
    progress: &mut dyn Progress,
) -> Result<Timetables, Failure> {
    let few = Trials {
        most: trials.most.min(STAGGER_TRIALS),
        ..trials
    };
    let spread = &group.sums;
    let chunks = spread.chunks();
    let alone = least(&problem.mirror, spread, &problem.sum_times) as f64;
    let mut order: Vec<usize> = (0..chunks).collect();
    let mut random = Seed(trials.seed);
    for i in (1..chunks).rev() {
        order.swap(i, random.below(i + 1));
    }
    // In mirrored time, what begins late ends early.
    let mut late = spread.clone();
    for (&rank, (_, from)) in order.iter().zip(&mut late.holders) {
        *from = whole(share * alone * rank as f64 / chunks as f64);
    }
    let sums = earliest(problem, spread, problem.sums(&late, few, progress)?);
    let mut copies = group.copies.clone();
    for send in &sums.sends {
        let dst = problem.network.edges()[send.edge as usize].dst.0;
        let (owner, from) = &mut copies.holders[send.chunk as usize];
        if dst == *owner {
            let end = send.start + timing(&problem.sum_times, spread, send).delay;
            *from = end.max(*from);
        }
    }
    let copies = beside(problem, &copies, (&sums, spread), few, progress)?;
    Ok(Timetables { sums, copies })
}

/// Returns the same sums in the same order on every edge, each as early as its edge and its parts allow.
fn earliest(problem: &Problem, spread: &Delivery, mut sums: Timetable) -> Timetable {
    let mut free = vec![0; problem.network.edges().len()];
    let mut summed = vec![0; spread.npus * spread.chunks()];
    for send in &mut sums.sends {
        let ends = problem.network.edges()[send.edge as usize];
        let timing = timing(&problem.sum_times, spread, send);
        let place = |npu: u32| npu as usize * spread.chunks() + send.chunk as usize;
        let free = &mut free[send.edge as usize];
        send.start = summed[place(ends.src.0)].max(*free);
        *free = send.start + timing.occupied;
        let there = &mut summed[place(ends.dst.0)];
        *there = (send.start + timing.delay).max(*there);
    }
    Timetable::new(sums.sends, &problem.sum_times, spread)
}

/// Groups of pieces, each summed while the one before is copied.
fn in_groups(
    problem: &Problem,
    trials: Trials,
    progress: &mut dyn Progress,
) -> Result<Timetables, Failure> {
    let least = pieces(problem).unwrap_or(1);
    let groups = (1..=GROUPS.min(least))
        .rev()
        .find(|&groups| least.is_multiple_of(groups))
        .unwrap_or(1);
    let Some(group) = Group::of(problem, groups) else {
        return apart(problem, trials, progress);
    };
    let summed = problem.sums(&group.sums, trials, progress)?;
    let copied = problem.copies(&group.copies, &[], trials, progress)?;
    let window = match groups {
        1 => None,
        _ => {
            let gaps = (&summed, &group.sums);
            let few = Trials {
                most: trials.most.min(WINDOW_TRIALS),
                ..trials
            };
            Some(beside(problem, &group.copies, gaps, few, progress)?)
        }
    };
    // Per group: sums and copies at once, if that is quicker than one after the other.
    let window =
        window.filter(|copied_beside| copied_beside.end.max(summed.end) < summed.end + copied.end);
    let mut times = Timetables::default();
    let mut now = 0;
    for at in 0..groups {
        match &window {
            Some(window) => {
                times.sums.add(&summed, now, group.chunk_of(at));
                if at == 0 {
                    now += summed.end;
                } else {
                    times.copies.add(window, now, group.chunk_of(at - 1));
                    now += summed.end.max(window.end);
                }
            }
            None => {
                times.sums.add(&summed, now, group.chunk_of(at));
                now += summed.end;
                times.copies.add(&copied, now, group.chunk_of(at));
                now += copied.end;
            }
        }
    }
    if window.is_some() {
        times.copies.add(&copied, now, group.chunk_of(groups - 1));
    }
    Ok(times)
}

/// Returns those chunks of a spread that `keep` names, and which they are.
fn subset(spread: &Delivery, keep: impl Fn(usize) -> bool) -> (Delivery, Vec<u32>) {
    let kept: Vec<u32> = (0..spread.chunks())
        .filter(|&c| keep(c))
        .map(narrow)
        .collect();
    let mut place = vec![u32::MAX; spread.chunks()];
    (0..)
        .zip(&kept)
        .for_each(|(at, &chunk)| place[chunk as usize] = at);
    let others = spread.others.iter();
    let wanted = match &spread.wanted {
        Wanted::All => Wanted::All,
        Wanted::Listed(lists) => {
            let mut some = Lists::default();
            for &chunk in &kept {
                some.push(lists.get(chunk as usize));
            }
            Wanted::Listed(some)
        }
    };
    let subset = Delivery {
        npus: spread.npus,
        sizes: spread.sizes.clone(),
        class: kept
            .iter()
            .map(|&chunk| spread.class[chunk as usize])
            .collect(),
        holders: kept
            .iter()
            .map(|&chunk| spread.holders[chunk as usize])
            .collect(),
        others: others
            .filter(|(chunk, _)| place[*chunk as usize] != u32::MAX)
            .map(|&(chunk, npu)| (place[chunk as usize], npu))
            .collect(),
        wanted,
    };
    (subset, kept)
}

impl Timetable {
    /// The same sends, `by` picoseconds later.
    pub(super) fn later(&self, by: u64) -> Self {
        let mut later = Self::default();
        later.add(self, by, |chunk| chunk);
        later
    }

    /// Adds the sends of another, `by` picoseconds later, of other chunks.
    fn add(&mut self, other: &Self, by: u64, chunk: impl Fn(u32) -> u32) {
        self.sends.extend(other.sends.iter().map(|send| Send {
            chunk: chunk(send.chunk),
            edge: send.edge,
            start: send.start + by,
        }));
        if !other.sends.is_empty() {
            self.end = self.end.max(other.end + by);
        }
    }
}
