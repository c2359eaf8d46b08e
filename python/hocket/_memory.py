"""How much memory there is to work in."""

from __future__ import annotations

import os

from hocket.errors import SpecError

_MAX_BYTES = 1 << 63
_SHARE = 0.8
_FALLBACK = 16 << 30


def memory_limit() -> int:
    """Bytes that planning and simulating may take: four fifths of the machine's memory."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return _FALLBACK
    return int(total * _SHARE) if total > 0 else _FALLBACK


def checked_limit(given: int | None) -> int:
    """Give a limit that a caller has set, or :func:`memory_limit`.

    Raises
    ------
    SpecError
        If it is not a number of bytes.
    """
    if given is None:
        return memory_limit()
    if type(given) is not int or not 0 <= given < _MAX_BYTES:
        raise SpecError("memory_limit", f"{given!r} is not a number of bytes below 2^63")
    return given
