//! Orders of NPUs that suit ring and chain algorithms: neighbours in the order are joined by fast,
//! short paths, and no link is used twice where that can be.

mod estimate;
mod local;
mod patch;
mod search;
mod snake;

use estimate::{Estimate, Estimator, Shape};

use super::{Dimension, Topology};
use crate::id::NpuId;

/// Most NPUs among which Hamiltonian cycles are searched for.
const SEARCHED: usize = 4096;

/// Returns a cyclic order of the given NPUs that suits a ring; it starts with the first of them.
///
/// Orders are judged by the load of the busiest link, then by the sum of the hops' times, then by
/// the longest hop, each hop on the default route. Tried in turn, until one cannot be beaten: the
/// given order; Hamiltonian cycles that follow the dimensions of a product (an odd mesh has none: one
/// hop then takes two links); a search for a Hamiltonian cycle over the widest pairs; a travelling
/// salesman's tour.
///
/// NPUs that are not in the topology make the given order come back unchanged.
///
/// # Complexity
/// O(n) where neighbours are joined by links of the greatest bandwidth. The search takes O(n links)
/// at worst and is left out above 4096 NPUs. The tour takes O(n links log devices) and is left out
/// above 2048 NPUs or 2^25 NPUs times links.
pub fn ring_order(topology: &Topology, npus: &[NpuId]) -> Vec<NpuId> {
    if npus.len() < 3 || npus.iter().any(|npu| npu.index() >= topology.npu_count()) {
        return npus.to_vec();
    }
    let estimator = Estimator::new(topology, npus);
    if estimator.is_perfect(npus) {
        return npus.to_vec();
    }
    let mut best = Best::new(&estimator, npus.to_vec(), Shape::Ring);
    if best.estimate.is_close_to(&estimator.bound()) {
        return best.order;
    }
    let cycles = snake::cycles(dimensions_of(topology, npus));
    let is_product = !cycles.is_empty();
    cycles.into_iter().for_each(|order| best.offer(order));
    if is_product && best.estimate.load == estimator.bound().load {
        return rotated(best.order, npus[0]);
    }
    if npus.len() <= SEARCHED {
        if let Some(order) = search::hamiltonian_cycle(topology, npus) {
            best.offer(order);
        }
        if best.estimate.time > estimator.bound().time && local::is_cheap(topology, npus) {
            best.offer(local::tour(topology, npus));
        }
    }
    rotated(best.order, npus[0])
}

/// Returns an order of the given NPUs that suits a chain from `first`: a Hamiltonian path where one is found. Judged as
/// [`ring_order`] does, without the closing hop.
///
/// `first` is put at the front if it is not among `npus`.
pub fn chain_order(topology: &Topology, npus: &[NpuId], first: NpuId) -> Vec<NpuId> {
    let mut given: Vec<NpuId> = npus.iter().copied().filter(|&npu| npu != first).collect();
    given.insert(0, first);
    if given.len() < 3 || given.iter().any(|npu| npu.index() >= topology.npu_count()) {
        return given;
    }
    let estimator = Estimator::new(topology, &given);
    let mut best = Best::new(&estimator, given.clone(), Shape::Chain);
    if estimator.is_perfect(&given) {
        return given;
    }
    if let Some(order) = snake::path(dimensions_of(topology, &given), first) {
        best.offer(order);
        if best.estimate.passes == 0 && best.estimate.load == estimator.chain_load() {
            return best.order;
        }
    }
    let mut ring = rotated(ring_order(topology, &given), first);
    best.offer(ring.clone());
    ring[1..].reverse();
    best.offer(ring);
    if best.estimate.passes > 0 && local::is_cheap(topology, &given) {
        best.offer(local::nearest_path(topology, &given));
    }
    best.order
}

/// Returns the product's dimensions where all its NPUs take part, else none.
fn dimensions_of<'a>(topology: &'a Topology, npus: &[NpuId]) -> &'a [Dimension] {
    let sizes = topology
        .dimensions()
        .iter()
        .map(|dimension| dimension.size as usize);
    if npus.len() == topology.npu_count() && npus.len() == sizes.product::<usize>() {
        topology.dimensions()
    } else {
        &[]
    }
}

/// The best order so far.
struct Best<'a> {
    estimator: &'a Estimator<'a>,
    shape: Shape,
    order: Vec<NpuId>,
    estimate: Estimate,
}

impl<'a> Best<'a> {
    fn new(estimator: &'a Estimator<'a>, order: Vec<NpuId>, shape: Shape) -> Self {
        let estimate = estimator.estimate(&order, shape);
        Self {
            estimator,
            shape,
            order,
            estimate,
        }
    }

    fn offer(&mut self, order: Vec<NpuId>) {
        let estimate = self.estimator.estimate(&order, self.shape);
        if estimate < self.estimate {
            (self.order, self.estimate) = (order, estimate);
        }
    }
}

/// Returns the same cycle from `first` on.
fn rotated(mut order: Vec<NpuId>, first: NpuId) -> Vec<NpuId> {
    if let Some(start) = order.iter().position(|&npu| npu == first) {
        order.rotate_left(start);
    }
    order
}

#[cfg(test)]
mod tests;
