"""Programs of MSCCL and MSCCL++: judged, written from plans, and read as plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hocket import _core
from hocket._core.formats import Checked, Exported, Raised
from hocket.collectives.collective import Progress, collective_on
from hocket.errors import InfeasibleError, SpecError
from hocket.files.atomic import replacing
from hocket.formats.judgement import Judgement, Written, faults_of
from hocket.plans.builder import PlanBuilder
from hocket.topology.sources import as_topology, load, names
from hocket.units import counted

if TYPE_CHECKING:
    from hocket.plans.plan import Plan
    from hocket.topology.sources import TopologyLike

CHECKS = ("chunks_per_message", "run")
IMPORTS = ("size", "npus", "through_npus")
EXPORTS = ("protocol", "channels", "instances", "in_place", "min_size", "max_size")
_OF_CORE = {"min_size": "min_bytes", "max_size": "max_bytes"}
_SIZE = 64 << 20
_LONGEST = 60


def judged(
    core: Callable[..., Checked], title: str
) -> Callable[[str, Path, Mapping[str, Any], Progress | None], Judgement]:
    """Return what judges files of a format."""

    def judge(
        text: str, _path: Path, said: Mapping[str, Any], progress: Progress | None
    ) -> Judgement:
        chunks = said.get("chunks_per_message", 1)
        runs = bool(said.get("run"))
        found = core(text, chunks_per_message=chunks, runs=runs, progress=progress)
        sizes = "any message size" if chunks == 1 else f"messages of {chunks} chunks or more"
        results = "right results" if found.contents_known else "results unknown"
        return Judgement(
            _summary(found, title),
            f"no deadlock at {sizes}, no race, {results}",
            faults_of(found.findings),
            found.count,
            tuple(found.notes),
            program=found,
        )

    return judge


def _summary(found: Checked, title: str) -> str:
    modes = [
        name
        for name, holds in (("in place", found.in_place), ("out of place", found.out_of_place))
        if holds
    ]
    return (
        f"{title}: {found.name}, {found.collective} among {found.ranks} ranks, "
        f"{' and '.join(modes) or 'neither in place nor out of place'}, {found.protocol}, "
        f"{counted(found.chunks, 'chunk')}, {counted(found.steps, 'step')}"
    )


def written(
    core: Callable[..., Exported], title: str
) -> Callable[[Plan, Path, Mapping[str, Any], Progress | None], Written]:
    """Return what writes plans in a format, whole or not at all."""

    def write(
        plan: Plan, path: Path, said: Mapping[str, Any], progress: Progress | None
    ) -> Written:
        with (
            replacing(path) as temporary,
            temporary.open("w", encoding="utf-8", newline="") as file,
        ):
            named = {_OF_CORE.get(name, name): value for name, value in said.items()}
            try:
                made = core(plan.core, file.write, progress=progress, **named)
            except InfeasibleError as error:
                if "--runtime" in (error.remedy or ""):
                    raise error.but(remedy=_fitting(plan)) from None
                raise
        mode = "in place" if made.in_place else "out of place"
        summary = (
            f"{title}, {mode}, {counted(made.chunks, 'chunk')}, {counted(made.steps, 'step')}, up to "
            f"{made.blocks} thread blocks per rank on {counted(made.channels, 'channel')}, "
            f"{counted(made.scratch_chunks, 'chunk')} of scratch"
        )
        return Written((path,), summary, tuple(made.notes), program=made)

    return write


def _fitting(plan: Plan) -> str:
    """Return the command that makes a plan like one that does not fit the runtime."""
    collective, network = plan.collective, plan.topology
    npus, root = collective.npus, collective.root
    is_shipped = network.name in names() and load(network.name) == network
    given = plan.network or f"-t {network.name if is_shipped else 'FILE'}"
    words = [f"hocket plan {collective.kind} {given} -s {collective.size}B"]
    if npus != list(range(network.npu_count)):
        words.append(f"--npus {','.join(map(str, npus))}")
    if root not in (None, 0):
        words.append(f"--root {npus[root]}")
    return f"make a plan that fits: {' '.join(words)} --runtime mscclpp -o fits.parquet"


def planned(
    core: Callable[[str], Raised], check: Callable[..., Checked], title: str
) -> Callable[[str, Path, TopologyLike, Mapping[str, Any], Progress | None], Plan]:
    """Return what reads files of a format as plans, where they are right."""

    def plan(
        text: str,
        _path: Path,
        topology: TopologyLike,
        said: Mapping[str, Any],
        progress: Progress | None,
    ) -> Plan:
        import numpy as np

        network = as_topology(topology)
        found = check(text, progress=progress)
        if found.count:
            fault, more = found.findings[0], found.count - 1
            others = f", and {more:,} more faults" if more else ""
            right = "a plan is made of a right file alone; `hocket check` names all faults"
            raise SpecError(None, f"it is wrong: {fault.text}{others}", right)
        raised = core(text)
        npus = said.get("npus")
        if npus is None and network.npu_count != raised.ranks:
            why = f"the file is for {raised.ranks} ranks, {network.name!r} has {network.npu_count} NPUs"
            right = "give the topology that it is for, or by npus the NPU of each rank"
            raise SpecError("topology", why, right)
        size = said.get("size", _size(found))
        collective = collective_on(
            raised.collective, network, size, npus=npus, in_place=found.in_place
        )
        if len(collective.npus) != raised.ranks:
            why = f"{len(collective.npus)} NPUs for the {raised.ranks} ranks of the file"
            raise SpecError("npus", why, "give one for each rank, in order")
        if not said.get("through_npus"):
            pairs = np.unique(np.column_stack((raised.src, raised.dst)), axis=0)
            _refuse_detours(network, collective.npus, pairs.tolist())
        name = "".join(c if c.isprintable() else " " for c in raised.name)[:_LONGEST].strip()
        builder = PlanBuilder(network, collective, name=name or title, chunks=raised.chunks)
        if progress is not None:
            progress("import", 0, raised.chunk.size)
        npu_of = np.array(collective.npus, np.uint32)
        src, dst = npu_of[raised.src], npu_of[raised.dst]
        builder.extend(raised.op, raised.chunk, src, dst, chunk_count=raised.chunk_count)
        return builder.build()

    return plan


def _size(found: Checked) -> int:
    """Return the size nearest to 64 MiB for which a file may be used."""
    most = _SIZE if found.max_bytes is None else min(_SIZE, found.max_bytes)
    return max(most, found.min_bytes, 1)


def _refuse_detours(
    topology: _core.Topology, npus: list[int], pairs: Iterable[Sequence[int]]
) -> None:
    """Refuse messages between ranks that no link joins, nor links through switches alone.

    Raises
    ------
    InfeasibleError
        Naming two ranks and how many such pairs there are.
    """
    lacking = topology.detours([(npus[src], npus[dst]) for src, dst in pairs])
    if lacking:
        names, more = topology.device_names, len(lacking) - 1
        sends = " sends to ".join(f"rank {npus.index(npu)} ({names[npu]})" for npu in lacking[0])
        others = "" if not more else f", nor between {more:,} other pairs that it uses"
        raise InfeasibleError(
            None,
            f"{sends}, and {topology.name!r} has no link between them{others}",
            "give the topology that the file is for; where NPUs pass messages on, as on a torus, say so by "
            "through_npus (--through-npus)",
        )
