"""Jobs on a cluster against a simulation that finds everything from scratch at every moment."""

from __future__ import annotations

import os
from dataclasses import replace

import cases
import fluid
import pytest
from fluid import Fluid

import hocket as hk
from hocket.routing import Job, place

CASES = int(os.environ.get("HOCKET_JOB_CASES", "30"))
"""How many; a long run sets more."""
PARTS = 3


def check(seeds: range) -> None:
    """Equal to the picosecond: both round rates down to 2^-24 bytes/s, and ends up."""
    for seed in seeds:
        case = cases.a_case(seed)
        cases.check_alike(cases.hocket(case), cases.slowly(case))


@pytest.mark.parametrize("part", range(PARTS))
def test_random_jobs(part: int) -> None:
    check(range(20 + part, 20 + CASES, PARTS))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_random_jobs_on_fat_trees(part: int) -> None:
    for seed in range(part, CASES, PARTS):
        case = cases.a_case(seed, has_three_levels=True)
        cases.check_alike(cases.hocket(case), cases.slowly(case))


@pytest.mark.long
@pytest.mark.parametrize("part", range(8))
def test_many_random_jobs(part: int) -> None:
    check(range(1000 + 50 * part, 1050 + 50 * part))


def test_random_jobs_meet() -> None:
    """What is compared has moved flows, shared links, and waited for answers."""
    runs = [cases.hocket(cases.a_case(seed)) for seed in range(40)]
    decisions = [each for run in runs for each in run.decisions]
    assert sum(each.moved for each in decisions) > 20
    assert sum(each.max_link_load > 1 for each in decisions) > 50
    assert sum(run.scheme == "least-loaded" for run in runs) > 3


@pytest.mark.parametrize("seed", [1, 5, 9, 13])
def test_exact_rates(seed: int) -> None:
    """A picosecond for each end: a rate is 2^-24 bytes/s too low at most, so an end one too late."""
    case = cases.a_case(seed)
    run, by_hand = cases.hocket(case), cases.slowly(case, is_rounded=False)
    cases.check_alike(run, by_hand, slack_ps=sum(row.flows for row in by_hand.rows.values()))


@pytest.mark.parametrize("rounds", ["data", "lock-step"])
@pytest.mark.parametrize("data", [2, 3, 5])
def test_a_ring_written_down(data: int, rounds: str) -> None:
    """The plan of a ring is what a ring is: what comes in a step goes on in the next."""
    where = hk.routing.cluster("clos:4x6", gpus_per_host=2, nics_per_host=2, latency="100 ns")
    sizes = {"parameters": 3 * data * 25_000, "tensor": 3, "data": data}
    jobs = [
        Job("ring", **sizes, rounds=rounds, compute="30 us", placement="random", iterations=3),  # type: ignore[arg-type]
        Job("other", parameters=200_000, data=2, compute="20 us", iterations=4),
    ]
    placed = place(where, jobs, 3)
    run = hk.routing.simulate(where, placed, scheme="greedy")
    given = [fluid.given(each) for each in placed]
    given[0] = replace(given[0], transfers=fluid.ring_of(data, 100_000))
    cases.check_alike(run, Fluid(where, given))


def test_jitter_only_changes_how_long_jobs_compute() -> None:
    for seed in range(3):
        case = cases.a_case(seed)
        run = cases.hocket(case, jitter=0.5)
        times = [
            [row[3] - row[2] for row in sorted(run.core.iterations) if row[0] == i]
            for i in range(len(case.placed))
        ]
        for placed, drawn in zip(case.placed, times, strict=True):
            compute = placed.job.compute_ps
            assert all(compute // 2 <= each <= compute * 3 // 2 + 1 for each in drawn)
        cases.check_alike(run, cases.slowly(case, compute=times))
