//! The rails that chunks travel on: one for each dimension with more than one NPU.

use super::Stage;
use super::lane::Ranges;
use crate::collective::pattern::{Pass, Pattern, Shape};
use crate::explain::Explain;
use crate::id::fit;
use crate::topology::build::product_counts;
use crate::topology::{Dimension, DimensionKind, Topology};
use crate::units::Time;

/// A dimension as a scheduler sees it: a server that every NPU has one of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rail {
    /// Position among the topology's dimensions.
    pub dimension: usize,
    /// What joins the NPUs of the dimension.
    pub kind: DimensionKind,
    /// Number of NPUs along the dimension, at least 2.
    pub size: u32,
    /// What one NPU sends over all of its links in the dimension together, in bytes per second.
    pub bandwidth: u64,
    /// Time from NPU to NPU for a message of no bytes.
    pub step_latency: Time,
    /// `true` if the dimension's switches sum and multicast.
    pub offload: bool,
    /// Blocks that the busiest NPU sends or receives in each step of a reduce-scatter, of `size`
    /// blocks in all. An all-gather takes the same steps backwards.
    steps: Vec<u32>,
    /// Moves of a pass among the NPUs of a group, and the blocks that they carry together.
    moves: (u64, u64),
}

/// Why one NPU does not stand for all of a topology with dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum Uneven {
    /// There are more or fewer links than the dimensions have.
    #[explain(
        why("links of topology {topology:?} have failed, so that NPUs differ"),
        remedy("use link fidelity")
    )]
    Links {
        /// The topology's name.
        topology: String,
        /// Links that the dimensions have.
        due: u128,
        /// Links that there are.
        found: u128,
    },
    /// A switch serves no more than so many bytes a second, all ports together.
    #[explain(
        why("a switch of topology {topology:?} has a limit of its own"),
        remedy("use link fidelity")
    )]
    Limit {
        /// The topology's name.
        topology: String,
    },
}

impl Rail {
    /// Checks that every NPU has the same rails: that all links of the dimensions are there, and switches limit
    /// nothing. Without that a time at dimension fidelity could be below the bound.
    ///
    /// # Errors
    /// [`Uneven`] for a topology with dimensions; one without has no rails.
    pub fn check(topology: &Topology) -> Result<(), Uneven> {
        let name = || topology.name().to_owned();
        let (_, _, due) = product_counts(topology.dimensions());
        let found = topology.links().len() as u128;
        if !topology.dimensions().is_empty() && due != found {
            let topology = name();
            return Err(Uneven::Links {
                topology,
                due,
                found,
            });
        }
        if topology
            .devices()
            .iter()
            .any(|device| device.limit.is_some())
        {
            return Err(Uneven::Limit { topology: name() });
        }
        Ok(())
    }

    /// Returns the rails of a topology, in the order of its dimensions; those of size 1 are left out. Whether all of
    /// their links are there [`check`](Self::check) says.
    pub fn of(topology: &Topology) -> Vec<Rail> {
        let dimensions = topology.dimensions().iter().enumerate();
        dimensions
            .filter(|(_, dimension)| dimension.size > 1)
            .map(|(i, dimension)| Rail::new(i, dimension))
            .collect()
    }

    /// # Source
    /// Themis, table 1 (a ring algorithm on rings, direct on full connections, halving-doubling
    /// through switches) and section 4.5 (offload).
    fn new(place: usize, dimension: &Dimension) -> Self {
        let n = dimension.size;
        let links: u64 = match dimension.kind {
            DimensionKind::Ring if n > 2 => 2,
            DimensionKind::Ring | DimensionKind::Line | DimensionKind::Switch => 1,
            DimensionKind::FullyConnected => u64::from(n) - 1,
        };
        Self {
            dimension: place,
            kind: dimension.kind,
            size: n,
            bandwidth: dimension.bandwidth.bytes_per_second().saturating_mul(links),
            step_latency: (0..hops(dimension.kind, n))
                .map(|_| dimension.latency)
                .sum(),
            offload: dimension.offload,
            steps: steps(dimension.kind, n, dimension.offload),
            moves: moves(dimension.kind, n),
        }
    }

    /// Returns the blocks that the busiest NPU sends or receives in each step of a reduce-scatter.
    pub fn steps(&self) -> &[u32] {
        &self.steps
    }

    /// Returns the sum over the steps.
    pub fn blocks(&self) -> u32 {
        self.steps.iter().sum()
    }

    /// Returns time to send so many blocks of a pass of a lane, cut into parts: exact, and rounded up to whole
    /// picoseconds. What is longer than can be told is as long as can be.
    pub fn sending(&self, bytes: u64, blocks: u32, stage: &Stage, parts: usize) -> u64 {
        const PS_PER_SECOND: u128 = 1_000_000_000_000;
        let work = (u128::from(bytes) * u128::from(blocks)).saturating_mul(PS_PER_SECOND);
        let rate = u128::from(self.bandwidth) * u128::from(stage.spread);
        let time = work.div_ceil(rate.saturating_mul(parts as u128).max(1));
        u64::try_from(time).unwrap_or(u64::MAX)
    }

    /// Returns the number of messages on a link in a step of so many blocks: a transfer of a plan carries one range of
    /// chunks. What goes to a switch that sums is no transfer.
    pub fn messages(&self, blocks: u32, ranges: Ranges) -> u32 {
        match self.kind {
            DimensionKind::Switch if self.offload => 1,
            DimensionKind::Switch => fit(ranges.of(1, u64::from(blocks))),
            // A block to each.
            _ => fit(ranges.of(1, 1)),
        }
    }

    /// Moves of a pass among the NPUs of a group, and the blocks that they carry together.
    pub fn moves(&self) -> (u64, u64) {
        self.moves
    }

    /// Returns the number of links from NPU to NPU.
    pub fn hops(&self) -> u64 {
        hops(self.kind, self.size)
    }

    /// Returns the number of steps of a reduce-scatter, or of an all-gather.
    pub fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// A_K of one pass: what its steps take however little is sent.
    pub fn fixed_delay(&self) -> Time {
        Time::from_ps(
            self.step_latency
                .as_ps()
                .saturating_mul(self.steps.len() as u64),
        )
    }

    /// Of what an NPU holds before a reduce-scatter (after an all-gather), the share that crosses its
    /// links: (P - 1) / P where no rank is left without a partner and no switch sums.
    pub fn share(&self) -> f64 {
        f64::from(self.blocks()) / f64::from(self.size)
    }
}

/// Returns whether lanes could take longer than can be told: all operations one after the other take more than 46 days.
pub fn is_too_long(rails: &[Rail], bytes: u64, chunks: usize) -> bool {
    const LONGEST_PS: f64 = 4e18;
    let npus: f64 = rails.iter().map(|rail| f64::from(rail.size)).product();
    let rail = |rail: &Rail| {
        let sent = 2.0 * bytes as f64 * 1e12 / rail.bandwidth.max(1) as f64;
        // Messages of a step, each of one chunk.
        let most = match rail.kind {
            DimensionKind::Switch => npus / 2.0,
            _ => npus / f64::from(rail.size),
        };
        sent + 4.0 * chunks as f64 * most * rail.fixed_delay().as_ps() as f64
    };
    // Through a switch that stores, and in a model that adds latencies, no more than thrice.
    3.0 * rails.iter().map(rail).sum::<f64>() > LONGEST_PS
}

/// Returns the number of links from an NPU to the next that it sends to; on a line at most.
fn hops(kind: DimensionKind, n: u32) -> u64 {
    match kind {
        DimensionKind::Switch => 2,
        DimensionKind::Line if n > 2 => 2,
        _ => 1,
    }
}

/// Returns the algorithm that suits a building block.
pub(crate) fn shape(kind: DimensionKind) -> Shape {
    match kind {
        DimensionKind::Ring | DimensionKind::Line => Shape::Ring,
        DimensionKind::FullyConnected => Shape::Direct,
        DimensionKind::Switch => Shape::HalvingDoubling,
    }
}

/// Returns the blocks in each step. A direct exchange is one step, over all links at once. So is one through a switch
/// that sums, to which an NPU sends all that it has.
fn steps(kind: DimensionKind, n: u32, offload: bool) -> Vec<u32> {
    match shape(kind) {
        _ if offload => vec![n],
        Shape::Ring => vec![1; n as usize - 1],
        Shape::Direct => vec![n - 1],
        Shape::HalvingDoubling => halving_steps(n),
    }
}

/// Moves and blocks of a pass: one by one, but for the ranges of a halving.
fn moves(kind: DimensionKind, n: u32) -> (u64, u64) {
    let all = u64::from(n) * (u64::from(n) - 1);
    match shape(kind) {
        Shape::Ring | Shape::Direct => (all, all),
        Shape::HalvingDoubling => {
            let pattern = Pattern::halving_doubling();
            let steps = 0..Shape::HalvingDoubling.steps(n as usize);
            let moves = steps.flat_map(|step| pattern.step(Pass::ReduceScatter, n as usize, step));
            moves.fold((0, 0), |sum, a_move| {
                (sum.0 + 1, sum.1 + u64::from(a_move.count))
            })
        }
    }
}

/// Returns the most blocks that a rank sends or receives in each halving: the sizes are powers of two where n is one.
fn halving_steps(n: u32) -> Vec<u32> {
    let pattern = Pattern::halving_doubling();
    let count = Shape::HalvingDoubling.steps(n as usize);
    let busiest = |step| {
        let mut ports = vec![[0u32; 2]; n as usize];
        for a_move in pattern.step(Pass::ReduceScatter, n as usize, step) {
            ports[a_move.src as usize][0] += a_move.count;
            ports[a_move.dst as usize][1] += a_move.count;
        }
        ports.into_iter().flatten().max().unwrap_or(0)
    };
    (0..count).map(busiest).collect()
}
