//! HDRM: halving-doubling on a BiGraph, ranks placed so that no two messages of a step share a link.
//!
//! Rank x of N = 2^b meets x with one bit flipped in each step, so that the parity of its ones flips: those of even
//! parity are placed at the upper switches, the others at the lower ones, and every message takes the one route
//! of three links to the other side. Let each side have S = 2^s switches
//! of P = 2^p NPUs each, so that b = 1 + s + p. Bits are numbered from the least. The upper switch of a rank is its bits
//! 0 to s - 1, the lower one its bits p to p + s - 1. Its place there is the p other ones of the lowest b - 1 bits.
//! Parity settles the last bit.
//!
//! Ranks at one switch differ in those p bits only, and where p is s at most these are among the bits that name
//! the switch across. So their partners are at switches all different, whatever bit a step flips: at most one
//! message goes each way between two switches, and with P = S exactly one.
//!
//! # Complexity
//! 2 log2(N) steps and 2 N log2(N) transfers a slice for an all-reduce.
//!
//! # Source
//! Dong et al.: EFLOPS, algorithm and system co-design for a high performance distributed training platform, HPCA
//! 2020. That ranks alternate by parity is theirs as the simulator of Huang et al. (Communication
//! algorithm-architecture co-design for distributed deep learning, ISCA 2021) has it; which of the switches a rank
//! is at is derived here.

use super::bigraph::BiGraph;
use super::halving_doubling;
use super::ladder::Ladder;
use super::mesh::is_of_all;
use super::recipe::{About, Made, On, PASSES, Recipe};
use super::{Job, Outline};
use crate::collective::pattern::Shape;
use crate::id::NpuId;
use crate::plan::PlanError;
use crate::progress::Progress;

/// Halving-doubling among NPUs in the order of their ranks.
pub(super) struct Hdrm;

impl Recipe for Hdrm {
    fn about(&self) -> About {
        About::rule(
            "hdrm",
            PASSES,
            "halving-doubling on a BiGraph, ranks placed so that no two messages of a step share a link",
        )
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        let On {
            topology,
            collective,
        } = *on;
        let graph = match BiGraph::of(topology) {
            Ok(graph) => graph,
            Err(why) => return Some(why),
        };
        let (switches, ports) = (graph.switches(), graph.npus_per_switch());
        if !is_of_all(collective, topology) {
            return Some(
                "all NPUs of the BiGraph must take part; leave the participants out or use \
                 halving-doubling"
                    .to_owned(),
            );
        }
        if !switches.is_power_of_two() || !ports.is_power_of_two() {
            return Some(format!(
                "switches per side and NPUs per switch must be powers of two, and they are {switches} and {ports}; use \
                 halving-doubling"
            ));
        }
        (ports > switches).then(|| {
            format!(
                "{ports} NPUs at a switch would share its {switches} links across; it needs no fewer switches per side than \
                 NPUs per switch; use halving-doubling"
            )
        })
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        Ladder::short(on.blocks())
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        outline.flat(chunks, Shape::HalvingDoubling)
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        let graph = BiGraph::of(job.topology).expect("refused otherwise");
        halving_doubling::among(job, &placed(&graph)).map(Made::from)
    }
}

/// Returns the NPU of each rank.
fn placed(graph: &BiGraph) -> Vec<NpuId> {
    let (switches, ports) = (graph.switches(), graph.npus_per_switch());
    let (s, p) = (switches.ilog2(), ports.ilog2());
    (0..2 * switches * ports)
        .map(|rank| match rank.count_ones() % 2 {
            0 => graph.npu(0, rank % switches, (rank >> s) % ports),
            _ => graph.npu(1, (rank >> p) % switches, rank % ports),
        })
        .collect()
}
