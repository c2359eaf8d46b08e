"""The end of a command after Ctrl-C."""

from typing import NoReturn

__all__ = ["end", "finished", "guard", "unattended", "unfinished"]

def guard(seconds: float) -> int | None:
    """End the process so many seconds after SIGINT.

    Returns
    -------
    int or None
        The descriptor for :func:`signal.set_wakeup_fd`; ``None`` where there are none.
    """

def end() -> NoReturn:
    """Remove unfinished files, say on standard error that the command was stopped, end with code 130."""

def unfinished(file: str) -> None:
    """Note a file that is to be removed if the process is ended before it is finished."""

def finished(file: str) -> None:
    """Forget a file that is no longer unfinished."""

def unattended() -> None:
    """Make long calls of this process on the thread that asks for them; no signal is heeded meanwhile."""
