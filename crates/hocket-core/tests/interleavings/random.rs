//! Random plans: right ones, and such in which something was changed.

use std::sync::Arc;

use hocket_core::collective::Collective;
use hocket_core::id::narrow;
use hocket_core::plan::{Chunks, Columns, Lists, Plan};
use hocket_core::units::Seed;

use crate::board::{Board, Row};
use crate::changes::{Change, add_some, change_row, drop_some, move_one, orders, take_one_order};
use crate::oracle::{MAX_NPUS, MAX_TRANSFERS};
use crate::order::{Order, Style, members, write};
use crate::rows::{Job, Size, collective, cut, rows};

/// What the oracle of interleavings takes.
pub(crate) const SMALL: Size = Size {
    npus: MAX_NPUS,
    transfers: MAX_TRANSFERS,
    chunks: 4,
};

/// More than it takes.
pub(crate) const MEDIUM: Size = Size {
    npus: 7,
    transfers: 48,
    chunks: 6,
};

/// A plan and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub plan: Arc<Plan>,
    pub npus: usize,
    pub job: Job,
    pub change: Change,
    /// The two transfers whose order is missing, after [`Change::OneOrder`].
    pub missing: Option<(usize, usize)>,
}

/// The random plan of a seed.
pub(crate) fn case(size: Size, seed: u64) -> Case {
    let mut draw = Seed(Seed(seed).next_u64());
    loop {
        if let Some(case) = attempt(size, &mut draw) {
            return case;
        }
    }
}

fn attempt(size: Size, draw: &mut Seed) -> Option<Case> {
    let npus = 2 + draw.below(size.npus - 1).max(draw.below(size.npus - 1));
    let (collective, job) = collective(npus, draw);
    let chunks = cut(&collective, size, draw)?;
    let board = Board::new(npus, &collective, &chunks);
    let mut rows = rows(&board, size, draw)?;
    let mut order = orders(&rows, draw);
    let mut missing = None;
    let change = match draw.below(100) {
        _ if !board.allows(&rows) => Change::Row,
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
        job,
        change,
        missing: missing.map(|(t, u)| (place[t], place[u])),
    })
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
    let moved = |mask| members(mask).fold(0, |all, u| all | 1 << place[u]);
    let order: Order = at.iter().map(|&t| moved(order[t])).collect();
    let (wait, groups) = write(&order, Style::draw(draw), draw);
    let column = |of: &dyn Fn(&Row) -> usize| at.iter().map(|&t| narrow(of(&rows[t]))).collect();
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
