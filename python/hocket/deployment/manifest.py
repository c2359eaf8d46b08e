"""The manifest of a deployed folder: what was planned for which groups, and the hash of each file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from hocket._checks import path_of
from hocket.deployment import MANIFEST
from hocket.deployment.groups import check_groups
from hocket.errors import SpecError
from hocket.files.complaint import shown_path
from hocket.files.model import Count, Name, Reader, Strict, Words, schema_of
from hocket.files.raw import parse_json, read_bytes
from hocket.units import shown

FORMAT, VERSION = "hocket.deploy", 1
RUNTIME = {"runtime": "mscclpp", "version": "0.9.0"}
"""The runtime whose files folders have."""
MARGIN = 4
"""Processors of a GPU that neither plans nor NCCL count on."""
MAX_CTAS, MAX_PROCESSORS = 64, 1 << 16
"""The most thread blocks of NCCL, and processors of a GPU, of which anybody speaks."""
ALIGNMENT = 16
"""Bytes of which a chunk has a multiple, as MSCCL++'s executor asks."""
PARTED = ("all-gather", "reduce-scatter", "all-to-all")
"""Collectives whose data has a part for each rank."""


def _in_one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"{shown(text)} is not one line of text")
    return text


Line: TypeAlias = Annotated[Words, AfterValidator(_in_one_line)]
Bytes: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 63)]
Share: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Id: TypeAlias = Annotated[str, Field(pattern=r"^[a-z0-9][A-Za-z0-9_=-]{0,99}$")]
Sha: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Planned: TypeAlias = Literal[
    "all-reduce", "all-gather", "reduce-scatter", "broadcast", "all-to-all"
]


class HashedFile(Strict):
    """A file beside the manifest, and its SHA-256."""

    file: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._=-]{0,199}$")]
    sha256: Sha


class Sizes(Strict):
    """A range of sizes of the whole vector, as nccl-tests states them: from the first, below the second."""

    collective: Planned
    from_bytes: Bytes
    to_bytes: Bytes

    @model_validator(mode="after")
    def _is_range(self) -> Sizes:
        if self.to_bytes <= self.from_bytes:
            raise ValueError("to_bytes is not above from_bytes")
        return self


class Entry(Sizes):
    """A plan, and the calls that take it."""

    id: Id
    ranks: Annotated[int, Field(ge=2, le=4096)]
    algorithm: Line
    plan: HashedFile
    program: HashedFile
    name: Name
    """Of the plan in the program: the executor keeps contexts by it."""
    protocol: Literal["Simple", "LL"]
    unit_bytes: Annotated[int, Field(ge=ALIGNMENT, lt=1 << 32, multiple_of=ALIGNMENT)]
    """Of whose multiples a launch has to be: 16 bytes for each chunk of the whole vector."""
    max_bytes: Count
    blocks: Count
    switches: bool
    """Whether switches sum or multicast: then every GPU needs multicast memory."""
    planned_bytes: Bytes
    """Size at which it was planned and timed."""
    predicted_ps: Bytes
    """With the launch and both copies of a stage."""
    nccl_ps: Bytes | None
    """What NCCL is predicted to take; null where its model has no answer."""
    over_bound: Share
    """By which share its simulated time is above the lower bound on any plan's."""
    over_best: Share
    """By which share it is above that of the fastest plan of all, which may not fit the runtime."""

    @model_validator(mode="after")
    def _has_whole_parts(self) -> Entry:
        if not self.from_bytes - self.ranks < self.planned_bytes < self.to_bytes + self.ranks:
            raise ValueError(f"planned_bytes {self.planned_bytes} is no size of the row")
        if self.max_bytes < self.unit_bytes:
            raise ValueError(f"max_bytes {self.max_bytes} is less than unit_bytes")
        if self.collective in PARTED and self.unit_bytes % (ALIGNMENT * self.ranks):
            raise ValueError(f"unit_bytes {self.unit_bytes} has no whole part for each rank")
        return self


class LeftToNccl(Sizes):
    """What NCCL does, and why."""

    reason: Line


class Group(Strict):
    """Groups that share plans; the rank of a group is the place in its list."""

    name: Name
    npus: Annotated[list[Annotated[list[Bytes], Field(min_length=1)]], Field(min_length=1)]
    entries: list[Id]
    left_to_nccl: list[LeftToNccl]


class MadeFor(Strict):
    """The runtime whose files these are."""

    runtime: Literal["mscclpp"]
    version: Name


class Npu(Strict):
    """An NPU of the machine."""

    name: Line
    node: Bytes
    """Number of its node."""
    bus: Annotated[str, Field(pattern=r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")] | None
    """PCI bus id of the GPU, as PyTorch has it; null where no dump of the machine says it."""


class Machine(Strict):
    """The machine for which plans were made."""

    topology: Line
    npus: Annotated[list[Npu], Field(min_length=1)]
    """The rank of each in the job is its place, if ranks do not know their bus ids."""
    processors: Annotated[int, Field(ge=1, le=MAX_PROCESSORS)]
    """Of a GPU: thread blocks that run at once."""
    gpu: Name | None
    """Kind of the GPUs, such as ``sm90``, or ``ampere`` as NVLinks tell; null where nothing tells it."""

    @property
    def capability(self) -> str | None:
        """Compute capability of the GPUs, as ``"9.0"``, or None if it is not known."""
        found = re.fullmatch("sm([0-9]{1,2})([0-9])", self.gpu or "")
        return None if found is None else f"{found[1]}.{found[2]}"


class Estimates(Strict):
    """What predictions of plans took for granted."""

    launch_ps: Bytes
    """Of a launch and the copies into and out of a stage, at any size."""
    copy_rate: Annotated[int, Field(ge=1, lt=1 << 63)]
    """Bandwidth of a GPU's memory [bytes/s]."""
    tolerance: Annotated[float, Field(ge=0, lt=1)]
    """Share by which a plan must be faster than NCCL is predicted to be."""
    shares_links: bool = False
    """Whether groups of one name communicate at once, and a link's rate is divided by those on it."""

    def staged_ps(self, kind: str, size: int, ranks: int, time_ps: int) -> int:
        """Return what a plan takes with its launch and both copies of a stage [ps]."""
        own = size // ranks
        moved = {"all-gather": own + size, "reduce-scatter": size + own}.get(kind, 2 * size)
        return time_ps + self.launch_ps + 2 * moved * 10**12 // self.copy_rate

    def pays(self, staged_ps: int, nccl_ps: int | None) -> bool:
        """Return whether a plan is faster than NCCL, of which None is known to be slower than all."""
        return nccl_ps is None or staged_ps * (1 + self.tolerance) <= nccl_ps


class Graph(HashedFile):
    """A file for ``NCCL_GRAPH_FILE``, for the communicators of some groups."""

    npus: Annotated[list[list[Bytes]], Field(min_length=1)]
    node: Bytes | None
    """Which of a group's nodes reads it, in their order from 0; null for all."""


class Fallback(Strict):
    """How NCCL runs what is left to it."""

    tuner: HashedFile | None
    graphs: list[Graph]
    max_ctas: Annotated[int, Field(ge=1, le=MAX_CTAS)]


class Manifest(Strict):
    """What a deployed folder has."""

    format: Literal["hocket.deploy"]
    version: Literal[1]
    hocket: Line
    made_for: MadeFor
    machine: Machine
    estimates: Estimates
    groups: Annotated[list[Group], Field(min_length=1)]
    entries: list[Entry]
    fallback: Fallback
    sha256: Sha
    """Of the rest of the manifest, as canonical JSON."""

    @model_validator(mode="after")
    def _agrees(self) -> Manifest:
        known = {each.id: each for each in self.entries}
        if len(known) < len(self.entries):
            raise ValueError("two entries have one id")
        for group in self.groups:
            for each in group.entries:
                if each not in known:
                    raise ValueError(f"group {group.name}: there is no entry {shown(each)}")
                if len(group.npus[0]) != known[each].ranks:
                    ranks = known[each].ranks
                    raise ValueError(f"group {group.name}: entry {each} is for {ranks} ranks")
            _check_rows(group, [*(known[each] for each in group.entries), *group.left_to_nccl])
        taken = {each for group in self.groups for each in group.entries}
        unused = next((each for each in known if each not in taken), None)
        if unused is not None:
            raise ValueError(f"entry {unused}: no group takes it")
        spare = self.machine.processors - self.fallback.max_ctas - MARGIN
        for entry in self.entries:
            if entry.blocks > spare:
                need = f"{entry.blocks} blocks, {self.fallback.max_ctas} CTAs of NCCL and {MARGIN} spare"
                many = self.machine.processors
                raise ValueError(f"entry {entry.id}: {need} are more than {many} processors")
        buses = [(each.node, each.bus) for each in self.machine.npus if each.bus]
        if len(set(buses)) < len(buses):
            raise ValueError("two NPUs of a node have one bus id")
        self._check_groups()
        self._check_graphs()
        return self

    def _check_groups(self) -> None:
        """Refuse groups that overlap, share rows at unlike sizes, or have plans on several nodes."""
        by_name: dict[str, list[list[int]]] = {}
        for group in self.groups:
            by_name.setdefault(group.name, []).extend(group.npus)
            if len({len(npus) for npus in group.npus}) > 1:
                raise ValueError(f"group {group.name}: groups of unlike sizes share no rows")
        for name, npus in by_name.items():
            try:
                check_groups(name, npus, len(self.machine.npus))
            except SpecError as error:
                raise ValueError(str(error)) from None
        for group in self.groups:
            if group.entries and any(len(self.nodes_of(npus)) > 1 for npus in group.npus):
                raise ValueError(
                    f"group {group.name}: plans are for one node, and it is on several"
                )

    def _check_graphs(self) -> None:
        """Refuse graphs of no group or node, and two of one."""
        known = {tuple(npus) for group in self.groups for npus in group.npus}
        seen: dict[tuple[int, ...], set[int | None]] = {}
        for graph in self.fallback.graphs:
            for npus in map(tuple, graph.npus):
                if npus not in known:
                    raise ValueError(f"graphs {graph.file}: NPUs {shown(npus)} are no group")
                if graph.node is not None and graph.node >= len(self.nodes_of(npus)):
                    raise ValueError(f"graphs {graph.file}: a group has no node {graph.node}")
                nodes = seen.setdefault(npus, set())
                if nodes and (graph.node is None or nodes & {None, graph.node}):
                    raise ValueError(f"graphs {graph.file}: NPUs {shown(npus)} have others already")
                nodes.add(graph.node)

    def nodes_of(self, npus: Sequence[int]) -> list[int]:
        """Return the nodes of some NPUs, in order."""
        return sorted({self.machine.npus[npu].node for npu in npus})


def _check_rows(group: Group, rows: list[Sizes]) -> None:
    """Refuse a group without rows, and rows with holes between them or that overlap."""
    if not rows:
        raise ValueError(f"group {group.name}: it has no rows")
    ordered = sorted(rows, key=lambda row: (row.collective, row.from_bytes))
    for before, after in pairwise(ordered):
        if before.collective == after.collective and before.to_bytes != after.from_bytes:
            what = "overlap" if before.to_bytes > after.from_bytes else "leave a hole"
            where = f"at {min(before.to_bytes, after.from_bytes)} bytes"
            raise ValueError(f"group {group.name}: rows of {before.collective} {what} {where}")


def bus_id(text: str) -> str | None:
    """Return a PCI bus id as manifests have it, ``0000:1a:00.0``, or None if it is none."""
    found = re.fullmatch("([0-9a-f]{1,8}):([0-9a-f]{2}):([0-9a-f]{2}\\.[0-7])", text.lower())
    return None if found is None else f"{int(found[1], 16):04x}:{found[2]}:{found[3]}"


def digest(values: dict[str, Any]) -> str:
    """Return the SHA-256 of what a manifest says, without its own hash."""
    rest = {key: value for key, value in values.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Deployment:
    """A folder with plans for the groups of a job.

    Attributes
    ----------
    folder
        Where it is.
    manifest
        What it has.
    """

    folder: Path
    manifest: Manifest

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """The entries by their ids."""
        return {each.id: each for each in self.manifest.entries}

    @cached_property
    def _groups(self) -> dict[tuple[int, ...], Group]:
        found: dict[tuple[int, ...], Group] = {}
        for group in self.manifest.groups:
            for npus in group.npus:
                found.setdefault(tuple(npus), group)
        return found

    def group_of(self, npus: tuple[int, ...]) -> Group | None:
        """Return the groups to which NPUs in this order belong, or None if there are none."""
        return self._groups.get(npus)

    def in_another_order(self, npus: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the NPUs of a group in its order, or None if no group has just these NPUs."""
        return next((each for each in self._groups if sorted(each) == sorted(npus)), None)

    @property
    def files(self) -> list[HashedFile]:
        """The files that belong to it, apart from the manifest."""
        found = [file for each in self.manifest.entries for file in (each.plan, each.program)]
        tuner, graphs = self.manifest.fallback.tuner, self.manifest.fallback.graphs
        return [*found, *graphs, *([] if tuner is None else [tuner])]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all files that belong to it, in order."""
        return tuple(sorted({MANIFEST, *(each.file for each in self.files)}))

    def graph_of(self, npus: tuple[int, ...], npu: int) -> Graph | None:
        """Return the graphs that a group's communicator reads at one of its NPUs, or None if none."""
        manifest = self.manifest
        if npu not in npus or max(npus) >= len(manifest.machine.npus):
            return None
        node = manifest.nodes_of(npus).index(manifest.machine.npus[npu].node)
        found = (each for each in manifest.fallback.graphs if list(npus) in each.npus)
        return next((each for each in found if each.node in (None, node)), None)

    def npu_of(self, npu: int, bus: str) -> int | None:
        """Return the NPU that a rank has, or None if there is none like it.

        Parameters
        ----------
        npu
            The one that it has by its rank in the job, which tells its node.
        bus
            The PCI bus id of its GPU; empty if it is not known.
        """
        npus = self.manifest.machine.npus
        if npu >= len(npus) or not bus or npus[npu].bus is None:
            return npu if npu < len(npus) else None
        found = (at for at, each in enumerate(npus) if each.node == npus[npu].node)
        return next((at for at in found if npus[at].bus == bus_id(bus)), None)

    def read(self, file: HashedFile) -> bytes:
        """Return the bytes of one of its files.

        Raises
        ------
        SpecError
            If it cannot be read, or is another file than the manifest says.
        """
        path = self.folder / file.file
        raw = read_bytes(path, "a file of a deployed folder", waits=False)
        found = hashlib.sha256(raw).hexdigest()
        if found != file.sha256:
            why = f"its SHA-256 begins {found[:8]}, and the manifest says {file.sha256[:8]}"
            raise SpecError(None, why, "deploy it anew, or copy it again", shown_path(path))
        return raw


def load_deployment(folder: str | PathLike[str]) -> Deployment:
    """Read the manifest of a deployed folder; its files are read when they are used.

    Parameters
    ----------
    folder
        The folder, or the manifest in it.

    Raises
    ------
    SpecError
        Naming file, key and remedy, if it is no such manifest, of another version, or was changed.
    """
    path = path_of("folder", folder)
    if path.name != MANIFEST:
        with suppress(OSError):  # of a name that is too long, which reading says in a line
            if path.exists() and not path.is_dir():
                where = f"name the folder; its manifest is {MANIFEST} there"
                raise SpecError(None, "is no deployed folder", where, shown_path(path))
        path /= MANIFEST
    origin = shown_path(path)
    raw = read_bytes(path, "the manifest of a deployed folder", waits=False)
    values = parse_json(raw, origin, "deploy anew")
    if not isinstance(values, dict):
        raise SpecError(None, "is no manifest", "deploy anew", origin)
    for key, right in (("format", FORMAT), ("version", VERSION)):
        found = values.get(key)
        if found != right or type(found) is not type(right):
            why = f"is {shown(found)}" if key in values else "is missing"
            right = f'this hocket reads format "{FORMAT}", version {VERSION}'
            raise SpecError(key, why, right, origin)
    manifest = Reader({}, origin).checked(Manifest, values)
    if digest(values) != manifest.sha256:
        raise SpecError("sha256", "is of another manifest: it was changed", "deploy anew", origin)
    return Deployment(path.parent, manifest)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of manifests."""
    return schema_of(Manifest, "hocket deployed folder")
