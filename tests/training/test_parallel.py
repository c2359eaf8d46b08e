"""Groups, stages and memory: how a model is spread."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hocket as hk
from hocket.errors import InfeasibleError, SpecError
from hocket.training.memory import check_memory, memory_of
from hocket.training.network import network_of
from hocket.training.options import TrainingOptions
from hocket.training.parallel import Group, Parallel, Portion, groups
from hocket.training.stages import partition
from hocket.workload.costs import Block, Work


def product(kinds: str, *sizes: int, bandwidth: str = "10 GB/s") -> hk.Topology:
    count = len(sizes)
    return hk.topology.product(
        kinds, sizes, bandwidth=[bandwidth] * count, latency=["0 ns"] * count
    )


def members(group: Group, topology: hk.Topology) -> set[int]:
    """NPU 0's group."""
    sizes = [size for _, size, *_ in topology.dimensions]
    found = {0}
    for dimension, size, stride in group.portions or ():
        step = stride
        for other in sizes[:dimension]:
            step *= other
        found = {npu + i * step for npu in found for i in range(size)}
    return found


@pytest.mark.parametrize(
    "parallel",
    ["dp=32", "tp=8,dp=4", "tp=2,dp=4,pp=4", "tp=16,pp=2", "tp=4,dp=8,ep=4", "tp=2,dp=16,ep=8"],
)
def test_dimensions_and_ranks_agree(parallel: str) -> None:
    topology = product("SW_SW_SW", 4, 4, 2)
    spread = Parallel.parse(parallel)
    on = groups(spread, topology, on_dimensions=True)
    by = groups(spread, topology, on_dimensions=False)
    for name in ("tp", "dp", "pp", "ep", "replicas"):
        assert members(on[name], topology) == set(by[name].members[0])
        assert on[name].size == by[name].size == len(by[name].members[0])
        everyone = sorted(npu for group in by[name].members for npu in group)
        assert everyone == list(range(32))


def test_neighbours_share_layers_first() -> None:
    topology = product("SW_SW", 16, 64)
    on = groups(Parallel(dp=8, tp=128), topology, on_dimensions=True)
    assert on["tp"].portions == (Portion(0, 16, 1), Portion(1, 8, 1))
    assert on["dp"].portions == (Portion(1, 8, 8),)
    chosen = Parallel(dp=16, tp=64, dimensions={"tp": [2], "dp": [1]})
    on = groups(chosen, topology, on_dimensions=True)
    assert on["tp"].portions == (Portion(1, 64, 1),)
    assert on["dp"].portions == (Portion(0, 16, 1),)


def test_replicas_of_experts_have_a_dimension_once() -> None:
    """Experts cut the replicas of a dimension in two; the links along it are there once."""
    topology = product("SW", 16, bandwidth="100 GB/s")
    on = groups(Parallel(dp=16, ep=4), topology, on_dimensions=True)
    assert on["dp"].portions == (Portion(0, 16, 1),)
    assert (on["ep"].portions, on["replicas"].portions) == (
        (Portion(0, 4, 1),),
        (Portion(0, 4, 4),),
    )
    for algorithm in ("ideal", "themis"):
        network = network_of(topology, algorithm)
        shape = network.collective("all-reduce", on["dp"], 16_000_000)
        # 2 x 15/16 x 16 MB / 100 GB/s; an all-to-all half of that.
        assert network.shapes[shape].lone_ps == 300 * 10**6
        shape = network.collective("all-to-all", on["dp"], 16_000_000)
        assert network.shapes[shape].lone_ps == 150 * 10**6
    # Of two dimensions each in part: 2 of 4 and 3 of 9 experts, then the rest of both.
    odd = groups(Parallel(dp=36, ep=6), product("SW_SW", 4, 9), on_dimensions=True)
    assert odd["dp"].portions == (Portion(0, 4, 1), Portion(1, 9, 1))


@pytest.mark.parametrize(
    ("parallel", "words"),
    [
        (Parallel(dp=3), "dp 3 x tp 1 x pp 1 make 3 NPUs, and topology 'Switch_Switch 4x6' has 24"),
        (Parallel(dp=8, tp=4), "dp 8 x tp 4 x pp 1 make 32 NPUs"),
        (
            Parallel(dp=3, tp=8, dimensions={"tp": [1]}),
            "tp=8 does not fit what is left of the dimensions 4 x 6",
        ),
        (Parallel(dp=24, dimensions={"dp": [3]}), "dimensions: dp"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(parallel: Parallel, words: str) -> None:
    topology = hk.topology.product("SW_SW", [4, 6], bandwidth=["1 GB/s"] * 2, latency=["0 ns"] * 2)
    with pytest.raises(SpecError) as error:
        groups(parallel, topology, on_dimensions=True)
    assert words in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "dp",
        "dp=",
        "dp=x",
        "dp=1.5",
        "dp=-1",
        "dp=0",
        "xp=2",
        "dp=2,dp=2",
        "zero=4,dp=2",
        "dp=4,ep=3",
    ],
)
def test_texts_that_are_no_sizes_are_refused(text: str) -> None:
    with pytest.raises(SpecError, match="parallel"):
        Parallel.parse(text)


def test_texts_are_read() -> None:
    assert Parallel.parse("dp=64, tp=16") == Parallel(dp=64, tp=16)
    spread = Parallel.parse("pp=4,micro-batches=8,zero=1")
    assert (spread.pp, spread.parts, spread.zero) == (4, 8, 1)
    assert Parallel(pp=4).parts == 16
    assert Parallel(dp=4).parts == 1


def test_portions_share_links() -> None:
    """What groups on parts of a dimension have for themselves, by hand."""
    size = 8_000_000

    def time(kinds: str, count: int, portion: Portion) -> int:
        network = network_of(product(kinds, count), "hierarchical", 1)
        shape = network.collective("all-reduce", Group(portion.size, (portion,)), size)
        return network.shapes[shape].lone_ps

    # Round the whole ring both ways: 2 x 7/8 x 8 MB / 20 GB/s.
    assert time("Ring", 8, Portion(0, 8, 1)) == 700 * 10**6
    # Every other NPU: as long a way, its links shared with the other half's: 2 x 3/4 x 8 MB / 10 GB/s.
    assert time("Ring", 8, Portion(0, 4, 2)) == 1200 * 10**6
    # Half of the ring is a line; a block that goes from end to end is passed on once more.
    assert time("Ring", 8, Portion(0, 4, 1)) == (1200 + 100) * 10**6
    # Through a switch it does not matter; of a full connection a part has its own links.
    assert time("SW", 8, Portion(0, 4, 1)) == time("SW", 8, Portion(0, 4, 2)) == 1200 * 10**6
    assert time("FC", 8, Portion(0, 4, 2)) == 400 * 10**6


def layers(*times: int) -> list[Block]:
    return [Block(f"l{i}", Work(time_ps=time), parameters=1) for i, time in enumerate(times)]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=9), st.integers(1, 9))
def test_stages_are_as_equal_as_they_can_be(times: list[int], stages: int) -> None:
    blocks = layers(*times)
    if len(blocks) < stages:
        with pytest.raises(SpecError, match="need a layer each"):
            partition(blocks, stages, times)
        return
    found = partition(blocks, stages, times)
    assert [each for stage in found for each in stage] == blocks
    assert len(found) == stages
    assert all(found)

    def longest(ends: tuple[int, ...]) -> int:
        bounds = [0, *ends, len(times)]
        return max(sum(times[a:b]) for a, b in pairwise(bounds))

    best = min(longest(ends) for ends in combinations(range(1, len(times)), stages - 1))
    place, own = 0, 0
    for stage in found:
        own = max(own, sum(times[place : place + len(stage)]))
        place += len(stage)
    assert own == best


def test_memory_is_that_of_mixed_precision() -> None:
    blocks = [Block("a", Work(1), parameters=1000, inputs=10, outputs=10)]
    options = TrainingOptions(samples=4)

    def sizes(**parallel: int) -> tuple[int, int, int, int]:
        memory = memory_of([blocks], Parallel(**parallel), options)
        return memory.weights, memory.gradients, memory.optimizer, memory.activations

    # Rajbhandari et al., section 3.1: 2 + 2 + 12 bytes; each stage divides one more of them.
    assert sizes(dp=10) == (2000, 2000, 12000, 80)
    assert sizes(dp=10, zero=1) == (2000, 2000, 1200, 80)
    assert sizes(dp=10, zero=2) == (2000, 200, 1200, 80)
    assert sizes(dp=10, zero=3) == (200, 200, 1200, 80)


def test_recomputing_keeps_no_more() -> None:
    """Between a cut by columns and one by rows, an NPU has a part of what a layer takes in."""
    keeps = [
        Block("up", Work(1), parameters=8, inputs=8, outputs=800, split="columns"),
        Block("act", Work(1), inputs=800, outputs=800, split="inside"),
        Block("down", Work(1), parameters=8, inputs=800, outputs=8, split="rows"),
    ]
    sizes = [
        memory_of([keeps], Parallel(tp=4), TrainingOptions(samples=1, recompute=again)).activations
        for again in (False, True)
    ]
    # 16 bits each; of one layer all is there while it is computed again.
    assert sizes == [2 * (8 + 200 + 200), 2 * (8 + 200 + 200 + 200)]


def test_memory_of_experts_is_shared_by_their_replicas() -> None:
    expert = Block("e", Work(1), parameters=800, experts=8, routed=1)
    memory = memory_of([[expert]], Parallel(dp=8, ep=4, zero=3), TrainingOptions(samples=1))
    assert (memory.weights, memory.optimizer) == (200, 1200)
    table = Block("t", Work(1), parameters=800, outputs=1, is_table=True)
    memory = memory_of([[table]], Parallel(dp=8, zero=3), TrainingOptions(samples=1))
    assert (memory.weights, memory.optimizer) == (200, 1200)


def test_dimensions_are_lists() -> None:
    with pytest.raises(SpecError, match=r"dimensions: dp: 3 "):
        Parallel(dp=4, dimensions={"dp": 3})  # type: ignore[dict-item]


def test_what_does_not_fit_is_refused_with_an_estimate() -> None:
    topology = product("SW_SW", 8, 8)
    with pytest.raises(
        InfeasibleError, match=r"an NPU needs about .* a100 has 80 GB.*memory_check=False$"
    ):
        hk.train("gpt3-175b", topology, parallel="dp=64", samples=1)
    run = hk.train(
        "gpt3-175b", topology, parallel="dp=64", samples=1, memory_check=False, bucket=None
    )
    assert run.memory.weights == pytest.approx(2 * 174.6e9, rel=1e-3)
    small = hk.Accelerator("small", "1 TFLOP/s", memory="1 kB")
    with pytest.raises(InfeasibleError, match=r"small has 1 kB, too little even with recompute"):
        check_memory(run.memory, small)


def test_tables_need_one_stage() -> None:
    topology = product("SW", 4)
    with pytest.raises(SpecError, match="use pp=1"):
        hk.train("dlrm", topology, parallel="dp=2,pp=2", samples=8, memory_check=False)


def test_samples_divide_into_micro_batches() -> None:
    with pytest.raises(SpecError, match="; give samples=16 or parallel="):
        hk.train("resnet152", product("SW", 4), parallel="pp=4", samples=10)


def test_messages_go_the_shorter_way_over_links_between() -> None:
    topology = hk.topology.product("Ring", [8], bandwidth=["10 GB/s"], latency=["1 us"])

    def time(portion: Portion, rank: int, to: int) -> int:
        network = network_of(topology, "hierarchical", 1)
        shape = network.message(Group(portion.size, (portion,)), rank, to, 10_000)
        return network.shapes[shape].lone_ps

    whole = Portion(0, 8, 1)
    assert time(whole, 0, 1) == time(whole, 0, 7) == 2 * 10**6
    assert time(whole, 0, 3) == 6 * 10**6  # stored at each
    # Every other NPU of the ring: twice as far, over links that are shared.
    assert time(Portion(0, 4, 2), 0, 1) == 4 * 10**6


def test_memory_is_that_of_the_fullest_stage() -> None:
    stages = [[Block("a", Work(1), parameters=1)], [Block("b", Work(1), parameters=1000)]]
    memory = memory_of(stages, Parallel(pp=2, micro_batches=1), TrainingOptions(samples=1))
    assert memory.weights == 2000
