"""``hk.autotune`` and ``hocket compare --table``: picks, tables, and what makes no sense."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Hocket, folder, hocket

import hocket as hk
from hocket import runtime
from hocket.cli import options
from hocket.tuning.tune import TunedWay, _pick

__all__ = ["folder", "hocket"]  # fixtures

MESH = "mesh:2x2@1GB/s,10us"


def test_predictions_are_those_of_a_comparison() -> None:
    names = ["ring", "direct", "greedy"]
    found = hk.autotune("all-reduce", topology=MESH, sizes="4K,1M", algorithms=names)
    assert (found.ranks, len(found)) == (4, 2)
    assert found.sizes[1].picked.algorithm == "greedy"
    for each in found:
        ranked = hk.compare("all-reduce", MESH, size=each.size, algorithms=names)
        best = ranked.best.run.time_ps
        assert each.tried[0].predicted_ps == best
        assert each.picked.predicted_ps is not None
        assert each.picked.predicted_ps <= best * 1.03
        assert each.usual.algorithm == ("direct" if each.size < 65536 else "ring")
        assert each.gain == each.usual.time_ps / each.picked.time_ps >= 1
        assert each.picked.measured_ps is None
    table = found.table
    for each in found:
        row = table.row("all-reduce", 4, each.size)
        if each.picked is each.usual:
            assert row is None
            continue
        assert row is not None
        assert (row.algorithm, row.chunks) == (each.picked.algorithm, each.picked.chunks)
        choice = table.choice("all-reduce", 4, 0, each.size)
        assert choice is not None
        assert choice.program is not None


def way(name: str, time: int, transport: str = "tcp") -> TunedWay:
    return TunedWay(name, 1, transport, measured_ps=time)


def test_a_plan_is_picked_if_it_is_quicker_by_more_than_the_tolerance() -> None:
    options = hk.TuneOptions(measure=True, tolerance=0.1)
    task = ("all-reduce", 4)
    window = TunedWay("shared-memory", None, "shared", measured_ps=1000)
    some = [window, way("ring", 950), way("direct", 2000)]
    assert _pick(1, some, None, options, task).picked is window
    some = [window, way("ring", 500), way("direct", 520)]
    assert _pick(1, some, None, options, task).picked.algorithm == "ring"
    kept = _pick(1, some, ("direct", 1, "tcp"), options, task)
    assert kept.picked.algorithm == "direct"
    assert kept.gain == pytest.approx(1000 / 520)
    some = [window, way("ring", 400), way("direct", 520)]
    found = _pick(1, some, ("direct", 1, "tcp"), options, task)
    assert (found.picked.algorithm, found.gain) == ("ring", 2.5)
    assert "1.30 times as long (direct)" in found.why


def test_rows_change_half_way_in_logarithm() -> None:
    options = hk.TuneOptions(measure=True)
    ways = [way("ring", 1), way("ring", 1), way("direct", 1)]
    sizes = tuple(
        hk.TunedSize(size, each, each, "", (each,))
        for size, each in zip((100, 10_000, 1_000_000), ways, strict=True)
    )
    tuning = hk.Tuning("all-reduce", 4, MESH, sizes, options, {}, 0.0)
    rows = [(row.from_bytes, row.to_bytes, row.algorithm) for row in tuning.rows]
    assert rows == [(0, 100_000, "ring"), (100_000, None, "direct")]


def test_candidates_are_measured_and_the_table_is_used(hocket: Hocket, folder: Path) -> None:
    words = ("run", "--tune", "--np", "2", "--sizes", "4K,256K", "--rounds", "3")
    found = hocket(*words, "--candidates", "2", "-o", "table.json", "--json").json()
    assert (found["format"], found["is_measured"]) == ("hocket.tuning", True)
    for each in found["sizes"]:
        assert {way["transport"] for way in each["tried"]} == {"tcp", "shared"}
        assert all(way["measured_ps"] > 0 for way in each["tried"])
        times = [way["measured_ps"] for way in each["tried"]]
        assert times == sorted(times)
        assert each["usual"]["algorithm"] == "shared-memory"
    table = runtime.PlanTable.load(folder / "table.json")
    assert [dict(row.to_dict()) for row in table.rows] == found["rows"]
    # Another number of ranks is added, the same one replaced.
    more = hocket(
        "compare", "--table", "-t", MESH, "--sizes", "1M", "-o", "table.json", "-a", "greedy"
    )
    assert more.code == 0, more.err
    assert "written to table.json" in more.out
    ranks = {row["ranks"] for row in json.loads((folder / "table.json").read_text())["rows"]}
    assert ranks == {2, 4}


def test_a_table_says_first_what_it_takes_and_on_a_signal_what_is_there(
    hocket: Hocket, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []
    monkeypatch.setattr(options, "LARGE", 100)
    monkeypatch.setattr(options.Watch, "so_far", lambda _, text: texts.append(text))
    words = ("-t", MESH, "--sizes", "1M:8M:x8", "-a", "ring", "-o", "table.json", "--json")
    result = hocket("compare", "--table", *words)
    assert result.code == 0, result.err
    assert re.match(
        r"hocket: about 4,080 transfers: .* of memory and 1 s; cheaper: -a symmetric or -a trees\n",
        result.err,
    )
    stopped = [json.loads(text) for text in texts]
    assert [len(each["rows"]) for each in stopped] == [1, 2]
    assert stopped[1]["rows"] == json.loads(result.out)["sizes"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--np: is missing; say how many processes, or name a topology"),
        (("--np", "1"), "--np: 1 is not 2 to 4096"),
        (("--np", "3", "-t", MESH), "--np: the topology has 4 NPUs, not 3"),
        (("--tune", "--np", "70"), "--np: 70 is not 2 to 64"),
        (("--np", "4", "--sizes", "many"), "--sizes"),
        (
            ("--tune", "--np", "4", "--rounds", "0"),
            "--rounds: 0 is not a whole number from 1 to 1000",
        ),
        (("--np", "4", "--tolerance", "2"), "--tolerance: 2.0 is not a share from 0 to 1"),
        (("--tune", "--np", "4", "--dtype", "int3"), "--dtype: 'int3' is not known"),
        (("--np", "4", "--dtype", "float16"), "No such option: --dtype"),
        (("--np", "4", "-a", "rings"), "there is no algorithm 'rings'"),
        (("--np", "4", "-o", "table.yml"), "does not end in .json"),
        (("--np", "4", "-o", "plan.json"), "format: is missing"),
        (("every", "--np", "4"), "there is no collective 'every'; kinds are"),
    ],
)
def test_what_makes_no_sense_is_refused(
    hocket: Hocket, folder: Path, words: tuple[str, ...], said: str
) -> None:
    (folder / "plan.json").write_text("{}")
    result = hocket(*(("run",) if "--tune" in words else ("compare", "--table")), *words)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert len(result.err.splitlines()) == 1
    assert (folder / "plan.json").read_text() == "{}"
