"""Plans written for runtimes."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike

from hocket._checks import check_function, instance_of, path_of
from hocket._options import options_of
from hocket._results import HIDDEN, Result, figure, name_of, said
from hocket.collectives.collective import Progress
from hocket.files.atomic import check_target
from hocket.formats.judgement import Written
from hocket.formats.kinds import Kind, kind_named
from hocket.formats.options import ExportOptions, heeded
from hocket.plans.plan import Plan


@dataclass(frozen=True)
class ExportedProgram(Result):
    """The description of a written program."""

    chunks: int
    channels: int
    blocks: int
    """Most thread blocks of a rank."""
    steps: int
    scratch_chunks: int
    in_place: bool


@dataclass(frozen=True)
class WrittenFigures(Result):
    """The written file and its plan."""

    files: list[str]
    algorithm: str
    collective: str
    npus: int
    size_bytes: int
    summary: str
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    program: ExportedProgram | None
    """None for files that are no programs."""


@dataclass(frozen=True)
class ExportedFile(Result):
    """The written file.

    Attributes
    ----------
    file
        Its path.
    kind
        Its kind.
    plan
        The plan that was written.
    written
        What the file has.
    """

    file: str
    kind: Kind = field(metadata=said(of=name_of))
    plan: Plan = field(metadata=HIDDEN)
    written: Written = field(metadata=HIDDEN)

    @property
    @figure(inline=WrittenFigures)
    def _figures(self) -> WrittenFigures:
        made, collective, program = self.written, self.plan.collective, self.written.program
        return WrittenFigures.taken_from(
            made,
            files=[str(each) for each in made.files],
            algorithm=self.plan.algorithm,
            collective=collective.kind,
            npus=len(collective.npus),
            size_bytes=collective.size,
            program=None if program is None else ExportedProgram.taken_from(program),
        )


def export_plan(
    plan: Plan,
    path: str | PathLike[str],
    *,
    to: str,
    options: ExportOptions | None = None,
    progress: Progress | None = None,
) -> ExportedFile:
    """Prove a plan and write it for a runtime, whole or not at all.

    Parameters
    ----------
    plan
        The plan.
    path
        The file.
    to
        Name of the kind of file, as in :data:`KINDS`.
    options
        How it is written.
    progress
        Called with stage, done and total; an exception stops the work.

    Raises
    ------
    SpecError
        If there is no such kind, it does not heed an option, or the file cannot be written.
    InfeasibleError
        If the format cannot express the plan, or no runtime loads it, with the reason.
    VerificationError
        If the plan is wrong.
    """
    kind = kind_named(to)
    assert kind.export is not None
    said = heeded(options_of(ExportOptions, options, {}), kind, kind.exports)
    target = path_of("path", path)
    instance_of(Plan, "plan", plan, "make one by hk.plan(...)")
    check_function("progress", progress)
    if not kind.is_folder:
        check_target(target)
    plan.verify(progress=progress)
    made = kind.export(plan, target, said, progress)
    return ExportedFile(str(path), kind, plan, made)
