//! The algorithms by name.

use std::fmt;
use std::str::FromStr;

use crate::collective::CollectiveKind::{
    self, AllGather, AllReduce, AllToAll, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
};
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
    /// Chunks matched to links over time.
    Greedy,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Algorithm; 21] = [
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
        Algorithm::Greedy,
    ];

    /// The name in files and on the command line, as `double-binary-tree`.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Ring => "ring",
            Algorithm::BidirectionalRing => "bidirectional-ring",
            Algorithm::Direct => "direct",
            Algorithm::HalvingDoubling => "halving-doubling",
            Algorithm::DoubleBinaryTree => "double-binary-tree",
            Algorithm::Hierarchical => "hierarchical",
            Algorithm::MultiRing => "multi-ring",
            Algorithm::ThemisFifo => "themis-fifo",
            Algorithm::Themis => "themis",
            Algorithm::MultirailOptimal => "multirail-optimal",
            Algorithm::Binomial => "binomial",
            Algorithm::Chain => "chain",
            Algorithm::Pairwise => "pairwise",
            Algorithm::RingBiOdd => "ring-bi-odd",
            Algorithm::Tto => "tto",
            Algorithm::TtoOverlapped => "tto-overlapped",
            Algorithm::TwoTreeOverlap => "two-tree-overlap",
            Algorithm::MultiTree => "multitree",
            Algorithm::Ring2d => "ring-2d",
            Algorithm::Hdrm => "hdrm",
            Algorithm::Greedy => "greedy",
        }
    }

    /// What it does, in a line.
    pub const fn summary(self) -> &'static str {
        match self {
            Algorithm::Ring => {
                "blocks go round one cycle of the NPUs: least traffic, n-1 steps a pass"
            }
            Algorithm::BidirectionalRing => {
                "a ring each way, half of every block on each: both directions of its links at work"
            }
            Algorithm::Direct => {
                "every NPU sends to every other (or root to all) at once: one step a pass"
            }
            Algorithm::HalvingDoubling => {
                "halves of ever smaller groups exchange ranges: log2(n) steps a pass, any n"
            }
            Algorithm::DoubleBinaryTree => {
                "half of the data up and down each of two binary trees, pipelined: few steps"
            }
            Algorithm::Hierarchical => {
                "dimension by dimension of a product topology, each with the algorithm that suits it"
            }
            Algorithm::MultiRing => {
                "rings over the nodes, one for each way out of a node and both ways round, as NCCL's channels"
            }
            Algorithm::ThemisFifo => {
                "each chunk goes first through the dimension with least to do; first come, first served"
            }
            Algorithm::Themis => {
                "each chunk goes first through the dimension with least to do; smallest chunk first"
            }
            Algorithm::MultirailOptimal => {
                "orders and sizes of chunks from a linear program and a search: never worse than themis"
            }
            Algorithm::Binomial => "the holders double in number each step: log2(n) steps",
            Algorithm::Chain => "from NPU to NPU along a path, pipelined: for large data",
            Algorithm::Pairwise => "one partner at a time, n-1 steps: never two senders to one NPU",
            Algorithm::RingBiOdd => {
                "a ring each way on a mesh of odd sides, one corner in and out through its neighbours"
            }
            Algorithm::Tto => {
                "chunks up, then down three trees of a mesh that share no link; one corner has no data"
            }
            Algorithm::TtoOverlapped => "as tto, each chunk down as soon as it is summed",
            Algorithm::TwoTreeOverlap => {
                "halves of chunks up, then down two chains from the ends of a line, one after the other"
            }
            Algorithm::MultiTree => {
                "a tree from every NPU over direct links, no two trees on a link in a step"
            }
            Algorithm::Ring2d => {
                "rings in the rows, then the columns of a mesh or torus, and the other way about"
            }
            Algorithm::Hdrm => {
                "halving-doubling on a BiGraph, ranks placed so that no two messages of a step share a link"
            }
            Algorithm::Greedy => {
                "chunks matched to links over time, for any topology: no two on a link at once"
            }
        }
    }

    /// The kinds that it implements.
    pub const fn kinds(self) -> &'static [CollectiveKind] {
        match self {
            Algorithm::Ring
            | Algorithm::BidirectionalRing
            | Algorithm::HalvingDoubling
            | Algorithm::Hierarchical
            | Algorithm::MultiRing
            | Algorithm::ThemisFifo
            | Algorithm::Themis
            | Algorithm::MultirailOptimal
            | Algorithm::MultiTree
            | Algorithm::Hdrm => &[AllReduce, ReduceScatter, AllGather],
            Algorithm::Direct | Algorithm::Greedy => &CollectiveKind::NAMED,
            Algorithm::DoubleBinaryTree
            | Algorithm::RingBiOdd
            | Algorithm::Tto
            | Algorithm::TtoOverlapped
            | Algorithm::TwoTreeOverlap
            | Algorithm::Ring2d => &[AllReduce],
            Algorithm::Binomial => &[Broadcast, Reduce, Gather, Scatter],
            Algorithm::Chain => &[Broadcast, Reduce],
            Algorithm::Pairwise => &[AllToAll],
        }
    }

    /// Whether it implements a kind; greedy any demands, those of a custom collective among them.
    pub fn supports(self, kind: CollectiveKind) -> bool {
        self.kinds().contains(&kind)
            || (self == Algorithm::Greedy && kind == CollectiveKind::Custom)
    }

    /// Whether it is a scheduler of dimensions: see [`super::schedule`].
    pub const fn is_multirail(self) -> bool {
        matches!(
            self,
            Algorithm::ThemisFifo | Algorithm::Themis | Algorithm::MultirailOptimal
        )
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
            .ok_or_else(|| PlanError::UnknownAlgorithm {
                name: name.to_owned(),
                known: Algorithm::ALL.map(Algorithm::name).join(", "),
            })
    }
}
