//! A topology seen as a mesh: rows and columns of NPUs, each linked both ways to its neighbours; a line is one row.

use crate::collective::Collective;
use crate::id::NpuId;
use crate::topology::{DimensionKind, Topology};

/// A whole mesh of two dimensions, or one row. NPU (x, y) is number x + columns y.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mesh {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

impl Mesh {
    /// Sees a topology as a mesh of at least 2 x 2, or says why it is none.
    pub(super) fn of(topology: &Topology) -> Result<Self, String> {
        let instead = match sides(topology)[..] {
            [columns, rows] => return Self { columns, rows }.whole(topology),
            [_] => "two-tree-overlap",
            _ => "greedy",
        };
        Err(format!(
            "it needs a complete mesh of two dimensions, such as mesh:8x8, and {:?} is not one; use {instead}",
            topology.name()
        ))
    }

    /// Sees a topology as a mesh of one row, at least two NPUs, or says why it is none.
    pub(super) fn line_of(topology: &Topology) -> Result<Self, String> {
        match sides(topology)[..] {
            [columns] => Self { columns, rows: 1 }.whole(topology),
            _ => Err(format!(
                "it needs a complete line, such as line:8, and {:?} is not one; use greedy",
                topology.name()
            )),
        }
    }

    /// Checks that all links are there.
    fn whole(self, topology: &Topology) -> Result<Self, String> {
        match self.gap(topology) {
            None => Ok(self),
            Some((a, b)) => Err(format!(
                "it needs a complete mesh, and in {:?} there is no link from {} to {}; use greedy, which goes \
                 round what is missing",
                topology.name(),
                topology.device(a.device()).name,
                topology.device(b.device()).name,
            )),
        }
    }

    pub(super) fn at(&self, x: usize, y: usize) -> NpuId {
        NpuId::from(x + self.columns * y)
    }

    /// Returns the corners: (0, 0), then those across in x, in y and in both.
    pub(super) fn corners(&self) -> [NpuId; 4] {
        let (x, y) = (self.columns - 1, self.rows - 1);
        [self.at(0, 0), self.at(x, 0), self.at(0, y), self.at(x, y)]
    }

    /// Neighbours without a link from one to the other.
    fn gap(&self, topology: &Topology) -> Option<(NpuId, NpuId)> {
        let pairs = (0..self.rows).flat_map(|y| (0..self.columns).map(move |x| (x, y)));
        let pairs = pairs.flat_map(|(x, y)| {
            let right = (x + 1 < self.columns).then(|| (self.at(x, y), self.at(x + 1, y)));
            let down = (y + 1 < self.rows).then(|| (self.at(x, y), self.at(x, y + 1)));
            right.into_iter().chain(down)
        });
        pairs.flat_map(|(a, b)| [(a, b), (b, a)]).find(|(a, b)| {
            let links = topology.links_from_to(a.device(), b.device());
            links.is_empty()
        })
    }
}

/// Returns whether a collective is among all NPUs, in any order.
pub(super) fn is_of_all(collective: &Collective, topology: &Topology) -> bool {
    collective.npus().len() == topology.npu_count()
}

/// Returns the NPUs along each dimension of more than one, of a product of lines; none where it is something else.
fn sides(topology: &Topology) -> Vec<usize> {
    let sides = topology.dimensions().iter().filter(|side| side.size > 1);
    let is_mesh = sides.clone().all(|side| side.kind == DimensionKind::Line);
    let sizes: Vec<usize> = sides.map(|side| side.size as usize).collect();
    match is_mesh && sizes.iter().product::<usize>() == topology.npu_count() {
        true => sizes,
        false => Vec::new(),
    }
}
