"""Advice on the split of bandwidth between dimensions: the cases of Themis, section 6.3."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hocket as hk


def two(p: int, q: int, first: int, second: int) -> hk.Topology:
    """Two dimensions of switches, so that a bandwidth is that of an NPU [bytes/s]."""
    rates = [f"{first} B/s", f"{second} B/s"]
    return hk.topology.product("SW_SW", [p, q], bandwidth=rates, latency=["0 ns", "0 ns"])


def fixed(p: int, q: int, first: int, second: int) -> tuple[list[float], float]:
    """Busy shares and utilization of the fixed order: (P-1)/P, then (Q-1)/Q of a P-th."""
    times = [(p - 1) / p / first, (q - 1) / q / p / second]
    used = (1 - 1 / (p * q)) / ((first + second) * max(times))
    return [time / max(times) for time in times], used


def test_just_enough() -> None:
    """BW(1) = P BW(2): the fixed order fills both."""
    advice = hk.advise_dimensions(two(4, 4, 40_000_000_000, 10_000_000_000))
    assert advice.utilization_fixed == pytest.approx(1)
    assert advice.utilization_best == pytest.approx(1)
    assert [each.busy_fixed for each in advice.dimensions] == pytest.approx([1, 1])
    assert advice.limiting == []
    assert advice.pairs == [
        "dimensions 1 and 2: BW(1) is 1 times P BW(2): just enough: the fixed order fills both"
    ]
    assert advice.verdict.startswith("just enough")
    for each in advice.dimensions:
        assert each.suits_fixed == pytest.approx(each.bandwidth)


def test_over_provisioned() -> None:
    """BW(1) < P BW(2): the fixed order leaves the second idle, a mix of orders does not."""
    advice = hk.advise_dimensions(two(16, 64, 150, 100))
    busy, used = fixed(16, 64, 150, 100)
    assert busy[1] < 0.1
    assert [each.busy_fixed for each in advice.dimensions] == pytest.approx(busy)
    assert advice.utilization_fixed == pytest.approx(used)
    assert [each.busy_best for each in advice.dimensions] == pytest.approx([1, 1])
    assert advice.utilization_best == pytest.approx(1)
    assert advice.limiting == []
    assert "dimension 2 is over-provisioned" in advice.pairs[0]
    assert "the best orders all of it where the data is large" in advice.verdict


def test_under_provisioned() -> None:
    """BW(1) > P BW(2): no order does better than the fixed one."""
    advice = hk.advise_dimensions(two(4, 4, 100, 10))
    busy, used = fixed(4, 4, 100, 10)
    assert busy == pytest.approx([0.4, 1])
    assert [each.busy_best for each in advice.dimensions] == pytest.approx(busy)
    assert advice.utilization_best == pytest.approx(used)
    assert advice.utilization_fixed == pytest.approx(used)
    assert advice.limiting == [2]
    assert "dimension 2 is under-provisioned" in advice.pairs[0]
    assert advice.verdict.startswith("limited by dimension 2: no order")
    assert [each.suits_best for each in advice.dimensions] == pytest.approx([88, 22])


@given(p=st.integers(1, 4), q=st.integers(1, 4), a=st.integers(1, 10**6), b=st.integers(1, 10**6))
def test_two_dimensions_in_closed_form(p: int, q: int, a: int, b: int) -> None:
    """Shares x and 1 - x of the two orders: all is used where some x loads both alike."""
    p, q = 2**p, 2**q
    advice = hk.advise_dimensions(two(p, q, a, b))
    busy, used = fixed(p, q, a, b)
    assert advice.utilization_fixed == pytest.approx(used, rel=1e-6)
    assert [each.busy_fixed for each in advice.dimensions] == pytest.approx(busy, rel=1e-6)
    least, most = (p - 1) / (p * q), (p - 1) / p
    load = min(max(a / (a + b) * (1 - 1 / (p * q)), least), most)
    time = max(load / a, (1 - 1 / (p * q) - load) / b)
    best = (1 - 1 / (p * q)) / ((a + b) * time)
    assert advice.utilization_best == pytest.approx(best, rel=1e-6)
    assert advice.utilization_best >= advice.utilization_fixed - 1e-9
    assert sum(each.suits_best for each in advice.dimensions) == pytest.approx(a + b)


def test_dimensions_keep_their_numbers() -> None:
    topology = hk.topology.product(
        "Ring_FC_SW", [4, 1, 8], bandwidth=["10 GB/s"] * 3, latency=["1 us"] * 3
    )
    advice = hk.advise_dimensions(topology)
    assert advice.topology is topology
    assert [(each.number, each.kind, each.size) for each in advice.dimensions] == [
        (1, "Ring", 4),
        (3, "Switch", 8),
    ]
    assert [each.bandwidth for each in advice.dimensions] == [20e9, 10e9]
    assert "dimensions 1 and 3" in advice.pairs[0]


def test_one_dimension_is_just_enough() -> None:
    advice = hk.advise_dimensions(hk.topology.ring(4, bandwidth="1 GB/s", latency="1 us"))
    assert (advice.pairs, advice.limiting) == ([], [])
    assert advice.utilization_best == advice.utilization_fixed == pytest.approx(1)


def test_refusals() -> None:
    with pytest.raises(hk.InfeasibleError, match="'dgx1_v100' states no dimensions"):
        hk.advise_dimensions(hk.topology.load("dgx1_v100"))
    for count in (6, 7):
        topology = hk.topology.product(
            "_".join(["FC"] * count), [2] * count, bandwidth=["1 GB/s"] * count,
            latency=["1 us"] * count,
        )  # fmt: skip
        if count == 6:
            assert len(hk.advise_dimensions(topology).dimensions) == 6
        else:
            with pytest.raises(hk.InfeasibleError, match=r"7 dimensions .* at most 6"):
                hk.advise_dimensions(topology)
            made = hk.schedule("all-reduce", topology, size="1 MB", chunks=2, time_limit="20 ms")
            assert made.simulate().time_ps > 0
