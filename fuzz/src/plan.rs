//! Columns from anywhere: refused, judged wrong, or proved and then run at every fidelity.

use std::sync::Arc;

use hocket_core::algorithms::{self, Algorithm, PlanOptions};
use hocket_core::bound::{BoundOptions, bound};
use hocket_core::collective::Collective;
use hocket_core::id::LinkId;
use hocket_core::plan::{Chunks, Columns, LinkOrder, Lists, Plan, lists};
use hocket_core::progress::Silent;
use hocket_core::topology::Topology;
use hocket_core::verify::{VerifyError, verify};

use super::draw::{Draw, Patience};
use super::network;
use super::runs::{self, one_line};

/// Most transfers of a plan whose columns are changed.
const MAX_TRANSFERS: usize = 200;

/// Makes a plan of columns, judges it, and runs it if it is right.
pub fn run(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let Some(topology) = network::topology(&mut draw) else {
        return;
    };
    let Some(collective) = network::collective(&mut draw, &topology) else {
        return;
    };
    let made = match draw.yes() {
        true => Parts::of_algorithm(&topology, &collective, &mut draw),
        false => Parts::drawn(&topology, &collective, &mut draw),
    };
    let Some(mut parts) = made else {
        return;
    };
    for _ in 0..draw.below(6) {
        parts.change(&mut draw);
    }
    let order = draw.one_of(&[LinkOrder::Ready, LinkOrder::Plan]);
    judge(parts.plan(collective), order, topology, &mut draw);
}

fn judge(
    made: Result<Plan, String>,
    order: LinkOrder,
    topology: Arc<Topology>,
    draw: &mut Draw<'_>,
) {
    let plan = match made {
        Ok(plan) => plan.with_link_order(order),
        Err(why) => return one_line(&why),
    };
    bound(
        &topology,
        plan.collective(),
        &BoundOptions::default(),
        &mut Silent,
    )
    .expect("nobody stops it");
    match verify(Arc::new(plan), topology, &mut Patience(1_000)) {
        Ok(verified) => runs::check(&verified, draw),
        Err(VerifyError::Wrong(report)) => {
            assert!(!report.is_empty() && !report.to_string().is_empty())
        }
        Err(error) => one_line(&error.to_string()),
    }
}

/// What a plan's file holds.
struct Parts {
    offsets: Vec<u64>,
    demand: Vec<u32>,
    columns: Columns,
    groups: (Vec<u32>, Vec<u32>),
    paths: (Vec<u32>, Vec<LinkId>),
}

impl Parts {
    fn of_algorithm(
        topology: &Topology,
        collective: &Collective,
        draw: &mut Draw<'_>,
    ) -> Option<Self> {
        let options = PlanOptions {
            chunks: Some(1 + draw.below(3)),
            effort: 100,
            ..PlanOptions::new(draw.one_of(&[
                Algorithm::Ring,
                Algorithm::Direct,
                Algorithm::HalvingDoubling,
                Algorithm::DoubleBinaryTree,
                Algorithm::Binomial,
                Algorithm::Chain,
                Algorithm::Hierarchical,
                Algorithm::Themis,
                Algorithm::MultiTree,
            ]))
        };
        let plan = algorithms::plan(topology, collective, &options, &mut Silent).ok()?;
        (plan.len() <= MAX_TRANSFERS).then(|| Self {
            offsets: plan.chunks().offsets().to_vec(),
            demand: plan.chunks().demand().to_vec(),
            columns: plan.columns(),
            groups: (
                plan.groups().offsets().to_vec(),
                plan.groups().items().to_vec(),
            ),
            paths: (
                plan.paths().offsets().to_vec(),
                plan.paths().items().to_vec(),
            ),
        })
    }

    fn drawn(topology: &Topology, collective: &Collective, draw: &mut Draw<'_>) -> Option<Self> {
        let chunks = Chunks::split(&collective.demands(), 1 + draw.below(3)).ok()?;
        let (rows, npus) = (draw.below(14), topology.npu_count());
        let mut columns = Columns::default();
        for _ in 0..rows {
            columns.chunk.push(draw.near(chunks.len()));
            columns.chunk_count.push(draw.near(3));
            columns.src.push(draw.near(npus));
            columns.dst.push(draw.near(npus));
            columns.op.push(draw.byte() & 1);
            columns.wait.push(wait(draw, rows, 4));
            columns.path.push(match draw.below(3) {
                0 => draw.near(3),
                _ => Plan::DEFAULT_ROUTE,
            });
        }
        let mut groups = Lists::default();
        for group in 0..draw.below(5) {
            let members: Vec<u32> = (0..draw.below(5))
                .map(|_| wait(draw, rows, group))
                .collect();
            groups.push(&members);
        }
        let mut paths = Lists::default();
        for _ in 0..draw.below(4) {
            let links = topology.links().len();
            let path: Vec<LinkId> = (0..draw.below(4))
                .map(|_| LinkId(draw.near(links)))
                .collect();
            paths.push(&path);
        }
        Some(Self {
            offsets: chunks.offsets().to_vec(),
            demand: chunks.demand().to_vec(),
            columns,
            groups: (groups.offsets().to_vec(), groups.items().to_vec()),
            paths: (paths.offsets().to_vec(), paths.items().to_vec()),
        })
    }

    /// Another value somewhere, or a row that is taken away.
    fn change(&mut self, draw: &mut Draw<'_>) {
        let rows = self.columns.chunk.len();
        let columns = &mut self.columns;
        let numbers = match draw.below(12) {
            0 => &mut columns.chunk,
            1 => &mut columns.chunk_count,
            2 => &mut columns.src,
            3 => &mut columns.dst,
            4 => &mut columns.wait,
            5 => &mut columns.path,
            6 => &mut self.demand,
            7 => &mut self.groups.0,
            8 => &mut self.groups.1,
            9 => {
                if let Some(op) = at(&mut columns.op, draw) {
                    *op = draw.byte() % 3;
                }
                return;
            }
            10 => {
                if let Some(offset) = at(&mut self.offsets, draw) {
                    *offset = draw.size();
                }
                return;
            }
            _ => {
                if let Some(link) = at(&mut self.paths.1, draw) {
                    *link = LinkId(draw.near(32));
                }
                return;
            }
        };
        match draw.below(4) {
            0 => drop(numbers.pop()),
            1 => {
                if let Some(number) = at(numbers, draw) {
                    *number = wait(draw, rows, 4);
                }
            }
            _ => {
                if let Some(number) = at(numbers, draw) {
                    *number = draw.near(rows);
                }
            }
        }
    }

    fn plan(self, collective: Collective) -> Result<Plan, String> {
        let chunks = Chunks::from_columns(self.offsets, self.demand).map_err(|e| e.to_string())?;
        let groups = lists("groups", self.groups.0, self.groups.1);
        let paths = lists("paths", self.paths.0, self.paths.1);
        let groups = groups.map_err(|e| e.to_string())?;
        let paths = paths.map_err(|e| e.to_string())?;
        let plan = Plan::from_columns("drawn", collective, chunks, self.columns, groups, paths);
        plan.map_err(|e| e.to_string())
    }
}

/// The bits of a wait for nothing, one of the transfers, or one of the groups.
fn wait(draw: &mut Draw<'_>, transfers: usize, groups: usize) -> u32 {
    match draw.below(4) {
        0 => u32::MAX,
        1 => 1 << 31 | draw.near(groups),
        _ => draw.near(transfers),
    }
}

/// One of a column's values.
fn at<'a, T>(column: &'a mut [T], draw: &mut Draw<'_>) -> Option<&'a mut T> {
    let length = column.len().clamp(1, 256);
    column.get_mut(draw.below(length))
}
