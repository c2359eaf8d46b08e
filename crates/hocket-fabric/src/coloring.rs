//! Balanced edge colouring: no vertex of a bipartite multigraph has more edges of a colour than its
//! share.
//!
//! A vertex with d edges is cut into ceil(d / S) parts of S edges or fewer, heaviest first, and the
//! rest is a proper colouring with S colours. Each part then has one edge at most of a colour:
//! ceil(d / S) edges of any colour, and by weight at most the heaviest edge more than the mean, since
//! the edges of a part are no heavier than the mean of the part before.
//!
//! # Source
//! Proper colourings: Gabow and Kariv, Algorithms for edge coloring bipartite graphs and
//! multigraphs, SIAM J. Comput. 1982. Euler splits halve every degree; an odd number of colours is
//! rounded up, and the smallest colour class goes back edge by edge along alternating paths.

use crate::id::narrow;

const NONE: u32 = u32::MAX;

/// Returns a colour for each edge of a bipartite multigraph, such that no vertex has more of a colour than its share,
/// rounded up or down; of edges in `order`, heavy ones first, so that each vertex's are spread by weight as well.
pub(super) fn balanced(
    edges: &[[u32; 2]],
    mut order: Vec<u32>,
    vertices: usize,
    colors: usize,
) -> Vec<u32> {
    let (left, lefts) = cut(edges, &order, colors, vertices, 0);
    let (right, rights) = cut(edges, &order, colors, vertices, 1);
    let mut coloring = Coloring {
        ends: left.into_iter().zip(right).map(|(l, r)| [l, r]).collect(),
        vertices: [lefts, rights],
        colors: vec![0; edges.len()],
        partners: vec![[NONE; 2]; edges.len()],
        open: [vec![NONE; lefts], vec![NONE; rights]],
        half: vec![NONE_HALF; edges.len()],
        spare: Vec::new(),
    };
    coloring.color(&mut order, 0, narrow(colors));
    coloring.colors
}

/// Returns the part of each edge's vertex at one side, `colors` edges to a part, and how many there are.
fn cut(
    edges: &[[u32; 2]],
    order: &[u32],
    colors: usize,
    vertices: usize,
    side: usize,
) -> (Vec<u32>, usize) {
    let mut vertex = vec![0; edges.len()];
    let mut current = vec![(NONE, colors); vertices];
    let mut count = 0;
    for &i in order {
        let (at, held) = &mut current[edges[i as usize][side] as usize];
        if *held == colors {
            (*at, *held) = (count, 0);
            count += 1;
        }
        *held += 1;
        vertex[i as usize] = *at;
    }
    (vertex, count as usize)
}

const NONE_HALF: u8 = 2;

struct Coloring {
    ends: Vec<[u32; 2]>,
    vertices: [usize; 2],
    colors: Vec<u32>,
    /// The edge with which an edge shares a tour at either end; for `split`.
    partners: Vec<[u32; 2]>,
    /// The edge at a vertex that waits for a partner; for `split`, `NONE` between calls.
    open: [Vec<u32>; 2],
    /// The half in which an edge is; for `split`, `NONE_HALF` between calls.
    half: Vec<u8>,
    spare: Vec<u32>,
}

impl Coloring {
    /// Colours edges of which no vertex has more than `colors`, from `first` upwards.
    fn color(&mut self, edges: &mut [u32], first: u32, colors: u32) {
        if edges.is_empty() {
            return;
        }
        if colors == 1 {
            for &edge in edges.iter() {
                self.colors[edge as usize] = first;
            }
            return;
        }
        let half = colors.div_ceil(2);
        let middle = self.split(edges);
        let (low, high) = edges.split_at_mut(middle);
        self.color(low, first, half);
        self.color(high, first + half, half);
        if colors % 2 == 1 {
            self.drop_a_color(edges, first, colors);
        }
    }

    /// Puts the edges of one half of an Euler split first, and says how many they are.
    ///
    /// Edges at a vertex are paired, all but one where there is an odd number. Pairs link the edges
    /// to paths and closed tours, whose edges go to the halves in turn; as ends alternate too, a
    /// closed tour is even.
    fn split(&mut self, edges: &mut [u32]) -> usize {
        for &edge in edges.iter() {
            for side in 0..2 {
                let open = &mut self.open[side][self.ends[edge as usize][side] as usize];
                match *open {
                    NONE => {
                        *open = edge;
                        self.partners[edge as usize][side] = NONE;
                    }
                    other => {
                        *open = NONE;
                        self.partners[edge as usize][side] = other;
                        self.partners[other as usize][side] = edge;
                    }
                }
            }
        }
        for &edge in edges.iter() {
            let [left, right] = self.ends[edge as usize];
            self.open[0][left as usize] = NONE;
            self.open[1][right as usize] = NONE;
        }
        for &edge in edges.iter() {
            if self.half[edge as usize] == NONE_HALF {
                self.half[edge as usize] = 0;
                self.walk(edge, 0);
                self.walk(edge, 1);
            }
        }
        self.spare.clear();
        let mut middle = 0;
        for i in 0..edges.len() {
            let edge = edges[i];
            match std::mem::replace(&mut self.half[edge as usize], NONE_HALF) {
                0 => {
                    edges[middle] = edge;
                    middle += 1;
                }
                _ => self.spare.push(edge),
            }
        }
        edges[middle..].copy_from_slice(&self.spare);
        middle
    }

    /// Assigns the edges of a tour their halves, from one that has its own.
    fn walk(&mut self, start: u32, mut side: usize) {
        let mut half = 0;
        let mut edge = self.partners[start as usize][side];
        while edge != NONE && self.half[edge as usize] == NONE_HALF {
            half = 1 - half;
            side = 1 - side;
            self.half[edge as usize] = half;
            edge = self.partners[edge as usize][side];
        }
    }

    /// From `colors + 1` colours to `colors`: the smallest class goes back along alternating paths.
    fn drop_a_color(&mut self, edges: &[u32], first: u32, colors: u32) {
        let width = colors as usize;
        let mut sizes = vec![0usize; width + 1];
        for &edge in edges {
            sizes[(self.colors[edge as usize] - first) as usize] += 1;
        }
        let smallest = narrow((0..=width).min_by_key(|&color| sizes[color]).unwrap_or(0));
        let mut table = Table {
            width,
            at: self.vertices.map(|vertices| vec![NONE; vertices * width]),
        };
        let mut uncolored = Vec::with_capacity(sizes[smallest as usize]);
        for &edge in edges {
            let color = match self.colors[edge as usize] - first {
                color if color == smallest => {
                    uncolored.push(edge);
                    continue;
                }
                color if color == colors => smallest,
                color => color,
            };
            self.set(&mut table, edge, color);
        }
        for edge in uncolored {
            let color = self.make_room(&mut table, edge);
            self.set(&mut table, edge, color);
        }
        for &edge in edges {
            self.colors[edge as usize] += first;
        }
    }

    fn set(&mut self, table: &mut Table, edge: u32, color: u32) {
        self.colors[edge as usize] = color;
        for side in 0..2 {
            *table.slot(side, self.ends[edge as usize][side], color) = edge;
        }
    }

    /// Returns a colour that is free at both ends of an edge, after a path from its right end has swapped its two
    /// colours if need be. The path cannot come to the left end, where one is free.
    fn make_room(&mut self, table: &mut Table, edge: u32) -> u32 {
        let [left, right] = self.ends[edge as usize];
        let wanted = table.free(0, left);
        let other = table.free(1, right);
        let mut path = Vec::new();
        let (mut side, mut vertex, mut color) = (1, right, wanted);
        loop {
            let next = *table.slot(side, vertex, color);
            if next == NONE {
                break;
            }
            path.push(next);
            side = 1 - side;
            vertex = self.ends[next as usize][side];
            color = if color == wanted { other } else { wanted };
        }
        for &moved in &path {
            for side in 0..2 {
                let end = self.ends[moved as usize][side];
                *table.slot(side, end, self.colors[moved as usize]) = NONE;
            }
        }
        for &moved in &path {
            let swapped = if self.colors[moved as usize] == wanted {
                other
            } else {
                wanted
            };
            self.set(table, moved, swapped);
        }
        wanted
    }
}

/// The edge of each colour at each vertex.
struct Table {
    width: usize,
    at: [Vec<u32>; 2],
}

impl Table {
    fn slot(&mut self, side: usize, vertex: u32, color: u32) -> &mut u32 {
        &mut self.at[side][vertex as usize * self.width + color as usize]
    }

    fn free(&self, side: usize, vertex: u32) -> u32 {
        let start = vertex as usize * self.width;
        let row = &self.at[side][start..start + self.width];
        let free = row.iter().position(|&edge| edge == NONE);
        narrow(free.expect("a vertex has fewer coloured edges than there are colours"))
    }
}
