//! Small random plans: right ones, and what becomes of them when waits are dropped, added or moved.

use std::sync::Arc;

use hocket_core::collective::{Collective, CollectiveKind, Demand, NpuSet};
use hocket_core::id::{NpuId, Rank};
use hocket_core::plan::{Chunks, Columns, Lists, Op, Plan};
use hocket_core::units::Seed;

use crate::board::{Board, Row, percent, pick};
use crate::oracle::{MOST_NPUS, MOST_TRANSFERS};
use crate::order::{Order, Style, closure, conflicts, members, reduction, write};

/// What was done to a plan that was right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Change {
    /// Nothing.
    None,
    /// One order of two transfers that conflict was taken out, and no other.
    OneOrder,
    /// Some waits were dropped.
    Dropped,
    /// A wait was moved.
    Moved,
    /// Waits were added in any direction.
    Added,
    /// A transfer was changed.
    Row,
}

/// A plan and where it comes from.
#[derive(Clone, Debug)]
pub struct Case {
    pub plan: Arc<Plan>,
    pub npus: usize,
    pub change: Change,
    /// The two transfers whose order is missing, after [`Change::OneOrder`].
    pub missing: Option<(usize, usize)>,
}

/// The random plan of a seed.
pub fn case(seed: u64) -> Case {
    let mut draw = Seed(Seed(seed).next_u64());
    loop {
        if let Some(case) = attempt(&mut draw) {
            return case;
        }
    }
}

fn attempt(draw: &mut Seed) -> Option<Case> {
    let npus = 2 + draw.below(MOST_NPUS - 1);
    let collective = collective(npus, draw);
    let chunks = cut(&collective, draw)?;
    let mut rows = rows(&Board::new(npus, &collective, &chunks), draw)?;
    let mut order = orders(&rows, draw);
    let mut missing = None;
    let change = match draw.below(100) {
        0..40 => Change::None,
        40..68 => match take_one_order(&rows, &order, draw) {
            Some((less, pair)) => {
                order = less;
                missing = Some(pair);
                Change::OneOrder
            }
            None => Change::None,
        },
        68..78 => drop_some(&mut order, draw),
        78..88 => move_one(&mut order, draw),
        88..94 => add_some(&mut order, draw),
        _ => change_row(&mut rows, npus, chunks.len(), draw),
    };
    let place = places(rows.len(), draw);
    Some(Case {
        plan: Arc::new(assemble(collective, chunks, &rows, &order, &place, draw)),
        npus,
        change,
        missing: missing.map(|(t, u)| (place[t], place[u])),
    })
}

/// A collective of any kind among some of the NPUs; custom ones more often than others.
fn collective(npus: usize, draw: &mut Seed) -> Collective {
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
        let (holders, wanted) = (some(6), some(3));
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

/// One to four chunks; more where there are more demands.
fn cut(collective: &Collective, draw: &mut Seed) -> Option<Chunks> {
    let demands = collective.demands();
    let most = (4 / demands.len()).max(1);
    let pieces = if percent(60, draw) {
        1
    } else {
        1 + draw.below(most)
    };
    if draw.below(2) == 0 {
        Chunks::split(&demands, pieces).ok()
    } else {
        Chunks::split_slice_major(&demands, pieces).ok()
    }
}

/// Transfers that meet the postcondition one after the other, useful ones and others; `None` if
/// there is no room for that.
fn rows(before: &Board, draw: &mut Seed) -> Option<Vec<Row>> {
    let mut board = before.clone();
    let mut rows = Vec::new();
    let aim = draw
        .below(MOST_TRANSFERS + 1)
        .max(draw.below(MOST_TRANSFERS + 1));
    let eager = [15, 40, 80][draw.below(3)];
    let busy = percent(50, draw).then(|| (draw.below(board.npus()), draw.below(board.chunks())));
    let blunders = if percent(4, draw) { 10 } else { 0 };
    while !board.done() || rows.len() < aim {
        let room = MOST_TRANSFERS.checked_sub(rows.len() + 1)?;
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
        if draw.below(2) == 0 && dst != npu {
            row.src = npu;
        } else if src != npu {
            row.dst = npu;
        }
    }
    if percent(40, draw) {
        let back = draw.below(2).min(row.chunk);
        row.chunk -= back;
        row.count = (1 + back + draw.below(3)).min(board.chunks() - row.chunk);
    }
    row
}

/// The orders that the transfers need, at times some more, written out in full or in part.
fn orders(rows: &[Row], draw: &mut Seed) -> Order {
    let mut order = conflicts(rows);
    if percent(25, draw) {
        for _ in 0..draw.below(4) {
            let t = draw.below(rows.len().max(1));
            if t > 0 {
                order[t] |= 1 << draw.below(t);
            }
        }
    }
    in_full_or_part(&closure(&order), draw)
}

fn in_full_or_part(closed: &Order, draw: &mut Seed) -> Order {
    let least = reduction(closed);
    let keep = [0, u64::MAX, draw.next_u64()][draw.below(3)];
    let some = |(&least, &all)| least | all & keep as u16;
    least.iter().zip(closed).map(some).collect()
}

/// The order without that of two transfers that conflict, and which they are. Only an order that
/// follows from no others can be taken out by itself.
fn take_one_order(rows: &[Row], order: &Order, draw: &mut Seed) -> Option<(Order, (usize, usize))> {
    let mut closed = closure(order);
    let least = reduction(&closed);
    let needed = |t: usize| {
        members(least[t])
            .map(move |u| (u, t))
            .filter(|&(u, t)| rows[u].conflicts(&rows[t]))
    };
    let pairs: Vec<(usize, usize)> = (0..rows.len()).flat_map(needed).collect();
    let &(u, t) = pick(&pairs, draw)?;
    closed[t] &= !(1 << u);
    Some((in_full_or_part(&closed, draw), (u, t)))
}

fn waits_of(order: &Order) -> Vec<(usize, usize)> {
    (0..order.len())
        .flat_map(|t| members(order[t]).map(move |u| (u, t)))
        .collect()
}

fn drop_some(order: &mut Order, draw: &mut Seed) -> Change {
    for _ in 0..1 + draw.below(4) {
        if let Some(&(u, t)) = pick(&waits_of(order), draw) {
            order[t] &= !(1 << u);
        }
    }
    Change::Dropped
}

fn move_one(order: &mut Order, draw: &mut Seed) -> Change {
    if let Some(&(u, t)) = pick(&waits_of(order), draw) {
        order[t] &= !(1 << u);
        let other = draw.below(order.len());
        if draw.below(2) == 0 {
            order[t] |= 1 << other;
        } else {
            order[other] |= 1 << u;
        }
    }
    Change::Moved
}

fn add_some(order: &mut Order, draw: &mut Seed) -> Change {
    for _ in 0..(1 + draw.below(2)).min(order.len()) {
        let t = draw.below(order.len());
        order[t] |= 1 << draw.below(order.len());
    }
    Change::Added
}

fn change_row(rows: &mut [Row], npus: usize, chunks: usize, draw: &mut Seed) -> Change {
    if !rows.is_empty() {
        let t = draw.below(rows.len());
        let row = &mut rows[t];
        match draw.below(4) {
            0 => {
                row.op = if row.op == Op::Copy {
                    Op::Reduce
                } else {
                    Op::Copy
                }
            }
            1 => row.dst = (row.src + 1 + draw.below(npus - 1)) % npus,
            2 => row.src = (row.dst + 1 + draw.below(npus - 1)) % npus,
            _ => {
                row.chunk = draw.below(chunks);
                row.count = 1 + draw.below(chunks - row.chunk);
            }
        }
    }
    Change::Row
}

/// Which row of the plan each transfer becomes: the same, or any.
fn places(rows: usize, draw: &mut Seed) -> Vec<usize> {
    let mut place: Vec<usize> = (0..rows).collect();
    if draw.below(2) == 0 {
        for i in (1..rows).rev() {
            place.swap(i, draw.below(i + 1));
        }
    }
    place
}

fn assemble(
    collective: Collective,
    chunks: Chunks,
    rows: &[Row],
    order: &Order,
    place: &[usize],
    draw: &mut Seed,
) -> Plan {
    let mut at: Vec<usize> = vec![0; rows.len()];
    for (t, &i) in place.iter().enumerate() {
        at[i] = t;
    }
    let moved = |mask: u16| members(mask).fold(0, |all, u| all | 1 << place[u]);
    let order: Order = at.iter().map(|&t| moved(order[t])).collect();
    let (wait, groups) = write(&order, Style::draw(draw), draw);
    let column = |of: &dyn Fn(&Row) -> usize| at.iter().map(|&t| of(&rows[t]) as u32).collect();
    let columns = Columns {
        chunk: column(&|row| row.chunk),
        chunk_count: column(&|row| row.count),
        src: column(&|row| row.src),
        dst: column(&|row| row.dst),
        op: at.iter().map(|&t| rows[t].op as u8).collect(),
        wait,
        path: vec![Plan::DEFAULT_ROUTE; rows.len()],
    };
    Plan::from_columns(
        "random",
        collective,
        chunks,
        columns,
        groups,
        Lists::default(),
    )
    .expect("a plan")
}
