"""Trains a model on a network, in simulated time."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from hocket import _core
from hocket._checks import whole
from hocket.collectives.collective import Progress, check_chunks
from hocket.errors import SpecError
from hocket.training.build import Options, build, held, is_work, work_of
from hocket.training.columns import Pass
from hocket.training.memory import check_memory, memory_of
from hocket.training.network import has_dimensions, is_on_dimensions, network_of
from hocket.training.parallel import Parallel, groups
from hocket.training.result import TrainingRun
from hocket.training.stages import cut
from hocket.training.systolic import blocks_on_chiplet
from hocket.units import parse_size, shown
from hocket.workload import load
from hocket.workload.accelerators import Accelerator, accelerator
from hocket.workload.costs import Block
from hocket.workload.layers import Workload, blocks_of
from hocket.workload.systolic import Chiplet

__all__ = ["train"]

_MOST_ITERATIONS = 10_000
_MOST_PASSES = 1 << 22
"""Of layers, over all micro-batches and iterations: a few gigabytes."""
DEFAULT_ALGORITHM = "themis"
ANYWHERE = "greedy"
"""By default where there are no dimensions, or not whole ones."""


def train(
    workload: Workload | str,
    topology: _core.Topology,
    *,
    parallel: Parallel | str | None = None,
    algorithm: str | None = None,
    chunks: int | None = None,
    samples: int = 32,
    iterations: int = 1,
    npu: Accelerator | Chiplet | str = "a100",
    efficiency: float | None = None,
    precision_bits: int = 16,
    bucket: int | str | None = "25 MiB",
    recompute: bool = False,
    overlap_tensor: bool = True,
    update: bool = True,
    order: str = "fifo",
    fits: bool = True,
    progress: Progress | None = None,
) -> TrainingRun:
    """Simulate training iterations.

    Parameters
    ----------
    workload
        A model: a shipped one by name, a file, or a :class:`Workload`.
    topology
        The network; all of its NPUs take part.
    parallel
        How the model is spread, as ``"dp=64,tp=16"``; by default all NPUs have replicas.
    algorithm
        Of collectives: one that schedules dimensions (``themis``, ``hierarchical``, ``multirail-optimal``,
        ...); any other of :func:`hocket.algorithms`, each collective then taking what the plans of all
        groups of its axis take together; ``ideal``: all bandwidth of a group's dimensions used all the
        time; ``none``: no time. By default themis where there are dimensions, else greedy.
    chunks
        Of each collective; 64 by default on dimensions, else the algorithm's own.
    samples
        Of each replica in an iteration (images, sequences, ...).
    iterations
        How many.
    npu, efficiency
        What computes: an :class:`Accelerator` or one's name, or a :class:`hocket.Chiplet`, whose cycles
        count then; and the share of an accelerator's peak that is reached.
    precision_bits
        Of weights, gradients and activations.
    bucket
        Gradients that are collected before they are reduced; None: all.
    recompute, overlap_tensor, update
        See :class:`hocket.training.build.Options`.
    order
        Which of an NPU's collectives a dimension serves first: ``fifo``, ``lifo``.
    fits
        Whether to refuse what does not fit the NPU's memory.

    Raises
    ------
    SpecError
        For input that makes no sense.
    InfeasibleError
        If the model does not fit.
    """
    model = load(workload) if isinstance(workload, str) else workload
    spread = Parallel(dp=topology.npu_count) if parallel is None else parallel
    spread = Parallel.parse(spread) if isinstance(spread, str) else spread
    if not isinstance(spread, Parallel):
        raise SpecError("parallel", f"{shown(parallel)} is no sizes", "write them as dp=64,tp=16")
    computes = _accelerator(npu, efficiency)
    check_chunks(chunks)
    if algorithm is None:
        algorithm = DEFAULT_ALGORITHM if has_dimensions(topology) else ANYWHERE
    if not isinstance(algorithm, str):
        raise SpecError("algorithm", f"{shown(algorithm)} is no name", "give one, such as themis")
    options = Options(
        samples=whole("samples", samples, 1, 1 << 24),
        iterations=whole("iterations", iterations, 1, _MOST_ITERATIONS),
        precision_bits=whole("precision_bits", precision_bits, 1, 1024),
        bucket=_bucket(bucket),
        recompute=recompute,
        overlap_tensor=overlap_tensor,
        update=update,
    )
    if order not in ("fifo", "lifo"):
        raise SpecError("order", f"there is no {shown(order)}", "use fifo or lifo")
    if options.samples % spread.parts:
        raise SpecError(
            "samples",
            f"{options.samples} do not divide into {spread.parts} micro-batches",
            f"give a multiple of {spread.parts}",
        )
    on_dimensions = is_on_dimensions(topology, algorithm)
    found = groups(spread, topology, on_dimensions=on_dimensions)
    blocks = blocks_of(model)
    if isinstance(npu, Chiplet):
        blocks = blocks_on_chiplet(model, npu, options.samples // spread.parts)
    _check_experts(blocks, spread)
    stages = cut(blocks, spread.pp, [_time(block, spread, computes, options) for block in blocks])
    memory = memory_of(stages, spread, options)
    if fits:
        check_memory(memory, computes)
    network = network_of(topology, algorithm, chunks, progress)
    _check_passes(stages, spread, options)
    columns = build(stages, spread, found, network, computes, options, progress)
    shapes = network.placed()
    outcome = columns.run(shapes, order=order, progress=progress)
    return TrainingRun(
        workload=model,
        topology=topology,
        parallel=spread,
        algorithm=algorithm,
        npu=computes,
        options=options,
        memory=memory,
        stages=stages,
        columns=columns,
        shapes=shapes,
        outcome=outcome,
        exchanges=network.exchanges,
    )


def _bucket(bucket: int | str | None) -> int | None:
    if isinstance(bucket, str):
        return parse_size(bucket, field="bucket")
    return None if bucket is None else whole("bucket", bucket, 1, 1 << 62)


def _check_experts(blocks: list[Block], parallel: Parallel) -> None:
    for block in blocks:
        if block.experts % parallel.ep:
            raise SpecError(
                "parallel",
                f"ep={parallel.ep} does not divide the {block.experts} experts of layer "
                f"{block.name}",
                "give a divisor of them",
            )


def _accelerator(npu: Accelerator | Chiplet | str, efficiency: float | None) -> Accelerator:
    if isinstance(npu, Chiplet):
        if efficiency is not None:
            raise SpecError("efficiency", "a chiplet's cycles count as they are", "leave it out")
        # Layers have times of their own then; the peak counts for nothing.
        return Accelerator("chiplet", "1 TFLOP/s")
    found = npu if isinstance(npu, Accelerator) else accelerator(npu)
    return found if efficiency is None else replace(found, efficiency=efficiency)


def _time(block: Block, spread: Parallel, computes: Accelerator, options: Options) -> int:
    """Give the time of all passes of a layer for a micro-batch [ps], which decides how stages are cut."""
    samples = Fraction(options.samples, spread.parts)
    samples /= 1 if block.split == "copied" else spread.tp
    weights = held(block, spread) * options.precision_bits / 8
    passes = (Pass.FORWARD, Pass.INPUT_GRADIENT, Pass.WEIGHT_GRADIENT)
    works = [work_of(block, does) for does in passes]
    return sum(computes.time_ps(work, samples, weights) for work in works if is_work(work))


def _check_passes(stages: list[list[Block]], spread: Parallel, options: Options) -> None:
    """Refuse more passes than memory holds, before they are listed."""
    layers = sum(len(blocks) for blocks in stages)
    passes = 3 * layers * spread.parts * options.iterations
    if passes > _MOST_PASSES:
        raise SpecError(
            "iterations",
            f"{options.iterations:,} of {spread.parts:,} micro-batches through {layers:,} "
            f"layers are {passes:,} passes, more than {_MOST_PASSES:,}",
            "give fewer",
        )
