"""The graph of training, described to the core: what stages compute and exchange for each micro-batch."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from hocket._core.iteration import TrainingGraph
from hocket.collectives.collective import Progress
from hocket.errors import SpecError
from hocket.training.network import Network, Routing
from hocket.training.options import TrainingOptions
from hocket.training.parallel import Group, Parallel
from hocket.training.stages import units
from hocket.workload.accelerators import Accelerator
from hocket.workload.costs import Block, Work

__all__ = ["build"]

_MAX_BYTES = (1 << 60) - 1
_LONGEST_PS = 4 * 10**18
"""Of a pass; the core counts no more of all of them."""


class _Layer(NamedTuple):
    """A layer on an NPU for a micro-batch, as the core takes it; sizes are in bytes, 0 for none."""

    times_ps: tuple[int | None, int | None, int | None]
    """Of the forward pass and of both gradients; None: not computed."""
    outputs_summed: int
    inputs_summed: int | None
    """None: the gradient of inputs is not summed."""
    tokens: int
    """A token once for each of its experts."""
    weights: int
    is_expert: bool
    table: tuple[int, int] | None
    """The layer that needs a table's outputs, and their bytes."""


class _Sizes:
    """The times and bytes of layers."""

    def __init__(
        self,
        parallel: Parallel,
        groups: dict[str, Group],
        network: Network,
        accelerator: Accelerator,
        options: TrainingOptions,
    ) -> None:
        self.parallel, self.groups, self.network = parallel, groups, network
        self.routings: dict[int, set[Routing | None]] = {}
        """By bytes of an all-to-all, how tokens are routed that are so many; None: not at all."""
        self.accelerator, self.options = accelerator, options
        self.samples = Fraction(options.samples, parallel.parts)

    def stage(
        self, pieces: list[list[Block]], number: int
    ) -> tuple[list[tuple[list[list[_Layer]], int, int]], int]:
        """Return the pieces of a stage, what each sends on and back, and the time of its update [ps]."""
        blocks = [block for piece in pieces for block in piece]
        layers = iter([self._layer(blocks, i) for i in range(len(blocks))])
        made: list[tuple[list[list[_Layer]], int, int]] = []
        last = self.parallel.pp * len(pieces) - 1
        for i, piece in enumerate(pieces):
            place = i * self.parallel.pp + number
            on = self._passed(piece[-1], "forward") if place < last else 0
            back = self._passed(piece[0], "backward") if place else 0
            made.append(([[next(layers) for _ in unit] for unit in units(piece)], on, back))
        own = sum((self._updated(block) for block in blocks), Fraction(0))
        moved = own * update_bytes(self.options.precision_bits)
        time = -(-self.accelerator.moves_ps(moved) // 1) if self.options.update else 0
        return made, _counted(int(time))

    def _layer(self, blocks: list[Block], i: int) -> _Layer:
        block, tp = blocks[i], self.groups["tp"].size
        is_expert = bool(block.experts) and self.parallel.ep > 1
        # Of tables rows are read, which their work counts.
        own = Fraction(0) if block.is_table else held(block, self.parallel)
        weights = self._bytes(own) if own else 0
        table = None
        if block.is_table:
            outputs = block.outputs * self.samples if self.groups["dp"].size > 1 else Fraction(0)
            table = (_needed_by(blocks, i), self._bytes(outputs) if outputs else 0)
            self.routings.setdefault(table[1], set()).add(None)
        sent = block.routed * self.samples / self._parts(block)
        is_sent = block.experts and block.routed and self.groups["ep"].size > 1
        is_summed = block.split == "columns" and tp > 1 and is_work(block.input_gradient)
        of_input, of_weights = (
            self._time(block, work, weights) if is_work(work) else None
            for work in (block.input_gradient, block.weight_gradient)
        )
        return _Layer(
            (self._time(block, block.forward, weights), of_input, of_weights),
            self._summed(block.outputs) if block.split == "rows" and tp > 1 else 0,
            self._summed(block.inputs) if is_summed else None,
            self._routed(block, self._bytes(sent)) if is_sent else 0,
            weights if self.groups["replicas" if is_expert else "dp"].size > 1 else 0,
            is_expert,
            table,
        )

    def _routed(self, block: Block, size: int) -> int:
        """Remember how tokens of so many bytes go to experts; return the bytes."""
        routing = self.network.routing(block.experts, block.top)
        self.routings.setdefault(size, set()).add(routing)
        return size

    def routing(self, kind: str, size: int) -> Routing | None:
        """Return how what an all-to-all exchanges is routed; None if not, or if others exchange as much."""
        found = self.routings.get(size, set()) if kind == "all-to-all" else set()
        return next(iter(found)) if len(found) == 1 else None

    def _time(self, block: Block, work: Work, weights: int) -> int:
        samples = self.samples / self._parts(block)
        return _counted(self.accelerator.time_ps(work, samples, Fraction(weights)))

    def _updated(self, block: Block) -> Fraction:
        """Return the parameters that an NPU updates after all passes: rows of tables are with gradients."""
        if block.is_table:
            return Fraction(0)
        shards = copies(block, self.parallel) if self.parallel.zero else 1
        return held(block, self.parallel) / shards

    def _summed(self, numbers: int) -> int:
        return self._bytes(numbers * self.samples) if numbers else 0

    def _passed(self, block: Block, way: str) -> int:
        """Return the bytes that an NPU has of a layer's outputs, or of its inputs' gradients."""
        numbers, cut = block.outputs, ("columns", "inside")
        if way == "backward":
            numbers, cut = block.inputs, ("rows", "inside")
        parts = self.parallel.tp if block.split in cut else 1
        return self._bytes(Fraction(numbers, parts) * self.samples)

    def _parts(self, block: Block) -> int:
        return 1 if block.split == "copied" else self.parallel.tp

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


def _counted(time_ps: int) -> int:
    """Return the time of a pass, if it can be counted."""
    if time_ps > _LONGEST_PS:
        wrong = "a pass of a layer takes longer than a month"
        raise SpecError("npu", wrong, "use a faster one, or fewer samples")
    return time_ps


def _needed_by(blocks: list[Block], i: int) -> int:
    """Return the layer that needs a layer's outputs: the named one, or the next; the last needs itself."""
    after = range(i + 1, len(blocks))
    joins = blocks[i].joins
    return next((j for j in after if joins is None or blocks[j].name == joins), i)


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


def build(
    stages: list[list[list[Block]]],
    parallel: Parallel,
    groups: dict[str, Group],
    network: Network,
    accelerator: Accelerator,
    options: TrainingOptions,
    progress: Progress | None = None,
) -> TrainingGraph:
    """Make the graph of some iterations, whose calls are numbered as the shapes of the network.

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
    """
    sizes = _Sizes(parallel, groups, network, accelerator, options)
    graph = TrainingGraph(
        [sizes.stage(pieces, number) for number, pieces in enumerate(stages)],
        micro_batches=parallel.parts,
        iterations=options.iterations,
        recompute=options.recompute,
        overlap_tensor=options.overlap_tensor,
        zero=parallel.zero,
        bucket=options.bucket_bytes,
        one_expert_group=groups["ep"] == groups["dp"],
        progress=progress,
    )
    for kind, axis, ends, size in graph.exchanges:
        if ends is not None:
            network.message(groups["pp"], *ends, size)
        elif axis is not None and (routing := sizes.routing(kind, size)) is not None:
            network.tokens(groups[axis], size, routing)
        elif axis is not None:
            network.collective(kind, groups[axis], size)
    return graph
