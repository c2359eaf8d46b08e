"""PyTorch's names of collectives and types, in its recordings of both kinds.

References
----------
pytorch/pytorch, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp (names), c10/core/ScalarType.h (types),
BSD-3-Clause.
"""

from __future__ import annotations

import json

from hocket.telemetry.tree import Node

_KINDS = {
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "allgatherbase": "all-gather",
    "allgathersingle": "all-gather",
    "allgatherintotensor": "all-gather",
    "reducescatter": "reduce-scatter",
    "reducescatterbase": "reduce-scatter",
    "reducescattersingle": "reduce-scatter",
    "reducescattertensor": "reduce-scatter",
    "broadcast": "broadcast",
    "broadcastoop": "broadcast",
    "reduce": "reduce",
    "reduceoop": "reduce",
    "alltoall": "all-to-all",
    "alltoallv": "all-to-all",
    "alltoallbase": "all-to-all",
    "alltoallsingle": "all-to-all",
}
"""Names without their underscores: ``_allgather_base``, ``all_gather`` and so on."""

_BYTES = {
    1: "byte char bool uint8 int8 qint8 quint8 float8e5m2 float8e4m3fn float8e5m2fnuz float8e4m3fnuz "
    "float8e8m0fnu",
    2: "short half bfloat16 int16 uint16 float16",
    4: "int float int32 uint32 float32 complexhalf qint32",
    8: "long double int64 uint64 float64 complexfloat complex64",
    16: "complexdouble complex128",
}
_SIZES = {name: size for size, names in _BYTES.items() for name in names.split()}
_MOST_RANKS = 1 << 20


def kind_of(name: str) -> str | None:
    """Return the collective that a name such as ``nccl:_all_gather_base`` means; ``None`` of others."""
    return _KINDS.get(_plain(name.rpartition(":")[2]))


def bytes_of(dtype: Node) -> int:
    """Return the bytes of an element.

    Raises
    ------
    SpecError
        If there is no such type.
    """
    name = dtype.text()
    size = _SIZES.get(_plain(name.rpartition(".")[2]))
    if size is None:
        raise dtype.wrong(
            f"there is no type {name[:40]!r}", "types are those of PyTorch: Float, Half"
        )
    return size


def size_of(kind: str, given: int, got: int, npus: int) -> int | None:
    """Return the size of a collective as nccl-tests states it [bytes].

    Parameters
    ----------
    given, got
        What a rank hands in, and what it has in the end [bytes].

    Returns
    -------
    int or None
        ``None`` where ranks do not all have the same.
    """
    if kind in ("broadcast", "reduce"):
        return max(given, got)
    more = {"all-gather": (npus, 1), "reduce-scatter": (1, npus)}.get(kind, (1, 1))
    return max(given, got) if given * more[0] == got * more[1] else None


def ranks_of(text: Node, count: int | None) -> tuple[int, ...]:
    """Read ranks, written as ``[0, 1, 2]``; of many, Kineto writes the first and ``...``.

    Parameters
    ----------
    count
        How many there are, where that is known: the rest of a list that is cut off goes on as its first
        two do.

    Raises
    ------
    SpecError
        If they are not written so.
    """
    right = "ranks are written as [0, 1, 2]"
    written = text.value
    is_cut = False
    if isinstance(written, str):
        plain = written.strip()
        is_cut = plain.endswith("...]")
        plain = plain.removesuffix("...]").rstrip(" ,") + "]" if is_cut else plain
        try:
            written = json.loads(plain)
        except (ValueError, RecursionError):
            raise text.wrong(f"{plain[:40]!r} are not ranks", right) from None
    if not isinstance(written, list) or not all(type(each) is int for each in written):
        raise text.wrong("there are no ranks", right)
    ranks = [each for each in written if 0 <= each < _MOST_RANKS]
    if is_cut and count is not None and 2 <= len(ranks) < count <= _MOST_RANKS:
        step = ranks[1] - ranks[0]
        ranks = [ranks[0] + place * step for place in range(count)]
    if len(set(ranks)) != len(ranks) or len(ranks) != (count or len(ranks)) or not ranks:
        raise text.wrong(f"{len(ranks)} different ranks were expected", right)
    return tuple(ranks)


def _plain(name: str) -> str:
    return name.lower().replace("_", "")
