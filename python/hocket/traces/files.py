"""Finds and reads the files of a trace, and counts what is in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hocket._checks import instance_of, one_of, path_of
from hocket._core.trace import Draft, Trace
from hocket._memory import check_fits
from hocket._results import Column, Result, said
from hocket.errors import SpecError
from hocket.files.complaint import shown_path
from hocket.files.foreign import HEAD, check_foreign
from hocket.files.raw import check_json, read_bytes
from hocket.units import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KINDS = Trace.KINDS
"""What ``Trace.kind`` says."""
CALLS = Trace.CALLS
"""What ``Trace.call_kind`` and ``Trace.calls_kind`` say; the former knows 254 and 255 as well."""
DEPENDENCIES = ("all", "data")
_NUMBER = {name: number for number, name in KINDS.items()}
_FILE = re.compile(r"(.+)\.(0|[1-9][0-9]{0,8})\.et", re.DOTALL)
_LARGEST = 8 << 30
"""Bytes of a file."""
_COPIES = 3
"""How many times the bytes of its files a trace takes in memory, about."""
_WHAT = "a trace of Chakra"
_LISTED = 8
_LARGEST_RANK = 1 << 32
_LARGEST_ID = 1 << 63

Groups = Mapping[int, Sequence[int]]


def load(
    prefix: str | PathLike[str],
    groups: str | PathLike[str] | Groups | None = None,
    *,
    dependencies: Literal["all", "data"] = "all",
) -> Trace:
    """Read a trace of all ranks.

    Parameters
    ----------
    prefix
        What ``.{rank}.et`` follows, a folder that holds the files of one trace, or one of its files.
    groups
        Ranks of each numbered group, or a JSON file of them as ASTRA-sim has it: ``{"1": [0, 2]}``. By
        default, those that metadata nodes of PyTorch traces list.
    dependencies
        ``data`` leaves control dependencies out, which in PyTorch traces may be the stack of calls.

    Raises
    ------
    SpecError
        Naming the file, the node and what would be right.
    """
    one_of("dependencies", dependencies, DEPENDENCIES)
    paths = _find(path_of("prefix", prefix))
    check_fits(
        _COPIES * sum(_size(path) for path in paths), "the trace", origin=shown_path(paths[0])
    )
    files = [(shown_path(path), read_bytes(path, _WHAT, most=_LARGEST)) for path in paths]
    draft = Draft(files, dependencies)
    if groups is None:
        found = _process_groups(draft.process_groups, len(paths))
    elif isinstance(groups, Mapping):
        found = _checked(groups, "groups")
    else:
        found = _read_groups(path_of("groups", groups))
    return draft.link(list(found.items()))


@dataclass(frozen=True)
class CallCounts(Result):
    """Collectives of one kind.

    Attributes
    ----------
    size
        Bytes of all of them, as ``Collective.size`` counts them.
    """

    count: int = field(metadata=said(column=Column("calls")))
    size: int = field(metadata=said(column=Column("size, all calls", unit="bytes")))


@dataclass(frozen=True)
class Summary(Result):
    """The contents of a trace, over all ranks.

    Attributes
    ----------
    ranks
        How many there are.
    nodes
        How many nodes of each kind.
    compute_ps, cpu_compute_ps
        Durations of all computations, added up, and of those on CPUs.
    calls
        Of each kind of collective, its calls.
    groups
        How many groups of ranks, that of all among them.
    messages, message_bytes
        Sends, and the bytes that they send.
    unspecified
        Collective nodes that do not say what they do.
    """

    ranks: int
    nodes: dict[str, int]
    compute_ps: int
    cpu_compute_ps: int
    calls: dict[str, CallCounts]
    groups: int
    messages: int
    message_bytes: int
    unspecified: int


def summarize(trace: Trace) -> Summary:
    """Count what is in a trace."""
    instance_of(Trace, "trace", trace, "read one with hk.traces.load(...)")
    kind, calls = trace.kind, trace.calls_kind
    compute = kind == _NUMBER["compute"]
    nodes = {name: int((kind == number).sum()) for number, name in KINDS.items()}
    by_kind = {
        name: CallCounts(int((calls == number).sum()), _total(trace.calls_size[calls == number]))
        for number, name in CALLS.items()
    }
    return Summary(
        ranks=trace.ranks,
        nodes={name: count for name, count in nodes.items() if count},
        compute_ps=_total(trace.duration_ps[compute]),
        cpu_compute_ps=_total(trace.duration_ps[compute & (trace.is_cpu == 1)]),
        calls={name: row for name, row in by_kind.items() if row.count},
        groups=len(trace.group_id),
        messages=nodes["send"],
        message_bytes=_total(trace.bytes[kind == _NUMBER["send"]]),
        unspecified=trace.unspecified,
    )


def groups_of(trace: Trace) -> list[tuple[int, ...]]:
    """Return the ranks of every group."""
    first, ranks = trace.group_first.tolist(), trace.group_ranks.tolist()
    return [tuple(ranks[low:high]) for low, high in pairwise(first)]


def _total(column: NDArray[np.uint64]) -> int:
    """Add up numbers of 64 bits, whose sum may have more."""
    high, low = column >> 32, column & 0xFFFF_FFFF
    return (int(high.sum()) << 32) + int(low.sum())


def _find(prefix: Path) -> list[Path]:
    """Return the files of a trace in the order of ranks."""
    name = shown_path(prefix)
    if prefix.suffix == ".json":
        raise SpecError(
            None, "the JSON form of traces is not read", "give the .et files", origin=str(name)
        )
    try:
        if prefix.is_dir():
            prefix = _only_prefix(prefix)
        elif (match := _FILE.fullmatch(prefix.name)) and prefix.is_file():
            prefix = prefix.with_name(match[1])
        found = _ranks(prefix.parent, prefix.name)
    except OSError as error:
        raise SpecError(
            None, f"cannot be read: {error.strerror}", "check the path", origin=str(name)
        ) from None
    if not found:
        if prefix.is_file():
            with prefix.open("rb") as file:
                check_foreign(file.read(HEAD), name)
        raise SpecError(
            None,
            f"there is no {shown_path(Path(prefix.name))}.0.et",
            "give the beginning of the files' names, their folder, or one .et file",
            origin=str(name),
        )
    missing = [rank for rank in range(min(max(found), len(found) + _LISTED)) if rank not in found]
    if missing:
        ranks = f"rank{'s'[: len(missing) != 1]} {_listed(missing)}"
        there = _listed([found[rank].name for rank in sorted(found)])
        raise SpecError(
            None,
            f"no file of {ranks}",
            f"there are {there}: give all from rank 0 on",
            origin=str(name),
        )
    return [found[rank] for rank in sorted(found)]


def _only_prefix(folder: Path) -> Path:
    matches = (_FILE.fullmatch(path.name) for path in folder.iterdir())
    prefixes = sorted({match[1] for match in matches if match})
    if len(prefixes) == 1:
        return folder / prefixes[0]
    if not prefixes:
        raise SpecError(
            None, "has no files such as NAME.0.et", "give another folder", origin=shown_path(folder)
        )
    raise SpecError(
        None,
        f"has traces {_listed(prefixes)}",
        f"name one, as {shown_path(folder / prefixes[0])}",
        origin=shown_path(folder),
    )


def _ranks(folder: Path, prefix: str) -> dict[int, Path]:
    if not folder.is_dir():
        return {}
    matches = ((path, _FILE.fullmatch(path.name)) for path in folder.iterdir())
    return {int(match[2]): path for path, match in matches if match and match[1] == prefix}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # reading it says why


def _listed(items: Sequence[object]) -> str:
    more = [f"... ({len(items)} in all)"] if len(items) > _LISTED else []
    return ", ".join([str(item) for item in items[:_LISTED]] + more)


def _read_groups(path: Path) -> dict[int, list[int]]:
    import json

    name, content = shown_path(path), read_bytes(path, "a JSON file of groups")
    check_json(content, name)
    try:
        pairs = json.loads(content, object_pairs_hook=lambda pairs: pairs)
    except (ValueError, RecursionError):
        raise SpecError(
            None, "is not JSON", 'write groups as {"1": [0, 2]}', origin=str(name)
        ) from None
    is_object = isinstance(pairs, list) and all(isinstance(pair, tuple) for pair in pairs)
    if not is_object:
        raise SpecError(None, "is not a mapping", 'write groups as {"1": [0, 2]}', origin=str(name))
    groups: dict[object, object] = {}
    for key, ranks in pairs:
        if not re.fullmatch("0|[1-9][0-9]{0,18}", key):
            raise SpecError(
                None, f"{shown(key)} is not a group", "name groups 0, 1, 2, ...", origin=str(name)
            )
        if int(key) in groups:
            raise SpecError(
                None, f"group {key} is there twice", "give each group once", origin=str(name)
            )
        groups[int(key)] = ranks
    return _checked(groups, name)


def _checked(groups: Mapping[Any, Any], name: str) -> dict[int, list[int]]:
    for group, ranks in groups.items():
        if not _is_whole(group, _LARGEST_ID):
            raise SpecError(
                None, f"{shown(group)} is not a group", "name groups 0, 1, 2, ...", origin=str(name)
            )
        is_list = isinstance(ranks, Sequence) and not isinstance(ranks, str | bytes)
        if not is_list or not all(_is_whole(rank, _LARGEST_RANK) for rank in ranks):
            raise SpecError(
                None,
                f"group {group}: {shown(ranks)} is not a list of ranks",
                "write [0, 2]",
                origin=str(name),
            )
    return {group: list(ranks) for group, ranks in groups.items()}


def _is_whole(value: object, end: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < end


def _process_groups(texts: Sequence[tuple[int, str]], ranks: int) -> dict[int, list[int]]:
    """Read the groups that metadata nodes of PyTorch traces list, as JSON within other text.

    A group without ranks is one of all; group 0 always is.
    """
    import json

    groups: dict[int, list[int]] = {}
    for rank, text in texts:
        try:
            items = json.loads(text[text.index("[{") : text.rindex("}]") + 2])
        except (ValueError, RecursionError):
            continue  # a node that says something else
        for item in items:
            if not isinstance(item, dict):
                continue
            number, members = str(item.get("pg_name", "")), item.get("ranks")
            if not re.fullmatch("[1-9][0-9]{0,18}", number) or not isinstance(members, list):
                continue
            group = _checked(
                {int(number): members or list(range(ranks))}, f"metadata of rank {rank}"
            )
            before = groups.setdefault(int(number), group[int(number)])
            if before != group[int(number)]:
                raise SpecError(
                    None,
                    f"metadata of rank {rank}: group {number} is {_listed(group[int(number)])}, "
                    f"and {_listed(before)} elsewhere",
                    "give groups of your own",
                )
    return groups
