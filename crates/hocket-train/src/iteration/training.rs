//! The graph of training: who computes what, when collectives are due, and who waits for them.

use std::collections::HashMap;
use std::iter::once;
use std::mem::take;

use super::graph::{Engine, Graph, GraphError, MAX_PASSES, NONE};
use crate::collective::CollectiveKind;
use crate::progress::{Interrupted, Progress};

macro_rules! named {
    ($(#[$doc:meta] $enum:ident { $($case:ident $name:literal),* })*) => {$(
        #[$doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $enum { $(#[doc = $name] $case),* }

        impl $enum {
            /// Names in the order of the numbers.
            pub const NAMES: &[&'static str] = &[$($name),*];
        }
    )*};
}
named! {
    /// The work that a node is part of.
    Pass {
        Forward "forward", Recompute "recompute", InputGradient "input gradient",
        WeightGradient "weight gradient", Update "update"
    }
    /// The purpose of a call.
    Cause { Data "data", Tensor "tensor", Pipeline "pipeline", Expert "expert", Table "table" }
    /// The NPUs of a collective: those that share layers, or experts, all replicas, or those with the same experts.
    Axis { Tensor "tp", Expert "ep", Data "dp", Replicas "replicas" }
}

/// What a call is; sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exchange {
    /// A collective of a group, and its size.
    Collective(CollectiveKind, Axis, u64),
    /// A message between two stages, and its size.
    Message(u32, u32, u64),
}

/// A layer on an NPU, for a micro-batch. Sizes are in bytes; 0 where nothing is exchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    /// Times of the forward pass and of both gradients in picoseconds; `None` where one is not computed.
    pub times_ps: [Option<u64>; 3],
    /// What tensor parallelism sums of its outputs.
    pub outputs_summed: u64,
    /// What it sums of the gradient of its inputs. `None` if these are not summed.
    pub inputs_summed: Option<u64>,
    /// What goes to experts, and comes back from them.
    pub tokens: u64,
    /// Weights, of which replicas have copies.
    pub weights: u64,
    /// Whether `weights` are of experts, which fewer replicas have.
    pub is_expert: bool,
    /// Of a table: the layer of its stage that needs its outputs, and what of them is exchanged.
    pub table: Option<(u32, u64)>,
}

/// Consecutive layers on a stage of the pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Its layers, in units that are computed again as a whole.
    pub units: Vec<Vec<Layer>>,
    /// Bytes that go on to the next piece.
    pub outputs: u64,
    /// Bytes of gradients that go back to the piece before.
    pub gradients: u64,
}

/// A stage of the pipeline: an actor, which stands for all NPUs of the stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// Its pieces, as many as each stage has.
    pub pieces: Vec<Piece>,
    /// Time of the update of its weights in picoseconds.
    pub update_ps: u64,
}

/// Everything that makes a graph of training.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Training {
    /// Stages of the pipeline.
    pub stages: Vec<Stage>,
    /// Micro-batches of an iteration.
    pub micro_batches: u32,
    /// Number of iterations.
    pub iterations: u32,
    /// Whether forward passes are computed again for backward ones.
    pub recompute: bool,
    /// Whether the gradient of weights is computed while that of inputs is summed.
    pub overlap_tensor: bool,
    /// Stage of ZeRO, 0 to 3.
    pub zero: u8,
    /// Bytes of gradients that are reduced together. `None`: all of them.
    pub bucket: Option<u64>,
    /// Whether one group of experts has all replicas.
    pub one_expert_group: bool,
}

/// A graph of training, and what its nodes are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrainingGraph {
    /// The graph. The shape of a call is the place of its exchange.
    pub graph: Graph,
    /// Different exchanges, in order of their first calls.
    pub exchanges: Vec<Exchange>,
    /// Iteration of each node.
    pub iteration: Vec<u32>,
    /// Layer of each node, counted over all stages; `u32::MAX` of an update.
    pub layer: Vec<u32>,
    /// [`Pass`] of each node, as its number.
    pub pass: Vec<u8>,
    /// [`Cause`] of each node of a call, as its number; 255 of others.
    pub cause: Vec<u8>,
}

impl Training {
    /// Lists all nodes, iteration by iteration and stage by stage.
    ///
    /// # Errors
    /// [`GraphError::Stages`], [`GraphError::Passes`], or if it is asked to stop.
    ///
    /// # Complexity
    /// O(nodes + dependencies).
    ///
    /// # Source
    /// Narayanan et al., SC 2021, section 2.2 (1F1B) and 2.3 (what tensor parallelism sums). Li et al., VLDB 2020
    /// (buckets). Rajbhandari et al., SC 2020, section 5 and 7 (what ZeRO exchanges).
    pub fn graph(&self, progress: &mut dyn Progress) -> Result<TrainingGraph, GraphError> {
        let actors = id(self.stages.len());
        let mut out = TrainingGraph::default();
        out.graph.actors = actors;
        out.graph.station = (0..actors).collect();
        out.graph.deps.first.push(0);
        out.graph.calls.first.push(0);
        let pieces = self.stages.first().map_or(0, |stage| stage.pieces.len());
        let mut all = Vec::new();
        let mut layers = 0;
        for (number, stage) in self.stages.iter().enumerate() {
            let actor = Actor::new(id(number), layers, stage);
            let has_layers = actor.starts.is_sorted_by(|start, end| start < end);
            let is_whole = pieces <= 1 || self.micro_batches.is_multiple_of(actors);
            if stage.pieces.len() != pieces || !has_layers || !is_whole {
                return Err(GraphError::Stages);
            }
            layers += id(actor.layers.len());
            all.push(actor);
        }
        let (micro_batches, iterations) = (self.micro_batches, self.iterations);
        let passes = [layers, micro_batches, iterations].map(u128::from);
        let passes = 3 * passes.iter().product::<u128>();
        if passes > MAX_PASSES {
            return Err(GraphError::Passes {
                iterations,
                micro_batches,
                layers,
                passes,
            });
        }
        let places = self.stages.len() * pieces;
        let mut builder = Builder {
            training: self,
            out,
            known: HashMap::new(),
            places,
            messages: Vec::new(),
            deps: Vec::new(),
            iteration: 0,
        };
        let total = u64::from(self.iterations) * u64::from(actors);
        for iteration in 0..self.iterations {
            builder.iteration = iteration;
            builder.messages = vec![[NONE; 2]; places * self.micro_batches as usize];
            for stage in &mut all {
                let done = u64::from(iteration) * u64::from(actors) + u64::from(stage.number);
                if !progress.report("list passes", done, total) {
                    return Err(Interrupted.into());
                }
                builder.iterate(stage);
            }
        }
        Ok(builder.out)
    }
}

/// A stage while its graph is made.
struct Actor<'a> {
    number: u32,
    stage: &'a Stage,
    layers: Vec<&'a Layer>,
    /// Number of its first layer among those of all stages.
    first: u32,
    /// The first layer of each piece, and the end of the last.
    starts: Vec<usize>,
    /// The last node that computed, and the one before it: weights are fetched one layer ahead.
    last: u32,
    before: u32,
    /// Calls that the next node that computes waits for.
    awaited: Vec<u32>,
    /// Calls that the update waits for.
    gradients: Vec<u32>,
    /// Bytes in the bucket of each group, in the order in which buckets began.
    buckets: Vec<(Axis, u64)>,
    /// Tables whose outputs each layer needs.
    tables: Vec<Vec<usize>>,
    /// Calls that bring these outputs.
    outputs: Vec<Vec<u32>>,
    /// The call that brings a table the gradient of its outputs.
    table_gradient: Vec<u32>,
}

impl<'a> Actor<'a> {
    fn new(number: u32, first: u32, stage: &'a Stage) -> Self {
        let mut starts = vec![0];
        let mut layers = Vec::new();
        for piece in &stage.pieces {
            layers.extend(piece.units.iter().flatten());
            starts.push(layers.len());
        }
        let mut tables = vec![Vec::new(); layers.len()];
        for (i, layer) in layers.iter().enumerate() {
            if let Some(needs) = layer.table.and_then(|(by, _)| tables.get_mut(by as usize)) {
                needs.push(i);
            }
        }
        Self {
            number,
            stage,
            first,
            starts,
            last: NONE,
            before: NONE,
            awaited: Vec::new(),
            gradients: Vec::new(),
            buckets: Vec::new(),
            tables,
            outputs: vec![Vec::new(); layers.len()],
            table_gradient: vec![NONE; layers.len()],
            layers,
        }
    }

    /// Returns all that the next node waits for.
    fn deps(&self) -> Vec<u32> {
        once(self.last)
            .chain(self.awaited.iter().copied())
            .collect()
    }
}

struct Builder<'a> {
    training: &'a Training,
    out: TrainingGraph,
    known: HashMap<Exchange, u32>,
    /// Pieces of all stages.
    places: usize,
    /// The messages forward and backward from each place of this iteration, micro-batch by micro-batch.
    messages: Vec<[u32; 2]>,
    /// What a node waits for, while it is made.
    deps: Vec<u32>,
    iteration: u32,
}

impl Builder<'_> {
    /// Adds an iteration of a stage: forward and backward passes of micro-batches, and the update.
    fn iterate(&mut self, actor: &mut Actor<'_>) {
        let (stages, pieces) = (self.training.stages.len(), actor.stage.pieces.len());
        let parts = self.training.micro_batches as usize;
        for (is_forward, piece, part) in turns(actor.number as usize, stages, pieces, parts) {
            if is_forward {
                self.forward(actor, piece, part);
            } else {
                self.backward(actor, piece, part);
            }
        }
        self.update(actor);
    }

    fn forward(&mut self, actor: &mut Actor<'_>, piece: usize, part: usize) {
        let place = piece * self.training.stages.len() + actor.number as usize;
        let (start, end) = (actor.starts[piece], actor.starts[piece + 1]);
        if place > 0 {
            self.receive(actor, (place - 1, part), Pass::Forward, start);
        }
        for i in start..end {
            self.forward_layer(actor, i, Pass::Forward);
        }
        if place + 1 < self.places {
            self.send(actor, (place, part), Pass::Forward, end - 1);
        }
    }

    fn forward_layer(&mut self, actor: &mut Actor<'_>, i: usize, pass: Pass) {
        let layer = actor.layers[i];
        if pass == Pass::Forward {
            let outputs = take(&mut actor.outputs[i]);
            actor.awaited.extend(outputs);
        }
        self.fetch(actor, i, pass);
        self.exchange_tokens(actor, i, pass);
        self.compute(actor, i, pass);
        self.exchange_tokens(actor, i, pass);
        self.sum_tensor(actor, i, pass, layer.outputs_summed, actor.last);
        if let Some((by, bytes)) = layer.table
            && pass == Pass::Forward
            && bytes > 0
        {
            let call = self.exchange_table(actor, i, pass, bytes);
            if let Some(outputs) = actor.outputs.get_mut(by as usize) {
                outputs.push(call);
            }
        }
    }

    fn backward(&mut self, actor: &mut Actor<'_>, piece: usize, part: usize) {
        let place = piece * self.training.stages.len() + actor.number as usize;
        let (start, mut end) = (actor.starts[piece], actor.starts[piece + 1]);
        let is_last = part + 1 == self.training.micro_batches as usize;
        if place + 1 < self.places {
            self.receive(actor, (place + 1, part), Pass::InputGradient, end - 1);
        }
        for unit in actor.stage.pieces[piece].units.iter().rev() {
            let of_unit = end - unit.len()..end;
            if self.training.recompute {
                for i in of_unit.clone() {
                    self.forward_layer(actor, i, Pass::Recompute);
                }
            }
            for i in of_unit.rev() {
                self.backward_layer(actor, i, is_last);
            }
            end -= unit.len();
        }
        if place > 0 {
            self.send(actor, (place, part), Pass::InputGradient, start);
        }
        // What is left in buckets; there is something only if gradients are due.
        while !actor.buckets.is_empty() {
            self.flush(actor, 0, start);
        }
    }

    fn backward_layer(&mut self, actor: &mut Actor<'_>, i: usize, is_last: bool) {
        let pass = Pass::InputGradient;
        let layer = actor.layers[i];
        if !self.training.recompute {
            self.fetch(actor, i, pass);
        }
        self.exchange_tokens(actor, i, pass);
        let brings = std::mem::replace(&mut actor.table_gradient[i], NONE);
        actor.awaited.extend((brings != NONE).then_some(brings));
        if let (Some(bytes), false) = (layer.inputs_summed, self.training.overlap_tensor) {
            self.gradient_of_weights(actor, i, is_last);
            self.compute(actor, i, pass);
            self.sum_tensor(actor, i, pass, bytes, actor.last);
        } else {
            self.compute(actor, i, pass);
            let before = take(&mut actor.awaited);
            if let Some(bytes) = layer.inputs_summed {
                self.sum_tensor(actor, i, pass, bytes, actor.last);
            }
            let summed = std::mem::replace(&mut actor.awaited, before);
            self.gradient_of_weights(actor, i, is_last);
            actor.awaited.extend(summed);
        }
        self.exchange_tokens(actor, i, pass);
        // The gradient of tables' outputs, as soon as the layer that they join has it.
        for table in actor.tables[i].clone() {
            let bytes = actor.layers[table].table.map_or(0, |(_, bytes)| bytes);
            if bytes > 0 && actor.last != NONE {
                actor.table_gradient[table] = self.exchange_table(actor, table, pass, bytes);
            }
        }
    }

    /// Computes the gradient of weights, and puts it into the bucket, which is reduced when it is full. Without a place
    /// for whole gradients, those of each micro-batch are reduced.
    fn gradient_of_weights(&mut self, actor: &mut Actor<'_>, i: usize, is_last: bool) {
        self.compute(actor, i, Pass::WeightGradient);
        let layer = actor.layers[i];
        if layer.weights == 0 || !(is_last || self.training.zero >= 2) {
            return;
        }
        let place = added(&mut actor.buckets, over(layer), layer.weights);
        let is_full = |bucket| actor.buckets[place].1 >= bucket;
        if self.training.bucket.is_some_and(is_full) {
            self.flush(actor, place, i);
        }
    }

    fn flush(&mut self, actor: &mut Actor<'_>, place: usize, i: usize) {
        let (axis, bytes) = actor.buckets.remove(place);
        let kind = match self.training.zero {
            0 => CollectiveKind::AllReduce,
            _ => CollectiveKind::ReduceScatter,
        };
        let what = Exchange::Collective(kind, axis, bytes);
        let tag = (i, Pass::WeightGradient, Cause::Data);
        let call = self.call(actor, tag, what, &[actor.last]);
        actor.gradients.push(call);
    }

    /// Adds the update of weights, which needs all gradients, and what follows of it.
    fn update(&mut self, actor: &mut Actor<'_>) {
        let gradients = take(&mut actor.gradients);
        actor.awaited.extend(gradients);
        self.computes(actor, actor.stage.update_ps, NONE, Pass::Update);
        actor.before = actor.last;
        if !matches!(self.training.zero, 1 | 2) {
            return;
        }
        let mut sizes = Vec::new();
        for layer in actor.layers.iter().filter(|layer| layer.weights > 0) {
            added(&mut sizes, over(layer), layer.weights);
        }
        for (axis, bytes) in sizes {
            let what = Exchange::Collective(CollectiveKind::AllGather, axis, bytes);
            let call = self.call(actor, (0, Pass::Update, Cause::Data), what, &[actor.last]);
            actor.awaited.push(call);
        }
    }

    /// Adds the node of a pass, if it is computed.
    fn compute(&mut self, actor: &mut Actor<'_>, i: usize, pass: Pass) {
        let which = match pass {
            Pass::InputGradient => 1,
            Pass::WeightGradient => 2,
            _ => 0,
        };
        if let Some(time_ps) = actor.layers[i].times_ps[which] {
            self.computes(actor, time_ps, actor.first + id(i), pass);
        }
    }

    fn computes(&mut self, actor: &mut Actor<'_>, time_ps: u64, layer: u32, pass: Pass) {
        let deps = actor.deps();
        actor.awaited.clear();
        actor.before = actor.last;
        actor.last = self.node(actor, time_ps, (layer, pass, u8::MAX), NONE, &deps);
    }

    /// All-reduces activations or their gradients over the tensor-parallel group; the next node waits for it.
    fn sum_tensor(&mut self, actor: &mut Actor<'_>, i: usize, pass: Pass, bytes: u64, after: u32) {
        if bytes > 0 {
            let what = Exchange::Collective(CollectiveKind::AllReduce, Axis::Tensor, bytes);
            let call = self.call(actor, (i, pass, Cause::Tensor), what, &[after]);
            actor.awaited.push(call);
        }
    }

    /// Sends tokens to their experts, or back.
    fn exchange_tokens(&mut self, actor: &mut Actor<'_>, i: usize, pass: Pass) {
        let bytes = actor.layers[i].tokens;
        if bytes > 0 {
            let axis = match self.training.one_expert_group {
                true => Axis::Data,
                false => Axis::Expert,
            };
            let what = Exchange::Collective(CollectiveKind::AllToAll, axis, bytes);
            let call = self.call(actor, (i, pass, Cause::Expert), what, &actor.deps());
            actor.awaited.push(call);
        }
    }

    fn exchange_table(&mut self, actor: &Actor<'_>, i: usize, pass: Pass, bytes: u64) -> u32 {
        let what = Exchange::Collective(CollectiveKind::AllToAll, Axis::Data, bytes);
        self.call(actor, (i, pass, Cause::Table), what, &[actor.last])
    }

    /// Gathers a layer's weights, with ZeRO 3, while the layer before computes.
    fn fetch(&mut self, actor: &mut Actor<'_>, i: usize, pass: Pass) {
        let layer = actor.layers[i];
        if self.training.zero >= 3 && layer.weights > 0 {
            let kind = CollectiveKind::AllGather;
            let what = Exchange::Collective(kind, over(layer), layer.weights);
            let call = self.call(actor, (i, pass, Cause::Data), what, &[actor.before]);
            actor.awaited.push(call);
        }
    }

    fn send(&mut self, actor: &Actor<'_>, from: (usize, usize), pass: Pass, i: usize) {
        let (call, first) = self.message(from, pass);
        let tag = (actor.first + id(i), pass, Cause::Pipeline as u8);
        self.out.graph.calls.members[first] = self.node(actor, 0, tag, call, &actor.deps());
    }

    fn receive(&mut self, actor: &mut Actor<'_>, from: (usize, usize), pass: Pass, i: usize) {
        let (call, first) = self.message(from, pass);
        let tag = (actor.first + id(i), pass, Cause::Pipeline as u8);
        let node = self.node(actor, 0, tag, call, &[actor.last]);
        self.out.graph.calls.members[first + 1] = node;
        actor.awaited.push(node);
    }

    /// Returns the message of a micro-batch from a place to the next one, or back to the one before, and where its
    /// members begin. Messages are served before collectives, since a stage waits for them.
    fn message(&mut self, (source, part): (usize, usize), pass: Pass) -> (u32, usize) {
        let stages = self.training.stages.len();
        let piece = &self.training.stages[source % stages].pieces[source / stages];
        let (way, to, bytes) = match pass {
            Pass::Forward => (0, source + 1, piece.outputs),
            _ => (1, source - 1, piece.gradients),
        };
        let at = source * self.training.micro_batches as usize + part;
        if self.messages[at][way] == NONE {
            let what = Exchange::Message(id(source % stages), id(to % stages), bytes);
            self.messages[at][way] = self.new_call(what, 0, &[NONE, NONE]);
        }
        let call = self.messages[at][way];
        (call, self.out.graph.calls.first[call as usize] as usize)
    }

    // Nodes and calls

    /// Adds a node that takes part in a collective, alone: its actor stands for all NPUs of the group.
    fn call(
        &mut self,
        actor: &Actor<'_>,
        (i, pass, cause): (usize, Pass, Cause),
        what: Exchange,
        deps: &[u32],
    ) -> u32 {
        let call = self.new_call(what, 1, &[id(self.out.layer.len())]);
        let tag = (actor.first + id(i), pass, cause as u8);
        self.node(actor, 0, tag, call, deps)
    }

    /// Adds a call that begins with its first member.
    fn new_call(&mut self, what: Exchange, priority: u32, members: &[u32]) -> u32 {
        let shape = *self.known.entry(what).or_insert_with(|| {
            self.out.exchanges.push(what);
            id(self.out.exchanges.len() - 1)
        });
        let calls = &mut self.out.graph.calls;
        calls.shape.push(shape);
        calls.priority.push(priority);
        calls.starters.push(1);
        calls.members.extend_from_slice(members);
        calls.first.push(id(calls.members.len()));
        id(calls.len() - 1)
    }

    fn node(
        &mut self,
        actor: &Actor<'_>,
        time_ps: u64,
        (layer, pass, cause): (u32, Pass, u8),
        call: u32,
        deps: &[u32],
    ) -> u32 {
        self.deps.clear();
        self.deps.extend(deps.iter().filter(|&&dep| dep != NONE));
        self.deps.sort_unstable();
        self.deps.dedup();
        let out = &mut self.out;
        out.graph.deps.of.extend_from_slice(&self.deps);
        out.graph.deps.first.push(id(out.graph.deps.of.len()));
        out.graph.nodes.actor.push(actor.number);
        out.graph.nodes.engine.push(Engine::Compute as u8);
        out.graph.nodes.time_ps.push(time_ps);
        out.graph.nodes.call.push(call);
        out.iteration.push(self.iteration);
        out.layer.push(layer);
        out.pass.push(pass as u8);
        out.cause.push(cause);
        id(out.layer.len() - 1)
    }
}

/// Returns the replicas that have a layer's weights.
fn over(layer: &Layer) -> Axis {
    if layer.is_expert {
        Axis::Replicas
    } else {
        Axis::Data
    }
}

/// Adds bytes to those of a group; returns their place.
fn added(sizes: &mut Vec<(Axis, u64)>, axis: Axis, bytes: u64) -> usize {
    let known = sizes.iter().position(|&(of, _)| of == axis);
    let place = known.unwrap_or_else(|| {
        sizes.push((axis, 0));
        sizes.len() - 1
    });
    sizes[place].1 = sizes[place].1.saturating_add(bytes);
    place
}

/// Returns a number for columns.
fn id(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(NONE)
}

/// Returns how many passes forward a stage does before its first backward.
///
/// With one piece that is 1F1B. With several, micro-batches go through all pieces in groups of as many as there are
/// stages; a stage is ahead by two for each stage after it, and by all pieces but one of a group.
///
/// # Source
/// Narayanan et al., SC 2021, section 2.2, and Megatron-LM's interleaved schedule.
fn ahead(stage: usize, stages: usize, pieces: usize, micro_batches: usize) -> usize {
    let total = micro_batches.saturating_mul(pieces);
    let after = stages.saturating_sub(stage.saturating_add(1));
    let ahead = match pieces {
        1 => after,
        _ if micro_batches == stages => total,
        _ => (pieces.saturating_sub(1).saturating_mul(stages)).saturating_add(2 * after),
    };
    ahead.min(total)
}

/// Returns for how many micro-batches a stage keeps what it computed at most, counted in each of its pieces.
pub fn under_way(stage: usize, stages: usize, pieces: usize, micro_batches: usize) -> usize {
    let most = ahead(stage, stages, pieces, micro_batches).saturating_add(1);
    most.min(micro_batches.saturating_mul(pieces))
}

/// Returns what a stage does in turn: whether forward, of which of its pieces, and which micro-batch.
fn turns(
    stage: usize,
    stages: usize,
    pieces: usize,
    micro_batches: usize,
) -> impl Iterator<Item = (bool, usize, usize)> {
    let total = micro_batches * pieces;
    let ahead = ahead(stage, stages, pieces, micro_batches);
    // Piece and micro-batch of a turn, counted from the first of its direction.
    let place = move |turn: usize| match pieces {
        1 => (0, turn),
        _ => {
            let (group, inside) = (turn / (stages * pieces), turn % (stages * pieces));
            (inside / stages, group * stages + inside % stages)
        }
    };
    (0..total + ahead).flat_map(move |turn| {
        let forward = (turn < total).then(|| place(turn));
        let backward = (turn >= ahead).then(|| place(turn - ahead));
        let forward = forward.map(|(piece, part)| (true, piece, part));
        let backward = backward.map(|(piece, part)| (false, pieces - 1 - piece, part));
        forward.into_iter().chain(backward)
    })
}
