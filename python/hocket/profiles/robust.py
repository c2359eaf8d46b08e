"""What fits of constants share: which sizes are kept back, how residuals count, how sure a constant is."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["EVERY", "Fitted", "bent", "covariance_of", "fitted", "kept_back"]

EVERY = 5
"""Of so many sizes of a sweep one is kept back."""

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


def kept_back(sizes: Sequence[int], sweeps: Sequence[Hashable]) -> NDArray[np.bool_]:
    """Give which rows are kept back: of each sweep the third size and every fifth after it."""
    found: dict[Hashable, set[int]] = {}
    for sweep, size in zip(sweeps, sizes, strict=True):
        found.setdefault(sweep, set()).add(size)
    back = {sweep: set(sorted(each)[2::EVERY]) for sweep, each in found.items()}
    return np.array([size in back[sweep] for sweep, size in zip(sweeps, sizes, strict=True)], bool)


def bent(off: Floats) -> Floats:
    """Give residuals of logarithms as they count: those beyond a tenth by their size, not by their square.

    Source: Huber, Robust estimation of a location parameter, 1964.
    """
    size = np.abs(off)
    far = np.sign(off) * np.sqrt(np.maximum(2 * _LINEAR_FROM * size - _LINEAR_FROM**2, 0.0))
    counted: Floats = np.where(size <= _LINEAR_FROM, off, far) / _NOISE
    return counted


def covariance_of(slopes: Floats) -> Floats:
    """Give how logarithms of constants vary together, from the slopes of residuals at the best point."""
    covariance: Floats = np.linalg.pinv(slopes.T @ slopes)
    return covariance


def fitted(point: Floats, covariance: Floats, widths: Floats) -> list[Fitted]:
    """Give constants with their intervals, from their logarithms and the widths of their priors."""
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return [
        Fitted(
            float(np.exp(at)),
            float(np.exp(at - _90 * off)),
            float(np.exp(at + _90 * off)),
            bool(off < _SEEN * width),
        )
        for at, off, width in zip(point, deviation[: len(point)], widths, strict=True)
    ]
