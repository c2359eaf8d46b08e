"""Deployed folders, made of the fastest plans that a runtime executes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hocket import _core
from hocket._checks import check_function, instance_of, one_of, path_of, whole
from hocket._core import formats as core
from hocket._options import Rate, Time, options_of
from hocket._results import HIDDEN, Column, ListResult, Result, picoseconds, said
from hocket.collectives.collective import Progress
from hocket.collectives.sizes import sizes_of
from hocket.comparison.compare import compare
from hocket.deployment import MANIFEST
from hocket.deployment.groups import ANY, process_groups
from hocket.deployment.manifest import (
    ALIGNMENT,
    FORMAT,
    MARGIN,
    RUNTIME,
    VERSION,
    Deployment,
    Manifest,
    bus_id,
    digest,
    load_deployment,
)
from hocket.errors import Error, InfeasibleError, SpecError
from hocket.files.atomic import check_folder, replacing_folder
from hocket.files.model import Reader
from hocket.formats.deployed_check import uses_switches
from hocket.nccl.design import design_graphs
from hocket.nccl.gpus import gpu_named
from hocket.nccl.graphs import graph_text
from hocket.nccl.machine import Machine, load_machine
from hocket.nccl.model import KINDS as PREDICTED
from hocket.nccl.prediction import Library, library_on, network_and_gpu
from hocket.nccl.tuner import TunerTable, tuner_table
from hocket.plans.plan import Plan
from hocket.plans.synthesis.runtimes import FEWEST
from hocket.runtime.programs import lower
from hocket.topology.symmetry import Symmetry
from hocket.topology.text import from_text
from hocket.units import counted, format_size, format_time_ps, parse_bandwidth, parse_time, shown

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    from hocket.comparison.compare import Entry as Compared
    from hocket.topology.sources import TopologyLike
    from hocket.topology.spec import TopologySpec

    class DeployKeywords(TypedDict, total=False):
        """Keywords of :func:`deploy`: those of :class:`DeployOptions`."""

        process_groups: str
        collectives: str
        sizes: str
        processors: int
        max_ctas: int
        launch: str | float
        copy_rate: str | float
        tolerance: float


COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "all-to-all")
"""What runtimes have plans for."""
_TUNER = "tuner.csv"
_MOST_NODES, _MOST_GRAPHS = 16, 16
"""Nodes of a group for which graphs are designed, and files of graphs."""


@dataclass(frozen=True, kw_only=True)
class DeployOptions:
    """What a deployed folder has.

    Attributes
    ----------
    process_groups
        Groups of the job: world, the axes of a mesh as dp=2,tp=4 (the last varies fastest), any=4, or a
        file.json.
    collectives
        Collectives that are planned, separated by commas.
    sizes
        Sizes that are planned, as in nccl-tests, such as 1K:64M:x4.
    processors
        Processors (SMs) of a GPU. Default: those of an H20, the fewest at NVSwitches.
    max_ctas
        Limit of NCCL's thread blocks while a plan runs (NCCL_MAX_CTAS).
    launch
        Time that a launch and the copies into and out of a stage take at any size [s].
    copy_rate
        Bandwidth of a GPU's memory [bytes/s].
    tolerance
        Share by which a plan must be faster than NCCL is predicted to be.

    Raises
    ------
    SpecError
        Naming the field, for a value that makes no sense.
    """

    process_groups: str = "world"
    collectives: str = "all-reduce,all-gather,reduce-scatter"
    sizes: str = "1K:64M:x4"
    processors: int = FEWEST
    max_ctas: int = 16
    launch: Time = "10 us"
    copy_rate: Rate = "1.5 TB/s"
    tolerance: float = 0.05

    def __post_init__(self) -> None:
        for name in ("process_groups", "collectives", "sizes"):
            instance_of(str, name, getattr(self, name), "give text")
        for kind in self.kinds:
            one_of("collectives", kind, COLLECTIVES)
        sizes_of(self.sizes)
        whole("processors", self.processors, 1, 1 << 16)
        whole("max_ctas", self.max_ctas, 1, 64)
        if self.blocks < 1:
            why = f"{self.processors} leave none beside {self.max_ctas} CTAs and {MARGIN} spare"
            raise SpecError("processors", why, "give the number of the GPU, such as 132")
        parse_time(self.launch, field="launch")
        parse_bandwidth(self.copy_rate, field="copy_rate")
        share: object = self.tolerance
        is_number = isinstance(share, int | float) and not isinstance(share, bool)
        if not is_number or not 0 <= self.tolerance < 1:
            right = "give a share from 0 to below 1"
            raise SpecError("tolerance", f"{shown(self.tolerance)} is not valid", right)

    @property
    def kinds(self) -> list[str]:
        """The collectives that are planned."""
        return list(dict.fromkeys(each.strip() for each in self.collectives.split(",")))

    @property
    def blocks(self) -> int:
        """The most thread blocks of a plan."""
        return self.processors - self.max_ctas - MARGIN

    def staged_ps(self, plan: Plan, time_ps: int) -> int:
        """Return what a plan takes with its launch and both copies of a stage [ps]."""
        kind, size = plan.collective.kind, plan.collective.size
        own = size // len(plan.collective.npus)
        moved = {"all-gather": own + size, "reduce-scatter": size + own}.get(kind, 2 * size)
        rate = parse_bandwidth(self.copy_rate, field="copy_rate")
        return time_ps + parse_time(self.launch, field="launch") + 2 * moved * 10**12 // rate


@dataclass(frozen=True)
class DeployedRange(Result):
    """Sizes of a collective of a group, and what does them.

    Attributes
    ----------
    group
        Name of the groups.
    groups
        How many of them share the plan.
    collective
        What is done.
    from_bytes, to_bytes, last_bytes
        From which size of the whole vector on, and below which; and the last below that.
    planned_bytes
        The largest size that was planned.
    runs
        The algorithm of the plan; ``NCCL`` if it is left to NCCL.
    predicted_ps, nccl_ps
        What the plan takes with launch and copies, and what NCCL is predicted to take, at the size that
        was planned. None if unknown.
    why
        Why it is left to NCCL; empty for a plan.
    """

    group: str = field(metadata=said(column=Column("group", leaves=0)))
    groups: int = field(metadata=said(column=Column("groups", leaves=4)))
    collective: str = field(metadata=said(column=Column("collective", leaves=0)))
    from_bytes: int = field(metadata=said(column=Column("from", leaves=0, is_given=True)))
    to_bytes: int
    last_bytes: int = field(metadata=said(column=Column("to", leaves=0, is_given=True)))
    planned_bytes: int = field(metadata=said(column=Column("timed at", leaves=5, is_given=True)))
    runs: str = field(metadata=said(column=Column("runs", leaves=0)))
    predicted_ps: int | None = field(metadata=said(column=Column("plan", leaves=1)))
    nccl_ps: int | None = field(metadata=said(column=Column("NCCL", leaves=2)))
    why: str = field(metadata=said(column=Column("why", leaves=3, is_prose=True)))


@dataclass(frozen=True, repr=False)
class Deployed(ListResult[DeployedRange]):
    """A folder that was written.

    Attributes
    ----------
    folder
        Where it is.
    topology
        The network for which it was made.
    files
        Names of the files in it.
    ranges
        What does which sizes.
    deployment
        What was written.
    notes
        What is to be known of it.
    """

    _table = "ranges"

    folder: str
    topology: str
    files: tuple[str, ...]
    ranges: tuple[DeployedRange, ...]
    deployment: Deployment = field(metadata=HIDDEN)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Deployed: {len(self)} ranges in {self.folder}>"


class _Program(NamedTuple):
    """The file of a plan for the runtime, what it takes there, and whether switches sum or multicast."""

    text: str
    made: core.Exported
    switches: bool


@dataclass(frozen=True)
class _Row:
    """A plan for some sizes, or NCCL."""

    kind: str
    from_bytes: int
    to_bytes: int
    planned_bytes: int
    plan: Plan | None
    program: _Program | None
    over: tuple[float, float]
    chunks: int
    staged_ps: int | None
    nccl_ps: int | None
    why: str = ""

    @property
    def sizes(self) -> dict[str, object]:
        """What a manifest says of it in any case."""
        return {
            "collective": self.kind,
            "from_bytes": self.from_bytes,
            "to_bytes": self.to_bytes,
        }

    @property
    def key(self) -> tuple[object, ...]:
        """What rows have in common that are one."""
        return (self.plan and self.plan.algorithm, self.chunks, bool(self.why))


@dataclass(frozen=True)
class _Class:
    """Groups of one name between which the network makes no difference."""

    name: str
    npus: list[list[int]]
    rows: list[_Row]


def deploy(
    topology: TopologyLike,
    folder: str | PathLike[str],
    *,
    options: DeployOptions | None = None,
    gpu: str | None = None,
    machine: Machine | None = None,
    progress: Progress | None = None,
    **keywords: Unpack[DeployKeywords],
) -> Deployed:
    """Write a folder with plans for all sizes, collectives and groups of a job.

    Each plan is proved and fits the runtime. With its launch and the copies of its stage it is predicted to
    be faster than NCCL. Groups that are alike in the network share plans.

    Parameters
    ----------
    topology
        A network, or text as of :func:`hocket.topology.load`. Rank i of the job is its NPU i.
    folder
        The folder to write; one that is there is replaced if it was deployed before.
    options
        What it has.
    gpu
        As for :func:`hocket.nccl.predict`; by default that of a dump.
    machine
        As of :func:`hocket.nccl.load_machine`, for bus ids of GPUs and graphs of NCCL; by default that
        of the dumps which `topology` names.
    progress
        Called as ``progress(stage, done, total)``.
    keywords
        Any option of :class:`DeployOptions` by its name, in place of the one in `options`.

    Raises
    ------
    SpecError
        For input that makes no sense, or a folder that has other files.
    InfeasibleError
        If no group has any plan.
    """
    given = options_of(DeployOptions, options, keywords)
    check_function("progress", progress)
    target = path_of("folder", folder)
    network, gpu = network_and_gpu(topology, gpu)
    if machine is None and isinstance(topology, str | PathLike):
        machine = machine_of(from_text(str(topology), bandwidth=None, latency=None))
    if gpu is not None:
        with suppress(InfeasibleError):  # of a GPU that no model knows, nothing is predicted
            gpu_named(gpu)
    is_own = _files_of(target).__contains__
    check_folder(target, is_own)  # so that nobody plans for a folder that cannot be written
    made = list(_classes(network, gpu, given, progress))
    if not any(row.plan for each in made for row in each.rows):
        whys = dict.fromkeys(row.why for each in made for row in each.rows)
        why = "; ".join([*whys][:3])
        raise InfeasibleError(None, f"all is left to NCCL: {why}", "use NCCL alone")
    table = _tuner(network, gpu, made)
    with replacing_folder(target, is_own) as at:
        files = {} if table is None else {_TUNER: table.text.encode()}
        manifest = _manifest(network, gpu, machine, given, made, at, files)
        for name, raw in files.items():
            (at / name).write_bytes(raw)
    ranges = tuple(
        DeployedRange(
            each.name,
            len(each.npus),
            row.kind,
            row.from_bytes,
            row.to_bytes,
            row.to_bytes - 1,
            row.planned_bytes,
            "NCCL" if row.plan is None else row.plan.algorithm,
            row.staged_ps,
            row.nccl_ps,
            row.why,
        )
        for each in made
        for row in each.rows
    )
    notes = [
        f"{counted(len(manifest.entries), 'plan')} for "
        f"{counted(sum(len(each.npus) for each in made), 'group')}; each was proved"
    ]
    if all(row.nccl_ps is None for each in made for row in each.rows):
        notes.append("NCCL's model says nothing of this network, so all plans that fit are kept")
    deployment = Deployment(target, manifest)
    return Deployed(
        str(target), network.name, tuple(sorted(files)), ranges, deployment, tuple(notes)
    )


def machine_of(spec: TopologySpec) -> Machine | None:
    """Return the machine of the dumps that a network was made of, or None if it was made of none."""
    files = [(dump, None) for dump in spec.dumps]
    return load_machine(files, slow=spec.slow) if files else None


def _files_of(folder: Path) -> set[str]:
    """Return the names of the files of a folder that was deployed before; none of any other."""
    try:
        found = load_deployment(folder)
    except SpecError:
        return set()
    return {MANIFEST, *(file.file for file in found.files)}


def _classes(
    network: _core.Topology, gpu: str | None, given: DeployOptions, progress: Progress | None
) -> Iterator[_Class]:
    """Yield the groups of a job with their plans, one of each kind of groups."""
    symmetry = Symmetry(network)
    node_of = {npu: node for node, npus in enumerate(network.groups) for npu in npus}
    for named in process_groups(given.process_groups, network.npu_count):
        alike: dict[tuple[bool, bytes], list[list[int]]] = {}
        for npus in named.npus:
            is_apart = len({node_of.get(npu) for npu in npus}) > 1
            key = (is_apart, symmetry.key(npus, ordered=True))
            alike.setdefault(key, []).append(list(npus))
        for (is_apart, _), groups in alike.items():
            first = groups[0]
            if len(first) < 2 or is_apart:
                why = "the group has one rank" if len(first) < 2 else "plans are for one node"
                rows = [_left(kind, given, None, why) for kind in given.kinds]
            else:
                library = _library(network, gpu, first)
                rows = []
                for done, kind in enumerate(given.kinds):
                    if progress is not None:
                        progress(f"{named.name}, {kind}", done, len(given.kinds))
                    rows += _rows(kind, network, first, library, given)
            yield _Class(named.name, groups, rows)


def _left(kind: str, given: DeployOptions, nccl_ps: int | None, why: str) -> _Row:
    sizes = sizes_of(given.sizes)
    return _Row(
        kind, min(sizes), max(sizes) + 1, max(sizes), None, None, (0, 0), 0, None, nccl_ps, why
    )


def _library(network: _core.Topology, gpu: str | None, npus: list[int]) -> Library | None:
    """Return what NCCL is among some NPUs, or None if its model does not say it."""
    try:
        return library_on(_part(network, npus), gpu)
    except Error:
        return None


def _part(network: _core.Topology, npus: list[int]) -> _core.Topology:
    """Return the network without other NPUs."""
    others = set(range(network.npu_count)) - set(npus)
    return network.without([network.device_names[npu] for npu in sorted(others)])


def _rows(
    kind: str,
    network: _core.Topology,
    npus: list[int],
    library: Library | None,
    given: DeployOptions,
) -> list[_Row]:
    """Return what does each size, without holes between the sizes."""
    found: list[_Row] = []
    sizes = sorted({max(size // len(npus), 1) * len(npus) for size in sizes_of(given.sizes)})
    for size in sizes:
        row = _row(kind, network, npus, size, library, given)
        before = found[-1] if found else None
        if before is not None and before.key == row.key:
            start = before.from_bytes
            found.pop()
        elif before is not None:
            start = round(math.sqrt(before.planned_bytes * size))
            found[-1] = replace(before, to_bytes=start)
        else:
            start = size
        found.append(replace(row, from_bytes=start))
    asked = sizes_of(given.sizes)  # which ranks need not divide: stages are padded
    found[0] = replace(found[0], from_bytes=min(asked))
    found[-1] = replace(found[-1], to_bytes=max(asked) + 1)
    return found


def _row(
    kind: str,
    network: _core.Topology,
    npus: list[int],
    size: int,
    library: Library | None,
    given: DeployOptions,
) -> _Row:
    """Return the fastest plan of a size that the runtime executes, or NCCL."""
    nccl_ps = None
    if library is not None and kind in PREDICTED:
        nccl_ps = picoseconds(library.choices(kind, size)[0].seconds)
    row = _Row(kind, 0, size + 1, size, None, None, (0, 0), 0, None, nccl_ps)
    best, why = _best(kind, network, npus, size, given)
    if best is None:
        return replace(row, why=why)
    found, program = best
    staged = given.staged_ps(found.plan, found.run.time_ps)
    if nccl_ps is not None and staged * (1 + given.tolerance) > nccl_ps:
        why = f"{found.algorithm} takes {format_time_ps(staged)} with launch and copies"
        return replace(row, staged_ps=staged, why=why)
    over = (found.run.gap, 0.0 if found.plan.fit is None else found.plan.fit.over_best)
    return replace(
        row, plan=found.plan, program=program, over=over, chunks=found.chunks, staged_ps=staged
    )


def _best(
    kind: str, network: _core.Topology, npus: list[int], size: int, given: DeployOptions
) -> tuple[tuple[Compared, _Program] | None, str]:
    """Return the fastest plan that fits, of the best number of chunks or of 1, or why there is none."""
    why = ""
    runtime = f"{RUNTIME['runtime']}:sms={given.blocks}"
    for chunks in (None, 1):
        try:
            found = compare(kind, network, size=size, npus=npus, chunks=chunks, runtime=runtime)
        except InfeasibleError as error:
            why = why or error.why.removeprefix("no plan fits: ")
            continue
        for entry in found:
            program = _program(entry.plan, given)
            if not isinstance(program, str):
                return (entry, program), ""
            why = why or program
    return None, f"no plan fits: {why}"


def _program(plan: Plan, given: DeployOptions) -> _Program | str:
    """Return the program of a plan, or why neither CPUs nor the runtime execute it."""
    text: list[str] = []
    switches = uses_switches(plan)
    try:
        if not switches:  # of which CPUs run another plan
            lower(plan)
        made = core.export_mscclpp(plan.core, text.append, in_place=False)
    except InfeasibleError as error:
        return error.why
    if made.blocks > given.blocks:
        return f"a rank would have {made.blocks} blocks, and {given.blocks} run beside NCCL"
    least = max(plan.collective.size, ALIGNMENT * len(plan.collective.npus))
    unit = ALIGNMENT * made.chunks
    if unit > least:
        return f"its unit of {format_size(unit)} is larger than the message"
    return _Program("".join(text), made, switches)


def _tuner(network: _core.Topology, gpu: str | None, made: list[_Class]) -> TunerTable | None:
    """Return one table for all communicators, or None if NCCL's model has none."""
    try:
        return tuner_table(network, gpu=gpu, groups=[each.npus[0] for each in made])
    except Error:
        return None


def _manifest(
    network: _core.Topology,
    gpu: str | None,
    machine: Machine | None,
    given: DeployOptions,
    made: list[_Class],
    at: Path,
    files: dict[str, bytes],
) -> Manifest:
    """Write the plans into a folder and their description among the files."""
    entries: dict[str, dict[str, Any]] = {}
    groups = []
    for number, each in enumerate(made):
        ids, left = [], []
        for row in each.rows:
            if row.plan is None or row.program is None:
                left.append({**row.sizes, "reason": row.why})
                continue
            name = f"{row.kind}-{len(each.npus[0])}-{number}-{row.planned_bytes}"
            entries[name] = _entry(name, row, row.plan, row.program, at, files)
            ids.append(name)
        groups.append({"name": each.name, "npus": each.npus, "entries": ids, "left_to_nccl": left})
    capability = None
    if gpu is not None and gpu.startswith("sm") and gpu[2:].isdecimal():
        capability = f"{gpu[2:-1]}.{gpu[-1]}"
    tuner = _hashed(_TUNER, files[_TUNER]) if _TUNER in files else None
    values: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "hocket": _core.__version__,
        "made_for": RUNTIME,
        "machine": {
            "topology": network.name,
            "npus": _npus(network, machine),
            "processors": given.processors,
            "capability": capability,
        },
        "groups": groups,
        "entries": list(entries.values()),
        "fallback": {
            "tuner": tuner,
            "graphs": [] if machine is None else _graphs(network, machine, made, files),
            "max_ctas": given.max_ctas,
        },
    }
    values["sha256"] = digest(values)
    files[MANIFEST] = (json.dumps(values, indent=1) + "\n").encode()
    return Reader({}, MANIFEST).checked(Manifest, values)


def _npus(network: _core.Topology, machine: Machine | None) -> list[dict[str, object]]:
    """Return the NPUs of a network: name, node, and the bus id that a dump has."""
    buses: dict[str, str | None] = {}
    if machine is not None:
        for node, npus in zip(machine.nodes, machine.network.nodes, strict=True):
            for npu, bus in zip(npus, node.system.buses, strict=True):
                buses[machine.spec.npus[npu]] = None if bus is None else bus_id(bus)
    node_of = {npu: node for node, npus in enumerate(network.groups) for npu in npus}
    return [
        {"name": name, "node": node_of.get(npu, len(network.groups)), "bus": buses.get(name)}
        for npu, name in enumerate(network.device_names[: network.npu_count])
    ]


def _graphs(
    network: _core.Topology, machine: Machine, made: list[_Class], files: dict[str, bytes]
) -> list[dict[str, Any]]:
    """Write NCCL's graphs for groups with the same GPUs on each of their nodes, once for GPUs alike."""
    if network.link_count != machine.topology.link_count:
        return []  # something has failed, which the machine does not say
    at = {
        npu: (place, gpu[0])
        for place, (node, npus) in enumerate(zip(machine.nodes, machine.network.nodes, strict=True))
        for npu, gpu in zip(npus, node.system.gpus, strict=True)
    }
    found: dict[tuple[tuple[str, ...], tuple[int, ...]], tuple[str, list[list[int]]]] = {}
    for each in made:
        for npus in each.npus if not each.name.startswith(ANY) and len(each.npus[0]) > 1 else ():
            gpus: dict[int, list[int]] = {}
            for npu in npus:
                gpus.setdefault(at[npu][0], []).append(at[npu][1])
            devs = {tuple(sorted(on)) for on in gpus.values()}
            if len(devs) == 1 and len(gpus) <= _MOST_NODES:
                key = (tuple(machine.nodes[node].file for node in sorted(gpus)), devs.pop())
                listed = found.setdefault(key, (each.name, []))[1]
                listed += [npus] if npus not in listed else []
    graphs: list[dict[str, Any]] = []
    for (dumps, used), (group, groups) in list(found.items())[:_MOST_GRAPHS]:
        try:
            part = load_machine(
                [(Path(dump), None) for dump in dumps], slow=machine.spec.slow, gpus=used
            )
            design = design_graphs(part)
        except Error:
            continue  # NCCL's own search has the group
        if design.are_alike:
            name = f"graph-{group}-{len(graphs)}.xml"
            files[name] = graph_text(design.graphs[0]).encode()
            graphs.append({**_hashed(name, files[name]), "npus": groups})
    return graphs


def _hashed(name: str, raw: bytes) -> dict[str, str]:
    return {"file": name, "sha256": hashlib.sha256(raw).hexdigest()}


def _entry(
    name: str, row: _Row, plan: Plan, program: _Program, at: Path, files: dict[str, bytes]
) -> dict[str, Any]:
    """Write a plan and its program, and describe them."""
    saved = at / f"{name}.parquet"
    Plan(plan.core).save(saved)  # without how long it took to find it, which differs between runs
    files[saved.name] = saved.read_bytes()
    files[f"{name}.json"] = program.text.encode()
    head = json.loads(program.text)
    return {
        **row.sizes,
        "id": name,
        "ranks": len(plan.collective.npus),
        "algorithm": plan.algorithm,
        "plan": _hashed(saved.name, files[saved.name]),
        "program": _hashed(f"{name}.json", files[f"{name}.json"]),
        "name": head["name"],
        "protocol": head["protocol"],
        "unit_bytes": ALIGNMENT * program.made.chunks,
        "max_bytes": head["max_message_size"],
        "blocks": program.made.blocks,
        "switches": program.switches,
        "planned_bytes": row.planned_bytes,
        "predicted_ps": row.staged_ps,
        "nccl_ps": row.nccl_ps,
        "over_bound": row.over[0],
        "over_best": row.over[1],
    }
