"""Refusals of plans that are too large to compare, as soon as the number of NPUs is known."""

from __future__ import annotations

from collections.abc import Iterable

from hocket import _core
from hocket._memory import memory_limit
from hocket.errors import InfeasibleError, SpecError
from hocket.plans.algorithms import quick
from hocket.plans.sizes import Sides, check_plan
from hocket.plans.synthesis import PlanOptions

_MAX_COMPARED = 32_000_000
"""Transfers of what is worth comparing where nobody asked for it by name: more take minutes."""
_BYTES = 100
"""That a transfer takes."""


def check_any(
    kind: str, npus: int, sides: Sides, names: Iterable[str] | None, chunks: int | None
) -> None:
    """Refuse where every algorithm makes too large a plan; see :func:`check_large`.

    Raises
    ------
    InfeasibleError
        With how large the plan of the first is that does this kind.
    """
    wanted = quick(kind) if names is None else list(names)
    first: SpecError | None = None
    for each in wanted:
        try:
            _check((kind, npus, sides, each, chunks), names is not None, memory_limit())
        except SpecError as error:
            first = first or error
        else:
            return
    if first is not None:
        raise InfeasibleError(first.field, first.why, first.remedy)


def check_large(
    collective: _core.Collective,
    topology: _core.Topology,
    name: str,
    options: PlanOptions,
    *,
    is_named: bool,
) -> None:
    """Refuse an algorithm whose plan is too large to compare.

    What nobody asked for by name may have 32 million transfers.

    Raises
    ------
    SpecError
        With how large it is.
    """
    chunks = options.slices(collective.size)
    plan = (collective.kind, len(collective.npus), topology.dimensions, name, chunks)
    _check(plan, is_named, options.limit_bytes)


def _check(plan: tuple[str, int, Sides, str, int | None], is_named: bool, limit: int) -> None:
    check_plan(*plan, limit)
    if is_named:
        return
    try:
        check_plan(*plan, min(limit, _MAX_COMPARED * _BYTES))
    except SpecError:
        raise SpecError(
            None,
            f"its plan has more than {_MAX_COMPARED:,} transfers, which takes minutes",
            "name it with --algorithm to have it",
        ) from None
