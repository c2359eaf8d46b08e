//! What goes from whom to whom.

use crate::collective::Collective;
use crate::id::{NpuId, narrow};

/// Bytes that one NPU has and one other wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Position of the demand among those of the collective.
    pub demand: u32,
    /// The NPU that has them.
    pub src: NpuId,
    /// The NPU that wants them.
    pub dst: NpuId,
    /// How many.
    pub bytes: u64,
}

/// Returns the flows of a collective, by who wants them and then who has them; what an NPU wants of itself is left out.
///
/// # Errors
/// The position of a demand that is no flow: a sum, or one that several have or want.
pub fn flows(collective: &Collective) -> Result<Vec<Flow>, usize> {
    let npus = collective.npus();
    let mut flows = Vec::new();
    for (d, demand) in collective.demands().iter().enumerate() {
        let ends = (
            demand.holders.members(npus),
            demand.wanted.members(npus),
            demand.reduced,
        );
        let (&[src], &[dst], false) = ends else {
            return Err(d);
        };
        if src != dst {
            flows.push(Flow {
                demand: narrow(d),
                src,
                dst,
                bytes: demand.bytes,
            });
        }
    }
    flows.sort_by_key(|flow| (flow.dst, flow.src, flow.demand));
    Ok(flows)
}
