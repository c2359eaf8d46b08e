"""Fits the constants of thread blocks to times of schedules that are known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hocket.errors import SpecError
from hocket.fitting.constants import Fitted
from hocket.fitting.solve import solve
from hocket.profiles.block_constants import BLOCK_CONSTANTS
from hocket.profiles.cost_model import PROTOCOLS
from hocket.profiles.measurement import Measurement
from hocket_studies.block_schedules import (
    BlockSchedule,
    pairs_all_gather,
    pairs_all_reduce,
    ring_all_gather,
)
from hocket_studies.block_times import block_times

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["ScheduleTimes", "fit_blocks", "known_schedule", "schedule_times"]

_RING = re.compile(r"msccl_ring_([1-9]\d?)x([1-9]\d?)")
_PAIRS = re.compile(r"msccl_allpair_([1-9]\d?)")
_STEP = 1e-3
"""Of a logarithm, with which slopes are taken: events make times smooth only down to rounding."""
_MOST_STEPS = 30


def known_schedule(row: Measurement) -> BlockSchedule | None:
    """Return the schedule that a row names, as ``msccl_ring_2x1`` (channels, instances), if it ran there.

    Where the data does not divide into whole elements (of 4 bytes), the library runs another algorithm.
    """
    made: BlockSchedule | None = None
    ring, pairs = _RING.fullmatch(row.algorithm), _PAIRS.fullmatch(row.algorithm)
    if ring is not None and row.kind == "all-gather":
        made = ring_all_gather(row.npus, int(ring[1]), int(ring[2]))
    elif pairs is not None and row.kind == "all-gather":
        made = pairs_all_gather(row.npus, int(pairs[1]))
    elif pairs is not None and row.kind == "all-reduce":
        made = pairs_all_reduce(row.npus, int(pairs[1]))
    is_known = made is not None and row.protocol in PROTOCOLS and made.divides(row.size)
    return made if is_known else None


@dataclass(frozen=True)
class ScheduleTimes:
    """Measured times of known schedules, those of one schedule and protocol together.

    Attributes
    ----------
    rows
        All measurements.
    runs
        Of each schedule with its protocol, which rows those are.
    """

    rows: tuple[Measurement, ...]
    runs: tuple[tuple[BlockSchedule, str, tuple[int, ...]], ...]

    def predict(self, values: Mapping[str, float]) -> Floats:
        """Return what every row takes by constants [us]."""
        times = np.zeros(len(self.rows))
        for schedule, protocol, at in self.runs:
            sizes = [self.rows[each].size for each in at]
            times[list(at)] = block_times(schedule, sizes, protocol, values)
        return times

    def only(self, which: NDArray[np.bool_]) -> ScheduleTimes:
        """Return some of the rows."""
        return schedule_times([row for row, is_in in zip(self.rows, which, strict=True) if is_in])


def schedule_times(rows: Sequence[Measurement]) -> ScheduleTimes:
    """Find the rows whose schedule is known."""
    made: dict[tuple[str, str, str, int], tuple[BlockSchedule, list[int]]] = {}
    kept: list[Measurement] = []
    for row in rows:
        schedule = known_schedule(row)
        if schedule is None:
            continue
        key = (row.kind, row.algorithm, row.protocol, row.npus)
        made.setdefault(key, (schedule, []))[1].append(len(kept))
        kept.append(row)
    runs = tuple((schedule, key[2], tuple(at)) for key, (schedule, at) in made.items())
    return ScheduleTimes(tuple(kept), runs)


def fit_blocks(times: ScheduleTimes) -> dict[str, Fitted]:
    """Fit the constants to all of these times.

    Raises
    ------
    SpecError
        If a protocol was not measured: its constants would be priors. If SciPy is not installed.
    """
    missing = [each for each in PROTOCOLS if all(run[1] != each for run in times.runs)]
    if missing:
        why = f"no schedule of {', '.join(missing)} was measured"
        raise SpecError(None, why, "give times of a schedule with each protocol")
    measured = np.array([row.seconds for row in times.rows]) * 1e6

    def off(point: Floats) -> Floats:
        values = dict(zip(BLOCK_CONSTANTS, np.exp(point).tolist(), strict=True))
        return np.log(times.predict(values) / measured)

    prior = np.log([each.prior for each in BLOCK_CONSTANTS.values()])
    width = np.array([each.width for each in BLOCK_CONSTANTS.values()])
    found = solve(off, prior, width, steps=_MOST_STEPS, slope=_STEP)
    return dict(zip(BLOCK_CONSTANTS, found.constants, strict=True))
