//! Links with those that lead back, and switches between them removed, so that only edges between NPUs are left.
//!
//! A switch passes on in both directions alike: a unit of the edge to one neighbour is joined to a unit of the edge to
//! another, which makes an edge between the two. The one with most left is joined first, so that little is left over at
//! the end. It is joined to one to which no faster links lead, as they do within a node. Of these it takes the one to
//! which it is least joined so far, node to node and NPU to NPU, so that edges are spread over all pairs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::bound::network::ArcNetwork;
use crate::id::LinkId;

/// Units of all edges of a switch that are joined one by one; beyond, more go at a time.
const MOST_JOINS: u64 = 1 << 12;

/// Links from one node to another, and those that lead back.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub ends: [u32; 2],
    /// From the first end to the second.
    pub there: Vec<LinkId>,
    pub back: Vec<LinkId>,
    /// Of the slowest link, or what is left of it.
    pub size: u64,
    /// Of the slowest link.
    pub rate: u64,
}

/// Links there and links back, with their bandwidths.
type Ways = [Vec<(u64, LinkId)>; 2];

impl Edge {
    /// The same from another of its ends.
    fn from(&self, node: u32) -> Self {
        if self.ends[0] == node {
            return self.clone();
        }
        Self {
            ends: [self.ends[1], self.ends[0]],
            there: self.back.clone(),
            back: self.there.clone(),
            ..*self
        }
    }

    fn other(&self, node: u32) -> u32 {
        self.ends[0] ^ self.ends[1] ^ node
    }

    /// One edge for two that meet at a node.
    fn joined(&self, next: &Self, at: u32, size: u64) -> Self {
        let (first, second) = (self.from(self.other(at)), next.from(at));
        let chain = |a: &[LinkId], b: &[LinkId]| a.iter().chain(b).copied().collect();
        Self {
            ends: [first.ends[0], second.ends[1]],
            there: chain(&first.there, &second.there),
            back: chain(&second.back, &first.back),
            size,
            rate: first.rate.min(second.rate),
        }
    }
}

/// Returns the links between the same devices, the fastest there with the fastest back.
pub(super) fn edges(network: &ArcNetwork) -> Vec<Edge> {
    let mut between: BTreeMap<[u32; 2], Ways> = BTreeMap::new();
    for (link, arc) in (0..).map(LinkId).zip(network.arcs()) {
        let ends = [arc.src.min(arc.dst), arc.src.max(arc.dst)];
        let way = usize::from(arc.src > arc.dst);
        let links = &mut between.entry(ends).or_default()[way];
        links.push((arc.capacity, link));
    }
    let mut edges = Vec::new();
    for (ends, mut links) in between {
        for way in &mut links {
            way.sort_by(|x, y| y.0.cmp(&x.0).then(x.1.cmp(&y.1)));
        }
        let [there, back] = links;
        edges.extend(there.into_iter().zip(back).map(|(there, back)| Edge {
            ends,
            there: vec![there.1],
            back: vec![back.1],
            size: there.0.min(back.0),
            rate: there.0.min(back.0),
        }));
    }
    edges
}

/// Edges between nodes below `ends` alone: each node from there on is removed, those with fewest neighbours first.
pub(super) fn without_switches(mut edges: Vec<Edge>, ends: usize) -> Vec<Edge> {
    loop {
        let mut near: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for edge in &edges {
            for node in edge.ends.into_iter().filter(|&node| node as usize >= ends) {
                near.entry(node).or_default().push(edge.other(node));
            }
        }
        let neighbours = |list: &[u32]| {
            let mut list = list.to_vec();
            list.sort_unstable();
            list.dedup();
            list.len()
        };
        let Some((&node, _)) = near.iter().min_by_key(|(_, list)| neighbours(list)) else {
            return edges;
        };
        edges = without(edges, node);
    }
}

/// What a neighbour of a switch has left: its edges, each with the size that is not joined yet.
struct Port {
    node: u32,
    left: u64,
    edges: Vec<(usize, u64)>,
}

fn without(edges: Vec<Edge>, switch: u32) -> Vec<Edge> {
    let (at, mut rest): (Vec<Edge>, Vec<Edge>) = edges
        .into_iter()
        .partition(|edge| edge.ends.contains(&switch));
    let mut ports: Vec<Port> = Vec::new();
    for (i, edge) in at.iter().enumerate() {
        let node = edge.other(switch);
        let place = ports.iter().position(|port| port.node == node);
        let place = place.unwrap_or_else(|| {
            ports.push(Port {
                node,
                left: 0,
                edges: Vec::new(),
            });
            ports.len() - 1
        });
        ports[place].left += edge.size;
        ports[place].edges.push((i, edge.size));
    }
    let cluster = clusters(&rest, at.iter().map(|edge| edge.rate).max().unwrap_or(0));
    let mut between = Between {
        cluster: &cluster,
        nodes: BTreeMap::new(),
        clusters: BTreeMap::new(),
    };
    for edge in &rest {
        between.add(edge.ends, edge.size);
    }
    // What each cluster has left: who has most must not be left with itself.
    let mut together: BTreeMap<u32, u64> = BTreeMap::new();
    for port in &ports {
        *together.entry(cluster(port.node)).or_default() += port.left;
    }
    let all: u64 = ports.iter().map(|port| port.left).sum();
    let quantum = all.div_ceil(MOST_JOINS).max(1);
    // By the two edges that are joined.
    let mut joined: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    loop {
        let of_cluster = |port: usize| together[&cluster(ports[port].node)];
        let most = |port: &usize| (of_cluster(*port), ports[*port].left);
        let open = (0..ports.len()).rev().filter(|&port| ports[port].left > 0);
        let Some(a) = open.max_by_key(most) else {
            break;
        };
        let least = |port: &usize| {
            let (a, b) = (ports[a].node, ports[*port].node);
            let is_near = cluster(a) == cluster(b);
            let most = Reverse((of_cluster(*port), ports[*port].left));
            (is_near, between.so_far([a, b]), most)
        };
        let others = (0..ports.len()).filter(|&b| b != a && ports[b].left > 0);
        let Some(b) = others.min_by_key(least) else {
            break;
        };
        let (first, second) = (last(&ports[a]), last(&ports[b]));
        let size = quantum.min(first.1).min(second.1);
        if size == 0 {
            break;
        }
        *joined.entry((first.0, second.0)).or_default() += size;
        between.add([ports[a].node, ports[b].node], size);
        for port in [a, b] {
            take(&mut ports[port], size);
            *together.entry(cluster(ports[port].node)).or_default() -= size;
        }
    }
    rest.extend(
        joined
            .into_iter()
            .map(|((a, b), size)| at[a].joined(&at[b], switch, size)),
    );
    rest
}

/// How much joins clusters, and how much nodes.
struct Between<F> {
    cluster: F,
    nodes: BTreeMap<[u32; 2], u64>,
    clusters: BTreeMap<[u32; 2], u64>,
}

impl<F: Fn(u32) -> u32> Between<F> {
    fn keys(&self, ends: [u32; 2]) -> [[u32; 2]; 2] {
        let clusters = ends.map(|end| (self.cluster)(end));
        [clusters, ends].map(|[a, b]| [a.min(b), a.max(b)])
    }

    fn add(&mut self, ends: [u32; 2], size: u64) {
        let [clusters, nodes] = self.keys(ends);
        *self.clusters.entry(clusters).or_default() += size;
        *self.nodes.entry(nodes).or_default() += size;
    }

    fn so_far(&self, ends: [u32; 2]) -> (u64, u64) {
        let [clusters, nodes] = self.keys(ends);
        let of = |sums: &BTreeMap<[u32; 2], u64>, key| sums.get(&key).copied().unwrap_or(0);
        (of(&self.clusters, clusters), of(&self.nodes, nodes))
    }
}

/// Returns for each node the others to which faster edges lead: the first of those.
fn clusters(edges: &[Edge], rate: u64) -> impl Fn(u32) -> u32 + use<> {
    let mut first: BTreeMap<u32, u32> = BTreeMap::new();
    let find = |first: &BTreeMap<u32, u32>, mut node: u32| {
        while let Some(&next) = first.get(&node).filter(|&&next| next != node) {
            node = next;
        }
        node
    };
    for edge in edges.iter().filter(|edge| edge.rate > rate) {
        let [a, b] = edge.ends.map(|end| find(&first, end));
        first.insert(a.max(b), a.min(b));
    }
    move |node| find(&first, node)
}

/// Returns the edge of a port that is joined next, with what it has left; nothing where none has.
fn last(port: &Port) -> (usize, u64) {
    port.edges.last().copied().unwrap_or((0, 0))
}

fn take(port: &mut Port, size: u64) {
    port.left -= size;
    if let Some((_, left)) = port.edges.last_mut() {
        *left -= size;
        if *left == 0 {
            port.edges.pop();
        }
    }
}
