//! Equal-cost multi-path: each switch takes one of its best links by a hash.

use super::Choice;
use crate::id::{fit, narrow};
use crate::plan::Plan;
use crate::topology::Topology;
use crate::topology::equal::EqualPaths;
use crate::units::Seed;

/// For each choice, the path that the switches' hashes lead over.
///
/// A switch mixes its own number into the hash, so that the next one does not see only flows of one remainder
/// (polarisation, which [`crate::routing::Ecmp`] models).
pub(super) fn choose(
    plan: &Plan,
    topology: &Topology,
    equal: &EqualPaths,
    choices: &[Choice],
    seed: Seed,
) -> Vec<u32> {
    let path = |choice: &Choice| {
        let i = choice.transfer as usize;
        let flow = u64::from(plan.src()[i]) << 32 | u64::from(plan.dst()[i]);
        let flow = Seed(flow ^ Seed(seed.0).next_u64()).next_u64();
        let link = |path: usize, hop: usize| equal.middle(choice.set, path)[hop];
        let hops = equal.middle(choice.set, 0).len();
        let mut left: Vec<usize> = (0..equal.count(choice.set)).collect();
        for hop in 0..hops {
            // All that is left has come to the same switch.
            let mut ways: Vec<_> = left.iter().map(|&path| link(path, hop)).collect();
            ways.sort_unstable();
            ways.dedup();
            let at = topology.link(ways[0]).src;
            let hash = Seed(flow ^ u64::from(at.0)).next_u64();
            let taken = ways[fit::<usize, _>(hash % ways.len() as u64)];
            left.retain(|&path| link(path, hop) == taken);
        }
        narrow(left[0])
    };
    choices.iter().map(path).collect()
}
