//! What a transfer that is sprayed over equal paths takes of each server.

use super::Pass;
use crate::id::{TransferId, fit, narrow};
use crate::plan::Route;
use crate::verify::Verified;

/// Parts of a flow that passes are counted in: the least common multiple of all numbers of paths, or, where
/// that is large, a number such that shares are rounded up by less than one in 1,000.
pub(super) fn scale(verified: &Verified) -> u32 {
    const MAX_SCALE: u32 = 1 << 20;
    let Some(equal) = verified.routes().equal() else {
        return 1;
    };
    let mut scale = 1u32;
    for transfer in (0..verified.plan().len()).map(TransferId::from) {
        let Route::Spray(set) = verified.routes().route(transfer) else {
            continue;
        };
        let paths = narrow(equal.count(set));
        if !scale.is_multiple_of(paths) {
            scale *= paths / common(scale, paths);
            if scale > MAX_SCALE {
                return MAX_SCALE;
            }
        }
    }
    scale
}

/// Returns the greatest common divisor.
fn common(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common(b, a % b) }
}

/// Returns the bytes on one of so many paths; those of all add up.
pub(super) fn part(bytes: u64, path: usize, paths: usize) -> u64 {
    let upto = |path: usize| fit::<u64, _>(u128::from(bytes) * path as u128 / paths as u128);
    upto(path + 1) - upto(path)
}

/// Joins passes of one server; rounded up, they may come to more than the whole flow.
pub(super) fn join(passes: &mut Vec<Pass>, scale: u32) {
    passes.sort_unstable_by_key(|pass| pass.server);
    passes.dedup_by(|pass, before| {
        let is_same = pass.server == before.server;
        if is_same {
            before.weight = scale.min(before.weight.saturating_add(pass.weight));
        }
        is_same
    });
}
