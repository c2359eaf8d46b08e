"""Training iterations as execution traces, with all that ASTRA-sim needs to run them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from hocket._checks import check_function, instance_of, path_of
from hocket._core.chakra import Writer
from hocket.errors import InfeasibleError
from hocket.files.atomic import replacing_folder
from hocket.topology.astra import astra_network
from hocket.traces.files import CALLS
from hocket.traces.folder import MEMORY, is_trace_file, json_text
from hocket.training import TrainingRun
from hocket.training.network import TOKENS
from hocket.training.parallel import CAUSES, Group
from hocket.training.timeline import labels

if TYPE_CHECKING:
    from hocket import _core

_PS_PER_US = 1_000_000
_NONE = (1 << 32) - 1
_CALL = {name: number for number, name in CALLS.items()}
_IMPLEMENTED = {"Ring": "ring", "FullyConnected": "direct", "Switch": "halvingDoubling"}
_GROUPS = {"tensor": "tp", "expert": "ep", "table": "dp"}
"""Among whom the collectives of a cause are; those of data are of replicas, and experts have fewer."""


@dataclass(frozen=True)
class WrittenTraining:
    """A folder that was written.

    Attributes
    ----------
    folder
        Its path.
    ranks, nodes
        How many NPUs, and nodes of all of them.
    files
        Names of the files beside the traces.
    notes
        What could not be written.
    """

    folder: Path
    ranks: int
    nodes: int
    files: tuple[str, ...]
    notes: tuple[str, ...]


def write_training(
    run: TrainingRun,
    folder: str | PathLike[str],
    *,
    progress: Callable[[str, int, int], None] | None = None,
) -> WrittenTraining:
    """Write the graph of training iterations as a trace of each NPU, whole or not at all.

    In the folder are ``workload.NPU.et``, ``groups.json`` with the groups of NPUs, and ASTRA-sim's
    ``system.json``, ``memory.json`` and, where it can express the topology, ``network.yml``.

    Passes take whole microseconds, as the format has no others: what is cut off one is added to the next,
    so that an NPU computes as long as in the run to a microsecond.

    Parameters
    ----------
    run
        What :func:`hocket.train` gave.
    folder
        The folder; one that was written before is replaced.
    progress
        Called with stage, done and total; an exception stops the work.

    Raises
    ------
    SpecError
        If the folder cannot be written, or has other files.
    """
    instance_of(TrainingRun, "run", run, "give one of hk.train(...)")
    check_function("progress", progress)
    target = path_of("folder", folder)
    npus = run.topology.npu_count
    graph = _Graph(run)
    files = {
        "groups.json": json_text(graph.numbered),
        "system.json": json_text(_system(run.topology)),
        "memory.json": json_text(MEMORY),
    }
    notes = []
    try:
        files["network.yml"] = astra_network(run.topology)
    except InfeasibleError as error:
        notes.append(f"no network.yml: {error.why}")
    with replacing_folder(target, is_trace_file) as temporary:
        nodes = 0
        for npu in range(npus):
            if progress is not None:
                progress("write traces", npu, npus)
            content, count = graph.trace(npu)
            nodes += count
            (temporary / f"workload.{npu}.et").write_bytes(content)
        for name, text in files.items():
            (temporary / name).write_text(text, encoding="utf-8")
    return WrittenTraining(target, npus, nodes, tuple(files), tuple(notes))


class _Graph:
    """The graph of a run, stage by stage, and the groups of its NPUs."""

    def __init__(self, run: TrainingRun) -> None:
        self.run = run
        self.names = labels(run)
        self.writer = Writer()
        self.nodes: list[list[int]] = [[] for _ in run.stages]
        columns = run.columns
        self.exchanges = [run.exchanges[shape] for shape in columns.shape.tolist()]
        self.actor, self.call = columns.actor.tolist(), columns.call.tolist()
        for node, actor in enumerate(self.actor):
            self.nodes[actor].append(node)
        npus = run.topology.npu_count
        self.members = {name: _members(group, run.topology) for name, group in run.groups.items()}
        self.stage_of = [0] * npus
        for line in self.members["pp"].values():
            for stage, npu in enumerate(line):
                self.stage_of[npu] = stage
        self.numbers: dict[tuple[int, ...], int] = {}
        whole = tuple(range(npus))
        for lists in self.members.values():
            for group in lists.values():
                key = tuple(sorted(group))
                if len(key) > 1 and key != whole:
                    self.numbers.setdefault(key, len(self.numbers) + 1)

    @property
    def numbered(self) -> dict[str, list[int]]:
        """NPUs of each group by its number; that of all NPUs has none."""
        return {str(number): list(group) for group, number in self.numbers.items()}

    def trace(self, npu: int) -> tuple[bytes, int]:
        """Return the file of an NPU, and how many nodes it has."""
        columns, writer, left = self.run.columns, self.writer, 0
        first, times, causes = columns.first_dep, columns.time_ps, columns.cause
        mine = self.nodes[self.stage_of[npu]]
        for node in mine:
            after = columns.deps[first[node] : first[node + 1]].tolist()
            name, call = self.names[node], self.call[node]
            if call == _NONE:
                micros, left = divmod(int(times[node]) + left, _PS_PER_US)
                writer.compute(node, name, after, micros)
                continue
            exchange = self.exchanges[call]
            if exchange.kind == "message":
                self._message(npu, node, name, after, exchange.size)
                continue
            group = self._group(npu, CAUSES[causes[node]], exchange.npus)
            size = exchange.size
            if exchange.kind == "all-gather":
                size = -(-size // exchange.npus)
            number = self.numbers.get(tuple(sorted(group)))
            kind = "all-to-all" if exchange.kind == TOKENS else exchange.kind
            writer.call(node, name, after, _CALL[kind], size, number)
        return writer.take(), len(mine)

    def _message(self, npu: int, node: int, name: str, after: list[int], size: int) -> None:
        columns, call = self.run.columns, self.call[node]
        sender, receiver = columns.members[columns.first_member[call] :][:2].tolist()
        other = self.actor[receiver if node == sender else sender]
        peer = self.members["pp"][npu][other]
        add = self.writer.send if node == sender else self.writer.receive
        add(node, name, after, peer, size, call)

    def _group(self, npu: int, cause: str, size: int) -> tuple[int, ...]:
        names = [_GROUPS[cause]] if cause in _GROUPS else ["dp", "replicas"]
        return next(
            self.members[name][npu] for name in names if len(self.members[name][npu]) == size
        )


def _members(group: Group, topology: _core.Topology) -> dict[int, tuple[int, ...]]:
    """Return the NPUs of each NPU's group, in the order of their ranks in it."""
    if group.portions is None:
        return {npu: members for members in group.members for npu in members}
    sizes = [size for _, size, *_ in topology.dimensions]
    strides = [1]
    for size in sizes:
        strides.append(strides[-1] * size)
    steps = [(each.size, strides[each.dimension] * each.stride) for each in group.portions]
    found: dict[int, tuple[int, ...]] = {}
    for npu in range(topology.npu_count):
        if npu in found:
            continue
        members = [npu]
        for size, stride in steps:
            members = [first + i * stride for i in range(size) for first in members]
        found.update(dict.fromkeys(members, tuple(members)))
    return found


def _system(topology: _core.Topology) -> dict[str, object]:
    kinds = [kind for kind, size, *_ in topology.dimensions if size > 1] or ["Ring"]
    ways = [_IMPLEMENTED.get(kind, "ring") for kind in kinds]
    direct = ["direct" if way == "halvingDoubling" else way for way in ways]
    return {
        "scheduling-policy": "FIFO",
        "endpoint-delay": 0,
        "active-chunks-per-dimension": 1,
        "preferred-dataset-splits": 1,
        "all-reduce-implementation": ways,
        "all-gather-implementation": ways,
        "reduce-scatter-implementation": ways,
        "all-to-all-implementation": direct,
        "collective-optimization": "localBWAware",
        "local-mem-bw": 1_000_000,
    }
