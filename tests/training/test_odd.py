"""Training where something is small, missing or impossible."""

from __future__ import annotations

from typing import Any

import pytest

import hocket as hk
from hocket.collectives.collective import collective_on
from hocket.plans.schedule import schedule_collective
from hocket.training.network import network_of
from hocket.training.parallel import Parallel, groups
from hocket.workload.costs import Block, Work

from .small_models import Model, network, trained, transformer

BIAS = Model(
    "bias", (Block("bias", Work(10**9), Work(), Work(10**9), parameters=64, inputs=8, outputs=8),)
)
MESH = hk.topology.mesh(4, 4, bandwidth="25 GB/s", latency="21 ns")


@pytest.mark.parametrize("algorithm", ["themis", "hierarchical", "multirail-optimal"])
def test_a_gradient_smaller_than_the_group(algorithm: str) -> None:
    """128 bytes over 1,024 NPUs count as 8 of each in one chunk."""
    topology = hk.topology.load("themis-3d-homo")
    run = trained(BIAS, topology, "dp=1024", algorithm=algorithm)
    least = collective_on("all-reduce", topology, 8 * 1024)
    alone = schedule_collective(least, topology, algorithm=algorithm, chunks=1)
    assert run.breakdown.exposed["data"] == alone.simulate().time_ps
    assert [exchange.size for exchange in run.exchanges] == [128]


@pytest.mark.parametrize("algorithm", ["ring", "greedy", "direct", "multitree"])
@pytest.mark.parametrize("chunks", [None, 64])
def test_a_gradient_smaller_than_the_group_in_plans(algorithm: str, chunks: int | None) -> None:
    run = trained(BIAS, MESH, "dp=16", algorithm=algorithm, chunks=chunks)
    plan = hk.plan("all-reduce", MESH, size="128 B", algorithm=algorithm, chunks=1)
    assert run.breakdown.exposed["data"] == hk.simulate(plan).time_ps


def test_chunks_are_as_asked_for_where_there_are_bytes() -> None:
    topology = network(4, 4)
    group = groups(Parallel(dp=16), topology, on_dimensions=True)["dp"]
    shapes = network_of(topology, "themis", 64)
    big = shapes.collective("all-reduce", group, 1 << 20)
    made = hk.schedule(
        "all-reduce", topology, size=str(1 << 20) + " B", algorithm="themis", chunks=64
    )
    assert shapes.shapes[big].lone_ps == made.simulate().time_ps


def test_an_all_to_all_is_direct_where_the_algorithm_makes_none() -> None:
    model = transformer(experts=4)
    run = trained(model, MESH, "dp=16,ep=4", algorithm="ring")
    direct = trained(model, MESH, "dp=16,ep=4", algorithm="direct")
    assert run.breakdown.exposed["expert"] == direct.breakdown.exposed["expert"] > 0
    assert run.breakdown.exposed["data"] != direct.breakdown.exposed["data"]


def test_dimensions_that_are_not_whole() -> None:
    broken = MESH.without(links=[("npu0", "npu1")])
    assert trained(BIAS, broken, "dp=16").algorithm == "auto"
    limited = hk.topology.switch(8, bandwidth="25 GB/s", latency="1 us", limit="50 GB/s")
    assert trained(BIAS, limited, "dp=8").algorithm == "auto"
    with pytest.raises(
        hk.SpecError, match=r"algorithm: themis works on whole dimensions: .*failed"
    ):
        trained(BIAS, broken, "dp=16", algorithm="themis")


def test_dimensions_of_one_npu_count_for_nothing() -> None:
    flat = trained(transformer(), network(4), "dp=2,tp=2")
    for sizes in ((4, 1), (1, 4), (1, 2, 2)):
        run = trained(transformer(), network(*sizes), "dp=2,tp=2")
        assert run.breakdown.compute == flat.breakdown.compute
    assert trained(transformer(), network(1, 4), "dp=2,tp=2").total_ps == flat.total_ps


def test_without_weights_nothing_is_sent() -> None:
    model = Model("still", (Block("a", Work(10**9)),))
    run = trained(model, network(4), "dp=4")
    assert run.communication_ps == run.breakdown.communication == run.hidden == 0
    assert run.total_ps == run.breakdown.forward


def test_stages_are_cut_by_the_time_that_layers_take() -> None:
    """One layer of many operations, and three that memory limits for as long."""
    many = Block("many", Work(312 * 10**6), inputs=8, outputs=8)
    few = [Block(f"few{i}", Work(1, 2039 * 10**3), inputs=8, outputs=8) for i in range(3)]
    run = trained(Model("uneven", (many, *few)), network(2), "pp=2", samples=8)
    assert [len(blocks) for blocks in run.stages] == [2, 2]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"bucket": 0}, "bucket: 0 "),
        ({"bucket": 2.5}, "bucket: 2.5 "),
        ({"chunks": 0, "algorithm": "none"}, "chunks: 0 is not a number of chunks"),
        ({"chunks": 0, "algorithm": "ideal"}, "chunks: 0 is not a number of chunks"),
        ({"samples": 1 << 24, "iterations": 10_000}, "more than"),
    ],
)
def test_what_makes_no_sense(options: dict[str, Any], part: str) -> None:
    parallel = "dp=4,micro-batches=4096" if "iterations" in options else "dp=4"
    with pytest.raises(hk.SpecError, match=part):
        trained(BIAS, network(4), parallel, memory_check=False, **options)


def test_times_and_sizes_that_cannot_be_counted() -> None:
    slow = Model("slow", (Block("a", Work(1 << 61)),))
    with pytest.raises(hk.SpecError, match="npu: a pass of a layer takes longer"):
        trained(slow, network(4), "dp=4", samples=1 << 20, memory_check=False)
    wide = Model("wide", (Block("a", Work(1), Work(1), inputs=1 << 61, split="columns"),))
    with pytest.raises(hk.SpecError, match=r"samples: with .* a collective is of"):
        trained(wide, network(4), "tp=4", samples=1 << 20, memory_check=False)
    heavy = Model("heavy", (Block("a", Work(1), parameters=10**9, outputs=1),))
    slow_links = hk.topology.product("Switch", [4], bandwidth=["1 B/s"], latency=["0 ns"])
    for algorithm in ("ideal", "themis"):
        with pytest.raises(hk.Error, match="longer than 46 days"):
            trained(heavy, slow_links, "dp=4", algorithm=algorithm, memory_check=False)
    routed = Block("a", Work(1), parameters=4, outputs=10**12, experts=4, routed=10**17)
    layers = Model("layers", (routed, Block("b", Work(1), inputs=10**12, outputs=1)))
    for parallel in ("dp=4,ep=4", "pp=2,dp=2,micro-batches=1"):
        with pytest.raises(hk.Error, match="longer than 46 days"):
            trained(layers, slow_links, parallel, samples=1, memory_check=False)


@pytest.mark.parametrize(("bits", "moved"), [(1, 24.25), (7, 25.75), (16, 28), (32, 32)])
def test_an_update_moves_parts_of_bytes_too(bits: int, moved: float) -> None:
    """Weight, two moments of 32 bits read and written; the gradient read and a copy written."""
    npu = hk.Accelerator("npu", "1 TFLOP/s", "1 TB/s")
    layer = Model("layer", (Block("a", Work(1), parameters=10**6, outputs=1),))
    run = trained(layer, network(2), "dp=2", npu=npu, precision_bits=bits, algorithm="none")
    assert run.breakdown.update == moved * 10**6


@pytest.mark.parametrize("offload", [(True,), (True, True), (True, False), (False, True)])
def test_ideal_is_no_slower_than_switches_that_sum(offload: tuple[bool, ...]) -> None:
    sizes = (8, 4)[: len(offload)]
    topology = hk.topology.product(
        "_".join(["Switch"] * len(sizes)),
        sizes,
        bandwidth=["25 GB/s"] * len(sizes),
        latency=["0 ns"] * len(sizes),
        offload=offload,
    )
    group = groups(Parallel(dp=topology.npu_count), topology, on_dimensions=True)["dp"]
    for kind in ("all-reduce", "reduce-scatter", "all-gather"):
        alone = []
        for algorithm in ("ideal", "themis", "hierarchical"):
            found = network_of(topology, algorithm)
            alone.append(found.shapes[found.collective(kind, group, 10**7)].lone_ps)
        assert alone[0] == min(alone)
    one = network_of(topology, "ideal")
    sums = one.shapes[one.collective("all-reduce", group, 10**7)].lone_ps
    assert sums == 10**7 * 40 // len(sizes)


@pytest.mark.parametrize("field", ["efficiency", "memory_efficiency"])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (50, "50 is not valid; give a number above 0 and up to 1; did you mean 0.5?"),
        (1.5, "1.5 is not valid; give a number above 0 and up to 1, such as 0.5"),
        (1e5, "100000.0 is not valid; give a number above 0 and up to 1, such as 0.5"),
        ("half", "'half' is not a number; give a number above 0 and up to 1, such as 0.5"),
    ],
)
def test_nothing_computes_faster_than_its_peak(field: str, given: object, words: str) -> None:
    with pytest.raises(hk.SpecError) as caught:
        hk.Accelerator("mine", "1 TFLOP/s", **{field: given})  # type: ignore[arg-type]
    assert str(caught.value) == f"{field}: {words}"
