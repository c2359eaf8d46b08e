"""Slices of a hierarchical collective fill all dimensions at once."""

from __future__ import annotations

import pytest

import hocket as hk

# Dimensions whose bandwidths suit what they have to carry, so that none is slower than another.
BALANCED = [
    ("SW_SW", [4, 4], ["400 GB/s", "100 GB/s"]),
    ("R_R", [8, 8], ["100 GB/s", "12.5 GB/s"]),
    ("FC_FC", [4, 4], ["400 GB/s", "100 GB/s"]),
]


@pytest.mark.parametrize(("kinds", "sizes", "bandwidth"), BALANCED)
def test_balanced_dimensions_work_at_once(
    kinds: str, sizes: list[int], bandwidth: list[str]
) -> None:
    network = hk.topology.product(kinds, sizes, bandwidth=bandwidth, latency=["500 ns"] * 2)

    def gap(chunks: int) -> float:
        plan = hk.plan("all-reduce", network, size="1 GB", algorithm="hierarchical", chunks=chunks)
        return hk.simulate(plan, switching="cut-through").gap

    assert gap(1) > 0.9, "one slice is in one dimension at a time"
    assert gap(64) < 0.05


def test_an_unbalanced_network_is_as_fast_as_its_slowest_dimension() -> None:
    network = hk.topology.product(
        "SW_SW", [16, 64], bandwidth=["150 GB/s", "100 GB/s"], latency=["350 ns", "850 ns"]
    )
    plan = hk.plan("all-reduce", network, size="1 GB", algorithm="hierarchical", chunks=64)
    slowest = 2 * 15 / 16 * 1e9 / 150e9
    assert hk.simulate(plan, switching="cut-through").time == pytest.approx(slowest, rel=0.001)
