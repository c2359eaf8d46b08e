//! TTO: three trees on a mesh, rooted at three corners, no two of which share a link; chunks follow each other
//! through them, up and down.
//!
//! A root sends nothing up its own tree, so that a corner's two links do for the other two. The fourth corner is
//! no root and would need three: it has no data, and passes on what comes through it. A pass takes H + C - 1 steps for C chunks and trees of height H = columns + rows - 2.
//!
//! # Source
//! Laskar et al.: Enhancing collective communication in MCM accelerators for deep learning training,
//! Algorithm 2 and section V.

use std::collections::VecDeque;

use super::ladder::Ladder;
use super::mesh::Mesh;
use super::mesh_trees::{self, Down, Edge, Tree, Trees};
use super::recipe::{About, Made, On, Recipe};
use super::{Job, Outline};
use crate::collective::{Collective, CollectiveKind};
use crate::id::NpuId;
use crate::plan::{Plan, PlanError};
use crate::progress::Progress;
use crate::topology::Topology;

/// Trees.
const TREES: usize = 3;

/// A chunk on its way down when all of its tree's are summed.
pub(super) struct Tto;

impl Recipe for Tto {
    fn about(&self) -> About {
        About::rule(
            "tto",
            &[CollectiveKind::AllReduce],
            "chunks up, then down three trees of a mesh that share no link; one corner has no data",
        )
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        refusal(on.topology, on.collective)
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        mesh_trees::ladder(on, TREES, |on| best_chunks(on, 1))
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        transfers(outline, chunks)
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        build(job, Down::AfterAll).map(Made::from)
    }
}

/// A chunk on its way down when it is summed itself.
pub(super) struct TtoOverlapped;

impl Recipe for TtoOverlapped {
    fn about(&self) -> About {
        About {
            name: "tto-overlapped",
            summary: "as tto, each chunk down as soon as it is summed",
            ..Tto.about()
        }
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        refusal(on.topology, on.collective)
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        mesh_trees::ladder(on, TREES, |on| best_chunks(on, 2))
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        transfers(outline, chunks)
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        build(job, Down::AtOnce).map(Made::from)
    }
}

/// Returns a third of every chunk up and down each tree.
fn build(job: &Job<'_>, down: Down) -> Result<Plan, PlanError> {
    let mesh = Mesh::of(job.topology).expect("refused otherwise");
    let excluded = excluded(&mesh, job.collective).expect("refused otherwise");
    let trees = Trees {
        trees: trees(&mesh, excluded),
        height: height(&mesh),
        without_data: Some(excluded),
    };
    mesh_trees::build(job, &trees, down)
}

/// Returns the height of all trees.
fn height(mesh: &Mesh) -> usize {
    mesh.columns + mesh.rows - 2
}

/// Transfers, exactly: two of the trees go through the corner without data.
fn transfers(outline: &Outline<'_>, chunks: u128) -> u128 {
    chunks.saturating_mul(2 * (3 * u128::from(outline.npus) - 1))
}

/// Returns the number of chunks that takes least time, where each takes so many heights before the next way begins.
fn best_chunks(on: &On<'_>, heights: usize) -> usize {
    Mesh::of(on.topology).map_or(1, |mesh| {
        mesh_trees::best_chunks(on, TREES, heights * height(&mesh))
    })
}

/// Returns why it cannot run, if it cannot.
fn refusal(topology: &Topology, collective: &Collective) -> Option<String> {
    let mesh = match Mesh::of(topology) {
        Ok(mesh) => mesh,
        Err(why) => return Some(why),
    };
    if excluded(&mesh, collective).is_some() {
        return None;
    }
    let [_, _, corner, last] = mesh.corners();
    let range = |from: usize, to: usize| match from == to {
        true => format!("{from}"),
        false => format!("{from}-{to}"),
    };
    Some(format!(
        "one corner of the mesh must take no part (it only passes on) and all others must: name the NPUs, as \
         {},{}",
        range(0, corner.index() - 1),
        range(corner.index() + 1, last.index()),
    ))
}

/// Returns the corner that takes no part where all others do.
fn excluded(mesh: &Mesh, collective: &Collective) -> Option<NpuId> {
    let npus = collective.npus();
    let mut absent = mesh
        .corners()
        .into_iter()
        .filter(|corner| !npus.contains(corner));
    let corner = absent.next()?;
    (npus.len() + 1 == mesh.columns * mesh.rows).then_some(corner)
}

/// Returns the trees rooted at the corners beside the excluded one and at the one across.
///
/// Seen with the excluded corner at the bottom left: the tree of the top left goes down the first column, then
/// along the rows; that of the bottom right along the last row, then up the columns; that of the top right
/// breadth first over links that are left. Links of one are nobody else's, in either direction of travel.
fn trees(mesh: &Mesh, excluded: NpuId) -> Vec<Tree> {
    let (columns, rows) = (mesh.columns, mesh.rows);
    let [_, right, _, across] = mesh.corners();
    let flip_x = [right, across].contains(&excluded);
    let flip_y = excluded.index() < columns;
    let at = |x: usize, y: usize| {
        let x = if flip_x { columns - 1 - x } else { x };
        let y = if flip_y { y } else { rows - 1 - y };
        mesh.at(x, y)
    };
    // Here (0, 0) is the excluded corner, y grows away from it.
    let (right, top) = (columns - 1, rows - 1);
    let by_rows = |(x, y): (usize, usize)| match (x, y) {
        (0, _) => (y < top).then_some((0, y + 1)),
        _ => Some((x - 1, y)),
    };
    let by_columns = |(x, y): (usize, usize)| match (x, y) {
        (_, 0) => (x < right).then_some((x + 1, 0)),
        _ => Some((x, y - 1)),
    };
    let cells = || (0..rows).flat_map(|y| (0..columns).map(move |x| (x, y)));
    let parents = |parent: &dyn Fn((usize, usize)) -> Option<(usize, usize)>| {
        cells().map(|cell| (cell, parent(cell))).collect::<Vec<_>>()
    };
    let (first, second) = (parents(&by_rows), parents(&by_columns));
    // Breadth first from the top right, by what the two leave: along the rows to the left but for the bottom
    // one, down the columns but for the first.
    let mut found = vec![((right, top), None)];
    let mut seen = vec![false; columns * rows];
    seen[right + columns * top] = true;
    let mut queue = VecDeque::from([(right, top)]);
    while let Some((x, y)) = queue.pop_front() {
        let left = (x > 0 && y > 0).then(|| (x - 1, y));
        let down = (x > 0 && y > 0).then(|| (x, y - 1));
        for cell in left.into_iter().chain(down) {
            if !std::mem::replace(&mut seen[cell.0 + columns * cell.1], true) {
                found.push((cell, Some((x, y))));
                queue.push_back(cell);
            }
        }
    }
    [(0, top), (right, 0), (right, top)]
        .into_iter()
        .zip([first, second, found])
        .map(|(root, parents)| tree(root, &parents, columns, at))
        .collect()
}

type Cell = (usize, usize);

/// Returns a tree of each cell's parent.
fn tree(
    root: Cell,
    parents: &[(Cell, Option<Cell>)],
    columns: usize,
    at: impl Fn(usize, usize) -> NpuId,
) -> Tree {
    let place = |(x, y): Cell| x + columns * y;
    let mut parent_of = vec![
        None;
        parents
            .iter()
            .map(|&(cell, _)| place(cell) + 1)
            .max()
            .unwrap_or(0)
    ];
    for &(cell, parent) in parents {
        parent_of[place(cell)] = parent;
    }
    let depth = |cell: Cell| {
        let up = |cell: &Cell| parent_of[place(*cell)];
        std::iter::successors(Some(cell), up).count() - 1
    };
    let mut edges: Vec<Edge> = parents
        .iter()
        .filter_map(|&(cell, parent)| {
            let (x, y) = parent?;
            Some(Edge {
                parent: at(x, y),
                child: at(cell.0, cell.1),
                depth: depth(cell),
            })
        })
        .collect();
    edges.sort_by_key(|edge| edge.depth);
    Tree {
        root: at(root.0, root.1),
        edges,
    }
}
