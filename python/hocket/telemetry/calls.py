"""The common form of recordings: calls of collectives, each with its size and its time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low

from hocket.errors import SpecError, listed
from hocket.telemetry.library_log import LibraryLog

RUN, KERNEL = "run", "kernel"
"""What was timed: calls one after another, launch and all; or the kernel alone."""

_SILENT = LibraryLog()
"""What NCCL says where it says nothing: of all calls of recordings without its words."""


@dataclass(frozen=True)
class Call:
    """One rank's record of one call.

    Attributes
    ----------
    kind
        The collective, as ``"all-reduce"``.
    size
        As nccl-tests states it [bytes].
    seconds
        How long it took.
    npus, nodes
        Among how many, on how many nodes; ``None`` where the recording does not say.
    ranks
        The members' ranks in the whole job, where they are known.
    group, sequence
        Which call it was: the group's name, and the number of the call there; ``None`` where nobody
        counted.
    recorder
        Who recorded it.
    hosts
        Where the members ran, where a log says so.
    library
        What NCCL says of itself in its run, if it is of a log.
    """

    kind: str
    size: int
    seconds: float
    npus: int
    nodes: int | None = None
    ranks: tuple[int, ...] | None = None
    group: str = ""
    sequence: int | None = None
    recorder: str = ""
    hosts: tuple[str, ...] = ()
    library: LibraryLog = field(default_factory=lambda: _SILENT, compare=False)


@dataclass(frozen=True)
class Recording:
    """All that a file says.

    Attributes
    ----------
    name
        The file, for messages.
    format
        Who wrote it: ``"nccl-tests"``, ``"inspector"``, ``"flight-recorder"`` or ``"kineto"``.
    timing
        What was timed: :data:`RUN` or :data:`KERNEL`.
    calls
        In the order of the file.
    left_out
        How many calls cannot be used, by the reason.
    device
        The GPU that it names, as ``"NVIDIA A100-SXM4-40GB"``; ``None`` where it names none.
    digest
        What identifies the contents of a table or a log; empty of others, to which no profile is fitted.
    library
        What NCCL says of itself, if it is a log of NCCL without times.
    """

    name: str
    format: str
    timing: str
    calls: tuple[Call, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    device: str | None = None
    digest: str = ""
    library: LibraryLog = field(default_factory=LibraryLog)

    @classmethod
    def of_kernels(cls, name: str, format_: str, found: Iterable[Call | str]) -> Recording:
        """Return what a file says of kernels: calls, or why each is left out."""
        entries = list(found)
        left_out = Counter(each for each in entries if isinstance(each, str))
        calls = tuple(each for each in entries if isinstance(each, Call))
        return cls(name, format_, KERNEL, calls, left_out)


@dataclass(frozen=True)
class Times:
    """The measured times of one size of one collective.

    Attributes
    ----------
    kind, timing, size
        Of what; see :class:`Call` and :class:`Recording`.
    seconds
        The median over calls; of an even number, the lower one of the two in the middle.
    calls
        How many there were.
    """

    kind: str
    timing: str
    size: int
    seconds: float
    calls: int


def chosen(
    recording: Recording, npus: int, nodes: int, *, is_only: bool = True
) -> tuple[list[Call], Counter[str]]:
    """Return the calls among all NPUs of a topology, and how many others there are, by the reason.

    Parameters
    ----------
    is_only
        Whether no other file has calls among all NPUs; with others, a run on some of the hosts may
        single out one of them.

    Raises
    ------
    SpecError
        If there is none: naming the sizes of the groups that the file has.
    """
    kept: list[Call] = []
    others: Counter[str] = Counter(recording.left_out)
    shapes: Counter[str] = Counter()
    for call in recording.calls:
        if _fits(call, npus, nodes):
            kept.append(call)
        else:
            shapes[_shape(call, npus, nodes)] += 1
    is_part = not is_only and all(call.hosts for call in recording.calls)
    if not kept and shapes and not is_part:
        what = listed(list(shapes)[:4])
        why = f"its collectives are among {what}; the topology has {_counted(npus, nodes)}"
        right = "give the topology of the machine, or the part of it, that was measured"
        if nodes == 1 and any(call.npus == npus for call in recording.calls):
            right += "; to NCCL, containers of one node are nodes if none sees the GPUs of all"
        raise SpecError(None, why, right, origin=recording.name)
    for shape, count in shapes.items():
        others[f"among {shape}"] += count
    return kept, others


def spread(call: Call, each: int) -> tuple[int, ...]:
    """Return on how many nodes of so many NPUs a call is, if it is among all of theirs; else nothing."""
    nodes = call.npus // each
    return (nodes,) if nodes > 0 and _fits(call, nodes * each, nodes) else ()


def times_of(calls: Iterable[tuple[str, Call]]) -> list[Times]:
    """Return how long each size took, by collective, what was timed, and size.

    A rank that arrives early waits in the kernel for those that come late, so a call took as long as its
    fastest rank says: the one that arrived last. Calls that nobody counted stand for themselves. Of all
    calls of a size the (lower) median counts, which is the time of a call.
    """
    quickest: dict[tuple[object, ...], float] = {}
    about: dict[tuple[object, ...], tuple[str, str, int]] = {}
    for number, (timing, call) in enumerate(calls):
        own = number if call.sequence is None else None
        key: tuple[object, ...] = (call.kind, timing, call.size)
        key += (call.group, call.ranks, call.sequence, own)
        quickest[key] = min(call.seconds, quickest.get(key, call.seconds))
        about[key] = (call.kind, timing, call.size)
    by_size: dict[tuple[str, str, int], list[float]] = {}
    for key, seconds in quickest.items():
        by_size.setdefault(about[key], []).append(seconds)
    first = list(dict.fromkeys(size[:2] for size in by_size))
    order = sorted(by_size, key=lambda size: (first.index(size[:2]), size[2]))
    return [Times(*size, median_low(by_size[size]), len(by_size[size])) for size in order]


def recorders(calls: Sequence[Call]) -> int:
    """Return how many recorded something."""
    return len({call.recorder for call in calls})


def _fits(call: Call, npus: int, nodes: int) -> bool:
    if call.npus != npus:
        return False
    if call.nodes is not None:
        return call.nodes == nodes
    return call.ranks is None or npus % nodes > 0 or _nodes(call.ranks, npus // nodes) == nodes


def _nodes(ranks: Sequence[int], each: int) -> int:
    """Return on how many nodes ranks are, if they are numbered node by node."""
    return len({rank // each for rank in ranks})


def _shape(call: Call, npus: int, nodes: int) -> str:
    on = call.nodes
    if on is None and call.npus == npus and call.ranks is not None:
        on = _nodes(call.ranks, npus // nodes)
    return f"{call.npus} NPUs" if on is None else _counted(call.npus, on)


def _counted(npus: int, nodes: int) -> str:
    return f"{npus} NPUs on {nodes} node{'' if nodes == 1 else 's'}"
