"""How much memory there is to work in."""

from __future__ import annotations

import os

_SHARE = 0.8
_FALLBACK = 16 << 30


def memory_limit() -> int:
    """Bytes that planning and simulating may take: four fifths of the machine's memory."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return _FALLBACK
    return int(total * _SHARE) if total > 0 else _FALLBACK
