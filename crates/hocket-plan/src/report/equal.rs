//! What a run makes of equal paths.

use crate::id::{NpuId, TransferId};
use crate::simulate::Run;
use crate::topology::equal::EqualPaths;
use crate::verify::Verified;

/// Links among which a run's transfers could choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EqualLinks {
    /// Links that some of a transfer's equal paths take and others do not.
    pub links: usize,
    /// Those of them that carried nothing.
    pub idle: usize,
}

impl EqualLinks {
    /// Counts them. A transfer counts whoever chose its path.
    ///
    /// # Complexity
    /// That of [`EqualPaths::of`]; O(links) where equal paths cannot be.
    pub fn new(run: &Run, verified: &Verified) -> Self {
        let (plan, topology) = (verified.plan(), verified.topology());
        if !EqualPaths::may_exist(topology) {
            return Self::default();
        }
        let wanted = (0..plan.len()).map(|i| {
            let bytes = plan.bytes(TransferId::from(i));
            (NpuId(plan.src()[i]), NpuId(plan.dst()[i]), bytes)
        });
        let links = EqualPaths::of(topology, wanted).alternatives();
        let idle = links
            .iter()
            .filter(|link| run.links[link.index()].bytes == 0);
        Self {
            idle: idle.count(),
            links: links.len(),
        }
    }
}
