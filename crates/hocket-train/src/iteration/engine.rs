//! Runs a graph, event by event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Shape;
use super::graph::{Engine, Graph, GraphError, NONE, Order};
use super::station::{Call, Station};
use crate::graph::Lists;
use crate::id::narrow;
use crate::progress::{Interrupted, Progress};

/// Times of everything, in picoseconds from the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Time at which each node began to compute; for a node of a call, the time at which it was ready for it.
    pub start_ps: Vec<u64>,
    /// Time at which each node ended.
    pub end_ps: Vec<u64>,
    /// Time at which each call began, which is when its starters were ready.
    pub call_start_ps: Vec<u64>,
    /// Time at which each call ended.
    pub call_end_ps: Vec<u64>,
    /// Time at which the last node ended.
    pub finish_ps: u64,
}

/// Nodes and calls may take this long one after the other.
pub(super) const LONGEST_PS: u128 = 4_000_000_000_000_000_000;

/// Runs a graph on shapes.
///
/// A node begins when all that it waits for has ended. One that computes, when its engine is free as well,
/// which takes the first (by number) of those that may begin. A call begins when its starters are ready; its
/// other members end with it, or when they are ready if that is later. One that takes no time waits for no
/// server, and ends before engines choose what they begin.
///
/// # Errors
/// If the graph is not whole, nodes wait for each other, or it is asked to stop.
///
/// # Complexity
/// O((nodes + dependencies) x log nodes), and a step of a shape for each that is served while several calls
/// share a station.
pub fn run(
    graph: &Graph,
    shapes: &[Shape],
    order: Order,
    progress: &mut dyn Progress,
) -> Result<Outcome, GraphError> {
    graph.check(shapes.len())?;
    let nodes: u128 = graph
        .nodes
        .time_ps
        .iter()
        .map(|&time| u128::from(time))
        .sum();
    let lone = |&shape: &u32| u128::from(shapes[shape as usize].lone_ps());
    let calls: u128 = graph.calls.shape.iter().map(lone).sum();
    // Calls that share servers take no longer than one after the other, but for rounding.
    if nodes + 2 * calls > LONGEST_PS {
        return Err(GraphError::TooLong);
    }
    let mut engine = Run::new(graph, shapes, order);
    engine.go(progress)?;
    match engine.left.iter().position(|&left| left != DONE) {
        None => Ok(engine.out),
        Some(node) => Err(GraphError::Stuck {
            node: narrow(node),
            actor: graph.nodes.actor[node],
        }),
    }
}

/// In `left`: the node has ended.
const DONE: u32 = u32::MAX;

/// An event: time; what it is, in the order in which things happen at one moment; and the number of the
/// node, call, station or engine.
type Event = Reverse<(u64, u8, u32)>;
/// A node ends.
const NODE: u8 = 0;
/// A call that takes no time ends.
const CALL: u8 = 1;
/// A message arrives at a station.
const ARRIVAL: u8 = 2;
/// An engine may begin a node.
const CHOICE: u8 = 3;
/// A station takes a step.
const SERVICE: u8 = 4;
const NO_EVENT: (u64, u8) = (u64::MAX, ARRIVAL);

struct Run<'a> {
    graph: &'a Graph,
    shapes: &'a [Shape],
    order: Order,
    out: Outcome,
    /// Of each node, what it still waits for; [`DONE`] in the end.
    left: Vec<u32>,
    /// Nodes that wait for each.
    waiting: Lists<u32>,
    /// Of each call: starters that are not ready, then stations that are not done.
    call_left: Vec<u32>,
    call_state: Vec<CallState>,
    /// Of each actor, for both engines: nodes that may begin, and whether it is busy.
    queues: Vec<BinaryHeap<Reverse<u32>>>,
    busy: Vec<bool>,
    /// Whether each node is ready for its call.
    is_ready: Vec<bool>,
    stations: Vec<Station>,
    /// Each station's event in the queue.
    due: Vec<(u64, u8)>,
    events: BinaryHeap<Event>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CallState {
    Waits,
    Runs,
    Ended,
}

impl<'a> Run<'a> {
    fn new(graph: &'a Graph, shapes: &'a [Shape], order: Order) -> Self {
        let nodes = graph.nodes.actor.len();
        let calls = graph.calls.len();
        Self {
            graph,
            shapes,
            order,
            out: Outcome {
                start_ps: vec![0; nodes],
                end_ps: vec![0; nodes],
                call_start_ps: vec![0; calls],
                call_end_ps: vec![0; calls],
                finish_ps: 0,
            },
            left: graph
                .deps
                .first
                .windows(2)
                .map(|row| row[1] - row[0])
                .collect(),
            waiting: reversed(graph),
            call_left: graph.calls.starters.clone(),
            call_state: vec![CallState::Waits; calls],
            queues: vec![BinaryHeap::new(); 2 * graph.actors as usize],
            busy: vec![false; 2 * graph.actors as usize],
            is_ready: vec![false; nodes],
            stations: (0..graph.actors).map(|_| Station::default()).collect(),
            due: vec![NO_EVENT; graph.actors as usize],
            events: BinaryHeap::new(),
        }
    }

    fn go(&mut self, progress: &mut dyn Progress) -> Result<(), Interrupted> {
        let mut done = 0u64;
        for node in 0..self.left.len() {
            if self.left[node] == 0 {
                self.ready(node, 0);
            }
        }
        let total = self.left.len() as u64;
        let mut count = 0u64;
        while let Some(Reverse((now, kind, number))) = self.events.pop() {
            count += 1;
            if count.is_multiple_of(1 << 16) && !progress.report("iterate", done, total) {
                return Err(Interrupted);
            }
            match kind {
                NODE => {
                    done += 1;
                    self.computed(number as usize, now);
                }
                CALL => done += self.served(number as usize, now),
                CHOICE => self.choose(number as usize, now),
                _ => done += self.step(number as usize, now, kind),
            }
        }
        Ok(())
    }

    /// Returns a station's event; gives how many nodes end with it.
    fn step(&mut self, station: usize, now: u64, kind: u8) -> u64 {
        if self.due[station] != (now, kind) {
            return 0;
        }
        self.due[station] = NO_EVENT;
        let ended = self.stations[station].step(self.shapes);
        self.note(station);
        ended.map_or(0, |call| self.served(call as usize, now))
    }

    /// All that a node waits for has ended.
    fn ready(&mut self, node: usize, now: u64) {
        let call = self.graph.nodes.call[node];
        if call != NONE {
            self.join(node, call as usize, now);
            return;
        }
        match self.engine(node) {
            None => self.begin(node, now),
            Some(engine) => {
                self.queues[engine].push(Reverse(narrow(node)));
                if !self.busy[engine] {
                    self.events.push(Reverse((now, CHOICE, narrow(engine))));
                }
            }
        }
    }

    /// Returns the engine that a node keeps busy; none of a call's.
    fn engine(&self, node: usize) -> Option<usize> {
        let engine = self.graph.nodes.engine[node];
        let actor = self.graph.nodes.actor[node] as usize;
        let is_free = engine >= Engine::Nothing as u8 || self.graph.nodes.call[node] != NONE;
        (!is_free).then(|| 2 * actor + usize::from(engine))
    }

    fn choose(&mut self, engine: usize, now: u64) {
        if self.busy[engine] {
            return;
        }
        if let Some(Reverse(node)) = self.queues[engine].pop() {
            self.busy[engine] = true;
            self.begin(node as usize, now);
        }
    }

    fn begin(&mut self, node: usize, now: u64) {
        self.out.start_ps[node] = now;
        let end = now + self.graph.nodes.time_ps[node];
        self.events.push(Reverse((end, NODE, narrow(node))));
    }

    /// A node that computes has ended.
    fn computed(&mut self, node: usize, now: u64) {
        self.end(node, now);
        if let Some(engine) = self.engine(node) {
            self.busy[engine] = false;
            self.events.push(Reverse((now, CHOICE, narrow(engine))));
        }
    }

    /// A node has ended: those that wait for it may be ready.
    fn end(&mut self, node: usize, now: u64) {
        self.out.end_ps[node] = now;
        self.out.finish_ps = self.out.finish_ps.max(now);
        self.left[node] = DONE;
        for i in 0..self.waiting.get(node).len() {
            let next = self.waiting.get(node)[i] as usize;
            self.left[next] -= 1;
            if self.left[next] == 0 {
                self.ready(next, now);
            }
        }
    }

    /// A node is ready for its call.
    fn join(&mut self, node: usize, call: usize, now: u64) {
        self.out.start_ps[node] = now;
        self.is_ready[node] = true;
        if self.call_state[call] == CallState::Ended {
            // Through the queue: those that wait for each other in a row are no recursion.
            self.events.push(Reverse((now, NODE, narrow(node))));
            return;
        }
        if self.graph.calls.starters(call).contains(&narrow(node)) {
            self.call_left[call] -= 1;
            if self.call_left[call] == 0 {
                self.start(call, now);
            }
        }
    }

    fn start(&mut self, call: usize, now: u64) {
        self.out.call_start_ps[call] = now;
        self.call_state[call] = CallState::Runs;
        let shape = self.graph.calls.shape[call];
        if self.shapes[shape as usize].lone_ps() == 0 {
            self.call_left[call] = 1;
            self.events.push(Reverse((now, CALL, narrow(call))));
            return;
        }
        let turn = match self.order {
            Order::Fifo => (u128::from(now) << 32) | call as u128,
            Order::Lifo => (u128::from(!now) << 32) | u128::from(!narrow(call)),
        };
        let admitted = Call {
            number: narrow(call),
            shape,
            rank: u128::from(self.graph.calls.priority[call]) << 96 | turn,
        };
        let starters = self.graph.calls.starters(call);
        let station =
            |&node: &u32| self.graph.station[self.graph.nodes.actor[node as usize] as usize];
        let mut stations: Vec<u32> = starters.iter().map(station).collect();
        stations.sort_unstable();
        stations.dedup();
        self.call_left[call] = narrow(stations.len());
        for station in stations {
            self.stations[station as usize].start(admitted, now, self.shapes);
            self.note(station as usize);
        }
    }

    /// Puts a station's next event into the queue, unless it is there.
    fn note(&mut self, station: usize) {
        let (time, is_service) = self.stations[station].next_event(self.shapes);
        let next = (time, if is_service { SERVICE } else { ARRIVAL });
        if time < u64::MAX && next != self.due[station] {
            self.due[station] = next;
            self.events.push(Reverse((next.0, next.1, narrow(station))));
        }
    }

    /// A call has ended on a station; gives how many nodes ended with it.
    fn served(&mut self, call: usize, now: u64) -> u64 {
        self.call_left[call] -= 1;
        if self.call_left[call] > 0 {
            return 0;
        }
        self.out.call_end_ps[call] = now;
        self.call_state[call] = CallState::Ended;
        let members = self.graph.calls.members(call).iter().copied();
        let ready: Vec<u32> = members
            .filter(|&node| self.is_ready[node as usize])
            .collect();
        for &node in &ready {
            self.end(node as usize, now);
        }
        ready.len() as u64
    }
}

/// Returns which nodes wait for each.
fn reversed(graph: &Graph) -> Lists<u32> {
    let nodes = graph.nodes.actor.len();
    let waits = |node: usize| {
        graph
            .deps
            .get(node)
            .iter()
            .map(move |&dep| (dep as usize, narrow(node)))
    };
    Lists::grouped(nodes, (0..nodes).flat_map(waits))
}
