"""Runs a trace on a network, in simulated time."""

from __future__ import annotations

from dataclasses import replace as replaced
from typing import TYPE_CHECKING

from hocket._checks import check_function, instance_of, one_of, truth
from hocket._core.replay import Replay
from hocket._core.trace import Trace
from hocket.collectives.collective import Progress, check_chunks
from hocket.errors import SpecError
from hocket.topology.sources import TopologyLike, as_topology
from hocket.traces.files import CALLS, groups_of
from hocket.traces.network import TraceNetwork
from hocket.traces.result import TraceRun
from hocket.training.network import has_dimensions
from hocket.units import parse_bandwidth, parse_operations, shown
from hocket.workload.accelerators import Accelerator, accelerator

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ORDERS", "replay"]

DEFAULT_ALGORITHM, ANYWHERE = "themis", "auto"
"""By default: where there are dimensions, and elsewhere."""
ORDERS = ("fifo", "lifo")
_LARGEST_RATE = (1 << 64) - 1


def replay(
    trace: Trace,
    topology: TopologyLike,
    *,
    algorithm: str | None = None,
    chunks: int | None = None,
    npu: Accelerator | str = "a100",
    efficiency: float | None = None,
    order: str = "fifo",
    cache: bool = True,
    progress: Progress | None = None,
) -> TraceRun:
    """Run a trace on a topology; rank r is NPU r.

    Parameters
    ----------
    trace
        Of :func:`hocket.traces.load`; of at most as many ranks as there are NPUs.
    algorithm
        Of collectives: one that schedules dimensions (``themis``, ...); any other of
        :func:`hocket.algorithms`, each collective then taking what its plan takes alone; ``ideal``: all
        bandwidth of a group's dimensions used all the time; ``none``: no time. By default themis where
        there are dimensions with all of their links, else ``auto``: the quickest of several. What an
        algorithm does not do is planned by ring, binomial or direct (``TraceRun.notes`` says what).
    chunks
        Of each collective; 64 by default on dimensions, else the algorithm's own.
    npu, efficiency
        What computes what has operations and no recorded time: an :class:`Accelerator` or one's name, and
        the share of its peak that is reached.
    order
        Which of an NPU's calls of one priority a dimension serves first: ``fifo``, ``lifo``.
    cache
        Whether ``auto`` remembers what it chooses for each collective, and takes what it chose before.
    progress
        Called as ``progress(stage, done, total)``.

    Raises
    ------
    SpecError
        For input that makes no sense, and if ranks wait for each other.
    InfeasibleError
        If a collective cannot be planned.
    """
    instance_of(Trace, "trace", trace, "read one with hk.traces.load(...)")
    topology = as_topology(topology)
    check_function("progress", progress)
    if trace.ranks > topology.npu_count:
        raise SpecError(
            None,
            f"the trace has {trace.ranks:,} ranks",
            f"topology {topology.name!r} has {topology.npu_count:,} NPUs: give one with "
            "as many or more",
        )
    one_of("order", order, ORDERS)
    check_chunks(chunks)
    truth("cache", cache)
    if algorithm is None:
        algorithm = DEFAULT_ALGORITHM if has_dimensions(topology) else ANYWHERE
    instance_of(str, "algorithm", algorithm, "give a name, such as themis")
    computes = accelerator(npu) if isinstance(npu, str) else npu
    if not isinstance(computes, Accelerator):
        raise SpecError("npu", f"{shown(npu)} is not an accelerator", "give a name, such as a100")
    if efficiency is not None:
        computes = replaced(computes, efficiency=efficiency)
    network = TraceNetwork(topology, algorithm, chunks, progress, cache=cache)
    made = Replay(trace, *_rates(computes))
    outcome = made.run(
        _shapes(trace, made, network), network.shapes, order=order, progress=progress
    )
    return TraceRun(
        trace=trace,
        topology=topology,
        algorithm=algorithm,
        npu=computes,
        notes=network.notes,
        graph=made,
        outcome=outcome,
    )


def _rates(npu: Accelerator) -> tuple[int, int | None]:
    """Give operations and bytes a second."""
    operations = parse_operations(npu.peak, field="peak") * npu.efficiency
    moved = None
    if npu.memory_bandwidth is not None:
        bandwidth = parse_bandwidth(npu.memory_bandwidth, field="memory_bandwidth")
        moved = _rate(bandwidth * npu.memory_efficiency)
    return _rate(operations), moved


def _rate(value: float) -> int:
    return max(1, min(int(value), _LARGEST_RATE))


def _shapes(trace: Trace, made: Replay, network: TraceNetwork) -> NDArray[np.uint32]:
    """Give the shape of each distinct collective, then of each distinct message."""
    import numpy as np

    groups = groups_of(trace)
    collectives = zip(
        made.collective_kind.tolist(),
        made.collective_group.tolist(),
        made.collective_size.tolist(),
        strict=True,
    )
    messages = zip(
        made.message_source.tolist(),
        made.message_target.tolist(),
        made.message_size.tolist(),
        strict=True,
    )
    found = [
        network.collective(CALLS[kind], groups[group], size) for kind, group, size in collectives
    ]
    found += [network.message(*each) for each in messages]
    return np.array(found, dtype=np.uint32)
