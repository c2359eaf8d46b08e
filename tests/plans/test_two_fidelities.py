"""A schedule at dimension fidelity and its plan at link fidelity take the same time."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import hocket as hk

KINDS = ("all-reduce", "reduce-scatter", "all-gather")
SIZE = 3_000_000
LATENCIES = ("overlapped", "occupying")
SWITCHINGS = ("cut-through", "store-and-forward")


def product(kinds: str, *sizes: int) -> hk.Topology:
    rates, delays = ["40 GB/s", "10 GB/s", "5 GB/s"], ["100 ns", "700 ns", "1 us"]
    return hk.topology.product(
        kinds, list(sizes), bandwidth=rates[: len(sizes)], latency=delays[: len(sizes)]
    )


SMALL = [
    ("Ring_SW", (4, 4)),
    ("Ring_FC", (3, 4)),
    ("FC_SW", (3, 2)),
    ("SW_Ring_FC", (4, 3, 3)),
    ("Ring", (6,)),
]


@pytest.mark.parametrize(("kinds", "sizes"), SMALL)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("switching", SWITCHINGS)
def test_links_and_dimensions_agree(
    kinds: str, sizes: tuple[int, ...], kind: str, switching: hk.Switching
) -> None:
    topology = product(kinds, *sizes).with_switching(switching)
    fixed = hk.schedule(kind, topology, size=SIZE, algorithm="hierarchical", chunks=6)
    for algorithm in ("themis-fifo", "themis", "multirail-optimal", fixed):
        chunks = None if algorithm is fixed else 6
        plan = hk.plan(
            kind, topology, size=SIZE, algorithm=algorithm, chunks=chunks, time_limit="30 ms"
        ).verify()
        assert plan.is_verified
        assert plan.link_order == "plan"
        assert plan.schedule is not None
        for latency in LATENCIES:
            on_links = hk.simulate(plan, latency_model=latency)
            on_rails = hk.simulate(plan, fidelity="dimension", latency_model=latency)
            assert (on_links.order, on_links.switching) == ("plan", switching)
            assert on_links.time_ps == pytest.approx(on_rails.time_ps, rel=1e-3), algorithm
            assert on_links.weighted_utilization == pytest.approx(on_rails.utilization, rel=2e-3)


SLOW_BESIDE_FAST = [
    ("FC_SW", (3, 4), (3e9, 100e9), (1e-7, 1e-5)),
    ("FC_SW", (4, 4), (1e9, 100e9), (1e-7, 1e-5)),
    ("FC_FC", (5, 3), (2e9, 3e9), (1e-9, 1e-5)),
    ("Ring_FC_FC_FC", (2, 5, 3, 2), (2e9, 2e9, 3e9, 100e9), (0.0, 1e-9, 1e-9, 1e-5)),
    ("SW", (8,), (100e9,), (1e-6,)),
    ("SW_SW", (4, 4), (100e9, 100e9), (1e-6, 1e-6)),
    ("SW_Ring_SW", (4, 3, 2), (5e9, 80e9, 20e9), (1e-5, 1e-6, 1e-7)),
]


@pytest.mark.parametrize("case", SLOW_BESIDE_FAST, ids=lambda case: f"{case[0]}-{case[1]}")
@pytest.mark.parametrize("policy", ["first-come", "smallest-first"])
def test_links_and_dimensions_agree_where_latency_counts(case: Any, policy: str) -> None:
    """Orders of the all-gather are any, so that a step is of several messages, each with its latency."""
    kinds, sizes, rates, delays = case
    topology = hk.topology.product(kinds, list(sizes), bandwidth=list(rates), latency=list(delays))
    orders = list(itertools.permutations(range(len(sizes))))
    rows = [(187_500, orders[i % len(orders)], orders[7 * i // 3 % len(orders)]) for i in range(8)]
    both = hk.collective_on("all-reduce", topology, 1_500_000)
    made = hk.Schedule.from_chunks(rows, topology, both, policy=policy)
    plan = hk.plan("all-reduce", topology, size=1_500_000, algorithm=made)
    for switching in SWITCHINGS:
        for latency in LATENCIES:
            on_links = hk.simulate(plan, switching=switching, latency_model=latency)
            on_rails = made.simulate(switching=switching, latency_model=latency)
            assert on_links.time_ps == pytest.approx(on_rails.time_ps, rel=1e-3)


@pytest.mark.parametrize("switching", SWITCHINGS)
def test_a_switch_is_held_for_the_latency_of_a_link(switching: hk.Switching) -> None:
    """All-reduce of 8 MB in 8 chunks among 8: a link sends 14 MB in 96 messages of 1 us each."""
    network = hk.topology.product("SW", [8], bandwidth=["100 GB/s"], latency=["1 us"])
    made = hk.schedule("all-reduce", network, size="8 MB", algorithm="themis", chunks=8)
    run = made.simulate(switching=switching, latency_model="occupying")
    busy = 140_000_000 + 96 * 1_000_000
    assert busy < run.time_ps < 1.05 * busy
    plan = hk.plan("all-reduce", network, size="8 MB", algorithm=made)
    assert run.time_ps == hk.simulate(plan, switching=switching, latency_model="occupying").time_ps
