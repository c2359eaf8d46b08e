"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from hocket import _core
from hocket.errors import SpecError
from hocket.files.claims import remove_abandoned, unfinished_file, unfinished_folder


def check_target(path: Path) -> None:
    """Refuse a file that cannot be written, before the work.

    Raises
    ------
    SpecError
        If it is a folder, or its folder is missing or cannot be written.
    """
    is_folder, special, target = _found(path)
    if is_folder:
        raise SpecError(None, f"{str(path)!r} is a folder", "name a file")
    if _is_standard_output(path):
        raise SpecError(None, "is where the report is printed", "name a file", origin=str(path))
    if special:
        return
    folder = target.parent
    if not folder.exists():
        raise SpecError(
            None, f"there is no folder {str(folder)!r}", "make it first", origin=str(path)
        )
    if not folder.is_dir():
        raise SpecError(
            None, f"{str(folder)!r} is a file, not a folder", "choose another", origin=str(path)
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SpecError(None, "its folder cannot be written", "choose another", origin=str(path))


def check_apart(path: str | PathLike[str], read: Iterable[str | PathLike[str]], what: str) -> None:
    """Refuse a file to write that is one of those that are read, which ``what`` names.

    Raises
    ------
    SpecError
        If it is, also by another path.
    """
    target = Path(path).resolve()
    if any(target == Path(each).resolve() for each in read):
        raise SpecError("--output", f"{path} is {what}", "name another file")


def _found(path: Path) -> tuple[bool, bool, Path]:
    """Return whether a path is a folder, whether it is neither that nor a file, and where it leads."""
    try:
        str(path).encode()
        return path.is_dir(), _is_special(path), _real(path)
    except UnicodeEncodeError:
        raise SpecError(
            None, f"{str(path)!r} is not text in UTF-8", "choose another name"
        ) from None
    except RuntimeError:
        raise SpecError(None, "links to itself", "choose another", origin=str(path)) from None
    except OSError as error:
        raise SpecError(None, str(error.strerror), "choose another", origin=str(path)) from None


def _is_special(path: Path) -> bool:
    """Return whether it exists but is neither a file nor a folder: a device, a pipe."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _is_standard_output(path: Path) -> bool:
    """Return whether printed lines go there too, and are not thrown away."""
    try:
        there, printed, null = path.stat(), os.fstat(1), Path(os.devnull).stat()
    except OSError:
        return False
    return os.path.samestat(there, printed) and not os.path.samestat(there, null)


def _real(path: Path) -> Path:
    """Return the file itself where ``path`` is a link to one, so that the link stays a link."""
    return path.resolve(strict=False) if path.is_symlink() else path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file next to ``path`` that takes its place when the block ends well.

    Whatever ends the block early, an interrupt included, leaves no file behind and an earlier one
    as it was. What is not a file (``/dev/null``, a pipe) is never replaced: it is
    written to when the block ends well.

    Raises
    ------
    SpecError
        If the folder is missing or cannot be written.
    """
    check_target(path)
    special, target = _is_special(path), _real(path)
    folder = Path(tempfile.gettempdir()) if special else target.parent
    remove_abandoned(folder)
    try:
        with unfinished_file(folder) as temporary:
            yield temporary
            if special:
                with temporary.open("rb") as written, path.open("wb") as device:
                    shutil.copyfileobj(written, device)
                return
            temporary.chmod(_mode(target))
            temporary.replace(target)
    except OSError as error:
        raise _unwritable(path, error) from None


def check_folder(path: Path, is_own: Callable[[str], bool]) -> Path:
    """Return the folder that :func:`replacing_folder` would replace or make.

    Raises
    ------
    SpecError
        As there.
    """
    is_folder, _, target = _found(path)
    if is_folder:
        try:
            files = list(target.iterdir())
            strange = sorted(f.name for f in files if not is_own(f.name) or f.is_dir())
        except OSError as error:
            why = f"cannot be read: {error.strerror}"
            raise SpecError(None, why, "name a new folder", origin=str(path)) from None
        if strange:
            wrong = f"has other files, such as {strange[0]!r}"
            raise SpecError(None, wrong, "name a new folder", origin=str(path))
    elif target.exists():
        raise SpecError(None, f"{str(path)!r} is a file", "name a folder")
    else:
        check_target(path)
    return target


@contextmanager
def replacing_folder(path: Path, is_own: Callable[[str], bool]) -> Iterator[Path]:
    """Yield an empty folder next to ``path`` that takes its place when the block ends well.

    A folder that is there must have no files but such as ``is_own`` recognizes by their names: those are
    replaced with it. Whatever ends the block early leaves what was there.

    Raises
    ------
    SpecError
        If it is a file, has other files, or its folder is missing or cannot be written.
    """
    target = check_folder(path, is_own)
    remove_abandoned(target.parent)
    try:
        with unfinished_folder(target.parent) as temporary:
            yield temporary
            check_folder(path, is_own)  # somebody may have written there meanwhile
            old = temporary.with_suffix(".old")
            # From here on the new folder may be all that there is.
            _core.interrupt.finished(str(temporary))
            try:
                if target.is_dir():
                    target.replace(old)
                temporary.replace(target)
            finally:
                if old.is_dir() and not target.is_dir():
                    old.replace(target)
                shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> SpecError:
    """Explain why a file could not be written, and what would help."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    right = "make room, or name a file on another disk" if full else "choose another"
    return SpecError(None, f"cannot be written: {error.strerror or error}", right, str(path))


def _mode(target: Path) -> int:
    """Return the rights of what is there, or of a new file."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
