"""The memory that training takes on an NPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from hocket._core.iteration import under_way
from hocket._results import Result, figure, said
from hocket.errors import InfeasibleError
from hocket.training.build import copies, held
from hocket.training.options import TrainingOptions
from hocket.training.parallel import Parallel
from hocket.training.stages import units
from hocket.units import format_estimate, format_size
from hocket.workload.accelerators import Accelerator
from hocket.workload.costs import Block

_STATE_BYTES = 12
"""Of Adam for each parameter: the weight and two moments, in 32 bits."""


@dataclass(frozen=True)
class Memory(Result):
    """Bytes on the NPU that holds most.

    Attributes
    ----------
    weights, gradients
        In the training's precision.
    optimizer
        A copy of the weights and Adam's two moments, in 32 bits.
    activations
        What forward passes keep for backward ones, over all micro-batches that are under way.
    """

    weights: int = field(metadata=said("weights_bytes"))
    gradients: int = field(metadata=said("gradients_bytes"))
    optimizer: int = field(metadata=said("optimizer_bytes"))
    activations: int = field(metadata=said("activations_bytes"))

    @property
    @figure("total_bytes")
    def total(self) -> int:
        """All of it."""
        return self.weights + self.gradients + self.optimizer + self.activations

    def __str__(self) -> str:
        parts = ("weights", "gradients", "optimizer", "activations")
        sizes = ", ".join(f"{name} {format_estimate(getattr(self, name))}" for name in parts)
        return f"{format_estimate(self.total)} ({sizes})"


def memory_of(stages: list[list[Block]], parallel: Parallel, options: TrainingOptions) -> Memory:
    """Estimate what the NPU with most to hold needs.

    References
    ----------
    Rajbhandari et al.: ZeRO, SC 2020, sections 3.1 and 5: 2 + 2 + 12 bytes a parameter in mixed
    precision, and what each stage divides by the replicas. Narayanan et al., SC 2021, section 2.2.1: stage
    s of p holds p - s micro-batches. Korthikanti et al., MLSys 2023, section 4: activations, and what
    tensor parallelism divides of them.
    """
    each = [_of_stage(blocks, s, len(stages), parallel, options) for s, blocks in enumerate(stages)]
    return max(each, key=lambda memory: memory.total)


def _of_stage(
    blocks: list[Block], stage: int, stages: int, parallel: Parallel, options: TrainingOptions
) -> Memory:
    size = Fraction(options.precision_bits, 8)
    shared = [Fraction(0)] * 4
    for block in blocks:
        count = held(block, parallel)
        same = copies(block, parallel)
        shards = [same if parallel.zero >= stage_of else 1 for stage_of in (3, 2, 1)]
        for k, bytes_each in enumerate((size, size, Fraction(_STATE_BYTES))):
            shared[k] += count * bytes_each / shards[k]
    samples = Fraction(options.samples, parallel.parts)
    pieces = parallel.interleave
    kept_at_once = Fraction(under_way(stage, stages, pieces, parallel.parts), pieces)
    kept = [_total(_kept(block, parallel) for block in unit) for unit in units(blocks)]
    if options.recompute:
        # What groups of layers take in is kept still, and of one group at a time all.
        inputs = _total(_input(unit[0], parallel) for unit in units(blocks))
        numbers = inputs * kept_at_once + max(kept, default=Fraction(0))
    else:
        numbers = _total(kept) * kept_at_once
    shared[3] = numbers * samples * size
    return Memory(*(-(-each.numerator // each.denominator) for each in shared))


def _total(numbers: Iterable[Fraction]) -> Fraction:
    return sum(numbers, Fraction(0))


def _kept(block: Block, parallel: Parallel) -> Fraction:
    """Numbers that a layer keeps for one sample."""
    if block.kept is None:
        return _input(block, parallel)
    # What comes in whole is kept whole; where the layer is cut, all else is a part.
    is_whole = block.split == "columns"
    taken = min(block.kept, max(block.inputs, block.routed)) if is_whole else 0
    return taken + Fraction(block.kept - taken, _parts(block, parallel))


def _input(block: Block, parallel: Parallel) -> Fraction:
    """Numbers that a layer takes in for one sample: a part between a cut by columns and one by rows."""
    is_whole = block.split in ("copied", "columns")
    return Fraction(block.inputs, 1 if is_whole else parallel.tp)


def _parts(block: Block, parallel: Parallel) -> int:
    return 1 if block.split == "copied" else parallel.tp


def lighter(
    stages: list[list[Block]], parallel: Parallel, options: TrainingOptions, limit: int
) -> list[dict[str, object]]:
    """Return the least changes with which a model fits: recomputation, ZeRO, or both, if any does."""
    found: list[dict[str, object]] = []
    for zero in range(parallel.zero, 4 if parallel.dp > 1 else 1):
        for recompute in (False, True):
            way: dict[str, object] = {"recompute": True} if recompute else {}
            way |= {} if zero == parallel.zero else {"parallel": str(replace(parallel, zero=zero))}
            changed = replace(options, recompute=recompute or options.recompute)
            memory = memory_of(stages, replace(parallel, zero=zero), changed)
            is_more = any(each.items() <= way.items() for each in found)
            if way and not is_more and memory.total <= limit:
                found.append(way)
    return found[:2]


def check_memory(
    memory: Memory,
    accelerator: Accelerator,
    ways: Callable[[int], list[dict[str, object]]] | None = None,
) -> None:
    """Refuse a model that does not fit.

    Parameters
    ----------
    ways
        Gives the changes with which it fits so many bytes.

    Raises
    ------
    InfeasibleError
        With the estimate, and what would help.
    """
    limit = accelerator.memory_bytes
    if limit is None or memory.total <= limit:
        return
    why = f"an NPU needs about {memory}, and {accelerator.name} has {format_size(limit)}"
    found = [] if ways is None else ways(limit)
    if not found:
        why += ", too little even with recompute and zero=3: use more tp or pp, or fewer samples"
    raise InfeasibleError("memory", why, instead=[*found, {"memory_check": False}])
