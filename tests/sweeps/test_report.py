"""Reports: against sums over the rows by hand, fronts against every pair, and what the commands print."""

from __future__ import annotations

import csv
import io
import json
import random
from itertools import groupby
from pathlib import Path
from statistics import median_low
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hocket as hk
from hocket.cli import run as run_hocket
from hocket.sweeps import run
from hocket.sweeps.batch import schema_of
from hocket.sweeps.yaml import from_text

SWEEP = """
command: simulate
set: {collective: all-reduce}
grid:
  topology: ["ring:4@25GB/s,1us", "ring:4@50GB/s,1us", "ring:4@10GB/s,1us"]
  algorithm: [ring, direct]
  size: [64 KB, 1 MB]
costs: {link: {each: 10, bandwidth: 2 per GB/s}}
"""


def drawn(folder: Path, seed: int) -> list[dict[str, Any]]:
    """Write rows that nobody computed, a part of them failed, for what sums them up."""
    sweep = from_text(SWEEP.replace("[64 KB, 1 MB]", "1K:32K:x2"), "s.yml")
    run._prepared(sweep, folder)
    draw = random.Random(seed)
    rows = []
    for number in range(sweep.count):
        row: dict[str, Any] = {"point": number, **sweep.point(number)}
        if draw.random() < 0.2:
            row |= {"error_kind": "SpecError", "error": draw.choice(["one", "other"])}
        else:
            row |= {"time_ps": draw.randrange(1, 50), "cost": float(draw.randrange(1, 9))}
            row |= {"planned_by": row["algorithm"]}
        rows.append(row)
    table = pa.Table.from_pylist(rows, schema=schema_of(sweep))
    pq.write_table(table, run.part_file(folder, 0))
    return table.to_pylist()


@pytest.mark.parametrize("seed", range(4))
def test_groups_are_what_one_counts_by_hand(seed: int, tmp_path: Path) -> None:
    rows = drawn(tmp_path / "a", seed)
    found = hk.report_sweep(tmp_path / "a")
    assert found.by == ("topology", "size")
    assert (found.points, found.missing) == (36, 0)
    assert found.failed == sum(row["error"] is not None for row in rows)
    wanted = {}
    for row in rows:
        wanted.setdefault((row["topology"], row["size"]), []).append(row)
    assert [(row["topology"], row["size"]) for row in found.table] == list(wanted)
    for row in found.table:
        group = wanted[row["topology"], row["size"]]
        times = sorted(each["time_ps"] for each in group if each["time_ps"] is not None)
        assert row["ran"] == len(times)
        assert row["failed"] == len(group) - len(times)
        if not times:
            assert row["least_time_ps"] is row["algorithm"] is None
            continue
        assert row["least_time_ps"] == times[0]
        assert row["median_time_ps"] == median_low(times)
        assert row["most_time_ps"] == times[-1]
        best = [each["algorithm"] for each in group if each["time_ps"] == times[0]]
        assert row["algorithm"] == best[0]
    counts = {text: sum(row["error"] == text for row in rows) for text in ("one", "other")}
    assert dict(found.errors) == {text: count for text, count in counts.items() if count}


@pytest.mark.parametrize("seed", range(4))
def test_fronts_are_what_no_pair_beats(seed: int, tmp_path: Path) -> None:
    rows = [row for row in drawn(tmp_path / "a", seed) if row["time_ps"] is not None]
    found = hk.report_sweep(tmp_path / "a")
    assert found.front is found.pareto_front  # the former name
    for size, own in groupby(found.pareto_front, lambda row: row["size"]):
        points = {(row["cost"], row["time_ps"]) for row in rows if row["size"] == size}
        front = {
            (cost, time)
            for cost, time in points
            if not any(c <= cost and t <= time and (c, t) != (cost, time) for c, t in points)
        }
        assert [(row["cost"], row["time_ps"]) for row in own] == sorted(front)
    assert {row["size"] for row in found.pareto_front} == {row["size"] for row in rows}


def test_keys_to_group_by_may_be_named(tmp_path: Path) -> None:
    drawn(tmp_path / "a", 1)
    found = hk.report_sweep(tmp_path / "a", by=["algorithm"])
    assert found.by == ("algorithm", "size")
    assert {"topology", "size"} <= set(found.table[0])
    whole = hk.report_sweep(tmp_path / "a", by=[])
    assert [row["size"] for row in whole.table] == [1024 << i for i in range(6)]
    with pytest.raises(hk.SpecError, match="no key 'algoritm'; did you mean 'algorithm'"):
        hk.report_sweep(tmp_path / "a", by=["algoritm"])


@pytest.mark.parametrize("by", [["topology"], ["algorithm"], []])
def test_no_row_is_the_best_of_several_tasks(by: list[str], tmp_path: Path) -> None:
    rows = drawn(tmp_path / "a", 2)
    for found in hk.report_sweep(tmp_path / "a", by=by).table:
        own = [row for row in rows if all(row[key] == found[key] for key in [*by, "size"])]
        times = [row["time_ps"] for row in own if row["time_ps"] is not None]
        assert found["least_time_ps"] == min(times, default=None)


def test_the_seed_of_jobs_is_no_choice(tmp_path: Path) -> None:
    (tmp_path / "jobs.yml").write_text(
        "defaults: {placement: random-tors, compute: 1 ms}\njobs: [{name: a, model: bloom, data: 2}]\n"
    )
    file = tmp_path / "sweep.yml"
    file.write_text(
        "command: route\nset: {jobs: jobs.yml, fabric: 'clos:4x16'}\n"
        "grid:\n  seed: [0, 1]\n  scheme: [ecmp, greedy]\n"
    )
    hk.run_sweep(file, tmp_path / "out", workers=1)
    found = hk.report_sweep(tmp_path / "out")
    assert found.by == ("seed",)
    assert [row["seed"] for row in found.table] == [0, 1]


def test_commands_print_what_the_library_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sweep.yml").write_text(SWEEP)
    assert run_hocket(["sweep", "sweep.yml", "--count"]) == 0
    assert capsys.readouterr().out == "12 points: topology 3 x algorithm 2 x size 2\n"
    assert run_hocket(["sweep", "sweep.yml", "-o", "out", "--json", "-w", "1"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["format"] == "hocket.sweep"
    assert (told["points"], told["failed"], told["resumed"]) == (12, 0, 0)
    assert run_hocket(["sweep", "report", "out", "--json"]) == 0
    found = hk.report_sweep("out")
    printed = json.loads(capsys.readouterr().out)
    assert {**found.to_dict(), "format": "hocket.sweep-report", "version": 1} == printed
    assert run_hocket(["sweep", "report", "out", "--csv"]) == 0
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [int(line["least_time_ps"]) for line in lines] == [
        row["least_time_ps"] for row in found.table
    ]
    assert run_hocket(["sweep", "report", "out", "--plot", "front.svg"]) == 0
    assert Path("front.svg").read_text().startswith("<?xml")
    # Four cables of 10 and twice their GB/s: 60, 120 or 30 each.
    assert sorted({row["cost"] for row in found.to_dict()["front"]}) <= [120.0, 240.0, 440.0]
    assert run_hocket(["sweep", "report", "out"]) == 0
    text = capsys.readouterr().out
    assert "time against cost" in text
    assert "12 points" in text


WRONG = [
    (["sweep", "sweep.yml"], "--output: there is none; name a folder for the results: -o results"),
    (["sweep", "none.yml", "-o", "out"], "none.yml: cannot be read: No such file or directory"),
    (["sweep", "report", "none"], "none: has no sweep; name a folder that hocket sweep wrote"),
    (["sweep", "sweep.yml", "-o", "o", "-w", "0"], "--workers: 0 is too small; "),
    (["sweep", "sweep.yml", "-o", "sweep.yml"], "sweep.yml: is a file, not a folder; "),
    (["sweep", "sweep.yml", "-o", "o", "--ray", "1.2.3.4.5:x"], "--ray: "),
    (["sweep", "sweep.yml", "-o", "o", "--ray", "127.0.0.1:1"], "--ray: "),
    (
        ["sweep", "sweep.yml", "-o", "o", "--ray", "auto", "-w", "2"],
        "--workers: a Ray cluster has its own",
    ),
    (["sweep", "report", "."], ".: has no sweep; "),
    (["sweep", "sweep.yml", "-o", "a", "-o", "b"], "is given 2 times"),
]


@pytest.mark.parametrize(("argv", "message"), WRONG, ids=[" ".join(argv) for argv, _ in WRONG])
def test_bad_input_is_one_line(
    argv: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sweep.yml").write_text(SWEEP)
    assert run_hocket(argv) == 2
    error = capsys.readouterr().err.splitlines()
    assert len([line for line in error if "points:" not in line]) == 1
    assert message in error[-1]
    assert not list(Path().glob("[oab]*/rows/*"))


def test_a_folder_of_something_else_is_no_sweep(tmp_path: Path) -> None:
    for text in ("{", "[]", '{"format": "hocket.sweep", "version": 2}', '{"format": "x"}'):
        (tmp_path / run.MANIFEST).write_text(text)
        with pytest.raises(hk.SpecError):
            hk.report_sweep(tmp_path)
    (tmp_path / run.MANIFEST).write_text('{"format": "hocket.sweep", "version": 1}')
    with pytest.raises(hk.SpecError, match="is damaged, or none of a sweep"):
        hk.report_sweep(tmp_path)
