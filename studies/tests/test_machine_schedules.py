"""Known schedules of thread blocks: what the study counts, and the figures of the published times."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from hocket.fitting.errors import summary_of
from hocket.profiles.block_constants import BLOCK_CONSTANTS
from hocket.profiles.measurement import Measurement
from hocket_studies.machine_schedules import NamedTime, Order, order_of, study_schedules
from hocket_studies.machines_catalogue import load_schedule_sets

MEASURED = os.environ.get("HOCKET_MEASURED")
"""A folder with the published sets that may not be shipped."""
MIB = 1 << 20


def row(size: int, seconds: float, kind: str = "all-gather") -> Measurement:
    return Measurement(kind, 8, 1, size, seconds)


def test_pairs_that_differ_by_more_than_a_tenth_are_counted() -> None:
    times = [(row(8, 1.0), 3.0), (row(8, 1.05), 2.0), (row(8, 2.0), 4.0), (row(8, 3.0), 4.0)]
    # The first two are too close; the last two are predicted to be equal, which is not right.
    assert order_of(times) == Order(5, 4)
    # Other sizes and collectives are compared among themselves.
    assert order_of([*times, (row(16, 9.0), 0.1), (row(8, 9.0, "all-reduce"), 0.1)]) == Order(5, 4)
    assert order_of([(row(8, 1.0), 2.0), (row(8, 2.0), 1.0)]) == Order(1, 0)


def test_nothing_known_nothing_studied() -> None:
    assert study_schedules([("x", row(1 << 20, 1.0))]) is None


def errors(found: tuple[tuple[NamedTime, float], ...], *, from_mib: bool) -> np.ndarray:
    return np.array(
        [
            time / measured.seconds - 1
            for (_, measured), time in found
            if (measured.size >= MIB) == from_mib
        ]
    )


@pytest.mark.slow
@pytest.mark.skipif(MEASURED is None, reason="HOCKET_MEASURED names no folder")
def test_published_schedules_are_predicted_as_the_documentation_says() -> None:
    """The limits are those the project set itself."""
    ((family, rows),) = load_schedule_sets(Path(str(MEASURED)))
    study = study_schedules(rows)
    assert (family, study is not None) == ("MI300X", True)
    assert study is not None
    assert len(study.rows) > 1100
    assert len(BLOCK_CONSTANTS) <= 12
    held = summary_of(errors(study.held, from_mib=True))
    assert held.rows > 100
    assert held.median <= 0.06
    assert held.p90 <= 0.16
    assert summary_of(errors(study.held, from_mib=False)).median <= 0.06
    other = summary_of(errors(study.other, from_mib=True))
    assert other.rows > 350
    assert other.median <= 0.06
    assert study.order.pairs > 15_000
    assert study.order.right >= 0.97 * study.order.pairs
    assert all(each.is_seen for each in study.fit.values())
