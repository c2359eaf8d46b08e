"""Models, shipped by name: each is a workload file beside this one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hocket._checks import did_you_mean
from hocket.errors import SpecError
from hocket.units import shown

_FOLDER = Path(__file__).parent


@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.yml")))


def names() -> list[str]:
    """Names of the shipped workloads."""
    return list(_names())


def path(name: str) -> Path:
    """Return the file of a workload.

    Raises
    ------
    SpecError
        If there is no workload of that name.
    """
    if name not in _names():
        others = "`hocket workload list` shows them, or give a .yml file"
        hint = did_you_mean(name, _names(), others)
        raise SpecError(None, f"there is no workload {shown(name)}", hint)
    return _FOLDER / f"{name}.yml"


def describe(name: str) -> str:
    """Describe in one line what a workload is: the comment that its file opens with."""
    first = path(name).read_text(encoding="utf-8").partition("\n")[0]
    return first.lstrip("# ").rstrip(".")
