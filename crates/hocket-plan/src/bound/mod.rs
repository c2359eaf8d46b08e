//! Lower bounds on the time of *any* plan for a collective on a topology, and what proves them.
//!
//! # Model
//! Every directed link sends one message at a time, n bytes in n / bandwidth, and delivers after its
//! latency more; the latency overlaps with the next message. Switches only forward, but for those that can
//! sum or multicast ([`crate::topology::Offload`]); a switch with a limit passes no more than that. NPUs store,
//! copy, forward and sum at no cost, also those that take no part ([`Relays`]), and so do such switches. Data may be cut in
//! any way, links are full duplex.
//! What makes a plan slower (whole chunks, store and forward, links held during the latency) keeps
//! every bound true. Simulations that are not of this model have bounds of their own, by the same arguments:
//! [`Fidelity`].
//!
//! # Components
//! | name | proves | file |
//! | --- | --- | --- |
//! | `ingress`, `egress` | what must enter or leave one participant, and from how far | `degree` |
//! | `latency` | the farthest data has to travel | `degree` |
//! | `fan-out` | what leaves or enters one participant, and how many others it serves in the time left | `fan_out` |
//! | `nodes` | what must get to every other node (a group of NPUs), and when each node can send it on | `nodes` |
//! | `quickest` | the quickest flow of what one participant must get or give, through the whole network | `quickest` |
//! | `one-trip` | an all-reduce by switches that sum or multicast, but not both at once | `one_trip` |
//! | `cut` | what must cross a set of devices; also a node, and go on to one NPU in it | `cut`, `nodes` |
//! | `partition` | what must pass between many parts | `partition` |
//! | `traffic` | bytes times hops over bandwidth of all hops | `traffic` |
//! | `prices` | bytes times prices over bandwidth times prices, for what goes from one NPU to one other, or along trees from or to one | `prices`, `tree_prices` |

mod coarsen;
pub mod cut;
mod degree;
mod fill;
mod maxflow;
mod needs;
pub mod network;
mod nodes;
mod one_trip;
pub mod partition;
mod fan_out;
mod quickest;
pub mod demand_group;
mod sweep_cuts;
mod traffic;
pub mod multiflow;
mod prices;
mod tree_prices;
mod witness;

#[cfg(test)]
mod tests;

pub use witness::{Lengths, Witness};
pub use witness::{saturating_bandwidth, show_devices, show_parts};

use crate::collective::{Collective, CollectiveKind};
use crate::progress::{Interrupted, Progress};
use crate::topology::{Dimension, Topology};
use crate::units::Time;
use needs::Needs;
use network::{ArcNetwork, latency_from_ends};
use nodes::Nodes;

/// Links that are looked at between two reports of progress: a millisecond of work or more.
const WORK_BETWEEN_REPORTS: u64 = 1 << 16;

/// Whose times a bound is for: fidelities differ in when a link carries which bytes. docs/models.md has the
/// proofs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fidelity {
    /// Links as in the module's model, however messages are cut and ordered on them.
    #[default]
    Link,
    /// Fluids: a transfer is on all links of its way at once, and the latencies of all follow its last
    /// byte. What comes from afar may pass its last links early, so that `ingress` counts distances no
    /// further than one transfer, and `cut` those from any NPU inside.
    Flow,
    /// Flits: a link sends one within its latency, so that each arrives the latency after it *began*.
    Packet {
        /// Bytes of a flit.
        flit_bytes: u64,
    },
    /// One NPU for all: shares of an all-gather and a reduce-scatter are equal, to fractions of a byte.
    /// Where switches sum, only what each NPU sends or receives whole is bound: `ingress` of what is
    /// gathered, `egress` of what is scattered, and `latency`.
    Dimension,
}

/// What NPUs may do with data that they neither hold nor want.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Relays {
    /// Nothing: only who takes part, and switches, pass it on.
    None,
    /// They pass it on, as switches do.
    Forward,
    /// They pass it on, copy it, and sum what comes from several.
    #[default]
    Sum,
}

/// Whose times are bound, and how much work it may take: beyond a limit the bound stays true but may be
/// lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundOptions {
    /// Fidelity whose runs are bounded; link by default.
    pub fidelity: Fidelity,
    /// What NPUs do that take no part in the collective: the bound is for plans in which they do no more.
    pub relays: Relays,
    /// Participants up to which the distances of all pairs are searched; default 4,096.
    pub pair_limit: usize,
    /// Participants up to which the worst cut is searched among all cuts; default 4,096.
    pub exact_cut_limit: usize,
    /// Participants up to which the best partition is searched among all partitions; default 512.
    pub exact_partition_limit: usize,
}

impl Default for BoundOptions {
    fn default() -> Self {
        Self {
            fidelity: Fidelity::default(),
            relays: Relays::default(),
            pair_limit: 4_096,
            exact_cut_limit: 4_096,
            exact_partition_limit: 512,
        }
    }
}

/// A lower bound on the time of any plan, and what proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// No plan is faster. Rounded down to picoseconds; [`Time::MAX`] where no plan exists.
    pub time: Time,
    /// Proof of the bound.
    pub witness: Witness,
    /// By name, the bound of every component that has one for this kind of demands.
    pub components: Vec<(&'static str, Time)>,
    /// Whether `cut` is the worst of all cuts, by bytes over bandwidth. Not so beyond
    /// [`BoundOptions::exact_cut_limit`], and for all-to-all and some custom collectives, whose
    /// worst cut is not a matter of flows.
    pub exact_cut: bool,
    /// Whether `partition` is the best of all partitions, by bytes over bandwidth. Not so beyond
    /// [`BoundOptions::exact_partition_limit`], nor where other NPUs may help.
    pub exact_partition: bool,
}

/// Returns the greatest lower bound that this module knows for a collective on a topology.
///
/// Only participants hold data; other NPUs may help as [`BoundOptions::relays`] says. The time is
/// [`Time::MAX`], with [`Witness::Unreachable`], where data cannot get where it is wanted.
///
/// # Errors
/// [`Interrupted`].
///
/// # Panics
/// If the topology lacks a participant: see [`Collective::check_on`].
///
/// # Examples
/// ```
/// use hocket_plan::bound::{BoundOptions, bound};
/// use hocket_plan::collective::{Collective, CollectiveKind};
/// use hocket_base::progress::Silent;
/// use hocket_topology::build;
/// use hocket_base::units::{Bandwidth, Time};
///
/// let gigabyte = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
/// let line = build::line(3, gigabyte, Time::from_ns(1_000))?;
/// let broadcast = Collective::among_all(CollectiveKind::Broadcast, &line, 1_000_000)?;
/// let bound = bound(&line, &broadcast, &BoundOptions::default(), &mut Silent)?;
/// // A megabyte leaves the root in 1 ms, and its last byte crosses two links after that.
/// assert_eq!(bound.time, Time::from_ns(1_002_000));
/// assert!(bound.exact_cut);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn bound(
    topology: &Topology,
    collective: &Collective,
    options: &BoundOptions,
    progress: &mut dyn Progress,
) -> Result<Bound, Interrupted> {
    let problem = Problem::new(topology, collective, *options);
    let degree = degree::bounds(&problem, topology.groups(), progress)?;
    if let Some(witness) = degree.unreachable {
        return Ok(Bound {
            time: Time::MAX,
            witness,
            components: Vec::new(),
            exact_cut: true,
            exact_partition: true,
        });
    }
    let mut exact = [false; 2];
    let candidates = if sums_in_switches(topology, options.fidelity) {
        with_sums_in_switches(collective.kind(), degree)
    } else {
        let mut cuts = cut::bounds(&problem, topology.groups(), progress)?;
        if let Some(mut nodes) = Nodes::new(&problem, topology.groups()) {
            nodes.enclose(&problem, &mut cuts.best, progress)?;
        }
        let partitions = partition::bounds(&problem, progress)?;
        exact = [cuts.exact, partitions.exact];
        let mut found = vec![
            ("ingress", degree.ingress),
            ("egress", degree.egress),
            ("cut", cuts.best),
            ("partition", partitions.best),
            ("traffic", traffic::bounds(&problem, progress)?),
            ("latency", degree.latency),
            ("fan-out", degree.fan_out),
            ("nodes", degree.nodes),
            (
                "quickest",
                quickest::bounds(&problem, degree.plain, progress)?,
            ),
            ("one-trip", one_trip::bound(&problem, topology, progress)?),
        ];
        let known = found.iter().map(|(_, it)| it.time).max();
        let known = known.unwrap_or(Time::ZERO);
        let mut priced = prices::bounds(&problem, known, progress)?;
        if priced.time == Time::ZERO {
            priced = tree_prices::bounds(&problem, known, progress)?;
        }
        found.push(("prices", priced));
        found
    };
    let applies = |(_, it): &&(&'static str, Candidate)| it.time > Time::ZERO;
    let components = candidates.iter().filter(applies);
    let components = components.map(|(name, it)| (*name, it.time)).collect();
    let mut best = Candidate::default();
    for (_, candidate) in candidates {
        best.offer(candidate.time, || candidate.witness);
    }
    Ok(Bound {
        time: best.time,
        witness: best.witness,
        components,
        exact_cut: exact[0],
        exact_partition: exact[1],
    })
}

/// Returns whether bytes may be summed and copied where no NPU is: only dimension fidelity knows that.
fn sums_in_switches(topology: &Topology, fidelity: Fidelity) -> bool {
    let mut dimensions = topology.dimensions().iter();
    fidelity == Fidelity::Dimension && dimensions.any(|it| it.offload && it.size > 1)
}

/// What holds where switches sum: a schedule counts all bytes of a reduce-scatter where they leave an
/// NPU, all of an all-gather where they enter one, and the sums and shares on the other side not at all.
fn with_sums_in_switches(
    kind: CollectiveKind,
    degree: degree::Degree,
) -> Vec<(&'static str, Candidate)> {
    let mut candidates = vec![("latency", degree.latency)];
    if kind != CollectiveKind::ReduceScatter {
        candidates.push(("ingress", degree.ingress));
    }
    if kind != CollectiveKind::AllGather {
        candidates.push(("egress", degree.egress));
    }
    candidates
}

/// What every component works on.
struct Problem<'a> {
    needs: Needs<'a>,
    network: ArcNetwork,
    reversed: ArcNetwork,
    /// By arc, [`network::Arc::delay`] on the shortest way that a byte can have over it.
    delay: Vec<u64>,
    /// Whether every participant reaches every other.
    connected: bool,
    /// Of the topology, if it is a product.
    dimensions: &'a [Dimension],
    options: BoundOptions,
}

impl<'a> Problem<'a> {
    fn new(topology: &'a Topology, collective: &'a Collective, options: BoundOptions) -> Self {
        let network = ArcNetwork::new(topology, options.fidelity);
        let network = network.relaying(options.relays, collective.npus());
        let reversed = network.reversed();
        let before = latency_from_ends(&network, options.fidelity);
        let after = latency_from_ends(&reversed, options.fidelity);
        let delay = network.arcs().iter();
        let delay = delay.map(|arc| arc.delay(before[arc.src as usize], after[arc.dst as usize]));
        let delay = delay.collect();
        let npus = collective.npus();
        let connected = [&network, &reversed].into_iter().all(|network| {
            let mut reached = vec![false; network.node_count()];
            for node in network.breadth_first(npus[0].0) {
                reached[node as usize] = true;
            }
            npus.iter().all(|npu| reached[npu.index()])
        });
        Self {
            needs: Needs::new(collective, options.fidelity),
            network,
            reversed,
            delay,
            connected,
            dimensions: topology.dimensions(),
            options,
        }
    }
}

/// The best bound found so far by one component.
#[derive(Clone, Debug)]
struct Candidate {
    time: Time,
    witness: Witness,
}

impl Default for Candidate {
    fn default() -> Self {
        Self {
            time: Time::ZERO,
            witness: Witness::Nothing,
        }
    }
}

impl Candidate {
    /// Keeps the greater of two; the earlier of equals.
    fn offer(&mut self, time: Time, witness: impl FnOnce() -> Witness) {
        if time > self.time {
            self.time = time;
            self.witness = witness();
        }
    }
}
