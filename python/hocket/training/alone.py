"""Training as if communication took no time: what an iteration computes, and what gradients it leaves."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from hocket import _core
from hocket.errors import SpecError
from hocket.training.build import held
from hocket.training.network import NOTHING
from hocket.training.parallel import Parallel
from hocket.training.run import train
from hocket.workload.accelerators import Accelerator
from hocket.workload.costs import Block
from hocket.workload.layers import Workload, blocks_of

_RATE = 10**9
"""Of links over which nothing goes."""


@dataclass(frozen=True)
class Alone:
    """An iteration without its communication.

    Attributes
    ----------
    compute_ps
        Until the update is done, pipeline stages waiting for each other [ps].
    gradient_bytes
        What an NPU of the stage with most to sum sums with those of other replicas [bytes].
    """

    compute_ps: int
    gradient_bytes: int


@lru_cache(maxsize=64)
def alone(
    workload: Workload,
    parallel: str,
    npu: Accelerator | str,
    samples: int,
    efficiency: float | None = None,
    precision_bits: int = 16,
) -> Alone:
    """Return an iteration of :func:`hocket.train` by the algorithm ``none``; memory is not checked.

    Parameters
    ----------
    parallel
        Sizes as :meth:`Parallel.parse` takes them, without ep and zero.
    workload, npu, samples, efficiency, precision_bits
        As of :func:`hocket.train`.

    Raises
    ------
    SpecError
        As :func:`hocket.train`.
    """
    spread = Parallel.parse(parallel)
    if not any(block.is_table for block in blocks_of(workload)):
        # What a replica computes does not depend on the others: two will do, however many there are.
        spread = Parallel(dp=2, tp=spread.tp, pp=spread.pp, micro_batches=spread.micro_batches)
    elif spread.npus == 1:
        raise SpecError("data", "tables are dealt out over copies", "give 2 or more, or tensor")
    run = train(
        workload,
        _core.build_product([("Switch", spread.npus, _RATE, 0)]),
        parallel=spread,
        algorithm=NOTHING,
        samples=samples,
        npu=npu,
        efficiency=efficiency,
        precision_bits=precision_bits,
        memory_check=False,
    )
    sums = [gradient_bytes(stage, spread, precision_bits) for stage in run.stages]
    return Alone(run.total_ps, max(sums))


def gradient_bytes(blocks: list[Block], parallel: Parallel, precision_bits: int) -> int:
    """Return the bytes that replicas of a stage sum: those of each layer rounded up, tables left out."""
    sizes = [
        held(block, parallel) * Fraction(precision_bits, 8)
        for block in blocks
        if block.parameters and not block.is_table
    ]
    return sum(-(-size.numerator // size.denominator) for size in sizes)
