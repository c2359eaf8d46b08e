"""What fits of constants to measured times share: robust residuals, and constants with intervals.

Source: Huber, Robust estimation of a location parameter, 1964.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Fitted", "pull_of", "spread_of_point"]

_LINEAR_FROM = 0.1
"""Residual from which on it counts by its size."""
_NOISE = 0.05
"""Standard deviation of a measurement's logarithm."""
_SEEN = 0.7
"""A constant is told by the data where its deviation is less than this share of its prior's."""
_90 = 1.645


@dataclass(frozen=True)
class Fitted:
    """A constant that was fitted.

    Attributes
    ----------
    value, low, high
        In the unit of the constant; 90 % lie between `low` and `high`.
    is_seen
        Whether the data tells it; otherwise it is its prior.
    """

    value: float
    low: float
    high: float
    is_seen: bool

    @classmethod
    def of(cls, logarithm: float, deviation: float, width: float) -> Fitted:
        """Make it of its logarithm, the deviation of that, and the deviation that its prior has."""
        low, high = logarithm - _90 * deviation, logarithm + _90 * deviation
        is_seen = deviation < _SEEN * width
        return cls(math.exp(logarithm), math.exp(low), math.exp(high), is_seen)


def pull_of(off: Floats) -> Floats:
    """Give residuals whose squares are Huber's loss of logarithms of predicted over measured."""
    size = np.abs(off)
    bent = np.sign(off) * np.sqrt(np.maximum(2 * _LINEAR_FROM * size - _LINEAR_FROM**2, 0.0))
    pulled: Floats = np.where(size <= _LINEAR_FROM, off, bent) / _NOISE
    return pulled


def spread_of_point(slopes: Floats) -> tuple[Floats, Floats]:
    """Give covariance and deviations of constants, from the slopes of residuals by them."""
    covariance: Floats = np.linalg.pinv(slopes.T @ slopes)
    deviation: Floats = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return covariance, deviation
