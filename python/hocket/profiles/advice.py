"""Which measurements on a machine narrow predictions most, and by how much.

Constants of a machine lie around those of its classes: their logarithms are normal, with a share of the
widths of the law's priors. A measurement changes this by Bayes' rule, with the law linear in the logarithms
of its constants and of times. Of all measurements that could be made next, the one is advised after which
the mean deviation of all predictions is least; then the next.

Source: Chaloner and Verdinelli, Bayesian experimental design: a review, 1995 (linear models, A-optimality).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hocket._results import Column, Result, said
from hocket.fitting.solve import NOISE
from hocket.profiles.cost_model import CONSTANTS, cells_of, times
from hocket.profiles.expected import BELOW, band_of
from hocket.profiles.hardware import Hardware
from hocket.profiles.measurement import Measurement
from hocket.profiles.profile import Profile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SPREAD = 0.5
"""How far machines of a class lie apart, of the widths of the law's priors."""
LAUNCH_SPREAD = 0.45
"""How far launches of one kind of program lie apart, as the deviation of a logarithm."""
_KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
_SIZES = tuple(1 << power for power in range(13, 31, 2))
_STEP = 1e-4


@dataclass(frozen=True)
class Advised(Result):
    """A measurement to make.

    Attributes
    ----------
    kind, npus, nodes, size
        Of the collective; its size as nccl-tests states it [bytes].
    small_share, large_share
        What is left of the mean deviation of predictions below 1 MiB, and from there, as shares of what it
        is where nothing is measured.
    """

    kind: str = field(metadata=said("collective", column=Column("collective", leaves=0)))
    npus: int
    nodes: int
    size: int = field(metadata=said("size_bytes", column=Column("size", is_given=True)))
    small_share: float = field(metadata=said(column=Column("left below 1 MiB")))
    large_share: float = field(metadata=said(column=Column("left from 1 MiB")))


def constants_to_fit(nodes: int) -> list[str]:
    """Return the constants that times on so many nodes depend on."""
    return [name for name, each in CONSTANTS.items() if nodes > 1 or each.of != "fabric"]


def advise(
    profile: Profile,
    hardware: Hardware,
    npus: int,
    nodes: int,
    known: Sequence[Measurement] = (),
    *,
    count: int = 5,
) -> list[Advised]:
    """Return the measurements that narrow predictions of a machine most.

    Parameters
    ----------
    profile
        Of its classes.
    hardware
        As the profile has it.
    npus, nodes
        Of the whole machine: of their times predictions are to be narrowed.
    known
        What is measured already; times do not matter.
    count
        Of measurements, each of a usual collective among all NPUs, of 8 KiB to 1 GiB.
    """
    wanted = [Measurement(kind, npus, nodes, size, 1.0) for kind in _KINDS for size in _SIZES]
    names = constants_to_fit(nodes)
    width = [CONSTANTS[name].width * SPREAD for name in names]
    covariance: Floats = np.diag(np.square([*width, LAUNCH_SPREAD]))
    slopes = _slopes(profile, hardware, [*wanted, *known], names)
    of_wanted, of_known = slopes[: len(wanted)], slopes[len(wanted) :]
    is_small = np.array([band_of(row.size) == BELOW for row in wanted])
    before = _deviations(covariance, of_wanted, is_small)
    for slope in of_known:
        covariance = _after(covariance, slope)
    measured = {(row.kind, row.npus, row.nodes, row.size) for row in known}
    open_ = [
        at for at, row in enumerate(wanted) if (row.kind, npus, nodes, row.size) not in measured
    ]
    steps = []
    for _ in range(min(count, len(open_))):
        best = open_.pop(_best(covariance, of_wanted, of_wanted[open_]))
        covariance = _after(covariance, of_wanted[best])
        left = _deviations(covariance, of_wanted, is_small) / before
        row = wanted[best]
        steps.append(Advised(row.kind, row.npus, row.nodes, row.size, *map(float, left)))
    return steps


def _slopes(
    profile: Profile, hardware: Hardware, rows: Sequence[Measurement], names: Sequence[str]
) -> Floats:
    """Return how logarithms of times change with those of constants and launch, (rows, names + 1)."""
    cells, values = cells_of(rows, hardware), profile.values
    launch = np.array([profile.launching_all(row.npus, row.nodes) for row in rows])
    more = math.exp(_STEP)
    base = np.log(times(cells, values, launch))
    changed = [times(cells, {**values, name: values[name] * more}, launch) for name in names]
    changed.append(times(cells, values, launch * more))
    found: Floats = (np.log(np.array(changed)) - base).T / _STEP
    return found


def _after(covariance: Floats, slope: Floats) -> Floats:
    """Return what a measurement leaves of a covariance."""
    gain = covariance @ slope
    left: Floats = covariance - np.outer(gain, gain) / (slope @ gain + NOISE**2)
    return left


def _best(covariance: Floats, wanted: Floats, tried: Floats) -> int:
    """Return after which measurement the mean deviation of all that is wanted is least."""
    variance = np.einsum("ij,jk,ik->i", wanted, covariance, wanted)
    own = np.einsum("ij,jk,ik->i", tried, covariance, tried) + NOISE**2
    shared = wanted @ covariance @ tried.T
    left = np.maximum(variance[:, None] - shared**2 / own, 0.0)
    return int(np.sqrt(left).mean(axis=0).argmin())


def _deviations(covariance: Floats, wanted: Floats, is_small: NDArray[np.bool_]) -> Floats:
    """Return the mean deviation of small sizes and of the others, (2,)."""
    variance = np.einsum("ij,jk,ik->i", wanted, covariance, wanted)
    deviation = np.sqrt(np.maximum(variance, 0.0))
    return np.array([deviation[is_small].mean(), deviation[~is_small].mean()])
