"""The graph of training: who computes what, when collectives are due, and who waits for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, pairwise

from hocket.collectives.collective import Progress
from hocket.errors import SpecError
from hocket.training.columns import Columns, Pass, Tag
from hocket.training.network import Network
from hocket.training.options import TrainingOptions
from hocket.training.parallel import CAUSES, Group, Parallel
from hocket.training.stages import turns, units
from hocket.workload.accelerators import Accelerator
from hocket.workload.costs import Block, Work

__all__ = ["build"]


@dataclass
class _Stage:
    """One pipeline stage while its graph is made: an actor, which stands for all NPUs of the stage."""

    actor: int
    first: int
    blocks: list[Block]
    pieces: list[range]
    """Which of its blocks are consecutive layers."""
    last: int | None = None
    """The last node that computes."""
    awaited: list[int] = field(default_factory=list)
    """Calls that the next node that computes waits for."""
    gradients: list[int] = field(default_factory=list)
    """Calls that the update waits for."""
    full: dict[str, int] = field(default_factory=dict)
    """Bytes in the bucket of each group."""
    tables_of: dict[str, list[int]] = field(default_factory=dict)
    """Tables by the layer that needs their outputs."""
    tables: dict[str, list[int]] = field(default_factory=dict)
    """Calls that bring these outputs, likewise."""
    table_gradients: dict[int, int] = field(default_factory=dict)
    recent: list[int] = field(default_factory=list)
    """The last two nodes that computed, so that weights are fetched one layer ahead."""


class _Builder:
    def __init__(
        self,
        stages: list[list[list[Block]]],
        parallel: Parallel,
        groups: dict[str, Group],
        network: Network,
        accelerator: Accelerator,
        options: TrainingOptions,
    ) -> None:
        self.parallel, self.groups, self.network = parallel, groups, network
        self.accelerator, self.options = accelerator, options
        self.columns = Columns(len(stages))
        self.samples = Fraction(options.samples, parallel.parts)
        self.iteration = 0
        self.messages: dict[tuple[int, str, int, int], int] = {}
        self.times: dict[tuple[int, Pass], int] = {}
        self.stages, first = [], 0
        for actor, pieces in enumerate(stages):
            blocks = [block for piece in pieces for block in piece]
            ends = list(accumulate((len(piece) for piece in pieces), initial=0))
            stage = _Stage(actor, first, blocks, [range(*ends) for ends in pairwise(ends)])
            for i, block in enumerate(blocks):
                if block.is_table:
                    stage.tables_of.setdefault(needed_by(blocks, i), []).append(i)
            self.stages.append(stage)
            first += len(blocks)
        self.last_place = sum(len(pieces) for pieces in stages) - 1

    def all(self, progress: Progress | None) -> None:
        total = self.options.iterations * len(self.stages)
        for iteration in range(self.options.iterations):
            self.iteration = iteration
            for stage in self.stages:
                if progress is not None:
                    progress("list passes", iteration * len(self.stages) + stage.actor, total)
                self._iterate(stage)

    def _iterate(self, stage: _Stage) -> None:
        """Add an iteration of a stage: forward and backward passes of micro-batches, 1F1B; update."""
        parts = self.parallel.parts
        for forward, piece, part in turns(stage.actor, len(self.stages), len(stage.pieces), parts):
            if forward:
                self._forward(stage, piece, part)
            else:
                self._backward(stage, piece, part, is_last=part == parts - 1)
        self._update(stage)

    def _place(self, stage: _Stage, piece: int) -> int:
        """Return the place of a stage's piece in the order of the model."""
        return piece * len(self.stages) + stage.actor

    # A pass of a stage

    def _forward(self, stage: _Stage, piece: int, part: int) -> None:
        place, layers = self._place(stage, piece), stage.pieces[piece]
        if place > 0:
            self._receive(stage, "forward", place, part, Pass.FORWARD)
        for i in layers:
            self._forward_block(stage, i, Pass.FORWARD)
        if place < self.last_place:
            self._send(stage, "forward", place, part, Pass.FORWARD)

    def _forward_block(self, stage: _Stage, i: int, does: Pass) -> None:
        block = stage.blocks[i]
        stage.awaited += stage.tables.pop(block.name, []) if does is Pass.FORWARD else []
        self._fetch(stage, i, does)
        self._exchange_tokens(stage, i, does)
        node = self._compute(stage, i, does)
        self._exchange_tokens(stage, i, does)
        if block.split == "rows":
            self._sum_tensor(stage, i, does, block.outputs, node)
        if block.is_table and does is Pass.FORWARD and self.groups["dp"].size > 1:
            size = self._bytes(block.outputs * self.samples)
            call = self._call(stage, i, does, "table", "all-to-all", "dp", size, [node])
            stage.tables.setdefault(needed_by(stage.blocks, i), []).append(call)

    def _backward(self, stage: _Stage, piece: int, part: int, *, is_last: bool) -> None:
        place, layers = self._place(stage, piece), stage.pieces[piece]
        if place < self.last_place:
            self._receive(stage, "backward", place, part, Pass.INPUT_GRADIENT)
        end = layers.stop
        for unit in reversed(units(stage.blocks[layers.start : layers.stop])):
            of_unit = range(end - len(unit), end)
            if self.options.recompute:
                for i in of_unit:
                    self._forward_block(stage, i, Pass.RECOMPUTE)
            for i in reversed(of_unit):
                self._backward_block(stage, i, is_last=is_last)
            end = of_unit.start
        if place > 0:
            self._send(stage, "backward", place, part, Pass.INPUT_GRADIENT)
        # What is left in buckets; there is something only if gradients are due.
        for name in list(stage.full):
            self._flush(stage, name, layers.start)

    def _backward_block(self, stage: _Stage, i: int, *, is_last: bool) -> None:
        block = stage.blocks[i]
        if not self.options.recompute:
            self._fetch(stage, i, Pass.INPUT_GRADIENT)
        self._exchange_tokens(stage, i, Pass.INPUT_GRADIENT)
        if i in stage.table_gradients:
            stage.awaited.append(stage.table_gradients.pop(i))
        of_input = is_work(block.input_gradient)
        is_summed = block.split == "columns" and self.groups["tp"].size > 1 and of_input
        if is_summed and not self.options.overlap_tensor:
            self._gradient_of_weights(stage, i, is_last=is_last)
            last = self._compute(stage, i, Pass.INPUT_GRADIENT)
            self._sum_tensor(stage, i, Pass.INPUT_GRADIENT, block.inputs, last)
        else:
            node = self._compute(stage, i, Pass.INPUT_GRADIENT) if of_input else stage.last
            before, stage.awaited = stage.awaited, []
            if is_summed and node is not None:
                self._sum_tensor(stage, i, Pass.INPUT_GRADIENT, block.inputs, node)
            summed, stage.awaited = stage.awaited, before
            self._gradient_of_weights(stage, i, is_last=is_last)
            stage.awaited += summed
        self._exchange_tokens(stage, i, Pass.INPUT_GRADIENT)
        self._send_to_tables(stage, block)

    def _gradient_of_weights(self, stage: _Stage, i: int, *, is_last: bool) -> None:
        block = stage.blocks[i]
        if is_work(block.weight_gradient):
            self._compute(stage, i, Pass.WEIGHT_GRADIENT)
        # Without a place for whole gradients, those of each micro-batch are reduced.
        is_due = is_last or self.parallel.zero >= _SHARDED_GRADIENTS
        if is_due and block.parameters:
            self._collect(stage, i)

    def _send_to_tables(self, stage: _Stage, block: Block) -> None:
        """Exchange the gradient of tables' outputs as soon as the layer that they join has it."""
        if self.groups["dp"].size == 1 or stage.last is None:
            return
        for i in stage.tables_of.get(block.name, []):
            size = self._bytes(stage.blocks[i].outputs * self.samples)
            does = Pass.INPUT_GRADIENT
            call = self._call(stage, i, does, "table", "all-to-all", "dp", size, [stage.last])
            stage.table_gradients[i] = call

    def _update(self, stage: _Stage) -> None:
        """Add the update of weights, which needs all gradients, and what follows of it."""
        stage.awaited += stage.gradients
        stage.gradients = []
        tag = Tag(self.iteration, -1, Pass.UPDATE)
        own = sum((self._updated(block) for block in stage.blocks), Fraction(0))
        moved = own * update_bytes(self.options.precision_bits)
        time = -(-self.accelerator.moves_ps(moved) // 1) if self.options.update else 0
        updated = self._node(stage, int(time), tag)
        stage.recent = [updated, updated]
        if self.parallel.zero in (1, 2):
            for name, size in self._weights(stage).items():
                call = self._call(
                    stage, 0, Pass.UPDATE, "data", "all-gather", name, size, [updated]
                )
                stage.awaited.append(call)

    def _updated(self, block: Block) -> Fraction:
        """Return the parameters that an NPU updates after all passes: rows of tables are with gradients."""
        if block.is_table:
            return Fraction(0)
        return held(block, self.parallel) / (
            copies(block, self.parallel) if self.parallel.zero else 1
        )

    # What passes are made of

    def _compute(self, stage: _Stage, i: int, does: Pass) -> int:
        block = stage.blocks[i]
        share = self._share(block)
        key = (stage.first + i, does)
        if key not in self.times:
            # Of tables rows are read, which their work counts.
            held_here = Fraction(0) if block.is_table else held(block, self.parallel)
            weights = Fraction(self._bytes(held_here) if held_here else 0)
            work = work_of(block, does)
            self.times[key] = self.accelerator.time_ps(work, self.samples * share, weights)
        return self._node(stage, self.times[key], Tag(self.iteration, stage.first + i, does))

    def _node(self, stage: _Stage, time_ps: int, tag: Tag) -> int:
        node = self.columns.compute(stage.actor, time_ps, self._deps(stage), tag)
        stage.awaited = []
        stage.last = node
        stage.recent = [*stage.recent[-1:], node]
        return node

    def _deps(self, stage: _Stage) -> list[int]:
        return [*([] if stage.last is None else [stage.last]), *stage.awaited]

    def _call(
        self,
        stage: _Stage,
        i: int,
        does: Pass,
        cause: str,
        kind: str,
        group: str,
        size: int,
        deps: list[int],
    ) -> int:
        shape = self.network.collective(kind, self.groups[group], size)
        tag = Tag(self.iteration, stage.first + i, does, CAUSES.index(cause))
        return self.columns.collective(stage.actor, shape, deps, tag)

    def _sum_tensor(self, stage: _Stage, i: int, does: Pass, numbers: int, node: int) -> None:
        """All-reduce activations or their gradients over the tensor-parallel group, and wait for it."""
        if self.groups["tp"].size > 1 and numbers:
            size = self._bytes(numbers * self.samples)
            call = self._call(stage, i, does, "tensor", "all-reduce", "tp", size, [node])
            stage.awaited.append(call)

    def _exchange_tokens(self, stage: _Stage, i: int, does: Pass) -> None:
        """Send tokens to their experts, or back."""
        block = stage.blocks[i]
        if block.experts and block.routed and self.groups["ep"].size > 1:
            size = self._bytes(block.routed * self.samples * self._share(block))
            call = self._call(stage, i, does, "expert", "all-to-all", "ep", size, self._deps(stage))
            stage.awaited.append(call)

    def _fetch(self, stage: _Stage, i: int, does: Pass) -> None:
        """Gather a layer's weights, with ZeRO 3, while the layer before computes."""
        block = stage.blocks[i]
        if self.parallel.zero < _SHARDED_WEIGHTS or not block.parameters or block.is_table:
            return
        name = self._reduced_over(block)
        if self.groups[name].size > 1:
            size = self._bytes(held(block, self.parallel))
            call = self._call(stage, i, does, "data", "all-gather", name, size, stage.recent[:-1])
            stage.awaited.append(call)

    def _collect(self, stage: _Stage, i: int) -> None:
        """Put a layer's gradient into the bucket, which is reduced when it is full."""
        block = stage.blocks[i]
        name = self._reduced_over(block)
        if block.is_table or self.groups[name].size == 1:
            return
        stage.full[name] = stage.full.get(name, 0) + self._bytes(held(block, self.parallel))
        bucket = self.options.bucket_bytes
        if bucket is not None and stage.full[name] >= bucket:
            self._flush(stage, name, i)

    def _flush(self, stage: _Stage, name: str, i: int) -> None:
        size = stage.full.pop(name)
        kind = "reduce-scatter" if self.parallel.zero else "all-reduce"
        deps = [] if stage.last is None else [stage.last]
        call = self._call(stage, i, Pass.WEIGHT_GRADIENT, "data", kind, name, size, deps)
        stage.gradients.append(call)

    def _weights(self, stage: _Stage) -> dict[str, int]:
        """Bytes of weights by the group that shares their update."""
        sizes: dict[str, int] = {}
        for block in stage.blocks:
            name = self._reduced_over(block)
            if block.parameters and not block.is_table and self.groups[name].size > 1:
                size = self._bytes(held(block, self.parallel))
                sizes[name] = sizes.get(name, 0) + size
        return sizes

    def _reduced_over(self, block: Block) -> str:
        return "replicas" if block.experts and self.parallel.ep > 1 else "dp"

    # Messages between stages

    def _send(self, stage: _Stage, way: str, place: int, part: int, does: Pass) -> None:
        to = place + (1 if way == "forward" else -1)
        i = self._end(place, way)
        call = self._message(place, to, way, part)
        tag = Tag(self.iteration, stage.first + i, does, CAUSES.index("pipeline"))
        self.columns.sends(stage.actor, call, self._deps(stage), tag)

    def _receive(self, stage: _Stage, way: str, place: int, part: int, does: Pass) -> None:
        source = place - (1 if way == "forward" else -1)
        i = self._end(place, "backward" if way == "forward" else "forward")
        call = self._message(source, place, way, part)
        tag = Tag(self.iteration, stage.first + i, does, CAUSES.index("pipeline"))
        deps = [] if stage.last is None else [stage.last]
        stage.awaited.append(self.columns.receives(stage.actor, call, deps, tag))

    def _end(self, place: int, way: str) -> int:
        """Return the layer of a piece, as its stage counts, that goes on to the next one in a direction."""
        piece, actor = divmod(place, len(self.stages))
        layers = self.stages[actor].pieces[piece]
        return layers.stop - 1 if way == "forward" else layers.start

    def _passed(self, block: Block, way: str) -> Fraction:
        """Return the numbers that an NPU has of a layer's outputs, or of its inputs' gradients."""
        numbers, cut = block.outputs, ("columns", "inside")
        if way == "backward":
            numbers, cut = block.inputs, ("rows", "inside")
        return Fraction(numbers, self.parallel.tp if block.split in cut else 1)

    def _message(self, source: int, to: int, way: str, part: int) -> int:
        key = (source, way, part, self.iteration)
        if key not in self.messages:
            count = len(self.stages)
            block = self.stages[source % count].blocks[self._end(source, way)]
            size = self._bytes(self._passed(block, way) * self.samples)
            shape = self.network.message(self.groups["pp"], source % count, to % count, size)
            self.messages[key] = self.columns.new_message(shape)
        return self.messages[key]

    # Sizes

    def _share(self, block: Block) -> Fraction:
        return Fraction(1, 1 if block.split == "copied" else self.parallel.tp)

    def _bytes(self, numbers: Fraction) -> int:
        """Return the bytes of so many numbers, rounded up, and 1 at least."""
        size = numbers * self.options.precision_bits / 8
        if size > _MAX_BYTES:
            raise SpecError(
                "samples",
                f"with {self.options.samples:,}, a collective is of 2^60 bytes or more",
                "give fewer",
            )
        return max(1, -(-size.numerator // size.denominator))


_SHARDED_GRADIENTS = 2
_SHARDED_WEIGHTS = 3
_MAX_BYTES = (1 << 60) - 1


def needed_by(blocks: list[Block], i: int) -> str:
    """Return the layer that needs a layer's outputs: the named one, or the next; the last needs itself."""
    return blocks[i].joins or blocks[min(i + 1, len(blocks) - 1)].name


def held(block: Block, parallel: Parallel) -> Fraction:
    """Return the parameters of a layer that an NPU has, or gathers to compute with."""
    parts = 1 if block.split == "copied" else parallel.tp
    if block.experts:
        parts *= parallel.ep
    if block.is_table:
        parts *= parallel.dp
    return Fraction(block.parameters, parts)


def copies(block: Block, parallel: Parallel) -> int:
    """Return how many NPUs have the same parameters of a layer: fewer for experts, one for tables."""
    if block.is_table:
        return 1
    return parallel.dp // parallel.ep if block.experts else parallel.dp


def update_bytes(precision_bits: int) -> Fraction:
    """Bytes that an update moves for each parameter: Adam with numbers of 32 bits.

    The weight, its two moments and the gradient are read, the first three are written, and a copy of
    the weight in the training's precision as well.
    """
    return 3 * 4 * 2 + Fraction(2 * precision_bits, 8)


def is_work(work: Work) -> bool:
    """Return whether a pass is done at all."""
    return bool(work.flops or work.bytes or work.time_ps)


def work_of(block: Block, does: Pass) -> Work:
    """Return what a pass of a layer takes."""
    if does is Pass.INPUT_GRADIENT:
        return block.input_gradient
    return block.weight_gradient if does is Pass.WEIGHT_GRADIENT else block.forward


def build(
    stages: list[list[list[Block]]],
    parallel: Parallel,
    groups: dict[str, Group],
    network: Network,
    accelerator: Accelerator,
    options: TrainingOptions,
    progress: Progress | None = None,
) -> Columns:
    """Make the graph of some iterations.

    Parameters
    ----------
    stages
        The layers of each pipeline stage, in pieces of consecutive ones; pieces are dealt out in turn.
    parallel, groups
        How the model is spread.
    network
        Gives shapes to collectives; it keeps them.
    accelerator, options
        How long passes take, and how an iteration goes.
    progress
        Is told of each stage of each iteration.

    References
    ----------
    Narayanan et al., SC 2021, section 2.2 (1F1B) and 2.3 (what tensor parallelism sums). Li et al., VLDB
    2020 (buckets). Rajbhandari et al., SC 2020, section 5 and 7 (what ZeRO exchanges).
    """
    builder = _Builder(stages, parallel, groups, network, accelerator, options)
    builder.all(progress)
    return builder.columns
