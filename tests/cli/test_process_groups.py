"""``--process-groups``: all groups of a job in one plan."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import hocket as hk

from .conftest import Hocket

APART = "name: apart\nnpus: [a0, a1, a2, a3, b0, b1, b2, b3]\nlinks:\n" + "".join(
    f"- [{box}{at}, {box}{(at + 1) % 4}, 25 GB/s, 1 us]\n" for box in "ab" for at in range(4)
)
"""Two rings of four without a link between."""
MESH = ("all-reduce", "-t", "mesh:2x4@25GB/s,1us", "-a", "greedy")


def test_all_groups_are_planned_at_once(hocket: Hocket, folder: Path) -> None:
    task = (*MESH, "-s", "1MB", "--process-groups", "dp=2,tp=4")
    result = hocket("plan", *task, "-o", "plan.parquet")
    assert (result.code, result.err) == (0, "")
    assert "6 x all-reduce of 6 MB among 8 NPUs" in result.out
    assert "hocket simulate plan.parquet --page page.html" in result.out
    assert len(hk.Plan.load(folder / "plan.parquet").collective.demands()) == 6
    found = hocket("plan", *task, "--json").json()
    assert [(each["name"], each["groups"], each["npus"]) for each in found["groups"]] == [
        ("dp", 4, 2),
        ("tp", 2, 4),
    ]
    assert max(each["time_ps"] for each in found["groups"]) == found["time_ps"]
    compared = hocket("compare", *task, "--json").json()
    assert compared["algorithms"][0]["time_ps"] == found["time_ps"]


def test_a_front_and_a_sweep_have_the_times_of_a_comparison(hocket: Hocket, folder: Path) -> None:
    groups = ("--process-groups", "dp=2,tp=4")
    sizes = [1 << 16, 1 << 20]
    wanted = [
        hocket("compare", *MESH, "-s", f"{size} B", *groups, "--json").json()["algorithms"][0]
        for size in sizes
    ]
    found = hocket("compare", "--front", *MESH, "--sizes", "64K:1M:x16", *groups, "--json").json()
    points = {each["size_bytes"]: each["time_ps"] for each in found["points"]}
    assert [points[size] for size in sizes] == [each["time_ps"] for each in wanted]
    words = "process_groups: 'dp=2,tp=4'"
    (folder / "s.yml").write_text(
        "command: compare\ngrid: {size: 64K:1M:x16}\n"
        f"set: {{topology: 'mesh:2x4@25GB/s,1us', algorithm: greedy, {words}}}\n"
    )
    hocket("sweep", "s.yml", "-o", "swept")
    rows = pq.read_table(folder / "swept" / "rows").to_pylist()
    assert [each["time_ps"] for each in rows] == [each["time_ps"] for each in wanted]
    (folder / "s.yml").write_text("command: bound\nset: {process_groups: a.json, size: 1 MB}\n")
    told = hocket("sweep", "s.yml", "-o", "other")
    assert "process_groups: 'a.json' is a file, and points are run elsewhere" in told.err


def test_one_group_is_no_custom_collective(hocket: Hocket) -> None:
    result = hocket("plan", *MESH, "-s", "1MB", "--process-groups", "_=1,tp=8", "--json")
    assert result.json()["collective"] == "all-reduce"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["dp=3,tp=4"], "--process-groups: dp 3 x tp 4 make 12 of 8 NPUs; give axes"),
        (["dp=2,tp=4", "--npus", "0-3"], "--npus: the process groups say who takes part"),
        (["dp=2,tp=4", "--root", "0"], "--root: the process groups say who takes part"),
        (["_=8,dp=1"], "each group of '_=8,dp=1' has one NPU; make them of two NPUs or more"),
        (["_=2,_a=4"], "--process-groups: each axis of '_=2,_a=4' begins with _; name one without"),
        (["bad.json"], "tp: its groups overlap in NPU 1"),
    ],
)
def test_what_makes_no_groups_is_refused(
    hocket: Hocket, folder: Path, words: list[str], why: str
) -> None:
    (folder / "bad.json").write_text(json.dumps({"tp": [[0, 1], [1, 2]]}))
    for command in (["plan"], ["compare"], ["compare", "--front"]):
        result = hocket(*command, *MESH, "-s", "1MB", "--process-groups", *words)
        assert (result.code, result.out) == (2, "")
        assert why in result.err
        assert result.err.count("\n") == 1


def test_groups_in_two_parts_of_a_network_are_planned(hocket: Hocket, folder: Path) -> None:
    (folder / "apart.yml").write_text(APART)
    (folder / "groups.json").write_text(json.dumps({"tp": [[0, 1, 2], [4, 6]]}))
    task = ("-t", "apart.yml", "-s", "1MB", "--process-groups", "groups.json")
    for kind, names in (
        ("all-reduce", {"steiner", "greedy"}),
        ("all-gather", {"steiner", "greedy"}),
        ("all-to-all", {"flows", "greedy"}),
    ):
        found = hocket("compare", kind, *task, "--json").json()
        assert {each["algorithm"] for each in found["algorithms"]} == names
        assert found["algorithms"][0]["gap"] < 0.1
    for name in ("steiner", "greedy", "exact", "blind"):
        assert hocket("plan", "all-reduce", *task, "-a", name, "--time-limit", "1s").code == 0
    # A lone group as well: what it does not reach is no relay.
    alone = ("-t", "apart.yml", "-s", "1MB", "--npus", "0-2", "-a", "steiner", "--json")
    found = hocket("plan", "all-reduce", *alone).json()
    assert found["time_ps"] < 1.1 * found["bound_ps"]


def test_a_group_that_is_cut_off_is_told(hocket: Hocket, folder: Path) -> None:
    (folder / "apart.yml").write_text(APART)
    (folder / "groups.json").write_text(json.dumps({"tp": [[0, 1], [2, 5]]}))
    for words in (["plan"], ["compare"], ["plan", "-a", "steiner"], ["plan", "-a", "exact"]):
        command, *of = words
        task = ("-t", "apart.yml", "-s", "1MB", "--process-groups", "groups.json")
        result = hocket(command, "all-reduce", *task, *of)
        assert (result.code, result.out) == (2, "")
        name = of[1] if of else "greedy"
        assert result.err.startswith(f'hocket: {name}: no path of links leads from "b1" to "a2"')
        assert result.err.count("\n") == 1


def test_a_file_of_a_collective_has_its_own_groups(hocket: Hocket, folder: Path) -> None:
    (folder / "own.yml").write_text("demands: []\n")
    task = ("own.yml", "-t", "ring:4@25GB/s,1us", "--process-groups", "world")
    assert "--process-groups: 'own.yml' has its own; leave it out" in hocket("plan", *task).err
