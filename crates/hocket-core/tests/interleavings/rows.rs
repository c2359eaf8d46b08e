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

/// What a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// One collective.
    One,
    /// Those of several groups at once, of one kind or of different ones.
    Groups(Option<CollectiveKind>),
    /// Tokens on their way to experts.
    Dispatch,
    /// What experts made of them, summed on the way back.
    Combine,
}

/// Collectives of any kind among some of the NPUs; custom ones more often than others.
pub(crate) fn collective(npus: usize, draw: &mut Seed) -> (Collective, Job) {
    let mut all: Vec<NpuId> = (0..npus).map(NpuId::from).collect();
    for i in (1..npus).rev() {
        all.swap(i, draw.below(i + 1));
    }
    let among = &all[..2 + draw.below(npus - 1)];
    match draw.below(100) {
        0..30 => (named(any_kind(draw), among.to_vec(), draw), Job::One),
        30..60 => (custom(among, draw), Job::One),
        60..85 => groups(&all, draw),
        _ => experts(among, draw),
    }
}

fn any_kind(draw: &mut Seed) -> CollectiveKind {
    CollectiveKind::NAMED[draw.below(CollectiveKind::NAMED.len())]
}

fn named(kind: CollectiveKind, npus: Vec<NpuId>, draw: &mut Seed) -> Collective {
    let size = 100 + draw.below(100) as u64;
    let root = kind.is_rooted().then(|| Rank::from(draw.below(npus.len())));
    Collective::new(kind, npus, size, root).expect("a collective")
}

fn some(npus: &[NpuId], most: usize, draw: &mut Seed) -> NpuSet {
    let count = 1 + draw.below(most);
    NpuSet::of((0..count).map(|_| npus[draw.below(npus.len())]))
}

fn custom(npus: &[NpuId], draw: &mut Seed) -> Collective {
    let count = [1, 1, 2, 3][draw.below(4)];
    let demand = |_| {
        let (mut holders, wanted) = (some(npus, 6, draw), some(npus, 3, draw));
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
    Collective::custom(npus.to_vec(), demands).expect("a collective")
}

/// Two or three groups at once. Most have no NPU in common, as the tensor-parallel groups of a job; some do, as one of
/// these and a data-parallel one.
fn groups(npus: &[NpuId], draw: &mut Seed) -> (Collective, Job) {
    let one = percent(50, draw).then(|| any_kind(draw));
    let mut rest = npus;
    let several: Vec<Collective> = (0..[2, 2, 3][draw.below(3)])
        .map(|_| {
            let from = if rest.len() < 2 || percent(20, draw) {
                npus
            } else {
                rest
            };
            let first = draw.below(from.len() - 1);
            let count = (2 + draw.below(2)).min(from.len() - first);
            let members = from[first..first + count].to_vec();
            rest = &from[first + count..];
            let kind = one.unwrap_or_else(|| any_kind(draw));
            named(kind, members, draw)
        })
        .collect();
    let joined = Collective::joined(&several.iter().collect::<Vec<_>>()).expect("collectives");
    (joined, Job::Groups(one))
}

/// Tokens of some NPUs that each go to some NPUs, or what these made of them, summed at the NPUs that the tokens are from.
fn experts(npus: &[NpuId], draw: &mut Seed) -> (Collective, Job) {
    let (is_back, count) = (percent(50, draw), 2 + draw.below(3));
    let demand = |_| {
        let ends = [some(npus, 1, draw), some(npus, 4, draw)];
        let [holders, wanted] = if is_back {
            let [token, made] = ends;
            [made, token]
        } else {
            ends
        };
        Demand {
            bytes: 8 + draw.below(50) as u64,
            reduced: is_back,
            holders,
            wanted,
        }
    };
    let demands: Vec<Demand> = (0..count).map(demand).collect();
    let job = if is_back { Job::Combine } else { Job::Dispatch };
    let collective = Collective::custom(npus.to_vec(), demands).expect("a collective");
    (collective, job)
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
    // Where all have what they want, often nothing is sent.
    let most = aims.into_iter().max().unwrap_or(0);
    let aim = most * usize::from(!board.done() || percent(80, draw));
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
