"""Fits constants: which sizes are kept back, how residuals count, how sure a constant is."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hocket.errors import SpecError
from hocket.fitting.constants import Fitted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_EVERY = 5
"""Of so many sizes of a sweep one is kept back."""

_LINEAR_FROM = 0.1
"""Residual from which on it counts by its size."""
_NOISE = 0.05
"""Standard deviation of a measurement's logarithm."""
_SEEN = 0.7
"""A constant is told by the data where its deviation is less than this share of its prior's."""
_90 = 1.645


def kept_back(sizes: Sequence[int], sweeps: Sequence[Hashable]) -> NDArray[np.bool_]:
    """Return which rows are kept back: of each sweep the third size and every fifth after it."""
    found: dict[Hashable, set[int]] = {}
    for sweep, size in zip(sweeps, sizes, strict=True):
        found.setdefault(sweep, set()).add(size)
    back = {sweep: set(sorted(each)[2::_EVERY]) for sweep, each in found.items()}
    return np.array([size in back[sweep] for sweep, size in zip(sweeps, sizes, strict=True)], bool)


def bent(off: Floats) -> Floats:
    """Return weighted residuals of logarithms: those above a tenth count by size, not by square.

    Source: Huber, Robust estimation of a location parameter, 1964.
    """
    size = np.abs(off)
    far = np.sign(off) * np.sqrt(np.maximum(2 * _LINEAR_FROM * size - _LINEAR_FROM**2, 0.0))
    counted: Floats = np.where(size <= _LINEAR_FROM, off, far) / _NOISE
    return counted


@dataclass(frozen=True)
class Solved:
    """The best constants.

    Attributes
    ----------
    point
        Their logarithms, (constants,).
    covariance
        How these vary together, (constants, constants).
    constants
        The constants with their intervals.
    """

    point: Floats
    covariance: Floats
    constants: tuple[Fitted, ...]


def solve(
    off: Callable[[Floats], Floats],
    prior: Floats,
    width: Floats,
    *,
    steps: int,
    start: Floats | None = None,
    slope: float | None = None,
) -> Solved:
    """Find the constants with which a law is nearest to what was measured, each with a log-normal prior.

    Parameters
    ----------
    off
        Gives the logarithms of predicted over measured, for logarithms of constants.
    prior, width
        Mean and standard deviation of the constants' logarithms where nothing is known, (constants,).
    steps
        After so many evaluations it ends.
    start
        Where to begin; at the prior, if it is not given.
    slope
        Step of a logarithm with which slopes are taken, where times are not smooth.

    Raises
    ------
    SpecError
        If SciPy is not installed.
    """
    try:
        from scipy.optimize import least_squares
    except ImportError:
        why = "constants are fitted by SciPy, which is not installed"
        raise SpecError(None, why, "pip install 'hocket[fit]'") from None

    def residuals(point: Floats) -> Floats:
        return np.concatenate([bent(off(point)), (point - prior) / width])

    found = least_squares(
        residuals,
        prior if start is None else start,
        method="trf",
        x_scale="jac",
        diff_step=None if slope is None else [slope] * len(prior),
        max_nfev=steps,
    )
    slopes = np.asarray(found.jac)
    covariance: Floats = np.linalg.pinv(slopes.T @ slopes)
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    constants = (
        Fitted(
            float(np.exp(at)),
            float(np.exp(at - _90 * far)),
            float(np.exp(at + _90 * far)),
            bool(far < _SEEN * wide),
        )
        for at, far, wide in zip(found.x, deviation, width, strict=True)
    )
    return Solved(np.asarray(found.x), covariance, tuple(constants))
