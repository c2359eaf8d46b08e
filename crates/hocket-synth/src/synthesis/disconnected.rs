//! Who is cut off, where a collective cannot be carried out.

use super::network::UnwoundNetwork;
use super::sum_places::{meeting, reached};
use crate::collective::Collective;
use crate::id::NpuId;
use crate::plan::Chunks;

/// Names somebody who cannot get what he wants over a network, and from whom; `None` where there is
/// nobody.
///
/// # Complexity
/// O(edges) for each demand that is copied, and for each NPU that wants a sum.
pub(super) fn cut_off(
    network: &UnwoundNetwork,
    collective: &Collective,
    chunks: &Chunks,
) -> Option<String> {
    let among = collective.npus();
    for (d, demand) in (0u32..).zip(&collective.demands()) {
        let holders = demand.holders.members(among);
        let wanted = demand.wanted.members(among);
        let why = match demand.reduced && holders.len() > 1 {
            true => sum_cut_off(network, holders, wanted),
            false => copy_cut_off(network, holders, wanted),
        };
        if let Some(why) = why {
            let chunk = chunks.demand().iter().position(|&of| of == d);
            return Some(why(chunk.unwrap_or(0)));
        }
    }
    None
}

/// What to say, given the number of the chunk.
type Why = Box<dyn Fn(usize) -> String>;

fn sum_cut_off(network: &UnwoundNetwork, holders: &[NpuId], wanted: &[NpuId]) -> Option<Why> {
    for &to in wanted {
        let reaches = reached(network, &[to], true);
        if let Some(&from) = holders.iter().find(|npu| !reaches[npu.index()]) {
            return Some(Box::new(move |chunk| {
                format!(
                    "NPU {from} adds to chunk {chunk}, and there is no way from it to NPU {to}, which wants \
                     the sum; add a link, or leave one of them out"
                )
            }));
        }
    }
    let (adding, wanting) = (holders.len(), wanted.len());
    let is_met = meeting(network, holders, wanted).is_some();
    (!is_met).then(|| -> Why {
        Box::new(move |chunk| {
            format!(
                "chunk {chunk} is summed at one NPU and copied from there, and no NPU can be reached by \
                 all {adding} that add to it and reach all {wanting} that want the sum; add a link"
            )
        })
    })
}

fn copy_cut_off(network: &UnwoundNetwork, holders: &[NpuId], wanted: &[NpuId]) -> Option<Why> {
    let reached = reached(network, holders, false);
    let to = *wanted.iter().find(|npu| !reached[npu.index()])?;
    let (from, others) = (holders[0], holders.len() - 1);
    let held = match others {
        0 => "which holds it".to_owned(),
        _ => format!("or from the {others} others that hold it"),
    };
    Some(Box::new(move |chunk| {
        format!(
            "NPU {to} needs chunk {chunk}, and there is no way to it from NPU {from}, {held}; add a link, or \
             leave NPU {to} out"
        )
    }))
}
