"""Dumps of PyTorch's Flight Recorder: a ring of the last calls of a rank, as a pickle or as JSON.

References
----------
pytorch/pytorch, torch/csrc/distributed/c10d/FlightRecorderDetail.hpp (``dump_dict``, ``dump_json``,
``getCollectiveTrace``), BSD-3-Clause, read at commit 1189309.
"""

from __future__ import annotations

from math import prod

from hocket.telemetry.calls import Call, Recording
from hocket.telemetry.torch import bytes_of, kind_of, ranks_of, size_of
from hocket.telemetry.tree import Node

_UNTIMED = "without duration_ms, which TORCH_NCCL_ENABLE_TIMING=1 makes PyTorch write"


def is_flight(value: object) -> bool:
    """Return whether a value is a dump."""
    return isinstance(value, dict) and "pg_config" in value


def read_flight(value: object, name: str) -> Recording:
    """Read a dump.

    Parameters
    ----------
    value
        What was unpickled, or read as JSON.
    name
        The file, for messages.

    Raises
    ------
    SpecError
        Naming file, place and what would be right.
    """
    root = Node(value, name)
    config, entries = root.at("pg_config"), root.get("entries")
    members: dict[str, tuple[int, ...]] = {}
    found = (
        _call(entry, config, members, name)
        for entry in ([] if entries is None else entries.items())
    )
    return Recording.of_kernels(name, "flight-recorder", found)


def _call(
    entry: Node, config: Node, members: dict[str, tuple[int, ...]], recorder: str
) -> Call | str:
    """Return a call, or why it is left out."""
    kind = kind_of(entry.at("profiling_name").text())
    if kind is None:
        return "no collectives of equal parts"
    if entry.at("state").text() != "completed":
        return "not completed"
    took = entry.get("duration_ms")
    if took is None:
        return _UNTIMED
    group = next(entry.at("process_group").items(), None)
    if group is None:
        raise entry.wrong("its process_group is empty", "give the dump as it was written")
    if group.text() not in members:
        members[group.text()] = ranks_of(config.at(group.text()).at("ranks"), None)
    ranks = members[group.text()]
    size = size_of(kind, _bytes(entry, "input"), _bytes(entry, "output"), len(ranks))
    if size is None:
        return "of unequal parts"
    seconds = took.number() * 1e-3
    if size == 0 or seconds == 0:
        return "of no size, or of no time"
    return Call(
        kind,
        size,
        seconds,
        len(ranks),
        ranks=ranks,
        group=group.text(),
        sequence=entry.at("collective_seq_id").whole(),
        recorder=recorder,
    )


def _bytes(entry: Node, side: str) -> int:
    """Return the bytes of all tensors of one side."""
    types = [bytes_of(each) for each in entry.at(f"{side}_dtypes").items()]
    shapes = entry.at(f"{side}_sizes")
    counts = [prod(dim.whole() for dim in shape.items()) for shape in shapes.items()]
    if len(types) != len(counts):
        raise shapes.wrong(
            f"{len(counts)} shapes for {len(types)} types", "one is written for each"
        )
    return sum(count * size for count, size in zip(counts, types, strict=True))
