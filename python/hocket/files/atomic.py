"""Files are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hocket.errors import SpecError


def check_target(path: Path) -> None:
    """Refuse a file that cannot be written, before the work.

    Raises
    ------
    SpecError
        If it is a folder, or its folder is missing or cannot be written.
    """
    folder = path.parent
    try:
        is_folder = path.is_dir()
    except OSError as error:
        raise SpecError(f"{path}: {error.strerror}; choose another") from None
    if is_folder:
        raise SpecError(f"{str(path)!r} is a folder; name a file")
    if not folder.is_dir():
        raise SpecError(f"{path}: there is no folder {str(folder)!r}; make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SpecError(f"{path}: its folder cannot be written; choose another")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary file beside ``path`` that takes its place when the block ends well.

    Whatever ends the block early, an interrupt included, leaves no file behind and an earlier one
    as it was.

    Raises
    ------
    SpecError
        If the folder is missing or cannot be written.
    """
    check_target(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise SpecError(f"{path}: cannot be written: {error.strerror}") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    except OSError as error:
        raise SpecError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
