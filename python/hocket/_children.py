"""Processes for what may take too much or crash: they have limits, and end with whoever started them."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_DIES_WITH_PARENT = 1
"""``PR_SET_PDEATHSIG`` of prctl(2)."""


def end_with(parent: int) -> None:
    """Have this process killed when its parent ends, however that does; on Linux alone."""
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it has ended already
        os._exit(1)


def limit_to(memory: int, seconds: int | None = None) -> None:
    """Have this process take no more than so many bytes, and seconds of a processor from now on.

    Memory beyond that cannot be had. Time that is over ends the process by the signal ``SIGXCPU``. No core
    is dumped.
    """
    import resource  # not everywhere

    limits = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_DATA, memory)]
    if seconds is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        spent = int(used.ru_utime + used.ru_stime)
        limits.append((resource.RLIMIT_CPU, spent + 1 + seconds))
    for kind, most in limits:
        _, hard = resource.getrlimit(kind)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(kind, (least, hard))


@contextmanager
def started(command: list[str], seconds: float) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process, and end it and what it has started when the block ends, or after so many seconds.

    Its standard input and output are pipes; what it says of errors goes nowhere.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    timer = threading.Timer(seconds, end, [process])
    timer.daemon = True
    timer.start()
    try:
        yield process
    finally:
        timer.cancel()
        end(process)
        process.wait()
        for file in (process.stdin, process.stdout):
            assert file is not None
            with suppress(OSError):
                file.close()


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads a session, and all of that."""
    if process.returncode is None:  # its number is not another's before it is waited for
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
