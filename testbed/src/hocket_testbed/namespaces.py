"""Network namespaces: made and removed by a prefix, entered by threads, never left behind.

A testbed owns all namespaces whose names begin with its prefix and a hyphen. Removing a namespace takes
its cables, queues and routes along; processes in it are ended first.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hocket.errors import InfeasibleError, SpecError
from hocket.units import shown

__all__ = ["batch", "check_prefix", "inside", "make", "names_of", "remove", "write_settings"]

NAMED = Path("/run/netns")
"""Where ``ip netns`` keeps namespaces by name."""
_NEW_NETWORK = 0x40000000
_PREFIX = re.compile(r"[a-z][a-z0-9]{0,11}")
_libc = ctypes.CDLL(None, use_errno=True)


def check_prefix(prefix: object) -> str:
    """Check what all names of a testbed begin with, and give it."""
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        raise SpecError(
            "prefix",
            f"{shown(prefix)} does not name a testbed",
            "give up to 12 small letters and digits, a letter first",
        )
    return prefix


def names_of(prefix: str) -> list[str]:
    """Name the namespaces of a testbed that there are, sorted."""
    if not NAMED.is_dir():
        return []
    return sorted(each.name for each in NAMED.iterdir() if each.name.startswith(f"{prefix}-"))


def make(names: Iterable[str]) -> None:
    """Make namespaces, each with its loopback interface up."""
    listed = list(names)
    batch([f"netns add {name}" for name in listed])
    for name in listed:
        batch(["link set lo up"], name)


def remove(prefix: str) -> int:
    """Remove a testbed's namespaces and end the processes in them; give how many there were."""
    names = names_of(prefix)
    for name in names:
        told = subprocess.run(
            ["ip", "netns", "pids", name], capture_output=True, text=True, check=False
        )
        for process in map(int, told.stdout.split()):
            if process != os.getpid():
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
    if names:
        batch([f"netns del {name}" for name in names])
    return len(names)


def batch(lines: Iterable[str], namespace: str | None = None, *, program: str = "ip") -> str:
    """Run commands of ``ip`` or ``tc`` in one process, and give what they print.

    Raises
    ------
    InfeasibleError
        With the first line that the program says, where a command fails.
    """
    text = "".join(f"{line}\n" for line in lines)
    where = [] if namespace is None else ["-netns", namespace]
    done = subprocess.run(
        [program, *where, "-batch", "-"], input=text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "it failed").splitlines()[0]
        raise InfeasibleError(None, said, origin=program if namespace is None else namespace)
    return done.stdout


@contextmanager
def inside(name: str) -> Iterator[None]:
    """Move the calling thread into a namespace while the block runs.

    Sockets that are made there stay there. Other threads are not moved.
    """
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        other = os.open(NAMED / name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _enter(other)
        finally:
            os.close(other)
        try:
            yield
        finally:
            _enter(home)
    finally:
        os.close(home)


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, _NEW_NETWORK):
        error = ctypes.get_errno()
        raise InfeasibleError(None, f"a namespace cannot be entered: {os.strerror(error)}")


def leave_for_new() -> None:
    """Move the calling thread into a namespace of its own, which goes with the thread.

    Raises
    ------
    OSError
        Where that is not permitted.
    """
    if _libc.unshare(_NEW_NETWORK):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def write_settings(name: str, settings: Iterable[tuple[str, object]]) -> None:
    """Set kernel settings of a namespace: (path below ``/proc/sys/net``, value).

    Raises
    ------
    InfeasibleError
        Naming the setting that this kernel does not have.
    """
    with inside(name):
        for setting, value in settings:
            try:
                Path("/proc/sys/net", setting).write_text(str(value), encoding="ascii")
            except OSError as error:
                raise InfeasibleError(
                    None,
                    f"this kernel does not take net/{setting} = {value}: {error.strerror}",
                    "use Linux 6.11 or later",
                ) from None
