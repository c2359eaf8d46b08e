//! A plan of one block, shifted to all: transfer by transfer, or as a whole.

use super::group::Symmetry;
use crate::collective::{Collective, CollectiveKind};
use crate::id::{ChunkId, LinkId, NpuId, TransferId, narrow};
use crate::plan::{Chunks, Plan, PlanBuilder, PlanError, Transfer, Wait, WaitOn};

/// A plan of the first NPU's block and the group that shifts it to all others.
#[derive(Clone, Debug)]
pub struct Shifted<'a> {
    symmetry: &'a Symmetry,
    base: &'a Plan,
    collective: &'a Collective,
    /// By NPU, its position among the participants.
    ranks: Vec<u32>,
    /// Of an all-to-all: who has and who wants each block of the base, and its first chunk.
    blocks: Vec<(NpuId, NpuId, u32)>,
}

impl<'a> Shifted<'a> {
    /// Returns all shifts of a plan of the first NPU's block, whether right or not.
    ///
    /// # Panics
    /// If not all NPUs take part.
    pub fn new(symmetry: &'a Symmetry, base: &'a Plan, collective: &'a Collective) -> Self {
        assert_eq!(
            symmetry.len() * symmetry.firsts().len(),
            collective.npus().len(),
            "all NPUs take part"
        );
        let mut ranks = vec![0; collective.npus().len()];
        for (rank, npu) in (0..).zip(collective.npus()) {
            ranks[npu.index()] = rank;
        }
        let blocks = match collective.kind() {
            CollectiveKind::AllToAll => blocks(base),
            _ => Vec::new(),
        };
        Self {
            symmetry,
            base,
            collective,
            ranks,
            blocks,
        }
    }

    /// Returns the number of transfers of all shifts.
    pub fn len(&self) -> u128 {
        self.base.len() as u128 * self.symmetry.len() as u128
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.base.is_empty()
    }

    /// One transfer of the whole plan: that of `row` of the plan of one block, as an element shifts it. Its number is
    /// `row` x elements + `element`, and so are those of what it waits for, and of its path.
    ///
    /// # Panics
    /// If there is no such row, or the whole plan has more transfers than a plan can number.
    pub fn transfer(&self, row: TransferId, element: u32) -> Transfer {
        let one = self.base.transfer(row);
        let npu = |npu| self.symmetry.take_npu(element, npu);
        Transfer {
            chunk: self.chunk(one.chunk, element),
            src: npu(one.src),
            dst: npu(one.dst),
            wait: self.wait(one.wait, element),
            path: one.path.map(|path| self.number(path, element)),
            ..one
        }
    }

    /// Returns all transfers in the plan's order, made as they are asked for.
    pub fn transfers(&self) -> impl Iterator<Item = Transfer> + '_ {
        let rows = (0..self.base.len()).map(TransferId::from);
        rows.flat_map(move |row| {
            let elements = 0..narrow(self.symmetry.len());
            elements.map(move |element| self.transfer(row, element))
        })
    }

    /// Returns the links of a path of the plan of one block, shifted.
    pub fn path(&self, path: u32, element: u32) -> impl Iterator<Item = LinkId> + '_ {
        let links = self.base.paths().get(path as usize).iter();
        links.map(move |&link| self.symmetry.take_link(element, link))
    }

    /// Returns the whole plan.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`]; [`PlanError::TooManyChunks`].
    pub fn expand(&self, memory_limit: u64) -> Result<Plan, PlanError> {
        PlanBuilder::check_size(self.len(), memory_limit)?;
        let demands = self.collective.demands();
        let parts = self.base.chunks().len();
        let chunks = match self.collective.kind() {
            CollectiveKind::AllReduce => Chunks::split(&demands, parts * self.symmetry.len()),
            CollectiveKind::AllToAll => Chunks::split(&demands, self.pieces() as usize),
            _ => Chunks::split_part_major(&demands, parts),
        }?;
        let mut plan = PlanBuilder::new(self.base.algorithm(), self.collective, chunks);
        plan.link_order(self.base.link_order());
        plan.reserve(self.len() as usize);
        let elements = 0..narrow(self.symmetry.len());
        for path in 0..narrow(self.base.paths().len()) {
            for element in elements.clone() {
                let links: Vec<LinkId> = self.path(path, element).collect();
                plan.path(&links);
            }
        }
        for group in self.base.groups().iter() {
            for element in elements.clone() {
                let members = group
                    .iter()
                    .map(|&bits| self.wait(Wait::from_bits(bits), element));
                plan.all_of(&members.collect::<Vec<Wait>>());
            }
        }
        for transfer in self.transfers() {
            plan.push(transfer);
        }
        Ok(plan.finish())
    }

    /// Returns the chunk that an element takes one of the plan of one block to. The blocks of an all-to-all are from each NPU
    /// for each, by ranks, with as many pieces each.
    fn chunk(&self, chunk: ChunkId, element: u32) -> ChunkId {
        if self.collective.kind() != CollectiveKind::AllToAll {
            return ChunkId(self.number(chunk.0, self.rank(element)));
        }
        let (has, wants, first) = self.blocks[self.base.chunks().demand()[chunk.index()] as usize];
        let rank = |npu| self.ranks[self.symmetry.take_npu(element, npu).index()];
        let block = rank(has) * narrow(self.ranks.len()) + rank(wants);
        ChunkId(block * self.pieces() + chunk.0 - first)
    }

    /// Returns the pieces of a block of an all-to-all.
    fn pieces(&self) -> u32 {
        narrow(self.base.chunks().len() / self.blocks.len())
    }

    fn wait(&self, wait: Wait, element: u32) -> Wait {
        match wait.target() {
            WaitOn::Nothing => Wait::NOTHING,
            WaitOn::Transfer(id) => Wait::on(TransferId(self.number(id.0, element))),
            WaitOn::Group(group) => Wait::group(self.number(group, element)),
        }
    }

    fn number(&self, row: u32, element: u32) -> u32 {
        let number = u64::from(row) * self.symmetry.len() as u64 + u64::from(element);
        u32::try_from(number).expect("a plan that can be made has 32-bit numbers")
    }

    /// Returns the position of a block's NPU among the participants.
    fn rank(&self, element: u32) -> u32 {
        self.ranks[self.symmetry.npu(element).index()]
    }
}

/// Returns who has and who wants each block of a plan, and its first chunk.
fn blocks(base: &Plan) -> Vec<(NpuId, NpuId, u32)> {
    let all = base.collective().npus();
    let demands = base.collective().demands();
    let chunks = base.chunks().demand();
    let first = |demand: u32| narrow(chunks.partition_point(|&of| of < demand));
    let ends = demands
        .iter()
        .map(|one| (one.holders.members(all)[0], one.wanted.members(all)[0]));
    (0..)
        .zip(ends)
        .map(|(demand, (has, wants))| (has, wants, first(demand)))
        .collect()
}
