"""Threads that run before all others: what is measured is the network, not who else wants a core."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["promptly"]

_PRIORITY = 40


@contextmanager
def promptly(real_time: bool, above: int = 0) -> Iterator[None]:
    """Make this thread run before all others, as far as permitted, and so many steps above those."""
    if not real_time:
        yield
        return
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY + above))
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setscheduler(0, *before)
