"""The exact synthesizer against trying everything."""

from __future__ import annotations

import dataclasses

import networks
import numpy as np
import oracle
import pytest

from hocket.errors import SpecError
from hocket.plans.slots import SlotProblem, check, least_slots, solve, solve_windows
from hocket.plans.slots.distance import distances
from hocket.plans.slots.model import Model
from hocket.plans.slots.search import FOUND, NONE, ask


def random_network(rng: np.random.Generator, npus: int, slots: int) -> networks.Links:
    """A cycle, so that everybody is reached, and a few links more."""
    links = [(n, (n + 1) % npus, int(rng.integers(1, slots + 1))) for n in range(npus)]
    for _ in range(int(rng.integers(0, 3))):
        src, dst = (int(n) for n in rng.choice(npus, 2, replace=False))
        links.append((src, dst, int(rng.integers(1, slots + 1))))
    return links


def random_problem(seed: int, *, mixed: bool = False) -> SlotProblem:
    rng = np.random.default_rng(seed)
    npus = int(rng.integers(2, 4 if mixed else 6))
    links = random_network(rng, npus, 2 if mixed else 3)
    chunks = []
    count = 2 if mixed else int(rng.integers(1, 4))
    for number in range(count):
        holder = int(rng.integers(npus))
        wanted = rng.choice(npus, int(rng.integers(1, npus + 1)), replace=False).tolist()
        backwards = number % 2 == 1 if mixed else seed % 2 == 1
        chunks.append(({holder}, wanted, backwards))
    return networks.problem(npus, links, chunks)


def asked(problem: SlotProblem, most: int) -> int:
    """What the model alone says, without bound and lists: horizon by horizon."""
    known = distances(problem)
    for horizon in range(most + 1):
        answer = ask(Model(problem, known, horizon), None, 1, 0)
        if answer.verdict == FOUND:
            return horizon
        assert answer.verdict == NONE
    raise AssertionError("no horizon has a plan")


@pytest.mark.parametrize("seed", range(40))
def test_one_way(seed: int) -> None:
    pytest.importorskip("ortools")
    problem = random_problem(seed)
    fewest = oracle.fewest_slots(problem)
    assert least_slots(problem) <= fewest
    plan = solve(problem, workers=1)
    check(problem, plan)
    assert (plan.slots, plan.least, plan.status) == (fewest, fewest, "optimal")
    assert asked(problem, fewest) == fewest
    made = solve_windows(problem, workers=1, window=2)
    check(problem, made)
    assert made.slots >= fewest


@pytest.mark.parametrize("seed", range(24))
def test_both_ways(seed: int) -> None:
    pytest.importorskip("ortools")
    problem = random_problem(seed, mixed=True)
    fewest = oracle.fewest_slots_mixed(problem)
    assert least_slots(problem) <= fewest
    plan = solve(problem, workers=1)
    check(problem, plan)
    assert (plan.slots, plan.status) == (fewest, "optimal")
    assert asked(problem, fewest) == fewest
    check(problem, solve_windows(problem, workers=1, window=2))


@pytest.mark.parametrize("seed", range(1000, 1060))
def test_lists_have_no_loose_ends(seed: int) -> None:
    pytest.importorskip("ortools")
    problem = random_problem(seed, mixed=seed % 3 == 0)
    plan = solve(problem, workers=1)
    check(problem, plan)
    if plan.slots:
        model = Model(problem, distances(problem), least_slots(problem) - 1)
        assert ask(model, None, 1, 0).verdict == NONE


@pytest.mark.parametrize("seed", range(60))
def test_bound_is_below_lists(seed: int) -> None:
    """The bound holds for every plan, so for any plan of a larger network too."""
    from hocket.plans.slots.listing import complete, taste_of
    from hocket.plans.slots.plan import plan_of

    rng = np.random.default_rng(seed)
    npus = int(rng.integers(4, 9))
    links = random_network(rng, npus, 4)
    chunks = [({n}, range(npus), bool(rng.integers(2))) for n in range(npus)]
    problem = networks.problem(npus, links, chunks)
    sends = complete(problem, distances(problem), [], 0, taste_of(seed, 0))
    plan = plan_of(problem, sends, 0, "bound")
    check(problem, plan)
    assert least_slots(problem) <= plan.slots


def test_size_classes_share_edges() -> None:
    pytest.importorskip("ortools")
    problem = networks.problem(2, [(0, 1, 1)], [({0}, {1}, False)] * 3)
    problem = dataclasses.replace(
        problem,
        edge_slots=np.array([[1, 3]], dtype=np.uint32),
        chunk_class=np.array([0, 1, 0], dtype=np.uint32),
    )
    plan = solve(problem, workers=1)
    check(problem, plan)
    assert plan.slots == 5


def test_out_of_reach() -> None:
    problem = networks.problem(3, [(0, 1, 1)], [({0}, {1}, False), ({0}, {1, 2}, False)])
    with pytest.raises(SpecError, match="chunk 1 cannot reach NPU 2"):
        solve(problem)
    reduced = networks.problem(3, [(1, 0, 1)], [({0}, {1, 2}, True)])
    with pytest.raises(SpecError, match=r"chunk 0 cannot be reduced: .* NPU 2 to NPU 0"):
        solve(reduced)
