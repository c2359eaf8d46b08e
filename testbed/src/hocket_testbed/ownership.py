"""The ownership of a testbed, and its removal when its owner is gone.

A lock on a file stands for each prefix: the kernel frees it when the process ends, however it ends. A
guard, a process of its own session, removes the namespaces when the owner's end of a pipe closes, which
`kill -9` does as well. Where the guard is killed too, the next build of that prefix removes what is
left, or ``hocket testbed clean``.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from hocket.errors import InfeasibleError
from hocket_testbed.namespaces import check_prefix, remove

__all__ = ["clean", "guard", "owned"]

LOCKS = Path("/run/hocket-testbed")
_PATIENCE = 5.0
"""How long a guard may take to remove what its owner left [s]."""
_NOTHING_LEFT = b"."
"""What an owner says to its guard when it has removed everything itself."""


@contextmanager
def owned(prefix: str) -> Iterator[None]:
    """Own a prefix while the block runs: nothing of it is left before, nor after it.

    Raises
    ------
    InfeasibleError
        Where another process owns it, or where namespaces may not be removed.
    """
    lock = _locked(check_prefix(prefix), _PATIENCE)
    with lock:
        remove(prefix)
        guard = _guard(prefix)
        try:
            yield
        finally:
            try:
                remove(prefix)
            finally:
                guard.communicate(_NOTHING_LEFT)


def clean(prefix: str) -> int:
    """Remove what a testbed left that nobody owns any more; give the number of its namespaces.

    Raises
    ------
    InfeasibleError
        Where a living process owns it.
    """
    with _locked(check_prefix(prefix), _PATIENCE):
        return remove(prefix)


def guard(prefix: str) -> None:
    """Wait until the owner of standard input's other end is gone, and remove what it left."""
    if sys.stdin.buffer.read() == _NOTHING_LEFT:
        return
    # The kernel may free the owner's lock after it has closed the pipe. Whoever has the lock later has
    # removed what was left, or will.
    with suppress(InfeasibleError), _locked(check_prefix(prefix), _PATIENCE):
        remove(prefix)


def _guard(prefix: str) -> subprocess.Popen[bytes]:
    code = f"from hocket_testbed.ownership import guard; guard({prefix!r})"
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _locked(prefix: str, patience: float) -> IO[str]:
    """Return the open file of a prefix, locked, with the process's number in it."""
    try:
        LOCKS.mkdir(exist_ok=True)
        file = (LOCKS / f"{prefix}.pid").open("a+", encoding="ascii")
    except OSError as error:
        raise InfeasibleError(
            None, f"{LOCKS} cannot be written: {error.strerror}", "run it as root"
        ) from None
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            if time.monotonic() < end:
                time.sleep(0.05)
                continue
            file.seek(0)
            owner = file.read().strip() or "another"
            file.close()
            raise InfeasibleError(
                "prefix",
                f"the testbed {prefix} belongs to process {owner}",
                "wait for it, or give another prefix",
            ) from None
    file.seek(0)
    file.truncate()
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file
