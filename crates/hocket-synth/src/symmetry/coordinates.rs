//! Coordinates of NPUs on a network of direct links whose NPUs are numbered anyhow: its factors are read off its
//! squares.

use crate::graph::Lists;
use crate::id::narrow;
use crate::topology::Topology;

/// Pairs of neighbours up to which squares are looked for.
const MOST_PAIRS: usize = 1 << 24;

/// Returns the NPUs in an order in which those of the first coordinate come next to each other, and so on: where a
/// network is a product of cycles and of complete graphs, as tori and hypercubes are. What is returned is a guess to be
/// checked.
///
/// In a product two links of different factors at one NPU span exactly one square; of one factor they rarely do. So
/// opposite sides of such a square are of one factor, and so are two links that span none, or several. A cycle of four
/// is taken for a product of two cycles of two, which it is.
///
/// # Source
/// Feigenbaum, Hershberger, Schäffer, A polynomial time algorithm for finding the prime factors of Cartesian-product
/// graphs, 1985, for the relation of opposite sides.
pub(super) fn by_links(topology: &Topology) -> Option<Vec<u32>> {
    let npus = topology.npu_count();
    if npus != topology.device_count() {
        return None;
    }
    let near = neighbours(topology);
    let pairs: usize = near.iter().map(|near| near.len() * near.len()).sum();
    if pairs > MOST_PAIRS {
        return None;
    }
    let factor = factors(&near);
    let edges = near.offsets();
    let of = |u: usize, i: usize| factor[edges[u] as usize + i];
    let mut names: Vec<u32> = factor.clone();
    names.sort_unstable();
    names.dedup();
    let mut place = vec![0usize; npus];
    let mut stride = 1;
    for name in names {
        let (layer, count) = layers(&near, |u, i| of(u, i) != name);
        let joined = (0..npus).flat_map(|u| {
            let ends = near.get(u).iter().enumerate();
            let ends = ends.filter(move |&(i, _)| of(u, i) == name);
            let layer = &layer;
            ends.map(move |(_, &v)| (layer[u] as usize, layer[v as usize]))
        });
        let mut joined: Vec<(usize, u32)> = joined.collect();
        joined.sort_unstable();
        joined.dedup();
        let position = around(&Lists::grouped(count, joined.into_iter()))?;
        for (place, &layer) in place.iter_mut().zip(&layer) {
            *place += stride * position[layer as usize];
        }
        stride = stride.checked_mul(count)?;
    }
    let mut order = vec![u32::MAX; npus];
    for (npu, &place) in (0..).zip(&place) {
        *order.get_mut(place)? = npu;
    }
    (stride == npus && !order.contains(&u32::MAX)).then_some(order)
}

fn neighbours(topology: &Topology) -> Lists<u32> {
    let links = topology.links().iter();
    let ends = links.flat_map(|link| [(link.src, link.dst), (link.dst, link.src)]);
    let mut ends: Vec<(usize, u32)> = ends.map(|(a, b)| (a.index(), b.0)).collect();
    ends.sort_unstable();
    ends.dedup();
    Lists::grouped(topology.npu_count(), ends.into_iter())
}

/// Returns the factor of each neighbour of each NPU, as a number of some edge in it.
fn factors(near: &Lists<u32>) -> Vec<u32> {
    let place = |u: u32, v: u32| {
        let found = near.get(u as usize).binary_search(&v);
        near.offsets()[u as usize] + narrow(found.expect("they are neighbours"))
    };
    let is_joined = |u: u32, v: u32| near.get(u as usize).binary_search(&v).is_ok();
    let mut parts = Parts((0..narrow(near.items().len())).collect());
    for u in 0..narrow(near.len()) {
        let ends = near.get(u as usize);
        for (i, &v) in ends.iter().enumerate() {
            parts.join(place(u, v), place(v, u));
            for &w in &ends[..i] {
                let common = near.get(v as usize).iter();
                let mut common = common.filter(|&&x| x != u && is_joined(w, x));
                match (common.next(), common.next()) {
                    (Some(&x), None) if !is_joined(v, w) && !is_joined(u, x) => {
                        parts.join(place(u, v), place(w, x));
                        parts.join(place(u, w), place(v, x));
                    }
                    _ => parts.join(place(u, v), place(u, w)),
                }
            }
        }
    }
    (0..narrow(near.items().len()))
        .map(|edge| parts.find(edge))
        .collect()
}

/// Sets that are joined two at a time; each is named by its least member.
struct Parts(Vec<u32>);

impl Parts {
    fn find(&mut self, mut at: u32) -> u32 {
        while self.0[at as usize] != at {
            self.0[at as usize] = self.0[self.0[at as usize] as usize];
            at = self.0[at as usize];
        }
        at
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b) as usize] = a.min(b);
    }
}

/// Returns the parts that edges of some kind leave connected, and how many there are.
fn layers(near: &Lists<u32>, stays: impl Fn(usize, usize) -> bool) -> (Vec<u32>, usize) {
    let mut layer = vec![u32::MAX; near.len()];
    let mut count = 0;
    for start in 0..near.len() {
        if layer[start] != u32::MAX {
            continue;
        }
        layer[start] = count;
        let mut stack = vec![start];
        while let Some(u) = stack.pop() {
            for (i, &v) in near.get(u).iter().enumerate() {
                if stays(u, i) && layer[v as usize] == u32::MAX {
                    layer[v as usize] = count;
                    stack.push(v as usize);
                }
            }
        }
        count += 1;
    }
    (layer, count as usize)
}

/// Returns the position of each on a walk that visits all, always to the first neighbour that is left: round a cycle,
/// or over a complete graph.
fn around(joined: &Lists<u32>) -> Option<Vec<usize>> {
    let mut position = vec![usize::MAX; joined.len()];
    let mut at = 0;
    for step in 0..joined.len() {
        position[at] = step;
        let mut next = joined.get(at).iter();
        match next.find(|&&next| position[next as usize] == usize::MAX) {
            Some(&next) => at = next as usize,
            None if step + 1 == joined.len() => {}
            None => return None,
        }
    }
    Some(position)
}
