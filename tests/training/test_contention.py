"""Groups that communicate at the same time on networks without dimensions share the links."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket as hk
from hocket.errors import SpecError
from hocket.training.contention import at_once, servers, use_of
from hocket.training.network import network_of
from hocket.training.parallel import Group, Parallel, groups
from hocket.workload.costs import Block, Work

from .small_models import Model

SIZE = 2_000_000
US = 10**6


def two_switches(slow: str = "1 GB/s") -> hk.Topology:
    """NPUs 0 and 1 at one switch, 2 and 3 at another; a slow link between them, no latency."""
    made = hk.topology.clos(
        spines=1, tors=2, hosts_per_tor=2, bandwidth=slow, host_bandwidth="1 TB/s", latency="0 ns"
    )
    return made.with_switching("cut-through")


def grid() -> hk.Topology:
    """2 x 2 NPUs, the links along each row and column their own."""
    return hk.topology.mesh(2, 2, bandwidth="1 GB/s", latency="0 ns")


def members(topology: hk.Topology, parallel: str) -> dict[str, Group]:
    return groups(Parallel.parse(parallel), topology, on_dimensions=False)


def time_of(topology: hk.Topology, parallel: str, axis: str, algorithm: str, kind: str) -> int:
    network = network_of(topology, algorithm, 1)
    shape = network.collective(kind, members(topology, parallel)[axis], SIZE)
    return network.placed()[shape].lone_ps


@pytest.mark.parametrize(
    ("algorithm", "kind", "crossing"),
    [
        # What crosses the slow link each way, of one group of two NPUs.
        ("ring", "all-reduce", SIZE),
        ("halving-doubling", "all-reduce", SIZE),
        ("ring", "all-gather", SIZE // 2),
        ("direct", "all-to-all", SIZE // 2),
    ],
)
def test_two_groups_over_one_slow_link_take_twice_the_time(
    algorithm: str, kind: str, crossing: int
) -> None:
    topology = two_switches()
    alone = hk.plan(kind, topology, size=SIZE, npus=[0, 2], algorithm=algorithm, chunks=1)
    assert hk.simulate(alone).time_ps == crossing * 1000  # 1 ns a byte
    # dp joins 0 with 2 and 1 with 3, both through the slow link; tp stays below the switches.
    assert time_of(topology, "dp=2,tp=2", "dp", algorithm, kind) == 2 * crossing * 1000
    assert time_of(topology, "dp=2,tp=2", "tp", algorithm, kind) == crossing


def test_three_groups_by_hand_with_latency() -> None:
    """Three messages one after the other: each step takes three transmissions and one latency."""
    topology = hk.topology.clos(
        spines=1,
        tors=2,
        hosts_per_tor=3,
        bandwidth="1 GB/s",
        host_bandwidth="1 TB/s",
        latency="5 us",
    ).with_switching("cut-through")
    # The slow link has six messages of 1 MB each way, the first group's second one before the third
    # group's first is done: it never idles. The way is four links of 5 us.
    assert time_of(topology, "dp=2,tp=3", "dp", "ring", "all-reduce") == (6000 + 20) * US
    alone = hk.plan("all-reduce", topology, size=SIZE, npus=[0, 3], algorithm="ring", chunks=1)
    assert hk.simulate(alone).time_ps == (2000 + 2 * 20) * US


def test_groups_that_share_nothing_take_what_one_takes() -> None:
    topology = grid()
    alone = hk.plan("all-reduce", topology, size=SIZE, npus=[0, 1], algorithm="ring", chunks=1)
    for axis in ("tp", "dp"):
        found = time_of(topology, "dp=2,tp=2", axis, "ring", "all-reduce")
        assert found == hk.simulate(alone).time_ps


def test_messages_of_replicas_share_the_link_between_stages() -> None:
    topology = two_switches()
    network = network_of(topology, "ring")
    group = members(topology, "dp=2,pp=2")["pp"]
    assert group.members == ((0, 2), (1, 3))
    shape = network.message(group, 0, 1, SIZE)
    assert network.shapes[shape].lone_ps == 2 * SIZE * 1000


def layer(name: str, **more: Any) -> Block:
    work = Work(time_ps=100 * US)
    return Block(name, work, work, work, parameters=500_000, inputs=1, outputs=1, **more)


def test_an_iteration_exposes_twice_as_much() -> None:
    """Two replicas of a layer that is not split: dp's two groups sum 1 MB each over the slow link."""
    run = hk.train(
        Model("one", (layer("a"),)),  # type: ignore[arg-type]
        two_switches(),
        parallel="dp=2,tp=2",
        algorithm="ring",
        chunks=1,
        samples=1,
        update=False,
    )
    assert run.breakdown.exposed["data"] == 2 * 1000 * US
    assert run.total_ps == 300 * US + 2000 * US


def calls_at_once(topology: hk.Topology) -> int:
    """How long a sum of tp and one of dp take that begin together, on NPUs of one stage."""
    network = network_of(topology, "ring", 1)
    found = members(topology, "dp=2,tp=2")
    shapes = [network.collective("all-reduce", found[axis], SIZE) for axis in ("tp", "dp")]
    placed = network.placed()
    on = {placed[shape].busy_ps[0][0] for shape in shapes}
    times = [placed[shape].lone_ps for shape in shapes]
    return max(times) if len(on) == 2 else sum(times)


def test_axes_follow_each_other_only_where_they_share_links() -> None:
    # Rows and columns of the grid have links of their own.
    assert calls_at_once(grid()) == SIZE * 1000
    # Below the switches all use the NPUs' one link: a 1 us sum, then one of 4 ms.
    assert calls_at_once(two_switches()) == SIZE + 2 * SIZE * 1000


def test_axes_go_on_at_once_in_an_iteration() -> None:
    """The sum of the first layer's input gradient does not wait for the gradients of the second."""
    blocks = (layer("a", split="columns"), layer("b", split="columns"))
    options: dict[str, Any] = {"samples": 1, "update": False, "chunks": 1, "bucket": 1}
    run = hk.train(
        Model("two", blocks),  # type: ignore[arg-type]
        grid(),
        parallel="dp=2,tp=2",
        algorithm="ring",
        **options,
    )
    # tp halves passes: 100 us forward, then 100 us for each layer. The second's 0.5 MB are summed from 200
    # to 700 us, the first's after that; tp's 2 bytes count as 16 and take 16 ns, at 150 and at 250 us.
    calls = zip(run.outcome.call_start_ps.tolist(), run.outcome.call_end_ps.tolist(), strict=True)
    assert sorted(calls) == [
        (150 * US, 150 * US + 16_000),
        (200 * US, 700 * US),
        (250 * US, 250 * US + 16_000),
        (300 * US, 1200 * US),
    ]
    assert run.breakdown.exposed["data"] == 900 * US
    assert run.breakdown.exposed["tensor"] == 0


def test_plan_order_is_kept_where_nothing_is_shared() -> None:
    topology = hk.topology.mesh(4, 4, bandwidth="25 GB/s", latency="500 ns")
    network = network_of(topology, "multitree", 4)
    group = members(topology, "dp=4,tp=4")["tp"]
    shape = network.collective("all-reduce", group, SIZE)
    made = [
        hk.plan("all-reduce", topology, size=SIZE, npus=npus, algorithm="multitree", chunks=4)
        for npus in group.members
    ]
    assert {plan.link_order for plan in made} == {"plan"}
    assert network.shapes[shape].lone_ps == max(hk.simulate(plan).time_ps for plan in made)


def test_a_switch_with_a_limit_is_shared() -> None:
    topology = hk.topology.switch(4, bandwidth="1 GB/s", latency="0 ns", limit="1 GB/s")
    pairs = [[0, 1], [2, 3]]
    plans = [
        hk.plan("broadcast", topology, size=SIZE, npus=pair, algorithm="direct") for pair in pairs
    ]
    uses = [use_of(hk.simulate(plan)) for plan in plans]
    assert not (uses[0].servers & uses[1].servers)[: topology.link_count].any()
    assert servers(use.servers for use in uses) == [0, 0]
    assert at_once(plans[:1]).time_ps == SIZE * 1000
    assert at_once(plans).time_ps == 2 * SIZE * 1000


def test_servers_are_shared_through_others() -> None:
    masks = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [1, 1, 0, 0]], dtype=np.bool_)
    assert servers(masks) == [0, 0, 1, 0]
    assert servers(masks[:3]) == [0, 1, 2]
    assert servers([]) == []


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_merged_plans_do_what_each_does(data: st.DataObject) -> None:
    topology = hk.topology.mesh(3, 3, bandwidth="10 GB/s", latency="100 ns")
    order = data.draw(st.permutations(range(9)))
    ends = sorted(data.draw(st.sets(st.integers(2, 7), min_size=1, max_size=3)))
    cut = [order[a:b] for a, b in zip([0, *ends], [*ends, 9], strict=True)]
    plans = [
        hk.plan(
            data.draw(st.sampled_from(("all-reduce", "all-gather", "broadcast"))),
            topology,
            size=9_000,
            npus=npus,
            algorithm="greedy",
            chunks=data.draw(st.integers(1, 3)),
        )
        for npus in cut
        if len(npus) > 1
    ]
    merged = hk.merge_plans(plans).verify()
    assert len(merged) == sum(len(plan) for plan in plans)
    assert merged.collective.size == sum(plan.collective.size for plan in plans)
    ready = hk.simulate(merged, order="ready")
    moved = sum(hk.simulate(plan).link_bytes for plan in plans)
    assert ready.link_bytes.tolist() == moved.tolist()  # type: ignore[union-attr]
    each = [sends(plan) for plan in plans]
    assert sends(merged) == sum(each, Counter())


def test_equal_paths_are_shared_out_among_groups() -> None:
    """Each of two groups by itself takes the first spine; together they take one each."""
    clos = hk.topology.clos(spines=2, tors=2, hosts_per_tor=2, bandwidth="1 GB/s", latency="1 us")
    plans = [
        hk.plan("broadcast", clos, size="1 MB", npus=npus, algorithm="direct", chunks=1)
        for npus in ([0, 2], [1, 3])
    ]
    lone = [hk.simulate(plan) for plan in plans]
    assert lone[0].link_bytes[lone[1].link_bytes > 0].any()
    assert at_once(plans).time_ps == lone[0].time_ps == lone[1].time_ps
    merged = hk.merge_plans(plans)
    assert (merged.routing, merged.verify().is_verified) == ("balanced", True)
    single = hk.merge_plans([plan.routed("single") for plan in plans])
    assert hk.simulate(single).time_ps > lone[0].time_ps


def sends(plan: hk.Plan) -> Counter[tuple[int, ...]]:
    """Who sends how much to whom, copied or reduced."""
    rows = plan.transfers
    columns = (rows.src, rows.dst, rows.op, rows.size_bytes)
    return Counter(zip(*(column.tolist() for column in columns), strict=True))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(("ring", "direct", "double-binary-tree", "halving-doubling")),
    st.sampled_from(("dp=8,tp=2", "dp=4,tp=4", "dp=2,tp=8")),
    st.sampled_from(("dp", "tp")),
)
def test_what_shares_no_link_is_as_fast_merged_as_alone(
    algorithm: str, parallel: str, axis: str
) -> None:
    topology = hk.topology.mesh(4, 4, bandwidth="10 GB/s", latency="100 ns")
    found = members(topology, parallel)[axis].members
    plans = [
        hk.plan("all-reduce", topology, size=160_000, npus=npus, algorithm=algorithm, chunks=2)
        for npus in found
    ]
    alone = [use_of(hk.simulate(plan)) for plan in plans]
    together = at_once(plans)
    slowest = max(use.time_ps for use in alone)
    if len(set(servers(use.servers for use in alone))) == len(plans):
        assert together.time_ps == slowest
    else:
        assert slowest <= together.time_ps <= sum(use.time_ps for use in alone)
    assert (together.servers == np.any([use.servers for use in alone], axis=0)).all()


def test_plans_that_cannot_be_merged_are_refused() -> None:
    plan = hk.plan("broadcast", grid(), size=8, algorithm="direct")
    with pytest.raises(SpecError, match="plans: there is none"):
        hk.merge_plans([])
    with pytest.raises(SpecError, match="is not a Plan"):
        hk.merge_plans([plan, "plan"])  # type: ignore[list-item]
    other = hk.plan("broadcast", two_switches(), size=8, algorithm="direct")
    with pytest.raises(SpecError, match="of different topologies"):
        hk.merge_plans([plan, other])
    with pytest.raises(SpecError, match="more than the limit"):
        hk.merge_plans([plan, plan], memory_limit=1)


def without_dimensions(topology: hk.Topology) -> hk.Topology:
    """Give the same devices and links, of which nobody knows that they are a product."""
    return hk.Topology.from_arrays(
        topology.name,
        topology.device_names,
        topology.npu_count,
        topology.switch_limits,
        topology.link_src,
        topology.link_dst,
        topology.link_bandwidth,
        topology.link_latency_ps,
        switching="cut-through",
    )


@pytest.mark.parametrize(
    ("kinds", "sizes", "parallel", "algorithm"),
    [
        # dp's groups lie on every second NPU of the ring and share its links with each other.
        ("Ring", [8], "dp=4,tp=2", "bidirectional-ring"),
        ("Ring_Ring", [4, 4], "dp=4,tp=4", "bidirectional-ring"),
        ("FC_FC", [4, 4], "dp=4,tp=4", "direct"),
        ("SW_SW", [4, 4], "dp=4,tp=4", "halving-doubling"),
    ],
)
def test_networks_with_and_without_dimensions_agree(
    kinds: str, sizes: list[int], parallel: str, algorithm: str
) -> None:
    """The best algorithm for a dimension takes alike long whether it is known as one or not."""
    count = len(sizes)
    known = hk.topology.product(
        kinds, sizes, bandwidth=["10 GB/s"] * count, latency=["100 ns"] * count
    )
    spread, size = Parallel.parse(parallel), 64_000_000
    on = network_of(known, "hierarchical", 64)
    off = network_of(without_dimensions(known), algorithm, 64)
    times = []
    for network, on_dimensions in ((on, True), (off, False)):
        group = groups(spread, network.topology, on_dimensions=on_dimensions)["dp"]
        shape = network.collective("all-reduce", group, size)
        times.append(network.shapes[shape].lone_ps)
    assert times[1] == pytest.approx(times[0], rel=0.02)
