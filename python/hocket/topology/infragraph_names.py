"""Names of InfraGraph with slices: ``host[0:2]``, ``cx5[0].port[1]``."""

from __future__ import annotations

import re
from collections.abc import Callable

from hocket.errors import SpecError
from hocket.units import shown

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_SLICED = re.compile(r"([A-Za-z0-9_-]+)(?:\[([0-9]*)(?:(:)([0-9]*)(?::([0-9]*))?)?\])?")
_DIGITS = 10


def named(text: str) -> bool:
    """Return whether a text can be a name: those with dots or brackets cannot be named in edges."""
    return _NAME.fullmatch(text) is not None


def sliced(text: str, count: int | None) -> tuple[str, range]:
    """Return a name and the numbers that follow it, out of so many; all without a slice.

    Without a count, only the name is of use.

    Raises
    ------
    SpecError
        If there are not so many, or it is no slice.
    """
    match = _SLICED.fullmatch(text)
    if match is None or (match[2] == "" and match[3] is None):
        if count is None:
            return text.partition("[")[0], range(0)
        raise SpecError(None, f"{shown(text)} is not a name with a slice", "write as xpu[0:2]")
    name, first, colon, last, step = match.groups()
    if count is None:
        return name, range(0)
    if max(len(each or "") for each in (first, last, step)) > _DIGITS:
        raise SpecError(None, f"{shown(text)}: there are {count}", "name those that there are")
    if first is None:
        return name, range(count)
    start = int(first or 0)
    stop = (int(last) if last else count) if colon else start + 1
    if not 0 <= start < stop <= count or step == "0":
        end = f"there are {count}, numbered from 0"
        raise SpecError(None, f"{shown(text)} names none, or more than there are", end)
    return name, range(start, stop, int(step or 1))


def endpoints(
    lookup: Callable[[str, str], tuple[str, int] | None], device: str, text: str, most: int
) -> list[str]:
    """Return the components that ``cx5[0:2].port[0]`` names within a device.

    Parameters
    ----------
    lookup
        Kind and number of a device's component.
    device
        The outermost device.
    text
        The components, from the outside in; all but the last are devices.
    most
        How many may be named.

    Raises
    ------
    SpecError
        If there are no such components.
    """
    paths, parts = [""], text.split(".")
    for depth, part in enumerate(parts):
        name, _ = sliced(part, None)
        found = lookup(device, name)
        if found is None:
            raise SpecError(None, f"device {device!r} has no component {shown(name)}", "add it")
        kind, count = found
        is_last = depth == len(parts) - 1
        if is_last and kind == "device":
            raise SpecError(None, f"{shown(text)} is a device", f"name a component of it, {text}.x")
        if not is_last and kind != "device":
            raise SpecError(None, f"{shown(name)} is not a device", "end there")
        _, numbers = sliced(part, count)
        if len(paths) * len(numbers) > most:
            raise SpecError(None, f"{shown(text)} names more than {most:,}", "name fewer")
        paths = [f"{path}{name}.{number}." for path in paths for number in numbers]
        device = name
    return [path[:-1] for path in paths]
