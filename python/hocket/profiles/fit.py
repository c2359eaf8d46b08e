"""Fits the constants of the law to what was measured: robustly, from priors, with intervals.

Least squares on logarithms of constants and of times; a residual beyond a tenth counts by its size, not by
its square (Huber), and every constant has a log-normal prior. Every fifth size of a sweep is kept back, so
that the error is stated on what was not seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hocket.errors import SpecError
from hocket.fitting.constants import Fitted
from hocket.fitting.solve import kept_back, solve
from hocket.profiles.cost_model import CONSTANTS, Cells, cells_of, joined, times
from hocket.profiles.hardware import Hardware
from hocket.profiles.measurement import MeasuredSeries, Measurement

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_PER_NPU, _PER_NPU_WIDTH = 1.5, 0.6
"""Prior of what launching one NPU more takes in a process for all of them [us]."""
_LAUNCH, _LAUNCH_WIDTH = 20.0, 1.0
"""Prior of what launching takes [us]; only small sizes tell it."""
_SMALL = 64 << 10
"""Size below which launching shows [bytes]."""
_MOST_STEPS = 200
_ALIKE = 0.95
"""Correlation from which on two constants cannot be told apart."""


@dataclass(frozen=True)
class FitOptions:
    """The options of a fit.

    Attributes
    ----------
    width
        Widths of priors are multiplied by this: more than 1 lets one machine's data speak for itself.
    fewest
        Sizes below which a machine is refused.
    keep_back
        Whether every fifth size of each sweep is kept back.
    priors
        Values of constants from which to start, and to which the data is weighed; those of
        :data:`~hocket.profiles.cost_model.CONSTANTS` where they are missing.
    """

    width: float = 1.0
    fewest: int = 4
    keep_back: bool = True
    priors: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Fit:
    """Constants of a machine, and how far the law is from what was measured.

    Attributes
    ----------
    constants
        By name.
    launch
        What launching takes, by file [us]; only files with small sizes tell it.
    launch_per_npu
        What each NPU of a process adds to that [us].
    rows, held, predicted
        All measurements; which were kept back, (rows,); what the law says of each [s], (rows,).
    alike
        Pairs of constants that this data cannot tell apart.
    """

    constants: dict[str, Fitted]
    launch: dict[str, Fitted]
    launch_per_npu: float
    rows: tuple[Measurement, ...]
    held: NDArray[np.bool_]
    predicted: Floats
    alike: tuple[tuple[str, str], ...]

    @property
    def values(self) -> dict[str, float]:
        """The constants without their intervals."""
        return {name: each.value for name, each in self.constants.items()}

    @property
    def errors(self) -> Floats:
        """Predicted over measured time, less one, of each row."""
        measured: Floats = np.array([row.seconds for row in self.rows])
        off: Floats = self.predicted / measured - 1
        return off


def fit(
    sweeps: Sequence[tuple[MeasuredSeries, Hardware]],
    options: FitOptions = FitOptions(),
    few: Sequence[tuple[MeasuredSeries, Hardware]] = (),
) -> Fit:
    """Fit one set of constants to sweeps of one family of machines.

    Parameters
    ----------
    sweeps
        Measurements, each with the hardware that they were taken on.
    options
        How.
    few
        Measurements of machines of which some times alone are known; they may have any number of sizes.

    Raises
    ------
    SpecError
        If there are too few sizes to fit anything, or SciPy is not installed.
    """
    for sweep, _ in sweeps:
        sizes = {row.size for row in sweep}
        if len(sizes) < options.fewest:
            raise SpecError(
                None,
                f"has {len(sizes)} size{'' if len(sizes) == 1 else 's'}, too few to fit the law",
                f"measure {options.fewest} to 8 of them: 8 KiB, 64 KiB, 1 MiB, 8 MiB, 64 MiB and 1 GiB",
                origin=sweep.name,
            )
    return _Problem([*sweeps, *few], options).solve(options)


class _Problem:
    def __init__(
        self, sweeps: Sequence[tuple[MeasuredSeries, Hardware]], options: FitOptions
    ) -> None:
        self.rows = [row for sweep, _ in sweeps for row in sweep]
        self.cells: Cells = joined([cells_of(sweep.rows, on) for sweep, on in sweeps])
        self.measured = np.array([row.seconds for row in self.rows]) * 1e6
        self.files = [sweep.name for sweep, _ in sweeps]
        self.file = np.repeat(np.arange(len(sweeps)), [len(sweep) for sweep, _ in sweeps])
        keys = [
            (file, row.kind, row.npus, row.nodes)
            for file, row in zip(self.file.tolist(), self.rows, strict=True)
        ]
        self.held = np.zeros(len(self.rows), bool)
        if options.keep_back:
            self.held = kept_back([row.size for row in self.rows], keys)
        is_far = any(row.nodes > 1 for row in self.rows)
        self.names = [
            name for name, constant in CONSTANTS.items() if is_far or constant.of != "fabric"
        ]
        # Only where counts of NPUs differ, at sizes that launching shows in, is a cost of each to be told.
        small = {row.npus for row in self.rows if row.nodes == 1 and row.size < _SMALL}
        self.per_npu = len(small) > 1

    def unpack(self, point: Floats) -> tuple[dict[str, float], Floats]:
        count = len(self.names)
        values = dict(zip(self.names, np.exp(point[:count]).tolist(), strict=True))
        launch = np.exp(point[count : count + len(self.files)])[self.file]
        if self.per_npu:
            launch = launch + np.exp(point[-1]) * self.cells.npus
        return values, launch

    def predict(self, point: Floats) -> Floats:
        return times(self.cells, *self.unpack(point))

    def off(self, point: Floats) -> Floats:
        off: Floats = np.log(self.predict(point) / self.measured)[~self.held]
        return off

    def solve(self, options: FitOptions) -> Fit:
        known = options.priors or {}
        count, files = len(self.names), len(self.files)
        prior = [known.get(name, CONSTANTS[name].prior) for name in self.names]
        prior += [_LAUNCH] * files + [_PER_NPU] * self.per_npu
        width = [CONSTANTS[name].width * options.width for name in self.names]
        width += [_LAUNCH_WIDTH] * files + [_PER_NPU_WIDTH] * self.per_npu
        start = np.log(prior)
        least = np.array([self.measured[self.file == each].min() for each in range(files)])
        start[count : count + files] = np.minimum(
            np.log(least * 0.9), np.log(_LAUNCH) + 2 * _LAUNCH_WIDTH
        )
        found = solve(self.off, np.log(prior), np.array(width), steps=_MOST_STEPS, start=start)
        constants = dict(zip(self.names, found.constants, strict=False))
        return Fit(
            constants,
            dict(zip(self.files, found.constants[count:], strict=False)),
            found.constants[-1].value if self.per_npu else 0.0,
            tuple(self.rows),
            self.held,
            self.predict(found.point) * 1e-6,
            self._alike(found.covariance, constants),
        )

    def _alike(
        self, covariance: Floats, constants: Mapping[str, Fitted]
    ) -> tuple[tuple[str, str], ...]:
        deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        names = [*self.names, *(f"launch of {name}" for name in self.files)]
        told = [
            at for at, name in enumerate(names) if name not in constants or constants[name].is_seen
        ]
        pairs = []
        for place, one in enumerate(told):
            for other in told[place + 1 :]:
                scale = deviation[one] * deviation[other]
                if scale > 0 and abs(covariance[one, other]) > _ALIKE * scale:
                    pairs.append((names[one], names[other]))
        return tuple(pairs)
