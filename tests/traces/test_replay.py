"""Traces replayed on networks: closed forms, an independent slow replay, and what is refused."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket as hk
from hocket import traces
from hocket._core.trace import Draft, Trace
from hocket.files.perfetto import Span, in_lanes, write_spans
from hocket.traces.placement import portions_of

from . import chakra_files as chakra
from .chakra_files import Node, collective, receive, send

REAL = Path(__file__).parents[1] / "data" / "chakra"
MB = 1 << 20
US = 10**6


def make(*ranks: list[Node], groups: dict[int, list[int]] | None = None) -> Trace:
    files = [(f"t.{rank}.et", chakra.trace_bytes(nodes)) for rank, nodes in enumerate(ranks)]
    return Draft(files, "all").link(list((groups or {}).items()))


def ring(npus: int) -> hk.Topology:
    return hk.topology.ring(npus, bandwidth="50 GB/s", latency="500 ns")


def product(name: str, sizes: list[int]) -> hk.Topology:
    count = len(sizes)
    return hk.topology.product(
        name, sizes, bandwidth=["100 GB/s"] * count, latency=["700 ns"] * count
    )


NETWORKS = {
    "ring": ring(4),
    "switch": product("SW", [4]),
    "grid": product("Ring_SW", [2, 2]),
}
KINDS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]


def check_sums(run: traces.TraceRun) -> None:
    """Times of each rank add up to its end, and the last end is the run's."""
    spans = run.outcome.end_ps.astype(object)
    first, kinds = run.trace.rank_first, run.trace.kind
    for row in run.ranks:
        # That a message has gone is nobody's wait, of its sender least.
        own = range(first[row.rank], first[row.rank + 1])
        ends = [spans[node] for node in own if traces.KINDS[kinds[node]] != "send"]
        assert row.compute + row.exposed + row.waited + row.rest == row.end
        assert row.end == max(ends, default=0)
    assert max((row.end for row in run.ranks), default=0) == run.time_ps


# Real traces.


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("name", KINDS)
def test_one_collective_takes_what_it_takes_alone(name: str, network: str) -> None:
    trace, topology = traces.load(REAL / name), NETWORKS[network]
    kind, size = name.replace("_", "-"), int(trace.calls_size[0])
    for algorithm in ("greedy", "direct", "ring"):
        run = traces.replay(trace, topology, algorithm=algorithm, chunks=1)
        does = algorithm if (algorithm, kind) != ("ring", "all-to-all") else "direct"
        plan = hk.plan(kind, topology, size=size, algorithm=does, chunks=1)
        alone = hk.simulate(plan).time_ps
        # Instead of what an algorithm does not do, the number of chunks is the fastest.
        assert run.time_ps == alone if does == algorithm else 0 < run.time_ps <= alone
        assert bool(run.notes) == (does != algorithm)
        check_sums(run)
    if kind == "all-to-all":
        return
    for algorithm in ("themis", "hierarchical"):
        run = traces.replay(trace, topology, algorithm=algorithm)
        schedule = hk.schedule(kind, topology, size=size, algorithm=algorithm, chunks=64)
        assert run.time_ps == schedule.simulate().time_ps
        assert run.notes == ()
        check_sums(run)


def test_all_bandwidth_and_no_time() -> None:
    trace = traces.load(REAL / "all_reduce")
    ideal = traces.replay(trace, ring(4), algorithm="ideal")
    assert ideal.time_ps == 2 * MB * 3 // 4 * 10  # both directions: 100 GB/s, 10 ps a byte
    assert traces.replay(trace, ring(4), algorithm="none").time_ps == 0


@pytest.mark.parametrize("algorithm", ["themis", "ring", "greedy"])
@pytest.mark.parametrize("npus", [8, 10])
def test_a_ring_of_sends_and_receives(algorithm: str, npus: int) -> None:
    """14 steps of a block to the next rank, 7 sums; 10 NPUs: rank 7 is 3 links from rank 0."""
    run = traces.replay(traces.load(REAL / "custom_allreduce"), ring(npus), algorithm=algorithm)
    block = MB // 8 * 20  # 50 GB/s
    if npus == 8:
        assert run.time_ps == 14 * (block + 500_000) + 7 * 7 * US
        assert [row.compute for row in run.ranks] == [49 * US] * 8
        assert [row.exposed for row in run.ranks] == [run.time_ps - 49 * US] * 8
    else:
        assert run.time_ps > 14 * (block + 500_000) + 7 * 7 * US
    check_sums(run)
    messages = run.kinds["message"]
    assert (messages.calls, messages.size) == (112, 14 * MB)


def test_the_ring_of_astra_sim() -> None:
    """2 (n - 1) (a + S / (n B)) over one direction, to which its run adds 211 ns."""
    topology = hk.topology.ring(16, bandwidth="50 GiB/s", latency="500 ns")
    trace = make(*[[collective(0, chakra.ALL_REDUCE, 64 * MB)]] * 16)
    run = traces.replay(trace, topology, algorithm="ring", chunks=1)
    assert run.time_ps == 2_358_750_000
    assert 0 <= 2_358_961_000 - run.time_ps < 0.0001 * run.time_ps


def test_a_pytorch_trace() -> None:
    import gzip

    packed = gzip.decompress((REAL / "pytorch_chakra.0.et.gz").read_bytes())
    trace = Draft([("pytorch.0.et", packed)], "data").link([])
    run = traces.replay(trace, hk.topology.load("dgx1_v100"))
    npu = (trace.kind == chakra.COMPUTE) & (trace.is_cpu == 0)
    assert run.ranks[0].compute == int(trace.duration_ps[npu].sum())
    check_sums(run)


# Groups and messages.


def test_a_group_is_a_part_of_the_dimensions() -> None:
    topology = product("Ring_SW_FC", [8, 4, 4])
    for npus, wanted in [
        (range(128), [(0, 8, 1), (1, 4, 1), (2, 4, 1)]),
        (range(8), [(0, 8, 1)]),
        (range(0, 8, 2), [(0, 4, 2)]),
        ((0, 7), [(0, 2, 1)]),
        ((6, 7, 0), [(0, 3, 1)]),
        ((0, 3), [(0, 2, 3)]),
        ((0, 8, 24), [(1, 3, 1)]),
        ((0, 32, 96), [(2, 3, 1)]),
        ((0, 64), [(2, 2, 2)]),
        ((5, 13, 4, 12), [(0, 2, 1), (1, 2, 1)]),
        ((5,), []),
        ((0, 1, 3), None),
        ((0, 9), None),
        ((0, 1, 8), None),
    ]:
        found = portions_of(topology, tuple(npus))
        assert found == (None if wanted is None else tuple(wanted)), npus


@given(st.data())
@settings(deadline=None, max_examples=50)
def test_products_are_found_wherever_they_lie(data: st.DataObject) -> None:
    sizes = (5, 4, 3)
    topology = product("SW_SW_FC", list(sizes))
    along = [
        data.draw(st.sets(st.integers(0, size - 1), min_size=1), label=f"of {size}")
        for size in sizes
    ]
    npus = [x + 5 * y + 20 * z for x, y, z in itertools.product(*along)]
    npus = data.draw(st.permutations(npus))
    found = portions_of(topology, npus)
    assert found is not None
    counts = {portion.dimension: portion.size for portion in found}
    assert [counts.get(place, 1) for place in range(3)] == [len(each) for each in along]
    if len(npus) > 3 and len([each for each in along if len(each) > 1]) > 1:
        assert portions_of(topology, npus[1:]) is None or len(npus) == 4


def test_groups_take_what_their_part_takes() -> None:
    topology = product("SW_SW", [4, 2])
    groups = {1: [0, 1, 2, 3], 2: [4, 5, 6, 7]}
    ranks = [[collective(0, chakra.ALL_REDUCE, MB, str(1 + rank // 4))] for rank in range(8)]
    run = traces.replay(make(*ranks, groups=groups), topology)
    part = hk.schedule("all-reduce", product("SW", [4]), size=MB, algorithm="themis", chunks=64)
    assert run.time_ps == part.simulate().time_ps
    assert run.graph.station.tolist() == [0] * 4 + [4] * 4
    assert [(call.group, call.ranks) for call in run.calls] == [
        (1, (0, 1, 2, 3)),
        (2, (4, 5, 6, 7)),
    ]


def test_a_group_that_is_no_part_is_planned() -> None:
    topology = product("SW_SW", [4, 2])
    nodes = [collective(0, chakra.ALL_REDUCE, MB, "1")]
    run = traces.replay(make(nodes, nodes, [], nodes, nodes, groups={1: [0, 1, 3, 4]}), topology)
    plan = hk.plan("all-reduce", topology, size=MB, npus=[0, 1, 3, 4], algorithm="ring", chunks=1)
    # Numbers of chunks are tried, and the fastest counts.
    assert 0 < run.time_ps <= hk.simulate(plan).time_ps
    assert run.notes == (
        "all-reduce of ranks 0, 1, 3, 4: these are no product of parts of dimensions; planned by "
        "ring and timed alone",
    )


def test_lost_links_leave_plans() -> None:
    topology = product("Ring_SW", [4, 2]).without([], [("npu0", "npu1")])
    trace = make(*[[collective(0, chakra.ALL_REDUCE, MB)]] * 8)
    run = traces.replay(trace, topology, chunks=2)
    assert run.algorithm == "auto"
    plan = hk.plan("all-reduce", topology, size=MB, algorithm="greedy", chunks=2)
    assert run.time_ps == hk.simulate(plan).time_ps
    sent = make([send(0, 1, MB)], [receive(0, 0, MB)])
    assert traces.replay(sent, topology).time_ps == MB * 10 + 3 * 700_000  # the long way round


def test_notes_count_groups() -> None:
    groups = {1: [0, 5], 2: [1, 6], 3: [2, 7]}
    ranks = [[collective(0, chakra.ALL_REDUCE, MB, str(1 + rank % 5))] for rank in range(8)]
    ranks[3] = ranks[4] = []
    run = traces.replay(make(*ranks, groups=groups), product("SW_SW", [4, 2]))
    assert len(run.notes) == 1
    assert run.notes[0].startswith("all-reduce of ranks 0, 5 and 2 more groups: these are no")


@pytest.mark.parametrize("algorithm", ["themis", "ring", "greedy", "direct"])
@pytest.mark.parametrize("size", [0, 1, 5, 1000])
def test_sizes_too_small_to_be_cut(size: int, algorithm: str) -> None:
    nodes = [collective(kind, kind, size) for kind in range(10)]
    run = traces.replay(make(*[nodes] * 6), product("Ring_SW", [4, 2]), algorithm=algorithm)
    spans = [call.end_ps - call.start_ps for call in run.calls]
    assert [span > 0 for span in spans] == [size > 0 and kind != 9 for kind in range(10)]
    check_sums(run)


def test_what_cannot_be_planned_is_not_remembered_as_something_else() -> None:
    """Both sizes count as 48 bytes, for which ring has no plan."""
    nodes = [
        collective(0, chakra.ALL_TO_ALL, 1),
        Node(1, micros=1, data=[0]),
        collective(2, chakra.ALL_TO_ALL, 5, data=[1]),
    ]
    run = traces.replay(make(*[nodes] * 6), ring(6), algorithm="ring")
    plan = hk.plan("all-to-all", ring(6), size=48, algorithm="direct", chunks=1)
    spans = [call.end_ps - call.start_ps for call in run.calls]
    assert spans == [hk.simulate(plan).time_ps] * 2
    assert len(run.notes) == 1


def test_one_byte_over_a_thousand() -> None:
    nodes = [collective(0, chakra.ALL_REDUCE, 1)]
    topology = product("SW_SW_SW", [16, 8, 8])
    run = traces.replay(make(*[nodes] * 1024), topology)
    alone = hk.schedule("all-reduce", topology, size=8192, algorithm="themis", chunks=1)
    assert run.time_ps == alone.simulate().time_ps
    assert set(run.graph.station.tolist()) == {0}


def test_messages_go_along_every_dimension() -> None:
    topology = product("Ring_SW", [8, 4])
    nodes = [[], *[[] for _ in range(31)]]
    nodes[0], nodes[30] = [send(0, 30, MB)], [receive(0, 0, MB)]
    run = traces.replay(make(*nodes), topology)
    # 2 links of a ring, then up and down a switch, as a whole along each: 100 GB/s, 10 ps a byte.
    assert run.time_ps == 2 * MB * 10 + (2 + 2) * 700_000
    check_sums(run)
    assert run.ranks[30].exposed == run.time_ps
    assert run.calls[0].ranks == (0, 30)
    lone = traces.replay(make([send(0, 0, MB), receive(1, 0, MB)]), topology)
    assert lone.time_ps == 0  # to itself


def test_a_message_without_dimensions_is_planned() -> None:
    topology = hk.topology.load("dgx1_v100")
    run = traces.replay(make([send(0, 1, MB)], [receive(0, 0, MB)]), topology)
    plan = hk.plan("broadcast", topology, size=MB, npus=[0, 1], root=0, algorithm="direct")
    assert run.time_ps == hk.simulate(plan).time_ps
    assert traces.replay(make([send(0, 1, 0)], [receive(0, 0, 0)]), topology).time_ps > 0


def test_the_greatest_priority_is_served_first() -> None:
    """Both begin at once on one station."""
    nodes = [collective(0, chakra.ALL_REDUCE, MB), collective(1, chakra.ALL_GATHER, MB)]
    ends = []
    for priority in (0, 1):
        nodes[1].attributes["comm_priority"] = priority
        run = traces.replay(make(*[nodes] * 4), ring(4), algorithm="ring")
        ends.append([call.end_ps for call in run.calls])
    assert ends[0][0] < ends[0][1] == ends[1][0] > ends[1][1]
    nodes[1].attributes["comm_priority"] = 0
    last = traces.replay(make(*[nodes] * 4), ring(4), algorithm="ring", order="lifo")
    assert [call.end_ps for call in last.calls] == ends[1]


# Computation.


def test_operations_take_their_roofline() -> None:
    work = {"num_ops": 312 * 10**9, "tensor_size": 1000}
    moves = {"num_ops": 10**6, "tensor_size": 2039 * 10**6}
    nodes = [
        Node(0, attributes=work),
        Node(1, attributes=moves, data=[0]),
        Node(2, micros=3, attributes=work, data=[1]),
        Node(3, kind=chakra.MEMORY_LOAD, attributes=moves),
    ]
    run = traces.replay(make(nodes), ring(2))
    assert run.outcome.end_ps.tolist() == [10**9, 2 * 10**9, 2 * 10**9 + 3 * US, 10**9]
    half = traces.replay(make(nodes), ring(2), efficiency=0.5)
    assert half.outcome.end_ps.tolist() == [2 * 10**9, 3 * 10**9, 3 * 10**9 + 3 * US, 10**9]
    fast = hk.Accelerator("fast", "1000000 TFLOP/s")
    assert traces.replay(make(nodes), ring(2), npu=fast).time_ps < 4 * US


@st.composite
def jobs(draw: st.DrawFn) -> list[list[Node]]:
    """Ranks of computations and of messages from each to the next, one after the other."""
    ranks: list[list[Node]] = [[] for _ in range(draw(st.integers(1, 4)))]
    for step in range(draw(st.integers(0, 24))):
        rank = draw(st.integers(0, len(ranks) - 1))
        other = (rank + 1) % len(ranks)

        def deps(of: int) -> list[int]:
            ids = [node.id for node in ranks[of]]
            return draw(st.lists(st.sampled_from(ids), max_size=3)) if ids else []

        if other != rank and draw(st.booleans()):
            size = draw(st.integers(0, 4)) * 1000
            sent = [node.id for node in ranks[rank] if node.kind == chakra.SEND][-1:]
            ranks[rank].append(send(step, other, size, step, data=deps(rank), control=sent))
            ranks[other].append(receive(step, rank, size, step, data=deps(other)))
        else:
            kind = draw(st.sampled_from([1, 2, 3, 4, 4, 4]))
            cpu = {"is_cpu_op": draw(st.booleans())}
            micros = draw(st.integers(1, 5))
            ranks[rank].append(Node(step, kind, "n", deps(rank), (), micros, attributes=cpu))
    return ranks


def slow_replay(ranks: list[list[Node]]) -> dict[tuple[int, int], int]:
    """When each node ends, moment by moment; messages take no time.

    An engine takes, of the nodes that may begin, the first of the file.
    """
    left = {(rank, node.id): node for rank, nodes in enumerate(ranks) for node in nodes}
    end: dict[tuple[int, int], int] = {}
    going: dict[tuple[int, int], tuple[int, tuple[int, int]]] = {}

    def may_begin(key: tuple[int, int], now: int) -> bool:
        node = left[key]
        return all(end.get((key[0], on), now + 1) <= now for on in (*node.control, *node.data))

    def ends(key: tuple[int, int], now: int) -> bool:
        node = left[key]
        if node.kind in (2, 3, 4):
            return (now, key) in going.values()
        sender = ((key[0] - 1) % len(ranks), key[1])
        return may_begin(key, now) and (node.kind != 6 or end.get(sender, now + 1) <= now)

    now = 0
    while left:
        while ended := [key for key in left if ends(key, now)]:
            for key in ended:
                end[key] = now
                del left[key]
            going = {engine: of for engine, of in going.items() if of[1] in left}
        for key, node in left.items():
            engine = (key[0], int(node.kind != 4 or bool(node.attributes["is_cpu_op"])))
            if node.kind in (2, 3, 4) and engine not in going and may_begin(key, now):
                going[engine] = (now + node.micros * US, key)
        if left:
            assert going
            now = min(at for at, _ in going.values())
    return end


@given(jobs())
@settings(deadline=None, max_examples=200)
def test_a_slow_replay_says_the_same(ranks: list[list[Node]]) -> None:
    trace = make(*ranks)
    run = traces.replay(trace, ring(4), algorithm="none")
    wanted = slow_replay(ranks)
    keys = [(rank, node.id) for rank, nodes in enumerate(ranks) for node in nodes]
    assert run.outcome.end_ps.tolist() == [wanted[key] for key in keys]
    check_sums(run)


@given(jobs())
@settings(deadline=None, max_examples=100)
def test_no_run_is_shorter_than_its_bounds(ranks: list[list[Node]]) -> None:
    """Of each rank: its longest chain, and what its NPU computes; of a message, its bytes."""
    trace = make(*ranks)
    run = traces.replay(trace, ring(4))
    check_sums(run)
    for rank, nodes in enumerate(ranks):
        chain: dict[int, int] = {}
        for node in nodes:
            longest = max((chain[on] for on in (*node.control, *node.data)), default=0)
            time = node.micros * US
            if node.kind in (5, 6):
                size = node.attributes["comm_size"]
                time = size * 20 if node.kind == 5 else 0  # type: ignore[operator]
            chain[node.id] = longest + (0 if node.kind == 1 else time)
        assert run.time_ps >= max(chain.values(), default=0)
        npu = [n.micros for n in nodes if n.kind == 4 and not n.attributes["is_cpu_op"]]
        assert run.ranks[rank].compute == sum(npu) * US
    for call in run.calls:
        assert call.end_ps - call.start_ps >= call.size * 20 + 500_000


def test_what_takes_no_time_ends_before_engines_choose() -> None:
    """Of the nodes that may begin, the first of the file: one that waits for barriers as well."""
    nodes = [
        collective(0, chakra.BARRIER, 1),
        collective(1, chakra.BARRIER, 1),
        Node(2, micros=9, data=[0, 1]),
        Node(3, micros=6),
    ]
    run = traces.replay(make(nodes), ring(2))
    assert run.outcome.end_ps.tolist() == [0, 0, 9 * US, 15 * US]


@pytest.mark.parametrize("kind", [chakra.BROADCAST, chakra.REDUCE])
def test_all_bandwidth_carries_all_bytes_of_a_root(kind: int) -> None:
    """Half of them would do in an all-gather of two: here one NPU has, or gets, them all."""
    network = hk.topology.product("SW", [2], bandwidth=["1 GB/s"], latency=["0 ns"])
    trace = make([collective(0, kind, 1000)], [collective(0, kind, 1000)])
    assert traces.replay(trace, network, algorithm="ideal").time_ps == US


# Timelines.


def test_a_timeline_has_every_span(tmp_path: Path) -> None:
    nodes = [
        Node(0, micros=2, name='a "b"\n'),
        collective(1, chakra.ALL_REDUCE, MB, data=[0], name="sum"),
        Node(2, kind=chakra.MEMORY_STORE, micros=1),
        Node(3, kind=chakra.METADATA),
    ]
    run = traces.replay(make(nodes, nodes), ring(2))
    run.write_perfetto(tmp_path / "t.json")
    text = (tmp_path / "t.json").read_text()
    events = json.loads(text)["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert [(e["pid"], e["tid"], e["name"]) for e in spans] == [
        (rank, *each) for rank in range(2) for each in [(0, 'a "b"\n'), (1, "node"), (2, "sum")]
    ]
    assert [event["dur"] for event in spans[:2]] == [2, 1]
    assert spans[2]["ts"] == 2
    assert spans[2]["dur"] == pytest.approx((run.time_ps - 2 * US) / US)
    names = [event["args"]["name"] for event in events if event["ph"] == "M"]
    assert names == ["rank 0", "rank 1", *["NPU", "CPU and memory", "calls"] * 2]
    with pytest.raises(hk.SpecError, match=r"there is no folder"):
        run.write_perfetto(tmp_path / "none" / "t.json")


def test_times_are_written_to_the_picosecond(tmp_path: Path) -> None:
    spans = [Span(0, 0, "x", 1, (1 << 60) + 1, "c")] * 3
    write_spans(tmp_path / "t.json", {0: "p"}, {}, spans)
    text = (tmp_path / "t.json").read_text()
    assert text.count('"ts":0.000001,"dur":1152921504606.846976') == 3
    assert len(json.loads(text)["traceEvents"]) == 4
    write_spans(tmp_path / "t.json", {}, {}, [])
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"] == []

    def broken() -> itertools.chain[Span]:
        return itertools.chain(spans, map(int, ["x"]))  # type: ignore[arg-type]

    with pytest.raises(ValueError, match="invalid literal"):
        write_spans(tmp_path / "t.json", {}, {}, broken())
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"] == []
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 10)), max_size=20))
def test_lanes(given: list[tuple[int, int]]) -> None:
    spans = [(start, start + length) for start, length in given]
    lanes = in_lanes(spans)
    for (one, lane), (other, its) in itertools.combinations(zip(spans, lanes, strict=True), 2):
        assert lane != its or one[1] <= other[0] or other[1] <= one[0]
    most = max((sum(a <= t < b for a, b in spans) for t in range(31)), default=0)
    assert len(set(lanes)) == most


# What is refused.


def test_ranks_that_wait_for_each_other() -> None:
    one = [
        collective(1, chakra.ALL_REDUCE, 8, "1", name="first"),
        collective(2, chakra.ALL_REDUCE, 8, "2", data=[1]),
    ]
    other = [
        collective(4, chakra.ALL_REDUCE, 8, "2", name="second"),
        collective(5, chakra.ALL_REDUCE, 8, "1", data=[4], name="third"),
    ]
    trace = make(one, other, groups={1: [0, 1], 2: [1, 0]})
    with pytest.raises(hk.SpecError) as caught:
        traces.replay(trace, ring(2))
    assert str(caught.value) == (
        'rank 0: node 1 "first" never ends: it waits for node 5 "third" of rank 1, which never '
        "starts; ranks wait for each other: check the order of their calls"
    )
    trace = make(
        [receive(0, 1, 8), send(1, 1, 8, data=[0])], [receive(0, 0, 8), send(1, 0, 8, data=[0])]
    )
    with pytest.raises(
        hk.SpecError, match=r'rank 0: node 0 "node" never ends.*node 1 .* of rank 1'
    ):
        traces.replay(trace, ring(2))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"topology": ring(2)}, "the trace has 4 ranks; topology 'ring 2' has 2 NPUs"),
        ({"topology": "ring"}, "topology: there is no 'ring'"),
        ({"trace": "t"}, "trace: 't' is not a Trace"),
        ({"algorithm": "themsi"}, "themsi"),
        ({"algorithm": "themis", "topology": hk.topology.load("dgx1_v100")}, "has none; use"),
        ({"chunks": 0}, "chunks: 0 is not a number of chunks"),
        ({"npu": "a10"}, "npu: there is no 'a10'"),
        ({"npu": 3}, "npu: 3 is not an accelerator"),
        ({"efficiency": -1}, "efficiency: -1 is not valid"),
        ({"efficiency": 50}, "efficiency: 50 is not valid; give a number above 0 and up to 1; did"),
        ({"order": "random"}, "order: there is no 'random'; use fifo or lifo"),
    ],
)
def test_what_is_refused(given: dict[str, object], words: str) -> None:
    options = {"trace": traces.load(REAL / "all_reduce"), "topology": ring(4), **given}
    with pytest.raises(hk.Error) as caught:
        traces.replay(**options)  # type: ignore[arg-type]
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_times_past_the_clock_are_refused() -> None:
    nodes = [Node(0, micros=10**13)]
    with pytest.raises(hk.SpecError, match="46 days"):
        traces.replay(make(nodes), ring(2))


def test_an_empty_trace_takes_no_time() -> None:
    run = traces.replay(make([], []), ring(2))
    assert (run.time_ps, run.calls, run.kinds) == (0, [], {})
    assert [row.end for row in run.ranks] == [0, 0]
    assert np.array_equal(run.call_of, np.array([], dtype=np.uint32))


@pytest.mark.parametrize("algorithm", ["ideal", "none"])
def test_chunks_are_refused_where_nothing_is_cut(algorithm: str) -> None:
    trace = make(*[[collective(1, "all_reduce", MB)]] * 4)
    with pytest.raises(hk.SpecError) as error:
        traces.replay(trace, NETWORKS["switch"], algorithm=algorithm, chunks=8)
    assert str(error.value) == f"chunks: {algorithm} does not use it; leave it out"
