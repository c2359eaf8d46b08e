"""The kinds of files: one entry for each, with what can be done with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hocket._checks import instance_of
from hocket._core import formats as core
from hocket.collectives.collective import Progress
from hocket.errors import SpecError
from hocket.formats import chakra, nccl_export, nccl_files, programs, timelines
from hocket.formats.judgement import Judgement, Written

if TYPE_CHECKING:
    from hocket.plans.plan import Plan
    from hocket.topology.sources import TopologyLike

Check = Callable[[str, Path, Mapping[str, Any], "Progress | None"], Judgement]
"""Text, file, options that are said, progress."""
Import = Callable[[str, Path, "TopologyLike", Mapping[str, Any], "Progress | None"], "Plan"]
"""Text, file, topology, options that are said, progress."""
Export = Callable[["Plan", Path, Mapping[str, Any], "Progress | None"], Written]
"""A proved plan, file, options that are said, progress."""


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Parameters
    ----------
    name
        As ``--to`` takes it.
    title
        In messages.
    recognizes
        Tells from the beginning of a file, without leading space, whether it is of this kind; ``None`` if
        this kind is only written.
    check
        Reads and judges a file's text; ``None`` if this kind is only written.
    plan
        Makes a plan of a file; ``None`` if it says none.
    export
        Writes a plan; ``None`` if this kind is only read.
    checks, imports, exports
        Options of :mod:`hocket.formats.options` that each of these heeds.
    is_folder
        Whether what it writes is a folder.
    """

    name: str
    title: str
    recognizes: Callable[[str], bool] | None = None
    check: Check | None = None
    plan: Import | None = None
    export: Export | None = None
    checks: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    exports: tuple[str, ...] = ()
    is_folder: bool = False


def _begins_as(tag: str) -> Callable[[str], bool]:
    """Recognise XML files by their outermost element, which a document type may name as well."""
    element = re.compile(rf"<(?:!DOCTYPE\s+)?{tag}\b")
    return lambda head: head.startswith("<") and element.search(head) is not None


def _is_mscclpp(head: str) -> bool:
    return head.startswith("{") and '"gpus"' in head


_ROW = re.compile(r"(?:#[^\n]*\n|\s*\n)*\s*[A-Za-z_]+\s*,\s*-?\d+\s*,\s*-?\d+\s*,\s*\w+\s*,")


def _is_table(head: str) -> bool:
    return _ROW.match(head) is not None


def _is_machine(head: str) -> bool:
    return _begins_as("system")(head) or (not head.startswith(("<", "{")) and "GPU0" in head[:4096])


def _judge_deployed(
    text: str, path: Path, said: Mapping[str, Any], progress: Progress | None
) -> Judgement:
    from hocket.formats.deployed_check import (
        judge_deployed,
    )  # loads much that other kinds do without

    return judge_deployed(text, path, said, progress)


MSCCL, MSCCLPP = "MSCCL's XML", "MSCCL++'s JSON"

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "deploy",
            "a deployed folder",
            lambda head: head.startswith("{") and '"hocket.deploy"' in head[:200],
            _judge_deployed,
            checks=("run",),
        ),
        Kind(
            "msccl",
            MSCCL,
            _begins_as("algo"),
            programs.judged(core.check_msccl, MSCCL),
            programs.planned(core.raise_msccl, core.check_msccl, "msccl"),
            programs.written(core.export_msccl, MSCCL),
            programs.CHECKS,
            programs.IMPORTS,
            programs.EXPORTS,
        ),
        Kind(
            "mscclpp",
            MSCCLPP,
            _is_mscclpp,
            programs.judged(core.check_mscclpp, MSCCLPP),
            programs.planned(core.raise_mscclpp, core.check_mscclpp, "mscclpp"),
            programs.written(core.export_mscclpp, MSCCLPP),
            programs.CHECKS,
            programs.IMPORTS,
            programs.EXPORTS,
        ),
        Kind(
            "nccl-graph",
            "NCCL's graphs",
            _begins_as("graphs"),
            nccl_files.judge_graphs,
            nccl_files.plan_graphs,
            nccl_export.write_graphs,
            checks=("topology", "nodes"),
            imports=("size", "collective", "graph", "nodes"),
            exports=("topology", "nodes"),
        ),
        Kind(
            "nccl-tuner",
            "a table for tuners of NCCL",
            _is_table,
            nccl_files.judge_table,
            export=nccl_export.write_table,
            exports=("profile", "measured"),
        ),
        Kind("nccl-topology", "a machine's dump", _is_machine, nccl_files.judge_machine),
        Kind("chakra", "Chakra's traces", export=chakra.write_folder, is_folder=True),
        Kind("perfetto", "a timeline for Perfetto", export=timelines.write_timeline),
    )
}
"""By name. Those that recognize a file are asked in this order."""

EXPORTED = tuple(kind.name for kind in KINDS.values() if kind.export is not None)
"""Names that ``--to`` takes."""


def kind_named(name: str) -> Kind:
    """Return the kind that can be written under a name.

    Raises
    ------
    SpecError
        If there is none.
    """
    instance_of(str, "to", name, ", ".join(EXPORTED))
    if name not in EXPORTED:
        why = f"{name!r} is not a kind of file that plans are written as"
        raise SpecError("to", why, ", ".join(EXPORTED))
    return KINDS[name]


def kind_of(head: str, file: str) -> Kind:
    """Return the kind of a file by its beginning.

    Raises
    ------
    SpecError
        If no kind recognizes it.
    """
    text = head.lstrip("\ufeff \t\r\n")
    for kind in KINDS.values():
        if kind.recognizes is not None and kind.recognizes(text):
            return kind
    *known, last = (each.title for each in KINDS.values() if each.check)
    right = f"{', '.join(known)} and {last} are known"
    raise SpecError(None, "is not a file of a known runtime", right, origin=file)
