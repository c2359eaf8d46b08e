"""The scheme ``controller``: what a cluster's controller does to the jobs of a simulation."""

from __future__ import annotations

import pytest

import hocket as hk
from hocket.routing import Job, simulate

SEEDS = range(4)


def busy(seed: int, **options: object) -> hk.routing.ClusterRun:
    """Rings of eight hosts placed at random below eight ToRs, which start and stop at other times."""
    where = hk.routing.cluster("clos:4x8x4", gpus_per_host=1)
    jobs = [
        Job(
            f"job{i}", parameters=10**6 * (2 + i), data=8, compute=f"{70 + 30 * i} us", iterations=6
        )
        for i in range(4)
    ]
    return simulate(where, jobs, seed=seed, **options)  # type: ignore[arg-type]


def moved(run: hk.routing.ClusterRun) -> int:
    return sum(each.moved for each in run.decisions)


@pytest.mark.parametrize("seed", SEEDS)
def test_flows_stay_where_they_are(seed: int) -> None:
    """Whoever assigns all flows anew moves many; where none may move, none does."""
    anew, steady = busy(seed, scheme="greedy"), busy(seed, scheme="controller")
    assert moved(steady) < moved(anew) / 2
    assert steady.max_link_load <= anew.max_link_load
    still = busy(seed, scheme="controller", max_moves=0)
    assert moved(still) == 0
    assert still.max_link_load >= steady.max_link_load


def test_what_it_foresees_waits_for_no_answer() -> None:
    waits = busy(0, scheme="controller", answer="50 us")
    foresees = busy(0, scheme="controller", answer="50 us", look_ahead=8)
    assert not waits.foreseen
    assert foresees.foreseen
    assert foresees.time < waits.time


def test_it_counts_flows() -> None:
    with pytest.raises(hk.SpecError, match="weights: the controller counts flows; give flows"):
        busy(0, scheme="controller", weights="bytes")
    with pytest.raises(hk.SpecError, match="max_moves"):
        busy(0, scheme="controller", max_moves=-1)
