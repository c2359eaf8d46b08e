"""Two groups of 4 and 6 NPUs joined by one slow link: no dimensions, no symmetry."""

from __future__ import annotations

from pathlib import Path

import pytest

import hocket as hk
from hocket.cli import run

FILE = Path(__file__).parents[1] / "data" / "two_groups.yml"
LINK, LATENCY = 5 * 10**9, 10**7  # the slow link [bytes/s, ps]
SIZE = 100_000_000

# Bytes that must cross the slow link in its busier direction.
CROSSING = {
    "all-reduce": SIZE,
    "reduce-scatter": SIZE * 6 // 10,
    "all-gather": SIZE * 6 // 10,
    "broadcast": SIZE,
    "reduce": SIZE,
    "gather": SIZE * 6 // 10,
    "scatter": SIZE * 6 // 10,
    "all-to-all": SIZE * 4 * 6 // 10,
}


@pytest.mark.parametrize("kind", CROSSING)
def test_every_kind_is_proved_and_bounded(kind: str) -> None:
    comparison = hk.compare(kind, hk.topology.load(FILE), size=SIZE)
    assert len(comparison) >= 2
    for entry in comparison:
        assert entry.plan.is_verified
        assert entry.run.gap >= 0.0
        src, dst, _ = entry.run.busiest_link or ("", "", 0.0)
        assert {src, dst} == {"a3", "b0"}
    slow = CROSSING[kind] * 10**12 // LINK + LATENCY
    assert dict(comparison.bound.components)["cut"] == slow
    # Of the ways through the slow link, those to its ends count as well: a link on either side at most.
    assert slow <= comparison.bound.time_ps <= slow + 2 * 500_000
    if kind == "all-to-all":
        assert comparison.bound.witness.startswith("cut {a0, a1, a2, a3}: ")
    else:
        assert comparison.bound.witness.startswith("fastest flow ")
        assert " over paths of 5 GB/s together, " in comparison.bound.witness
    assert comparison.bound.exact_cut or kind == "all-to-all"
    assert comparison.best.run.gap < 0.6


@pytest.mark.parametrize(
    ("kind", "witness"),
    [
        ("all-gather", "over paths of 5 GB/s together"),
        ("all-to-all", "cut {a0, a1, a2, a3}: 240 MB must leave over 5 GB/s"),
    ],
)
def test_the_command_names_what_the_slow_link_carries(
    kind: str, witness: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", kind, "--topology", str(FILE), "--size", "100 MB"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert witness in out


def test_without_the_slow_link_nothing_runs(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["compare", "all-reduce", "-t", str(FILE), "-s", "1MB", "--failed", "a3,b0"]
    assert run(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "no path of links" in err
    assert run([*argv, "--npus", "b0,b1,b2", "-a", "ring", "-a", "direct"]) == 0
