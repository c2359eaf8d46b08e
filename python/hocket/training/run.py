"""Trains a model on a network, in simulated time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, Any

from hocket import _core
from hocket._checks import check_function, instance_of
from hocket._options import check_keywords, names_of, options_of
from hocket.collectives.collective import Progress
from hocket.errors import SpecError
from hocket.topology.sources import TopologyLike, as_topology
from hocket.training.build import build, held, is_work
from hocket.training.memory import check_memory, lighter, memory_of
from hocket.training.network import (
    Network,
    check_uses,
    default_algorithm,
    is_on_dimensions,
    network_of,
)
from hocket.training.options import ALL_TO_ALL, TrainingOptions
from hocket.training.parallel import Parallel, groups
from hocket.training.result import TrainingRun
from hocket.training.stages import dealt, partition
from hocket.training.systolic import blocks_on_chiplet
from hocket.units import shown
from hocket.workload import as_workload
from hocket.workload.accelerators import Accelerator
from hocket.workload.costs import Block
from hocket.workload.layers import Workload, blocks_of
from hocket.workload.systolic import Chiplet

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hocket.training.options import TrainingKeywords


def train(
    workload: Workload | str,
    topology: TopologyLike,
    *,
    parallel: Parallel | Mapping[str, Any] | str | None = None,
    algorithm: str | None = None,
    options: TrainingOptions | None = None,
    progress: Progress | None = None,
    **keywords: Unpack[TrainingKeywords],
) -> TrainingRun:
    """Simulate training iterations.

    Parameters
    ----------
    workload
        A model: a shipped one by name, a file, or a :class:`Workload`.
    topology
        The network; all of its NPUs take part.
    parallel
        How the model is spread, as ``"dp=64,tp=16"`` or ``{"dp": 64, "tp": 16}``; by default all NPUs have
        replicas.
    algorithm
        Of collectives: one that schedules dimensions (``themis``, ``hierarchical``, ``multirail-optimal``,
        ...); any other of :func:`hocket.algorithms`, each collective then taking what the plans of all
        groups of its axis take together; ``ideal``: all bandwidth of a group's dimensions used all the
        time; ``none``: no time. By default themis where there are dimensions, else
        ``auto``: for each collective the fastest of several.
    options
        What computes, how many samples, and how an iteration goes.
    progress
        Called as ``progress(stage, done, total)`` during long work.
    keywords
        Any option of :class:`hocket.TrainingOptions` by its name, in place of the one in `options`.

    Raises
    ------
    SpecError
        For input that makes no sense.
    InfeasibleError
        If the model does not fit.
    """
    options = options_of(TrainingOptions, options, keywords)
    topology = as_topology(topology)
    model = as_workload(workload)
    check_function("progress", progress)
    spread = _parallel(parallel, topology)
    computes = options.accelerator()
    if algorithm is None:
        algorithm = default_algorithm(topology)
    instance_of(str, "algorithm", algorithm, "give a name, such as themis")
    check_uses(algorithm, options.chunks)
    on_dimensions = is_on_dimensions(topology, algorithm)
    found = groups(spread, topology, on_dimensions=on_dimensions)
    _check_samples(options.samples, spread)
    blocks = blocks_of(model)
    if isinstance(options.npu, Chiplet):
        blocks = blocks_on_chiplet(model, options.npu, options.samples // spread.parts)
    _check_experts(blocks, spread)
    if spread.interleave > 1 and len(blocks) < spread.pp * spread.interleave:
        wrong = f"interleave={spread.interleave}: {spread.pp} stages have {len(blocks)} layers among them"
        raise SpecError("parallel", wrong, "give each of their groups one, so fewer groups")
    times = [_time(block, spread, computes, options) for block in blocks]
    pieces = dealt(partition(blocks, spread.pp * spread.interleave, times), spread.pp)
    stages = [[block for piece in own for block in piece] for own in pieces]
    memory = memory_of(stages, spread, options)
    if options.memory_check:
        check_memory(memory, computes, lambda limit: lighter(stages, spread, options, limit))
    network = network_of(
        topology,
        algorithm,
        options.chunks,
        progress,
        cache=options.cache,
        experts=options.experts(),
    )
    _check_dispatch(options, blocks, network)
    columns = build(pieces, spread, found, network, computes, options, progress)
    shapes = network.placed()
    outcome = columns.run(shapes, order=options.order, progress=progress)
    return TrainingRun(
        workload=model,
        topology=topology,
        parallel=spread,
        algorithm=algorithm,
        npu=computes,
        options=options,
        memory=memory,
        pieces=pieces,
        columns=columns,
        shapes=shapes,
        outcome=outcome,
        exchanges=network.exchanges,
        makers=network.makers,
    )


def _parallel(
    given: Parallel | Mapping[str, Any] | str | None, topology: _core.Topology
) -> Parallel:
    if given is None:
        return Parallel(dp=topology.npu_count)
    spread = Parallel.parse(given) if isinstance(given, str) else given
    if isinstance(spread, Mapping):
        check_keywords({str(key): value for key, value in spread.items()}, names_of(Parallel))
        spread = Parallel(**spread)
    if not isinstance(spread, Parallel):
        raise SpecError(
            "parallel", f"{shown(given)} is not a list of sizes", "write them as dp=64,tp=16"
        )
    return spread


def _check_samples(samples: int, spread: Parallel) -> None:
    """Check that a replica's samples divide into its micro-batches."""
    parts = spread.parts
    if spread.interleave > 1 and parts % spread.pp:
        raise SpecError(
            "parallel",
            f"interleave={spread.interleave}: {parts} micro-batches are no multiple of {spread.pp} stages",
            instead=[
                {"parallel": str(replace(spread, micro_batches=-(-parts // spread.pp) * spread.pp))}
            ],
        )
    if samples % parts:
        why = f"{samples} do not divide into {parts} micro-batches"
        if spread.micro_batches is None:
            why += f", 4 for each of {spread.pp} stages"
        fewer = replace(spread, micro_batches=gcd(samples, parts))
        ways: list[dict[str, object]] = [{"samples": -(-samples // parts) * parts}]
        ways.append({"parallel": str(fewer)})
        raise SpecError("samples", why, instead=ways)


def _check_dispatch(options: TrainingOptions, blocks: list[Block], network: Network) -> None:
    """Refuse words of a dispatch where nothing is dispatched."""
    if options.dispatch is None:
        return
    if not any(block.experts for block in blocks):
        raise SpecError("dispatch", "the model has no experts", "leave it out")
    if options.dispatch != ALL_TO_ALL and network.routing(2, 2) is None:
        raise SpecError(
            "dispatch",
            f"{network.algorithm} sends tokens {ALL_TO_ALL}",
            "use algorithm auto, steiner or greedy, or leave it out",
        )


def _check_experts(blocks: list[Block], parallel: Parallel) -> None:
    for block in blocks:
        if block.experts % parallel.ep:
            raise SpecError(
                "parallel",
                f"ep={parallel.ep} does not divide the {block.experts} experts of layer "
                f"{block.name}",
                "give a divisor of them",
            )


def _time(block: Block, spread: Parallel, computes: Accelerator, options: TrainingOptions) -> int:
    """Return the time of all passes of a layer for a micro-batch [ps], which decides how stages are cut."""
    samples = Fraction(options.samples, spread.parts)
    samples /= 1 if block.split == "copied" else spread.tp
    weights = held(block, spread) * options.precision_bits / 8
    works = (block.forward, block.input_gradient, block.weight_gradient)
    return sum(computes.time_ps(work, samples, weights) for work in works if is_work(work))
