"""Files as bytes, of which no more is read than a reader can use."""

from __future__ import annotations

from pathlib import Path

from hocket.errors import SpecError
from hocket.files.complaint import shown_path

LARGEST = 64 << 20
"""Bytes of a file at most."""


def read_bytes(path: Path, what: str, *, most: int = LARGEST) -> bytes:
    """Read a file whole.

    Parameters
    ----------
    what
        What it should be, for messages.
    most
        Bytes that it may have; one that has more is not read.

    Raises
    ------
    SpecError
        If it is larger, or cannot be read.
    """
    name = shown_path(path)
    try:
        with path.open("rb") as file:  # what has no size, such as a pipe, may have no end
            raw = file.read(most + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SpecError(None, f"cannot be read: {reason}", f"give {what}", origin=name) from None
    if len(raw) > most:
        why = f"is larger than {most >> 20} MiB"
        raise SpecError(None, why, f"give {what}", origin=name)
    return raw
