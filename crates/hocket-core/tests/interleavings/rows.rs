//! Random collectives, and transfers that meet their postconditions one after the other.

use hocket_core::collective::{Collective, CollectiveKind, Demand, NpuSet};
use hocket_core::id::{NpuId, Rank};
use hocket_core::plan::{Chunks, Op};
use hocket_core::units::Seed;

use crate::board::{Board, Row, percent};

/// How large a plan may be: most NPUs, most transfers, most chunks (but one of each demand).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub npus: usize,
    pub transfers: usize,
    pub chunks: usize,
}

/// A collective of any kind among some of the NPUs; custom ones more often than others.
pub(crate) fn collective(npus: usize, draw: &mut Seed) -> Collective {
    let mut all: Vec<NpuId> = (0..npus).map(NpuId::from).collect();
    for i in (1..npus).rev() {
        all.swap(i, draw.below(i + 1));
    }
    all.truncate(2 + draw.below(npus - 1));
    let size = 100 + draw.below(100) as u64;
    if percent(50, draw) {
        let kind = CollectiveKind::NAMED[draw.below(CollectiveKind::NAMED.len())];
        let root = kind.is_rooted().then(|| Rank::from(draw.below(all.len())));
        return Collective::new(kind, all, size, root).expect("a collective");
    }
    let count = [1, 1, 2, 3][draw.below(4)];
    let demand = |_| {
        let mut some = |most: usize| {
            let count = 1 + draw.below(most);
            NpuSet::of((0..count).map(|_| all[draw.below(all.len())]))
        };
        let (mut holders, wanted) = (some(6), some(3));
        if percent(40, draw) {
            holders = NpuSet::All;
        }
        let (reduced, bytes) = (percent(75, draw), 8 + draw.below(50) as u64);
        Demand {
            bytes,
            reduced,
            holders,
            wanted,
        }
    };
    let demands: Vec<Demand> = (0..count).map(demand).collect();
    Collective::custom(all.clone(), demands).expect("a collective")
}

/// Its demands in chunks: one each, or more.
pub(crate) fn cut(collective: &Collective, size: Size, draw: &mut Seed) -> Option<Chunks> {
    let demands = collective.demands();
    let most = (size.chunks / demands.len()).max(1);
    let pieces = if percent(60, draw) {
        1
    } else {
        1 + draw.below(most)
    };
    let cut = [Chunks::split, Chunks::split_part_major][draw.below(2)];
    cut(&demands, pieces).ok()
}

/// Transfers that meet the postcondition one after the other, useful ones and others; `None` if
/// there is no room for that.
pub(crate) fn rows(before: &Board, size: Size, draw: &mut Seed) -> Option<Vec<Row>> {
    let mut board = before.clone();
    let mut rows = Vec::new();
    let aims = [0; 3].map(|_| draw.below(size.transfers + 1));
    let aim = aims.into_iter().max().unwrap_or(0);
    let eager = [15, 40, 80][draw.below(3)];
    let busy = percent(50, draw).then(|| (draw.below(board.npus()), draw.below(board.chunks())));
    let blunders = if percent(4, draw) { 10 } else { 0 };
    while !board.done() || rows.len() < aim {
        let room = size.transfers.checked_sub(rows.len() + 1)?;
        let free = (0..20).find_map(|_| {
            let row = any_row(&board, busy, draw);
            let fits = board.fits(&row) && board.needed_after(&row).is_some_and(|n| n <= room);
            (fits || percent(blunders, draw)).then_some(row)
        });
        let row = match free {
            Some(row) if board.done() || !percent(eager, draw) => row,
            _ => board.useful(draw)?,
        };
        board.make(&row);
        rows.push(row);
    }
    Some(rows)
}

/// Any transfer, mostly at the busy place if there is one.
fn any_row(board: &Board, busy: Option<(usize, usize)>, draw: &mut Seed) -> Row {
    let src = draw.below(board.npus());
    let dst = (src + 1 + draw.below(board.npus() - 1)) % board.npus();
    let mut row = Row {
        chunk: draw.below(board.chunks()),
        count: 1,
        src,
        dst,
        op: if draw.below(2) == 0 {
            Op::Copy
        } else {
            Op::Reduce
        },
    };
    if let Some((npu, chunk)) = busy
        && percent(85, draw)
    {
        row.chunk = chunk;
        let usual = percent(50, draw);
        if draw.below(2) == 0 && dst != npu {
            row.src = npu;
            row.op = if usual { Op::Copy } else { row.op };
        } else if src != npu {
            row.dst = npu;
            row.op = if usual { Op::Reduce } else { row.op };
        }
    }
    if percent(40, draw) {
        let back = draw.below(2).min(row.chunk);
        row.chunk -= back;
        row.count = (1 + back + draw.below(3)).min(board.chunks() - row.chunk);
    }
    row
}
