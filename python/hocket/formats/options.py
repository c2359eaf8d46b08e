"""Options for checking, importing and exporting files of runtimes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any

from hocket._checks import instance_of, list_of, path_of, truth, whole
from hocket._options import Size
from hocket.errors import SpecError
from hocket.units import Quantity, parse_size

if TYPE_CHECKING:
    from hocket.formats.kinds import Kind

_MOST = 1 << 20
_MOST_NODES = 4096


@dataclass(frozen=True)
class CheckOptions:
    """The options of a check.

    Attributes
    ----------
    run
        For programs: run the program on integers, a small one in every order, and compare the results.
    chunks_per_message
        For programs: chunks that fit into one message of a connection. With 1, the check holds for any
        message size. Default: 1.
    topology
        For nccl-graph: the dump of the machine (NCCL_TOPO_DUMP_FILE), which has its GPUs and NICs.
    nodes
        For nccl-graph: number of nodes like the one of the dump. Default: 1.
    """

    run: bool | None = None
    chunks_per_message: int | None = None
    topology: str | PathLike[str] | None = None
    nodes: int | None = None

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True)
class ImportOptions:
    """The options of an import. ``None`` lets the kind of file choose.

    Attributes
    ----------
    size
        Size of the data. Default: 64 MiB, or the nearest size for which the file is.
    npus
        For programs: the NPU of each rank, such as 0-3,8-11. Default: all, in order.
    through_npus
        For programs: let messages pass other NPUs on their way, as on a torus.
    collective
        For NCCL graphs: the collective. Default: all-reduce.
    graph
        For NCCL graphs: ring, tree or nvls. Default: the one that NCCL picks.
    nodes
        For NCCL graphs: number of nodes like the one of the dump. Default: 1.
    """

    size: Annotated[Quantity, "SIZE"] | None = None
    npus: Annotated[Sequence[int | str] | str, "LIST,..."] | None = None
    through_npus: bool | None = None
    collective: str | None = None
    graph: str | None = None
    nodes: int | None = None

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True)
class ExportOptions:
    """The options of an export. ``None`` lets the format choose.

    Attributes
    ----------
    protocol
        Protocol of programs: Simple, LL or, for msccl, LL128. Default: Simple.
    channels
        Number of channels for the chunks. Default: the fewest that a runtime loads.
    instances
        Number of equal shares of each chunk, each on channels of its own. Default: 1.
    in_place
        Export for calls in place, or with a separate buffer. Default: in place, except for all-to-all.
    min_size
        Smallest size for which the file may be used.
    max_size
        Largest size for which the file may be used.
    topology
        For nccl-graph: the dump of the machine (NCCL_TOPO_DUMP_FILE), which numbers GPUs and NICs.
    nodes
        For nccl-graph: number of nodes like the one of the dump. Default: 1.
    profile
        For nccl-tuner: profile that predicts the sizes. Default: NCCL's own model.
    measured
        For nccl-tuner: a table (.csv) of measured times with the columns algo and proto (NCCL_ALGO and
        NCCL_PROTO). Can be repeated.
    """

    protocol: str | None = None
    channels: int | None = None
    instances: int | None = None
    in_place: bool | None = None
    min_size: Size | None = None
    max_size: Size | None = None
    topology: str | PathLike[str] | None = None
    nodes: int | None = None
    profile: str | None = None
    measured: Sequence[str | PathLike[str]] | None = None

    def __post_init__(self) -> None:
        for name in ("min_size", "max_size"):
            given = getattr(self, name)
            if given is not None and not (isinstance(given, int) and given == 0):
                object.__setattr__(self, name, parse_size(given, field=name))
        _check(self)
        if self.measured is not None:
            for file in list_of("measured", self.measured):
                path_of("measured", file)


_WHOLE = {
    "chunks_per_message": (1, _MOST),
    "channels": (1, _MOST),
    "instances": (1, _MOST),
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
