"""Several sizes of a collective, as nccl-tests takes them."""

from __future__ import annotations

from collections.abc import Iterable

from hocket._checks import is_decimal, list_of
from hocket.errors import SpecError
from hocket.units import Quantity, parse_size, shown

_MAX_COUNT = 1000


def sizes_of(sizes: Quantity | Iterable[Quantity], *, field: str = "sizes") -> list[int]:
    """Return sizes [bytes] in the order in which they are asked for, each once.

    Parameters
    ----------
    sizes
        A size or a list of sizes; text may hold several, ``"8KB,1MB"``, or a sweep, ``"8K:1G:x4"`` or
        ``"1M:8M:+1M"``.
    field
        Which argument it was, for messages.

    Raises
    ------
    SpecError
        If one is not a size, or there is none, or there are more than 1,000.
    """
    items = [sizes] if isinstance(sizes, str | int | float) else list_of(field, sizes)
    found: dict[int, None] = {}
    for item in items:
        for part in item.split(",") if isinstance(item, str) else [item]:
            if isinstance(part, str) and ":" in part:
                found.update(dict.fromkeys(_sweep(part, field)))
            else:
                found[parse_size(part, field=field)] = None
    if not found:
        raise SpecError(field, "there is none", "give one or more, as 8K:1G:x4")
    _check_many(len(found), field)
    return list(found)


def _sweep(text: str, field: str) -> list[int]:
    """Read ``begin:end:xfactor`` or ``begin:end:+step``; as nccl-tests' -b, -e, -f and -i."""
    right = "write begin:end:xfactor or begin:end:+step, as 8K:1G:x4"
    parts = [part.strip() for part in text.split(":")]
    if len(parts) not in (2, 3):
        raise SpecError(field, f"{shown(text)} is not a sweep", right)
    begin, end = (parse_size(part, field=field) for part in parts[:2])
    if end < begin:
        raise SpecError(field, f"{shown(text)} ends before it begins", right)
    step = parts[2] if len(parts) == 3 else "x2"
    factor = int(step[1:]) if step[:1] in "x*" and is_decimal(step[1:], 8) else 0
    if step[:1] == "+":
        by = parse_size(step[1:], field=field)
        _check_many((end - begin) // by + 1, field)
        return list(range(begin, end + 1, by))
    if factor < 2:
        raise SpecError(field, f"{shown(step)} is neither a factor from 2 nor a step", right)
    found = [begin]
    while found[-1] * factor <= end:
        found.append(found[-1] * factor)
    return found


def _check_many(count: int, field: str) -> None:
    if count > _MAX_COUNT:
        raise SpecError(field, f"these are {count:,} sizes", f"take at most {_MAX_COUNT:,}")
