"""Which plans are too large to compare, as soon as the number of NPUs is known."""

from __future__ import annotations

from collections.abc import Iterable

from hocket import _core
from hocket._memory import memory_limit
from hocket.errors import InfeasibleError, SpecError
from hocket.plans.sizes import Sides, check_plan
from hocket.plans.synthesis import PlanOptions

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
    reasons = []
    for each in wanted:
        reason = _too_large((kind, npus, sides, each, chunks), names is not None, memory_limit())
        if reason is None:
            return
        reasons.append(reason)
    for reason in reasons[:1]:
        raise InfeasibleError(reason.field, reason.why, reason.remedy)


def too_large(
    collective: _core.Collective,
    topology: _core.Topology,
    name: str,
    options: PlanOptions,
    *,
    is_named: bool,
) -> SpecError | None:
    """Say why an algorithm's plan is too large to compare; ``None`` where it is not.

    What nobody asked for by name may have 32 million transfers.
    """
    chunks = options.slices(collective.size)
    plan = (collective.kind, len(collective.npus), topology.dimensions, name, chunks)
    return _too_large(plan, is_named, options.limit_bytes)


def _too_large(
    plan: tuple[str, int, Sides, str, int | None], is_named: bool, limit: int
) -> SpecError | None:
    try:
        check_plan(*plan, limit)
    except SpecError as error:
        return error
    if is_named:
        return None
    try:
        check_plan(*plan, min(limit, _MOST_COMPARED * _BYTES))
    except SpecError:
        return SpecError(
            None,
            f"its plan has more than {_MOST_COMPARED:,} transfers, which takes minutes",
            "name it with --algorithm to have it",
        )
    return None
