"""Options, limits, refusals of the exact synthesizer; what its check finds."""

from __future__ import annotations

import builtins
import dataclasses
import signal
import threading
import time
from typing import Any

import networks
import numpy as np
import pytest

from hocket.errors import SpecError
from hocket.plans.slots import SlotPlan, SlotProblem, check, least_slots, solve, solve_windows
from hocket.plans.slots.distance import distances
from hocket.plans.slots.listing import best_listing, complete, taste_of
from hocket.plans.slots.plan import plan_of
from hocket.plans.slots.solve import effort_of, start_from


def poor(problem: SlotProblem) -> SlotPlan:
    """A plan that is too long: one chunk at a time."""
    sends: list[tuple[int, int, int]] = []
    begin = 0
    known = distances(problem)
    for chunk in range(problem.chunks):
        only = dataclasses.replace(
            problem,
            wanted=[w if c == chunk else frozenset() for c, w in enumerate(problem.wanted)],
        )
        some = complete(only, known, [], 0, taste_of(0, 0))
        sends += [(c, e, start + begin) for c, e, start in some]
        begin = plan_of(problem, sends, 0, "").slots
    return plan_of(problem, sends, 0, "bound")


def gap() -> SlotProblem:
    """Where the bound alone does not settle it: an all-gather with links of mixed slots."""
    rng = np.random.default_rng(GAP_SEED)
    npus = 6
    links = [(n, (n + 1) % npus, int(rng.integers(1, 4))) for n in range(npus)]
    for _ in range(5):
        src, dst = (int(n) for n in rng.choice(npus, 2, replace=False))
        links.append((src, dst, int(rng.integers(1, 4))))
    return networks.all_gather(npus, links)


GAP_SEED = 2


def without_ortools(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == "ortools":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)


def test_bound_needs_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    without_ortools(monkeypatch)
    problem = networks.all_gather(*networks.ring(5))
    first = solve(problem)
    assert (first.how, first.status) == ("bound", "optimal")
    again = solve(problem, warm=first)
    assert again.sends() == first.sends()


def test_missing_solver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = gap()
    assert least_slots(problem) < poor(problem).slots
    without_ortools(monkeypatch)
    with pytest.raises(SpecError, match=r"pip install 'hocket\[exact\]'"):
        solve(problem)
    with pytest.raises(SpecError, match=r"pip install 'hocket\[exact\]'"):
        solve_windows(problem)


def test_solver_raises_the_bound() -> None:
    pytest.importorskip("ortools")
    problem = gap()
    told: list[tuple[str, int, int]] = []
    plan = solve(problem, workers=1, progress=lambda *said: told.append(said))
    check(problem, plan)
    assert (plan.status, plan.how) == ("optimal", "solver")
    assert plan.least == plan.slots
    assert told[0][0] == "start"
    assert told[-1] == ("end", plan.slots, plan.slots)
    assert any(said[0] == "horizon" for said in told)


def test_same_seed_same_plan() -> None:
    pytest.importorskip("ortools")
    problem = gap()
    plans = [solve(problem, seed=3, workers=1).sends() for _ in range(2)]
    assert plans[0] == plans[1]


def test_never_worse_than_warm() -> None:
    pytest.importorskip("ortools")
    problem = networks.all_gather(*networks.mesh(3, 3))
    warm = poor(problem)
    check(problem, warm)
    for made in (solve(problem, warm=warm, time_limit=2), solve_windows(problem, warm=warm)):
        check(problem, made)
        assert made.slots <= warm.slots


def test_time_ends_listings_too() -> None:
    """In tens of thousands of slots they take longer than all else."""
    problem = gap()
    known, warm = distances(problem), poor(gap())
    late, early = (effort_of(limit, 1, 0, None, None) for limit in (1e-9, 60))
    kept = start_from(problem, known, warm, 0, late)
    assert (kept.slots, kept.how) == (warm.slots, "time limit")
    assert start_from(problem, known, warm, 0, early).slots < warm.slots
    # Without a plan to start from there has to be one.
    check(problem, start_from(problem, known, None, 0, late))
    assert best_listing(problem, known, 0, 0, lambda: True) is None


def test_early_end_keeps_what_is_proved() -> None:
    pytest.importorskip("ortools")
    problem = gap()
    plan = solve(problem, time_limit=0.02, workers=1)
    check(problem, plan)
    assert least_slots(problem) <= plan.least <= plan.slots


def test_given_bound_counts() -> None:
    problem = networks.all_gather(*networks.ring(4))
    warm = poor(problem)
    plan = solve(problem, warm=warm, least=warm.slots)
    assert (plan.slots, plan.status, plan.how) == (warm.slots, "optimal", "bound")


@pytest.mark.parametrize("limit", [0, -1.5, float("nan")])
def test_time_limit_must_be_positive(limit: float) -> None:
    problem = networks.all_gather(*networks.ring(4))
    with pytest.raises(SpecError, match="time limit"):
        solve(problem, time_limit=limit)


def test_memory_limit_gives_the_number() -> None:
    pytest.importorskip("ortools")
    with pytest.raises(SpecError, match=r"needs about \d+ bytes; 1000 are allowed"):
        solve(gap(), memory_limit=1000)


def test_nothing_to_do() -> None:
    problem = networks.problem(2, [(0, 1, 1)], [({0, 1}, {1}, False)])
    plan = solve(problem)
    check(problem, plan)
    assert (plan.slots, plan.least, plan.sends(), plan.status) == (0, 0, [], "optimal")


def test_interrupt_comes_through() -> None:
    pytest.importorskip("ortools")
    from hocket.plans.slots.model import Model
    from hocket.plans.slots.search import ask

    problem = networks.all_gather(*networks.mesh(6, 6))
    model = Model(problem, distances(problem), 18)
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    before = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        ask(model, 60, 1, 0)
    assert time.monotonic() - before < 10


def changed(plan: SlotPlan, at: int, **new: int) -> SlotPlan:
    arrays = {name: getattr(plan, name).copy() for name in ("chunk", "edge", "start")}
    for name, value in new.items():
        arrays[name][at] = value
    return dataclasses.replace(plan, **arrays)


def cut(plan: SlotPlan, at: int) -> SlotPlan:
    return dataclasses.replace(
        plan, **{name: np.delete(getattr(plan, name), at) for name in ("chunk", "edge", "start")}
    )


@pytest.mark.parametrize("make", [networks.all_gather, networks.reduce_scatter])
def test_check_finds_every_change(make: Any) -> None:
    problem = make(*networks.mesh(3, 3))
    plan = solve(problem)
    check(problem, plan)
    for at in range(len(plan.chunk)):
        with pytest.raises(ValueError, match=r"chunk \d+"):
            check(problem, cut(plan, at))
        other = (int(plan.chunk[at]) + 1) % problem.chunks
        with pytest.raises(ValueError, match=r"chunk \d+"):
            check(problem, changed(plan, at, chunk=other))
    with pytest.raises(ValueError, match=r"out of order|does not hold|busy|no sum|does not reach"):
        check(problem, changed(plan, len(plan.chunk) - 1, start=0))
    with pytest.raises(ValueError, match="last send ends"):
        check(problem, dataclasses.replace(plan, slots=plan.slots + 1))
    with pytest.raises(ValueError, match="bound"):
        check(problem, dataclasses.replace(plan, least=plan.slots + 1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edge_slots": np.array([[0]])}, "at least 1"),
        ({"edge_dst": np.array([7])}, "edge_dst names an NPU"),
        ({"edge_dst": np.array([0])}, "to itself"),
        ({"chunk_class": np.array([1])}, "less than 1"),
        ({"holders": []}, "holders has 0 entries, not 1"),
        ({"wanted": [frozenset({5})]}, "chunk 0 names an NPU"),
        ({"edge_src": np.array([-1])}, "whole numbers"),
        ({"backwards": np.array([True]), "holders": [frozenset({0, 1})]}, "one place"),
    ],
)
def test_problems_that_make_no_sense(change: dict[str, Any], message: str) -> None:
    problem = networks.problem(2, [(0, 1, 1)], [({0}, {1}, False)])
    with pytest.raises(SpecError, match=message):
        dataclasses.replace(problem, **change)
