//! What is to be run: nodes of actors, what they wait for, and the calls that join them.

use crate::explain::Explain;
use crate::id::narrow;

/// Marks a node that is not part of a call, or an actor without a station.
pub(crate) const NONE: u32 = u32::MAX;

/// Passes of layers, over all micro-batches and iterations, that a graph of training has at most.
pub(super) const MAX_PASSES: u128 = 1 << 22;

/// The part of an actor that a node keeps busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Engine {
    /// The actor's compute engine: one node at a time, of those ready the first.
    Compute = 0,
    /// Beside it, likewise one at a time: a host, or copies in memory.
    Beside = 1,
    /// Nothing: it takes its time as soon as it may.
    Nothing = 2,
}

/// Which of an actor's calls is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// The one that began first; of those that began together, the one of least number.
    #[default]
    Fifo,
    /// The one that began last; of those that began together, the one of greatest number.
    Lifo,
}

/// The nodes, as columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nodes {
    /// Actor that owns each node.
    pub actor: Vec<u32>,
    /// [`Engine`] that each node keeps busy, as its number; nodes of calls keep only servers busy.
    pub engine: Vec<u8>,
    /// Duration of each node in picoseconds; 0 for nodes of calls.
    pub time_ps: Vec<u64>,
    /// Call that each node takes part in, or `u32::MAX`.
    pub call: Vec<u32>,
}

/// What each node waits for: those of node `n` are `of[first[n]..first[n + 1]]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deps {
    /// Start of each node's list in `of`, and the end of the last list.
    pub first: Vec<u32>,
    /// Nodes that are waited for.
    pub of: Vec<u32>,
}

impl Deps {
    pub(super) fn get(&self, node: usize) -> &[u32] {
        &self.of[self.first[node] as usize..self.first[node + 1] as usize]
    }
}

/// The collectives and messages, as columns. Members of call `c` are `members[first[c]..first[c + 1]]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    /// Shape of each call, as its position among the shapes.
    pub shape: Vec<u32>,
    /// Priority of each call: the least is served first, whatever the [`Order`].
    pub priority: Vec<u32>,
    /// How many of its members, the first ones, must be ready for it to begin; their actors' servers do
    /// the work. A message needs its sender alone.
    pub starters: Vec<u32>,
    /// Start of each call's list in `members`, and the end of the last list.
    pub first: Vec<u32>,
    /// Nodes that take part, call by call.
    pub members: Vec<u32>,
}

impl Calls {
    /// Returns the number of calls.
    pub fn len(&self) -> usize {
        self.shape.len()
    }

    /// Returns `true` if there are no calls.
    pub fn is_empty(&self) -> bool {
        self.shape.is_empty()
    }

    pub(super) fn members(&self, call: usize) -> &[u32] {
        &self.members[self.first[call] as usize..self.first[call + 1] as usize]
    }

    pub(super) fn starters(&self, call: usize) -> &[u32] {
        &self.members(call)[..self.starters[call] as usize]
    }
}

/// Everything that is to be run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// Number of actors.
    pub actors: u32,
    /// The station, a set of servers, of each actor. Actors that are always in the same calls may share one:
    /// a call uses each station of its starters once.
    pub station: Vec<u32>,
    /// The nodes.
    pub nodes: Nodes,
    /// What the nodes wait for.
    pub deps: Deps,
    /// The collectives and messages that join nodes.
    pub calls: Calls,
}

/// Why a graph cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum GraphError {
    /// A column of the wrong length.
    #[explain(why("{column} has {entries} entries"), remedy("it needs {needed}"))]
    Column {
        /// Name of the column.
        column: &'static str,
        /// Number of its entries.
        entries: usize,
        /// Number of entries that it needs.
        needed: usize,
    },
    /// A number that names nothing, or names something twice.
    #[explain(
        why("{column}: entry {entry} is {value}"),
        remedy("give a number below {below}")
    )]
    Range {
        /// Name of the column.
        column: &'static str,
        /// Position in the column.
        entry: usize,
        /// The number at that position.
        value: u32,
        /// Number that it must be below.
        below: usize,
    },
    /// Nodes that wait for each other, or for a call that lacks one of them.
    #[explain(why(
        "node {node} of actor {actor} never runs: it waits for itself, or for a call that some node never joins"
    ))]
    Stuck {
        /// The first node that never runs.
        node: u32,
        /// Actor that owns the node.
        actor: u32,
    },
    /// Times whose sum overflows.
    #[explain(
        why("all nodes and calls one after the other could take longer than 46 days"),
        remedy("make sizes smaller, or bandwidths and speeds larger")
    )]
    TooLong,
    /// Stages that micro-batches cannot go through in turn.
    #[explain(
        why("stages have different numbers of pieces, or a piece has no layers"),
        remedy("give each as many; with several, a multiple of the stages as micro-batches")
    )]
    Stages,
    /// More passes than memory holds.
    #[explain(
        field("iterations"),
        why(
            "{} of {} micro-batches through {} layers are {} passes, more than {}",
            thousands(*iterations), thousands(*micro_batches), thousands(*layers), thousands(*passes),
            thousands(MAX_PASSES)
        ),
        remedy("give fewer")
    )]
    Passes {
        /// Number of iterations.
        iterations: u32,
        /// Micro-batches of an iteration.
        micro_batches: u32,
        /// Layers of all stages.
        layers: u32,
        /// Passes of all layers.
        passes: u128,
    },
    /// The run was asked to stop.
    #[explain(from)]
    Interrupted(crate::progress::Interrupted),
}

impl Graph {
    /// Checks that every number names something.
    pub(super) fn check(&self, shapes: usize) -> Result<(), GraphError> {
        let nodes = self.nodes.actor.len();
        let calls = self.calls.len();
        let size = |column, entries: usize, needed: usize| {
            if entries == needed {
                Ok(())
            } else {
                Err(GraphError::Column {
                    column,
                    entries,
                    needed,
                })
            }
        };
        let actors = self.actors as usize;
        size("station", self.station.len(), actors)?;
        size("engine", self.nodes.engine.len(), nodes)?;
        size("time_ps", self.nodes.time_ps.len(), nodes)?;
        size("call", self.nodes.call.len(), nodes)?;
        size("deps.first", self.deps.first.len(), nodes + 1)?;
        size("calls.priority", self.calls.priority.len(), calls)?;
        size("calls.starters", self.calls.starters.len(), calls)?;
        size("calls.first", self.calls.first.len(), calls + 1)?;
        below("actor", &self.nodes.actor, actors)?;
        below("station", &self.station, actors)?;
        below("deps.of", &self.deps.of, nodes)?;
        below("calls.shape", &self.calls.shape, shapes)?;
        below("calls.members", &self.calls.members, nodes)?;
        let joined: Vec<u32> = self
            .nodes
            .call
            .iter()
            .copied()
            .filter(|&c| c != NONE)
            .collect();
        below("call", &joined, calls)?;
        size("calls.members", self.calls.members.len(), joined.len())?;
        rows("deps.first", &self.deps.first, self.deps.of.len())?;
        rows("calls.first", &self.calls.first, self.calls.members.len())?;
        let mut is_member = vec![false; nodes];
        for call in 0..calls {
            let most = self.calls.members(call).len();
            let starters = self.calls.starters[call];
            if starters == 0 || starters as usize > most {
                return Err(GraphError::Range {
                    column: "calls.starters",
                    entry: call,
                    value: starters,
                    below: most + 1,
                });
            }
            for &node in self.calls.members(call) {
                let is_twice = std::mem::replace(&mut is_member[node as usize], true);
                if is_twice || self.nodes.call[node as usize] != narrow(call) {
                    return Err(GraphError::Range {
                        column: "calls.members",
                        entry: call,
                        value: node,
                        below: nodes,
                    });
                }
            }
        }
        Ok(())
    }
}

fn below(column: &'static str, values: &[u32], below: usize) -> Result<(), GraphError> {
    match values.iter().position(|&value| value as usize >= below) {
        None => Ok(()),
        Some(entry) => Err(GraphError::Range {
            column,
            entry,
            value: values[entry],
            below,
        }),
    }
}

/// Checks that rows follow each other and end where the column does.
fn rows(column: &'static str, first: &[u32], end: usize) -> Result<(), GraphError> {
    let falls = first.windows(2).position(|pair| pair[0] > pair[1]);
    let wrong = falls.or((first[0] != 0).then_some(0));
    let wrong = wrong.or((first[first.len() - 1] as usize != end).then_some(first.len() - 1));
    match wrong {
        None => Ok(()),
        Some(entry) => Err(GraphError::Range {
            column,
            entry,
            value: first[entry],
            below: end + 1,
        }),
    }
}

/// Returns a number with commas between thousands.
fn thousands(number: impl ToString) -> String {
    let digits = number.to_string();
    let comma = |place: usize| place > 0 && (digits.len() - place).is_multiple_of(3);
    let each = digits.char_indices();
    each.flat_map(|(place, digit)| comma(place).then_some(',').into_iter().chain([digit]))
        .collect()
}
