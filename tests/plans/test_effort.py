"""Searches end by counted work: the same call makes the same plan, however busy the machine."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import hocket as hk
from hocket.plans import auto

CASES: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("all-reduce", "mesh:3x3@25GB/s,700ns", "1MB", {}),
    ("all-gather", "torus:4x4@25GB/s,700ns", "8KiB", {}),
    ("reduce-scatter", "rail:4x4@50GB/s,1us", "4MB", {"seed": 3}),
    ("broadcast", "dgx1_v100", "64MB", {"effort": "high"}),
    ("all-to-all", "clos:4x4x2@25GB/s,1us", "2MB", {}),
    ("gather", "mesh:2x4@25GB/s,700ns", "1MB", {}),
    ("all-reduce", "dgx_a100_1box", "8KiB", {"runtime": "mscclpp"}),
    ("all-reduce", "fat-tree:4@25GB/s,1us", "16MB", {"effort": "low"}),
    ("all-gather", "ring:4@25GB/s,700ns", "8MB", {"algorithm": "exact", "chunks": 2}),
    ("all-reduce", "torus:3x3@25GB/s,1us", "1MB", {"algorithm": "steiner", "npus": [0, 1, 4]}),
)
WHOLE = (
    ("all-reduce", "dgx2_2box", "8KiB", {"runtime": "mscclpp", "effort": "low"}),
    ("all-gather", "mesh:4x4@25GB/s,700ns", "9MB", {"algorithm": "exact", "effort": "low"}),
)


def digest(kind: str, network: str, size: str, options: dict[str, Any]) -> str:
    """Hash a plan with why it was chosen."""
    plan = hk.plan(kind, network, size=size, cache=False, **options)
    what = (plan.to_frame().to_pydict(), plan.selection)
    return hashlib.sha256(repr(what).encode()).hexdigest()


@contextmanager
def one_busy_core(spinning: int) -> Iterator[None]:
    """Stay on one core, beside processes that never pause."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    spin = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(spin) for _ in range(spinning)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()
        os.sched_setaffinity(0, cores)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_same_plan_beside_others(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "WORK", 5_000_000)
    alone = digest(*case)
    with one_busy_core(1):
        assert digest(*case) == alone


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
@pytest.mark.parametrize("case", WHOLE, ids=str)
def test_the_same_plan_of_whole_searches(case: Any) -> None:
    alone = digest(*case)
    with one_busy_core(2):
        assert digest(*case) == alone


def test_more_effort_tries_more_and_finds_no_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "WORK", 20_000_000)
    made = [
        hk.plan("all-reduce", "mesh:3x3@25GB/s,700ns", size="1MB", effort=effort, cache=False)
        for effort in ("low", "high")
    ]
    chosen = [plan.selection for plan in made]
    assert all(chosen)
    times = [each.time_ps for each in chosen if each is not None]
    plans = [each.plans for each in chosen if each is not None]
    assert times == sorted(times, reverse=True)
    assert plans[0] < plans[1]


def test_what_the_work_cut_is_said() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auto, "WORK", 1_000)
        made = hk.plan("all-reduce", "mesh:3x3@25GB/s,700ns", size="1MB", cache=False).selection
    assert made is not None
    assert made.ended == "work"
    assert auto.SPARED in made.left_out.values()


def test_an_effort_is_one_of_three() -> None:
    with pytest.raises(hk.SpecError, match=r"effort.*'huge'.*low, normal or high"):
        hk.PlanOptions(effort="huge")  # type: ignore[arg-type]
