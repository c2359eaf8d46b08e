"""Iterations against closed forms: what a simulated iteration must take, from layers alone."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket as hk
from hocket._core.iteration import Shape
from hocket.workload import Workload
from hocket.workload.costs import Block, Work

from .small_models import tags

US = 10**6
NO_LATENCY = "0 ns"


def block(name: str, forward: int = 10, **fields: object) -> Block:
    """A layer of measured passes, of a million parameters and a thousand numbers; times in us."""
    work = Work(time_ps=forward * US)
    known: dict[str, object] = {"parameters": 10**6, "inputs": 1000, "outputs": 1000}
    return Block(name, work, work, work, **{**known, **fields})  # type: ignore[arg-type]


def model(*blocks: Block) -> Workload:
    return Workload("mine", blocks)


def switch(*sizes: int, bandwidth: str = "100 GB/s", latency: str = NO_LATENCY) -> hk.Topology:
    count = len(sizes)
    kinds = "_".join(["SW"] * count)
    return hk.topology.product(
        kinds, sizes, bandwidth=[bandwidth] * count, latency=[latency] * count
    )


def train(workload: Workload, topology: hk.Topology, **options: object) -> hk.TrainingRun:
    chosen: dict[str, object] = {"samples": 1, "update": False, "memory_check": False, **options}
    return hk.train(workload, topology, **chosen)  # type: ignore[arg-type]


def test_without_communication_there_is_compute() -> None:
    workload = model(block("a"), block("b", 20))
    run = train(workload, switch(2), samples=3, algorithm="none")
    assert run.total_ps == 3 * (3 * 10 + 3 * 20) * US
    assert run.breakdown.forward == 3 * 30 * US
    assert run.breakdown.communication == run.breakdown.waiting == 0


@pytest.mark.parametrize("algorithm", ["hierarchical", "themis", "multirail-optimal", "ideal"])
def test_nothing_overlaps_with_one_bucket(algorithm: str) -> None:
    workload = model(block("a"), block("b"))
    topology = switch(4, 8, latency="500 ns")
    chunks = None if algorithm == "ideal" else 16
    run = train(workload, topology, algorithm=algorithm, bucket=None, chunks=chunks)
    if algorithm == "ideal":
        alone = 2 * 4_000_000 * 31 * 10**12 // (32 * 200 * 10**9)
    else:
        schedule = hk.schedule(
            "all-reduce", topology, size=4_000_000, algorithm=algorithm, chunks=16
        )
        alone = schedule.simulate().time_ps
    assert run.total_ps == 6 * 10 * US + alone
    assert run.breakdown.exposed["data"] == alone
    assert run.communication_ps == alone


def test_gradients_overlap_by_buckets() -> None:
    # Each layer's all-reduce takes 2 x 2 MB x 3/4 / 100 GB/s = 30 us, a backward pass 20 us: after
    # b's gradients (at 40 us) two all-reduces follow each other.
    workload = model(block("a"), block("b"))
    run = train(workload, switch(4), algorithm="hierarchical", bucket=1, chunks=1)
    # Two parts of a chunk follow each other in the two steps of halving: no gaps.
    assert run.total_ps == (20 + 20) * US + 2 * 30 * US
    assert run.breakdown.exposed["data"] == 2 * 30 * US - 20 * US
    # Gradients of both fit one bucket.
    whole = train(workload, switch(4), algorithm="hierarchical", bucket=4_000_000, chunks=1)
    assert whole.total_ps == (20 + 40) * US + 60 * US
    # A bucket that is full to the byte is reduced.
    full = train(workload, switch(4), algorithm="hierarchical", bucket=2_000_000, chunks=1)
    assert full.total_ps == run.total_ps
    # Layers: b's all-reduce is hidden but for what is left after a's backward pass.
    exposed = {layer.name: layer.exposed for layer in run.layers}
    assert exposed == {"a": 30 * US, "b": 10 * US}


@pytest.mark.parametrize("order", ["fifo", "lifo"])
def test_last_gradients_may_go_first(order: str) -> None:
    workload = model(block("a"), block("b", 1), block("c", 1))
    run = train(workload, switch(4), algorithm="hierarchical", bucket=1, chunks=1, order=order)
    ends = run.outcome.call_end_ps.tolist()
    # c, b, a in the order of their gradients; what has begun of one is ended first, and no more.
    assert ends == sorted(ends, reverse=order == "lifo")


@given(
    stages=st.integers(2, 5),
    parts=st.integers(1, 9),
    forward=st.integers(1, 50),
)
@settings(deadline=None, max_examples=60)
def test_pipelines_idle_as_1f1b_does(stages: int, parts: int, forward: int) -> None:
    workload = model(*(block(f"l{i}", forward) for i in range(stages)))
    run = train(
        workload,
        switch(stages),
        parallel=hk.Parallel(pp=stages, micro_batches=parts),
        algorithm="none",
        samples=parts,
    )
    # Narayanan et al. 2021, section 2.2.1: (m + p - 1) forward and backward passes.
    assert run.total_ps == (parts + stages - 1) * 3 * forward * US
    waiting = run.breakdown.waiting
    assert waiting == pytest.approx((stages - 1) * 3 * forward * US)
    # And a micro-batch of stage s is kept until p - s have gone forward.
    assert run.memory.activations == stages_kept(stages, parts) * 1000 * 2


def stages_kept(stages: int, parts: int) -> int:
    return min(stages, parts)


def test_messages_between_stages_take_their_time() -> None:
    workload = model(block("a"), block("b"))
    topology = hk.topology.product("Ring", [2], bandwidth=["1 GB/s"], latency=["3 us"])
    run = train(workload, topology, parallel=hk.Parallel(pp=2, micro_batches=1), algorithm="themis")
    # 1,000 numbers of 2 bytes each way.
    message = 2 * US + 3 * US
    assert run.total_ps == 2 * 10 * US + 2 * 20 * US + 2 * message
    assert run.breakdown.exposed["pipeline"] == pytest.approx(message)


def calls(run: hk.TrainingRun, cause: str) -> list[tuple[str, int]]:
    """The passes and layers of the calls for a cause."""
    return [(tag.does, tag.layer) for tag in tags(run) if tag.cause == cause]


def test_tensor_parallelism_sums_twice_a_pass() -> None:
    layers = [
        block("qkv", split="columns"),
        block("attention", split="inside", parameters=0),
        block("projection", split="rows"),
        block("up", split="columns"),
        block("down", split="rows"),
    ]
    topology = switch(4)
    run = train(
        model(*layers),
        topology,
        parallel="tp=4",
        algorithm="ideal",
        overlap_tensor=False,
        samples=8,
    )
    assert calls(run, "tensor") == [
        ("forward", 2),
        ("forward", 4),
        ("input gradient", 3),
        ("input gradient", 0),
    ]
    # A quarter of 5 layers' passes for 8 samples; four sums of 16 kB x 2 x 3/4 / 100 GB/s.
    summed = 4 * 240_000
    assert run.total_ps == 5 * 3 * 10 * US * 8 // 4 + summed
    assert run.breakdown.exposed["tensor"] == summed
    # Beside the weight gradients, what is summed is hidden: but in forward passes.
    hidden = train(model(*layers), topology, parallel="tp=4", algorithm="ideal", samples=8)
    assert hidden.total_ps == 5 * 3 * 10 * US * 8 // 4 + summed // 2
    again = train(
        model(*layers), topology, parallel="tp=4", algorithm="ideal", samples=8, recompute=True
    )
    assert calls(again, "tensor").count(("recompute", 4)) == 1
    assert again.breakdown.forward == 2 * hidden.breakdown.forward


@pytest.mark.parametrize("zero", [1, 2])
def test_zero_moves_as_much_as_an_all_reduce(zero: int) -> None:
    workload = model(block("a"), block("b"))
    plain = train(workload, switch(8), algorithm="ideal", bucket=None)
    split = train(workload, switch(8), algorithm="ideal", bucket=None, parallel=f"dp=8,zero={zero}")
    assert split.total_ps == plain.total_ps
    assert [does for does, _ in calls(split, "data")] == ["weight gradient", "update"]


def test_zero_3_gathers_weights_twice_and_ahead() -> None:
    workload = model(block("a", 100), block("b", 100), block("c", 100))
    run = train(workload, switch(8), algorithm="ideal", parallel="dp=8,zero=3", bucket=1)
    kinds = [does for does, _ in calls(run, "data")]
    assert kinds.count("forward") == kinds.count("input gradient") == 3
    assert kinds.count("weight gradient") == 3
    # 2 MB x 7/8 / 100 GB/s: exposed are the first gathering and the last reduce-scatter.
    assert run.breakdown.exposed["data"] == 2 * 17_500_000
    assert run.total_ps == 900 * US + 2 * 17_500_000


def test_experts_exchange_tokens_there_and_back() -> None:
    experts = block("up", parameters=8 * 10**6, experts=8, routed=4000)
    layers = model(block("a"), experts, block("z"))
    topology = switch(4, 4)
    run = train(layers, topology, algorithm="ideal", parallel="dp=16,ep=4", bucket=None)
    assert [layer for _, layer in calls(run, "expert")] == [1] * 4
    # 4,000 numbers of 2 bytes, 3/4 of which leave, over a switch of 100 GB/s; four times.
    assert run.breakdown.exposed["expert"] == 4 * 60_000
    # Gradients of a quarter of the experts go over 4 replicas, the others' over all 16.
    sizes = {
        run.shapes[run.columns.shape[run.columns.call[node]]].lone_ps
        for node, tag in enumerate(tags(run))
        if tag.cause == "data"
    }
    of_experts = 2 * 2 * 2 * 10**6 * 3 * 10**12 // (4 * 100 * 10**9)
    of_others = 2 * 2 * 2 * 10**6 * 15 * 10**12 // (16 * 200 * 10**9)
    assert sizes == {of_experts, of_others}


def test_tables_of_one_name_are_two() -> None:
    work = Work(time_ps=US)
    table = Block("t", work, Work(), work, parameters=8, outputs=10**6, is_table=True, joins="top")
    layers = model(table, table, block("top", 5))
    run = train(layers, switch(4), algorithm="ideal", bucket=None)
    # 15 us each: forward, the first while the second table computes; backward, both at once.
    assert run.breakdown.exposed["table"] == (30 - 1) * US + 30 * US
    columns = run.columns
    back = [
        node
        for node, tag in enumerate(tags(run))
        if tag.cause == "table" and tag.does == "input gradient"
    ]
    waited = {
        tags(run)[node].layer: dep
        for node in range(len(columns.actor))
        for dep in columns.deps[columns.first_dep[node] : columns.first_dep[node + 1]]
        if dep in back
    }
    assert waited == {0: back[0], 1: back[1]}


def test_tables_are_exchanged_beside_other_layers() -> None:
    table = Block(
        "table",
        Work(time_ps=US),
        Work(),
        Work(time_ps=US),
        parameters=10**9,
        outputs=10**6,
        is_table=True,
        joins="top",
    )
    layers = model(table, block("bottom", 30), block("top", 5))
    run = train(layers, switch(4), algorithm="ideal", bucket=None)
    exchange = 2 * 10**6 * 3 * 10**12 // (4 * 100 * 10**9)
    assert exchange == 15 * US
    assert run.breakdown.exposed["table"] == 0
    assert len(calls(run, "table")) == 2
    slow = train(model(table, block("bottom", 10), block("top", 5)), switch(4), algorithm="ideal")
    # Forward 10 of 15 us are hidden; backward 20 us hide all of it.
    assert slow.breakdown.exposed["table"] == 5 * US
    # Their gradients stay where they are.
    assert run.communication_ps == 2 * exchange + 2 * 4_000_000 * 3 * 10**12 // (4 * 100 * 10**9)


blocks = st.builds(
    lambda i, forward, split, parameters: block(
        f"l{i}", forward, split=split, parameters=parameters
    ),
    st.integers(0, 10**6),
    st.integers(1, 300),
    st.sampled_from(["copied", "columns", "rows", "inside"]),
    st.integers(0, 10**7),
)


@given(
    layers=st.lists(blocks, min_size=1, max_size=8),
    parallel=st.sampled_from(["dp=32", "dp=8,tp=4", "tp=32", "dp=4,tp=4,pp=2", "dp=32,zero=3"]),
    algorithm=st.sampled_from(["hierarchical", "themis", "ideal"]),
    bucket=st.sampled_from([None, 1, 10**6]),
    iterations=st.integers(1, 3),
    overlap=st.booleans(),
)
@settings(deadline=None, max_examples=120)
def test_no_iteration_is_faster_than_its_parts(
    layers: list[Block],
    parallel: str,
    algorithm: str,
    bucket: int | None,
    iterations: int,
    overlap: bool,
) -> None:
    if "pp=2" in parallel:
        layers = [*layers, block("last")]
    run = train(
        model(*layers),
        switch(4, 8, latency="100 ns"),
        parallel=parallel,
        algorithm=algorithm,
        bucket=bucket,
        iterations=iterations,
        overlap_tensor=overlap,
        chunks=None if algorithm == "ideal" else 4,
        samples=8,
    )
    where = run.breakdown
    total = run.total_ps
    assert total >= where.compute
    # Nor faster than everything that is sent at all bandwidth: of any one stage.
    sent = [0.0] * len(run.stages)
    for node, call in enumerate(run.columns.call):
        if call < len(run.columns.shape):
            shape = run.shapes[run.columns.shape[call]]
            first = run.columns.members[run.columns.first_member[call]]
            if first == node and algorithm != "ideal":
                sent[run.columns.actor[node]] += sum(time for _, time in shape.busy_ps) / 2
    assert total >= max(sent)
    parts = where.compute + where.communication + where.waiting
    assert parts == pytest.approx(total, abs=1)
    assert where.waiting >= -1
    if parallel in ("dp=32", "tp=32") and bucket is None and not overlap:
        assert total == pytest.approx(where.compute + run.communication_ps, abs=1)
    assert sum(layer.exposed for layer in run.layers) <= where.communication * len(run.stages) + 1


def test_iterations_follow_each_other() -> None:
    workload = model(block("a"), block("b"))
    one, three = (
        train(workload, switch(8), algorithm="themis", iterations=count) for count in (1, 3)
    )
    assert three.total_ps == 3 * one.total_ps
    assert three.time_ps == one.total_ps


def test_update_reads_and_writes_adams_numbers() -> None:
    npu = hk.Accelerator("mine", "1 TFLOP/s", "1000 GB/s")
    run = train(model(block("a")), switch(4), npu=npu, update=True)
    assert run.breakdown.update == 28 * 10**6  # 28 bytes of 10^6 parameters, a byte a ps
    shared = train(model(block("a")), switch(4), npu=npu, update=True, parallel="dp=4,zero=1")
    assert shared.breakdown.update == 7 * 10**6


def test_rooflines_are_the_longer_of_two() -> None:
    npu = hk.Accelerator("mine", "2 TFLOP/s", "100 GB/s", efficiency=0.5, memory_efficiency=0.5)
    work = Work(10**9, 10**6)
    assert npu.time_ps(work, Fraction(1)) == 10**9
    assert npu.time_ps(work, Fraction(1), Fraction(99 * 10**6)) == 2 * 10**9
    assert npu.time_ps(Work(time_ps=7), Fraction(3, 2)) == 11
    unlimited = hk.Accelerator("mine", "1 TFLOP/s")
    assert unlimited.time_ps(Work(1, 10**15), Fraction(1)) == 1


def test_chiplets_count_cycles() -> None:
    workload = hk.workload.load("alphagozero")
    chiplet = hk.Chiplet()
    cycles = chiplet.workload(workload, 16)
    topology = hk.topology.mesh(4, 4, bandwidth="25 GB/s", latency="21 ns")
    run = train(workload, topology, npu=chiplet, samples=16, algorithm="ring", bucket=None)
    # Times of a sample are rounded up to whole picoseconds.
    assert 0 <= run.breakdown.compute - chiplet.time_ps(cycles.total) < 16 * 3 * len(cycles.layers)


def test_weights_are_gathered_at_once() -> None:
    """After the update, those of experts and of other layers wait for nothing but it."""
    experts = block("up", parameters=8 * 10**6, experts=8, routed=4000)
    run = train(
        model(block("a"), experts), switch(4, 4), algorithm="ideal", parallel="dp=16,ep=4,zero=1"
    )
    gathers = [node for node, tag in enumerate(tags(run)) if tag.does == "update"][1:]
    assert len(gathers) == 2
    assert len({int(run.outcome.start_ps[node]) for node in gathers}) == 1
    assert all(tags(run)[node].cause == "data" for node in gathers)


def test_updates_are_shared_by_those_that_have_the_same() -> None:
    npu = hk.Accelerator("mine", "1 TFLOP/s", "1000 GB/s")
    experts = block("up", parameters=8 * 10**6, experts=8, routed=4000)

    def update(*blocks: Block, **options: object) -> float:
        run = train(model(*blocks), switch(4, 4), npu=npu, update=True, **options)
        return run.breakdown.update

    # 28 bytes of a quarter of the experts, all of it or shared by 4 replicas.
    assert update(experts, parallel="dp=16,ep=4") == 28 * 2 * 10**6
    assert update(experts, parallel="dp=16,ep=4,zero=1") == 28 * 10**6 // 2
    table = block("table", parameters=10**9, is_table=True)
    assert update(table, block("a"), parallel="dp=16") == 28 * 10**6


def test_rows_of_tables_are_all_that_is_read_of_them() -> None:
    npu = hk.Accelerator("mine", "1 TFLOP/s", "1000 GB/s")
    table = Block(
        "table", Work(bytes=10**6), parameters=10**12, inputs=0, outputs=1000, is_table=True
    )
    run = train(model(table, block("a")), switch(4), npu=npu, algorithm="none")
    assert run.breakdown.forward == 10**6 + 10 * US


@pytest.mark.parametrize(
    ("split", "share"), [("copied", 1), ("columns", 4), ("inside", 4), ("rows", 1)]
)
def test_stages_pass_on_what_an_npu_has(split: str, share: int) -> None:
    layers = [block("a", split=split, outputs=4000), block("b", inputs=4000)]
    run = train(
        model(*layers),
        hk.topology.product("SW_Ring", [4, 2], bandwidth=["1 GB/s"] * 2, latency=["0 ns"] * 2),
        parallel=hk.Parallel(tp=4, pp=2, micro_batches=1),
        algorithm="hierarchical",
    )
    sent = [(node, tag) for node, tag in enumerate(tags(run)) if tag.cause == "pipeline"]
    times = {
        tag.does: run.shapes[run.columns.shape[run.columns.call[node]]].lone_ps
        for node, tag in sent
    }
    assert times["forward"] == 8 * US // share
    assert times["input gradient"] == 8 * US  # b is copied: its NPUs have all of it.
    assert run.breakdown.communication > 0


@pytest.mark.parametrize(
    ("split", "share"), [("copied", 1), ("columns", 1), ("inside", 4), ("rows", 4)]
)
def test_gradients_go_back_as_they_are_cut(split: str, share: int) -> None:
    layers = [block("a", outputs=4000), block("b", split=split, inputs=4000)]
    run = train(
        model(*layers),
        hk.topology.product("SW_Ring", [4, 2], bandwidth=["1 GB/s"] * 2, latency=["0 ns"] * 2),
        parallel=hk.Parallel(tp=4, pp=2, micro_batches=1),
        algorithm="hierarchical",
    )
    back = [
        run.shapes[run.columns.shape[run.columns.call[node]]].lone_ps
        for node, tag in enumerate(tags(run))
        if tag.cause == "pipeline" and tag.does == "input gradient"
    ]
    assert set(back) == {8 * US // share}


@pytest.mark.parametrize(("zero", "times"), [(0, 1), (1, 1), (2, 3), (3, 3)])
def test_gradients_without_a_place_are_reduced_for_each_micro_batch(zero: int, times: int) -> None:
    for bucket, calls_of in ((None, 1), (1, 2)):
        run = train(
            model(block("a"), block("b")),
            switch(4),
            parallel=hk.Parallel(dp=4, zero=zero, micro_batches=3),
            algorithm="ideal",
            samples=3,
            bucket=bucket,
        )
        kinds = [does for does, _ in calls(run, "data")]
        assert kinds.count("weight gradient") == times * calls_of


HUGE = 1 << 62


@pytest.mark.parametrize(
    ("blocks", "options", "words"),
    [
        ([block("a", outputs=HUGE, split="rows")], {"parallel": "tp=4"}, "2\\^60 bytes"),
        ([Block("a", Work(flops=HUGE))], {}, "longer than a month"),
        ([Block("a", Work(flops=1))], {"efficiency": 5e-324}, "longer than a month"),
        ([block("a", outputs=10**10, is_table=True), block("b")], {}, "46 days"),
        ([block("a", parameters=10**14)], {"algorithm": "ideal"}, "46 days"),
        (
            [block("a", experts=2, routed=1)],
            {"parallel": "dp=4,ep=4"},
            "ep=4 does not divide the 2",
        ),
        ([block("a")], {"chunks": -3}, "chunks: -3"),
        ([block("a")], {"chunks": 1 << 40}, "chunks"),
        ([block("a")], {"bucket": -1}, "bucket: -1"),
        ([block("a")], {"bucket": 1.5}, "bucket: 1.5"),
        ([block("a")], {"parallel": 4}, "parallel: 4 is not a list of sizes"),
        ([block("a")], {"algorithm": 5}, "algorithm: 5"),
    ],
)
def test_huge_and_odd_input_is_refused(
    blocks: list[Block], options: dict[str, object], words: str
) -> None:
    topology = hk.topology.product("Ring", [4], bandwidth=["1 B/s"], latency=[NO_LATENCY])
    with pytest.raises(hk.SpecError, match=words) as error:
        train(model(*blocks), topology, **{"samples": 1 << 24, **options})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("algorithm", ["themis", "hierarchical"])
@pytest.mark.parametrize("chunks", [None, 1, 64, 10**6])
def test_little_is_cut_into_fewer_chunks(algorithm: str, chunks: int | None) -> None:
    small = block("a", parameters=1, outputs=1, is_table=False)
    table = block("table", parameters=1, outputs=1, is_table=True)
    for topology in (switch(4), switch(2, 3)):
        run = train(model(table, small), topology, algorithm=algorithm, chunks=chunks)
        assert run.total_ps > 0


def test_odd_shapes_are_one_line() -> None:
    ring = hk.topology.product("Ring", [4], bandwidth=["1 B/s"], latency=[NO_LATENCY])
    made = [
        lambda: Shape.timed(2**64 - 1, 0),
        lambda: Shape.message(ring, [1], 2**64 - 1, "store-and-forward", [0]),
        lambda: Shape.message(ring, [2**32 - 1], 1, "cut-through", [0]),
        lambda: Shape.message(ring, [0], 1, "cut-through", [0]),
        lambda: Shape.all_to_all(ring, 2**64 - 1, 1, "cut-through", [0]),
        lambda: Shape.all_to_all(ring, 100, 2**62, "cut-through", [0]),
        lambda: Shape.all_to_all(ring, 100, 1, "cut-through", [65535]),
    ]
    for make in made:
        with pytest.raises(hk.SpecError) as error:
            make()
        assert "\n" not in str(error.value)


def test_tables_wait_for_their_gradients() -> None:
    table = block("table", 1, parameters=10**9, outputs=10**6, is_table=True, joins="top")
    layers = model(table, block("bottom", 2), block("top", 5))
    run = train(layers, switch(4), algorithm="ideal", bucket=None)
    # 15 us each way: beside the bottom's 2 us forward and 4 us backward.
    assert run.breakdown.exposed["table"] == (15 - 2 + 15 - 4) * US


def test_what_is_summed_beside_weights_is_waited_for() -> None:
    layers = model(block("a", 4), block("b", 4, split="columns", inputs=10**6))
    run = train(layers, switch(4), parallel="tp=4", algorithm="ideal")
    # 2 x 2 MB x 3/4 / 100 GB/s = 30 us, beside 1 us of b's weight gradient.
    assert run.breakdown.exposed["tensor"] == 29 * US
    assert run.total_ps == (3 * 4 + 3 * 1 + 29) * US


def test_experts_that_are_cut_get_a_part_each() -> None:
    experts = block("up", parameters=8 * 10**6, experts=8, routed=4000, split="columns")
    run = train(
        model(experts), switch(2, 4), algorithm="ideal", parallel="tp=2,dp=4,ep=4", bucket=None
    )
    assert run.breakdown.exposed["expert"] == 4 * 60_000 // 2


@pytest.mark.parametrize("zero", [1, 2])
def test_iterations_wait_for_gathered_weights(zero: int) -> None:
    one, two = (
        train(
            model(block("a")),
            switch(8),
            algorithm="ideal",
            parallel=f"dp=8,zero={zero}",
            iterations=count,
        )
        for count in (1, 2)
    )
    assert two.total_ps == 2 * one.total_ps


def test_weights_are_gathered_after_they_are_updated() -> None:
    run = train(
        model(block("a"), block("b")),
        switch(8),
        algorithm="ideal",
        parallel="dp=8,zero=3",
        iterations=2,
    )
    found = tags(run)
    updated = next(node for node, tag in enumerate(found) if tag.does == "update")
    starts = [
        int(run.outcome.start_ps[node])
        for node, tag in enumerate(found)
        if tag.iteration == 1 and tag.cause == "data"
    ]
    assert min(starts) >= int(run.outcome.end_ps[updated])
