"""Columns of numbers as bytes that a page reads: byte planes of values or differences, deflated."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_SAMPLE = 1 << 15
_LEVEL = 6
_FAST = 32 << 20
"""Bytes above which less is tried to make them few."""


def _zigzag(values: NDArray[np.int64]) -> NDArray[np.uint64]:
    return np.asarray((values << 1) ^ (values >> 63)).view(np.uint64)


def _planes(values: NDArray[np.uint64]) -> list[bytes]:
    """Return the byte planes of a column, lowest bytes first."""
    count = max(1, (int(values.max(initial=0)).bit_length() + 7) // 8)
    width = next(width for width in (1, 2, 4, 8) if width >= count)
    raw = values.astype(f"<u{width}").view(np.uint8).reshape(-1, width)
    return [np.ascontiguousarray(raw[:, plane]).tobytes() for plane in range(count)]


def _deltas(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.diff(values, prepend=np.int64(0))


def _cost(values: NDArray[np.int64]) -> int:
    return len(zlib.compress(b"".join(_planes(_zigzag(values))), 1))


def pack(columns: Mapping[str, NDArray[Any]]) -> tuple[list[list[Any]], bytes]:
    """Pack columns: what each is, and the deflated bytes.

    Of each: name, rows, planes, whether it holds differences, and whether values need more than 32 bits.
    Columns of ``uint8`` are kept as they are, whatever their shape; others hold whole numbers below 2^53.
    """
    head: list[list[Any]] = []
    parts: list[bytes] = []
    for name, column in columns.items():
        if column.dtype == np.uint8:
            head.append([name, int(column.size), 0, 0, 0])
            parts.append(column.tobytes())
            continue
        values = column.reshape(-1).astype(np.int64)
        middle = max(0, (len(values) - _SAMPLE) // 2)
        sample = values[middle : middle + _SAMPLE]
        by_difference = _cost(_deltas(sample)) < _cost(sample)
        planes = _planes(_zigzag(_deltas(values) if by_difference else values))
        is_wide = bool(np.abs(values).max(initial=0) >= 1 << 30)
        head.append([name, len(values), len(planes), int(by_difference), int(is_wide)])
        parts.extend(planes)
    raw = b"".join(parts)
    packer = zlib.compressobj(1 if len(raw) > 4 * _FAST else _LEVEL, zlib.DEFLATED, -15)
    return head, packer.compress(raw) + packer.flush()


def packed_size(columns: Mapping[str, NDArray[Any]]) -> int:
    """Return about how many bytes columns take in memory when a page has read them."""
    return sum(
        int(column.size) * (1 if column.dtype == np.uint8 else 8) for column in columns.values()
    )


def unpack(head: list[list[Any]], blob: bytes) -> dict[str, NDArray[Any]]:
    """Return the columns that :func:`pack` was given, as ``int64`` or ``uint8`` without their shapes."""
    raw = np.frombuffer(zlib.decompress(blob, -15), np.uint8)
    found: dict[str, NDArray[Any]] = {}
    at = 0
    for name, rows, planes, by_difference, _ in head:
        if not planes:
            found[name] = raw[at : at + rows]
            at += rows
            continue
        zigzag = np.zeros(rows, np.uint64)
        for plane in range(planes):
            zigzag |= raw[at : at + rows].astype(np.uint64) << np.uint64(8 * plane)
            at += rows
        half = (zigzag >> np.uint64(1)).astype(np.int64)
        values = half ^ -(zigzag & np.uint64(1)).astype(np.int64)
        found[name] = np.cumsum(values) if by_difference else values
    return found
