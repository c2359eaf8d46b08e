//! Who sends which block to whom in each step, within one group of ranks 0, 1, ... n-1.
//!
//! A reduce-scatter leaves the sum of block r at rank r; an all-gather starts from there. Blocks are
//! contiguous, so that a move is a range of them.

use crate::id::narrow;

/// How a group of ranks exchanges blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// To the next rank of a cycle, one block a step.
    Ring,
    /// Every rank to every other at once.
    Direct,
    /// Ever smaller (or larger) ranges between the halves of ever smaller (or larger) groups.
    HalvingDoubling,
}

/// Which half of an all-reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Sums blocks at their owners.
    ReduceScatter,
    /// Copies blocks from their owners.
    AllGather,
}

/// Rank `src` sends blocks `first`, ... `first + count - 1` to rank `dst`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The rank that sends.
    pub src: u32,
    /// The rank that receives.
    pub dst: u32,
    /// The first block.
    pub first: u32,
    /// How many blocks.
    pub count: u32,
}

/// A shape, and for a ring the cycle of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    shape: Shape,
    cycle: Vec<u32>,
}

impl Shape {
    /// Moves of one pass among `n` ranks.
    pub fn moves(self, n: u128) -> u128 {
        match self {
            Shape::Ring | Shape::Direct => n * (n - 1),
            Shape::HalvingDoubling => halving_moves(n),
        }
    }

    /// Returns the number of steps of one pass among `n` ranks.
    pub fn steps(self, n: usize) -> usize {
        match self {
            Shape::Ring | Shape::Direct => n - 1,
            Shape::HalvingDoubling => n.next_power_of_two().ilog2() as usize,
        }
    }
}

impl Pattern {
    /// Returns a ring through every rank in the order given.
    pub fn ring(cycle: Vec<u32>) -> Self {
        Self {
            shape: Shape::Ring,
            cycle,
        }
    }

    /// Returns a ring the other way round.
    pub fn reversed(&self) -> Self {
        Self {
            shape: self.shape,
            cycle: self.cycle.iter().rev().copied().collect(),
        }
    }

    /// Returns every rank to every other.
    pub fn direct() -> Self {
        Self {
            shape: Shape::Direct,
            cycle: Vec::new(),
        }
    }

    /// Recursive halving (reduce-scatter) and doubling (all-gather).
    ///
    /// # Source
    /// Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH,
    /// 2005. There, ranks beyond a power of two are folded in by a step of their own; here a group
    /// of any size is cut into two halves that differ by one rank at most, and the rank without a
    /// partner sends to the last rank of the other half.
    pub fn halving_doubling() -> Self {
        Self {
            shape: Shape::HalvingDoubling,
            cycle: Vec::new(),
        }
    }

    /// Returns its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the moves of one step among `n` ranks.
    pub fn step(&self, pass: Pass, n: usize, step: usize) -> Vec<Move> {
        let mut moves = Vec::with_capacity(n);
        match self.shape {
            Shape::Ring => self.ring_step(pass, step, &mut moves),
            Shape::Direct => direct_step(pass, n, step, &mut moves),
            Shape::HalvingDoubling => {
                let level = match pass {
                    Pass::ReduceScatter => step,
                    Pass::AllGather => self.shape.steps(n) - 1 - step,
                };
                halving_level(0..narrow(n), level, pass, &mut moves);
            }
        }
        moves
    }

    /// Block p starts its reduction after position p and ends there; or is copied on from there.
    fn ring_step(&self, pass: Pass, step: usize, moves: &mut Vec<Move>) {
        let n = self.cycle.len();
        let lead = match pass {
            Pass::ReduceScatter => step + 1,
            Pass::AllGather => step,
        };
        moves.extend((0..n).map(|p| Move {
            src: self.cycle[p],
            dst: self.cycle[(p + 1) % n],
            first: self.cycle[(p + n - lead) % n],
            count: 1,
        }));
    }
}

fn direct_step(pass: Pass, n: usize, step: usize, moves: &mut Vec<Move>) {
    moves.extend((0..n).map(|src| {
        let dst = (src + step + 1) % n;
        let owner = match pass {
            Pass::ReduceScatter => dst,
            Pass::AllGather => src,
        };
        Move {
            src: narrow(src),
            dst: narrow(dst),
            first: narrow(owner),
            count: 1,
        }
    }));
}

/// The moves between the halves of every group `level` cuts below `group`.
fn halving_level(group: std::ops::Range<u32>, level: usize, pass: Pass, moves: &mut Vec<Move>) {
    if group.len() < 2 {
        return;
    }
    let mid = group.start + narrow(group.len()).div_ceil(2);
    let (left, right) = (group.start..mid, mid..group.end);
    if level > 0 {
        halving_level(left, level - 1, pass, moves);
        halving_level(right, level - 1, pass, moves);
        return;
    }
    let mut add = |sender: u32, owner: u32, range: &std::ops::Range<u32>| {
        let (src, dst) = match pass {
            Pass::ReduceScatter => (sender, owner),
            Pass::AllGather => (owner, sender),
        };
        moves.push(Move {
            src,
            dst,
            first: range.start,
            count: narrow(range.len()),
        });
    };
    for (l, r) in left.clone().zip(right.clone()) {
        add(r, l, &left);
        add(l, r, &right);
    }
    if left.len() > right.len() {
        add(left.end - 1, right.end - 1, &right);
    }
}

/// Returns each group that is cut makes one move a rank: m(n) = n + m(ceil(n/2)) + m(floor(n/2)), m(1) = 0.
fn halving_moves(n: u128) -> u128 {
    let power = n.next_power_of_two();
    n * (u128::from(power.ilog2()) + 1) - power
}
