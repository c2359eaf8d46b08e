"""How files of runtimes are judged, read as plans and written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from os import PathLike
from typing import TYPE_CHECKING, Any

from hocket._checks import instance_of, list_of, path_of, truth, whole
from hocket.errors import SpecError

if TYPE_CHECKING:
    from hocket.formats.kinds import Kind
    from hocket.units import Quantity

_MOST = 1 << 20
_MOST_NODES = 4096


@dataclass(frozen=True)
class CheckOptions:
    """How a file is judged.

    Parameters
    ----------
    chunks_per_message
        Of programs: chunks that fit one message of a connection. With 1, the check holds for any message
        size; with more, for sizes at which so many fit.
    run
        Of programs: whether it is run on integers as well, a small one in every order that there is.
    topology
        Of graphs of NCCL: the dump of the machine (``NCCL_TOPO_DUMP_FILE``), whose GPUs and NICs it
        must name.
    nodes
        How many nodes are like the one whose dump is given; by default 1.
    """

    chunks_per_message: int | None = None
    run: bool | None = None
    topology: str | PathLike[str] | None = None
    nodes: int | None = None

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True)
class ImportOptions:
    """How a file is read as a plan. ``None`` lets the kind of file choose.

    Parameters
    ----------
    size
        Of the data; by default 64 MiB, or the nearest size for which the file may be used.
    npus
        Of programs: the NPU of each rank, by number or name; by default all, in order.
    through_npus
        Of programs: whether messages may pass NPUs on their way, as on a torus; by default they may pass
        switches alone.
    collective
        Of graphs of NCCL: what is done along them; by default an all-reduce.
    graph
        Of graphs of NCCL: ``ring``, ``tree`` or ``nvls``; by default what NCCL picks.
    nodes
        Of graphs of NCCL: how many nodes are like the one whose dump is given; by default 1.
    """

    size: Quantity | None = None
    npus: Sequence[int | str] | str | None = None
    through_npus: bool | None = None
    collective: str | None = None
    graph: str | None = None
    nodes: int | None = None

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True)
class ExportOptions:
    """How a plan is written for a runtime. ``None`` lets the format choose.

    Parameters
    ----------
    protocol
        Of programs: ``Simple``, ``LL`` (packets, for small sizes) or, of MSCCL alone, ``LL128``; by default
        Simple.
    channels
        Of programs: channels over which chunks are spread; by default the fewest that the runtime loads.
    instances
        Of programs: parts into which each chunk is cut, each on channels of its own; by default 1.
    in_place
        Of programs: whether it is for calls in place; by default it is, but for all-to-all.
    min_bytes, max_bytes
        Of programs: sizes for which it may be used, both included [bytes]; by default all.
    topology
        Of graphs of NCCL: the dump of the plan's machine, which says how NCCL numbers GPUs and NICs.
    nodes
        Of graphs of NCCL: how many nodes are like the one whose dump is given; by default 1.
    profile
        Of tables for tuners: constants by which sizes are predicted; by default NCCL's own model.
    measured
        Of tables for tuners: sweeps of nccl-tests that say which algorithm and protocol ran.
    """

    protocol: str | None = None
    channels: int | None = None
    instances: int | None = None
    in_place: bool | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None
    topology: str | PathLike[str] | None = None
    nodes: int | None = None
    profile: str | None = None
    measured: Sequence[str | PathLike[str]] | None = None

    def __post_init__(self) -> None:
        _check(self)
        if self.measured is not None:
            for file in list_of("measured", self.measured):
                path_of("measured", file)


_WHOLE = {
    "chunks_per_message": (1, _MOST),
    "channels": (1, _MOST),
    "instances": (1, _MOST),
    "min_bytes": (0, 2**63 - 1),
    "max_bytes": (0, 2**63 - 1),
    "nodes": (1, _MOST_NODES),
}
_TRUTHS = ("run", "in_place", "through_npus")
_NAMES = ("protocol", "profile", "collective", "graph")
_PATHS = ("topology",)


def _check(options: CheckOptions | ImportOptions | ExportOptions) -> None:
    """Refuse what is no value of an option; ``None`` is one of each."""
    for each in fields(options):
        name, value = each.name, getattr(options, each.name)
        if value is None:
            continue
        if name in _WHOLE:
            whole(name, value, *_WHOLE[name])
        elif name in _TRUTHS:
            truth(name, value)
        elif name in _NAMES:
            instance_of(str, name, value, "give a name")
        elif name in _PATHS:
            path_of(name, value)


def heeded(
    options: CheckOptions | ImportOptions | ExportOptions, kind: Kind, heeds: Sequence[str]
) -> dict[str, Any]:
    """Return the options that are said, by name.

    Raises
    ------
    SpecError
        For one that the kind of file does not heed.
    """
    values = {each.name: getattr(options, each.name) for each in fields(options)}
    said = {name: value for name, value in values.items() if value is not None}
    for name in said:
        if name not in heeds:
            raise SpecError(name, f"is not an option of {kind.title}", "leave it out")
    return said
