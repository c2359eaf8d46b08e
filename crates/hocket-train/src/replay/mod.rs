//! A trace as a graph that any network can run: [`Replay`].
//!
//! Computation is recorded or follows from rates; what a collective or a message takes is for the network to
//! say: it gives a [`Shape`] for each distinct one ([`Replay::collectives`], [`Replay::messages`]).

mod stations;
mod stuck;

use std::collections::HashMap;

use crate::explain::Explain;
use crate::id::narrow;
use crate::iteration::{
    self, Calls, Deps, Engine, Graph, GraphError, Nodes, Order, Outcome, Shape,
};
use crate::progress::Progress;
use crate::trace::{CallKind, NONE, NodeKind, Trace};
use stations::stations;

/// What an NPU does in a second, where a trace says how much a computation is and not how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Operations per second.
    pub operations: u64,
    /// Bytes per second that memory reads or writes; `None`: memory never limits.
    pub bytes: Option<u64>,
}

/// Collectives, each distinct one once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collectives {
    /// Kind of each collective.
    pub kind: Vec<CallKind>,
    /// Participants of each collective, as a row of the trace's groups.
    pub group: Vec<u32>,
    /// Size of each, in bytes.
    pub size: Vec<u64>,
}

/// Messages, each distinct one once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// Rank that sends each message.
    pub source: Vec<u32>,
    /// Rank that receives each message.
    pub target: Vec<u32>,
    /// Size of each, in bytes.
    pub size: Vec<u64>,
}

/// A trace made ready to be run: node n of the graph is row n, actors are ranks.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The graph. Calls are those of the trace, then its sends. The shape of each is its place among the
    /// collectives, or, after them, among the messages.
    pub graph: Graph,
    /// Every distinct collective of the trace.
    pub collectives: Collectives,
    /// Every distinct message of the trace.
    pub messages: Messages,
}

/// Why a trace cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum ReplayError {
    /// Ranks wait for each other.
    #[explain(
        origin("rank {}", waits.rank),
        why(
            "node {} {:?} never ends: it waits for node {} {:?} of rank {}, which never starts",
            waits.id, waits.name, other.id, other.name, other.rank
        ),
        remedy("ranks wait for each other: check the order of their calls")
    )]
    Stuck {
        /// A node that is ready for its call.
        waits: Box<Place>,
        /// A node of the call that never is.
        other: Box<Place>,
    },
    /// The trace's graph cannot be run for another reason.
    #[explain(from)]
    Graph(GraphError),
}

/// A node as messages name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Rank that the node belongs to.
    pub rank: u32,
    /// Number of the node in its file.
    pub id: u64,
    /// Name of the node.
    pub name: String,
}

impl Replay {
    /// Makes the graph of a trace.
    ///
    /// A computation takes its recorded time, or, where that is 0, the longer of its operations and its bytes
    /// at these rates, rounded up. So does a memory node. Those of a CPU and of memory go on beside the
    /// NPU's. Metadata takes no time, and a collective that does not say what it does its recorded time;
    /// neither keeps anything busy. Of calls, those of greatest `comm_priority` are served first.
    ///
    /// Ranks that take part in the same calls share a station.
    ///
    /// # Complexity
    /// Linear.
    pub fn new(trace: &Trace, rates: Rates) -> Self {
        let mut calls = CallMaker::default();
        let mut collectives = Collectives::default();
        let mut messages = Messages::default();
        calls.collectives(trace, &mut collectives);
        let before = narrow(collectives.kind.len());
        let mut call = trace.call.clone();
        calls.messages(trace, before, &mut messages, &mut call);
        Self {
            graph: Graph {
                actors: narrow(trace.ranks()),
                station: stations(trace),
                nodes: nodes(trace, rates, call),
                deps: Deps {
                    first: trace.dependency_first.clone(),
                    of: trace.dependencies.clone(),
                },
                calls: calls.made,
            },
            collectives,
            messages,
        }
    }

    /// Runs it. `shape_of`: of each collective, then of each message, its place among the shapes.
    ///
    /// # Errors
    /// [`ReplayError`]: ranks wait for each other, or as [`iteration::run`].
    ///
    /// # Complexity
    /// As [`iteration::run`].
    pub fn run(
        &self,
        trace: &Trace,
        shape_of: &[u32],
        shapes: &[Shape],
        order: Order,
        progress: &mut dyn Progress,
    ) -> Result<(Graph, Outcome), ReplayError> {
        let needed = self.collectives.kind.len() + self.messages.size.len();
        if shape_of.len() != needed {
            return Err(ReplayError::Graph(GraphError::Column {
                column: "shape_of",
                entries: shape_of.len(),
                needed,
            }));
        }
        let mut graph = self.graph.clone();
        for shape in &mut graph.calls.shape {
            *shape = shape_of[*shape as usize];
        }
        match iteration::run(&graph, shapes, order, progress) {
            Ok(outcome) => Ok((graph, outcome)),
            Err(GraphError::Stuck { node, actor }) => Err(stuck::explain(trace, &graph, node)
                .unwrap_or(ReplayError::Graph(GraphError::Stuck { node, actor }))),
            Err(other) => Err(other.into()),
        }
    }
}

/// Makes calls one by one.
struct CallMaker {
    made: Calls,
}

impl Default for CallMaker {
    fn default() -> Self {
        let first = vec![0];
        let made = Calls {
            first,
            ..Calls::default()
        };
        Self { made }
    }
}

impl CallMaker {
    fn collectives(&mut self, trace: &Trace, found: &mut Collectives) {
        let mut known: HashMap<(CallKind, u32, u64), u32> = HashMap::new();
        for call in 0..trace.calls.len() {
            let kind = trace.calls.kind[call];
            let (group, size) = (trace.calls.group[call], trace.calls.size[call]);
            let next = narrow(known.len());
            let shape = *known.entry((kind, group, size)).or_insert(next);
            if shape == next {
                found.kind.push(kind);
                found.group.push(group);
                found.size.push(size);
            }
            let members = trace.calls.nodes_of(narrow(call));
            self.push(trace, shape, narrow(members.len()), members);
        }
    }

    /// Makes calls of sends, whose numbers in the columns of shapes begin at `before`.
    fn messages(&mut self, trace: &Trace, before: u32, found: &mut Messages, call: &mut [u32]) {
        let mut known: HashMap<(u32, u32, u64), u32> = HashMap::new();
        for rank in 0..narrow(trace.ranks()) {
            for row in trace.rank_first[rank as usize]..trace.rank_first[rank as usize + 1] {
                let at = row as usize;
                if trace.kind[at] != NodeKind::Send {
                    continue;
                }
                let (target, size) = (trace.peer[at], trace.bytes[at]);
                let next = narrow(known.len());
                let shape = *known.entry((rank, target, size)).or_insert(next);
                if shape == next {
                    found.source.push(rank);
                    found.target.push(target);
                    found.size.push(size);
                }
                let partner = trace.partner[at];
                let number = narrow(self.made.len());
                (call[at], call[partner as usize]) = (number, number);
                self.push(trace, before + shape, 1, &[row, partner]);
            }
        }
    }

    fn push(&mut self, trace: &Trace, shape: u32, starters: u32, members: &[u32]) {
        let most = members
            .iter()
            .map(|&node| trace.priority[node as usize])
            .max();
        self.made.shape.push(shape);
        self.made.priority.push(u32::MAX - most.unwrap_or(0));
        self.made.starters.push(starters);
        self.made.members.extend_from_slice(members);
        self.made.first.push(narrow(self.made.members.len()));
    }
}

fn nodes(trace: &Trace, rates: Rates, call: Vec<u32>) -> Nodes {
    let spans = trace.rank_first.windows(2).zip(0u32..);
    let actor = spans.flat_map(|(span, rank)| (span[0]..span[1]).map(move |_| rank));
    let rows = 0..trace.len();
    Nodes {
        actor: actor.collect(),
        engine: rows.clone().map(|row| engine(trace, row) as u8).collect(),
        time_ps: rows.map(|row| time_ps(trace, rates, row)).collect(),
        call,
    }
}

fn engine(trace: &Trace, row: usize) -> Engine {
    match trace.kind[row] {
        NodeKind::Compute if trace.is_cpu[row] == 0 => Engine::Compute,
        NodeKind::Compute | NodeKind::MemoryLoad | NodeKind::MemoryStore => Engine::Beside,
        _ => Engine::Nothing,
    }
}

fn time_ps(trace: &Trace, rates: Rates, row: usize) -> u64 {
    let recorded = trace.duration[row].as_ps();
    match trace.kind[row] {
        NodeKind::Compute | NodeKind::MemoryLoad | NodeKind::MemoryStore if recorded == 0 => {
            let computing = at_rate(trace.operations[row], rates.operations);
            let moving = rates
                .bytes
                .map_or(0, |rate| at_rate(trace.tensor_bytes[row], rate));
            computing.max(moving)
        }
        NodeKind::Compute | NodeKind::MemoryLoad | NodeKind::MemoryStore => recorded,
        NodeKind::Collective if trace.call[row] == NONE => recorded,
        _ => 0,
    }
}

/// Picoseconds for so much at a rate for a second, rounded up; the most that 64 bits tell if it is longer.
fn at_rate(amount: u64, rate: u64) -> u64 {
    const SECOND: u128 = 1_000_000_000_000;
    let time = (u128::from(amount) * SECOND).div_ceil(u128::from(rate.max(1)));
    u64::try_from(time).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
