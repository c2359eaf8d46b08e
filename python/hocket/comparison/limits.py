"""Refusals of plans that are too large to compare, as soon as the number of NPUs is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hocket import _core
from hocket._memory import memory_limit
from hocket.errors import InfeasibleError, SpecError
from hocket.plans.algorithms import BUILTIN, by_promise, quick
from hocket.plans.sizes import Sides, check_plan, expected, taken
from hocket.plans.symmetric import NAME as SYMMETRIC
from hocket.plans.synthesis import PlanOptions
from hocket.simulation.run import Run

_MAX_COMPARED = 32_000_000
"""Transfers of what is worth comparing where nobody asked for it by name: more take minutes."""
_BYTES = 100
"""That a transfer takes."""
_AT_SIZE = 512
"""NPUs from which algorithms that nobody named are tried in turn, as long as they can win."""
_MOST_IN_TURN = 12_000_000
"""Transfers of all plans that are compared in turn: a minute."""
_CLOSE = 1.03
"""Of the bound: who searches, or has a plan that takes seconds, cannot win by much any more."""
_SECONDS = 250_000
"""Transfers of such a plan: of several numbers of chunks, each is made, proved and simulated."""


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


class Turns:
    """Which algorithms are compared that nobody named: at size those that can win, likely winners first.

    Attributes
    ----------
    names
        The algorithms in the order in which they are tried.
    """

    def __init__(
        self,
        collective: _core.Collective,
        topology: _core.Topology,
        names: Sequence[str],
        options: PlanOptions,
    ) -> None:
        self.names = list(names)
        self._sizes: dict[str, list[int]] = {}
        self._spent = 0
        self._all = collective, topology, options.slices(collective.size)
        if len(collective.npus) < _AT_SIZE:
            return
        self._sizes = expected(collective, topology, names, options.slices(collective.size))
        self.names.sort(key=lambda name: sum(self._sizes.get(name, [])))
        self.names = by_promise(self.names)
        self.names.sort(key=lambda name: self._searches(name))

    def check(self, name: str, best: Run | None) -> None:
        """Refuse an algorithm that cannot win any more, or for which nothing is left.

        Raises
        ------
        SpecError
            With what it would take.
        """
        if name not in self._sizes or best is None:
            return
        sizes = self._sizes[name]
        is_close = best.time_ps <= _CLOSE * best.lower_bound.time_ps
        if is_close and (self._searches(name) or sum(sizes) > _SECONDS):
            why = f"another is within {round(100 * (_CLOSE - 1))} % of the bound"
        elif self._spent + sum(sizes) > _MOST_IN_TURN and not self._searches(name):
            why = f"others have {self._spent:,}"
        else:
            self._spent += sum(sizes)
            return
        right = f"name it to have it: -a {name}"
        raise SpecError(None, f"takes {taken(sum(sizes), max(sizes))}, and {why}", right)

    def planned(self) -> dict[str, list[int]]:
        """Return the transfers of the plans that are made, at the most, for each number of chunks."""
        if not self._sizes:
            collective, topology, chunks = self._all
            return expected(collective, topology, self.names, chunks)
        found: dict[str, list[int]] = {}
        spent = 0
        for name in self.names:
            sizes = [each for each in self._sizes.get(name, []) if each <= _MAX_COMPARED]
            if sizes and (not found or self._searches(name) or spent + sum(sizes) <= _MOST_IN_TURN):
                found[name] = sizes
                spent += sum(sizes)
        return found

    def _searches(self, name: str) -> bool:
        """Return whether an algorithm may take minutes, whatever its transfers."""
        return name in BUILTIN and BUILTIN[name].making != "rule" and name != SYMMETRIC
