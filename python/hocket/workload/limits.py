"""Bounds of what layers may be, and the bytes that their numbers take."""

from __future__ import annotations

from hocket._checks import whole

LARGEST = 1 << 24
"""No size of a layer is as large as this."""
MAX_PARAMETERS = (1 << 48) - 1
"""Of a workload: what is more does not fit a size in bytes."""
MAX_COUNT = 1 << 62
"""Operations, bytes, numbers or picoseconds of a pass for one sample are at most as many."""
_PRECISION = 1024


def bytes_of(parameters: int, precision_bits: int) -> int:
    """Return the bytes that numbers of so many bits take, rounded up to whole ones."""
    bits = whole("precision_bits", precision_bits, 1, _PRECISION)
    return -(-parameters * bits // 8)
