"""One choice of the number of chunks: Python, comparison and command line make the same plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from hocket import _core
from hocket.cli import run
from hocket.plans.choice import ChunkChoice, numbers_of_chunks
from hocket.plans.planner import choose, make

NETWORKS = {
    "dgx1_v100": "1 MB",
    "torus:4x4@25GB/s,500ns": "16 MB",
    "mesh:3x3@25GB/s,500ns": "1 MB",
    "fat-tree:4@25GB/s,1us": "4 MB",
}
ALGORITHMS = ("ring", "double-binary-tree", "greedy", "hierarchical", "themis", "tto", "blind")


def _command(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any] | None:
    capsys.readouterr()
    code = run([*argv, "--json"])
    out = capsys.readouterr().out
    return json.loads(out) if code == 0 else None


@pytest.mark.parametrize("network", NETWORKS)
def test_python_plans_as_the_command_line_and_as_comparisons(
    network: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    size, topology = NETWORKS[network], hk.topology.load(network)
    chosen = 0
    for algorithm in ALGORITHMS:
        file = tmp_path / f"{algorithm}.parquet"
        argv = ("-t", network, "-s", size, "-a", algorithm)
        told = _command(capsys, "plan", "all-reduce", *argv, "-o", str(file))
        compared = _command(capsys, "compare", "all-reduce", *argv)
        try:
            made = hk.plan("all-reduce", topology, size=size, algorithm=algorithm)
        except hk.InfeasibleError:
            assert told is None
            assert compared is None
            continue
        assert told is not None
        assert compared is not None
        assert made.to_frame().equals(hk.Plan.load(file).to_frame())
        assert len(made) == told["transfers"]
        assert made.chunks == told["chunk_count"]
        assert hk.simulate(made).time_ps == told["time_ps"]
        assert compared["algorithms"][0]["time_ps"] == told["time_ps"]
        assert compared["algorithms"][0]["transfers"] == told["transfers"]
        chosen += 1
    assert chosen >= 4


@pytest.mark.parametrize("algorithm", ["ring", "greedy", "halving-doubling", "chain"])
def test_the_choice_is_the_fastest_of_what_is_tried(algorithm: str) -> None:
    topology = hk.topology.load("dgx1_v100")
    kind = "broadcast" if algorithm == "chain" else "all-reduce"
    collective = hk.collective_on(kind, topology, "1 MB")
    found = choose(collective, topology, algorithm, hk.PlanOptions())
    assert list(found.tried) == _core.registry.chunk_ladder(topology, collective, algorithm)
    times = []
    for chunks in found.tried:
        plan = make(collective, topology, algorithm, hk.PlanOptions(chunks=chunks)).verify()
        times.append(_core.simulate(plan.core).time_ps)
    assert found.time_ps == min(times)
    assert found.slices == found.tried[times.index(min(times))]
    assert found.plan.is_verified


COLUMNS = ("start_ps", "end_ps", "link_busy_ps", "link_bytes", "link_messages")


@pytest.mark.parametrize("latency_model", ["overlapped", "occupying"])
@pytest.mark.parametrize(
    ("kind", "algorithm", "network"),
    [
        ("all-reduce", "trees", "torus:4x4@25GB/s,500ns"),
        ("broadcast", "trees", "fat-tree:4@25GB/s,1us"),
        ("all-gather", "symmetric", "torus:4x4@25GB/s,500ns"),
        ("all-reduce", "greedy", "dgx1_v100"),
        ("all-gather", "greedy", "fat-tree:4@25GB/s,1us"),
        ("all-to-all", "flows", "torus:4x4@25GB/s,500ns"),
    ],
)
def test_a_plan_keeps_the_run_of_its_making(
    kind: str, algorithm: str, network: str, latency_model: Any
) -> None:
    topology = hk.topology.load(network)
    collective = hk.collective_on(kind, topology, "16 MB")
    options = hk.PlanOptions(latency_model=latency_model, chunks=4)
    plan = make(collective, topology, algorithm, options)
    kept = plan.known
    assert (kept is None) == (algorithm == "flows" and latency_model == "occupying")
    again = _core.simulate(plan.core, latency=latency_model)
    if kept is not None:
        assert (kept.time_ps, kept.order, kept.switching, kept.latency_model) == (
            (again.time_ps, again.order, again.switching, latency_model)
        )
        for name in COLUMNS:
            assert (getattr(kept, name) == getattr(again, name)).all(), name
        assert hk.simulate(plan, latency_model=latency_model).core is kept
    for other in (
        {"order": "ready"},
        {"switching": "cut-through"},
        {"keep_services": True},
        {"latency_model": "overlapped" if latency_model == "occupying" else "occupying"},
    ):
        run = hk.simulate(plan, **other)  # type: ignore[call-overload]
        assert run.core is not kept
        if "latency_model" in other:
            assert run.latency_model == other["latency_model"]


def test_comparisons_simulate_no_plan_that_its_algorithm_simulated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulated: list[str] = []
    simulate = _core.simulate

    def counted(plan: _core.Plan, **given: Any) -> _core.Run:
        simulated.append(plan.algorithm)
        return simulate(plan, **given)

    monkeypatch.setattr(_core, "simulate", counted)
    found = hk.compare(
        "all-reduce", "dgx1_v100", size="16 MB", algorithms=["ring", "trees", "greedy"]
    )
    assert [each.algorithm for each in found] != []
    ladder = len(_core.registry.chunk_ladder(found.topology, found.collective, "ring"))
    assert simulated == ["ring"] * ladder


def test_chunks_that_are_given_are_obeyed() -> None:
    topology = hk.topology.load("dgx1_v100")
    collective = hk.collective_on("all-reduce", topology, 1 << 20)
    for given in ({"chunks": 3}, {"chunk_size": 1 << 19}):
        options = hk.PlanOptions(**given)  # type: ignore[arg-type]
        plan = hk.plan(collective, topology, algorithm="ring", options=options)
        assert plan.chunks == 8 * (given.get("chunks") or 2)
        assert not plan.is_verified  # nothing was compared
        assert len(numbers_of_chunks(collective, topology, "ring", options)) == 1
    assert hk.plan(collective, topology, algorithm="ring").is_verified


def test_numbers_that_make_too_large_a_plan_end_the_choice() -> None:
    topology = hk.topology.load("dgx1_v100")
    collective = hk.collective_on("all-reduce", topology, 1 << 20)
    fits = 2 * 8 * 7 * 4 * 200  # bytes: 4 slices and no more
    found = choose(collective, topology, "ring", hk.PlanOptions(memory_limit=fits))
    assert found.tried == (1, 4, 16, 64)
    assert found.slices in (1, 4)
    with pytest.raises(hk.SpecError, match="more than the limit"):
        hk.plan(collective, topology, algorithm="ring", memory_limit=64)


def test_large_plans_are_neither_proved_nor_simulated_on_the_way() -> None:
    topology = hk.topology.ring(1100, bandwidth="25 GB/s", latency="1 us")
    plan = hk.plan("all-gather", topology, size="1 GB", algorithm="direct")
    assert len(plan) > 1_000_000
    assert not plan.is_verified
    collective = hk.collective_on("all-gather", topology, "1 GB")
    assert numbers_of_chunks(collective, topology, "direct", hk.PlanOptions()) == [1]


def test_sprayed_plans_have_the_default_number_of_chunks() -> None:
    topology = hk.topology.load("fat-tree:4@25GB/s,1us")
    collective = hk.collective_on("all-reduce", topology, "4 MB")
    options = hk.PlanOptions(routing="spray")
    plan = hk.plan(collective, topology, algorithm="ring", options=options)
    assert len(plan) == len(make(collective, topology, "ring", options))


def test_what_searches_for_long_searches_once() -> None:
    topology = hk.topology.ring(3, bandwidth="25 GB/s", latency="1 us")
    collective = hk.collective_on("broadcast", topology, 4096)
    options = hk.PlanOptions()
    default = _core.registry.default_chunks(topology, collective, "exact")
    assert numbers_of_chunks(collective, topology, "exact", options) == [default]
    assert numbers_of_chunks(collective, topology, "auto", options) == [None]
    found = choose(collective, topology, "auto", hk.PlanOptions(time_limit="100ms"))
    assert found.time_ps == hk.simulate(found.plan).time_ps


def test_a_known_time_is_preferred() -> None:
    plan = hk.plan(
        "all-gather", hk.topology.load("dgx1_v100"), size=4096, algorithm="ring", chunks=1
    )

    def took(time: int | None) -> ChunkChoice:
        return ChunkChoice(plan, time, 1, (1,))

    assert took(None).is_faster_than(None)
    assert took(5).is_faster_than(took(None))
    assert not took(None).is_faster_than(took(5))
    assert not took(5).is_faster_than(took(5))
    assert took(4).is_faster_than(took(5))
