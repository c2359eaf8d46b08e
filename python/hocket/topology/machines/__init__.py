"""Real machines, shipped by name.

Each is a topology file beside this one: GPUs are its NPUs; NICs, CPUs and PCIe switches its switches.
Where a source gives no latency or bandwidth, the file asks for a default by medium
(:mod:`hocket.topology.defaults`), which reports show as such.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hocket.errors import SpecError

_FOLDER = Path(__file__).parent


@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.yml")))


def names() -> list[str]:
    """Names of the shipped machines."""
    return list(_names())


def known(name: str) -> bool:
    """Return whether there is a machine of that name; ``-`` and ``_`` are one."""
    return name.replace("-", "_") in _names()


def path(name: str) -> Path:
    """Return the file of a machine; ``-`` and ``_`` in its name are one.

    Raises
    ------
    SpecError
        If there is no machine of that name.
    """
    if not known(name):
        raise SpecError(None, f"there is no machine {name!r}", "`hocket topology list` shows them")
    return _FOLDER / f"{name.replace('-', '_')}.yml"


def describe(name: str) -> str:
    """Describe in one line what a machine is: the comment that its file opens with."""
    first = path(name).read_text(encoding="utf-8").partition("\n")[0]
    return first.lstrip("# ").rstrip(".")
