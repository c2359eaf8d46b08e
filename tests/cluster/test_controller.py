"""The scheme ``controller``: what a cluster's controller does to the jobs of a simulation."""

from __future__ import annotations

import random

import pytest

import hocket as hk
from hocket.routing import Job, simulate

SEEDS = range(4)


def busy(seed: int, **options: object) -> hk.routing.ClusterRun:
    """Rings of eight hosts, placed at random; they fill eight ToRs, and start and stop by turns."""
    where = hk.routing.cluster("clos:8x8x8", gpus_per_host=1, nics_per_host=1)
    hosts = random.Random(seed).sample(range(64), 64)
    jobs = [
        Job(
            f"job{i}",
            parameters=10**6 * (2 + i),
            data=8,
            tensor=1,
            compute=f"{300 + 100 * i} us",
            iterations=6,
            hosts=tuple(f"host{host}" for host in hosts[8 * i : 8 * i + 8]),
        )
        for i in range(8)
    ]
    return simulate(where, jobs, **options)  # type: ignore[arg-type]


def moved(run: hk.routing.ClusterRun) -> int:
    return sum(each.moved for each in run.decisions)


@pytest.mark.parametrize("seed", SEEDS)
def test_flows_stay_where_they_are(seed: int) -> None:
    """A fabric with a link for each host has a path for each flow; few have to move for that."""
    anew, steady = busy(seed, scheme="edge-coloring"), busy(seed, scheme="controller")
    assert anew.max_link_load == steady.max_link_load == 1
    assert moved(steady) < moved(anew) / 100
    assert steady.time == anew.time
    still = busy(seed, scheme="controller", max_moves=0)
    assert moved(still) == 0


def test_a_move_may_be_too_dear() -> None:
    loads = [busy(seed, scheme="controller", max_moves=0).max_link_load for seed in SEEDS]
    assert max(loads) == 2


def test_what_it_foresees_waits_for_no_answer() -> None:
    waits = busy(0, scheme="controller", answer="50 us")
    foresees = busy(0, scheme="controller", answer="50 us", look_ahead=8)
    assert (foresees.hit_rate or 0) > (waits.hit_rate or 0)
    assert foresees.time < waits.time


def test_it_counts_flows() -> None:
    with pytest.raises(hk.SpecError, match="weights: the controller counts flows; give flows"):
        busy(0, scheme="controller", weights="bytes")
    with pytest.raises(hk.SpecError, match="max_moves"):
        busy(0, scheme="controller", max_moves=-1)
