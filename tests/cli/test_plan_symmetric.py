"""``hocket plan --algorithm symmetric``: what it prints, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from hocket.cli.certificate import RATE_ONLY

TORUS = ("-t", "torus:4x4@25GB/s,500ns", "-s", "16MB", "-a", "symmetric")


def test_it_says_the_time_the_group_and_what_is_kept(hocket: Any) -> None:
    result = hocket("plan", "all-gather", *TORUS)
    assert (result.code, result.err) == (0, "")
    what, time, shifts, trees, rate, note = result.out.splitlines()
    assert what.startswith("symmetric all-gather of 16 MB among 16 NPUs of torus 4x4: ")
    assert what.endswith(" of one block and their shifts, proved")
    assert time.endswith(" above the bound, 150.5 us")
    assert shifts == "shifts: Z4 x Z4, which take each NPU to every other; 4 kinds of links"
    assert trees.startswith("copies over ")
    assert rate == RATE_ONLY
    assert "not kept" in note


@pytest.mark.parametrize("algorithm", ["symmetric", "trees"])
def test_a_certificate_is_told_apart_from_the_gap_once(hocket: Any, algorithm: str) -> None:
    where = (*TORUS[:-1], algorithm)
    for command in ("plan", "compare"):
        lines = hocket(command, "all-reduce", *where).out.splitlines()
        assert lines.count(RATE_ONLY) == 1
        assert RATE_ONLY not in hocket("-q", command, "all-reduce", *where).out
    assert RATE_ONLY not in hocket("compare", "all-reduce", *where[:-1], "ring").out


def test_large_networks_are_not_refused(hocket: Any) -> None:
    where = ("-t", "torus:20x20x20@50GB/s,500ns", "-s", "1GB")
    result = hocket("plan", "all-gather", *where, "-a", "symmetric", "--json")
    assert (result.code, result.err) == (0, "")
    data = json.loads(result.out)
    assert (data["format"], data["group"], data["orbits"]) == ("hocket.symmetric-plan", [20] * 3, 6)
    assert data["bound_ps"] <= data["time_ps"] < 1.01 * data["bound_ps"]
    assert data["transfers"] == 8_000 * data["kept_transfers"]


def test_a_file_has_the_whole_plan(hocket: Any, tmp_path: Path) -> None:
    file = tmp_path / "plan.parquet"
    result = hocket("plan", "all-reduce", *TORUS, "-c", "2", "-o", str(file))
    assert result.code == 0
    assert f"written to {file}" in result.out
    plan = hk.Plan.load(file)
    plan.verify()
    assert plan.algorithm == "symmetric"
    assert hocket("simulate", str(file)).code == 0


@pytest.mark.slow
def test_a_plan_too_large_for_a_file_leaves_none(hocket: Any, tmp_path: Path) -> None:
    file = tmp_path / "plan.parquet"
    where = ("-t", "torus:32x32x32@50GB/s,500ns", "-s", "1GB", "-a", "symmetric", "-o", str(file))
    result = hocket("plan", "all-gather", *where)
    assert result.code == 2
    assert "1073709056 transfers needs about" in result.err
    assert not file.exists()


def test_refusals_are_a_line(hocket: Any) -> None:
    result = hocket(
        "plan", "all-gather", "-t", "mesh:3x3@25GB/s,1us", "-s", "9MB", "-a", "symmetric"
    )
    assert result.code != 0
    assert "not every NPU sees the same network" in result.err
    assert "Traceback" not in result.err
    result = hocket("plan", "all-gather", *TORUS, "--trials", "3")
    assert result.code == 2
    assert "--trials: symmetric does not use it" in result.err
