//! The best of several greedy matchings.

use strum::VariantArray as _;

use super::delivery::{Bits, Delivery, Wanted};
use super::detour::{Detour, Near};
use super::event::{Choice, Matching, matched};
use super::least::least;
use super::network::{Timing, UnwoundNetwork};
use super::relay::relayed;
use super::slots::{Clockwork, slot_table};
use super::symmetric::Symmetry;
use super::timetable::{Send, Timetable};
use crate::id::fit;
use crate::plan::Lists;
use crate::progress::{Interrupted, Limited, Progress, Silent};

/// Trials run side by side, and compared before the next few begin; fixed, so that the result does
/// not depend on the number of threads.
const BATCH: usize = 4;
/// Sends that all trials together may look at.
const EFFORT: u64 = 3_000_000;
/// Sends from which on each trial runs by itself, and can be stopped.
const MANY_SENDS: u64 = 200_000;
/// Chunks up to which all candidates are looked at for the rarest.
const MANY_CHUNKS: usize = 8_192;
/// Sends up to which the first few trials run side by side.
const FEW: u64 = 20_000;
/// Sends from which on a matching slot by slot is tried first.
const SOME: u64 = 1_000;
/// Sends from which on one matching slot by slot is enough.
const MANY: u64 = 400_000;
/// Crowdings tried where ways are chosen beforehand.
const CROWDINGS: [f64; 4] = [1.0, 0.2, 4.0, 0.05];

/// Returns how many trials of so many sends may run at once, each in memory of its own.
pub(super) fn trials_at_once(sends: u128) -> u128 {
    match sends > u128::from(MANY_SENDS) {
        true => 1,
        false => BATCH as u128,
    }
}

/// Why there is no timetable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Somebody who wants a chunk cannot be reached.
    Unreachable,
    Interrupted,
}

impl From<Interrupted> for Failure {
    fn from(_: Interrupted) -> Self {
        Failure::Interrupted
    }
}

/// How the trials differ, and how many there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trials {
    pub(super) seed: u64,
    /// At most so many.
    pub(super) most: u64,
}

/// Returns the best timetable of several trials: different seeds, choices and ways. Stops at the least time that is
/// possible.
pub(super) fn greedy(
    network: &UnwoundNetwork,
    spread: &Delivery,
    timings: &[Timing],
    reserved: &[Vec<(u64, u64)>],
    axes: &[usize],
    trials: Trials,
    progress: &mut dyn Progress,
) -> Result<Timetable, Failure> {
    if spread.chunks() == 0 {
        return Ok(Timetable {
            sends: Vec::new(),
            end: 0,
        });
    }
    let floor = least(network, spread, timings);
    let sends = spread.missing().count().max(1);
    let near = Near::new(network, timings, spread.sizes.len());
    let mut best: Option<Timetable> = None;
    if reserved.is_empty() {
        let symmetry = Symmetry::find(network, spread, timings, axes, &near);
        if let Some(found) = symmetry
            .and_then(|found| found.timetable(trials.seed, floor, 4 * trials.most, progress))
        {
            return Ok(found);
        }
        best = slotted(network, spread, timings, trials.seed, progress)?;
        if sends >= MANY && best.is_none() && Clockwork::of(spread, timings).is_some() {
            return Err(Failure::Unreachable);
        }
        if let Some(found) = best.take_if(|best| sends >= MANY || best.end <= floor) {
            return Ok(found);
        }
    }
    let count = (EFFORT / sends).clamp(1, trials.most.max(1));
    let is_routed = matches!(spread.wanted, Wanted::Listed(_));
    let crowdings = if is_routed {
        &CROWDINGS[..]
    } else {
        &CROWDINGS[..1]
    };
    let mut routed = Vec::new();
    for &crowding in crowdings.iter().take(fit(count)) {
        if !routed.is_empty() && !progress.report("finding ways", routed.len() as u64, 4) {
            break;
        }
        routed.push(relayed(network, spread, timings, crowding, progress)?);
    }
    let choices: &[Choice] = match is_routed {
        true => &[Choice::Farthest],
        false if sends > 1 << 22 || spread.chunks() > MANY_CHUNKS => &[Choice::Any],
        false if network.nodes() > 2 => &[Choice::RarestNode, Choice::Rarest, Choice::Any],
        false => &[Choice::Rarest, Choice::Any],
    };
    let trial = |index: u64, limit: u64, progress: &mut dyn Progress| {
        let way = &routed[fit::<usize, _>(index) % routed.len()];
        let choice = choices[fit::<usize, _>(index / routed.len() as u64) % choices.len()];
        let matching = |detour: Detour| Matching {
            network,
            spread: &way.spread,
            timings,
            reserved,
            ahead: &way.ahead,
            choice,
            near: &near,
            detour,
            seed: trials.seed.wrapping_mul(0x9e37_79b9).wrapping_add(index),
            limit,
        };
        let detour = match near.is_empty() {
            true => Detour::Ignore,
            false => Detour::VARIANTS[(index / 2) as usize % Detour::VARIANTS.len()],
        };
        // The faster way may be none for this chunk: those on it do not want it.
        let stuck = detour == Detour::Refuse && limit == u64::MAX;
        match matched(&matching(detour), progress)? {
            None if stuck => matched(&matching(Detour::Avoid), progress),
            found => Ok(found),
        }
    };
    let mut done = 0;
    while done < count {
        // Where one takes long, the first may be good enough.
        let batch = match sends > FEW {
            true if done == 0 || sends > MANY_SENDS => 1,
            _ => BATCH,
        };
        let batch = (count - done).min(batch as u64);
        let limit = best
            .as_ref()
            .map_or(u64::MAX, |best| best.end.saturating_sub(1));
        let found: Vec<Option<Timetable>> = match batch {
            // One alone may take long, and can be stopped.
            1 => match (trial(done, limit, progress), &best) {
                (Ok(found), _) => vec![found],
                (Err(Interrupted), Some(_)) => break,
                (Err(Interrupted), None) => return Err(Failure::Interrupted),
            },
            _ => std::thread::scope(|scope| {
                let trial = &trial;
                let workers: Vec<_> = (done..done + batch)
                    .map(|index| scope.spawn(move || counted(|watch| trial(index, limit, watch))))
                    .collect();
                let joined = workers.into_iter().map(|worker| worker.join());
                joined
                    .map(|result| {
                        let (found, work) = result.expect("no trial panics");
                        progress.spend(work);
                        found.unwrap_or(None)
                    })
                    .collect()
            }),
        };
        for timetable in found.into_iter().flatten() {
            if best.as_ref().is_none_or(|best| timetable.end < best.end) {
                best = Some(timetable);
            }
        }
        if best.is_none() {
            return Err(Failure::Unreachable);
        }
        done += batch;
        if best.as_ref().is_some_and(|best| best.end <= floor) {
            break;
        }
        if !progress.report("synthesizing", done, count) {
            break;
        }
    }
    let mut best = best.expect("a first batch finds one or fails");
    if let Wanted::Listed(wanted) = &spread.wanted {
        best = pruned(best, network, spread, timings, wanted);
    }
    Ok(best)
}

/// Does work that nobody watches; gives the result and how much work it was.
fn counted<T>(work: impl FnOnce(&mut dyn Progress) -> T) -> (T, u64) {
    let mut silent = Silent;
    let mut limited = Limited::new(&mut silent, u64::MAX);
    (work(&mut limited), limited.spent)
}

/// One matching slot by slot, where edges are all alike and there are enough sends for it to be quicker
/// than going from event to event. `None` otherwise, or where somebody can never get everything.
fn slotted(
    network: &UnwoundNetwork,
    spread: &Delivery,
    timings: &[Timing],
    seed: u64,
    progress: &mut dyn Progress,
) -> Result<Option<Timetable>, Interrupted> {
    let sends = spread.missing().count();
    let Some(clockwork) = Clockwork::of(spread, timings).filter(|_| sends >= SOME) else {
        return Ok(None);
    };
    let threads = threads(network.npus());
    let table = slot_table(network, spread, seed, clockwork.lag, threads, progress)?;
    Ok(table.map(|table| table.timetable(network, clockwork)))
}

/// Drops what came to somebody who neither wants it nor passes it on.
fn pruned(
    timetable: Timetable,
    network: &UnwoundNetwork,
    spread: &Delivery,
    timings: &[Timing],
    wanted: &Lists<u32>,
) -> Timetable {
    let mut needed = Bits::new(spread.npus, spread.chunks());
    for (chunk, npus) in wanted.iter().enumerate() {
        npus.iter().for_each(|&npu| needed.set(npu as usize, chunk));
    }
    let keeps = |send: &Send| {
        let ends = network.edges()[send.edge as usize];
        let keeps = needed.get(ends.dst.index(), send.chunk as usize);
        if keeps {
            needed.set(ends.src.index(), send.chunk as usize);
        }
        keeps
    };
    let mut kept: Vec<Send> = timetable.sends.iter().rev().copied().collect();
    kept.retain(keeps);
    kept.reverse();
    Timetable::new(kept, timings, spread)
}

/// Returns how many threads to share NPUs out among; results do not depend on it.
pub(super) fn threads(npus: usize) -> usize {
    /// Below, starting threads for every slot takes longer than their work.
    const LEAST: usize = 2_048;
    match npus < LEAST {
        true => 1,
        false => std::thread::available_parallelism().map_or(1, |threads| threads.get()),
    }
}
