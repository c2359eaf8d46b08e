"""Runs a trace on a network, in simulated time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hocket._checks import check_function, instance_of
from hocket._core.replay import Replay
from hocket._core.trace import Trace
from hocket._options import options_of
from hocket.collectives.collective import Progress
from hocket.errors import SpecError
from hocket.topology.sources import TopologyLike, as_topology
from hocket.traces.files import CALLS, groups_of
from hocket.traces.network import TraceNetwork
from hocket.traces.options import ReplayOptions
from hocket.traces.result import TraceRun
from hocket.training.network import check_uses, default_algorithm
from hocket.units import parse_bandwidth, parse_operations
from hocket.workload.accelerators import Accelerator

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from hocket.traces.options import ReplayKeywords

_LARGEST_RATE = (1 << 64) - 1


def replay(
    trace: Trace,
    topology: TopologyLike,
    *,
    algorithm: str | None = None,
    options: ReplayOptions | None = None,
    progress: Progress | None = None,
    **keywords: Unpack[ReplayKeywords],
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
        there are dimensions with all of their links, else ``auto``: the fastest of several. What an
        algorithm does not do is planned by ring, binomial or direct (``TraceRun.notes`` says what).
    options
        What computes, and how calls are planned and served.
    progress
        Called as ``progress(stage, done, total)``.
    keywords
        Any option of :class:`hocket.traces.ReplayOptions` by its name, in place of the one in `options`.

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
    given = options_of(ReplayOptions, options, keywords)
    if algorithm is None:
        algorithm = default_algorithm(topology)
    instance_of(str, "algorithm", algorithm, "give a name, such as themis")
    check_uses(algorithm, given.chunks)
    computes = given.accelerator()
    network = TraceNetwork(topology, algorithm, given.chunks, progress, cache=given.cache)
    made = Replay(trace, *_rates(computes))
    outcome = made.run(
        _shapes(trace, made, network), network.shapes, order=given.order, progress=progress
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
    """Return operations and bytes a second."""
    operations = parse_operations(npu.peak, field="peak") * npu.efficiency
    moved = None
    if npu.memory_bandwidth is not None:
        bandwidth = parse_bandwidth(npu.memory_bandwidth, field="memory_bandwidth")
        moved = _rate(bandwidth * npu.memory_efficiency)
    return _rate(operations), moved


def _rate(value: float) -> int:
    return max(1, min(int(value), _LARGEST_RATE))


def _shapes(trace: Trace, made: Replay, network: TraceNetwork) -> NDArray[np.uint32]:
    """Return the shape of each distinct collective, then of each distinct message."""
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
