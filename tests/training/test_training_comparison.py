"""Trainings by every combination of networks, parallelism and algorithms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from hocket.cli import run
from hocket.training.comparison import algorithms_on, compare_training, merged
from hocket.training.search import search_parallels, splits

MODEL = hk.Workload(
    "small",
    tuple(hk.Layer(f"l{i}", input_height=64, channels=512, filters=512) for i in range(6)),
)
RATES: dict[str, Any] = {"bandwidth": "10 GB/s", "latency": "1 us"}
PRODUCT = hk.topology.product(
    "Ring_SW", [4, 2], bandwidth=["25 GB/s", "10 GB/s"], latency=["1 us", "2 us"]
)
RING = hk.topology.ring(8, **RATES).without(links=[("npu0", "npu1")])
FAST = ("hierarchical", "themis-fifo", "themis", "ideal", "none")


def test_every_combination_is_a_training() -> None:
    found = compare_training(MODEL, PRODUCT, FAST, ["dp=8", "dp=4,pp=2"], samples=8, iterations=3)
    assert len(found) == 2 * len(FAST)
    assert not found.refused
    for row in found:
        alone = hk.train(
            MODEL,
            PRODUCT,
            parallel=row.parallel,
            algorithm=row.algorithm,
            samples=8,
            iterations=3,
        )
        assert row.time_ps == alone.time_ps
        assert row.samples_per_second == pytest.approx(alone.samples_per_second)
        assert row.exposed_ps == pytest.approx(alone.breakdown.communication / 3)
        parts = row.breakdown.compute + row.exposed_ps + row.breakdown.waiting
        assert parts == pytest.approx(row.time_ps)


def test_rows_are_ranked_and_compared_with_the_baseline_of_their_split() -> None:
    found = compare_training(MODEL, {"a": PRODUCT, "b": RING}, None, ["dp=8", "dp=4,pp=2"])
    speeds = [row.samples_per_second for row in found]
    assert speeds == sorted(speeds, reverse=True)
    for row in found:
        name = "hierarchical" if row.network == "a" else "ring"
        base = next(
            each
            for each in found
            if (each.network, each.parallel, each.algorithm) == (row.network, row.parallel, name)
        )
        assert row.speedup == base.time_ps / row.time_ps
    assert found.best.algorithm not in ("ideal", "none")
    floors = {(r.network, str(r.parallel)): r.time_ps for r in found if r.algorithm == "none"}
    assert all(row.time_ps >= floors[row.network, str(row.parallel)] for row in found)


def test_algorithms_by_the_kind_of_network() -> None:
    assert algorithms_on(PRODUCT)[:2] == ("hierarchical", "themis-fifo")
    assert "multitree" in algorithms_on(RING)  # a link has failed
    assert "multitree" in algorithms_on(hk.topology.load("dgx1_v100"))
    clos = [hk.topology.load(f"clos:4x{tors}x8@50GB/s,1us") for tors in (63, 64)]
    assert ["greedy" in algorithms_on(each) for each in clos] == [True, False]


def test_what_cannot_run_is_listed() -> None:
    found = compare_training(
        MODEL, [PRODUCT, RING], ["ring", "themis"], ["dp=8", "dp=16", "dp=1,pp=8"], samples=32
    )
    ran = {(row.network, str(row.parallel), row.algorithm) for row in found}
    assert len(ran) == 3
    assert len(found.refused) == 9
    reasons = {(r.network, str(r.parallel), r.algorithm): r.reason for r in found.refused}
    assert "have failed" in reasons[RING.name, "dp=8", "themis"]
    assert "make 16 NPUs" in reasons[PRODUCT.name, "dp=16", "ring"]
    assert "stages need a layer each" in reasons[PRODUCT.name, "pp=8", "themis"]
    huge = hk.Accelerator("tiny", "1 TFLOP/s", memory="1 MB")
    kept = compare_training(MODEL, PRODUCT, ["none"], npu=huge, memory_check=False)
    assert len(kept) == 1
    with pytest.raises(hk.InfeasibleError, match="tiny has 1 MB"):
        compare_training(MODEL, PRODUCT, ["none"], npu=huge)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"algorithms": ["frob"]}, "no algorithm 'frob'"),
        ({"algorithms": "ring"}, "algorithms: 'ring' is not a list"),
        ({"algorithms": []}, "algorithms: there is none"),
        ({"parallels": "dp=8"}, "parallels: 'dp=8' is not a list"),
        ({"parallels": ["dp=x"]}, "dp: 'x' is not a whole number"),
        ({"batch": 0}, "batch: 0 is too small"),
        ({"batch": 7}, "batch: 7 samples do not divide among 8 replicas"),
        ({"samples": 0}, "samples: 0 "),
        ({"npu": "a200"}, "there is no 'a200'"),
        ({"order": "random"}, "order: there is no 'random'"),
        ({"chunks": 0}, "chunks"),
    ],
)
def test_input_that_makes_no_sense(arguments: dict[str, Any], part: str) -> None:
    with pytest.raises(hk.SpecError, match=part):
        compare_training(MODEL, PRODUCT, **{"algorithms": ["themis"], **arguments})


def test_no_networks() -> None:
    with pytest.raises(hk.SpecError, match="topologies: there are none"):
        compare_training(MODEL, [])


def test_a_batch_is_shared_by_replicas() -> None:
    found = compare_training(MODEL, PRODUCT, ["none"], ["dp=8", "dp=4,tp=2"], batch=64)
    assert {row.batch for row in found} == {64}
    wide = next(row for row in found if row.parallel.tp == 2)
    alone = hk.train(MODEL, PRODUCT, parallel="dp=4,tp=2", algorithm="none", samples=16)
    assert wide.time_ps == alone.time_ps


def test_splits_are_all_there_are() -> None:
    for npus, batch in ((8, 64), (12, 24), (7, 1), (1, 5)):
        found = splits(npus, batch)
        shapes = [(each.dp, each.tp, each.pp) for each in found]
        every = [
            (dp, tp, pp)
            for dp in range(1, npus + 1)
            for tp in range(1, npus + 1)
            for pp in range(1, npus + 1)
            if dp * tp * pp == npus and batch % dp == 0
        ]
        assert sorted(shapes) == sorted(every)
        for each in found:
            assert batch // each.dp % each.parts == 0
            assert each.parts <= 4 * each.pp


def test_a_search_ranks_what_fits() -> None:
    found = search_parallels(MODEL, PRODUCT, samples=4, most=3)
    assert len(found.rows) + len(found.refused) == len(splits(8, 32))
    assert {row.batch for row in found.rows} == {32}
    assert found.parallels == tuple(row.parallel for row in found.rows[:3])
    times = [row.time_ps for row in found.rows]
    assert times == sorted(times)
    assert any("stages need a layer each" in each.reason for each in found.refused)
    assert search_parallels(MODEL, PRODUCT, samples=4, most=3) == found
    by_batch = search_parallels(MODEL, PRODUCT, batch=32, most=3, zero=1)
    assert {row.parallel.zero for row in by_batch.rows} == {1}


def test_comparisons_are_merged_by_rank() -> None:
    halves = [compare_training(MODEL, {name: PRODUCT}, [name]) for name in ("themis", "none")]
    both = merged(halves)
    assert [row.algorithm for row in both] == ["none", "themis"]
    assert both.workload == MODEL


ARGUMENTS = ["train", "--compare", "alexnet", "-t", "Ring_SW:4x2", "--bandwidth", "10 GB/s"]
ARGUMENTS += ["--latency", "1 us", "-a", "hierarchical", "-a", "themis", "-a", "none"]


def test_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    extra = ["-p", "dp=8", "-p", "dp=9", "--json", "--plot", "bars.svg", "--bucket", "all"]
    assert run([*ARGUMENTS, *extra]) == 0
    value = json.loads(capsys.readouterr().out)
    assert next(row["algorithm"] for row in value["rows"]) == "none"
    assert len(value["rows"]) == 3
    assert len(value["refused"]) == 3
    alone = hk.train("alexnet", _ring_switch(), algorithm="themis", bucket=None)
    row = next(row for row in value["rows"] if row["algorithm"] == "themis")
    assert row["time_ps"] == alone.time_ps
    assert row["memory"]["total_bytes"] == alone.memory.total
    assert (tmp_path / "bars.svg").stat().st_size > 1000
    assert run([*ARGUMENTS, "-p", "dp=8", "-p", "dp=9"]) == 0
    out = capsys.readouterr().out
    assert out.count("left out: Ring_SW:4x2, dp=9: parallel: dp 9") == 1


def test_command_names_a_reason_once(capsys: pytest.CaptureFixture[str]) -> None:
    extra = ["-p", "dp=8", "-p", "dp=4,pp=2", "-a", "ring-bi-odd"]
    assert run([*ARGUMENTS, *extra]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "left out" in line]
    assert len(lines) == 1
    assert lines[0].startswith("left out: Ring_SW:4x2, ring-bi-odd: ")


def _ring_switch() -> hk.Topology:
    return hk.topology.product("Ring_SW", [4, 2], bandwidth=["10 GB/s"] * 2, latency=["1 us"] * 2)


def test_command_searches(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*ARGUMENTS, "--search", "2", "--samples", "4", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert len({str(row["parallel"]) for row in value["rows"]}) == 2
    (search,) = value["searches"].values()
    tried = [str(row["parallel"]) for row in search["rows"]]
    assert {str(row["parallel"]) for row in value["rows"]} == set(tried[:2])
    assert {row["batch"] for row in value["rows"]} == {32}


@pytest.mark.parametrize(
    ("extra", "part"),
    [
        (["--search", "2", "-p", "dp=8"], "--search: tries all splits"),
        (["--samples", "4", "--batch", "32"], "--batch: is of all replicas"),
        (["--search", "0"], "--search: 0 "),
        (["-p", "dp=9"], "dp 9 x tp 1 x pp 1 make 9 NPUs"),
        (["--npu", "a10"], "there is no 'a10'"),
        (["--bucket", "25"], "bucket: '25' "),
        (["--precision-bits", "0"], "--precision-bits: 0 "),
        (["--plot", "x.gif"], "x.gif: a picture ends in"),
        (["-t", "frob:3"], "'frob'"),
        (["-a", "frob", "--search", "1"], "no algorithm 'frob'"),
    ],
)
def test_command_refuses(extra: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*ARGUMENTS, *extra]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert part in err


def test_pictures_of_rows_with_different_batches(tmp_path: Path) -> None:
    from hocket.plot.compare_training import draw_training_comparison

    for name, batch in (("same.svg", 64), ("other.svg", None)):
        found = compare_training(
            MODEL, {"a": PRODUCT, "b": RING}, ["none"], ["dp=8", "dp=4,pp=2"], batch=batch
        )
        draw_training_comparison(found, tmp_path / name)
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert ("samples of all replicas" in text) == (batch is None)
        for row in found:
            assert f"{row.network}  {row.parallel}" in text
            assert row.algorithm in text


def test_command_shows_the_best_of_each_network(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.yml").write_text(
        "name: rail8\nbuilder: ring\nnpus: 8\nbandwidth: 25 GB/s\nlatency: 1 us\n"
    )
    networks = ["-t", "file.yml", "-t", "torus:2x4@25GB/s,1us", "-t", "ring:8@10GB/s,1us"]
    argv = ["train", "--compare", "alexnet", *networks]
    assert run([*argv, "--baseline", "rail8"]) == 0
    out = capsys.readouterr().out
    rows = [line for line in out.splitlines() if line.startswith("│")]
    assert len(rows) == 3
    assert sum("│ rail8 " in row for row in rows) == 1
    base = next(row for row in rows if "│ rail8 " in row)
    assert base.rstrip(" │").endswith("1.000")
    assert "ideal" not in "".join(rows)
    assert "more combinations (--all-algorithms)" in out
    argv += ["--all-algorithms", "-a", "ring", "-a", "direct", "-a", "hierarchical"]
    assert run([*argv, "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert run(argv) == 0
    out = capsys.readouterr().out
    assert len([line for line in out.splitlines() if line.startswith("│")]) == len(value["rows"])
    assert "more combinations" not in out


def test_command_shows_the_best_of_each_split(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["train", "--compare", "alexnet", "-t", "torus:2x4@25GB/s,1us"]
    assert run([*argv, "-p", "dp=8", "-p", "dp=4,tp=2"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert [row.split("│")[2].strip() for row in rows] == ["dp=8", "dp=4,tp=2"]
    assert run([*argv, "--baseline", "torus"]) == 2
    assert "--baseline: 'torus' is not compared" in capsys.readouterr().err


@pytest.mark.parametrize("algorithm", ["ideal", "none"])
def test_chunks_are_refused_where_nothing_is_cut(algorithm: str) -> None:
    """By a run, and by a comparison of such alone; beside others they are left out."""
    network, given = "switch:4@100GB/s,1us", {"samples": 4, "chunks": 8}
    said = f"chunks: {algorithm} does not use it; leave it out"
    calls: list[Any] = [
        lambda: hk.train("alexnet", network, algorithm=algorithm, **given),  # type: ignore[arg-type]
        lambda: compare_training("alexnet", network, [algorithm], **given),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(hk.SpecError) as error:
            call()
        assert str(error.value) == said
    found = compare_training("alexnet", network, [algorithm, "themis"], **given)  # type: ignore[arg-type]
    times = {row.algorithm: row.time_ps for row in found.rows}
    for name, chunks in ((algorithm, None), ("themis", 8)):
        alone = hk.train("alexnet", network, algorithm=name, samples=4, chunks=chunks)
        assert times[name] == alone.time_ps
