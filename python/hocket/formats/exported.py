"""Plans written for runtimes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path

from hocket._core.formats import Exported
from hocket._results import Result
from hocket.errors import SpecError
from hocket.files.atomic import check_target, replacing
from hocket.formats.data import ExportedFileData
from hocket.formats.kinds import Kind, kind_named
from hocket.plans.plan import Plan

_MOST = 1 << 20


@dataclass(frozen=True)
class ExportOptions:
    """How a plan is written for a runtime. ``None`` lets the format choose.

    Parameters
    ----------
    protocol
        ``Simple``, ``LL`` (packets, for small sizes) or, of MSCCL alone, ``LL128``; by default Simple.
    channels
        Channels over which chunks are spread; by default the fewest that the runtime loads.
    instances
        Parts into which each chunk is cut, each on channels of its own; by default 1.
    in_place
        Whether it is for calls in place; by default it is, but for all-to-all.
    min_bytes, max_bytes
        Sizes for which it may be used, both included [bytes]; by default all.
    """

    protocol: str | None = None
    channels: int | None = None
    instances: int | None = None
    in_place: bool | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("channels", "instances"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= _MOST:
                raise SpecError(name, f"{value} is not 1 to {_MOST}")
        for name in ("min_bytes", "max_bytes"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 2**63:
                raise SpecError(name, f"{value} is not a size that fits 63 bits")


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
    exported
        What the file has.
    """

    file: str
    kind: Kind
    plan: Plan
    exported: Exported

    def to_dict(self) -> ExportedFileData:
        """Give it as values of JSON; sizes in bytes."""
        made, collective = self.exported, self.plan.collective
        return {
            "file": self.file,
            "kind": self.kind.name,
            "algorithm": self.plan.algorithm,
            "collective": collective.kind,
            "npus": len(collective.npus),
            "size_bytes": collective.size,
            "chunks": made.chunks,
            "channels": made.channels,
            "blocks": made.blocks,
            "steps": made.steps,
            "scratch_chunks": made.scratch_chunks,
            "in_place": made.in_place,
            "notes": list(made.notes),
        }


def export_plan(
    plan: Plan,
    path: str | PathLike[str],
    *,
    to: str,
    options: ExportOptions | None = None,
    progress: Callable[[str, int, int], None] | None = None,
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
    if kind.export is None:
        raise SpecError("to", f"{kind.title} are a folder", "write it with export_trace")
    given = options or ExportOptions()
    values = {each.name: getattr(given, each.name) for each in fields(given)}
    values = {name: value for name, value in values.items() if value is not None}
    for name in values:
        if name not in kind.options:
            raise SpecError(name, f"is not an option of {kind.title}", "leave it out")
    check_target(Path(path))
    plan.verify(progress=progress)
    with (
        replacing(Path(path)) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        made = kind.export(plan.core, file.write, progress=progress, **values)
    return ExportedFile(str(path), kind, plan, made)
