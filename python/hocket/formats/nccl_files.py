"""Files of NCCL: graphs, tables for tuners and dumps of machines, each judged by its own rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hocket import _core
from hocket._core.formats import check_nccl_graph
from hocket.collectives.collective import Progress, collective_on
from hocket.errors import SpecError
from hocket.formats.judgement import Fault, Judgement, faults_of, line_in
from hocket.nccl.design import EVERY_COMMUNICATOR, OF_SOME, partial_devs
from hocket.nccl.findings import uneven_links
from hocket.nccl.graphs import ID, Graph
from hocket.nccl.machine import Machine, load_machine
from hocket.nccl.report import pick_graph, plan_graph
from hocket.units import counted, shown

if TYPE_CHECKING:
    from hocket.plans.plan import Plan
    from hocket.topology.sources import TopologyLike

_NAMES = {0: "ring", 1: "tree", 2: "CollNet chain", 3: "NVLS", 4: "CollNet direct"}
_SIZE = "64 MiB"
_DUMP = "give what NCCL wrote to NCCL_TOPO_DUMP_FILE: graphs name GPUs and NICs by its numbers"


def judge_graphs(
    text: str, path: Path, said: Mapping[str, Any], _progress: Progress | None
) -> Judgement:
    """Check a file of graphs as one for ``NCCL_GRAPH_FILE``."""
    findings, notes = check_nccl_graph(text)
    graphs = _core.nccl.parse_graphs(text.encode())
    faults = list(faults_of(findings))
    right = "NCCL's reader takes it, and each channel passes every GPU once"
    if "topology" in said:
        machine = machine_of(said["topology"], path, said.get("nodes", 1))
        faults += _on_machine(machine)
        right += f", on {machine.nodes[0].file} too"
    elif "nodes" in said:
        raise SpecError("nodes", "says nothing without a machine", _DUMP)
    each = [
        f"{len(graph.channels)} {_NAMES[graph.id]} channel{'s'[: len(graph.channels) != 1]} of "
        f"{graph.speed_intra:.4g} GB/s"
        for graph in graphs
        if graph.channels
    ]
    what = ", ".join(each) or "no channels"
    return Judgement(
        f"NCCL's graphs: {what}",
        right,
        tuple(faults),
        len(faults),
        tuple(notes),
        tuple(_warnings(graphs)),
    )


def _warnings(graphs: Sequence[Graph]) -> Iterator[str]:
    """Return what a user of ``NCCL_GRAPH_FILE`` must know, that of this file first."""
    channels = [channel for graph in graphs if graph.id < ID["nvls"] for channel in graph.channels]
    if channels:
        have = partial_devs([dev for dev, _ in channels[0][1]])
        if have:
            yield f"the file {OF_SOME.format(have)}"
    if any(rank is not None for _, gpus, _ in channels for _, rank in gpus):
        yield (
            "it names GPUs by rank, which NCCL 2.30 takes before dev and does not check: a communicator of "
            "other ranks, as of a tensor-parallel group, and every other node take channels of GPUs that "
            "are not theirs; leave rank out"
        )
    yield EVERY_COMMUNICATOR


def machine_of(topology: object, graphs: Path | None, nodes: int) -> Machine:
    """Read the machine whose dump is named, with its graphs.

    Raises
    ------
    SpecError
        If there is no such file, or it is no dump.
    """
    if not isinstance(topology, str | PathLike) or not Path(topology).is_file():
        raise SpecError("topology", f"{shown(topology)} is not the dump of a machine", _DUMP)
    return load_machine([(Path(topology), graphs)], nodes)


def _on_machine(machine: Machine) -> Iterator[Fault]:
    """Return what of a machine's graphs does not fit it."""
    for algorithm in ID:
        try:
            machine.channels(algorithm)
        except SpecError as error:
            place, why = f"graph {ID[algorithm]}", f"{error.why}; {error.remedy}"
            yield Fault("machine", line_in(error), place, why)


def plan_graphs(
    _text: str,
    path: Path,
    topology: TopologyLike,
    said: Mapping[str, Any],
    progress: Progress | None,
) -> Plan:
    """Make the plan of what NCCL does along one of the graphs."""
    machine = machine_of(topology, path, said.get("nodes", 1))
    kind, size = said.get("collective", "all-reduce"), said.get("size", _SIZE)
    collective = collective_on(kind, machine.topology, size)
    found = [name for name in ID if machine.channels(name)[1]]
    name = said.get("graph") or pick_graph(machine, collective.kind, collective.size)
    if name not in found:
        why = "it has no graph with channels" if name is None else f"it has no graph {shown(name)}"
        have = f"it has {', '.join(found)}" if found else "give what NCCL_GRAPH_DUMP_FILE holds"
        raise SpecError("graph", why, have)
    return plan_graph(machine, name, collective, progress)


def judge_table(
    text: str, _path: Path, _said: Mapping[str, Any], _progress: Progress | None
) -> Judgement:
    """Check a table for tuners as the example plugin of NCCL's repository reads it."""
    rows, comments = _core.nccl.parse_tuner(text.encode())
    faults = []
    if not rows:
        faults.append(Fault("empty", None, "", "it has no line that answers; give one"))
    try:
        _core.nccl.write_tuner(rows, comments)
    except SpecError as error:
        faults.append(Fault("hole", None, "", f"{error.why}; {error.remedy}"))
    kinds = list(dict.fromkeys(row[0] for row in rows))
    notes = [
        f"row {hidden + 1} never answers: row {first + 1} comes before it for the same sizes"
        for hidden, first in _hidden(rows)
    ]
    warnings = []
    if any(row[5] is None for row in rows):
        warnings.append(
            "the example plugin of NCCL's repository sets one channel where a line has -1 for channels"
        )
    return Judgement(
        f"a table for tuners of NCCL: {len(rows)} lines for {', '.join(kinds) or 'nothing'}",
        "its names are known, and it answers for every size",
        tuple(faults),
        len(faults),
        tuple(notes),
        tuple(warnings),
    )


_MOST_COMPARED = 2000


def _hidden(rows: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """Return the rows that an earlier one hides whole, with it."""
    for i, row in enumerate(rows[:_MOST_COMPARED]):
        for j, other in enumerate(rows[:i]):
            of = zip(other[6:], row[6:], strict=True)
            is_any = all(mine is None or mine == its for mine, its in of)
            if other[0] == row[0] and is_any and other[1] <= row[1] and row[2] <= other[2]:
                yield i, j
                break


def judge_machine(
    text: str, path: Path, _said: Mapping[str, Any], _progress: Progress | None
) -> Judgement:
    """Check the dump of a machine, or the nvidia-smi output of one."""
    is_dump = text.lstrip("\ufeff \t\r\n").startswith("<")
    raw = text.encode()
    system = _core.nccl.System.parse(raw) if is_dump else _core.nccl.System.read_smi(raw)
    machine = load_machine([(path, None)])
    gpus, nets = len(system.gpus), len(system.nets)
    links = sorted({gpu[4] for gpu in system.gpus})
    many = str(links[0]) if len(links) == 1 else f"{links[0]} to {links[-1]}"
    what = f"{counted(gpus, 'GPU')} with {many} links each"
    if is_dump:
        what += f", {counted(nets, 'NIC')}"
    source = "NCCL's dump" if is_dump else "nvidia-smi's matrix"
    have = partial_devs([gpu[0] for gpu in system.gpus])
    return Judgement(
        f"{source} of a machine: {what}",
        f"it is a topology: {counted(machine.topology.link_count, 'link')}",
        notes=(*uneven_links(machine), *machine.spec.notes),
        warnings=(f"the dump {OF_SOME.format(have)}",) if have else (),
    )
