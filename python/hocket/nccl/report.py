"""The audit of what NCCL runs on a machine, by its own dumps, beside the best that hocket finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from hocket import _core
from hocket._checks import check_function, instance_of
from hocket._options import options_of
from hocket._results import HIDDEN, Column, ListResult, Result, figure, picoseconds, said
from hocket.collectives.collective import Progress, collective_on
from hocket.collectives.outcome import OnCollective, bound_parts
from hocket.errors import Error, InfeasibleError, SpecError
from hocket.nccl.findings import findings_of
from hocket.nccl.graphs import JOINTS, PLAIN_TREE
from hocket.nccl.machine import Machine, load_machine
from hocket.nccl.model import KINDS, USUAL_CPU, Host, NcclChannels, NcclChoice, choices
from hocket.nccl.prediction import by_latency
from hocket.nccl.rccl import rccl_choices
from hocket.plans.choice import fastest
from hocket.plans.plan import Plan
from hocket.plans.planner import choose
from hocket.plans.synthesis import PlanOptions
from hocket.profiles.hardware import Hardware
from hocket.simulation.run import Run, simulate
from hocket.units import Quantity, counted

_NEAR = ("NVL", "NVB", "LOC")
_GRAPHS = ("ring", "tree", "nvls")


@dataclass(frozen=True)
class AuditEntry(Result):
    """NCCL's channels and time for one algorithm.

    Attributes
    ----------
    algorithm
        ``"ring"``, ``"tree"`` or ``"nvls"``.
    channels
        How many it has, before NCCL doubles them.
    speed
        What each is counted at [bytes/s].
    predicted
        The fastest protocol by NCCL's own model, with this graph; ``None`` where its model has none.
    run
        The plan along these channels, proved and simulated; ``None`` where there is none.
    why
        Why there is none.
    """

    algorithm: str = field(metadata=said(column=Column("graph", leaves=0)))
    channels: int = field(metadata=said(column=Column("channels")))
    speed: float = field(metadata=said("speed_bytes_per_s", column=Column("each")))
    predicted: NcclChoice | None = field(metadata=HIDDEN)
    run: Run | None = field(metadata=HIDDEN)
    why: str | None = None

    @property
    @figure(column=Column("protocol"))
    def protocol(self) -> str | None:
        """The fastest by NCCL's model."""
        return None if self.predicted is None else self.predicted.protocol

    @property
    @figure(column=Column("predicted"))
    def predicted_ps(self) -> int | None:
        """The time by NCCL's model [ps]."""
        return None if self.predicted is None else picoseconds(self.predicted.seconds)

    @property
    @figure(column=Column("simulated", leaves=0))
    def time_ps(self) -> int | None:
        """Time of the plan along these channels, simulated [ps]."""
        return None if self.run is None else self.run.time_ps

    @property
    @figure("algbw_bytes_per_s")
    def algbw(self) -> float | None:
        """Bandwidth of that plan [bytes/s]."""
        return None if self.run is None else self.run.algbw


@dataclass(frozen=True)
class AuditBest(Result):
    """The fastest plan."""

    algorithm: str
    time_ps: int
    algbw_bytes_per_s: float


def _best(run: Run) -> AuditBest:
    return AuditBest(run.plan.algorithm, run.time_ps, run.algbw)


def _name(entry: AuditEntry) -> str:
    return entry.algorithm


@dataclass(frozen=True, repr=False)
class Audit(OnCollective, ListResult[AuditEntry]):
    """The audit of NCCL on a machine.

    Attributes
    ----------
    collective, topology
        What is judged, and on which network.
    bound
        The lower bound on any plan's time.
    entries
        What NCCL has, by algorithm.
    best
        The fastest plan that hocket finds, which may be one of NCCL's.
    findings
        What is odd about the machine or its graphs, a sentence each.
    notes
        What was assumed.
    library
        ``"NCCL"`` or ``"RCCL"``.
    """

    _table = "entries"

    collective: _core.Collective = field(metadata=HIDDEN)
    topology: _core.Topology = field(metadata=HIDDEN)
    bound: _core.Bound = field(metadata=said(of=bound_parts))
    entries: tuple[AuditEntry, ...] = field(metadata=said("graphs"))
    best: Run = field(metadata=said(of=_best))
    findings: tuple[str, ...]
    notes: tuple[str, ...]
    library: str

    @property
    @figure(of=_name)
    def pick(self) -> AuditEntry | None:
        """NCCL's pick by its own model, or ``None`` if its model has none of them."""
        known = [each for each in self.entries if each.predicted is not None]
        return min(known, key=lambda each: _seconds(each.predicted), default=None)

    @property
    @figure()
    def gap(self) -> float | None:
        """By how much longer NCCL's pick takes than the best plan, as a share; ``None`` without a plan."""
        if self.pick is None or self.pick.run is None:
            return None
        return self.pick.run.time_ps / self.best.time_ps - 1

    def __repr__(self) -> str:
        return f"<Audit of {self.collective.kind} on {self.topology.name!r}: {len(self)} graphs>"


def audit(
    topology: str | PathLike[str] | Sequence[str | PathLike[str]],
    graph: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    kind: str = "all-reduce",
    size: Quantity = "256 MiB",
    nodes: int = 1,
    options: PlanOptions | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Judge what NCCL runs on a machine: its rings, trees and sums in switches, beside the best plan.

    Parameters
    ----------
    topology, graph
        What NCCL wrote to ``NCCL_TOPO_DUMP_FILE`` and to ``NCCL_GRAPH_DUMP_FILE``; of several nodes that
        differ lists, in the order of nodes.
    kind, size
        The collective, among all GPUs.
    nodes
        How many nodes are like the one that is given.
    options
        How hocket plans.

    Raises
    ------
    SpecError
        With file and line, for a file that makes no sense, or does not fit the other.

    Examples
    --------
    >>> import hocket as hk
    >>> found = hk.nccl.audit("topo.xml", "graph.xml")  # doctest: +SKIP
    >>> found.gap  # doctest: +SKIP
    """
    instance_of(str, "kind", kind, f"give one of {', '.join(KINDS)}")
    planning = options_of(PlanOptions, options, {})
    check_function("progress", progress)
    machine = load_machine(_pairs(topology, graph), _count(nodes))
    return audit_machine(machine, kind=kind, size=size, options=planning, progress=progress)


def audit_machine(
    machine: Machine,
    *,
    kind: str,
    size: Quantity,
    options: PlanOptions,
    progress: Progress | None = None,
) -> Audit:
    """Judge what NCCL runs on a machine that is read; see :func:`audit`."""
    if kind not in KINDS:
        raise SpecError(
            "kind", f"NCCL's graphs serve no {kind!r}", f"they serve {', '.join(KINDS)}"
        )
    network = machine.topology
    if network.npu_count < 2:
        raise InfeasibleError(None, "it has one GPU", "there is nothing to judge")
    collective = collective_on(kind, network, size)
    predicted = _predicted(machine, kind, collective.size)
    entries = [
        entry
        for algorithm in _GRAPHS
        if (entry := _entry(machine, algorithm, predicted, collective, options, progress))
        is not None
    ]
    if not entries:
        file = machine.nodes[0].graph_file
        right = "give what NCCL writes to NCCL_GRAPH_DUMP_FILE"
        raise SpecError(None, "no graph of rings, trees or NVLS has channels", right, origin=file)
    plan = choose(collective, network, "auto", options, progress=progress).plan
    best = simulate(plan, latency_model=options.latency_model)
    runs = [best, *(each.run for each in entries if each.run is not None)]
    best = min(runs, key=lambda run: run.time_ps)
    return Audit(
        collective,
        network,
        best.lower_bound,
        tuple(entries),
        best,
        (*_below(entries, best.lower_bound), *findings_of(machine)),
        machine.spec.notes,
        "NCCL" if machine.arch is None else "RCCL",
    )


def _below(entries: Sequence[AuditEntry], bound: _core.Bound) -> Iterator[str]:
    """Return a sentence for each prediction that stands below the bound on any plan, which says why."""
    for each in entries:
        if each.predicted is not None and each.predicted.seconds * 1e12 < bound.time_ps:
            why = by_latency("the model", each.predicted, bound) or (
                f"the graph file counts {counted(each.channels, 'channel')} of {each.speed * 1e-9:.4g} "
                f"GB/s, more than the network carries ({bound.witness})"
            )
            yield f"{each.algorithm} is predicted below the bound: {why}"


def _pairs(topology: Any, graph: Any) -> list[tuple[Path, Path | None]]:
    """Return the files of each node."""
    of = [[each] if isinstance(each, (str, PathLike)) else each for each in (topology, graph)]
    for name, files in zip(("topology", "graph"), of, strict=True):
        if not isinstance(files, Sequence) or not files:
            raise SpecError(name, "it names no file", "give a path, or a list of paths")
        for each in files:
            if not isinstance(each, (str, PathLike)):
                raise SpecError(name, f"{each!r} is not a path", "give paths")
    topologies, graphs = of
    if len(topologies) != len(graphs):
        why = f"{len(graphs)} files for {len(topologies)} nodes"
        raise SpecError("graph", why, "give one for each topology")
    return [(Path(a), Path(b)) for a, b in zip(topologies, graphs, strict=True)]


def _count(nodes: object) -> int:
    if isinstance(nodes, bool) or not isinstance(nodes, int) or not 1 <= nodes <= 4096:
        raise SpecError("nodes", f"{nodes!r} is no number of nodes", "give 1 to 4096")
    return nodes


def _seconds(choice: NcclChoice | None) -> float:
    return float("inf") if choice is None else choice.seconds


def _speed(machine: Machine, algorithm: str) -> NcclChannels | None:
    """Return the channels of a graph as NCCL's model counts them: as slow as the slowest node's."""
    graphs, _ = machine.channels(algorithm)
    if len(graphs) < len(machine.nodes):
        return None
    count = min(len(graph.channels) for graph in graphs)
    if algorithm != "nvls":
        count = min(count, machine.count)
    return NcclChannels(
        count,
        min(graph.speed_intra for graph in graphs),
        min(graph.speed_inter for graph in graphs),
        all(graph.same_channels for graph in graphs),
        max(graph.pattern for graph in graphs) == PLAIN_TREE,
    )


def choices_of(machine: Machine, kind: str, size: int) -> list[NcclChoice]:
    """Return every algorithm and protocol that the library weighs along a machine's graphs."""
    npus, nodes = machine.topology.npu_count, len(machine.nodes)
    if machine.arch is not None:
        tuning = machine.tuning
        return [] if tuning is None else list(rccl_choices(kind, size, npus, nodes, tuning))
    graphs = {name: _speed(machine, name) for name in _GRAPHS}
    known = {name: graph for name, graph in graphs.items() if graph is not None}
    ring = machine.nodes[0].graph("ring")
    is_on_pci = ring is not None and ring.type_intra not in _NEAR
    hardware = Hardware(0.0, npus=npus // nodes)
    asked = (kind, size, npus, nodes, hardware, machine.generation, known)
    return list(choices(*asked, host=Host(machine.cpu or USUAL_CPU, is_on_pci)))


def _predicted(machine: Machine, kind: str, size: int) -> dict[str, NcclChoice]:
    """Return what the library's model says of each graph: the fastest protocol."""
    best: dict[str, NcclChoice] = {}
    for choice in choices_of(machine, kind, size):
        name = choice.algorithm.removesuffix("-tree")
        if _seconds(choice) < _seconds(best.get(name)):
            best[name] = choice
    return best


def pick_graph(machine: Machine, kind: str, size: int) -> str | None:
    """Name the algorithm that the library picks among a machine's graphs; ``None`` where it has none."""
    known = [name for name in _GRAPHS if _speed(machine, name) is not None]
    predicted = _predicted(machine, kind, size)
    return min(known, key=lambda name: _seconds(predicted.get(name)), default=None)


def _entry(
    machine: Machine,
    algorithm: str,
    predicted: dict[str, NcclChoice],
    collective: _core.Collective,
    options: PlanOptions,
    progress: Progress | None,
) -> AuditEntry | None:
    channels = _speed(machine, algorithm)
    if channels is None:
        return None
    run, why = None, None
    try:
        plan = plan_graph(machine, algorithm, collective, progress, options)
        run = simulate(plan, latency_model=options.latency_model, progress=progress)
    except SpecError:
        raise
    except Error as error:
        why = error.why
    rate = channels.inside if len(machine.nodes) == 1 else channels.between
    return AuditEntry(algorithm, channels.count, rate * 1e9, predicted.get(algorithm), run, why)


def plan_graph(
    machine: Machine,
    algorithm: str,
    collective: _core.Collective,
    progress: Progress | None,
    planning: PlanOptions | None = None,
) -> Plan:
    """Make the plan of a machine's graphs of one algorithm, with the number of chunks that is the fastest.

    Raises
    ------
    SpecError
        As :meth:`Machine.channels`.
    InfeasibleError
        If the graphs do not serve the collective.
    """
    graphs, channels = machine.channels(algorithm)
    joint = JOINTS.get(graphs[0].pattern, "tree" if algorithm == "tree" else "ring")

    def along(
        given: _core.Collective,
        topology: _core.Topology,
        _algorithm: object,
        options: PlanOptions,
        _progress: Progress | None,
        _work: object,
    ) -> Plan:
        chunks, limit = options.chunks or 1, options.limit_bytes
        if algorithm == "nvls":
            heads = list(dict.fromkeys(tuple(leg[0][0] for leg in each) for each in channels))
            return Plan(_core.nccl.plan_heads(topology, given, heads, chunks, limit))
        core = _core.nccl.plan_channels(topology, given, joint, channels, chunks, limit)
        return Plan(core)

    given = planning or PlanOptions()
    options = PlanOptions(
        latency_model=given.latency_model, memory_limit=given.memory_limit, cache=False
    )
    name = f"nccl-{algorithm}"
    found = fastest(along, collective, machine.topology, name, options, progress=progress)
    return found.plan
