//! One synthesis problem: a collective on a network as unwound, and the ways to solve it.

use super::compile::{Timetables, compile};
use super::delivery::{Delivery, Wanted};
use super::disconnected::cut_off;
use super::greedy::{Failure, Trials, greedy, threads, trials_at_once};
use super::least::least;
use super::network::{Timing, UnwoundNetwork};
use super::overlap;
use super::slot_table::SlotTable;
use super::slots::{Clockwork, slot_table};
use super::sums_and_copies::{Part, SumsAndCopies};
use super::timetable::{Send, Timetable, timing};
use super::unwind::Unwinding;
use super::{GREEDY, blind};
use crate::collective::{Collective, CollectiveKind, Demand};
use crate::id::narrow;
use crate::plan::{LinkOrder, Plan, PlanBuilder, PlanError};
use crate::progress::{Interrupted, Progress};
use crate::topology::{LatencyModel, Topology};

/// The latest start that timetables from outside may name, in picoseconds.
const LATEST: u64 = u64::MAX / 4;

/// A collective on a network whose switches are unwound.
#[derive(Clone, Debug)]
pub struct Problem {
    pub(super) network: UnwoundNetwork,
    pub(super) mirror: UnwoundNetwork,
    pub(super) work: SumsAndCopies,
    /// What a chunk of each size costs on each edge, of edge x sizes.
    pub(super) sum_times: Vec<Timing>,
    pub(super) copy_times: Vec<Timing>,
    /// The same of sums and copies for the smallest chunk that counts as each size.
    smallest_times: [Vec<Timing>; 2],
    /// Sizes of the dimensions, for networks that look the same from every NPU.
    pub(super) axes: Vec<usize>,
    collective: Collective,
    memory_limit: u64,
}

/// A timetable in slots, checked, and when it ends.
#[derive(Clone, Debug)]
pub struct Compact {
    /// What every edge carries in every slot.
    pub table: SlotTable,
    /// When the last chunk has come, in picoseconds.
    pub end: u64,
}

impl Problem {
    /// `unwinding` holds one entry for all fabrics, or one for each dimension of a product (none is
    /// [`Unwinding::Max`]); `pieces`
    /// is how many chunks each demand is cut into.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`] before anything is allocated; [`PlanError::TooManyChunks`];
    /// [`PlanError::TooLong`]; [`PlanError::Collective`] where the topology lacks a participant.
    pub fn new(
        topology: &Topology,
        collective: &Collective,
        pieces: usize,
        unwinding: &[Unwinding],
        latency: LatencyModel,
        memory_limit: u64,
    ) -> Result<Self, PlanError> {
        collective.check_on(topology)?;
        check_chunks(collective, pieces, memory_limit)?;
        let unwinding = if unwinding.is_empty() {
            &[Unwinding::Max]
        } else {
            unwinding
        };
        let network = UnwoundNetwork::new(topology, unwinding);
        let network = network.without_dead_ends(collective.npus());
        let work = SumsAndCopies::new(&network, collective, pieces)?;
        let smaller = |part: &Part| {
            let mut spread = part.spread.clone();
            let less = shortfall(&work, part);
            let sizes = spread.sizes.iter_mut();
            sizes.for_each(|size| *size = size.saturating_sub(less));
            timings(topology, &network, &spread, latency)
        };
        let smallest_times = [smaller(&work.sums), smaller(&work.copies)];
        let axes = topology
            .dimensions()
            .iter()
            .map(|dimension| dimension.size as usize);
        let problem = Self {
            mirror: network.mirrored(),
            sum_times: timings(topology, &network, &work.sums.spread, latency),
            copy_times: timings(topology, &network, &work.copies.spread, latency),
            axes: axes.collect(),
            smallest_times,
            network,
            work,
            collective: collective.clone(),
            memory_limit,
        };
        problem.check_times()?;
        Ok(problem)
    }

    /// Refuses what takes so long that times could pass what can be told.
    fn check_times(&self) -> Result<(), PlanError> {
        let delays = self.sum_times.iter().chain(&self.copy_times);
        let longest = delays.map(|timing| timing.delay).max().unwrap_or(0);
        let chunks = (self.work.sums.ids.len() + self.work.copies.ids.len()) as u128;
        let npus = self.network.npus() as u128;
        if u128::from(longest) * (chunks + npus) * 4 > u128::from(u64::MAX / 2) {
            return Err(PlanError::TooLong);
        }
        Ok(())
    }

    /// Returns the same problem in slots of `factor` picoseconds: every cost rounded up to whole slots, so that what is
    /// sent always fits, and an edge is held until its chunk is there.
    ///
    /// # Errors
    /// [`PlanError::TooLong`] for slots so long that times could pass what can be told.
    ///
    /// # Source
    /// TACOS, section IV-C.
    pub fn discretised(&self, factor: u64) -> Result<Self, PlanError> {
        let factor = factor.max(1);
        let rounded = |timing: &Timing| {
            let delay = timing.delay.div_ceil(factor).saturating_mul(factor);
            Timing {
                delay,
                occupied: delay,
            }
        };
        let slotted = Self {
            sum_times: self.sum_times.iter().map(rounded).collect(),
            copy_times: self.copy_times.iter().map(rounded).collect(),
            smallest_times: [&self.smallest_times[0], &self.smallest_times[1]]
                .map(|times| times.iter().map(rounded).collect()),
            ..self.clone()
        };
        slotted.check_times()?;
        Ok(slotted)
    }

    /// Returns the network that chunks are matched to.
    pub fn network(&self) -> &UnwoundNetwork {
        &self.network
    }

    /// Returns what is to be summed and copied.
    pub fn work(&self) -> &SumsAndCopies {
        &self.work
    }

    /// Returns what a chunk of each size of what is summed costs on each edge, of edge x sizes.
    pub fn sum_times(&self) -> &[Timing] {
        &self.sum_times
    }

    /// As [`sum_times`](Self::sum_times), of what is copied.
    pub fn copy_times(&self) -> &[Timing] {
        &self.copy_times
    }

    /// Returns the least that any timetable takes, in picoseconds; see [`Bound`](crate::bound::Bound) for what holds of
    /// all plans.
    pub fn least(&self) -> u64 {
        let [sums, copies] = &self.smallest_times;
        let sums = least(&self.mirror, &self.work.sums.spread, sums);
        sums.max(least(&self.network, &self.work.copies.spread, copies))
    }

    /// Matches greedily; see [`crate::select::synthesize`].
    ///
    /// # Errors
    /// [`PlanError::NotApplicable`] where an NPU that wants data cannot be reached;
    /// [`PlanError::Interrupted`] before a first timetable was found.
    pub fn greedy(
        &self,
        seed: u64,
        trials: u64,
        progress: &mut dyn Progress,
    ) -> Result<Timetables, PlanError> {
        self.check_memory()?;
        let trials = Trials { seed, most: trials };
        overlap::solve(self, trials, progress).map_err(|failure| self.refused(GREEDY, failure))
    }

    /// Matches slot by slot into a compact table, of copies or of sums (mirrored), and checks it; for
    /// networks too large for a plan.
    ///
    /// # Errors
    /// [`PlanError::NotApplicable`] where links differ in cost, not every NPU wants everything, it is an
    /// all-reduce, or an NPU cannot be reached; [`PlanError::TooLarge`]; [`PlanError::Interrupted`].
    pub fn compact(&self, seed: u64, progress: &mut dyn Progress) -> Result<Compact, PlanError> {
        let (sums, copies) = self.parts();
        let (network, spread, times) = match (sums.is_empty(), copies.is_empty()) {
            (true, _) => (&self.network, &copies.spread, &self.copy_times),
            (false, true) => (&self.mirror, &sums.spread, &self.sum_times),
            (false, false) => return Err(not_alike("it sums and copies")),
        };
        let Some(clockwork) = Clockwork::of(spread, times) else {
            return Err(not_alike(
                "links differ in cost, or not everybody wants everything",
            ));
        };
        let sends = self.work.transfers();
        let bits = spread.npus as u128 * spread.chunks() as u128;
        let bytes = sends * 4 + bits / 8 * 4 + spread.chunks() as u128 * spread.npus as u128 / 2;
        if bytes > u128::from(self.memory_limit) {
            return Err(PlanError::TooLarge {
                transfers: sends,
                bytes,
                limit: self.memory_limit,
            });
        }
        let threads = threads(spread.npus);
        let stopped = |_| self.refused(GREEDY, Failure::Interrupted);
        let table = slot_table(network, spread, seed, clockwork.lag, threads, progress);
        let Some(table) = table.map_err(stopped)? else {
            return Err(self.refused(GREEDY, Failure::Unreachable));
        };
        let checked = table.check(network, spread, progress).map_err(stopped)?;
        checked.map_err(|why| PlanError::Malformed { why })?;
        Ok(Compact {
            end: clockwork.end(table.slots()),
            table,
        })
    }

    /// Refuses what would not fit in memory, before anything large is allocated.
    fn check_memory(&self) -> Result<(), PlanError> {
        let transfers = self.work.transfers();
        PlanBuilder::check_size(transfers, self.memory_limit)?;
        let part = |part: &Part| {
            // Bits of who has and who lacks what, when it comes, what is still before it.
            let places = part.spread.npus as u128 * part.spread.chunks() as u128;
            let listed = matches!(part.spread.wanted, Wanted::Listed(_));
            places / 4 + if listed { 16 * places } else { 4 * places }
        };
        let bytes = (part(&self.work.sums) + part(&self.work.copies)) * trials_at_once(transfers);
        if bytes > u128::from(self.memory_limit) {
            return Err(PlanError::TooLarge {
                transfers,
                bytes,
                limit: self.memory_limit,
            });
        }
        Ok(())
    }

    /// As [`greedy`](Self::greedy), but no copy before the last sum has ended.
    ///
    /// # Errors
    /// As [`greedy`](Self::greedy).
    pub fn greedy_apart(
        &self,
        seed: u64,
        trials: u64,
        progress: &mut dyn Progress,
    ) -> Result<Timetables, PlanError> {
        self.check_memory()?;
        let trials = Trials { seed, most: trials };
        overlap::apart(self, trials, progress).map_err(|failure| self.refused(GREEDY, failure))
    }

    pub(super) fn is_all_reduce(&self) -> bool {
        self.collective.kind() == CollectiveKind::AllReduce
    }

    pub(super) fn sums(
        &self,
        spread: &Delivery,
        trials: Trials,
        progress: &mut dyn Progress,
    ) -> Result<Timetable, Failure> {
        let (network, times) = (&self.mirror, self.mirrored_times());
        let found = greedy(network, spread, &times, &[], &self.axes, trials, progress)?;
        Ok(found.mirrored(&self.sum_times, spread))
    }

    /// Returns what sums cost in mirrored time, in which an edge is held before a chunk is there rather than from its
    /// start: where its links pass on chunks of different sizes, for longer.
    fn mirrored_times(&self) -> Vec<Timing> {
        let sizes = self.work.sums.spread.sizes.len().max(1);
        let mut times = self.sum_times.clone();
        for edge in times.chunks_mut(sizes) {
            let after = edge.iter().map(|time| time.delay - time.occupied).min();
            for time in edge {
                time.occupied = time.occupied.max(time.delay - after.unwrap_or(0));
            }
        }
        times
    }

    pub(super) fn copies(
        &self,
        spread: &Delivery,
        reserved: &[Vec<(u64, u64)>],
        trials: Trials,
        progress: &mut dyn Progress,
    ) -> Result<Timetable, Failure> {
        let (network, times) = (&self.network, &self.copy_times[..]);
        greedy(
            network, spread, times, reserved, &self.axes, trials, progress,
        )
    }

    /// Returns the plan of a timetable, under the name of the algorithm that found it.
    pub fn plan(&self, algorithm: &str, times: &Timetables) -> Plan {
        compile(
            algorithm,
            &self.collective,
            &self.network,
            &self.work,
            times,
        )
    }

    /// Returns every chunk on a shortest way, whatever else is on it: the congestion-blind baseline.
    ///
    /// # Errors
    /// [`PlanError::NotApplicable`] where somebody cannot be reached.
    pub fn blind(&self, seed: u64) -> Result<Plan, PlanError> {
        self.check_memory()?;
        let times = blind::timetables(self, seed);
        let times = times.map_err(|failure| self.refused(blind::BLIND, failure))?;
        Ok(self
            .plan(blind::BLIND, &times)
            .with_link_order(LinkOrder::Ready))
    }

    /// Timetables from outside: sends of sums (edges as they are) and of copies, in any order.
    ///
    /// # Errors
    /// [`PlanError::Malformed`] for a chunk or an edge that is not there; else as [`check`](Self::check).
    pub fn timetables(&self, sums: Vec<Send>, copies: Vec<Send>) -> Result<Timetables, PlanError> {
        let edges = narrow(self.network.edges().len());
        let parts = [(&sums, &self.work.sums), (&copies, &self.work.copies)];
        for (sends, part) in parts {
            let chunks = narrow(part.ids.len());
            if let Some(send) = sends.iter().find(|s| s.chunk >= chunks || s.edge >= edges) {
                let why = format!(
                    "a send of {send} is not there: chunks are below {chunks}, edges below {edges}"
                );
                return Err(PlanError::Malformed { why });
            }
            if let Some(send) = sends.iter().find(|s| s.start > LATEST) {
                let why = format!(
                    "a send of {send} starts at {} ps; give a start of {LATEST} ps or before",
                    send.start
                );
                return Err(PlanError::Malformed { why });
            }
        }
        let times = Timetables {
            sums: Timetable::new(sums, &self.sum_times, &self.work.sums.spread),
            copies: Timetable::new(copies, &self.copy_times, &self.work.copies.spread),
        };
        self.check(&times)?;
        Ok(times)
    }

    /// Checks timetables from outside against the network and the work.
    ///
    /// # Errors
    /// [`PlanError::Malformed`] with what is wrong: what is sent before it is held, what comes twice or
    /// never, two chunks on an edge at a time, a copy before its sum.
    pub fn check(&self, times: &Timetables) -> Result<(), PlanError> {
        let sums = &self.work.sums.spread;
        let mirrored = times.sums.mirrored(&self.sum_times, sums);
        // How long edges are held is looked at in real time.
        let free = |timing: &Timing| Timing {
            occupied: 0,
            ..*timing
        };
        let unheld: Vec<Timing> = self.sum_times.iter().map(free).collect();
        mirrored
            .check(&self.mirror, sums, &unheld)
            .and_then(|()| {
                let copies = self.copies_after(&times.sums);
                let copies = copies.as_ref().unwrap_or(&self.work.copies.spread);
                times.copies.check(&self.network, copies, &self.copy_times)
            })
            .and_then(|()| self.check_edges(times))
            .map_err(|why| PlanError::Malformed { why })
    }

    /// Returns what is copied, held from when it is summed; `None` where nothing is summed.
    fn copies_after(&self, sums: &Timetable) -> Option<Delivery> {
        let (of_sums, of_copies) = self.parts();
        if of_sums.is_empty() || of_copies.is_empty() {
            return None;
        }
        let mut ends = vec![0; self.work.chunks.len()];
        for send in &sums.sends {
            let end = send.start + timing(&self.sum_times, &of_sums.spread, send).delay;
            let known = &mut ends[of_sums.ids[send.chunk as usize] as usize];
            *known = end.max(*known);
        }
        let mut spread = of_copies.spread.clone();
        for (holder, &id) in spread.holders.iter_mut().zip(&of_copies.ids) {
            holder.1 = holder.1.max(ends[id as usize]);
        }
        Some(spread)
    }

    /// Checks that no two sums, and no sum and copy, share an edge at a time.
    fn check_edges(&self, times: &Timetables) -> Result<(), String> {
        if times.sums.sends.is_empty() {
            return Ok(());
        }
        let (sums, copies) = self.parts();
        let parts = [
            (&times.sums, &sums.spread, &self.sum_times),
            (&times.copies, &copies.spread, &self.copy_times),
        ];
        let mut held = Vec::new();
        for (timetable, spread, timings) in parts {
            held.extend(timetable.sends.iter().map(|send| {
                let occupied = timing(timings, spread, send).occupied;
                (send.edge, send.start, send.start + occupied)
            }));
        }
        held.sort_unstable();
        let clash = |pair: &&[(u32, u64, u64)]| pair[0].0 == pair[1].0 && pair[1].1 < pair[0].2;
        match held.windows(2).find(clash) {
            None => Ok(()),
            Some(pair) => Err(format!(
                "edge {} is still busy at {} ps",
                pair[1].0, pair[1].1
            )),
        }
    }

    fn refused(&self, algorithm: &'static str, failure: Failure) -> PlanError {
        match failure {
            Failure::Interrupted => PlanError::Interrupted(Interrupted),
            Failure::Unreachable => PlanError::NotApplicable {
                algorithm,
                why: cut_off(&self.network, &self.collective, &self.work.chunks)
                    .expect("matching ends early only where somebody is cut off"),
            },
        }
    }

    pub(super) fn parts(&self) -> (&Part, &Part) {
        (&self.work.sums, &self.work.copies)
    }
}

/// Refuses more chunks than can be listed, before they are.
fn check_chunks(collective: &Collective, pieces: usize, limit: u64) -> Result<(), PlanError> {
    /// What a chunk takes in the lists of a problem, at least.
    const BYTES: u128 = 64;
    if pieces == 0 {
        return Err(PlanError::NotApplicable {
            algorithm: GREEDY,
            why: "0 chunks asked for; ask for one or more".to_owned(),
        });
    }
    let npus = collective.npus();
    let owners = |demand: &Demand| match demand.reduced {
        true => demand.wanted.members(npus).len() as u128,
        false => 1,
    };
    let chunks: u128 = collective.demands().iter().map(owners).sum();
    let chunks = chunks.saturating_mul(pieces as u128);
    let bytes = chunks.saturating_mul(BYTES);
    if bytes > u128::from(limit) {
        return Err(PlanError::TooLarge {
            transfers: chunks,
            bytes,
            limit,
        });
    }
    Ok(())
}

fn not_alike(why: &str) -> PlanError {
    PlanError::NotApplicable {
        algorithm: GREEDY,
        why: format!("{why}, so that there is no table of slots; make a plan"),
    }
}

/// By how many bytes a chunk is smaller than what it is counted as, at most.
fn shortfall(work: &SumsAndCopies, part: &Part) -> u64 {
    let chunks = part.ids.iter().zip(&part.spread.class);
    let less = |(&id, &class): (&u32, &u32)| {
        part.spread.sizes[class as usize] - work.chunks.bytes_of(id, 1)
    };
    chunks.map(less).max().unwrap_or(0)
}

/// Returns what a chunk of each size costs on each edge, of edge x sizes.
fn timings(
    topology: &Topology,
    network: &UnwoundNetwork,
    spread: &Delivery,
    latency: LatencyModel,
) -> Vec<Timing> {
    let of_size: Vec<Vec<Timing>> = spread
        .sizes
        .iter()
        .map(|&bytes| network.timings(topology, bytes, latency))
        .collect();
    (0..network.edges().len())
        .flat_map(|edge| of_size.iter().map(move |timings| timings[edge]))
        .collect()
}
