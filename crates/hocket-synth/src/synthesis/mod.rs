//! Plans for any collective on any topology, by matching chunks to links over time.
//!
//! # Flow
//! A [`UnwoundNetwork`] is the topology with its switches unwound; [`SumsAndCopies`] is the collective as chunks that
//! spread. A synthesizer finds a [`Timetable`] of sends; `compile` makes a plan of it, on the topology itself. Which
//! unwinding is best [`crate::select`] decides.
//!
//! | file | what it is |
//! | --- | --- |
//! | `network`, `unwind`, `switch_group` | NPUs, the edges between them (through switches too), what a chunk costs on each |
//! | `sums_and_copies`, `sum_places`, `delivery` | what is to be summed (and where) and copied; who holds and who wants each chunk |
//! | `greedy`, `event` | greedy matching, event by event, best of several trials |
//! | `slots`, `slot_bits`, `slot_table` | the same slot by slot, where links are all alike: bits as they are looked at, a compact table |
//! | `symmetric` | one NPU's part, done by all, where the network looks the same from each |
//! | `detour` | faster ways round slow edges |
//! | `overlap` | sums and copies in one timetable |
//! | `blind` | the congestion-blind baseline |
//! | `relay` | ways for chunks that not everybody wants |
//! | `disconnected` | who is cut off, where there is no plan |
//! | `least` | the least time that any timetable takes |
//! | `timetable`, `compile` | the sends, checked; the plan made of them |
//!
//! # Source
//! Won and others: TACOS: Topology-aware collective algorithm synthesizer for distributed training.

mod blind;
mod slot_bits;
mod disconnected;
mod detour;
mod event;
mod switch_group;
mod greedy;
mod least;
mod compile;
mod network;
mod overlap;
mod problem;
mod relay;
mod sum_places;
mod slot_table;
mod slots;
mod delivery;
mod symmetric;
mod timetable;
mod unwind;
mod sums_and_copies;

pub use blind::BLIND;
pub use compile::Timetables;
pub use delivery::{Delivery, Wanted};
pub use network::{Edge, Timing, UnwoundNetwork};
pub use problem::{Compact, Problem};
pub use slot_table::SlotTable;
pub use sums_and_copies::{Part, SumsAndCopies};
pub use timetable::{Send, Timetable};
pub use unwind::{BadUnwinding, Unwinding};

use crate::topology::{LatencyModel, Topology};

/// How a plan is synthesized.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "Options")]
pub struct SynthesisOptions {
    /// How fabrics are unwound: one for all, or one for each dimension; empty tries several
    /// ([`unwindings`]) and keeps the best.
    pub unwinding: Vec<Unwinding>,
    /// Whether a link is held during its latency.
    pub latency: LatencyModel,
    /// Seed of the random choices.
    pub seed: u64,
    /// Greatest number of trials of each matching.
    pub trials: u64,
    /// Memory that planning, verifying and simulating may take, in bytes.
    pub memory_limit: u64,
}

impl Default for SynthesisOptions {
    fn default() -> Self {
        Self {
            unwinding: Vec::new(),
            latency: LatencyModel::Overlapped,
            seed: 0,
            trials: 64,
            memory_limit: 16 << 30,
        }
    }
}

/// The name of the greedy algorithm.
pub const GREEDY: &str = "greedy";

/// Returns the unwindings worth trying: each kind for all fabrics, and for products each combination.
pub fn unwindings(topology: &Topology) -> Vec<Vec<Unwinding>> {
    /// NPUs of a fabric up to which all are joined to all.
    const MAX_NPUS: usize = 32;
    // Of several dimensions.
    const COMBINATIONS: usize = 27;
    let fabrics = unwind::fabric_sizes(topology);
    let kinds = |npus: usize| match npus {
        0..=2 => vec![Unwinding::Degree(1)],
        3..=MAX_NPUS => vec![Unwinding::Degree(1), Unwinding::BothWays, Unwinding::Max],
        _ => vec![Unwinding::Degree(1), Unwinding::BothWays],
    };
    let largest = fabrics.iter().map(|&(_, npus)| npus).max().unwrap_or(0);
    let per_dimension = !fabrics.is_empty() && fabrics.iter().all(|(of, _)| of.is_some());
    if !per_dimension || fabrics.len() < 2 {
        return kinds(largest).into_iter().map(|kind| vec![kind]).collect();
    }
    let mut combinations = vec![vec![Unwinding::Degree(1); topology.dimensions().len()]];
    for (dimension, npus) in fabrics {
        let dimension = dimension.expect("all have one") as usize;
        let longer = combinations.iter().flat_map(|combination| {
            kinds(npus).into_iter().map(move |kind| {
                let mut combination = combination.clone();
                combination[dimension] = kind;
                combination
            })
        });
        let longer: Vec<_> = longer.collect();
        if longer.len() > COMBINATIONS {
            break;
        }
        combinations = longer;
    }
    combinations
}

#[cfg(test)]
mod tests;
