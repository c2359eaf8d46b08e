"""``hocket plan`` with greedy, exact, blind and auto: options, output, JSON, refusals."""

from __future__ import annotations

from typing import Any

import pytest

import hocket as hk
from hocket.plans.planner import choose
from hocket.units import format_time_ps

MESH = ("-t", "mesh:3x3", "--bandwidth", "100 GB/s", "--latency", "500 ns")
SWITCH = ("-t", "switch:8", "--bandwidth", "50 GB/s", "--latency", "700 ns")
GATHER = ("plan", "all-gather", *MESH, "-s", "9MB", "-c", "1", "-a")
SWITCHED = ("plan", "all-gather", *SWITCH, "-s", "8MB", "-a", "greedy", "-c", "1")
FIELDS = {
    "method",
    "status",
    "time_ps",
    "simulated",
    "least_ps",
    "gap",
    "slots",
    "least_slots",
    "slot_ps",
    "unwind",
    "seed",
    "elapsed_ps",
}


def test_greedy_says_how_good_it_is(hocket: Any) -> None:
    result = hocket(*GATHER, "greedy", "-v")
    assert (result.code, result.err) == (0, "")
    first, second, third, fourth = result.out.splitlines()
    assert first == (
        "greedy all-gather of 9 MB among 9 NPUs of mesh 3x3: 72 transfers of 9 chunks, proved"
    )
    assert second == "time 42 us: 3.7% above the bound, 40.5 us"
    assert third == "optimal: no timetable of these chunks is shorter"
    assert "not kept" in fourth


def test_exact_counts_slots(hocket: Any) -> None:
    result = hocket(*GATHER, "exact", "-v")
    lines = result.out.splitlines()
    assert lines[1] == "time 42 us: 3.7% above the bound, 40.5 us"
    assert lines[2] == "greedy is faster: 40.5 us with --chunks 4"
    assert lines[3].startswith("4 slots of 10.5 us, optimal: ")


def test_exact_says_of_what_it_is_the_optimum(hocket: Any) -> None:
    result = hocket("plan", "all-reduce", *MESH, "-s", "9MB", "-a", "exact", "-v")
    assert "8 slots of 10.5 us" in result.out
    assert "a reduce-scatter and then an all-gather" in result.out


def test_what_is_left_is_given_as_a_share(hocket: Any) -> None:
    result = hocket(
        "plan", "all-gather", "-t", "dgx1_v100", "-s", "64MB", "-a", "greedy", "-c", "1", "-v"
    )
    assert "% above the least that a timetable of these chunks could take" in result.out


def test_blind_promises_nothing(hocket: Any) -> None:
    result = hocket(*GATHER, "blind", "-v")
    assert result.code == 0
    assert "as if each chunk were alone" in result.out
    assert "optimal" not in result.out


@pytest.mark.parametrize("method", ["greedy", "exact", "blind"])
def test_json_has_the_synthesis(hocket: Any, method: str) -> None:
    value = hocket(*GATHER, method, "--seed", "5", "--json").json()
    made = value["synthesis"]
    assert set(made) == FIELDS
    assert (made["method"], made["seed"], made["unwind"]) == (method, 5, "1")
    assert made["simulated"]
    if method == "blind":
        assert made["time_ps"] > made["least_ps"] == 42_000_000
    else:
        assert made["time_ps"] == 42_000_000
    assert (value["algorithm"], value["verified"], value["file"]) == (method, True, None)
    slots = (made["slots"], made["least_slots"], made["slot_ps"])
    expected = (4, 4, 10_500_000) if method == "exact" else (None, None, None)
    assert slots == expected


def test_other_algorithms_have_no_synthesis(hocket: Any) -> None:
    assert hocket(*GATHER, "ring", "--json").json()["synthesis"] is None


def test_the_seed_is_heard(hocket: Any, folder: Any) -> None:
    for name, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        argv = ("plan", "all-gather", "-t", "dgx1_v100", "-s", "64MB", "-a", "greedy")
        assert hocket(*argv, "--seed", seed, "-o", f"{name}.parquet").code == 0
    plans = [hk.Plan.load(folder / f"{name}.parquet").transfers for name in "abc"]
    ways = [list(zip(p.chunk.tolist(), p.src.tolist(), p.dst.tolist(), strict=True)) for p in plans]
    assert ways[0] == ways[1]
    assert ways[0] != ways[2]


def test_unwinding(hocket: Any) -> None:
    ends = {}
    for unwind in ("1", "2", "3", "ring", "max"):
        made = hocket(*SWITCHED, "--unwind", unwind, "--json").json()["synthesis"]
        assert made["unwind"] == unwind
        ends[unwind] = made["time_ps"]
    # 7 MB reach each NPU one by one, or on top of each other: 20 us a MB, 1.4 us through the switch.
    assert ends["1"] == 149_800_000
    assert ends["3"] == 141_400_000
    best = hocket(*SWITCHED, "--json").json()["synthesis"]
    assert best["time_ps"] <= min(ends.values())


def test_latency_model(hocket: Any) -> None:
    given = (*SWITCHED[:-2], "--unwind", "1", "--chunks", "2", "--json", "--latency-model")
    ends = [
        hocket(*given, model).json()["synthesis"]["time_ps"]
        for model in ("overlapped", "occupying")
    ]
    assert ends == [141_400_000, 150_500_000]


def test_windows(hocket: Any) -> None:
    result = hocket(*GATHER, "exact", "--window", "2", "--json")
    assert (result.code, result.json()["synthesis"]["least_slots"]) == (0, 4)


def test_time_limit(hocket: Any) -> None:
    for method in ("greedy", "exact", "auto"):
        assert hocket(*GATHER, method, "--time-limit", "500 ms").code == 0


def test_a_time_limit_that_passes_names_what_was_not_tried(hocket: Any) -> None:
    result = hocket(*GATHER, "auto", "--time-limit", "1 ns")
    assert (result.code, result.err) == (0, "")
    assert "the fastest of 1 plan by 1 algorithm; the time limit passed (--why)" in result.out
    (note,) = (
        line for line in result.out.splitlines() if line.startswith("not tried to the end: ")
    )
    assert " greedy, " in note
    assert note.endswith("; a longer --time-limit gives more")


@pytest.mark.parametrize("kind", ["all-reduce", "all-gather"])
def test_auto_is_never_worse_than_greedy(hocket: Any, kind: str) -> None:
    times = []
    for method, more in (("greedy", ()), ("auto", ("--time-limit", "2 s"))):
        argv = ("plan", kind, "-t", "dgx1_v100", "-s", "64MB", "-a", method, *more)
        assert hocket(*argv, "-o", f"{method}.parquet").code == 0
        times.append(hocket("simulate", f"{method}.parquet", "--json").json()["time_ps"])
    assert times[1] <= times[0]


def test_a_failed_link(hocket: Any) -> None:
    result = hocket(*GATHER, "greedy", "--failed", "npu0,npu1")
    assert (result.code, result.err) == (0, "")
    assert "without npu0,npu1" in result.out


def test_simulate_and_view_take_what_was_planned(hocket: Any, folder: Any) -> None:
    assert hocket(*GATHER, "exact", "-o", "plan.parquet").code == 0
    assert hocket("check", "plan.parquet").code == 0
    assert hocket("simulate", "plan.parquet", "--json").json()["time_ps"] == 42_000_000
    argv = ("show", "plan.parquet", "--ten", "--json", "--latency-model", "occupying")
    value = hocket(*argv).json()
    assert (value["slots"], value["slot_ps"]) == (4, 10_500_000)


def test_compare_ranks_greedy(hocket: Any) -> None:
    result = hocket("compare", "all-gather", "-t", "dgx1_v100", "-s", "9MB", "--json")
    names = [entry["algorithm"] for entry in result.json()["algorithms"]]
    assert "greedy" in names
    assert not {"exact", "blind", "auto"} & set(names)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("greedy", "--unwind", "foo"), ["'foo'", "degree", "ring", "max"]),
        (("greedy", "--unwind", "0"), ["'0'", "degree"]),
        (("greedy", "--unwind", "1,2,3"), ["'1,2,3'", "3 entries"]),
        (("greedy", "--seed", "-1"), ["seed", "-1", "0 to 2^64 - 1"]),
        (("greedy", "--seed", "99999999999999999999"), ["seed", "2^64"]),
        (("exact", "--window", "0"), ["window", "at least 1"]),
        (("exact", "--window", "-3"), ["window", "-3"]),
        (("greedy", "--time-limit", "0s"), ["--time-limit", "leaves no time"]),
        (("auto", "--time-limit", "0s"), ["--time-limit", "leaves no time"]),
        (("exact", "--time-limit", "soon"), ["--time-limit", "soon"]),
        (("greedy", "--latency-model", "x"), ["--latency-model", "overlapped or occupying"]),
        (("greedy", "--chunks", "0"), ["--chunks", "is given 2 times"]),
        (("greedyy",), ["greedyy", "did you mean 'greedy'?"]),
    ],
    ids=" ".join,
)
def test_refusals(hocket: Any, folder: Any, more: tuple[str, ...], words: list[str]) -> None:
    result = hocket(*GATHER, *more, "-o", "plan.parquet")
    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert [word for word in words if word not in result.err] == []
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("ring", "--seed", "3"), "seed: ring "),
        (("themis", "--unwind", "ring"), "unwind: themis "),
        (("ring", "--trials", "3"), "trials: ring "),
        (("greedy", "--window", "3"), "window: greedy "),
        (("blind", "--slot", "1us"), "slot: blind "),
        (("exact", "--slot", "0ns"), "slot: '0ns' is shorter than a picosecond"),
        (("nope", "--seed", "3"), "there is no algorithm 'nope'"),
    ],
)
def test_what_is_not_heeded_is_refused(hocket: Any, given: tuple[str, ...], said: str) -> None:
    result = hocket(*GATHER, *given)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert len(result.err.splitlines()) == 1


def test_the_slices_are_those_that_compare_takes(hocket: Any) -> None:
    network = ("-t", "dgx1_v100", "-s", "64MB", "-a", "ring")
    compared = hocket("compare", "all-reduce", *network, "--json").json()["algorithms"][0]
    planned = hocket("plan", "all-reduce", *network, "--json").json()
    assert planned["time_ps"] == compared["time_ps"]
    assert planned["chunk_count"] == 8 * compared["chunks"]
    said = hocket("plan", "all-reduce", *network).out
    assert f"the fastest of --chunks 1, 4, 16, 64: {compared['chunks']}\n" in said
    asked = hocket("plan", "all-reduce", *network, "-c", "1", "--json").json()
    assert (asked["chunk_count"], asked["time_ps"] > planned["time_ps"]) == (8, True)


CHAIN = ("-t", "line:5@1GB/s,100us", "-s", "1MB")


def test_exact_says_where_greedy_is_faster(hocket: Any) -> None:
    argv = ("plan", "broadcast", *CHAIN, "-c", "4", "-a")
    greedy = hocket("plan", "broadcast", *CHAIN, "-a", "greedy").out
    assert "time 1.403 ms" in greedy
    assert "greedy is faster: 1.403 ms with --chunks 1024" in hocket(*argv, "exact").out
    assert "greedy is faster" not in hocket(*argv, "greedy").out


@pytest.mark.parametrize("kind", ["broadcast", "all-gather", "reduce-scatter"])
@pytest.mark.parametrize("model", ["overlapped", "occupying"])
def test_exact_is_compared_with_greedy_under_the_same_options(
    hocket: Any, kind: str, model: str
) -> None:
    """What is said of greedy is what a command with the same options and ``-a greedy`` takes."""
    given = ("plan", kind, *CHAIN, "--latency-model", model, "--seed", "3")
    made = hocket(*given, "-a", "exact", "-c", "1").out
    found = hocket(*given, "-a", "greedy", "--json").json()["time_ps"]
    exact = hocket(*given, "-a", "exact", "-c", "1", "--json").json()["time_ps"]
    line = next((each for each in made.splitlines() if each.startswith("greedy is faster")), None)
    assert (line is not None) == (found < exact)
    if line is not None:
        assert f": {format_time_ps(found)} with " in line


def test_a_plan_of_exact_stands_where_greedy_makes_none(
    hocket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*given: Any, **more: Any) -> Any:
        if given[2] == "greedy":
            raise hk.InfeasibleError(None, "greedy found no plan within 0.05 s", "give more time")
        return choose(*given, **more)

    monkeypatch.setattr("hocket.cli.plan.choose", late)
    result = hocket("plan", "broadcast", *CHAIN, "-c", "4", "-a", "exact")
    assert (result.code, result.err) == (0, "")
    assert "time 2.15 ms" in result.out
