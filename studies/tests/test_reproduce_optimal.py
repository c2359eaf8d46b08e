"""``reproduce optimal``: cells, counts, files and refusals."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

import hocket as hk
from hocket.cli import run
from hocket_studies.optimal import KINDS, Cell, OptimalResult, Outcome, reproduce_optimal
from hocket_studies.optimal_tables import summary

PNG = b"\x89PNG\r\n"


def outcome(bound_ps: int, time_ps: int | None) -> Outcome:
    return Outcome(4, bound_ps, "", "ring", 1, time_ps, 0.0)


def test_cells_are_counted_by_the_gap_of_their_size() -> None:
    cells = {
        Cell("a", "broadcast", 1_000_000_000): outcome(1000, 1049),
        Cell("b", "broadcast", 1_000_000_000): outcome(1000, 1051),
        Cell("c", "broadcast", 1_000_000_000): outcome(100, None),
        Cell("a", "broadcast", 1_000_000): outcome(1000, 1249),
        Cell("b", "broadcast", 1_000_000): outcome(1000, 1251),
    }
    result = OptimalResult(cells)
    assert result.within(is_large=True) == (1, 3)
    assert result.within(is_large=False) == (1, 2)
    assert [cell.machine for cell in result.worst(is_large=True)] == ["c", "b"]
    assert result.machines == [("a", ""), ("b", ""), ("c", "")]
    cells[Cell("d", "broadcast", 1_000_000_000)] = outcome(0, None)
    assert result.within(is_large=True) == (1, 3)
    assert summary(result)[-1] == "not counted: 1, in which what has failed cuts an NPU off"


def test_a_link_that_cuts_an_npu_off_is_not_counted() -> None:
    found = reproduce_optimal(["dgx_a100_1box"], kinds=["reduce"], sizes=[1_000_000], failures=True)
    (out,) = found.outcomes.values()
    assert not out.is_possible
    assert "no path of links" in out.why
    assert found.within(is_large=False) == (0, 0)
    assert found.worst(is_large=False) == []


def test_a_cell_is_the_best_of_a_comparison() -> None:
    found = reproduce_optimal(["amd4_sccl"], kinds=["all-reduce"], sizes=[1_000_000])
    (cell,) = found.outcomes
    assert cell == Cell("amd4_sccl", "all-reduce", 1_000_000)
    ranked = hk.compare("all-reduce", "amd4_sccl", size=1_000_000)
    out = found.outcomes[cell]
    assert out.algorithm == ranked.best.algorithm
    assert out.time_ps == ranked.best.run.time_ps
    assert out.bound_ps == ranked.bound.time_ps


def test_each_sort_of_link_fails_once() -> None:
    found = reproduce_optimal(["amd4_sccl"], kinds=["broadcast"], sizes=[1_000_000], failures=True)
    assert found.outcomes
    whole = reproduce_optimal(["amd4_sccl"], kinds=["broadcast"], sizes=[1_000_000])
    (before,) = whole.outcomes.values()
    for cell, out in found.outcomes.items():
        assert len(cell.failed.split(",")) == 2
        assert out.time_ps is not None
        assert out.bound_ps >= before.bound_ps


def test_files_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    argv = ["reproduce", "optimal", "--machine", "amd4_sccl", "--size", "64MB", "-o", "out"]
    assert run(argv) == 0
    printed = capsys.readouterr().out
    assert "5 of 5 cells" in printed
    folder = tmp_path / "out"
    assert {path.name for path in folder.iterdir()} == {
        "optimal.png",
        "optimal.json",
        "optimal.csv",
        "optimal.md",
    }
    assert (folder / "optimal.png").read_bytes().startswith(PNG)
    rows = list(csv.DictReader((folder / "optimal.csv").read_text().splitlines()))
    cells = json.loads((folder / "optimal.json").read_text())["cells"]
    assert [row["kind"] for row in rows] == [cell["kind"] for cell in cells]
    assert all(cell["gap"] == cell["time_ps"] / cell["bound_ps"] - 1 for cell in cells)
    page = (folder / "optimal.md").read_text()
    assert page.startswith("# How far ")
    assert "\n- of 16 MB and more: 5 of 5 cells (100.0%) within 5% of the bound\n" in page
    assert "\n## 64 MB\n" in page
    (line,) = [line for line in page.splitlines() if line.startswith("| amd4_sccl | 4 |")]
    of_kind = {row["kind"]: row for row in rows}
    for kind, cell in zip(KINDS, line.split(" | ")[2:], strict=True):
        row = of_kind[kind]
        argument = row["witness"].split(" of ")[0].split(" {")[0].split(" into ")[0]
        assert cell.removesuffix(" |").endswith(f" {row['algorithm']} ({argument})")


@pytest.mark.parametrize(
    ("witness", "argument"),
    [
        ("ingress of gpu0: 1 MB must enter over 150 GB/s", "ingress"),
        ("fan-out of gpu0: 1 MB must leave", "fan-out"),
        ("nodes: 1 MB must get from a0 to 3 other nodes", "nodes"),
        ("one trip: 1 MB of each of 8 NPUs", "one trip"),
        ("", ""),
    ],
)
def test_what_a_bound_is_due_to(witness: str, argument: str) -> None:
    assert replace(outcome(1, 1), witness=witness).argument == argument


def test_one_cell_is_one() -> None:
    cell = Cell("a", "broadcast", 1_000_000_000)
    assert summary(OptimalResult({cell: outcome(1000, 1049)})) == [
        "of 16 MB and more: 1 of 1 cell (100.0%) within 5% of the bound"
    ]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--machine", "nobody"], ["--machine", "nobody"]),
        (["--kind", "gossip"], ["--kind", "gossip"]),
        (["--size", "0B"], ["--size", "0B"]),
        (["--size", "much"], ["--size", "much"]),
        (["--output", "file"], ["--output", "is a file"]),
    ],
)
def test_bad_input(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    argv: list[str],
    words: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert run(["reproduce", "optimal", *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert all(word in err for word in words), err
