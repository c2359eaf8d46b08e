"""Which plans are too large to compare, as soon as the number of NPUs is known."""

from __future__ import annotations

from collections.abc import Iterable

from hocket import _core
from hocket._memory import memory_limit
from hocket.errors import InfeasibleError, SpecError
from hocket.plans.sizes import Sides, check_plan

_MOST_COMPARED = 32_000_000
"""Transfers of what is worth comparing where nobody asked for it by name: more take minutes."""
_BYTES = 100
"""That a transfer takes."""


def check_any(
    kind: str, npus: int, sides: Sides, names: Iterable[str] | None, chunks: int | None
) -> None:
    """Refuse where every algorithm makes too large a plan; see :func:`too_large`.

    Raises
    ------
    InfeasibleError
        With how large the plan of the first is that does this kind.
    """
    able = [each.name for each in _core.algorithms() if kind in each.kinds]
    wanted = able if names is None else list(names)
    limit = memory_limit()
    reasons = [
        too_large(kind, npus, sides, each, chunks, names is not None, limit) for each in wanted
    ]
    if reasons and None not in reasons:
        raise InfeasibleError(None, str(reasons[0]))


def too_large(
    kind: str,
    npus: int,
    sides: Sides,
    name: str,
    chunks: int | None,
    is_named: bool,
    limit: int,
) -> str | None:
    """Say why an algorithm's plan is too large to compare; ``None`` where it is not.

    What nobody asked for by name may have 32 million transfers.
    """
    try:
        check_plan(kind, npus, sides, name, chunks, limit)
    except SpecError as error:
        return str(error)
    if is_named:
        return None
    try:
        check_plan(kind, npus, sides, name, chunks, min(limit, _MOST_COMPARED * _BYTES))
    except SpecError:
        return (
            f"its plan has more than {_MOST_COMPARED:,} transfers, which takes minutes; "
            f"name it with --algorithm to have it"
        )
    return None
