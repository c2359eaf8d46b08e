"""Plans written for runtimes."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from hocket._options import options_of
from hocket._results import Result
from hocket.collectives.collective import Progress
from hocket.files.atomic import check_target
from hocket.formats.data import ExportedFileData
from hocket.formats.judgement import Written
from hocket.formats.kinds import Kind, kind_named
from hocket.formats.options import ExportOptions, heeded
from hocket.plans.plan import Plan


@dataclass(frozen=True)
class ExportedFile(Result):
    """What was written.

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
    kind: Kind
    plan: Plan
    written: Written

    def to_dict(self) -> ExportedFileData:
        """Return the result as JSON values; sizes in bytes."""
        made, collective = self.written, self.plan.collective
        program = made.program
        return {
            "file": self.file,
            "files": [str(each) for each in made.files],
            "kind": self.kind.name,
            "algorithm": self.plan.algorithm,
            "collective": collective.kind,
            "npus": len(collective.npus),
            "size_bytes": collective.size,
            "summary": made.summary,
            "notes": list(made.notes),
            "warnings": list(made.warnings),
            "program": None
            if program is None
            else {
                "chunks": program.chunks,
                "channels": program.channels,
                "blocks": program.blocks,
                "steps": program.steps,
                "scratch_chunks": program.scratch_chunks,
                "in_place": program.in_place,
            },
        }


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
    if not kind.is_folder:
        check_target(Path(path))
    plan.verify(progress=progress)
    made = kind.export(plan, Path(path), said, progress)
    return ExportedFile(str(path), kind, plan, made)
