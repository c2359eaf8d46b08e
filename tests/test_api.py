"""What a user types in Python: plans, runs, comparisons."""

from __future__ import annotations

import gc
import json
from math import ceil, log2
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import hocket as hk
from hocket._core.families import Family
from hocket.plans.algorithms import SCHEDULERS
from hocket.topology.declared import FAMILIES

ALPHA, RATE = 3_000_000, 2 * 10**9  # 3 us, 2 GB/s
LINK = {"bandwidth": "2 GB/s", "latency": "3 us"}
PS = 10**12


def wire(size: int) -> int:
    """Time that bytes occupy a link [ps]."""
    return -(-size * PS // RATE)


def run_ps(kind: str, topology: hk.Topology, algorithm: str, **more: Any) -> int:
    plan = hk.plan(kind, topology, algorithm=algorithm, **more)
    return hk.simulate(plan.verify()).time_ps


def test_the_first_lines_of_the_design() -> None:
    topo = hk.topology.mesh(5, 5, bandwidth="25 GB/s", latency="21 ns")
    plan = hk.plan("all-reduce", topo, size="256 MB", algorithm="bidirectional-ring")
    assert plan.is_verified  # where several numbers of chunks were compared
    alone = hk.plan("all-reduce", topo, size="256 MB", algorithm="bidirectional-ring", chunks=1)
    assert not alone.is_verified
    assert alone.verify() is alone
    assert alone.is_verified
    run = hk.simulate(plan)
    assert run.time == pytest.approx(run.time_ps * 1e-12, rel=1e-15)
    assert run.algbw == pytest.approx(256e6 / run.time, rel=1e-12)
    assert run.busbw == pytest.approx(run.algbw * 2 * 24 / 25, rel=1e-12)
    assert run.bound == run.lower_bound.time_ps * 1e-12
    assert run.bound == hk.bound(topo, plan.collective).time_ps * 1e-12
    assert run.gap == pytest.approx(run.time / run.bound - 1, rel=1e-9)
    assert 0 < run.utilization <= 1
    assert len(plan.transfers) == len(plan) == len(run.start_ps)
    ranked = hk.compare("all-reduce", topo, size="256 MB", time_limit="200 ms")
    assert ranked.best.run.time_ps <= run.time_ps


# Factor from algbw to busbw, as nccl-tests have it.
FACTORS = {
    "all-reduce": 2 * 4 / 5,
    "reduce-scatter": 4 / 5,
    "all-gather": 4 / 5,
    "all-to-all": 4 / 5,
    "broadcast": 1,
    "reduce": 1,
    "gather": 4 / 5,
    "scatter": 4 / 5,
}


@pytest.mark.parametrize("kind", FACTORS)
def test_figures_of_a_run(kind: str) -> None:
    topology = hk.topology.fully_connected(5, **LINK)
    run = hk.simulate(hk.plan(kind, topology, size=1_000_000, algorithm="direct", chunks=1))
    assert run.busbw == pytest.approx(run.algbw * FACTORS[kind], rel=1e-12)
    assert run.time_ps == run.end_ps.max()
    assert (run.start_ps < run.end_ps).all()
    moved = int(run.plan.transfers.size_bytes.sum())  # every route is one link
    assert run.link_bytes.sum() == moved
    assert run.max_link_bytes == run.link_bytes.max()
    assert run.utilization == pytest.approx(moved / (20 * RATE * run.time), rel=1e-12)
    src, dst, share = run.busiest_link or ("", "", 0.0)
    assert src != dst
    assert share == pytest.approx(run.link_busy_ps.max() / run.time_ps)
    assert "us>" in repr(run)


def of_twos(family: Family) -> hk.Topology:
    """Return the network of a family whose sizes are all 2."""
    sizes = [each for each in family.parameters if each.unit in ("count", "counts")]
    made: hk.Topology = getattr(hk.topology, family.name)(*[2 for _ in sizes], **LINK)
    return made


NETWORKS = {
    **{name: of_twos(family) for name, family in FAMILIES.items()},
    "ring": hk.topology.ring(5, **LINK),
    "one-way ring": hk.topology.ring(4, both_ways=False, **LINK),
    "line": hk.topology.line(5, **LINK),
    "switch": hk.topology.switch(6, **LINK),
    "mesh": hk.topology.mesh(3, 4, **LINK),
    "torus": hk.topology.torus(2, 3, 2, **LINK),
    "dgx1 less a link": hk.topology.load("dgx1_v100").without(links=[("gpu0", "gpu1")]),
    "dgx1 less a gpu": hk.topology.load("dgx1_v100").without(["gpu5"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("network", NETWORKS)
def test_no_plan_beats_the_bound(network: str, kind: str) -> None:
    names = [each.name for each in hk.algorithms() if each.name not in {"exact", "blind", "auto"}]
    common: Any = {"algorithms": names, "chunks": 1, "time_limit": "20 ms"}
    for size in (999, 1_234_567):
        ranked = hk.compare(kind, NETWORKS[network], size=size, **common)
        tried = {entry.algorithm for entry in ranked} | set(ranked.refused)
        assert len(ranked) + len(ranked.refused) == len(tried)
        assert tried == set(names)
        for entry in ranked:
            assert entry.run.gap >= 0
            assert entry.plan.is_verified
            assert entry.run.lower_bound.time_ps == ranked.bound.time_ps
        times = [entry.run.time_ps for entry in ranked]
        assert times == sorted(times)
        assert ranked.best is ranked.entries[0]


@pytest.mark.parametrize("order", ["ready", "plan"])
@pytest.mark.parametrize("switching", ["store-and-forward", "cut-through"])
@pytest.mark.parametrize("latency", ["overlapped", "occupying"])
def test_options_of_a_simulation(order: Any, switching: Any, latency: Any) -> None:
    """One message over two hops: every option has its closed form."""
    topology = hk.topology.line(3, **LINK)
    plan = hk.plan("broadcast", topology, size=2_000_000, algorithm="direct", npus=[0, 2], chunks=1)
    run = hk.simulate(plan, order=order, switching=switching, latency_model=latency)
    hop = wire(2_000_000)
    assert run.time_ps == 2 * ALPHA + (hop if switching == "cut-through" else 2 * hop)
    assert run.lower_bound.time_ps <= run.time_ps


def test_occupying_latency_delays_the_next_message() -> None:
    topology = hk.topology.line(2, **LINK)
    plan = hk.plan("broadcast", topology, size=4_000_000, algorithm="chain", chunks=4)
    one = wire(1_000_000)
    assert hk.simulate(plan, latency_model="overlapped").time_ps == 4 * one + ALPHA
    assert hk.simulate(plan, latency_model="occupying").time_ps == 4 * (one + ALPHA)


def test_numbers_and_texts_mean_the_same() -> None:
    topology = NETWORKS["dgx1 less a link"]
    texts = hk.plan(
        "broadcast", topology, size="64 KiB", algorithm="chain", npus=["gpu3", "gpu1"], root="gpu1"
    )
    numbers = hk.plan(
        "broadcast", topology, size=65536, algorithm="chain", npus=[3, np.int64(1)], root=1
    )
    assert texts.collective == numbers.collective
    assert texts.collective.npus == [3, 1]
    assert texts.collective.root == 1
    assert np.array_equal(texts.transfers.src, numbers.transfers.src)


@pytest.mark.parametrize("in_place", [True, False])
def test_in_place(in_place: bool) -> None:
    topology = NETWORKS["ring"]
    plan = hk.plan("all-gather", topology, size=500, algorithm="ring", chunks=1, in_place=in_place)
    assert plan.collective.in_place is in_place
    plan.verify()


def test_no_byte_is_lost() -> None:
    for size in (5, 7, 1_000_003):
        plan = hk.plan("all-reduce", NETWORKS["ring"], size=size, algorithm="ring", chunks=1)
        sizes = plan.transfers.size_bytes
        assert sizes.dtype == np.uint64
        assert sizes.sum() == 2 * 4 * size  # each byte goes once round and nearly once more
        assert plan.core.chunk_offsets[-1] == size
        plan.verify()


def test_transfers_are_views_that_cannot_be_written() -> None:
    plan = hk.plan("all-reduce", NETWORKS["mesh"], size="1 MB", algorithm="ring", chunks=1)
    columns = plan.transfers
    for name in ("chunk", "chunk_count", "src", "dst", "op", "wait", "path"):
        array = getattr(columns, name)
        assert len(array) == len(plan)
        assert not array.flags.writeable
        assert not array.flags.owndata
        assert np.shares_memory(array, getattr(plan.transfers, name))
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    assert plan.nbytes / len(plan) <= 64
    src, expected = columns.src, columns.src.copy()
    del plan, columns
    gc.collect()
    assert np.array_equal(src, expected)  # a view keeps its plan


def test_waits_and_routes_read_as_documented() -> None:
    plan = hk.plan("broadcast", NETWORKS["line"], size="1 MB", algorithm="chain", chunks=2)
    columns = plan.transfers
    for row, wait in enumerate(columns.wait.tolist()):
        if wait == hk.Plan.NO_WAIT:
            assert columns.src[row] == 0
        else:
            assert columns.dst[wait] == columns.src[row]
            assert columns.chunk[wait] == columns.chunk[row]
    assert set(columns.path.tolist()) == {hk.Plan.DEFAULT_ROUTE}


def test_heat() -> None:
    plan = hk.plan("all-reduce", NETWORKS["ring"], size="1 MB", algorithm="ring", chunks=1)
    run = hk.simulate(plan, keep_services=True)
    heat = run.heat(50)
    assert heat.shape == (10, 50)
    assert heat.dtype == np.float32
    assert heat.min() >= 0
    assert heat.max() <= 1
    assert np.allclose(heat.mean(axis=1) * run.time_ps, run.link_busy_ps, rtol=1e-5)
    with pytest.raises(hk.SpecError, match="keep_services=True"):
        hk.simulate(plan).heat(50)
    for bins in (0, -1, 10**12, 1.5):
        with pytest.raises(hk.SpecError, match="bins"):
            run.heat(bins)  # type: ignore[arg-type]


def test_progress_is_called_and_can_stop() -> None:
    plan = hk.plan(
        "all-reduce", hk.topology.ring(400, **LINK), size="1 MB", algorithm="ring", chunks=1
    )
    seen: list[tuple[str, int, int]] = []
    plan.verify(progress=lambda *each: seen.append(each))
    assert all(0 <= done <= total for _, done, total in seen)

    class StopError(Exception):
        pass

    def stop(*_: object) -> None:
        raise StopError

    with pytest.raises(StopError):
        hk.simulate(plan, progress=stop)


def test_a_run_in_a_file(tmp_path: Path) -> None:
    run = hk.simulate(
        hk.plan("all-reduce", NETWORKS["ring"], size="1 MB", algorithm="ring", chunks=1)
    )
    run.save(tmp_path / "run.parquet")
    table = pq.read_table(tmp_path / "run.parquet")
    assert np.array_equal(table["start_ps"].to_numpy(), run.start_ps)
    head = json.loads(table.schema.metadata[b"hocket.run"])
    assert head["time_ps"] == run.time_ps
    assert head["algbw_bytes_per_s"] == run.algbw
    assert head["collective"]["kind"] == "all-reduce"


def test_why_an_algorithm_is_left_out() -> None:
    ranked = hk.compare("all-reduce", NETWORKS["dgx1 less a link"], size="1 MB")
    meshes = {"ring-bi-odd", "tto", "tto-overlapped", "two-tree-overlap", "ring-2d"}
    others = {
        "hdrm",
        "binomial",
        "bruck",
        "chain",
        "pairwise",
        "flows",
        "in-network",
        "multimem",
        "nccl-nvls",
        "steiner",
    }
    nodes = {"multi-ring", "node-groups"}
    assert set(ranked.refused) == {*SCHEDULERS, *meshes, *others, *nodes, "symmetric"}
    assert "states no dimensions" in ranked.refused["hierarchical"]
    assert "it does broadcast, reduce" in ranked.refused["chain"]
    names = ["chain", "hierarchical"]
    with pytest.raises(hk.InfeasibleError, match="states no dimensions"):
        hk.compare("all-reduce", NETWORKS["dgx1 less a link"], size=999, algorithms=names)


def test_compare_keeps_the_best_number_of_chunks() -> None:
    topology = NETWORKS["line"]
    tried: list[tuple[str, int, int]] = []
    ranked = hk.compare(
        "broadcast",
        topology,
        size="8 MB",
        algorithms=["chain"],
        on_result=lambda name, chunks, run: tried.append((name, chunks, run.time_ps)),
    )
    assert len(tried) > 1
    assert ranked.best.run.time_ps == min(time for _, _, time in tried)
    assert (ranked.best.chunks, ranked.best.run.time_ps) in [each[1:] for each in tried]
    assert len(ranked) == 1


def test_refusals() -> None:
    topology = NETWORKS["ring"]

    def refused(words: str, kind: str = "all-reduce", algorithm: str = "ring", **more: Any) -> None:
        given: dict[str, Any] = {"size": 1000, **more}
        with pytest.raises(hk.SpecError, match=words) as caught:
            hk.plan(kind, topology, algorithm=algorithm, **given)
        assert "\n" not in str(caught.value)
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, hk.Error)

    for size in (1.5, True, None, -1, 2**64, "12", "12 kg"):
        refused("^size: ", size=size)
    refused("size is 0 B", size=0)
    for chunks in (0, -1, 2.5, True, 2**32):
        refused("^chunks: ", chunks=chunks)
    refused("^npus: there is no NPU 5; NPUs are 0 to 4", npus=[0, 5])
    refused("^npus: there is no NPU -1", npus=[0, -1])
    refused("^npus: there is no NPU 1.5", npus=[0, 1.5])
    refused('^npus: no device is called "x"', npus=[0, "x"])
    refused("^root: there is no NPU 9", kind="broadcast", algorithm="chain", root=9)
    refused("^root: ", kind="broadcast", algorithm="chain", npus=[0, 1], root=2)
    refused("memory", memory_limit=10)
    refused("^memory_limit: ", memory_limit=-1)
    refused("no algorithm 'tenis'", algorithm="tenis")
    refused("^algorithm: None is neither a name nor a schedule", algorithm=None)
    refused("^unwind: ring ", unwind="max")
    refused("^time_limit: ", algorithm="greedy", time_limit="soon")
    with pytest.raises(hk.InfeasibleError, match=r"^pairwise: "):
        hk.plan("all-reduce", topology, size=1000, algorithm="pairwise")
    plan = hk.plan("all-reduce", topology, size=1000, algorithm="ring", chunks=1)
    with pytest.raises(hk.SpecError, match=r"^fidelity: .*'cell'"):
        hk.simulate(plan, fidelity="cell")
    for option in ("order", "switching", "latency_model"):
        with pytest.raises(hk.SpecError, match=f"^{option}: there is no 'x'"):
            hk.simulate(plan, **{option: "x"})  # type: ignore[arg-type]
    for names in ([], "ring", ["ring", "rng"]):
        with pytest.raises(hk.SpecError, match="algorithm"):
            hk.compare("all-reduce", topology, size=1000, algorithms=names)


# ---- closed forms, to the picosecond ----

SIZES = (8_000, 8_000_000, 96_000_000)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_ring_on_a_ring(n: int, size: int) -> None:
    size = size // n * n
    for both_ways in (False, True):
        topology = hk.topology.ring(n, both_ways=both_ways, **LINK)
        step = ALPHA + wire(size // n)
        assert run_ps("all-reduce", topology, "ring", size=size, chunks=1) == 2 * (n - 1) * step
        assert run_ps("all-gather", topology, "ring", size=size, chunks=1) == (n - 1) * step
        assert run_ps("reduce-scatter", topology, "ring", size=size, chunks=1) == (n - 1) * step


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_direct_on_fully_connected(n: int, size: int) -> None:
    size = size // n * n
    topology = hk.topology.fully_connected(n, **LINK)
    step = ALPHA + wire(size // n)
    assert run_ps("all-reduce", topology, "direct", size=size, chunks=1) == 2 * step
    assert run_ps("all-gather", topology, "direct", size=size, chunks=1) == step
    assert run_ps("all-to-all", topology, "direct", size=size, chunks=1) == step


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("k", [1, 4, 50])
@pytest.mark.parametrize("n", [2, 3, 7])
def test_pipelined_chain_broadcast(n: int, k: int, size: int) -> None:
    size = size // k * k
    topology = hk.topology.line(n, **LINK)
    expected = (n + k - 2) * wire(size // k) + (n - 1) * ALPHA
    assert run_ps("broadcast", topology, "chain", size=size, chunks=k) == expected
    assert run_ps("reduce", topology, "chain", size=size, chunks=k) == expected


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_halving_doubling_on_a_switch(n: int, size: int) -> None:
    """Each of the 2 log2 n steps crosses two links, as it arrives: 2 alpha + bytes / bandwidth.

    Stored and forwarded it is whole at each: 2 (alpha + bytes / bandwidth).
    """
    cuts = hk.topology.switch(n, **LINK)
    assert cuts.switching == "cut-through"
    for topology, whole in ((cuts, 1), (cuts.with_switching("store-and-forward"), 2)):
        steps = [2 * ALPHA + whole * wire(size // 2**i) for i in range(1, int(log2(n)) + 1)]
        time = run_ps("all-reduce", topology, "halving-doubling", size=size, chunks=1)
        assert time == 2 * sum(steps)
        time = run_ps("all-gather", topology, "halving-doubling", size=size, chunks=1)
        assert time == sum(steps)


@pytest.mark.parametrize("n", [3, 5, 6, 7, 12])
def test_halving_doubling_takes_any_number(n: int) -> None:
    topology = hk.topology.fully_connected(n, bandwidth="9000 TB/s", latency="1 us")
    time = run_ps("all-reduce", topology, "halving-doubling", size=n, chunks=1)
    steps = round(time / 1_000_000)
    assert 2 * int(log2(n)) <= steps <= 2 * ceil(log2(n))


@pytest.mark.parametrize("n", [2, 3, 4, 8, 9])
def test_binomial_broadcast_takes_log2_steps(n: int) -> None:
    """With a link to everyone, a rank waits for as many hops as it has ones in binary."""
    topology = hk.topology.fully_connected(n, **LINK)
    time = run_ps("broadcast", topology, "binomial", size=8_000_000, chunks=1)
    hops = max(bin(rank).count("1") for rank in range(n))
    assert time == hops * (ALPHA + wire(8_000_000))


def test_what_fails_is_given_as_the_command_line_has_it() -> None:
    ring = hk.topology.ring(4, bandwidth="25 GB/s", latency="1 us")
    by_ends = ring.without(links=[("npu0", "npu1")])
    assert ring.without(links="npu0,npu1") == ring.without(links=["npu0,npu1"]) == by_ends
    assert ring.without(nodes="npu3") == ring.without(nodes=["npu3"])
    for wrong in ({"links": 3}, {"links": [3]}, {"nodes": 3}, {"nodes": [None]}, {"links": "npu0"}):
        with pytest.raises(hk.SpecError, match=r"nodes|links") as caught:
            ring.without(**wrong)
        assert "\n" not in str(caught.value)
