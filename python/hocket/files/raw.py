"""Files as bytes, of which no more is read than a reader can use."""

from __future__ import annotations

import gzip
import json
import os
import stat
import zlib
from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import Any

from hocket._memory import check_fits
from hocket.errors import SpecError
from hocket.files.complaint import shown_path
from hocket.units import shown

LARGEST = 64 << 20
"""Bytes of a file at most."""
_VALUES = 4 << 30
"""Bytes at most that the values of a file take once they are read."""
_COSTS = ((b"{", 184), (b"[", 88), (b":", 60), (b",", 40))
"""Bytes that Python takes for each mapping, list, key and value of JSON, about."""


def read_bytes(
    path: Path,
    what: str,
    *,
    most: int = LARGEST,
    larger: tuple[str, str] | None = None,
    waits: bool = True,
) -> bytes:
    """Read a file whole, or what comes through a pipe.

    Parameters
    ----------
    what
        What it should be, for messages.
    most
        Bytes that it may have; one that has more is not read.
    larger
        What else is said of such a file, and what is to be done; by default to give what it should be.
    waits
        Whether it may be a pipe, for whose writer it waits as ``cat`` does.

    Raises
    ------
    SpecError
        If it is larger, a folder, a device or a pipe that may be none, or cannot be read.
    """
    name, right = shown_path(path), f"give {what}"
    more, shorter = larger or ("", right)
    too_large = SpecError(None, f"is larger than {most >> 20} MiB{more}", shorter, origin=name)
    try:
        if not waits and path.is_fifo():
            raise SpecError(None, "is a pipe, not a file", right, origin=name)
        with path.open("rb") as file:  # what has no size, such as a pipe, may have no end
            found = os.fstat(file.fileno())
            if stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode):
                raise SpecError(None, "is a device, not a file", right, origin=name)
            if found.st_size > most:
                raise too_large
            raw = file.read(most + 1)
    except SpecError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SpecError(None, f"cannot be read: {reason}", right, origin=name) from None
    if len(raw) > most:
        raise too_large
    return raw


def read_text(path: Path, what: str, *, most: int = LARGEST) -> str:
    """Read a file as :func:`read_bytes` does, as text in UTF-8.

    Raises
    ------
    SpecError
        As :func:`read_bytes`, or if it is not such text.
    """
    try:
        return read_bytes(path, what, most=most).decode("utf-8")
    except UnicodeDecodeError as error:
        why = f"is not text in UTF-8: byte {error.start} is not"
        raise SpecError(None, why, f"give {what}", origin=shown_path(path)) from None


def unzipped(data: bytes, origin: str, *, most: int, shorter: str) -> bytes:
    """Return what a file of gzip holds, or another file as it is.

    Parameters
    ----------
    most
        Bytes that may be in it; no more are unpacked.
    shorter
        What is to be done if there are more.

    Raises
    ------
    SpecError
        If there are more, or the file is not whole.
    """
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as file:
            plain = file.read(most + 1)
    except (OSError, EOFError, zlib.error):
        raise SpecError(None, "is no whole gzip file", "compress it again", origin) from None
    if len(plain) > most:
        why = f"is larger than {most >> 20} MiB when it is unpacked"
        raise SpecError(None, why, shorter, origin)
    return plain


def parse_json(raw: bytes, origin: str, right: str) -> Any:
    """Return the values of JSON in whose mappings each key stands once.

    Parameters
    ----------
    right
        What is to be done with what is no JSON.

    Raises
    ------
    SpecError
        If it is none, its values would take too much memory, or a key is there twice.
    """
    check_json(raw, origin)
    try:
        return json.loads(raw, object_pairs_hook=_mapping)
    except SpecError as error:
        raise error.but(origin=origin) from None
    except (ValueError, RecursionError):
        raise SpecError(None, "is no JSON", right, origin) from None


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(
            name for name, count in Counter(name for name, _ in pairs).items() if count > 1
        )
        raise SpecError(None, f"key {shown(twice)} is there twice", "write each once")
    return found


def check_json(raw: bytes, origin: str | None) -> None:
    """Refuse JSON whose values would take too much memory, before any is made.

    A file of a few megabytes may be unpacked to one of many, whose values take ten times as much.

    Raises
    ------
    SpecError
        With what they would take, and what they may.
    """
    size = 2 * len(raw) + sum(cost * raw.count(mark) for mark, cost in _COSTS)
    check_fits(size, "what is in it", most=_VALUES, origin=origin)
