"""Plans as execution traces of Chakra, with all that ASTRA-sim needs to run them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from hocket._checks import check_function, instance_of, path_of
from hocket._core.chakra import Exported, export
from hocket._results import HIDDEN, Result, figure
from hocket.errors import InfeasibleError
from hocket.files.atomic import replacing_folder
from hocket.formats.judgement import Written
from hocket.plans.plan import Plan
from hocket.topology.astra import astra_network
from hocket.traces.folder import MEMORY, is_trace_file, json_text


@dataclass(frozen=True)
class TraceFigures(Result):
    """The written files and their plan."""

    kind: str
    algorithm: str
    collective: str
    call: str
    """What ASTRA-sim is told that the collective is."""
    npus: int
    ranks: int
    size_bytes: int
    transfers: int
    nodes: int
    """Of all ranks' plan files."""


@dataclass(frozen=True)
class ExportedTrace(Result):
    """A folder that was written for ASTRA-sim.

    Attributes
    ----------
    folder
        Its path.
    plan
        The plan that was written.
    exported
        What the traces have.
    files
        Names of the files beside the traces.
    notes
        What ASTRA-sim does not take of the plan, and what could not be written.
    """

    folder: str
    plan: Plan = field(metadata=HIDDEN)
    exported: Exported = field(metadata=HIDDEN)
    files: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    @figure(inline=TraceFigures)
    def _figures(self) -> TraceFigures:
        return TraceFigures.taken_from(
            self.exported,
            kind="chakra",
            algorithm=self.plan.algorithm,
            collective=self.plan.collective.kind,
            npus=self.plan.topology.npu_count,
            size_bytes=self.plan.collective.size,
            transfers=len(self.plan),
        )


def export_trace(
    plan: Plan,
    folder: str | PathLike[str],
    *,
    progress: Callable[[str, int, int], None] | None = None,
) -> ExportedTrace:
    """Prove a plan and write it for ASTRA-sim, as a folder, whole or not at all.

    In it are ``plan.RANK.et``, the plan as a custom collective; ``workload.NPU.et``, which call it once;
    ``system.json`` and ``memory.json``; ``network.yml`` if ASTRA-sim's networks can express the topology;
    and ``groups.json`` if not all NPUs are ranks. Paths in them are relative: run ASTRA-sim in the folder.

    Parameters
    ----------
    plan
        The plan.
    folder
        The folder; one that was written before is replaced.
    progress
        Called with stage, done and total; an exception stops the work.

    Raises
    ------
    SpecError
        If the folder cannot be written, or has other files.
    InfeasibleError
        If ASTRA-sim cannot run the plan, with the reason.
    VerificationError
        If the plan is wrong.
    """
    instance_of(Plan, "plan", plan, "give one of hk.plan(...)")
    check_function("progress", progress)
    target = path_of("folder", folder)
    with replacing_folder(target, is_trace_file) as temporary:
        plan.verify(progress=progress)

        def write(name: str, content: bytes) -> None:
            (temporary / name).write_bytes(content)

        made = export(plan.core, write, progress=progress)
        notes = list(made.notes)
        files = {"system.json": json_text(_system(made)), "memory.json": json_text(MEMORY)}
        try:
            files["network.yml"] = astra_network(plan.topology)
        except InfeasibleError as error:
            notes.append(f"no network.yml: {error.why}")
        if made.group is not None:
            files["groups.json"] = json_text({"1": made.group})
        if made.call != plan.collective.kind:
            called = f"its files are those of the {plan.collective.kind} all the same"
            notes.append(f"the workload calls it {made.call}, which ASTRA-sim knows; {called}")
        for name, text in files.items():
            (temporary / name).write_text(text, encoding="utf-8")
    return ExportedTrace(str(target), plan, made, tuple(files), tuple(notes))


def write_folder(
    plan: Plan,
    path: Path,
    _said: Mapping[str, Any],
    progress: Callable[[str, int, int], None] | None,
) -> Written:
    """Write a plan as :func:`export_trace` does, for the registry of kinds."""
    made = export_trace(plan, path, progress=progress)
    ranks = f"{made.exported.ranks} rank{'s'[: made.exported.ranks != 1]}"
    what = f"Chakra's traces, {ranks}, {made.exported.nodes:,} nodes, {', '.join(made.files)}"
    return Written((path,), what, made.notes)


def _system(made: Exported) -> dict[str, object]:
    return {
        "scheduling-policy": "FIFO",
        "endpoint-delay": 0,
        "active-chunks-per-dimension": 1,
        "preferred-dataset-splits": 1,
        f"{made.call}-implementation-custom": ["plan"],
        "local-mem-bw": 1_000_000,
    }
