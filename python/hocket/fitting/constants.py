"""Constants of a law: what they are where nothing is known, and what was fitted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hocket._results import Result

_DIGITS = 4
_SEEN = 0.7
"""A constant is told by the data where its deviation is less than this share of its prior's."""
_90 = 1.645


@dataclass(frozen=True)
class Constant:
    """A constant of a law.

    Attributes
    ----------
    prior
        What it is where nothing is known.
    width
        Standard deviation of its logarithm there.
    unit
        Such as ``"us"`` or ``"GB/s"``; ``""`` for a share or a count.
    what
        What it says.
    of
        Whose it is, where that is not the machine: ``"fabric"``.
    """

    prior: float
    width: float
    unit: str
    what: str
    of: str = ""


@dataclass(frozen=True)
class Fitted(Result):
    """A constant that was fitted.

    Attributes
    ----------
    value, low, high
        In the unit of the constant; 90 % lie between `low` and `high`.
    is_seen
        Whether the data tells it; otherwise it is its prior.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    is_seen: bool = True

    @classmethod
    def between(cls, at: float, far: float, wide: float) -> Fitted:
        """Make it of the logarithm that a fit gives, with its standard deviation and that of its prior."""
        low, high = (math.exp(at + side * _90 * far) for side in (-1, 1))
        return cls(math.exp(at), low, high, far < _SEEN * wide)

    @classmethod
    def read(cls, parts: Sequence[float]) -> Fitted:
        """Read what :meth:`written` gives: a value, and the ends of its interval if data tells it."""
        value, low, high = map(float, parts if len(parts) > 1 else (parts[0], math.nan, math.nan))
        return cls(value, low, high, len(parts) > 1)

    def written(self) -> str:
        """Write it as files have it."""
        parts = (self.value, self.low, self.high) if self.is_seen else (self.value,)
        return f"[{', '.join(map(digits, parts))}]"


def digits(value: float) -> str:
    """Write a constant with as many digits as a fit tells."""
    return f"{value:.{_DIGITS}g}" if value < 10**_DIGITS else f"{value:.0f}"


def values_of(law: Mapping[str, Constant], fitted: Mapping[str, Fitted]) -> dict[str, float]:
    """Return every constant of a law; those that were not fitted are their priors."""
    return {
        name: fitted[name].value if name in fitted else each.prior for name, each in law.items()
    }
