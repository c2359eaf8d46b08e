"""Optima that are known, and those of the networks that the papers name."""

from __future__ import annotations

import dataclasses
import time

import networks
import pytest

from hocket.plans.slots import SlotProblem, check, least_slots, solve


@pytest.mark.parametrize("npus", [2, 3, 5, 8])
def test_all_gather_on_a_ring(npus: int) -> None:
    plan = solve(networks.all_gather(*networks.ring(npus)))
    assert (plan.slots, plan.status, plan.how) == (npus - 1, "optimal", "bound")


@pytest.mark.parametrize(("root", "far"), [(0, 10), (14, 6), (3, 8)])
def test_broadcast_on_a_mesh_takes_the_farthest(root: int, far: int) -> None:
    problem = networks.broadcast(*networks.mesh(6, 6), root)
    plan = solve(problem)
    check(problem, plan)
    assert (plan.slots, plan.least) == (far, far)


@pytest.mark.parametrize(
    ("problem", "slots"),
    [
        (networks.gather(*networks.mesh(6, 6), 0), 18),
        (networks.all_gather(*networks.mesh(4, 4, gone=(6, 8))), 13),
        (networks.reduce_scatter(*networks.mesh(4, 4, gone=(6, 8))), 13),
        (networks.tenants(), 18),
        (networks.all_gather(*networks.pods(1)), 4),
        (networks.all_gather(*networks.pods(2)), 8),
        (networks.all_gather(*networks.pods(4)), 16),
    ],
    ids=["gather", "failed", "failed-reduced", "tenants", "pods-1", "pods-2", "pods-4"],
)
def test_named_networks(problem: SlotProblem, slots: int) -> None:
    plan = solve(problem, time_limit=60)
    check(problem, plan)
    assert (plan.slots, plan.least, plan.status) == (slots, slots, "optimal")


def test_bound_of_eight_pods() -> None:
    """28 slots until the last chunks are in a pod, 4 to get from there to everybody."""
    assert least_slots(networks.all_gather(*networks.pods(8))) == 32


@pytest.mark.parametrize("times", [100, 100_000])
def test_short_slots_are_not_counted_one_by_one(times: int) -> None:
    """Slots may be a millionth of a latency; then a plan takes many, and tables of them are not made."""
    problem = networks.all_gather(*networks.pods(2))
    short = dataclasses.replace(problem, edge_slots=problem.edge_slots * times)
    begun = time.process_time()
    least = least_slots(short)
    assert time.process_time() - begun < 5
    assert least <= 8 * times
    if times == 100:
        assert least == 8 * times


@pytest.mark.slow
def test_eight_pods() -> None:
    problem = networks.all_gather(*networks.pods(8))
    plan = solve(problem, time_limit=60)
    check(problem, plan)
    assert plan.slots == 32


@pytest.mark.parametrize(
    ("problem", "slots"),
    [
        (networks.all_gather(*networks.mesh(4, 4, gone=(6, 8))), 13),
        (networks.all_gather(*networks.pods(2)), 8),
        (networks.broadcast(*networks.mesh(6, 6), 0), 10),
    ],
    ids=["failed", "pods-2", "broadcast"],
)
def test_the_model_finds_them_too(problem: SlotProblem, slots: int) -> None:
    pytest.importorskip("ortools")
    from hocket.plans.slots.distance import distances
    from hocket.plans.slots.model import Model
    from hocket.plans.slots.plan import plan_of, turned
    from hocket.plans.slots.search import FOUND, ask

    answer = ask(Model(problem, distances(problem), slots), 30, 2, 0)
    assert answer.verdict == FOUND
    check(problem, plan_of(problem, turned(problem, answer.sends, slots), slots, "solver"))
