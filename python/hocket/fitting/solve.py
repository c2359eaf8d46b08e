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
NOISE = 0.05
"""Standard deviation of a measurement's logarithm."""


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
    counted: Floats = np.where(size <= _LINEAR_FROM, off, far) / NOISE
    return counted


def _steepness(off: Floats) -> Floats:
    """Return how :func:`bent` changes with residuals."""
    size = np.abs(off)
    far = np.sqrt(np.maximum(2 * _LINEAR_FROM * size - _LINEAR_FROM**2, _LINEAR_FROM**2))
    steep: Floats = np.where(size <= _LINEAR_FROM, 1.0, _LINEAR_FROM / far) / NOISE
    return steep


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
    slopes: Callable[[Floats], Floats] | None = None,
    weights: Floats | None = None,
    enough: float = 1e-8,
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
    slopes
        Gives how `off` changes with the logarithms of constants, (rows, constants), where that costs less
        than to evaluate `off` once for each.
    weights
        What each residual counts, (rows,); 1 each, if it is not given.
    enough
        It ends where a step changes less than this share of the sum of squares, or of the constants.

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

    counted: Floats | float = 1.0 if weights is None else weights

    def residuals(point: Floats) -> Floats:
        return np.concatenate([bent(off(point)) * counted, (point - prior) / width])

    def steep(point: Floats) -> Floats:
        assert slopes is not None
        rows = slopes(point) * (_steepness(off(point)) * counted)[:, None]
        return np.vstack([rows, np.diag(1 / width)])

    found = least_squares(
        residuals,
        prior if start is None else start,
        method="trf",
        x_scale="jac" if slopes is None else width,
        jac="2-point" if slopes is None else steep,
        diff_step=None if slope is None else [slope] * len(prior),
        max_nfev=steps,
        ftol=enough,
        xtol=enough,
    )
    jacobian = np.asarray(found.jac)
    covariance: Floats = np.linalg.pinv(jacobian.T @ jacobian)
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    constants = (
        Fitted.between(float(at), float(far), float(wide))
        for at, far, wide in zip(found.x, deviation, width, strict=True)
    )
    return Solved(np.asarray(found.x), covariance, tuple(constants))
