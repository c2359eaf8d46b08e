"""Comparisons: whose plan ``auto`` takes, and what certifies plans of trees."""

from __future__ import annotations

import pytest

import hocket as hk
from hocket.cli import run


def test_it_says_whose_plan_auto_takes_and_shows_certificates(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ring = hk.topology.load("ring:5@25GB/s,700ns")
    made = hk.compare("all-gather", ring, size="5 MB")
    plan = hk.plan("all-gather", ring, size="5 MB")
    assert made.auto == plan.algorithm == "trees"
    assert made.best.run.time_ps == hk.simulate(plan).time_ps
    told = made.to_dict()
    assert told["auto"] == "trees"
    trees = {each["algorithm"]: each["trees"] for each in told["algorithms"]}
    for name in ("trees", "symmetric"):
        found = trees[name]
        assert found is not None
        (packing,) = found["packings"]
        assert packing["certificate"].startswith("copies over ")
        assert packing["reached"] == 1
    assert trees["ring"] is None
    # Elsewhere it cannot be told from what was compared.
    assert hk.compare("all-gather", ring, size="5 MB", algorithms=["trees"]).auto is None
    assert hk.compare("all-gather", ring, size="5 MB", fidelity="flow").auto is None
    assert hk.compare("all-gather", ring, size="5 MB", switching="cut-through").auto is None
    assert run(["compare", "all-gather", "-t", "ring:5@25GB/s,700ns", "-s", "5MB"]) == 0
    out = capsys.readouterr().out
    assert "auto picks trees, 0.0% above the bound" in out
    assert "\ntrees: copies over " in out
    assert "\nsymmetric: copies over " in out
