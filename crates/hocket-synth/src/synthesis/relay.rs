//! Ways for chunks that not everybody wants: who passes them on.

use super::delivery::{Delivery, Wanted};
use super::greedy::Failure;
use super::network::{Timing, UnwoundNetwork};
use crate::graph::{FirstFound, Lists, ShortestPaths};
use crate::id::{fit, narrow};
use crate::progress::Progress;

/// A spread in which those who pass a chunk on want it as well.
pub(super) struct Relayed {
    pub(super) spread: Delivery,
    /// The way still before each chunk at each NPU of its tree, of NPU x chunks; empty where
    /// everybody wants everything.
    pub(super) ahead: Vec<u32>,
}

/// Grows a tree for every chunk from its holders to all who want it: one after the other, each wanter joined to the
/// tree by the shortest way, where edges that already carry much count as longer.
///
/// `crowding` says how much: an edge of the mean load is 1 + `crowding` times as long.
///
/// # Complexity
/// O(chunks x edges log NPUs), more where a chunk is wanted by some but not all.
///
/// # Source
/// Takahashi, Matsuyama: An approximate solution for the Steiner problem in graphs, 1980.
pub(super) fn relayed(
    network: &UnwoundNetwork,
    spread: &Delivery,
    timings: &[Timing],
    crowding: f64,
    progress: &mut dyn Progress,
) -> Result<Relayed, Failure> {
    let wanted = match &spread.wanted {
        Wanted::All => {
            return Ok(Relayed {
                spread: spread.clone(),
                ahead: Vec::new(),
            });
        }
        Wanted::Listed(wanted) => wanted,
    };
    let mut router = Router::new(network, spread, timings, wanted, crowding);
    let chunks = spread.chunks();
    let mut ahead = vec![0u64; spread.npus * chunks];
    let mut joined: Vec<Vec<u32>> = vec![Vec::new(); chunks];
    for (done, chunk) in router.order.clone().into_iter().enumerate() {
        progress.spend(4 * network.edges().len() as u64);
        if !progress.report("finding ways", done as u64, chunks as u64) {
            return Err(Failure::Interrupted);
        }
        let tree = router.tree(chunk, wanted.get(chunk as usize));
        let tree = tree.ok_or(Failure::Unreachable)?;
        for &(npu, edge) in tree.iter().rev() {
            joined[chunk as usize].push(npu);
            let timing = router.timing(edge, chunk);
            let src = network.edges()[edge as usize].src.index();
            let way = ahead[npu as usize * chunks + chunk as usize] + timing.delay;
            let before = &mut ahead[src * chunks + chunk as usize];
            *before = way.max(*before);
        }
        joined[chunk as usize].sort_unstable();
    }
    let mut lists = Lists::default();
    joined.iter().for_each(|npus| {
        lists.push(npus);
    });
    let most = ahead.iter().max().map_or(1, |&most| most.max(1));
    let scale = u64::from(u32::MAX).min(most);
    let scaled = |&way: &u64| fit(u128::from(way) * u128::from(scale) / u128::from(most));
    Ok(Relayed {
        ahead: ahead.iter().map(scaled).collect(),
        spread: Delivery {
            wanted: Wanted::Listed(lists),
            ..spread.clone()
        },
    })
}

struct Router<'a> {
    network: &'a UnwoundNetwork,
    spread: &'a Delivery,
    timings: &'a [Timing],
    crowding: f64,
    /// Time that each edge is already used for.
    load: Vec<f64>,
    mean: f64,
    /// Chunks, those with the farthest to go first.
    order: Vec<u32>,
    others: Vec<Vec<u32>>,
    /// Bits of the distance, which are in the same order, and last edge of each NPU.
    paths: ShortestPaths<u64, FirstFound<u32>>,
    in_tree: Vec<bool>,
}

impl<'a> Router<'a> {
    fn new(
        network: &'a UnwoundNetwork,
        spread: &'a Delivery,
        timings: &'a [Timing],
        wanted: &Lists<u32>,
        crowding: f64,
    ) -> Self {
        let npus = network.npus();
        let mut others = vec![Vec::new(); spread.chunks()];
        for &(chunk, npu) in &spread.others {
            others[chunk as usize].push(npu);
        }
        let mut router = Self {
            network,
            spread,
            timings,
            crowding: 0.0,
            load: vec![0.0; network.edges().len()],
            mean: 1.0,
            order: Vec::new(),
            others,
            paths: ShortestPaths::new(f64::INFINITY.to_bits(), FirstFound(u32::MAX)),
            in_tree: vec![false; npus],
        };
        let mut ways: Vec<Option<Vec<u64>>> = vec![None; npus];
        let mut total = 0.0;
        let mut keyed: Vec<(f64, u32)> = Vec::with_capacity(spread.chunks());
        for (chunk, &(holder, _)) in spread.holders.iter().enumerate() {
            let far = ways[holder as usize].get_or_insert_with(|| {
                router.search(&[holder], narrow(chunk), None);
                router.paths.costs().to_vec()
            });
            let ends = wanted
                .get(chunk)
                .iter()
                .map(|&npu| f64::from_bits(far[npu as usize]));
            let (sum, most) = ends
                .filter(|far| far.is_finite())
                .fold((0.0, 0.0f64), |(sum, most), far| (sum + far, most.max(far)));
            total += sum;
            keyed.push((most, narrow(chunk)));
        }
        keyed.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        router.order = keyed.into_iter().map(|(_, chunk)| chunk).collect();
        router.mean = (total / network.edges().len().max(1) as f64).max(1.0);
        router.crowding = crowding;
        router
    }

    fn timing(&self, edge: u32, chunk: u32) -> Timing {
        let class = self.spread.class[chunk as usize] as usize;
        self.timings[edge as usize * self.spread.sizes.len() + class]
    }

    /// Searches from `sources`; stops at the first NPU that `until` names and gives it.
    fn search(&mut self, sources: &[u32], chunk: u32, until: Option<&[bool]>) -> Option<u32> {
        let network = self.network;
        let class = self.spread.class[chunk as usize] as usize;
        let sizes = self.spread.sizes.len();
        let arc = |&edge: &u32| (network.edges()[edge as usize].dst.0, edge);
        self.paths.until(
            network.npus(),
            sources.iter().map(|&npu| (npu, 0.0f64.to_bits())),
            |npu| network.out_edges(npu as usize).iter().map(arc),
            |far, edge, _| {
                let crowd = 1.0 + self.crowding * self.load[edge as usize] / self.mean;
                let delay = self.timings[edge as usize * sizes + class].delay as f64;
                let found = f64::from_bits(far) + delay * crowd;
                Some((found.to_bits(), FirstFound(edge)))
            },
            |npu, _| until.is_some_and(|until| until[npu as usize]),
        )
    }

    /// Returns the tree of a chunk: each NPU that joins, with the edge it joins by, after that edge's source; `None`
    /// where somebody who wants it cannot be reached.
    fn tree(&mut self, chunk: u32, wanted: &[u32]) -> Option<Vec<(u32, u32)>> {
        let mut sources = vec![self.spread.holders[chunk as usize].0];
        sources.extend(&self.others[chunk as usize]);
        let mut left = vec![false; self.network.npus()];
        wanted.iter().for_each(|&npu| left[npu as usize] = true);
        sources.iter().for_each(|&npu| left[npu as usize] = false);
        let mut missing = left.iter().filter(|&&left| left).count();
        let mut tree = Vec::new();
        self.in_tree.fill(false);
        sources
            .iter()
            .for_each(|&npu| self.in_tree[npu as usize] = true);
        while missing > 0 {
            let end = self.search(&sources, chunk, Some(&left))?;
            let mut way = Vec::new();
            let mut at = end;
            while !self.in_tree[at as usize] {
                let FirstFound(edge) = self.paths.via(at);
                way.push((at, edge));
                at = self.network.edges()[edge as usize].src.0;
            }
            for &(npu, edge) in way.iter().rev() {
                self.load[edge as usize] += self.timing(edge, chunk).occupied as f64;
                self.in_tree[npu as usize] = true;
                missing -= usize::from(std::mem::take(&mut left[npu as usize]));
                sources.push(npu);
                tree.push((npu, edge));
            }
        }
        Some(tree)
    }
}
