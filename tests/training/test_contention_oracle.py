"""Groups that share links against a slow simulation of every message on every link."""

from __future__ import annotations

import os
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from tests.cluster.fluid import transfers_of

import hocket as hk
from hocket.training.contention import at_once

CASES = int(os.environ.get("HOCKET_CONTENTION_CASES", "48"))
"""How many; a long run sets more."""
PARTS = 2
TERA = 10**12
ALGORITHMS = ("ring", "direct", "halving-doubling", "double-binary-tree", "binomial")


def a_tree(random: Random) -> hk.Topology:
    """One spine, so that there is one way from NPU to NPU: up, over it, and down."""
    return hk.topology.clos(
        spines=1,
        tors=random.randint(2, 3),
        hosts_per_tor=random.choice([2, 4]),
        bandwidth=random.choice(["1 GB/s", "10 GB/s", "3 GB/s"]),
        host_bandwidth="10 GB/s",
        latency=random.choice(["0 ns", "700 ns"]),
    )


def way(topology: hk.Topology, src: int, dst: int) -> list[int]:
    """Links from NPU to NPU."""
    names = topology.device_names
    ends = list(zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True))
    above = {a: b for a, b in ends if names[b].startswith("tor") and a < topology.npu_count}
    spine = names.index("spine0")
    stops = [src, above[src], spine, above[dst], dst]
    if above[src] == above[dst]:
        stops = [src, above[src], dst]
    return [ends.index((a, b)) for a, b in pairwise(stops)]


def slow_time(plans: list[hk.Plan], topology: hk.Topology) -> int:
    """Each link serves one message at a time, those that came first first; whole messages go on.

    Of messages that come at one moment the one whose transfer comes first in its plan is served first, and
    of those of several plans that of the first plan.
    """
    left: dict[tuple[int, int], Any] = {
        (i, p): transfer
        for p, plan in enumerate(plans)
        for i, transfer in enumerate(transfers_of(plan))
    }
    ended: set[tuple[int, int]] = set()
    moving: list[tuple[int, tuple[int, int], int, list[int]]] = []
    """When each message comes to its next link, or to its end: time, transfer, size, links to go."""
    free = [0] * topology.link_count
    bandwidth, latency = topology.link_bandwidth.tolist(), topology.link_latency_ps.tolist()
    now = 0
    came = list(left)  # at first what waits for nothing goes; later what waited for what came
    while left or moving:
        for key in sorted(left) if came else ():
            if all((before, key[1]) in ended for before in left[key].after):
                transfer = left.pop(key)
                moving.append((now, key, transfer.size, way(topology, transfer.src, transfer.dst)))
        here = sorted(each for each in moving if each[0] == now)
        moving = [each for each in moving if each[0] > now]
        came = [key for _, key, _, links in here if not links]
        ended.update(came)
        for _, key, size, links in here:
            if links:
                link, *rest = links
                free[link] = max(free[link], now) - (-size * TERA // bandwidth[link])
                moving.append((free[link] + latency[link], key, size, rest))
        if not came and moving:
            now = min(each[0] for each in moving)
    return now


@pytest.mark.parametrize("part", range(PARTS))
def test_groups_that_share_links(part: int) -> None:
    shared = 0
    for seed in range(part, CASES, PARTS):
        random = Random(seed)
        topology = a_tree(random)
        npus = random.sample(range(topology.npu_count), topology.npu_count)
        size = random.choice([2, topology.npu_count // 2])
        groups = [npus[i : i + size] for i in range(0, len(npus) - size + 1, size)]
        algorithm = random.choice(ALGORITHMS)
        kind = "broadcast" if algorithm == "binomial" else "all-reduce"
        chunks = random.choice([16, 1, 2]) if algorithm != "binomial" else None
        given: dict[str, Any] = {"size": random.randint(1000, 10**6), "algorithm": algorithm}
        try:
            plans = [
                hk.plan(kind, topology, npus=group, chunks=chunks, **given) for group in groups
            ]
        except hk.InfeasibleError:
            continue
        together = at_once(plans)
        assert together.time_ps == slow_time(plans, topology), seed
        shared += together.time_ps > max(hk.simulate(plan).time_ps for plan in plans)
    assert shared > CASES // PARTS // 4
