"""Which plan of a deployed folder does which sizes, and what is left to NCCL."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from hocket import _core
from hocket._checks import instance_of, one_of, truth, whole
from hocket._core import formats as core
from hocket._options import Rate, Size, Time
from hocket.collectives.collective import Progress
from hocket.collectives.sizes import sizes_of
from hocket.comparison.compare import compare
from hocket.deployment.groups import ANY, process_groups
from hocket.deployment.manifest import ALIGNMENT, MARGIN, RUNTIME, Estimates
from hocket.errors import InfeasibleError, SpecError
from hocket.formats.deployed_figures import (
    figures,
    library_among,
    names_and_nodes,
    nccl_ps,
    shared_network,
    uses_switches,
)
from hocket.nccl.prediction import Library
from hocket.plans.plan import Plan
from hocket.plans.planner import plan
from hocket.plans.synthesis.runtimes import FEWEST
from hocket.runtime.programs import lower
from hocket.topology.symmetry import Symmetry
from hocket.units import format_size, format_time_ps, parse_bandwidth, parse_size, parse_time, shown

if TYPE_CHECKING:
    from hocket.comparison.compare import Entry as Compared

COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "all-to-all")
"""What runtimes have plans for."""
APART = "plans are for one node"
"""Why groups on several nodes are left to NCCL."""


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
    packets
        Largest planned size whose programs send packets (LL), where MSCCL++ can; each NPU must be in one
        group. Default: none.
    launch
        Time that a launch and the copies into and out of a stage take at any size [s].
    copy_rate
        Bandwidth of a GPU's memory [bytes/s].
    tolerance
        Share by which a plan must be faster than NCCL is predicted to be.
    share
        Divide the rate of each link by the groups of one name on it, which communicate at once; those of
        any=4 do not.

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
    packets: Size | None = None
    launch: Time = "10 us"
    copy_rate: Rate = "1.5 TB/s"
    tolerance: float = 0.05
    share: bool = False

    def __post_init__(self) -> None:
        for name in ("process_groups", "collectives", "sizes"):
            right = f"give text, such as {getattr(DeployOptions, name)!r}"
            instance_of(str, name, getattr(self, name), right)
        for kind in self.kinds:
            one_of("collectives", kind, COLLECTIVES)
        sizes_of(self.sizes)
        whole("processors", self.processors, 1, 1 << 16)
        whole("max_ctas", self.max_ctas, 1, 64)
        if self.blocks < 1:
            why = f"{self.processors} leave none beside {self.max_ctas} CTAs and {MARGIN} spare"
            raise SpecError("processors", why, "give the number of the GPU, such as 132")
        share: object = self.tolerance
        is_number = isinstance(share, int | float) and not isinstance(share, bool)
        if not is_number or not 0 <= self.tolerance < 1:
            right = "give a share from 0 to below 1"
            raise SpecError("tolerance", f"{shown(self.tolerance)} is not valid", right)
        truth("share", self.share)
        self.estimates, self.protocols(0)

    @property
    def kinds(self) -> list[str]:
        """The collectives that are planned."""
        return list(dict.fromkeys(each.strip() for each in self.collectives.split(",")))

    @property
    def blocks(self) -> int:
        """The most thread blocks of a plan."""
        return self.processors - self.max_ctas - MARGIN

    def protocols(self, size: int) -> tuple[str, ...]:
        """Return the protocols of programs for a size, the first that can be taken."""
        most = 0 if self.packets is None else parse_size(self.packets, field="packets")
        return ("LL", "Simple") if size <= most else ("Simple",)

    @property
    def estimates(self) -> Estimates:
        """What predictions take for granted."""
        return Estimates(
            launch_ps=parse_time(self.launch, field="launch"),
            copy_rate=parse_bandwidth(self.copy_rate, field="copy_rate"),
            tolerance=float(self.tolerance),
            shares_links=self.share,
        )


class Program(NamedTuple):
    """A plan, and its program for the runtime."""

    plan: Plan
    text: str
    figures: dict[str, object]


@dataclass(frozen=True)
class Row:
    """A plan for some sizes, or NCCL."""

    kind: str
    from_bytes: int
    to_bytes: int
    planned_bytes: int
    nccl_ps: int | None
    staged_ps: int | None = None
    program: Program | None = None
    chunks: int = 0
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
        how = self.program and (self.program.plan.algorithm, self.program.figures["protocol"])
        return how, self.chunks, bool(self.why)


@dataclass(frozen=True)
class GroupClass:
    """Groups of one name between which the network makes no difference."""

    name: str
    npus: list[list[int]]
    rows: list[Row]


def group_classes(
    network: _core.Topology, gpu: str | None, given: DeployOptions, progress: Progress | None
) -> Iterator[GroupClass]:
    """Yield the groups of a job with their plans, one of each kind of groups."""
    symmetry = Symmetry(network)
    node_of = [node for _, node in names_and_nodes(network)]
    every = process_groups(given.process_groups, network.npu_count)
    if given.packets is not None:
        several = (npus for named in every for npus in named.npus if len(npus) > 1)
        members = Counter(itertools.chain.from_iterable(several))
        npu, count = members.most_common(1)[0] if members else (0, 0)
        if count > 1:
            why = f"NPU {npu} is in {count} groups, and MSCCL++ counts packets of one alone"
            raise SpecError(
                "packets", why, "leave it out, or deploy groups that have no NPU in common"
            )
    for named in every:
        on, symmetry_on = network, symmetry
        if given.share and not named.name.startswith(ANY):
            on = shared_network(network, named.npus, max(sizes_of(given.sizes)))
            symmetry_on = symmetry if on is network else Symmetry(on)
        alike: dict[tuple[bool, bytes], list[list[int]]] = {}
        for npus in named.npus:
            is_apart = len({node_of[npu] for npu in npus}) > 1
            key = (is_apart, symmetry_on.key(npus, ordered=True))
            alike.setdefault(key, []).append(list(npus))
        for (is_apart, _), groups in alike.items():
            first = groups[0]
            _check_reach(on, named.name, first)
            if len(first) < 2 or is_apart:
                why = "the group has one rank" if len(first) < 2 else APART
                rows = [_left(kind, given, why) for kind in given.kinds]
            else:
                library = library_among(on, gpu, first)
                rows = []
                for done, kind in enumerate(given.kinds):
                    if progress is not None:
                        progress(f"{named.name}, {kind}", done, len(given.kinds))
                    rows += _rows(kind, on, first, library, given)
            yield GroupClass(named.name, groups, rows)


def _check_reach(network: _core.Topology, name: str, npus: list[int]) -> None:
    """Refuse a group whose NPUs do not reach one another.

    Raises
    ------
    SpecError
        Naming the group and two of its NPUs.
    """
    if len(npus) < 2:
        return
    try:
        for kind in ("broadcast", "gather"):  # all reach each other over the first
            plan(kind, network, size=len(npus), npus=npus, algorithm="direct")
    except InfeasibleError as error:
        why = f"a group of {name!r} is cut off: {error.why}"
        raise SpecError("process_groups", why, error.remedy) from None


def _left(kind: str, given: DeployOptions, why: str) -> Row:
    sizes = sizes_of(given.sizes)
    return Row(kind, min(sizes), max(sizes) + 1, max(sizes), None, why=why)


def _rows(
    kind: str,
    network: _core.Topology,
    npus: list[int],
    library: Library | None,
    given: DeployOptions,
) -> list[Row]:
    """Return what does each size, without holes between the sizes."""
    found: list[Row] = []
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
) -> Row:
    """Return the fastest plan of a size that the runtime executes, or NCCL."""
    row = Row(kind, 0, size + 1, size, nccl_ps(library, kind, size))
    best = _best(kind, network, npus, size, given)
    if isinstance(best, str):
        return replace(row, why=best)
    found, text, checked = best
    told = figures(found.run, checked, given.estimates, row.nccl_ps)
    told["over_best"] = 0.0 if found.plan.fit is None else found.plan.fit.over_best
    staged_ps = given.estimates.staged_ps(kind, size, len(npus), found.run.time_ps)
    if not given.estimates.pays(staged_ps, row.nccl_ps):
        why = f"{found.algorithm} takes {format_time_ps(staged_ps)} with launch and copies"
        return replace(row, staged_ps=staged_ps, why=why)
    program = Program(found.plan, text, told)
    return replace(row, program=program, chunks=found.chunks, staged_ps=staged_ps)


def _best(
    kind: str, network: _core.Topology, npus: list[int], size: int, given: DeployOptions
) -> tuple[Compared, str, core.Checked] | str:
    """Return the fastest plan that fits, of the best number of chunks or of 1, or why there is none."""
    why = ""
    runtime = f"{RUNTIME['runtime']}:sms={given.blocks}"
    for chunks in (None, 1):
        try:
            found = compare(kind, network, size=size, npus=npus, chunks=chunks, runtime=runtime)
        except InfeasibleError as error:
            why = why or error.why.removeprefix("no plan fits: ")
            continue
        for protocol in given.protocols(size):
            for entry in found:
                try:
                    _refuse_others(entry)
                    return (entry, *_program(entry.plan, protocol, given))
                except InfeasibleError as error:
                    why = why or error.why
    return f"no plan fits: {why}"


def _refuse_others(found: Compared) -> None:
    """Refuse a plan whose data pass NPUs outside the group: programs have no ranks there.

    Raises
    ------
    InfeasibleError
        Naming the first.
    """
    network, npus = found.plan.topology, found.plan.collective.npus
    passed = {*network.link_dst[found.run.link_bytes > 0].tolist()}
    others = passed.intersection(range(network.npu_count)).difference(npus)
    if others:
        name = network.device_names[min(others)]
        why = f"{found.algorithm} passes {name}, which is not in the group"
        raise InfeasibleError(None, why)


def _program(plan: Plan, protocol: str, given: DeployOptions) -> tuple[str, core.Checked]:
    """Return the program of a plan, and what it is.

    Raises
    ------
    InfeasibleError
        If CPUs or the runtime do not execute it.
    """
    parts: list[str] = []
    if not uses_switches(plan):  # of which CPUs run another plan
        lower(plan)
    made = core.export_mscclpp(plan.core, parts.append, protocol=protocol, in_place=False)
    if made.blocks > given.blocks:
        why = f"a rank would have {made.blocks} blocks, and {given.blocks} run beside NCCL"
        raise InfeasibleError(None, why)
    least = max(plan.collective.size, ALIGNMENT * len(plan.collective.npus))
    unit = ALIGNMENT * made.chunks
    if unit > least:
        raise InfeasibleError(None, f"its unit of {format_size(unit)} is larger than the message")
    text = "".join(parts)
    checked = core.check_mscclpp(text)
    if checked.count:
        raise InfeasibleError(None, checked.findings[0].detail)
    return text, checked
