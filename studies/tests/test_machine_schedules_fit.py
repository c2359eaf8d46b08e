"""Schedules are known by their names, and constants of thread blocks are found again."""

from __future__ import annotations

import numpy as np
import pytest

import hocket as hk
from hocket.profiles.block_constants import BLOCK_CONSTANTS
from hocket.profiles.measurement import Measurement
from hocket_studies.block_schedules import (
    BlockSchedule,
    pairs_all_gather,
    pairs_all_reduce,
    ring_all_gather,
)
from hocket_studies.block_times import RCCL
from hocket_studies.machine_schedules_fit import fit_blocks, known_schedule, schedule_times

VALUES = {name: each.prior for name, each in BLOCK_CONSTANTS.items()}


def row(kind: str, algorithm: str, protocol: str, size: int, seconds: float = 1.0) -> Measurement:
    return Measurement(kind, 8, 1, size, seconds, algorithm, protocol, True)


@pytest.mark.parametrize(
    ("kind", "algorithm", "wanted"),
    [
        ("all-gather", "msccl_ring_2x4", ring_all_gather(8, 2, 4)),
        ("all-gather", "msccl_allpair_4", pairs_all_gather(8, 4)),
        ("all-reduce", "msccl_allpair_2", pairs_all_reduce(8, 2)),
        ("all-reduce", "msccl_ring_2x4", None),
        ("all-gather", "msccl_ring_0x1", None),
        ("all-gather", "auto", None),
    ],
)
def test_schedules_by_name(kind: str, algorithm: str, wanted: BlockSchedule | None) -> None:
    assert known_schedule(row(kind, algorithm, "ll", 1 << 20)) == wanted


def test_where_the_data_does_not_divide_something_else_ran() -> None:
    assert known_schedule(row("all-reduce", "msccl_allpair_1", "ll", 128)) is None
    assert known_schedule(row("all-reduce", "msccl_allpair_1", "ll", 256)) is not None
    assert known_schedule(row("all-gather", "msccl_ring_1x1", "auto", 1 << 20)) is None


def made(noise: float) -> tuple[list[Measurement], dict[str, float]]:
    """Return times of schedules that follow from constants other than the priors, up to some noise."""
    draw = np.random.default_rng(11)
    truth = {name: value * float(np.exp(draw.normal(0, 0.2))) for name, value in VALUES.items()}
    names = [("all-gather", "msccl_ring_1x1"), ("all-gather", "msccl_ring_2x2")]
    names += [("all-gather", "msccl_ring_8x2"), ("all-reduce", "msccl_allpair_1")]
    asked = [
        row(kind, algorithm, protocol, 1 << power)
        for kind, algorithm in names
        for protocol in RCCL
        for power in range(10, 29, 3)
        # Beyond this, all pairs of an all-reduce wait for each other for ever.
        if kind == "all-gather" or power < 26
    ]
    took = schedule_times(asked).predict(truth) * 1e-6 * np.exp(draw.normal(0, noise, len(asked)))
    rows = [
        row(each.kind, each.algorithm, each.protocol, each.size, float(time))
        for each, time in zip(asked, took, strict=True)
    ]
    return rows, truth


def test_constants_are_found_again() -> None:
    rows, truth = made(0.01)
    found = fit_blocks(schedule_times(rows))
    for name, value in truth.items():
        each = found[name]
        assert each.is_seen, name
        assert each.value == pytest.approx(value, rel=0.1), name
        assert each.low < each.value < each.high


def test_a_fit_needs_every_protocol() -> None:
    rows = [each for each in made(0.0)[0] if each.protocol != "ll128"]
    with pytest.raises(hk.SpecError, match="no schedule of ll128 was measured; give times"):
        fit_blocks(schedule_times(rows))
