"""Sums that GPUs ask of several switches: all equally busy, and a slow one no burden."""

from __future__ import annotations

import pytest

import hocket as hk
from hocket.topology.slow import slowed

LINK = {"bandwidth": "100 GB/s", "latency": "500 ns"}


def fastest(network: hk.Topology, size: str) -> hk.Run:
    """Return the fastest number of slices."""
    return hk.compare("all-reduce", network, size=size, algorithms=["multimem"]).best.run


@pytest.mark.parametrize("size", ["64 KiB", "1 MiB", "64 MiB"])
@pytest.mark.parametrize("rate", ["1 GB/s", "10 GB/s", "60 GB/s", "99 GB/s"])
def test_a_slow_switch_is_no_slower_than_none(size: str, rate: str) -> None:
    planes = [hk.topology.offloaded(hk.topology.planes(4, count, **LINK)) for count in (3, 2)]
    [slow] = hk.topology.slow.read_slow([f"plane1={rate}"])
    found, without = fastest(slowed(planes[0], [slow]), size), fastest(planes[1], size)
    # Other numbers of slices may be tried.
    assert found.time_ps <= 1.005 * without.time_ps


@pytest.mark.parametrize("npus", [5, 8])
def test_few_transfers_load_all_switches_alike(npus: int) -> None:
    network = hk.topology.offloaded(hk.topology.planes(npus, 6, **LINK))
    plan = hk.plan("all-reduce", network, size="6 MiB", algorithm="multimem", chunks=npus)
    assert len(plan) == 6 * npus * (2 * npus + 1)
    switches = network.link_src >= npus
    loads = hk.simulate(plan).link_bytes
    assert loads[switches].max() <= 1.001 * loads[switches].min()
    assert loads[~switches].max() <= 1.001 * loads[~switches].min()
