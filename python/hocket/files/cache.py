"""Small answers that took long to find, kept in the user's cache folder: an entry a file, the oldest go.

Nothing here is an error: what cannot be read or written is as if it had never been kept.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hocket.errors import SpecError
from hocket.files.atomic import write_text

OFF = "off"
"""What ``HOCKET_CACHE`` says where nothing is to be kept."""
MOST = 1000
"""Entries of a shelf; when there are more, the tenth that was not used for longest goes."""
_MAX_FILE = 1 << 20


def cache_folder() -> Path | None:
    """Return the folder: ``$HOCKET_CACHE``, or ``hocket`` in the user's cache folder.

    Returns
    -------
    Path or None
        ``None`` where ``HOCKET_CACHE`` is ``off``, or nobody knows the user's home.
    """
    own = os.environ.get("HOCKET_CACHE")
    if own:
        return None if own == OFF else Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "hocket"
    except RuntimeError:
        return None


def recall(shelf: str, key: str) -> dict[str, Any] | None:
    """Return what was kept under a key and count a use, or return ``None`` if there is nothing."""
    folder = cache_folder()
    if folder is None:
        return None
    path = folder / shelf / f"{key}.json"
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_FILE)
        found = json.loads(text)
        os.utime(path)
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def keep(shelf: str, key: str, value: dict[str, Any]) -> None:
    """Keep values of JSON under a key, a name of a file, in place of what was there."""
    folder = cache_folder()
    if folder is None:
        return
    place = folder / shelf
    try:
        place.mkdir(parents=True, exist_ok=True)
        write_text(place / f"{key}.json", json.dumps(value))
        _prune(place)
    except (OSError, ValueError, SpecError):
        return


def _prune(place: Path) -> None:
    with os.scandir(place) as entries:
        names = [each.path for each in entries if each.name.endswith(".json")]
    if len(names) <= MOST:
        return
    by_use = sorted(names, key=lambda each: (Path(each).stat().st_mtime_ns, each))
    for name in by_use[: len(names) - MOST + MOST // 10]:
        Path(name).unlink(missing_ok=True)
