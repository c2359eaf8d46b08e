"""``auto``: never slower than what is compared, says why, keeps to its limit, remembers what it chose."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

import hocket as hk
from hocket.cli import run
from hocket.files import cache
from hocket.plans import auto, remembered
from hocket.plans.algorithms import BUILTIN
from hocket.plans.choice import ChunkChoice
from hocket.plans.registry import _OWN
from hocket.plans.selection import ENDS

LINK = {"bandwidth": "25 GB/s", "latency": "700 ns"}
NETWORKS = {
    "mesh": hk.topology.load("mesh:2x2", **LINK),
    "mesh without a link": hk.topology.load("mesh:3x3", **LINK).without(links=[("npu0", "npu1")]),
    "ring": hk.topology.load("ring:5", **LINK),
    "switch": hk.topology.load("switch:4", **LINK),
    "switch that sums": hk.topology.offloaded(hk.topology.load("switch:4", **LINK)),
    "boxes joined by NICs": hk.topology.load("box:2x2", **LINK),
    "irregular": hk.topology.load("dgx1_v100").without(links=[("gpu0", "gpu1")]),
}
KINDS = (
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    "all-to-all",
    "broadcast",
    "reduce",
    "scatter",
    "gather",
)
RING = NETWORKS["ring"]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a cache of the test's own."""
    monkeypatch.setenv("HOCKET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "auto"


@pytest.fixture
def no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try what comparisons have, however much work it is, and nothing further."""
    monkeypatch.setattr(auto, "WORK", 1 << 40)
    monkeypatch.setattr(auto._Search, "_further", lambda _: "all")


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Count searches."""
    found: list[str] = []
    search = auto._Search.run

    def counted(self: Any) -> Any:
        found.append(self.collective.kind)
        return search(self)

    monkeypatch.setattr(auto._Search, "run", counted)
    return found  # type: ignore[return-value]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("network", NETWORKS)
def test_never_slower_than_what_is_compared(network: str, kind: str, no_further: None) -> None:
    topology = NETWORKS[network]
    cases = (
        ("8 KB", hk.PlanOptions(trials=2)),
        ("4 MB", hk.PlanOptions(trials=2, latency_model="occupying")),
        ("1 MB", hk.PlanOptions(trials=1, chunks=2)),
    )
    # Whatever is rooted is cut into up to 1,024 chunks, each of which a search looks at.
    rooted = kind in ("broadcast", "reduce") and network != "irregular"
    for size, options in cases[2:] if network == "mesh" or rooted else cases:
        compared = hk.compare(
            kind, topology, size=size, options=options, latency_model=options.latency_model
        )
        plan = hk.plan(kind, topology, size=size, options=options)
        made = plan.selection
        assert made is not None
        took = hk.simulate(plan, latency_model=options.latency_model).time_ps
        assert took <= compared.best.run.time_ps
        assert round(made.time * 1e12) == took
        assert made.times[made.algorithm] == min(made.times.values()) == made.time
        assert made.gap == pytest.approx(took / compared.bound.time_ps - 1)
        if made.ended == "all":
            # It has tried the same algorithms, and found the same times.
            theirs = {each.algorithm: each.run.time_ps for each in compared}
            assert {name: round(each * 1e12) for name, each in made.times.items()} == theirs
            assert made.runner_up in [None, *theirs]


def test_what_is_tried_further_is_no_slower() -> None:
    topology = NETWORKS["irregular"]
    plan = hk.plan("all-gather", topology, size="4 MB", time_limit="1 s")
    best = hk.compare("all-gather", topology, size="4 MB").best
    assert hk.simulate(plan).time_ps <= best.run.time_ps
    made = plan.selection
    assert made is not None
    again = hk.plan(
        "all-gather",
        topology,
        size="4 MB",
        algorithm=made.algorithm,
        chunks=made.chunks,
        **({"seed": made.seed} if made.algorithm == "greedy" else {}),
    )
    assert hk.simulate(again).time == pytest.approx(made.time)


def test_it_ends_at_the_bound_and_says_so() -> None:
    plan = hk.plan("all-gather", RING, size="5 MB", time_limit="100 s")
    made = plan.selection
    assert made is not None
    assert (made.ended, made.gap) == ("bound", 0.0)
    assert made.left_out["multi-ring"] == auto.SPARED
    assert "multicasts" in made.left_out["in-network"]
    assert "it reaches the bound" in str(made)


def test_it_keeps_to_its_limit_and_says_what_it_left_out() -> None:
    topology = hk.topology.load("torus:12x12", **LINK)
    started = time.monotonic()
    plan = hk.plan("all-reduce", topology, size="32 MB", time_limit="300 ms")
    assert time.monotonic() - started < 10
    assert plan.is_verified
    made = plan.selection
    assert made is not None
    assert made.ended == "time"
    assert made.left_out["multirail-optimal"] == auto.SPARED


def test_a_file_keeps_the_selection_and_named_algorithms_have_none(tmp_path: Path) -> None:
    plan = hk.plan("all-gather", RING, size="5 MB")
    assert plan.selection is not None
    plan.save(tmp_path / "p.parquet")
    assert hk.Plan.load(tmp_path / "p.parquet").selection == plan.selection
    assert hk.plan("all-gather", RING, size="5 MB", algorithm="ring").selection is None
    assert plan.to_dict()["selection"] == plan.selection.to_dict()


def test_the_command_line_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["plan", "all-gather", "-t", "ring:5@25GB/s,700ns", "-s", "5MB"]
    assert run(argv) == 0
    assert "auto: trees, the fastest of " in capsys.readouterr().out
    assert run([*argv, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["selection"]
    assert told["algorithm"] == "trees"
    assert told["ended"] == "bound"


def test_the_command_line_lists_what_was_tried(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["plan", "all-gather", "-t", "mesh:3x3@25GB/s,700ns", "-s", "1MB"]
    for again in (False, True):
        assert run([*argv, "--why"]) == 0
        out = capsys.readouterr().out
        assert run([*argv, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)["selection"]
        for name in told["times_ps"]:
            assert f"\n│ {name} " in out
        for name, why in told["left_out"].items():
            (line,) = [line for line in out.splitlines() if line.endswith(f": {why}")]
            assert line.startswith("left out: ")
            assert name in line
        line = next(line for line in out.splitlines() if line.startswith("auto: "))
        assert ENDS[told["ended"]] in line
        assert line.endswith(", remembered from an earlier search") == again
        assert "(--why)" not in out


@pytest.mark.parametrize("more", [["-a", "ring"], ["-a", "symmetric"], ["--timetable-only"]])
def test_only_a_choice_has_a_reason(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "all-gather", "-t", "ring:5@1GB/s,1us", "-s", "5MB", "--why", *more]) == 2
    told = capsys.readouterr().err
    assert told.startswith("hocket: --why: ")
    assert told.count("\n") == 1


# What is remembered


def test_a_choice_is_remembered_and_the_plan_made_again(kept: Path, searches: list[str]) -> None:
    first = hk.plan("all-reduce", RING, size="1 MB", time_limit="300 ms")
    again = hk.plan("all-reduce", RING, size="1 MB", time_limit="300 ms")
    assert len(searches) == 1
    assert first.selection is not None
    assert again.selection == replace(first.selection, cached=True)
    assert again.is_verified
    assert again.to_frame().equals(first.to_frame())
    assert str(again.selection) == f"{first.selection}, remembered from an earlier search"
    assert len(list(kept.glob("*.json"))) == 1


def test_any_other_question_is_searched_anew(kept: Path, searches: list[str]) -> None:
    def ask(kind: str = "all-gather", topology: Any = RING, size: int = 10**6, **more: Any) -> None:
        hk.plan(kind, topology, size=size, **{"time_limit": "100 ms", **more})

    ask()
    faster = hk.topology.load("ring:5", bandwidth="26 GB/s", latency="700 ns")
    for count, change in enumerate(
        (
            {"kind": "reduce-scatter"},
            {"topology": faster},
            {"topology": RING.without(links=[("npu0", "npu1")])},
            {"size": 10**6 + 1},
            {"chunks": 2},
            {"latency_model": "occupying"},
            {"npus": [0, 1, 2]},
            {"in_place": False},
            {"time_limit": "110 ms"},
            {"seed": 1},
        ),
        2,
    ):
        ask(**change)
        assert len(searches) == count
    ask()
    assert len(searches) == count


def test_it_can_be_turned_off(
    kept: Path, searches: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hk.plan("all-gather", RING, size="5 MB", cache=False)
    assert run(["plan", "all-gather", "-t", "ring:5@1GB/s,1us", "-s", "5MB", "--no-cache"]) == 0
    monkeypatch.setenv("HOCKET_CACHE", "off")
    hk.plan("all-gather", RING, size="5 MB")
    assert not kept.exists()
    assert len(searches) == 3
    with pytest.raises(hk.SpecError, match="cache"):
        hk.PlanOptions(cache="no")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        "{}",
        '{"algorithm": 3}',
        '{"algorithm": "ring", "chunks": -1, "seed": 0, "time_ps": 1, "bound_ps": 1, "plans": 1, '
        '"times_ps": {"ring": 1}, "left_out": {}, "ended": "all"}',
        '{"algorithm": "ring", "chunks": 1, "seed": 0, "time_ps": 1, "bound_ps": 1, "plans": 1, '
        '"times_ps": {"ring": 1}, "left_out": {}, "ended": "all"}',
        '{"algorithm": "tto", "chunks": 1, "seed": 0, "time_ps": 9000000000, "bound_ps": 1, "plans": 1, '
        '"times_ps": {"tto": 9000000000}, "left_out": {}, "ended": "all"}',
        '{"algorithm": ["ring"], "chunks": 1, "seed": 0, "time_ps": 1, "bound_ps": 1, "plans": 1, '
        '"times_ps": {"ring": 1}, "left_out": {}, "ended": ["all"]}',
        '{"algorithm": "ring", "chunks": 4294967296, "seed": 0, "time_ps": 1, "bound_ps": 1, "plans": 1, '
        '"times_ps": {"ring": 1}, "left_out": {}, "ended": "all"}',
        '{"algorithm": "ring", "chunks": 1, "seed": 0, "time_ps": 1, "bound_ps": 18446744073709551616, '
        '"plans": 1, "times_ps": {"ring": 16000000, "chain": 1%s}, "left_out": {}, "ended": "all"}'
        % ("0" * 400),
    ],
    ids=range(12),
)
def test_what_cannot_be_read_or_is_wrong_is_searched_anew(
    text: str, kept: Path, searches: list[str]
) -> None:
    first = hk.plan("all-gather", RING, size="5 MB")
    (file,) = kept.glob("*.json")
    right = file.read_text()
    file.write_text(text)
    again = hk.plan("all-gather", RING, size="5 MB")
    assert again.selection == first.selection
    assert len(searches) == 2
    assert file.read_text() == right


def test_a_folder_that_cannot_be_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/dev/null"), "a\0b"):
        if "\0" in str(folder):
            monkeypatch.setattr(cache, "cache_folder", lambda: Path("a\0b"))
        else:
            monkeypatch.setenv("HOCKET_CACHE", str(folder))
        assert hk.plan("all-gather", RING, size="5 MB").selection is not None
    monkeypatch.undo()


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOCKET_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache.cache_folder() == Path("/x/hocket")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/h")
    assert cache.cache_folder() == Path("/h/.cache/hocket")


def test_what_was_not_used_for_longest_goes(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST", 10)
    for i in range(10):
        cache.keep("auto", f"{i}", {"i": i})
        time.sleep(0.002)
    assert cache.recall("auto", "0") == {"i": 0}
    time.sleep(0.002)
    cache.keep("auto", "10", {})
    assert {file.stem for file in kept.glob("*")} == {"0", *map(str, range(3, 11))}


def test_a_first_plan_is_made_within_the_limit() -> None:
    """What promises most takes over ten seconds here."""
    network = hk.topology.rail(64, 8, bandwidth="50 GB/s", latency="1 us").without(nodes=["npu5"])
    made = hk.plan("all-to-all", network, size="64 MB", time_limit="400 ms").selection
    assert made is not None
    assert (made.ended, made.plans) == ("time", 1)
    assert BUILTIN[made.algorithm].making == "rule"


def test_the_best_plan_without_a_search_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def passed(_: auto._Search) -> None:
        raise auto._LimitPassedError

    network = hk.topology.load("rail:2x4@50GB/s,1us", failed=["npu0,rail0"])
    monkeypatch.setattr(auto._Search, "_compared", passed)
    made = hk.plan("all-reduce", network, size="64 MB", time_limit="60 s").selection
    assert made is not None
    assert made.ended == "time"
    others = []
    for name, how in BUILTIN.items():
        if how.making == "rule" and "all-reduce" in how.kinds and name in auto.compared():
            with suppress(hk.InfeasibleError):
                plan = hk.plan("all-reduce", network, size="64 MB", algorithm=name, chunks=1)
                others.append(hk.simulate(plan).time_ps)
    assert len(others) > 3
    assert made.time_ps == min(others)


def test_who_listens_has_a_plan_before_any_search(monkeypatch: pytest.MonkeyPatch) -> None:
    class Heard:
        times: ClassVar[list[int]] = []

        def __call__(self, stage: str, done: int, total: int) -> None:
            pass

        def found(self, best: ChunkChoice, bound_ps: int) -> None:
            assert best.time_ps is not None
            self.times.append(best.time_ps)

    monkeypatch.setattr(auto, "WORK", 2_000_000)
    network = NETWORKS["mesh without a link"]
    heard = hk.plan("all-reduce", network, size="1 MB", progress=Heard(), cache=False)
    alone = hk.plan("all-reduce", network, size="1 MB", cache=False)
    assert heard.selection == alone.selection
    assert len(Heard.times) > 1
    assert Heard.times[-1] == min(Heard.times)


def test_what_a_time_limit_cut_is_not_remembered(kept: Path) -> None:
    made = hk.plan("all-reduce", NETWORKS["irregular"], size="1 MB", time_limit="1 ms").selection
    assert made is not None
    assert made.ended == "time"
    assert not kept.exists()


def test_own_algorithms_are_never_remembered(kept: Path, searches: list[str]) -> None:
    @hk.algorithm("fresh", kinds="all-gather")
    def fresh(topology: Any, collective: Any, options: Any) -> Any:
        return hk.plan(collective, topology, algorithm="ring", chunks=1)

    try:
        for _ in range(2):
            hk.plan("all-gather", RING, size="5 MB", time_limit="100 ms")
        assert len(searches) == 2
        assert not kept.exists()
    finally:
        del _OWN["fresh"]


def test_a_choice_that_others_beat_is_searched_anew(
    kept: Path, searches: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto, "WORK", 5_000_000)
    hk.plan("all-reduce", NETWORKS["irregular"], size="1 MB")
    (file,) = kept.glob("*.json")
    found = json.loads(file.read_text())
    file.write_text(json.dumps({**found, "algorithm": "double-binary-tree", "chunks": 1}))
    plan = hk.plan("all-reduce", NETWORKS["irregular"], size="1 MB")
    assert len(searches) == 2
    assert plan.algorithm == found["algorithm"]


def test_hashes_tell_values_apart() -> None:
    collective = hk.collective_on("all-gather", RING, 10**6)
    options = hk.PlanOptions()
    one = remembered.question(collective, RING, options)
    assert one == remembered.question(collective, RING, hk.PlanOptions(cache=False))
    assert one != remembered.question(collective, RING, hk.PlanOptions(routing="ecmp"))
    demands = [(1000, False, [0], [1]), (1000, False, [1], [0, 2])]
    some = [hk.Collective.custom([0, 1, 2], demands[:i]) for i in (1, 2)]
    assert len({remembered.question(each, RING, options) for each in some}) == 2
