"""Exports of PyTorch's profiler: Chrome traces by Kineto, in which NCCL's kernels say what they do.

References
----------
pytorch/kineto, libkineto/src/output_json.cpp (which keys kernels of collectives have), pytorch/pytorch,
torch/csrc/profiler/util.h (their names), BSD-3-Clause. Times are in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from hocket.telemetry.calls import Call, Recording
from hocket.telemetry.torch import bytes_of, kind_of, ranks_of, size_of
from hocket.telemetry.tree import Node

_UNNAMED = "kernels of NCCL that do not say which collective they are (of an older PyTorch)"


def is_kineto(value: object) -> bool:
    """Return whether a JSON value is a trace: an object with events, or events alone."""
    return isinstance(value, dict) and "traceEvents" in value


def read_kineto(value: object, name: str) -> Recording:
    """Read a trace.

    Raises
    ------
    SpecError
        Naming file, the event's place, and what would be right.
    """
    root = Node(value, name)
    events = root.at("traceEvents")
    about = root.get("distributedInfo")
    rank = None if about is None else about.get("rank")
    recorder = name if rank is None else f"rank {rank.whole()}"
    return Recording.of_kernels(name, "kineto", _calls(events, recorder))


def _calls(events: Node, recorder: str) -> Iterator[Call | str]:
    """Yield calls, or why each is left out."""
    for event in events.items():
        given = event.value
        if not isinstance(given, dict) or given.get("cat") != "kernel" or given.get("ph") != "X":
            continue
        args = given.get("args")
        if isinstance(args, dict) and "Collective name" in args:
            yield _call(event, recorder)
        elif str(given.get("name", "")).startswith(("nccl", "rccl")):
            yield _UNNAMED


def _call(event: Node, recorder: str) -> Call | str:
    """Return a call, or why it is left out."""
    args = event.at("args")
    kind = kind_of(args.at("Collective name").text())
    if kind is None:
        return "no collectives of equal parts"
    npus = args.at("Group size").whole(1)
    unit = bytes_of(args.at("dtype"))
    given, got = (args.at(f"{side} msg nelems").whole() * unit for side in ("In", "Out"))
    size = size_of(kind, given, got, npus)
    if size is None or any(not _is_even(args.get(f"{side} split size")) for side in ("In", "Out")):
        return "of unequal parts"
    seconds = event.at("dur").number() * 1e-6
    if size == 0 or seconds == 0:
        return "of no size, or of no time"
    members, group = args.get("Process Group Ranks"), args.get("Process Group Name")
    count = args.get("Seq")
    return Call(
        kind,
        size,
        seconds,
        npus,
        ranks=None if members is None or members.value in ("", "[]") else ranks_of(members, npus),
        group="" if group is None else group.text(),
        sequence=None if count is None else count.whole(),
        recorder=recorder,
    )


def _is_even(split: Node | None) -> bool:
    """Return whether the listed parts are alike; a list that is cut off or empty tells nothing else."""
    if split is None:
        return True
    parts = split.value
    if isinstance(parts, str):
        try:
            parts = json.loads(parts or "[]")
        except (ValueError, RecursionError):
            return False
    return isinstance(parts, list) and len({str(part) for part in parts}) <= 1
