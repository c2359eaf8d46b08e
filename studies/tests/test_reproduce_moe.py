"""Published times of dispatch and combine: what benchmarks count, closed forms, and the stated error."""

from __future__ import annotations

import pytest

import hocket as hk
from hocket_studies.moe import Published, middle, published, reproduce_moe

ROWS = published()
PRINTED = {
    **{
        ("h200-efa", npus, "dispatch"): rate
        for npus, rate in ((8, 320), (16, 50), (24, 53), (32, 54))
    },
    **{
        ("h200-efa", npus, "combine"): rate
        for npus, rate in ((8, 319), (16, 18), (24, 26), (32, 43))
    },
    **{
        ("b200-efa", npus, "dispatch"): rate
        for npus, rate in ((8, 280), (16, 53), (24, 53), (32, 53))
    },
    **{
        ("b200-efa", npus, "combine"): rate
        for npus, rate in ((8, 426), (16, 60), (24, 59), (32, 57))
    },
}
"""Bandwidths that UCCL-EP prints beside its times [GB/s]."""


def test_bytes_are_counted_as_benchmarks_count_them() -> None:
    rows = [each for each in ROWS if each.source == "uccl" and each.sends == "once"]
    assert len(rows) == len(PRINTED)
    for row in rows:
        printed = PRINTED[row.machine, row.npus, row.phase]
        assert row.counted_bytes / row.measured_us / 1e3 == pytest.approx(printed, rel=0.005, abs=1)


def test_every_source_has_its_rows() -> None:
    counts = {
        name: sum(each.source == name for each in ROWS) for name in ("deepep", "uccl", "fabric-lib")
    }
    assert counts == {"deepep": 20, "uccl": 28, "fabric-lib": 48}


def row(sends: str, npus: int, phase: str = "dispatch") -> Published:
    return next(
        each
        for each in ROWS
        if (each.source, each.sends, each.npus, each.phase) == ("deepep", sends, npus, phase)
    )


def test_copies_take_the_time_of_nics() -> None:
    """128 x 8 copies of 7,408 bytes, of which 24 / 32 leave a node over 50 GB/s."""
    time = hk.simulate(row("copies", 32).planned()).time * 1e6
    assert time == pytest.approx(128 * 8 * 7408 * 24 / 32 / 50e3, rel=0.1)


def test_a_token_in_one_node_takes_the_time_of_nvlink() -> None:
    """Of 8 GPUs a token goes to 5.25, the own one among them as often as any; 160 GB/s."""
    one = row("once", 8)
    time = hk.simulate(one.planned()).time * 1e6
    assert time == pytest.approx(one.counted_bytes * 7 / 8 / 160e3, rel=0.1)


@pytest.mark.slow
def test_the_error_is_as_the_page_says() -> None:
    result = reproduce_moe(["deepep"])
    groups = {key[2]: middle(rows) for key, rows in result.groups().items() if key[0] == "deepep"}
    assert groups["once"][0] < 0.35
    assert groups["copies"][0] < 0.35
