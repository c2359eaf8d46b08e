"""Synthesized plans: greedy, exact, blind and auto, what is said of them, and what is refused."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import hocket as hk
from hocket import _core

METHODS = ("greedy", "exact", "blind")
KINDS = (
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "all-to-all",
)


def mesh(rows: int = 3, columns: int = 3) -> hk.Topology:
    """Over a link 1 MB takes 10.5 us."""
    return hk.topology.mesh(rows, columns, bandwidth="100 GB/s", latency="500 ns")


def switch(npus: int = 8) -> hk.Topology:
    return hk.topology.switch(npus, bandwidth="50 GB/s", latency="700 ns")


def columns(plan: hk.Plan) -> list[list[int]]:
    moved = plan.transfers
    parts = (moved.chunk, moved.chunk_count, moved.src, moved.dst, moved.op, moved.wait, moved.path)
    return [part.tolist() for part in parts]


def made(plan: hk.Plan) -> hk.Synthesis:
    assert plan.synthesis is not None
    return plan.synthesis


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_collective_is_planned_and_proved(kind: str, method: str) -> None:
    topo = hk.topology.mesh(2, 3, bandwidth="100 GB/s", latency="500 ns")
    plan = hk.plan(kind, topo, size="6 MB", algorithm=method, chunks=2, time_limit="5 s").verify()
    assert plan.algorithm == method or (method, plan.algorithm) == ("exact", "greedy")
    assert plan.link_order == ("ready" if method == "blind" else "plan")
    run = hk.simulate(plan)
    assert run.time_ps >= hk.bound(topo, plan.collective).time_ps
    assert (made(plan).time, made(plan).simulated) == (pytest.approx(run.time), True)
    assert made(plan).least <= made(plan).time


def test_greedy_says_what_it_found() -> None:
    plan = hk.plan("all-gather", mesh(), size="9 MB", algorithm="greedy", seed=3, chunks=1).verify()
    said = made(plan)
    assert (said.method, said.status, said.seed, said.gap) == ("greedy", "optimal", 3, 0.0)
    assert said.time == said.least == pytest.approx(42e-6)  # eight chunks over two links
    assert (said.slots, said.least_slots, said.slot) == (None, None, None)
    assert said.seconds > 0
    assert hk.simulate(plan).time == pytest.approx(42e-6)


def test_exact_is_optimal_on_a_mesh() -> None:
    said = made(hk.plan("all-gather", mesh(), size="9 MB", algorithm="exact").verify())
    assert (said.method, said.status) == ("exact", "optimal")
    assert (said.slots, said.least_slots, said.slot) == (4, 4, pytest.approx(10.5e-6))
    assert said.time == said.least == pytest.approx(42e-6)


def test_exact_solves_an_all_reduce_in_two_phases() -> None:
    plan = hk.plan("all-reduce", mesh(), size="9 MB", algorithm="exact").verify()
    said = made(plan)
    assert (said.slots, said.least_slots, said.status) == (8, 8, "optimal")
    assert len(plan) == 2 * 9 * 8


def test_exact_is_shorter_than_greedy_where_links_differ() -> None:
    dgx = hk.topology.load("dgx1_v100")
    greedy = hk.plan("all-gather", dgx, size="64 MB", algorithm="greedy", chunks=1)
    exact = hk.plan("all-gather", dgx, size="64 MB", algorithm="exact", chunks=1).verify()
    assert made(exact).slots == 3
    assert hk.simulate(exact).time_ps <= hk.simulate(greedy).time_ps


@pytest.mark.parametrize("window", [1, 2, 4])
def test_windows_make_right_plans(window: int) -> None:
    plan = hk.plan("all-gather", mesh(), size="9 MB", algorithm="exact", window=window).verify()
    said = made(plan)
    assert said.slots is not None
    assert said.least_slots is not None
    assert said.slots >= said.least_slots == 4


def test_blind_meets_others_where_greedy_does_not() -> None:
    topo = hk.topology.mesh(4, 4, bandwidth="100 GB/s", latency="500 ns")
    times = {}
    for method in ("greedy", "blind"):
        plan = hk.plan("all-to-all", topo, size="16 MB", algorithm=method).verify()
        times[method] = hk.simulate(plan).time_ps
        assert made(plan).method == method
    assert times["greedy"] <= times["blind"]
    assert made(plan).status == "feasible"


def test_auto_keeps_the_best() -> None:
    plan = hk.plan("all-reduce", mesh(), size="9 MB", algorithm="auto", time_limit="1 s").verify()
    time_ps = hk.simulate(plan).time_ps
    for method in ("greedy", "ring", "bidirectional-ring"):
        other = hk.plan("all-reduce", mesh(), size="9 MB", algorithm=method)
        assert time_ps <= hk.simulate(other).time_ps


def test_auto_stops_at_the_bound() -> None:
    topo = hk.topology.ring(4, bandwidth="1 GB/s", latency="1 us")
    plan = hk.plan("all-gather", topo, size="4 MB", algorithm="auto", time_limit="60 s").verify()
    run = hk.simulate(plan)
    assert run.gap < 0.01


@pytest.mark.parametrize("method", ["greedy", "blind"])
def test_the_same_seed_makes_the_same_plan(method: str) -> None:
    topo = hk.topology.load("dgx1_v100")
    same = [
        hk.plan("all-gather", topo, size="64 MB", algorithm=method, seed=7, chunks=1)
        for _ in range(2)
    ]
    assert columns(same[0]) == columns(same[1])


def test_exact_is_as_short_every_time() -> None:
    topo = hk.topology.load("dgx1_v100")
    plans = [hk.plan("all-gather", topo, size="64 MB", algorithm="exact") for _ in range(3)]
    assert {(made(plan).slots, made(plan).status) for plan in plans} == {(3, "optimal")}


def test_the_seed_matters() -> None:
    topo = hk.topology.load("dgx1_v100")
    plans = {
        str(columns(hk.plan("all-gather", topo, size="64 MB", algorithm="greedy", seed=seed)))
        for seed in range(4)
    }
    assert len(plans) > 1


# Switches


@pytest.mark.parametrize(("unwind", "time"), [("1", 149.8e-6), ("3", 141.4e-6), ("max", 141.4e-6)])
def test_unwinding_decides(unwind: str, time: float) -> None:
    """Of three edges each, the last round uses one: the timetable is longer than the plan made of it."""
    plan = hk.plan(
        "all-gather", switch(), size="8 MB", algorithm="greedy", unwind=unwind, chunks=1
    ).verify()
    assert made(plan).unwind == unwind
    assert made(plan).least <= made(plan).time == pytest.approx(time)
    assert made(plan).gap == 0.0


def test_the_best_unwinding_is_found() -> None:
    plan = hk.plan("all-gather", switch(), size="8 MB", algorithm="greedy")
    ways = [
        hk.plan("all-gather", switch(), size="8 MB", algorithm="greedy", unwind=unwind)
        for unwind in ("1", "ring", "max")
    ]
    assert made(plan).time == min(made(way).time for way in ways)


def test_one_unwinding_for_each_dimension() -> None:
    topo = hk.topology.product(
        "Ring_SW", [4, 4], bandwidth=["100 GB/s", "50 GB/s"], latency=["500 ns", "700 ns"]
    )
    plan = hk.plan("all-gather", topo, size="16 MB", algorithm="greedy", unwind="1, ring").verify()
    assert made(plan).unwind == "1,ring"


@pytest.mark.parametrize(
    ("unwind", "words"),
    [
        ("foo", ["'foo'", "degree", "ring", "max"]),
        ("", ["''", "degree"]),
        ("0", ["'0'", "degree"]),
        ("-1", ["'-1'", "degree"]),
        ("1,2", ["'1,2'", "2 entries", "one entry"]),
    ],
)
def test_an_unwinding_that_is_none(unwind: str, words: list[str]) -> None:
    with pytest.raises(hk.SpecError) as caught:
        hk.plan("all-gather", switch(), size="8 MB", algorithm="greedy", unwind=unwind)
    message = str(caught.value)
    assert "\n" not in message
    assert [word for word in words if word not in message] == []


# Latency


def test_occupying_holds_a_link_during_its_latency() -> None:
    times = {
        latency: made(
            hk.plan(
                "all-gather",
                switch(),
                size="8 MB",
                algorithm="greedy",
                unwind="1",
                chunks=2,
                latency_model=latency,  # type: ignore[arg-type]
            )
        ).time
        for latency in ("overlapped", "occupying")
    }
    assert times["overlapped"] == pytest.approx(14 * 10e-6 + 1.4e-6)
    assert times["occupying"] == pytest.approx(14 * 10.7e-6 + 0.7e-6)


# What is refused


@pytest.mark.parametrize("method", [*METHODS, "auto"])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"seed": -1}, ["seed", "-1", "0 to 2^64 - 1"]),
        ({"seed": 1 << 64}, ["seed"]),
        ({"seed": 1.5}, ["seed", "1.5"]),
        ({"window": 0}, ["window"]),
        ({"time_limit": "0 s"}, ["time_limit", "0 leaves no time"]),
        ({"time_limit": "soon"}, ["time_limit", "'soon'"]),
        ({"time_limit": "-1 s"}, ["time_limit", "negative"]),
        ({"latency_model": "none"}, ["latency", "overlapped", "occupying"]),
        ({"chunks": 0}, ["chunks", "1 or more"]),
        ({"chunks": 10_000_000}, ["720000000 transfers", "fewer"]),
    ],
    ids=str,
)
def test_bad_options(method: str, given: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(hk.Error) as caught:
        hk.plan("all-gather", mesh(), size="9 MB", algorithm=method, **given)
    message = str(caught.value)
    assert "\n" not in message
    assert [word for word in words if word not in message] == []


def test_bad_numbers_of_trials_and_factors() -> None:
    for name in ("trials", "slot"):
        with pytest.raises(hk.SpecError, match=name):
            hk.PlanOptions(**{name: 0})


@pytest.mark.parametrize("method", [*METHODS, "auto"])
def test_who_cannot_be_reached_is_named(method: str) -> None:
    line = hk.topology.line(4, bandwidth="1 GB/s", latency="1 us")
    broken = line.without(links=[("npu1", "npu2")])
    with pytest.raises(hk.InfeasibleError) as caught:
        hk.plan("all-gather", broken, size="4 MB", algorithm=method)
    assert caught.value.origin == ("trees" if method == "auto" else method)
    said = (
        'no path of links leads from "npu0" to "npu2"',
        "NPU 2 needs chunk 0, and there is no way to it from NPU 0, which holds it",
    )
    assert caught.value.why.startswith(said)
    # Those who can be reached are planned for.
    hk.plan("all-gather", broken, size="4 MB", algorithm=method, npus=[0, 1], chunks=1).verify()


def without_ortools(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == "ortools":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)


def test_a_missing_solver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    without_ortools(monkeypatch)
    # Here greedy meets the bound, so that there is nothing to solve.
    hk.plan("all-gather", mesh(), size="9 MB", algorithm="exact").verify()
    with pytest.raises(hk.SpecError, match=r"pip install 'hocket\[exact\]'") as caught:
        hk.plan("all-gather", hk.topology.load("dgx1_v100"), size="64 MB", algorithm="exact")
    assert "\n" not in str(caught.value)
    # auto does with what there is.
    topo = hk.topology.load("dgx1_v100")
    hk.plan("all-gather", topo, size="64 MB", algorithm="auto", chunks=1).verify()


# Failures, participants, several at once


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["all-gather", "all-reduce"])
def test_failures_are_planned_round(kind: str, method: str) -> None:
    whole = mesh()
    for broken in (
        whole.without(links=[("npu0", "npu1"), ("npu4", "npu5")]),
        whole.without(nodes=["npu4"]),
    ):
        plan = hk.plan(kind, broken, size="9 MB", algorithm=method, time_limit="5 s").verify()
        run = hk.simulate(plan)
        assert run.time_ps >= hk.bound(broken, plan.collective).time_ps


@pytest.mark.parametrize("method", METHODS)
def test_npus_that_do_not_take_part_pass_chunks_on(method: str) -> None:
    corners = [0, 2, 6, 8]
    plan = hk.plan("all-gather", mesh(), size="4 MB", algorithm=method, npus=corners).verify()
    others = set(plan.transfers.src.tolist()) - set(corners)
    assert others <= {1, 3, 4, 5, 7}
    assert others


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["reduce", "reduce-scatter", "all-reduce"])
def test_npus_that_do_not_take_part_pass_sums_on(kind: str, method: str) -> None:
    line = hk.topology.line(3, bandwidth="1 GB/s", latency="1 us")
    hk.plan(kind, line, size="2 MB", algorithm=method, npus=[0, 2], chunks=1).verify()


def gathers(topo: hk.Topology) -> list[hk.Collective]:
    return [
        hk.collective_on("all-gather", topo, "16 MB", npus=npus)
        for npus in ([0, 5, 10, 15], [3, 6, 9, 12])
    ]


@pytest.mark.parametrize("method", [*METHODS, "auto"])
def test_several_at_once(method: str) -> None:
    topo = mesh(4, 4)
    # ``auto`` tries several numbers of chunks until its time is over.
    chunks, limit = (None, "500 ms") if method == "auto" else (1, "5 s")
    both = hk.plan_together(
        gathers(topo), topo, algorithm=method, time_limit=limit, chunks=chunks
    ).verify()
    assert both.collective.kind == "custom"
    assert both.collective.size == 32_000_000
    if chunks is not None:
        assert both.chunks == 8
    alone = hk.plan_together(
        gathers(topo)[:1], topo, algorithm=method, time_limit=limit, chunks=chunks
    )
    assert hk.simulate(both).time_ps >= hk.simulate(alone.verify()).time_ps


def test_sums_and_copies_of_different_tenants_overlap() -> None:
    topo = mesh()
    scattered = hk.collective_on("reduce-scatter", topo, "9 MB")
    gathered = hk.collective_on("all-gather", topo, "9 MB")
    plan = hk.plan_together([scattered, gathered], topo).verify()
    after = 2 * hk.simulate(hk.plan_together([gathered], topo)).time_ps
    assert hk.simulate(plan).time_ps <= after
    assert sorted(np.unique(plan.transfers.op)) == [0, 1]


def test_nothing_to_plan_together() -> None:
    with pytest.raises(hk.SpecError, match="one or more"):
        hk.plan_together([], mesh())


# Beside the other algorithms


def test_compare_tries_several_numbers_of_chunks() -> None:
    tried: dict[str, list[int]] = {}

    def note(algorithm: str, chunks: int, run: hk.Run) -> None:
        tried.setdefault(algorithm, []).append(chunks)

    found = hk.compare("all-reduce", hk.topology.load("dgx1_v100"), size="256 MB", on_result=note)
    assert found.best.algorithm == "nccl-ring"
    assert tried["greedy"] == [1, 4, 16]
    assert not {"exact", "blind", "auto"} & set(tried)
    assert found.best.run.gap < 0.1


def test_compare_takes_the_others_by_name() -> None:
    found = hk.compare(
        "all-gather", mesh(), size="9 MB", algorithms=["exact", "blind", "ring"], time_limit="5 s"
    )
    assert {entry.algorithm for entry in found} == {"exact", "blind", "ring"}
    assert found.best.algorithm != "ring"


def test_algorithms_lists_them() -> None:
    kinds = {each.name: each.kinds for each in hk.algorithms()}
    for method in (*METHODS, "auto"):
        assert set(kinds[method]) == set(KINDS)


def test_a_plan_from_a_file_knows(tmp_path: Any) -> None:
    plan = hk.plan("all-gather", mesh(), size="9 MB", algorithm="greedy")
    plan.save(tmp_path / "plan.parquet")
    read = hk.Plan.load(tmp_path / "plan.parquet").verify()
    assert read.synthesis == plan.synthesis
    again = hk.plan("all-gather", mesh(), size="9 MB", algorithm="greedy")
    again.save(tmp_path / "again.parquet")
    files = [(tmp_path / f"{name}.parquet").read_bytes() for name in ("plan", "again")]
    assert files[0] == files[1]
    assert (read.algorithm, read.link_order) == ("greedy", "plan")
    assert hk.simulate(read).time_ps == hk.simulate(plan).time_ps
    assert hk.plan("all-gather", mesh(), size="9 MB", algorithm="ring").synthesis is None


def test_slots_in_which_nothing_is_sent_cost_nothing() -> None:
    """A millisecond of latency is a million slots of a byte."""
    topo = hk.topology.mesh(8, 8, bandwidth="400 GB/s", latency="1 ms")
    plan = hk.plan("all-gather", topo, size=64, algorithm="greedy").verify()
    assert made(plan).status == "optimal"
    assert made(plan).time == pytest.approx(14e-3, rel=1e-3)


def test_large_networks_are_bounded_by_distance_too() -> None:
    topo = hk.topology.mesh(32, 32, bandwidth="100 GB/s", latency="1 us")
    found = hk.timetable(hk.collective_on("all-gather", topo, 8192), topo)
    assert found.least >= 62e-6
    assert found.end <= 1.01 * found.least


@pytest.mark.parametrize("method", METHODS)
def test_sums_of_some_that_others_want(method: str) -> None:
    """Nobody is sent a sum that is complete where he passed it on."""
    topo = hk.topology.line(4, bandwidth="1 GB/s", latency="0 ns")
    for holders, wanted in (([3, 1], [2, 0]), ([0, 3], [1, 2]), ([1], [0, 3]), ([2, 3], [0])):
        demand = (1_000_000, True, holders, wanted)
        collective = hk.Collective.custom([0, 1, 2, 3], [demand])
        plan = hk.plan_together([collective], topo, algorithm=method, chunks=2).verify()
        assert hk.simulate(plan).time_ps >= hk.bound(topo, plan.collective).time_ps


def test_bytes_of_one_npu_in_several_demands_are_added_up() -> None:
    """Two NPUs: 150 bytes of sums each way over links of 25 and 100 GB/s."""
    demands = [(100, True, [0, 1], [0, 1]), (50, True, [0, 1], [0]), (50, True, [0, 1], [1])]
    graph = nx.DiGraph()
    graph.add_edge("a", "b", bandwidth="25 GB/s", latency="0 ns")
    graph.add_edge("b", "a", bandwidth="100 GB/s", latency="0 ns")
    topo = hk.topology.from_networkx(graph)
    assert hk.bound(topo, hk.Collective.custom([0, 1], demands)).time_ps == 6_000


def test_uneven_chunks_are_called_optimal_only_where_a_byte_is_nothing() -> None:
    ring = hk.topology.ring(9, bandwidth="7.3 GB/s", latency="1 ps")
    small = made(hk.plan("all-gather", ring, size=68, algorithm="greedy", chunks=7))
    assert small.least <= small.time
    assert small.status == "feasible"
    large = made(hk.plan("all-gather", ring, size=10**9, algorithm="greedy", chunks=7))
    assert (large.status, large.gap) == ("optimal", pytest.approx(0, abs=1e-5))


def test_any_seed_goes_to_the_solver() -> None:
    topo = hk.topology.load("dgx1_v100")
    plan = hk.plan("all-gather", topo, size="64 MB", algorithm="exact", seed=(1 << 64) - 1)
    assert made(plan).slots == 3


def test_too_little_time_is_said_so() -> None:
    topo = hk.topology.mesh(10, 10, bandwidth="400 GB/s", latency="5 us")
    with pytest.raises(hk.InfeasibleError, match=r"greedy found no plan within 0\.001 s"):
        hk.plan("all-gather", topo, size="1 GB", algorithm="greedy", chunks=40, time_limit="1 ms")
    for kind, name in (("all-gather", "trees"), ("all-to-all", "flows")):
        with pytest.raises(
            hk.InfeasibleError, match=rf"^{name} found no plan within 1e-06 s; give"
        ):
            hk.plan(kind, topo, size="1 GB", algorithm=name, time_limit=1e-6)
    with pytest.raises(hk.InfeasibleError, match=r"^trees: it does"):
        hk.plan("all-to-all", topo, size="1 GB", algorithm="trees", time_limit=1e-6)


def test_a_window_has_slots() -> None:
    with pytest.raises(hk.SpecError, match=r"^window: 0 is not a whole number of at least 1"):
        hk.plan("all-gather", mesh(), size="9 MB", algorithm="exact", window=0)


def test_misuse_is_refused_in_one_line() -> None:
    gather = hk.collective_on("all-gather", mesh(), "9 MB")
    with pytest.raises(hk.SpecError, match=r"^collectives: 'all-gather' is not a Collective"):
        hk.plan_together(["all-gather"], mesh())  # type: ignore[list-item]
    with pytest.raises(hk.SpecError, match=r"^memory_limit: -1"):
        hk.timetable(gather, mesh(), memory_limit=-1)
    with pytest.raises(hk.SpecError, match=r"^time_limit: 'soon'"):
        hk.PlanOptions(time_limit="soon")  # type: ignore[arg-type]


# One time, one bound


def latent() -> hk.Topology:
    """Where latency is nearly everything: slots hold a link during all of it."""
    return hk.topology.ring(4, bandwidth="100 GB/s", latency="100 us")


def test_exact_gives_greedys_plan_where_that_is_faster() -> None:
    plans = {
        method: hk.plan("all-gather", latent(), size="4 MB", algorithm=method, chunks=8).verify()
        for method in ("greedy", "exact")
    }
    said = made(plans["exact"])
    assert columns(plans["exact"]) == columns(plans["greedy"])
    assert (said.method, plans["exact"].algorithm) == ("exact", "greedy")
    assert (said.slots, said.least_slots) == (12, 12)  # of what was found in slots
    assert said.slot == pytest.approx(101.25e-6)
    assert said.time == made(plans["greedy"]).time == pytest.approx(206.25e-6)
    assert said.least == made(plans["greedy"]).least
    assert said.status == made(plans["greedy"]).status == "optimal"


@pytest.mark.parametrize("latency", ["overlapped", "occupying"])
@pytest.mark.parametrize("kind", ["all-gather", "all-reduce", "broadcast", "all-to-all"])
def test_exact_is_never_slower_than_greedy(kind: str, latency: Any, tmp_path: Path) -> None:
    rates = (1, 25, 10, 10)
    links = [
        f"  - {{a: npu{i}, b: s, bandwidth: {rate} GB/s, latency: 5 us,\n"
        f"     reverse: {{bandwidth: {rate} GB/s, latency: 100 us}}}}"
        for i, rate in enumerate(rates)
    ]
    links.append("  - {a: npu0, b: npu1, bandwidth: 3 GB/s, latency: 700 ns, ways: one}")
    head = ["npus: 4", "switches: [{name: s, limit: 6 GB/s}]", "links:"]
    (tmp_path / "limited.yml").write_text("\n".join([*head, *links, ""]), encoding="utf-8")
    topo = hk.topology.load(tmp_path / "limited.yml")
    times = {}
    for method in ("greedy", "exact"):
        plan = hk.plan(
            kind,
            topo,
            size="1 MB",
            algorithm=method,
            chunks=2,
            latency_model=latency,
            time_limit="3 s",
        ).verify()
        times[method] = hk.simulate(plan, latency_model=latency).time
        assert made(plan).time == pytest.approx(times[method])
        assert made(plan).least <= made(plan).time
        assert made(plan).gap == pytest.approx(times[method] / made(plan).least - 1)
    assert times["exact"] <= times["greedy"]


def test_auto_is_never_slower_than_greedy() -> None:
    for topo in (latent(), switch(3), mesh(2, 2)):
        greedy = hk.plan("all-gather", topo, size="4 MB", algorithm="greedy").verify()
        auto = hk.plan("all-gather", topo, size="4 MB", algorithm="auto", time_limit="1 s").verify()
        assert hk.simulate(auto).time_ps <= hk.simulate(greedy).time_ps


# Links of one direction


@pytest.mark.parametrize("method", [*METHODS, "auto"])
def test_what_hangs_on_a_switch_one_way_is_planned(method: str) -> None:
    graph = nx.DiGraph()
    for name in ("a", "b", "root"):
        graph.add_node(name)
    graph.add_node("s", kind="switch")
    for src, dst in (("a", "s"), ("b", "s"), ("s", "root")):
        graph.add_edge(src, dst, bandwidth="10 GB/s", latency="1 us")
    topo = hk.topology.from_networkx(graph)
    for kind in ("gather", "reduce"):
        plan = hk.plan(kind, topo, size="3 MB", root="root", algorithm=method, time_limit="1 s")
        run = hk.simulate(plan.verify())
        assert run.time_ps >= hk.bound(topo, plan.collective).time_ps
    unreachable = r'no path of links leads from "root" to|no way to it from NPU 2'
    with pytest.raises(hk.InfeasibleError, match=unreachable):
        hk.plan("scatter", topo, size="3 MB", root="root", algorithm=method)


# Times that cannot be told


@pytest.mark.parametrize("method", [*METHODS, "auto"])
def test_times_that_cannot_be_told(method: str) -> None:
    slow = hk.topology.mesh(3, 3, bandwidth="1 kB/s", latency="1 us")
    with pytest.raises(hk.SpecError, match="make sizes smaller or bandwidths larger") as caught:
        hk.plan("all-gather", slow, size="9 TB", algorithm=method)
    assert "213 days" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_slots_that_cannot_be_told() -> None:
    words = r"^slot: in slots of 9000000 s a plan could take longer than 26 days; give a shorter"
    with pytest.raises(hk.SpecError, match=words):
        hk.plan("all-gather", mesh(), size="9 MB", algorithm="exact", slot="9000000 s")


def equal_paths() -> hk.Topology:
    return hk.topology.fat_tree(4, bandwidth="50 GB/s", latency="700 ns")


@pytest.mark.parametrize("network", [mesh, switch, equal_paths])
@pytest.mark.parametrize("kind", ["all-gather", "all-reduce", "broadcast"])
def test_greedy_is_the_plan_of_the_core(network: Callable[[], hk.Topology], kind: str) -> None:
    topo = network()
    plan = hk.plan(kind, topo, size="1 MB", algorithm="greedy", chunks=2)
    core = _core.plan(topo, plan.collective, "greedy", 2, 1 << 33).plan_and_run[0]
    assert columns(plan) == columns(hk.Plan(core))


@pytest.mark.parametrize("algorithm", ["greedy", "trees"])
def test_what_nobody_uses_changes_no_plan(algorithm: str, tmp_path: Path) -> None:
    """NPUs d and e hang on a: they take no part, and lie on no way between those that do.

    Without both of them all NPUs take part, and greedy matches in another way.
    """
    file = tmp_path / "net.yml"
    times = set()
    for gone in ("", "e", "d, e")[: 2 if algorithm == "greedy" else 3]:
        file.write_text(
            "npus: [a, b, c, d, e]\nlinks: [[a, b, 10 GB/s, 1 us], [b, c, 10 GB/s, 1 us], "
            "[c, a, 10 GB/s, 1 us], [a, d, 10 GB/s, 1 us], [d, e, 1 GB/s, 1 us]]\n"
            f"failed: {{nodes: [{gone}]}}\n"
        )
        topology = hk.topology.load(file)
        plan = hk.plan(
            "broadcast", topology, size="1 MB", npus=["a", "b", "c"], algorithm=algorithm
        )
        times.add(hk.simulate(plan).time_ps)
    assert len(times) == 1
