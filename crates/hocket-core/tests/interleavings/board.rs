//! What places hold while a small plan is made up, transfer by transfer, in an order that makes sense.

use hocket_core::collective::Collective;
use hocket_core::plan::{Chunks, Op};
use hocket_core::units::Seed;

/// One transfer, without its waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub chunk: usize,
    pub count: usize,
    pub src: usize,
    pub dst: usize,
    pub op: Op,
}

impl Row {
    /// Whether two transfers access one place, not both to read it and not both to add to it.
    pub(crate) fn conflicts(&self, other: &Row) -> bool {
        let apart =
            self.chunk + self.count <= other.chunk || other.chunk + other.count <= self.chunk;
        let both_add = self.op == Op::Reduce && other.op == Op::Reduce;
        !apart
            && (self.src == other.dst
                || self.dst == other.src
                || self.dst == other.dst && !both_add)
    }
}

/// What is in a chunk, and who wants it.
#[derive(Clone, Debug)]
struct Data {
    reduced: bool,
    full: u8,
    wanted: Vec<usize>,
}

/// The values of all places, as sets of contributions.
#[derive(Clone, Debug)]
pub(crate) struct Board {
    data: Vec<Data>,
    /// By NPU, then by chunk.
    held: Vec<Vec<u8>>,
    /// Enough transfers to meet each chunk's postcondition from here; `None` if a contribution is
    /// lost.
    needed: Vec<Option<usize>>,
}

impl Board {
    /// What the precondition says.
    pub(crate) fn new(npus: usize, collective: &Collective, chunks: &Chunks) -> Self {
        let demands = collective.demands();
        let all = collective.npus();
        let mut board = Self {
            data: Vec::new(),
            held: vec![vec![0; chunks.len()]; npus],
            needed: Vec::new(),
        };
        for (chunk, &demand) in chunks.demand().iter().enumerate() {
            let demand = &demands[demand as usize];
            let mut full = 0;
            for holder in demand.holders.members(all) {
                let contribution = if demand.reduced { 1 << holder.0 } else { 1 };
                board.held[holder.index()][chunk] = contribution;
                full |= contribution;
            }
            let wanted = demand.wanted.members(all).iter();
            board.data.push(Data {
                reduced: demand.reduced,
                full,
                wanted: wanted.map(|npu| npu.index()).collect(),
            });
        }
        board.needed = (0..chunks.len())
            .map(|chunk| board.needed_for(chunk))
            .collect();
        board
    }

    /// How many NPUs there are.
    pub(crate) fn npus(&self) -> usize {
        self.held.len()
    }

    /// How many chunks there are.
    pub(crate) fn chunks(&self) -> usize {
        self.data.len()
    }

    /// Whether a transfer makes sense now.
    pub(crate) fn fits(&self, row: &Row) -> bool {
        row.src != row.dst
            && (row.chunk..row.chunk + row.count).all(|chunk| {
                let (sent, there) = (self.held[row.src][chunk], self.held[row.dst][chunk]);
                let sums = self.data[chunk].reduced && there != 0 && sent & there == 0;
                sent != 0
                    && if row.op == Op::Copy {
                        sent != there
                    } else {
                        sums
                    }
            })
    }

    /// Whether transfers make sense one after the other.
    pub(crate) fn allows(&self, rows: &[Row]) -> bool {
        let mut board = self.clone();
        rows.iter().all(|row| {
            let fits = board.fits(row);
            board.make(row);
            fits
        })
    }

    /// What is held once a transfer was made.
    pub(crate) fn make(&mut self, row: &Row) {
        for chunk in row.chunk..row.chunk + row.count {
            let sent = self.held[row.src][chunk];
            let there = &mut self.held[row.dst][chunk];
            *there = if row.op == Op::Copy {
                sent
            } else {
                *there | sent
            };
            self.needed[chunk] = self.needed_for(chunk);
        }
    }

    /// Whether the postcondition is met.
    pub(crate) fn done(&self) -> bool {
        self.needed.iter().all(|&needed| needed == Some(0))
    }

    /// How many transfers are enough from here, once one was made.
    pub(crate) fn needed_after(&self, row: &Row) -> Option<usize> {
        let mut after = self.clone();
        after.make(row);
        after.needed.into_iter().sum()
    }

    fn needed_for(&self, chunk: usize) -> Option<usize> {
        let sums = self.smallest_cover(chunk)?.len() - 1;
        Some(sums + self.lacking(chunk).len())
    }

    fn lacking(&self, chunk: usize) -> Vec<usize> {
        let Data { full, wanted, .. } = &self.data[chunk];
        let lacks = |&&npu: &&usize| self.held[npu][chunk] != *full;
        wanted.iter().filter(lacks).copied().collect()
    }

    /// As few NPUs as possible that together hold each contribution once.
    fn smallest_cover(&self, chunk: usize) -> Option<Vec<usize>> {
        let members = |set: u32| (0..self.npus()).filter(move |npu| set >> npu & 1 == 1);
        let covers = |set: &u32| {
            let mut union = 0;
            let apart = members(*set).all(|npu| {
                let value = self.held[npu][chunk];
                let fits = value != 0 && union & value == 0;
                union |= value;
                fits
            });
            apart && union == self.data[chunk].full
        };
        let covers = (1..1 << self.npus()).filter(covers);
        let smallest = covers.min_by_key(|set: &u32| set.count_ones())?;
        Some(members(smallest).collect())
    }

    /// A transfer that brings the postcondition nearer, often of several chunks.
    pub(crate) fn useful(&self, draw: &mut Seed) -> Option<Row> {
        let needy: Vec<usize> = (0..self.chunks())
            .filter(|&chunk| self.needed[chunk] != Some(0))
            .collect();
        let chunk = *pick(&needy, draw)?;
        let cover = self.smallest_cover(chunk)?;
        let lacking = self.lacking(chunk);
        let mut row = match cover[..] {
            [holder] => Row {
                chunk,
                count: 1,
                src: holder,
                dst: *pick(&lacking, draw)?,
                op: Op::Copy,
            },
            _ => {
                let i = draw.below(cover.len());
                let j = (i + 1 + draw.below(cover.len() - 1)) % cover.len();
                Row {
                    chunk,
                    count: 1,
                    src: cover[i],
                    dst: cover[j],
                    op: Op::Reduce,
                }
            }
        };
        while row.chunk + row.count < self.chunks() && draw.below(3) > 0 {
            let longer = Row {
                count: row.count + 1,
                ..row
            };
            if !self.fits(&longer) || self.needed_after(&longer) >= self.needed_after(&row) {
                break;
            }
            row = longer;
        }
        Some(row)
    }
}

/// One of several, if there is any.
pub(crate) fn pick<'a, T>(from: &'a [T], draw: &mut Seed) -> Option<&'a T> {
    (!from.is_empty()).then(|| &from[draw.below(from.len())])
}

/// Whether an event of that many percent happens.
pub(crate) fn percent(chance: usize, draw: &mut Seed) -> bool {
    draw.below(100) < chance
}
