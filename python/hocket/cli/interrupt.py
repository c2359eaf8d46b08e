"""Ctrl-C and SIGTERM end a command within half a second, whatever the command is doing.

No exception is raised: thrown in at any moment, it would come out of other people's code as any error, or
not at all. The process ends there and then, less its unfinished files, and prints what it noted so far.
Python itself hears the signal between two of its own instructions, and a solver, a drawing or the sort of a
long list is one instruction; so the core waits for it as well, on a thread that needs no interpreter.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

from hocket._core import interrupt

_PATIENCE_S = 0.1
"""How long Python may take to hear it."""


def guard(heard_by: Callable[[int, object], None]) -> None:
    """Take over from a first handler the signals that it hears."""
    ends = [each for each in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(each) is heard_by]
    for each in ends:
        signal.signal(each, _end)
    descriptor = interrupt.guard(_PATIENCE_S, bytes(ends)) if ends else None
    if descriptor is not None:
        signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)


def _end(number: int, frame: object) -> None:
    interrupt.end(number)
