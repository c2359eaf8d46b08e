"""The memory that work may take."""

from __future__ import annotations

import os
from pathlib import Path

from hocket.errors import SpecError
from hocket.units import format_estimate

_MAX_BYTES = 1 << 63
_SHARE = 0.8
_FALLBACK = 16 << 30
_GROUPS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""What a container may use, of either version of control groups; ``max`` or a huge number for all."""


def memory_limit() -> int:
    """Bytes that planning and simulating may take: four fifths of the machine's or the container's."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return _FALLBACK
    for each in _GROUPS:
        try:
            total = min(total, int(each.read_text("ascii")) or total)
        except (OSError, ValueError):
            continue
    return int(total * _SHARE) if total > 0 else _FALLBACK


def checked_limit(given: int | None) -> int:
    """Return a limit that a caller has set, or :func:`memory_limit`.

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


def check_fits(size: int, what: str, *, most: int | None = None, origin: str | None = None) -> None:
    """Refuse a file whose contents take more memory than there is, before they are made.

    Parameters
    ----------
    size
        Bytes that they take, or about as many.
    what
        The contents, for the message: ``"its 3 rows"``.
    most
        Bytes that they may take; never more than :func:`memory_limit`.

    Raises
    ------
    SpecError
        If they take more.
    """
    limit = min(memory_limit(), _MAX_BYTES if most is None else most)
    if size > limit:
        raise SpecError(
            None,
            f"{what} would take {format_estimate(size)} in memory",
            f"the limit is {format_estimate(limit)}",
            origin=origin,
        )
