"""Output of NCCL's and RCCL's Inspector: a JSON object for each call that a rank made.

References
----------
NVIDIA/nccl 2.30.7, plugins/profiler/inspector: inspector_json.cc (what is written), inspector.cc (what a
size is: what one rank hands in, as the call counts it; times by the GPU's clock in whole microseconds),
Apache-2.0, read at commit 5067397. RCCL's plugin writes the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from hocket.telemetry.calls import Call, Recording
from hocket.telemetry.tree import Node

_KINDS = {
    "AllReduce": "all-reduce",
    "AllGather": "all-gather",
    "ReduceScatter": "reduce-scatter",
    "Broadcast": "broadcast",
    "Reduce": "reduce",
    "All2All": "all-to-all",
}
_OF_ONE_RANK = ("all-gather", "reduce-scatter", "all-to-all")
"""Collectives whose size is counted for one of the ranks."""
_OTHERS = ("AllGatherV", "SendRecv", "Send", "Recv", "Invalid")
_PARTS = ("coll_perf", "p2p_perf", "proxy_op")


def is_inspector(value: object) -> bool:
    """Return whether a JSON value is a call that was recorded."""
    return isinstance(value, dict) and "header" in value and any(part in value for part in _PARTS)


def read_inspector(values: Iterable[tuple[str, object]], name: str) -> Recording:
    """Read all calls of a file.

    Parameters
    ----------
    values
        The JSON values of the file, each with the file and its line.
    name
        The file, for messages.

    Raises
    ------
    SpecError
        Naming file, line, the value's place, and what would be right.
    """
    found = (_call(Node(value, origin)) for origin, value in values)
    return Recording.of_kernels(name, "inspector", found)


def _call(root: Node) -> Call | str:
    """Return a call, or why it is left out."""
    done = root.get("coll_perf")
    if done is None:
        return "point to point"
    head, what = root.at("header"), done.at("coll")
    word = what.text()
    kind = _KINDS.get(word)
    if kind is None:
        if word in _OTHERS:
            return f"{word} is no collective of equal parts"
        raise what.wrong(f"there is no collective {word[:40]!r}", f"they are {', '.join(_KINDS)}")
    npus = head.at("n_ranks").whole(1)
    size = done.at("coll_msg_size_bytes").whole() * (npus if kind in _OF_ONE_RANK else 1)
    seconds = done.at("coll_exec_time_us").number() * 1e-6
    source = done.get("coll_timing_source")
    if source is not None and source.text() != "kernel_gpu":
        return "timed by the CPU"
    if size == 0 or seconds == 0:
        return "of no size, or less than a microsecond"
    return Call(
        kind,
        size,
        seconds,
        npus,
        head.at("nnodes").whole(1),
        group=head.at("id").text(),
        sequence=done.at("coll_sn").whole(),
        recorder=f"rank {head.at('rank').whole()} of {head.at('id').text()}",
    )
