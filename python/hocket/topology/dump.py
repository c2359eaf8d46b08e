"""Machines as NCCL sees them: what ``NCCL_TOPO_DUMP_FILE`` holds, and what ``nvidia-smi topo -m`` prints.

The core reads both (:mod:`hocket._core.nccl`); a specification is made of them here, with the latencies
that :mod:`hocket.topology.defaults` has for each medium, as no such file states one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hocket import _core
from hocket.errors import SpecError
from hocket.files.complaint import shown_path
from hocket.files.foreign import HEAD, check_foreign
from hocket.files.raw import read_bytes
from hocket.topology.defaults import LATENCY_PS
from hocket.topology.spec import LinkSpec, OffloadSpec, TopologySpec

_WHAT = "what NCCL writes to NCCL_TOPO_DUMP_FILE, or what nvidia-smi topo -m prints"
_MATRIX = re.compile(rb"^(?:\x1b\[[0-9;]*m|[ \t])*GPU0[ \t\x1b]", re.MULTILINE)
"""How the head of a matrix begins."""
_BEFORE_HOPPER = 12
"""NVLinks that GPUs have at most whose NVSwitches do not sum."""


def is_dump(path: Path) -> bool:
    """Return whether a file begins as those that :func:`read_system` reads, whatever its name."""
    if not path.is_file():  # what comes through a pipe can be read once
        return False
    try:
        with path.open("rb") as file:
            head = file.read(HEAD).removeprefix(b"\xef\xbb\xbf")
    except OSError:
        return False
    return head.lstrip().startswith(b"<") or _MATRIX.search(head) is not None


def read_system(path: Path) -> _core.nccl.System:
    """Read a machine from a dump of NCCL or RCCL, or from text of nvidia-smi.

    Raises
    ------
    SpecError
        Naming file, line and remedy.
    """
    raw = read_bytes(path, _WHAT)
    check_foreign(raw, shown_path(path))
    read = _core.nccl.System.parse
    if not raw.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        read = _core.nccl.System.read_smi
    try:
        return read(raw)
    except SpecError as error:
        raise error.but(origin=place_in(path, error)) from None


def place_in(path: Path, error: SpecError) -> str:
    """Return a file, and the line in it that an error of the core names."""
    return ", ".join(filter(None, (shown_path(path), error.origin)))


def spec_from_systems(
    systems: Sequence[_core.nccl.System], name: str, files: Sequence[str] = ()
) -> tuple[TopologySpec, _core.nccl.Network]:
    """Return the network of some machines, each a node, and what of it belongs to which machine.

    Parameters
    ----------
    files
        Where each was read, for messages.

    Raises
    ------
    SpecError
        Where there are several and one has no NIC.
    """
    try:
        network = _core.nccl.join(systems)
    except SpecError as error:
        bare = (file for system, file in zip(systems, files, strict=False) if not system.nets)
        raise error.but(origin=next(bare, None)) from None
    names, count = network.names, network.npus
    groups = tuple(tuple(names[npu] for npu in node) for node in network.nodes)
    sums, assumed = _sums(systems, network)
    media = sorted({medium for *_, medium in network.links})
    notes = [f"latency of {medium}: {LATENCY_PS[medium][1]}" for medium in media]
    spec = TopologySpec(
        name,
        npus=tuple(names[:count]),
        switches=tuple((switch, None) for switch in names[count:]),
        links=tuple(
            LinkSpec(names[src], names[dst], rate, LATENCY_PS[medium][0], medium)
            for src, dst, rate, medium in network.links
        ),
        groups=groups if len(groups) > 1 else (),
        offloads=(OffloadSpec(sums, ("sum", "multicast")),) if sums else (),
        notes=(*network.notes, *assumed, *notes),
        origin=files[0] if files else "",
        gpu=_gpu(systems),
        assumed=(*network.notes, *assumed),
    )
    return spec, network


def _sums(
    systems: Sequence[_core.nccl.System], network: _core.nccl.Network
) -> tuple[tuple[str, ...], list[str]]:
    """Name the switches that sum and multicast, and say by what where no file says which GPUs these are."""
    gpus = [gpu for system in systems for gpu in system.gpus]
    is_told = any(gpu[2] > 0 or gpu[3] is not None for gpu in gpus)
    if is_told or max(gpu[4] for gpu in gpus) <= _BEFORE_HOPPER:
        return tuple(network.names[switch] for switch in network.sums), []
    ends = {dst for _, dst, _, medium in network.links if medium == "nvswitch"}
    names = tuple(network.names[switch] for switch in sorted(ends) if switch >= network.npus)
    note = (
        "the matrix does not say whether NVSwitches sum: those of GPUs with more than "
        f"{_BEFORE_HOPPER} NVLinks, Hopper and later, do"
    )
    return names, [note] if names else []


def _gpu(systems: Sequence[_core.nccl.System]) -> str | None:
    """Name the GPUs: the oldest, as NCCL does; None where nothing says what they are."""
    architecture = systems[0].gpus[0][3]
    if architecture is not None:
        return f"gfx{architecture.removeprefix('gfx')}"
    oldest = min(gpu[2] for system in systems for gpu in system.gpus)
    return f"sm{oldest}" if oldest > 0 else None


def spec_from_dumps(paths: Sequence[Path], nodes: int = 1) -> TopologySpec:
    """Read the files of some nodes, which form one network.

    Parameters
    ----------
    paths
        A file for each node.
    nodes
        How many nodes are like the one that is given, where it is one.

    Raises
    ------
    SpecError
        As :func:`read_system`; if there are several nodes and one has no NIC.
    """
    systems = [read_system(path) for path in dict.fromkeys(paths)]
    of = dict(zip(dict.fromkeys(paths), systems, strict=True))
    dumps = tuple(paths) * nodes
    name = paths[0].stem + (f" x{len(dumps)}" if len(dumps) > 1 else "")
    spec, _ = spec_from_systems([of[path] for path in dumps], name, [*map(shown_path, dumps)])
    return replace(spec, dumps=dumps)
