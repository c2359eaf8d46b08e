"""Tables for tuners of NCCL: which algorithm, protocol and channels every size takes.

Both the example plugin of NCCL's repository and hocket's own read such a table. It answers for every size
from 0 to 2^64 - 1: where no line answers, the example plugin sets one channel.

References
----------
NVIDIA/nccl 2.30.7, plugins/tuner/example/plugin.c and src/enqueue.cc (Apache-2.0), read at commit 5067397.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING

from hocket import _core
from hocket._checks import list_of, path_of, whole
from hocket._core import Topology
from hocket._results import ListResult, Result, said
from hocket.errors import InfeasibleError, SpecError
from hocket.files.atomic import check_target, write_text
from hocket.files.raw import read_bytes
from hocket.nccl.constants import MOST_CHANNELS, THREADS, THRESHOLDS
from hocket.nccl.model import KINDS
from hocket.nccl.prediction import Library, library_on, network_and_gpu
from hocket.profiles.hardware import hardware_of
from hocket.profiles.measurement import Measurement, read_measurements
from hocket.profiles.prediction import predict_on
from hocket.profiles.profile import as_profile
from hocket.topology.dump import place_in
from hocket.topology.sources import TopologyLike
from hocket.units import counted, shown

if TYPE_CHECKING:
    from hocket.profiles.profile import Profile

LARGEST = (1 << 64) - 1
"""Bytes to which a table answers."""
_MOST = 1 << 36
"""Bytes from which on nothing changes any more: 64 GiB."""
_TO_FILE = {
    "all-reduce": "allreduce",
    "all-gather": "allgather",
    "reduce-scatter": "reducescatter",
    "broadcast": "broadcast",
    "reduce": "reduce",
}
_FROM_FILE = {name: kind for kind, name in _TO_FILE.items()}
_PROTOCOLS = {"ll": "LL", "ll128": "LL128", "simple": "Simple"}
_PICKED = ("ring", "tree", "nvls", "nvls-tree", "pat")
_NOT_PICKED = ("collnet", "msccl")
"""How algorithms begin that are measured, but no tuner may pick here."""
_NVLS_CHANNELS = 16

Pick = tuple[str, str]
"""Algorithm, as ``"nvls-tree"``, and protocol, as ``"LL128"``."""


@dataclass(frozen=True)
class TunerRow(Result):
    """A line of a table.

    Attributes
    ----------
    kind
        The collective.
    least, most
        From and to which size, both included [bytes].
    algorithm, protocol
        As ``"nvls-tree"`` and ``"Simple"``.
    channels
        How many; ``None`` leaves it to NCCL.
    nodes, ranks
        Of communicators that it is for; ``None``: of any.
    """

    kind: str = field(metadata=said("collective"))
    least: int = field(metadata=said("min_bytes"))
    most: int = field(metadata=said("max_bytes"))
    algorithm: str
    protocol: str
    channels: int | None
    nodes: int | None
    ranks: int | None = field(metadata=said("npus"))


@dataclass(frozen=True, repr=False)
class TunerTable(ListResult[TunerRow]):
    """A table for tuners.

    Attributes
    ----------
    rows
        Its lines; the first that matches counts.
    comments
        What its first lines say: what it was made from, and by which version's rules.
    """

    _table = "rows"

    rows: tuple[TunerRow, ...]
    comments: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The file.

        Raises
        ------
        SpecError
            If for a collective that it has some size has no line.
        """
        rows = [
            (
                _TO_FILE[each.kind],
                each.least,
                each.most,
                each.algorithm.replace("-", "_"),
                each.protocol.lower(),
                each.channels,
                each.nodes,
                each.ranks,
            )
            for each in self.rows
        ]
        return _core.nccl.write_tuner(rows, self.comments)

    def write(self, path: str | PathLike[str]) -> None:
        """Write the file, whole or not at all.

        Raises
        ------
        SpecError
            If it cannot be written, or as :attr:`text`.
        """
        file = path_of("path", path)
        check_target(file)
        write_text(file, self.text)

    def pick(self, kind: str, size: int, *, nodes: int, ranks: int) -> TunerRow | None:
        """Return the line that answers for a size [bytes], or ``None`` if there is none."""
        for row in self.rows:
            is_for = row.nodes in (None, nodes) and row.ranks in (None, ranks)
            if row.kind == kind and row.least <= size <= row.most and is_for:
                return row
        return None

    def __repr__(self) -> str:
        return f"<TunerTable of {len(self)} lines>"


def read_tuner(path: str | PathLike[str]) -> TunerTable:
    """Read a table.

    Raises
    ------
    SpecError
        With file and line, for what the example plugin would silently take for something else.
    """
    file = path_of("path", path)
    raw = read_bytes(file, "a table for a tuner of NCCL")
    try:
        rows, comments = _core.nccl.parse_tuner(raw)
    except SpecError as error:
        raise error.but(origin=place_in(file, error)) from None
    made = [
        TunerRow(
            _FROM_FILE[collective],
            least,
            most,
            algorithm.replace("_", "-"),
            _PROTOCOLS[protocol],
            channels,
            nodes,
            ranks,
        )
        for collective, least, most, algorithm, protocol, channels, nodes, ranks in rows
    ]
    return TunerTable(tuple(made), tuple(comments))


def tuner_table(
    topology: TopologyLike,
    *,
    profile: Profile | str | None = None,
    gpu: str | None = None,
    measured: Sequence[str | PathLike[str]] = (),
    groups: Iterable[Sequence[int]] = (),
) -> TunerTable:
    """Make a table for the communicators of a topology: of all its NPUs, or of some groups.

    Parameters
    ----------
    topology
        A network, or text as of :func:`hocket.topology.load`.
    profile
        Constants fitted to sweeps, by which sizes are predicted; without, NCCL's own model predicts them.
    gpu
        As of :func:`hocket.nccl.predict`, which says how many channels there are.
    measured
        Sweeps of nccl-tests that were run with ``NCCL_ALGO`` and ``NCCL_PROTO`` set, and say which: of the
        collectives that they have, the fastest of each size is taken; the others are predicted.
    groups
        The NPUs of each communicator, such as those of tensor and of data parallelism. A tuner tells them
        apart by how many ranks they have on how many nodes: of those alike in both, the first counts.

    Raises
    ------
    SpecError
        For sweeps that do not say which algorithm and protocol ran, or of other counts of NPUs and nodes;
        for an NPU that is not there.
    InfeasibleError
        If NCCL's model has no such GPU, or every group has one NPU.
    """
    network, named = network_and_gpu(topology, gpu)
    used = None if profile is None else as_profile(profile)
    library = library_on(network, named)
    libraries, left = _communicators(library, network, groups)
    sweeps = _sweeps(measured, list(libraries))
    comments = [f"for {_counted(*each)} of {network.name}" for each in libraries]
    comments.append(f"channels and collectives as {library.name} {library.version} has them")
    comments += left
    rows: list[TunerRow] = []
    sources: dict[str, list[str]] = {}
    for (npus, nodes), library in libraries.items():
        for kind in KINDS:
            channels = _channels(kind, library)
            measured_here = sweeps.get((npus, nodes, kind))
            source, parts = _picks(kind, library, used, measured_here, channels)
            sources.setdefault(f"{kind}: {source}", []).append(_counted(npus, nodes))
            for least, most, (algorithm, protocol) in parts:
                total = channels.get(algorithm)
                if total is None:
                    known = ", ".join(channels)
                    why = f"{library.name} has no {algorithm} for {kind} here"
                    raise InfeasibleError("measured", why, f"it has {known}")
                for first, last, count in _scaled(least, most, total, (algorithm, protocol), npus):
                    row = TunerRow(kind, first, last, algorithm, protocol, count, nodes, npus)
                    rows.append(row)
    for line, of in sources.items():
        comments.append(line if len(of) == len(libraries) else f"{line}, for {' and '.join(of)}")
    return TunerTable(tuple(rows), tuple(comments))


def _counted(npus: int, nodes: int) -> str:
    return f"{npus} ranks on {counted(nodes, 'node')}"


def _communicators(
    library: Library, network: Topology, groups: Iterable[Sequence[int]]
) -> tuple[dict[tuple[int, int], Library], list[str]]:
    """Return the library by ranks and nodes, and a sentence for each of these that it cannot predict."""
    listed = [list_of("groups", each) for each in list_of("groups", groups)]
    listed = listed or [list(range(network.npu_count))]
    names = network.device_names[: network.npu_count]
    node_of = {npu: i for i, node in enumerate(network.groups) for npu in node}
    found: dict[tuple[int, int], set[int]] = {}
    for group in listed:
        for npu in group:
            whole("groups", npu, 0, network.npu_count - 1)
        counts = len(group), len({node_of.get(npu, 0) for npu in group})
        found.setdefault(counts, set(group))
    known, left = {}, []
    for (npus, nodes), members in found.items():
        others = [name for npu, name in enumerate(names) if npu not in members]
        if npus == 1:
            continue
        try:
            hardware = hardware_of(network.without(others) if others else network)
        except InfeasibleError as error:
            left.append(f"{_counted(npus, nodes)} are left to {library.name}: {error.why}")
            continue
        known[npus, nodes] = replace(library, npus=npus, nodes=nodes, hardware=hardware)
    if not known:
        why = left[0] if left else "every group has one NPU"
        raise InfeasibleError("groups", why, "name groups of several NPUs of a node")
    return known, left


def _picks(
    kind: str,
    library: Library,
    profile: Profile | None,
    measured: Sequence[Measurement] | None,
    channels: dict[str, int],
) -> tuple[str, list[tuple[int, int, Pick]]]:
    """Return what picks are made by, and the ranges of sizes with one pick."""
    if measured is not None:
        return "measured", _measured(measured)
    if profile is not None:
        source = "predicted by a profile that was fitted to sweeps"
        return source, _parts(_by_profile(kind, library, profile, channels))
    return f"predicted by {library.name}'s own model", _parts(_by_model(kind, library))


def _channels(kind: str, library: Library) -> dict[str, int]:
    """Return how many channels each algorithm has: those of its graph twice, of sums in switches 16."""
    return {
        each.algorithm: _NVLS_CHANNELS
        if each.algorithm.startswith("nvls")
        else min(2 * each.channels, MOST_CHANNELS)
        for each in library.choices(kind, 1 << 20)
    }


def _by_model(kind: str, library: Library) -> Callable[[int], Pick]:
    def pick(size: int) -> Pick:
        best = library.choices(kind, size)[0]
        return best.algorithm, best.protocol

    return pick


def _by_profile(
    kind: str, library: Library, profile: Profile, channels: dict[str, int]
) -> Callable[[int], Pick]:
    counts = library.npus, library.nodes

    def pick(size: int) -> Pick:
        found = predict_on(kind, library.hardware, *counts, [max(size, 1)], profile).times[0]
        name = found.algorithm
        name = f"{name}-tree" if name == "nvls" and name not in channels else name
        return name, _PROTOCOLS[found.protocol.lower()]

    return pick


def _parts(pick: Callable[[int], Pick]) -> list[tuple[int, int, Pick]]:
    """Return the ranges of sizes with one pick, and their ends to the byte."""
    sizes = sorted({round(2 ** (step / 2)) for step in range(2 * _MOST.bit_length() - 1)})
    found = [(0, pick(sizes[0]))]
    for below, above in itertools.pairwise(sizes):
        end = pick(above)
        while found[-1][1] != end:
            first, last = below, above
            while last - first > 1:
                middle = (first + last) // 2
                first, last = (middle, last) if pick(middle) == found[-1][1] else (first, middle)
            found.append((last, pick(last)))
            below = last
    ends = [start - 1 for start, _ in found[1:]] + [LARGEST]
    return [(start, end, name) for (start, name), end in zip(found, ends, strict=True)]


def _scaled(
    least: int, most: int, total: int, pick: Pick, npus: int
) -> Iterator[tuple[int, int, int]]:
    """Return the ranges of sizes with one number of channels: as many as have work, as NCCL has it."""
    algorithm, protocol = pick
    if algorithm.startswith("nvls"):
        yield least, most, total
        return
    each = THREADS[protocol] * THRESHOLDS[protocol]
    if (algorithm, protocol) == ("ring", "LL"):
        each *= npus
    counts = [1 << k for k in range(total.bit_length()) if 1 << k < total] + [total]
    starts = [0, *(count * each for count in counts[1:])]
    ends = [start - 1 for start in starts[1:]] + [LARGEST]
    for start, end, count in zip(starts, ends, counts, strict=True):
        first, last = max(start, least), min(end, most)
        if first <= last:
            yield first, last, count


def _sweeps(
    files: Sequence[str | PathLike[str]], counts: Sequence[tuple[int, int]]
) -> dict[tuple[int, int, str], list[Measurement]]:
    """Read what was measured, by numbers of NPUs and nodes, and collective."""
    if isinstance(files, (str, PathLike)) or not isinstance(files, Sequence):
        raise SpecError("measured", f"{files!r} is not a list of files", "give a list")
    found: dict[tuple[int, int, str], list[Measurement]] = {}
    for file in files:
        told = 0
        for row in read_measurements(file).rows:
            if row.kind not in KINDS or not _is_told(row, str(file)):
                continue
            if (row.npus, row.nodes) not in counts:
                what = f"{row.npus} GPUs on {counted(row.nodes, 'node')} were measured"
                have = " and ".join(f"{npus} on {nodes}" for npus, nodes in counts)
                why = f"{what}, the topology has {have}"
                raise SpecError("measured", why, "give its own topology", origin=str(file))
            told += 1
            found.setdefault((row.npus, row.nodes, row.kind), []).append(row)
        if not told:
            why = "no line says which algorithm and protocol ran"
            right = (
                "give a table whose columns algo and proto say what NCCL_ALGO and NCCL_PROTO were"
            )
            raise SpecError("measured", why, right, origin=str(file))
    return found


def _is_told(row: Measurement, origin: str) -> bool:
    """Return whether a row names its algorithm and protocol, and a tuner may pick them.

    Raises
    ------
    SpecError
        If NCCL has no such algorithm or protocol.
    """
    algorithm, protocol = row.algorithm, row.protocol.lower()
    if algorithm.startswith("auto") or protocol == "auto":
        return False
    if protocol not in _PROTOCOLS:
        why = f"there is no protocol {shown(row.protocol)}"
        raise SpecError("measured", why, "protocols are LL, LL128 and Simple", origin)
    if _name(algorithm) is None and not algorithm.startswith(_NOT_PICKED):
        right = f"algorithms are {', '.join(_PICKED)}"
        raise SpecError("measured", f"there is no algorithm {shown(algorithm)}", right, origin)
    return _name(algorithm) is not None


def _name(algorithm: str) -> str | None:
    known = {"nvlstree": "nvls-tree", "collnetdirect": "collnet-direct"}
    name = known.get(algorithm, algorithm)
    return name if name in _PICKED else None


def _measured(rows: Sequence[Measurement]) -> list[tuple[int, int, Pick]]:
    """Return the fastest of each size that was measured; in between it changes where both are as quick."""
    times: dict[int, dict[Pick, float]] = {}
    for row in rows:
        name = str(_name(row.algorithm)), _PROTOCOLS[row.protocol.lower()]
        at = times.setdefault(row.size, {})
        at[name] = min(row.seconds, at.get(name, math.inf))
    sizes = sorted(times)
    picks = [min(times[size], key=lambda name: times[size][name]) for size in sizes]
    found: list[tuple[int, Pick]] = [(0, picks[0])]
    for i in range(1, len(sizes)):
        if picks[i] != found[-1][1]:
            start = _crossing((sizes[i - 1], sizes[i]), times, (found[-1][1], picks[i]))
            found.append((start, picks[i]))
    ends = [start - 1 for start, _ in found[1:]] + [LARGEST]
    return [(start, end, name) for (start, name), end in zip(found, ends, strict=True)]


def _crossing(
    sizes: tuple[int, int], times: dict[int, dict[Pick, float]], names: tuple[Pick, Pick]
) -> int:
    """Return where two picks are equally fast, by straight lines of logarithms, or half way if unknown."""
    below, above = sizes
    try:
        leads = [math.log(times[size][names[1]] / times[size][names[0]]) for size in sizes]
    except KeyError:
        leads = [1.0, -1.0]
    share = leads[0] / (leads[0] - leads[1]) if leads[0] > leads[1] else 0.5
    at = math.exp(math.log(max(below, 1)) * (1 - share) + math.log(above) * share)
    return min(max(round(at), below + 1), above)
