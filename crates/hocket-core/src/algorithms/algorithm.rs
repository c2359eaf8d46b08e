//! The algorithms that the core plans by; what is known of each is in `registry`.

use std::fmt;
use std::str::FromStr;

use super::registry::{ENTRIES, Entry, Making, unknown};
use crate::collective::CollectiveKind;
use crate::plan::PlanError;

/// A named recipe that makes plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Algorithm {
    /// Blocks go round a cycle of the NPUs.
    Ring,
    /// Half of each block goes round each way.
    BidirectionalRing,
    /// Every pair (or the root with each) at once.
    Direct,
    /// Recursive halving and doubling, for any number of NPUs.
    HalvingDoubling,
    /// Two complementary binary trees, pipelined.
    DoubleBinaryTree,
    /// Dimension by dimension of a product topology.
    Hierarchical,
    /// A ring for each way out of a node, both ways round.
    MultiRing,
    /// Each chunk through the dimensions in an order of its own; first come, first served.
    ThemisFifo,
    /// Each chunk in an order of its own; the smallest chunk first.
    Themis,
    /// The best orders, sizes and all-gathers that a search finds.
    MultirailOptimal,
    /// A binomial tree.
    Binomial,
    /// A pipelined chain.
    Chain,
    /// One partner a step.
    Pairwise,
    /// A ring each way on a mesh of odd sides, a corner apart.
    RingBiOdd,
    /// Three trees on a mesh that share no link.
    Tto,
    /// The same, a chunk on its way down as soon as it is summed.
    TtoOverlapped,
    /// Two trees on a line, from its ends.
    TwoTreeOverlap,
    /// A tree from every NPU, no two on a link in a step.
    MultiTree,
    /// Rings in rows and columns.
    Ring2d,
    /// Halving-doubling on a BiGraph, without contention.
    Hdrm,
    /// Spanning trees that use the worst cut of a network fully.
    Trees,
    /// Blocks routed so that the busiest link has least to do.
    Flows,
    /// Trees through switches that sum and multicast.
    InNetwork,
    /// Parts over all NICs of a node at once.
    NodeGroups,
    /// NCCL's rings, one way round.
    NcclRing,
    /// NCCL's double binary trees over nodes.
    NcclTree,
    /// NCCL's sums in the switches of nodes.
    NcclNvls,
    /// Trees of one NPU, shifted to all others.
    Symmetric,
    /// Chunks matched to links over time.
    Greedy,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Algorithm; 29] = [
        Algorithm::Ring,
        Algorithm::BidirectionalRing,
        Algorithm::Direct,
        Algorithm::HalvingDoubling,
        Algorithm::DoubleBinaryTree,
        Algorithm::Hierarchical,
        Algorithm::MultiRing,
        Algorithm::ThemisFifo,
        Algorithm::Themis,
        Algorithm::MultirailOptimal,
        Algorithm::Binomial,
        Algorithm::Chain,
        Algorithm::Pairwise,
        Algorithm::RingBiOdd,
        Algorithm::Tto,
        Algorithm::TtoOverlapped,
        Algorithm::TwoTreeOverlap,
        Algorithm::MultiTree,
        Algorithm::Ring2d,
        Algorithm::Hdrm,
        Algorithm::Trees,
        Algorithm::Flows,
        Algorithm::InNetwork,
        Algorithm::NodeGroups,
        Algorithm::NcclRing,
        Algorithm::NcclTree,
        Algorithm::NcclNvls,
        Algorithm::Symmetric,
        Algorithm::Greedy,
    ];

    /// What is known of it before there is a network.
    pub fn entry(self) -> &'static Entry {
        &ENTRIES[self as usize]
    }

    /// The name in files and on the command line, as `double-binary-tree`.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// What it does, in a line.
    pub fn summary(self) -> &'static str {
        self.entry().summary
    }

    /// The kinds that it implements.
    pub fn kinds(self) -> &'static [CollectiveKind] {
        self.entry().kinds
    }

    /// Whether it implements a kind; greedy any demands, those of a custom collective among them, and flows those that
    /// one NPU has and one wants.
    pub fn supports(self, kind: CollectiveKind) -> bool {
        let is_custom = kind == CollectiveKind::Custom;
        self.kinds().contains(&kind)
            || (is_custom && matches!(self, Algorithm::Flows | Algorithm::Greedy))
    }

    /// Whether it is a scheduler of dimensions: see [`super::schedule`].
    pub fn is_multirail(self) -> bool {
        self.entry().making == Making::Schedule
    }

    /// Why it refuses a kind that it does not support.
    pub(super) fn unsupported(self, kind: CollectiveKind) -> String {
        let others: Vec<&str> = Algorithm::ALL
            .into_iter()
            .filter(|algorithm| algorithm.supports(kind))
            .map(Algorithm::name)
            .collect();
        let own: Vec<&str> = self.kinds().iter().map(|kind| kind.name()).collect();
        let remedy = match others[..] {
            [] => format!("no baseline algorithm does {kind}"),
            _ => format!("for {kind} use {}", others.join(", ")),
        };
        format!("it does {}, not {kind}; {remedy}", own.join(", "))
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = PlanError;

    fn from_str(name: &str) -> Result<Self, PlanError> {
        Algorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or_else(|| unknown(name, &Algorithm::ALL.map(Algorithm::entry)))
    }
}
