"""The kinds of files: one entry for each, with what can be done with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hocket._core.formats import (
    Checked,
    Exported,
    check_msccl,
    check_mscclpp,
    export_msccl,
    export_mscclpp,
)
from hocket.errors import SpecError
from hocket.formats.chakra import ExportedTrace, export_trace


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
        Tells from the beginning of a file, without leading space, whether it is of this kind.
    check
        Reads and judges a file's text; ``None`` if this kind is only written.
    export
        Writes a plan through the callable that it is given; ``None`` if this kind is only read.
    options
        Options of :class:`~hocket.formats.ExportOptions` that `export` heeds.
    folder
        Writes a plan as a folder; ``None`` if this kind is a file.
    """

    name: str
    title: str
    recognizes: Callable[[str], bool]
    check: Callable[..., Checked] | None = None
    export: Callable[..., Exported] | None = None
    options: tuple[str, ...] = ()
    folder: Callable[..., ExportedTrace] | None = None


_LOWERING = ("channels", "instances", "in_place", "min_bytes", "max_bytes")


def _is_msccl(head: str) -> bool:
    return "<algo" in head or (head.startswith("<") and "<!DOCTYPE algo" in head)


def _is_mscclpp(head: str) -> bool:
    return head.startswith("{") and '"gpus"' in head


def _is_none(_: str) -> bool:
    return False


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "msccl", "MSCCL's XML", _is_msccl, check_msccl, export_msccl, ("protocol", *_LOWERING)
        ),
        Kind(
            "mscclpp",
            "MSCCL++'s JSON",
            _is_mscclpp,
            check_mscclpp,
            export_mscclpp,
            ("protocol", *_LOWERING),
        ),
        Kind("chakra", "Chakra's traces", _is_none, folder=export_trace),
    )
}
"""By name. Those that recognize a file are asked in this order."""


def kind_named(name: str) -> Kind:
    """Give the kind that can be written under a name.

    Raises
    ------
    SpecError
        If there is none.
    """
    kind = KINDS.get(name)
    if kind is None or (kind.export is None and kind.folder is None):
        known = ", ".join(each.name for each in KINDS.values() if each.export or each.folder)
        raise SpecError("to", f"{name!r} is not a kind of file that plans are written as", known)
    return kind


def kind_of(head: str, file: str) -> Kind:
    """Give the kind of a file by its beginning.

    Raises
    ------
    SpecError
        If no kind recognizes it.
    """
    text = head.lstrip("\ufeff \t\r\n")
    for kind in KINDS.values():
        if kind.check is not None and kind.recognizes(text):
            return kind
    known = " and ".join(each.title for each in KINDS.values() if each.check)
    raise SpecError(None, "is not a file of a known runtime", f"{known} are known", origin=file)
