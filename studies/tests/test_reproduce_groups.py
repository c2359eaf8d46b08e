"""``hocket reproduce groups``: the questions of PCCL (arXiv 2606.07019)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import hocket as hk
from hocket.cli import run
from hocket_studies.groups import EXPERIMENTS, Cell, Row, Target, make_plan, reproduce_groups
from hocket_studies.groups_published import ROWS, Figure

PNG = b"\x89PNG\r\n\x1a\n"
MIB = 1 << 20


def target_of(experiment: str, name: str) -> Target:
    return next(each for each in EXPERIMENTS[experiment].targets if each.name == name)


def test_published_figures_have_targets() -> None:
    assert ROWS["groups"]["1 row of mesh 8x8"] == Figure(speedup=3.05)
    assert ROWS["scale"]["mesh 8x8x8"].seconds == pytest.approx(700.8)
    assert ROWS["scale"]["mesh 10x10x10"].seconds == pytest.approx(7236)
    sizes = {"mesh 8x8x8": 512, "mesh 10x10x10": 1000}
    for experiment, rows in ROWS.items():
        for name in rows:
            target = target_of(experiment, name)
            if name in sizes:
                assert [len(group) for group in target.groups] == [sizes[name]]
                assert target.network().npu_count == sizes[name]
    assert [len(group) for group in target_of("groups", "8 rows of mesh 8x8").groups] == [8] * 8


def test_direct_is_bound_by_the_middle_of_its_row() -> None:
    """In a row of 8, 4 x 4 blocks of 16 MiB cross the middle link; other rows are of no use to Direct."""
    one = target_of("groups", "1 row of mesh 8x8")
    network = one.network()
    seconds = 16 * 16 * MIB / 50e9
    alone = hk.simulate(make_plan(one, network, "direct")).time
    assert alone == pytest.approx(seconds, rel=5e-3)
    two = target_of("groups", "2 rows of mesh 8x8")
    assert hk.simulate(make_plan(two, network, "direct")).time == pytest.approx(alone, rel=1e-6)


def test_relays_are_worth_what_the_links_of_the_corners_allow() -> None:
    """A corner sends 7 blocks over two links; the row is planned within 2 % of what is proved."""
    target = replace(target_of("groups", "1 row of mesh 8x8"), methods=("direct", "flows"))
    network = target.network()
    run = hk.simulate(make_plan(target, network, "flows"))
    assert run.time >= 7 * 16 * MIB / 2 / 50e9
    assert run.gap < 0.02


def test_the_fastest_plan_and_its_speedup() -> None:
    cells = (Cell("direct", 600, 1.0), Cell("ring", 500, 1.0), Cell("flows", 250, 2.0))
    target = target_of("groups", "1 row of mesh 8x8")
    row = Row(target, 64, 200, cells)
    assert (row.best, row.gap, row.speedup) == (cells[2], 0.25, 2.0)
    none = Row(target, 64, 200, (Cell("flows", None, 1.0, "why"),))
    assert (none.best, none.gap, none.speedup) == (None, None, None)
    alone = Row(target, 64, 200, cells[2:])
    assert (alone.gap, alone.speedup) == (0.25, None)


def test_a_node_is_as_fast_as_its_slower_switch() -> None:
    """Two nodes: half of what an NPU sends leaves over 25 GB/s, so that direct cannot be beaten."""
    target = target_of("switches", "16 NPUs")
    run = hk.simulate(make_plan(target, target.network(), "direct"))
    assert run.time == pytest.approx(8 / 16 * 128 * MIB / 25e9, rel=1e-3)
    assert run.gap == pytest.approx(0.0, abs=1e-6)


def test_files_and_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = replace(
        target_of("groups", "1 row of mesh 8x8"),
        name="2 pairs",
        network=lambda: hk.topology.mesh(2, 2, bandwidth="50 GB/s", latency="500 ns"),
        groups=(range(2), range(2, 4)),
        methods=("direct", "greedy", "steiner"),
    )
    monkeypatch.setitem(EXPERIMENTS, "groups", replace(EXPERIMENTS["groups"], targets=(small,)))
    monkeypatch.setitem(ROWS["groups"], "2 pairs", Figure(speedup=1.5, seconds=700.8))
    monkeypatch.chdir(tmp_path)
    argv = ["reproduce", "groups", "--experiment", "groups"]
    assert run(argv) == 0
    printed = capsys.readouterr().out
    for word in ("2 pairs", "1.50", "701 s", "mean 2.68", "– steiner: ", "groups.png, groups.json"):
        assert word in printed, word
    folder = tmp_path / "reproduce-groups"
    assert (folder / "groups.png").read_bytes().startswith(PNG)
    (row,) = json.loads((folder / "groups.json").read_text())["experiments"]["groups"]["rows"]
    assert row["groups"] == [[0, 1], [2, 3]]
    assert row["methods"]["steiner"]["time_ps"] is None
    times = {name: each["time_ps"] for name, each in row["methods"].items()}
    assert row["speedup"] == times["direct"] / min(times["direct"], times["greedy"])
    assert row["gap"] == min(times["direct"], times["greedy"]) / row["bound_ps"] - 1


def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "groups", "--experiment", "gossip"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "--experiment" in err
    assert "groups, kinds, switches or scale" in err


@pytest.mark.long
def test_plans_are_near_the_bound() -> None:
    """All but a few are within 5 %; no plan is below a bound."""
    for rows in reproduce_groups().values():
        for row in rows:
            assert row.gap is not None, row.target.name
            assert 0 <= row.gap < 0.05, row.target.name
