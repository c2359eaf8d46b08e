"""Published times of known schedules of thread blocks, predicted by what was not fitted.

Two questions: *schedules*, with constants fitted to four fifths of the sizes, the sizes that were kept
back; *other schedules*, with constants fitted to all sizes of rings of one channel and one instance and
of eight and two, and of all pairs with one instance and with eight, all other numbers of channels and
instances. With the latter, how many pairs of schedules that differ by more than a tenth are in the right
order at each size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hocket.fitting.constants import Fitted, values_of
from hocket.fitting.solve import kept_back
from hocket.profiles.block_constants import BLOCK_CONSTANTS
from hocket.profiles.measurement import Measurement
from hocket_studies.machine_schedules_fit import fit_blocks, known_schedule, schedule_times

__all__ = ["NamedTime", "Order", "ScheduleStudy", "order_of", "study_schedules"]

NamedTime: TypeAlias = tuple[str, Measurement]
"""A measurement, and the name of its set."""

_FITTED = ("msccl_ring_1x1", "msccl_ring_8x2", "msccl_allpair_1", "msccl_allpair_8")
_APART = 1.1
"""Of two times, from which on their order must be right."""


@dataclass(frozen=True)
class Order:
    """The pairs of schedules that differ by more than a tenth, and those of them in the right order."""

    pairs: int
    right: int


@dataclass(frozen=True)
class ScheduleStudy:
    """The predictions of what was not fitted.

    Attributes
    ----------
    rows
        All times of known schedules, each with the name of its set.
    held
        Those of sizes that were kept back, and what is predicted for them [s].
    other
        Those of schedules that were not fitted, with the same.
    order
        Of all pairs of schedules of a collective, by constants fitted to few schedules.
    fit
        Constants fitted to all but the sizes that were kept back.
    """

    rows: tuple[NamedTime, ...]
    held: tuple[tuple[NamedTime, float], ...]
    other: tuple[tuple[NamedTime, float], ...]
    order: Order
    fit: dict[str, Fitted]


def study_schedules(rows: Sequence[NamedTime]) -> ScheduleStudy | None:
    """Predict the rows whose schedule is known; nothing where there are none.

    Raises
    ------
    SpecError
        If some protocol was not measured.
    """
    known = tuple(each for each in rows if known_schedule(each[1]) is not None)
    if not known:
        return None
    times = schedule_times([row for _, row in known])
    held = kept_back([row.size for _, row in known], [row.kind for _, row in known])
    is_other = np.array([row.algorithm not in _FITTED for _, row in known])
    fit = fit_blocks(times.only(~held))
    few = fit_blocks(times.only(~is_other))
    by_fifth = (times.predict(values_of(BLOCK_CONSTANTS, fit)) * 1e-6).tolist()
    by_few = (times.predict(values_of(BLOCK_CONSTANTS, few)) * 1e-6).tolist()
    return ScheduleStudy(
        known,
        tuple((known[at], by_fifth[at]) for at in np.flatnonzero(held).tolist()),
        tuple((known[at], by_few[at]) for at in np.flatnonzero(is_other).tolist()),
        order_of([(row, time) for (_, row), time in zip(known, by_few, strict=True)]),
        fit,
    )


def order_of(times: Sequence[tuple[Measurement, float]]) -> Order:
    """Compare all pairs of the same collective and size: measured times, and those predicted."""
    groups: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for row, time in times:
        groups.setdefault((row.kind, row.size), []).append((row.seconds, time))
    pairs = right = 0
    for group in groups.values():
        for at, (measured, found) in enumerate(group):
            for other_measured, other_found in group[:at]:
                low, high = sorted((measured, other_measured))
                if high > _APART * low:
                    pairs += 1
                    is_less = measured < other_measured
                    right += (found < other_found) == is_less and found != other_found
    return Order(pairs, right)
