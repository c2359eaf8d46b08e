//! The one table of the algorithms: what each is called, does, uses and makes its plans of.
//!
//! Whoever asks what an algorithm is (names, refusals, `compare`, `auto`, Python) looks here.

use super::Algorithm;
use crate::collective::CollectiveKind::{
    self, AllGather, AllReduce, AllToAll, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
};
use crate::plan::PlanError;

/// An option of planning that only some algorithms use. Number of chunks, latency model, routing and limits of
/// time and memory are for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Heed {
    /// Seed of random choices.
    Seed,
    /// How switches are unwound into edges.
    Unwind,
    /// Number of random trials.
    Trials,
    /// How long a slot is.
    Slot,
    /// How many slots are planned at once.
    Window,
}

impl Heed {
    /// Every such option, in the order in which they are checked.
    pub const ALL: [Heed; 5] = [
        Heed::Seed,
        Heed::Unwind,
        Heed::Trials,
        Heed::Slot,
        Heed::Window,
    ];

    /// The name of the option, as `seed`.
    pub const fn name(self) -> &'static str {
        match self {
            Heed::Seed => "seed",
            Heed::Unwind => "unwind",
            Heed::Trials => "trials",
            Heed::Slot => "slot",
            Heed::Window => "window",
        }
    }
}

/// What a plan is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Making {
    /// Transfers are written down by a rule.
    Recipe,
    /// A schedule of dimensions is made first; see [`super::schedule`].
    Schedule,
    /// Trees or flows are laid over the links; into how many pieces data is cut is part of the choice.
    Routes,
    /// A timetable, or paths, are searched for.
    Synthesis,
}

/// What is known of an algorithm before there is a network.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in files and on the command line, as `double-binary-tree`.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// The kinds that it implements, besides custom collectives.
    pub kinds: &'static [CollectiveKind],
    /// What [`super::plan`] makes it by; `None` where the plan is not made by that function alone (`exact`, which
    /// has a solver; `blind`, see [`crate::select`]; `auto`, which asks all others).
    pub algorithm: Option<Algorithm>,
    /// The algorithm that has as many transfers and whose numbers of chunks it takes: itself, where there is one;
    /// `None` of `auto`, whose plan is any.
    pub counts_as: Option<Algorithm>,
    /// Options that it uses, of those that not all do.
    pub uses: &'static [Heed],
    /// What its plan is made of.
    pub making: Making,
    /// Whether it schedules dimensions, by [`super::schedule`]; hierarchical does, and has plans of its own.
    pub has_schedule: bool,
    /// Whether it plans in no more than a few seconds, so that comparisons have it unasked.
    pub is_compared: bool,
    /// Whether several numbers of chunks are tried where none is given: not of a long search, nor of trees and flows,
    /// which choose theirs.
    pub tries_chunks: bool,
}

const PASSES: &[CollectiveKind] = &[AllReduce, ReduceScatter, AllGather];

const fn made(
    algorithm: Algorithm,
    making: Making,
    kinds: &'static [CollectiveKind],
    (name, summary): (&'static str, &'static str),
) -> Entry {
    Entry {
        name,
        summary,
        kinds,
        algorithm: Some(algorithm),
        counts_as: Some(algorithm),
        uses: &[],
        making,
        has_schedule: matches!(making, Making::Schedule),
        is_compared: true,
        tries_chunks: true,
    }
}

const fn recipe(
    algorithm: Algorithm,
    kinds: &'static [CollectiveKind],
    texts: (&'static str, &'static str),
) -> Entry {
    made(algorithm, Making::Recipe, kinds, texts)
}

const fn scheduled(algorithm: Algorithm, texts: (&'static str, &'static str)) -> Entry {
    made(algorithm, Making::Schedule, PASSES, texts)
}

/// Greedy, and what is sized as it.
const fn synthesized(texts: (&'static str, &'static str), uses: &'static [Heed]) -> Entry {
    Entry {
        uses,
        ..made(
            Algorithm::Greedy,
            Making::Synthesis,
            &CollectiveKind::NAMED,
            texts,
        )
    }
}

/// Every algorithm, those of [`Algorithm`] first and in its order.
pub static ENTRIES: [Entry; 32] = [
    recipe(
        Algorithm::Ring,
        PASSES,
        (
            "ring",
            "blocks go round one cycle of the NPUs: least traffic, n-1 steps a pass",
        ),
    ),
    recipe(
        Algorithm::BidirectionalRing,
        PASSES,
        (
            "bidirectional-ring",
            "a ring each way, half of every block on each: both directions of its links at work",
        ),
    ),
    recipe(
        Algorithm::Direct,
        &CollectiveKind::NAMED,
        (
            "direct",
            "every NPU sends to every other (or root to all) at once: one step a pass",
        ),
    ),
    recipe(
        Algorithm::HalvingDoubling,
        PASSES,
        (
            "halving-doubling",
            "halves of ever smaller groups exchange ranges: log2(n) steps a pass, any n",
        ),
    ),
    recipe(
        Algorithm::DoubleBinaryTree,
        &[AllReduce],
        (
            "double-binary-tree",
            "half of the data up and down each of two binary trees, pipelined: few steps",
        ),
    ),
    Entry {
        has_schedule: true,
        ..recipe(
            Algorithm::Hierarchical,
            PASSES,
            (
                "hierarchical",
                "dimension by dimension of a product topology, each with the algorithm that suits it",
            ),
        )
    },
    recipe(
        Algorithm::MultiRing,
        PASSES,
        (
            "multi-ring",
            "rings over the nodes, one for each way out of a node and both ways round, as NCCL's channels",
        ),
    ),
    scheduled(
        Algorithm::ThemisFifo,
        (
            "themis-fifo",
            "each chunk goes first through the dimension with least to do; first come, first served",
        ),
    ),
    scheduled(
        Algorithm::Themis,
        (
            "themis",
            "each chunk goes first through the dimension with least to do; smallest chunk first",
        ),
    ),
    scheduled(
        Algorithm::MultirailOptimal,
        (
            "multirail-optimal",
            "orders and sizes of chunks from a linear program and a search: never worse than themis",
        ),
    ),
    recipe(
        Algorithm::Binomial,
        &[Broadcast, Reduce, Gather, Scatter],
        (
            "binomial",
            "the holders double in number each step: log2(n) steps",
        ),
    ),
    recipe(
        Algorithm::Chain,
        &[Broadcast, Reduce],
        (
            "chain",
            "from NPU to NPU along a path, pipelined: for large data",
        ),
    ),
    recipe(
        Algorithm::Pairwise,
        &[AllToAll],
        (
            "pairwise",
            "one partner at a time, n-1 steps: never two senders to one NPU",
        ),
    ),
    recipe(
        Algorithm::RingBiOdd,
        &[AllReduce],
        (
            "ring-bi-odd",
            "a ring each way on a mesh of odd sides, one corner in and out through its neighbours",
        ),
    ),
    recipe(
        Algorithm::Tto,
        &[AllReduce],
        (
            "tto",
            "chunks up, then down three trees of a mesh that share no link; one corner has no data",
        ),
    ),
    recipe(
        Algorithm::TtoOverlapped,
        &[AllReduce],
        (
            "tto-overlapped",
            "as tto, each chunk down as soon as it is summed",
        ),
    ),
    recipe(
        Algorithm::TwoTreeOverlap,
        &[AllReduce],
        (
            "two-tree-overlap",
            "halves of chunks up, then down two chains from the ends of a line, one after the other",
        ),
    ),
    recipe(
        Algorithm::MultiTree,
        PASSES,
        (
            "multitree",
            "a tree from every NPU over direct links, no two trees on a link in a step",
        ),
    ),
    recipe(
        Algorithm::Ring2d,
        &[AllReduce],
        (
            "ring-2d",
            "rings in the rows, then the columns of a mesh or torus, and the other way about",
        ),
    ),
    recipe(
        Algorithm::Hdrm,
        PASSES,
        (
            "hdrm",
            "halving-doubling on a BiGraph, ranks placed so that no two messages of a step share a link",
        ),
    ),
    Entry {
        tries_chunks: false,
        ..made(
            Algorithm::Trees,
            Making::Routes,
            &[AllReduce, ReduceScatter, AllGather, Broadcast, Reduce],
            (
                "trees",
                "spanning trees packed until the worst cut of the network is full, for large data; any topology",
            ),
        )
    },
    Entry {
        tries_chunks: false,
        ..made(
            Algorithm::Flows,
            Making::Routes,
            &[AllToAll, Scatter, Gather],
            (
                "flows",
                "blocks routed over several ways until the busiest link has least to do; any topology",
            ),
        )
    },
    recipe(
        Algorithm::InNetwork,
        &[AllReduce, ReduceScatter, AllGather, Broadcast, Reduce],
        (
            "in-network",
            "summed and copied by the switches that can, up and down trees, pipelined: every NPU sends once",
        ),
    ),
    recipe(
        Algorithm::NodeGroups,
        &[Broadcast, Reduce],
        (
            "node-groups",
            "parts of the data over all NICs of a node at once, passed on by every node: for small data",
        ),
    ),
    recipe(
        Algorithm::NcclRing,
        &[AllReduce, ReduceScatter, AllGather, Broadcast, Reduce],
        (
            "nccl-ring",
            "NCCL's rings: one way round, one for each NIC of a node or each cycle of free links in a lone one",
        ),
    ),
    recipe(
        Algorithm::NcclTree,
        &[AllReduce],
        (
            "nccl-tree",
            "NCCL's trees: a chain in each node, two binary trees between nodes, pipelined",
        ),
    ),
    recipe(
        Algorithm::NcclNvls,
        PASSES,
        (
            "nccl-nvls",
            "NCCL's NVLS: summed and multicast by the switches of each node, trees between nodes",
        ),
    ),
    Entry {
        tries_chunks: false,
        ..made(
            Algorithm::Symmetric,
            Making::Routes,
            PASSES,
            (
                "symmetric",
                "trees of one NPU, shifted to all others, where every NPU sees the same network",
            ),
        )
    },
    synthesized(
        (
            "greedy",
            "chunks matched to links over time, for any topology: no two on a link at once",
        ),
        &[Heed::Seed, Heed::Unwind, Heed::Trials],
    ),
    Entry {
        algorithm: None,
        is_compared: false,
        tries_chunks: false,
        ..synthesized(
            (
                "exact",
                "the shortest plan in slots, proved by a solver, or the best in time with its gap",
            ),
            &Heed::ALL,
        )
    },
    Entry {
        algorithm: None,
        is_compared: false,
        ..synthesized(
            (
                "blind",
                "every chunk by the shortest way as if alone on the network: a baseline",
            ),
            &[Heed::Seed, Heed::Unwind],
        )
    },
    Entry {
        algorithm: None,
        counts_as: None,
        is_compared: false,
        tries_chunks: false,
        ..synthesized(
            (
                "auto",
                "the best plan that any method finds within the time limit",
            ),
            &Heed::ALL,
        )
    },
];

/// What is known of the algorithm of a name.
///
/// # Errors
/// [`PlanError::UnknownAlgorithm`] with the names that there are.
pub fn entry(name: &str) -> Result<&'static Entry, PlanError> {
    let found = ENTRIES.iter().find(|each| each.name == name);
    found.ok_or_else(|| unknown(name, &ENTRIES.each_ref()))
}

/// The refusal of a name that none of them has.
pub(super) fn unknown(name: &str, known: &[&Entry]) -> PlanError {
    let names: Vec<&str> = known.iter().map(|each| each.name).collect();
    PlanError::UnknownAlgorithm {
        name: name.to_owned(),
        known: names.join(", "),
    }
}
