"""Fronts of the quickest plans over size: crossovers, ranges, limits, and what the command prints."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import hocket as hk
from hocket.cli import run
from hocket.cli.pareto import _print
from hocket.comparison.halving import _between, _coarse_first
from hocket.plans import registry

SWITCH = "switch:8@1GB/s,1us"
RING = "ring:4@25GB/s,1us"
TWO = ["direct", "binomial"]


def test_the_crossover_is_where_both_take_as_long() -> None:
    # Direct sends S seven times over one link, and the last cuts through: 7 S/B + 2 l. Binomial takes
    # three steps of S/B + 2 l. They meet at S = l B = 1,000 bytes.
    for precision in (0.2, 0.01):
        front = hk.pareto(
            "broadcast",
            SWITCH,
            sizes="64B:1M:x16",
            algorithms=TWO,
            chunks=1,
            precision=precision,
            tolerance=0,
        )
        assert [each.algorithm for each in front] == TWO
        low, high = front.ranges[0].last.size, front.ranges[1].first.size
        assert low <= 1_000 <= high <= low * (1 + precision)
        assert front.is_complete
        (change,) = front.crossovers
        assert change == (float(high), "direct", "binomial")


def test_every_range_is_what_its_plan_takes() -> None:
    front = hk.pareto("all-reduce", RING, sizes="256B:4M:x16")
    sizes = [size for each in front for size in (each.first.size, each.last.size)]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (256, 256 << 12)
    for each in front:
        for end in (each.first, each.last):
            plan = hk.plan(
                "all-reduce", RING, size=end.size, algorithm=each.algorithm, chunks=each.chunks
            )
            made = hk.simulate(plan)
            assert (made.time_ps, made.algbw, made.busbw) == (end.time_ps, end.algbw, end.busbw)
            assert (made.lower_bound.time_ps, made.gap) == (end.bound_ps, end.gap)
    for before, after in pairwise(front):
        assert after.first.size <= before.last.size * (1 + front.options.precision)


def test_no_algorithm_is_quicker_than_the_front_where_it_was_measured() -> None:
    mesh, names = "mesh:3x3@25GB/s,1us", ["ring", "direct", "multitree", "ring-2d"]
    front = hk.pareto("all-gather", mesh, sizes="1K,64K,4M", algorithms=names, tolerance=0)
    assert len(front.points) > 3
    for point in front.points:
        best = hk.compare("all-gather", mesh, size=point.size, algorithms=names).best
        assert best.run.time_ps == point.time_ps


@pytest.mark.slow
def test_what_a_tolerance_keeps() -> None:
    def front(tolerance: float) -> hk.Pareto:
        return hk.pareto("all-reduce", RING, sizes="256B:4M:x4", tolerance=tolerance)

    exact, kept = front(0), front(0.5)
    assert len(kept) < len(exact)
    quickest = {each.size: each.time_ps for each in exact.points}
    shared = [each for each in kept.points if each.size in quickest]
    assert len(shared) >= 8
    assert all(each.time_ps <= 1.5 * quickest[each.size] for each in shared)
    assert any(each.time_ps > quickest[each.size] for each in shared)


def test_a_table_that_a_runtime_switches_on() -> None:
    front = hk.pareto("broadcast", SWITCH, sizes="64B:1M:x16", algorithms=TWO, chunks=1)
    second = front.ranges[1]
    assert front.at(1).algorithm == "direct"
    assert front.at(second.first.size - 1).algorithm == "direct"
    assert front.at(second.first.size) == front.at("1 GB") == second
    with pytest.raises(hk.SpecError, match="size: "):
        front.at("much")


def test_what_is_not_measured_in_time_is_missing() -> None:
    front = hk.pareto("all-reduce", RING, sizes="1K:1M:x4", within="1 us")
    assert [each.size for each in front.points] == [1 << 10]
    assert front.missing == tuple(1 << power for power in range(12, 21, 2))
    assert not front.is_complete
    data = front.to_dict()
    assert (data["is_complete"], data["missing_bytes"]) == (False, list(front.missing))


def test_where_the_plan_changes_may_not_be_found_in_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = hk.pareto("broadcast", SWITCH, sizes="64B:1M:x16", algorithms=TWO, chunks=1)
    assert whole.holes == whole.to_dict()["holes_bytes"] == []
    front = replace(whole, points=(whole.points[0], whole.points[-1]), missing=(1024,))
    assert front.holes == [(64, 1 << 18)]
    assert front.to_dict()["holes_bytes"] == [[64, 1 << 18]]
    assert not front.is_complete
    assert front.at(1 << 17) == front.ranges[0]
    _print(front)
    printed = capsys.readouterr().out
    assert "\nnot simulated: 1 KiB\n" in printed
    assert (
        "\nnot known where the plan changes: 64 B to 256 KiB; keep the row above there\n" in printed
    )


@pytest.mark.slow
@pytest.mark.parametrize("network", ["torus:4x4@25GB/s,500ns", "dgx_a100_2box"])
def test_a_row_is_what_its_command_makes(network: str, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["-t", network, "-a", "symmetric", "--json"]
    assert run(["compare", "--front", *argv, "--sizes", "64K:16M:x16"]) == 0
    rows = json.loads(capsys.readouterr().out)["ranges"]
    assert len({row["chunks"] for row in rows}) > 1
    for row in rows:
        for end in ("from", "to"):
            given = ["-c", str(row["chunks"]), "-s", f"{row[f'{end}_bytes']}B"]
            assert run(["plan", "all-reduce", *argv, *given]) == 0
            made = json.loads(capsys.readouterr().out)
            assert made["pieces"] == row["chunks"]
            # Where blocks differ by a byte, one block for all takes as long as the longest.
            longest = 1 if network.startswith("torus") else 1.001
            assert 1 <= made["time_ps"] / row[f"{end}_time_ps"] <= longest


def test_an_algorithm_of_ones_own_is_in_the_front(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_OWN", {})

    @hk.algorithm("best", kinds="broadcast")
    def best(topology: hk.Topology, collective: hk.Collective, options: hk.PlanOptions) -> hk.Plan:
        return hk.plan(collective, topology, algorithm="direct", chunks=1)

    front = hk.pareto("broadcast", "line:2@1GB/s,1us", sizes="1B,1K", algorithms=["ring", "best"])
    assert [each.algorithm for each in front] == ["best"]
    unasked = hk.pareto("broadcast", "line:2@1GB/s,1us", sizes="1K", tolerance=0)
    assert "best" not in unasked.refused


def test_one_size_is_a_front_of_one_range() -> None:
    front = hk.pareto("all-reduce", RING, sizes=4096, algorithms=["ring"])
    assert len(front) == len(front.points) == 1
    assert front.ranges[0].first == front.ranges[0].last
    assert repr(front) == "<Pareto of all-reduce on 'ring 4': 1 range from 4 KiB to 4 KiB>"
    assert front.is_complete


def test_progress_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[tuple[str, int, int]] = []
    front = hk.pareto(
        "broadcast",
        SWITCH,
        sizes="64B:1M:x16",
        algorithms=TWO,
        progress=lambda *each: told.append(each),
    )
    sizes = [each for each in told if each[0].endswith("B")]
    assert [done for _, done, _ in sizes] == list(range(len(front.points)))
    assert all(done < total for _, done, total in sizes)


def test_sizes_between_others() -> None:
    assert _coarse_first([1, 2, 3, 4, 5]) == [1, 5, 3, 2, 4]
    assert _coarse_first([7]) == [7]
    for low, high in ((1, 3), (1000, 1051), (1 << 20, 1 << 30)):
        assert low < _between(low, high, 0.05) < high


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: hk.pareto("all-reduce", RING, sizes="1M:1K:x4"), "ends before it begins"),
        (lambda: hk.pareto("all-reduce", RING, sizes="0:1K:x4"), "sizes: "),
        (lambda: hk.pareto("all-reduce", RING, sizes=[]), "sizes: there is none"),
        (lambda: hk.pareto("all-reduce", RING, algorithms=["rings"]), "did you mean 'ring'?"),
        (lambda: hk.pareto("all-reduce", RING, algorithms=["hdrm"]), "hdrm: it needs a BiGraph"),
        (lambda: hk.pareto("all-reduce", RING, precision=0), "precision: 0 is not valid"),
        (lambda: hk.pareto("all-reduce", RING, precision="5"), "precision: '5' is not a number"),
        (lambda: hk.pareto("all-reduce", RING, tolerance=-1), "tolerance: -1 is not valid"),
        (lambda: hk.pareto("all-reduce", RING, within="0s"), "within: "),
        (lambda: hk.pareto("all-reduce", RING, presision=1), "did you mean precision?"),
        (lambda: hk.pareto("all-reduce", RING, front=3), "3 is not a ParetoOptions"),  # type: ignore[arg-type]
        (lambda: hk.pareto(3, RING), "kind: 3"),  # type: ignore[arg-type]
        (lambda: hk.pareto("all-reduce", "ring:4"), "bandwidth"),
        (lambda: hk.pareto("all-reduce", RING, fidelity="dimension"), "fidelity: "),
    ],
)
def test_what_makes_no_sense_is_refused(call: Callable[[], object], says: str) -> None:
    with pytest.raises(hk.Error) as error:
        call()
    assert says in str(error.value)
    assert "\n" not in str(error.value)


COMMAND = [
    "compare",
    "--front",
    "broadcast",
    "-t",
    SWITCH,
    "-c",
    "1",
    "-a",
    "direct",
    "-a",
    "binomial",
]
COMMAND += ["--sizes", "64B:1M:x16"]


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table, picture = tmp_path / "table.csv", tmp_path / "front.svg"
    assert run([*COMMAND, "-o", str(table), "--plot", str(picture)]) == 0
    printed = capsys.readouterr().out
    assert "from 64 B to 1 MiB" not in printed
    assert printed.startswith("broadcast of 64 B to ")
    assert "switching sizes to 5.0%; all plans proved\n" in printed
    assert picture.read_bytes().startswith(b"<?xml")
    assert run([*COMMAND, "--csv"]) == 0
    text = capsys.readouterr().out
    assert table.read_text() == text
    assert run([*COMMAND, "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["algorithm"] for row in rows] == TWO
    assert rows == [{key: str(each[key]) for key in each} for each in value["ranges"]]
    assert run([*COMMAND, "--within", "1us"]) == 0
    assert "not all was simulated in time (--within)" in capsys.readouterr().out
    assert run([*COMMAND, "--within", "60 s"]) == 0  # as the help and docs/pareto.md write it
    assert "--within" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["-o", "table.txt"], "--output: 'table.txt' does not end in .csv"),
        (["--plot", "front.txt"], "front.txt"),
        (["--precision", "2"], "--precision: 2.0 is not valid"),
        (["--within", "soon"], "--within: "),
        (["-s", "0B"], "--size: "),
    ],
)
def test_the_command_refuses(
    argv: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run([*COMMAND, *argv]) == 2
    caught = capsys.readouterr()
    assert caught.out == ""
    assert says in caught.err
    assert caught.err.count("\n") == 1


def test_a_file_of_a_collective_has_one_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "--front", "-t", SWITCH, "--sizes", "1M:64B:x2"]) == 2
    assert "--sizes: '1M:64B:x2' ends before it begins" in capsys.readouterr().err
    assert run(["compare", "--front", "mine.yml", "-t", SWITCH]) == 2
    assert "COLLECTIVE: 'mine.yml' has a size of its own" in capsys.readouterr().err
