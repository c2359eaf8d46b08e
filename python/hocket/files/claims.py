"""Unfinished files and folders, and those that processes left that no longer exist."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hocket import _core

try:
    import fcntl

    _LOCKS = True
except ImportError:  # Windows: nothing is locked there, and nothing removed
    _LOCKS = False

_NAME = re.compile(r"\.hocket-[0-9a-f]{16}\.(part|old)")
_TRIES = 100
_LOOKED_AT: set[str] = set()


@contextmanager
def unfinished_file(folder: Path) -> Iterator[Path]:
    """Make an empty file with a name of its own, locked until the block ends; then it is gone."""
    for _ in range(_TRIES):
        temporary = _name(folder)
        _core.interrupt.unfinished(str(temporary))
        descriptor = -1
        try:
            descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            if not _LOCKS:
                os.close(descriptor)
                descriptor = -1
            elif not _is_locked(temporary, descriptor, waits=True):
                continue
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)
            _close(descriptor)
            _core.interrupt.finished(str(temporary))
        return
    raise OSError(None, "its unfinished file is removed again and again")


@contextmanager
def unfinished_folder(folder: Path) -> Iterator[Path]:
    """Make an empty folder with a name of its own, locked until the block ends; then it is gone."""
    for _ in range(_TRIES):
        temporary = _name(folder)
        _core.interrupt.unfinished(str(temporary))
        descriptor = -1
        try:
            temporary.mkdir()
            if _LOCKS:
                try:
                    descriptor = os.open(temporary, os.O_RDONLY | os.O_NOFOLLOW)
                except FileNotFoundError:
                    continue
                if not _is_locked(temporary, descriptor, waits=True):
                    continue
            yield temporary
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            _close(descriptor)
            _core.interrupt.finished(str(temporary))
        return
    raise OSError(None, "its unfinished folder is removed again and again")


def remove_abandoned(folder: Path) -> None:
    """Remove what processes that no longer exist left unfinished in a folder; once in each process.

    The system ends a lock with the process that holds it, however that ends. A folder that was about to be
    replaced is kept (``.old`` beside ``.part``): both may be all that there is.
    """
    if not _LOCKS or str(folder) in _LOOKED_AT:
        return
    _LOOKED_AT.add(str(folder))
    try:
        found = [Path(each.path) for each in os.scandir(folder) if _NAME.fullmatch(each.name)]
    except OSError:
        return
    for path in found:
        if path.suffix == ".old":
            if not path.with_suffix(".part").exists():
                _remove(path)
        elif not path.with_suffix(".old").exists():
            _remove(path)


def _remove(path: Path) -> None:
    """Remove what nobody has locked."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    try:
        if not _is_locked(path, descriptor, waits=False):
            return
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    except OSError:
        return
    finally:
        os.close(descriptor)


def _is_locked(path: Path, descriptor: int, *, waits: bool) -> bool:
    """Lock what is open, and tell whether it still is what the name stands for.

    On a file system without such locks nothing is ever removed, so that whoever makes something there
    goes on.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except OSError:
        return waits
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _name(folder: Path) -> Path:
    return folder / f".hocket-{os.urandom(8).hex()}.part"


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)
