"""Ctrl-C ends a command within half a second, whatever the command is doing.

Python raises ``KeyboardInterrupt`` between two of its own instructions: files are then removed and the
terminal is put right on the way out. A solver, a drawing or the sort of a long list lets nothing through
until it is done, and some code swallows the exception. The core therefore waits for the signal as well,
on a thread that needs no interpreter, and ends the process where it has not ended by itself.
"""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from types import FrameType

from hocket._core import interrupt

_PATIENCE_S = 0.25
"""How long a command may take to end by itself."""


def guard() -> None:
    """Watch for Ctrl-C from here on.

    Where the signal is ignored (``nohup``, a background job of a script), it stays so.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    with suppress(ValueError):  # not the main thread, which alone hears signals
        signal.signal(signal.SIGINT, _stop)
        descriptor = interrupt.guard(_PATIENCE_S)
        if descriptor is not None:
            signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)


def _stop(number: int, frame: FrameType | None) -> None:
    """Raise once: a second Ctrl-C must not break into the way out."""
    signal.signal(signal.SIGINT, _ignore)
    sys.unraisablehook = _say_nothing
    raise KeyboardInterrupt


def _ignore(number: int, frame: FrameType | None) -> None:
    pass


def _say_nothing(raised: object) -> None:
    """Keep quiet about what ``__del__`` and the like raise on the way out."""


def end() -> None:
    """Say that the command was stopped, and end the process at once."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    interrupt.end()
