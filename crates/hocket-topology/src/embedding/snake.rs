//! Cycles and paths that visit every NPU of a product by going to and fro along its dimensions.

use super::super::{Dimension, DimensionKind};
use super::estimate::MESSAGE;
use crate::id::NpuId;
use crate::units::Time;

/// One dimension with the distance in ids between neighbours along it.
#[derive(Clone, Copy)]
struct Axis {
    size: usize,
    stride: usize,
    closes: bool,
    time: Time,
}

/// Cyclic orders of all NPUs, one for each dimension that can close the cycle.
///
/// A product is seen as rows (the closing dimension) times columns (a path through all others, the
/// fastest of them innermost). Where the closing dimension is a cycle, or its size is even, one
/// column leads back and a snake fills the rest, so that each hop is along one dimension. Where every
/// dimension is a line of odd size no such cycle exists; one corner is then reached by a hop of two.
pub(super) fn cycles(dimensions: &[Dimension]) -> Vec<Vec<NpuId>> {
    let axes = axes(dimensions);
    let can_close = |axis: &Axis| axis.closes || axis.size.is_multiple_of(2);
    let any_closes = axes.iter().any(can_close);
    let mut orders = Vec::new();
    for (i, &closing) in axes.iter().enumerate() {
        if any_closes && !can_close(&closing) {
            continue;
        }
        let mut others = axes.clone();
        others.remove(i);
        let columns = snake(&mut others);
        let order = if closing.closes {
            closed_by_ring(closing, &columns)
        } else if columns.len() == 1 {
            there_and_back(closing)
        } else if closing.size % 2 == 0 {
            closed_by_rows(0, closing, &columns)
        } else {
            odd_by_odd(closing, &columns)
        };
        orders.push(to_ids(order));
    }
    orders
}

/// Returns all NPUs from `first` to and fro along the dimensions; `None` where there are none or `first` is inside one
/// that does not close.
pub(super) fn path(dimensions: &[Dimension], first: NpuId) -> Option<Vec<NpuId>> {
    let mut axes = axes(dimensions);
    let coordinate = |axis: &Axis| first.index() / axis.stride % axis.size;
    let inside = |axis: &Axis| !axis.closes && ![0, axis.size - 1].contains(&coordinate(axis));
    if axes.is_empty() || axes.iter().any(inside) {
        return None;
    }
    let moved = axes.clone();
    let order = snake(&mut axes);
    let place = |id: usize| {
        let along = |axis: &Axis| {
            let at = id / axis.stride % axis.size;
            let start = coordinate(axis);
            let to = if axis.closes {
                (at + start) % axis.size
            } else {
                at.abs_diff(start)
            };
            to * axis.stride
        };
        moved.iter().map(along).sum()
    };
    Some(to_ids(order.into_iter().map(place).collect()))
}

fn axes(dimensions: &[Dimension]) -> Vec<Axis> {
    let mut stride = 1;
    let mut axes = Vec::new();
    for dimension in dimensions {
        let size = dimension.size as usize;
        let links = if dimension.kind == DimensionKind::Switch {
            2
        } else {
            1
        };
        let one = dimension.latency + dimension.bandwidth.transmission(MESSAGE);
        if size > 1 {
            axes.push(Axis {
                size,
                stride,
                closes: size > 2 && dimension.kind != DimensionKind::Line,
                time: std::iter::repeat_n(one, links).sum(),
            });
        }
        stride *= size;
    }
    axes
}

/// Returns a path through all points of some axes, to and fro, the fastest axis innermost; from 0.
fn snake(axes: &mut [Axis]) -> Vec<usize> {
    axes.sort_by_key(|axis| axis.time);
    let mut path = vec![0];
    for axis in axes {
        let line = std::mem::take(&mut path);
        for i in 0..axis.size {
            let shifted = |&point: &usize| point + i * axis.stride;
            if i % 2 == 0 {
                path.extend(line.iter().map(shifted));
            } else {
                path.extend(line.iter().rev().map(shifted));
            }
        }
    }
    path
}

/// Up the columns at position 0 of the ring, then back row by row over its other positions: the last
/// row ends at position 1 or at the last one, and both are neighbours of position 0.
fn closed_by_ring(ring: Axis, columns: &[usize]) -> Vec<usize> {
    let mut order = columns.to_vec();
    for (k, &column) in columns.iter().rev().enumerate() {
        let at = |i: usize| column + i * ring.stride;
        if k % 2 == 0 {
            order.extend((1..ring.size).map(at));
        } else {
            order.extend((1..ring.size).rev().map(at));
        }
    }
    order
}

/// Rows `from..size`, an even number of them: the first in full, the others without column 0, then
/// back along column 0.
fn closed_by_rows(from: usize, rows: Axis, columns: &[usize]) -> Vec<usize> {
    let mut order = Vec::new();
    for row in from..rows.size {
        let at = |&column: &usize| column + row * rows.stride;
        match row - from {
            0 => order.extend(columns.iter().map(at)),
            k if k % 2 == 0 => order.extend(columns[1..].iter().map(at)),
            _ => order.extend(columns[1..].iter().rev().map(at)),
        }
    }
    let back = (from + 1..rows.size).rev();
    order.extend(back.map(|row| columns[0] + row * rows.stride));
    order
}

/// Returns a cycle over all rows but the first. The first row is added to it two by two, and its corner as a detour
/// between the first two points, which makes one hop of two links.
fn odd_by_odd(rows: Axis, columns: &[usize]) -> Vec<usize> {
    let base = closed_by_rows(1, rows, columns);
    let mut order = vec![base[0], columns[0]];
    for pair in 0..columns.len() / 2 {
        let (left, right) = (2 * pair + 1, 2 * pair + 2);
        order.extend([base[left], columns[left], columns[right], base[right]]);
    }
    order.extend(&base[columns.len()..]);
    order
}

/// Returns a line alone: every other point to the end, the rest on the way back.
fn there_and_back(line: Axis) -> Vec<usize> {
    let even = (0..line.size).step_by(2);
    let odd = (1..line.size).step_by(2).rev();
    even.chain(odd).map(|i| i * line.stride).collect()
}

fn to_ids(order: Vec<usize>) -> Vec<NpuId> {
    order.into_iter().map(NpuId::from).collect()
}
