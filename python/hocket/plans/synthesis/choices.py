"""The synthesizers by name, and what they can be told."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hocket import _core
from hocket._core import synthesis as core
from hocket.errors import SpecError

SYNTHESIZERS = {
    "greedy": "chunks matched to links over time, for any topology: no two on a link at once",
    "exact": "the shortest plan in slots, proved by a solver, or the best in time with its gap",
    "blind": "every chunk by the shortest way as if alone on the network: a baseline",
    "auto": "the best plan that any method finds within the time limit",
}
"""What each synthesizer does, in a line."""

ROUNDING = 1e-5
"""What is longer than the least by no more than that is as short: chunks may differ by a byte."""

_LATENCIES = ("overlapped", "occupying")
_TRIALS = 64


@dataclass(frozen=True)
class SynthesisOptions:
    """How a plan is synthesized.

    Attributes
    ----------
    seed
        Of all random choices.
    unwind
        How switches are unwound into links: a degree (``"1"``, ``"2"``, ...), ``"ring"`` (both ways),
        ``"max"`` (all to all); one for each dimension of a product, separated by commas; ``None`` tries
        several and keeps the best.
    latency
        ``"overlapped"``, or ``"occupying"`` where a link is held during its latency, as TACOS counts.
    trials
        At most so many random trials.
    factor
        For ``exact``: how long a slot is [ps], TACOS's discretisation factor; ``None`` chooses one.
    cluster
        For ``exact``: plan short stretches of so many slots one after the other; ``None`` plans all at
        once.
    time_limit
        Seconds; ``None`` for no limit (``auto``: ten).
    """

    seed: int = 0
    unwind: str | None = None
    latency: str = "overlapped"
    trials: int = _TRIALS
    factor: int | None = None
    cluster: int | None = None
    time_limit: float | None = None

    def __post_init__(self) -> None:
        if type(self.seed) is not int or not 0 <= self.seed < 1 << 64:
            raise SpecError(f"seed: {self.seed!r} is not a whole number from 0 to 2^64 - 1")
        if type(self.trials) is not int or not 1 <= self.trials < 1 << 32:
            raise SpecError(f"trials: {self.trials!r} is not a whole number of at least 1")
        for name in ("cluster", "factor"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not 1 <= value < 1 << 63):
                raise SpecError(f"{name}: {value!r} is not a whole number of at least 1")
        if self.unwind is not None:
            self._check_unwind(self.unwind)
        if self.latency not in _LATENCIES:
            raise SpecError(f"latency: {self.latency!r} is not one of {', '.join(_LATENCIES)}")
        if self.time_limit is not None and not isinstance(self.time_limit, (int, float)):
            raise SpecError(f"time_limit: {self.time_limit!r} is not a number of seconds")
        if self.time_limit is not None and not self.time_limit > 0:
            raise SpecError("time_limit: 0 leaves no time; give more, as 10s")

    @staticmethod
    def _check_unwind(given: object) -> None:
        parts = [part.strip() for part in given.split(",")] if isinstance(given, str) else []
        known = ("ring", "max", "auto") if len(parts) == 1 else ("ring", "max")
        for part in parts or [""]:
            if part not in known and not re.fullmatch("0*[1-9][0-9]{0,8}", part, re.ASCII):
                raise SpecError(
                    f"unwind: {given!r} is none; give a degree (1, 2, ...), ring (both ways) or max "
                    "(all to all), or one for each dimension, separated by commas"
                )

    @property
    def names_unwinding(self) -> bool:
        """Whether an unwinding is named; else several are tried."""
        return self.unwind is not None and self.unwind != "auto"

    def unwindings(self, topology: _core.Topology) -> list[list[str]]:
        """Give the unwindings to try: each one entry for all switches, or one for each dimension.

        Raises
        ------
        SpecError
            Where their number fits neither.
        """
        if self.unwind is None or not self.names_unwinding:
            return core.unwindings(topology)
        given = [part.strip() for part in self.unwind.split(",")]
        wanted = len(topology.dimensions)
        if len(given) not in (1, wanted):
            plural = "" if wanted == 1 else "s"
            raise SpecError(
                f"unwind: {self.unwind!r} has {len(given)} entries, and {topology.name} {wanted} "
                f"dimension{plural}; give one entry, or one for each dimension"
            )
        return [given]
