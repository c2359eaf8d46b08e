"""Plans of groups: beside a linear program over all trees of small networks, and what is refused."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog

import hocket as hk
from hocket.collectives.collective import joined
from hocket.plans.groups import groups_of

MESH = hk.topology.mesh(4, 4, bandwidth="50 GB/s", latency="500 ns")


def small(draw: random.Random) -> nx.DiGraph:
    """Give a connected network of four to six NPUs without latency, whose links lead both ways."""
    while True:
        count = draw.randrange(4, 7)
        graph = nx.gnm_random_graph(
            count, draw.randrange(count, 2 * count), seed=draw.randrange(10**9)
        )
        if nx.is_connected(graph):
            break
    both = nx.DiGraph()
    both.add_nodes_from(range(count))
    for a, b in graph.edges:
        rate = draw.choice([10, 20, 50]) * 10**9
        both.add_edge(a, b, bandwidth=rate, latency=0.0)
        both.add_edge(b, a, bandwidth=rate, latency=0.0)
    return both


def trees(graph: nx.DiGraph, ends: list[int]) -> Iterator[list[tuple[int, int]]]:
    """Give the edges of every tree that spans the ends, and has no other leaves."""
    edges = [(a, b) for a, b in graph.edges if a < b]
    for count in range(len(ends) - 1, len(graph)):
        for chosen in itertools.combinations(edges, count):
            tree = nx.Graph(chosen)
            is_tree = len(tree) == count + 1 and nx.is_connected(tree)
            leaves = {node for node in tree if tree.degree[node] == 1}
            if is_tree and set(ends) <= set(tree) and leaves <= set(ends):
                yield list(chosen)


def least(graph: nx.DiGraph, kind: str, groups: list[list[int]], size: int) -> float:
    """Return the time of the best packing of trees [s], by a linear program over all of them."""
    links = {link: number for number, link in enumerate(graph.edges)}
    columns: list[tuple[int, dict[int, int]]] = []
    demands: list[float] = []
    for group in groups:
        roots = [None] if kind == "all-reduce" else group
        for root in roots:
            for tree in trees(graph, group):
                if root is None:
                    used = [*tree, *((b, a) for a, b in tree)]
                else:
                    directed = nx.bfs_tree(nx.Graph(tree), root)
                    used = list(directed.edges)
                columns.append((len(demands), {links[link]: 1 for link in used}))
            demands.append(size if root is None else size / len(group))
    rates = np.array([graph.edges[link]["bandwidth"] for link in links]) / 1e9
    loads = np.zeros((len(links), len(columns) + 1))
    shares = np.zeros((len(demands), len(columns) + 1))
    for number, (demand, uses) in enumerate(columns):
        shares[demand, number] = 1
        for link, times in uses.items():
            loads[link, number] = times
    loads[:, -1] = -rates
    costs = np.zeros(len(columns) + 1)
    costs[-1] = 1
    solved = linprog(
        costs, loads, np.zeros(len(links)), shares, np.array(demands) / 1e6, bounds=(0, None)
    )
    assert solved.x is not None
    return float(solved.x[-1]) * 1e-3


@pytest.mark.parametrize("case", range(12))
def test_plans_are_near_the_best_packing_and_bounds_below_it(case: int) -> None:
    draw = random.Random(case)
    graph = small(draw)
    order = draw.sample(range(len(graph)), len(graph))
    cut = draw.randrange(2, len(graph) - 1)
    groups = [order[:cut], order[cut:]] if draw.random() < 0.5 else [order[:cut]]
    kind = draw.choice(["all-reduce", "all-gather"])
    size = 24_000_000
    network = hk.topology.from_networkx(graph)
    several = [hk.collective_on(kind, network, size, npus=group) for group in groups]
    best = least(graph, kind, groups, size)
    run = hk.simulate(hk.plan_together(several, network, algorithm="steiner"))
    bound = hk.bound(network, joined(several)).time_ps * 1e-12
    assert bound <= best * (1 + 1e-6)
    assert bound >= best * 0.999 or kind == "all-reduce"
    assert best * (1 - 1e-6) <= run.time <= best * 1.06


def test_several_groups_get_the_faster_of_two_plans() -> None:
    groups = [
        hk.collective_on("all-reduce", MESH, "100 KB", npus=npus)
        for npus in ([0, 5, 10], [3, 6, 9, 12])
    ]
    times = {
        name: hk.simulate(hk.plan_together(groups, MESH, algorithm=name)).time_ps
        for name in ("steiner", "greedy")
    }
    both = hk.plan_together(groups, MESH)
    assert hk.simulate(both).time_ps == min(times.values())


def test_groups_that_exchange_blocks_get_flows() -> None:
    rows = [
        hk.collective_on("all-to-all", MESH, "64 MB", npus=npus)
        for npus in ([0, 1, 2, 3], [8, 9, 10, 11])
    ]
    times = [
        hk.simulate(hk.plan_together(rows, MESH, algorithm=name)).time_ps
        for name in (None, "flows", "greedy")
    ]
    assert times[0] == times[1] < times[2]


@pytest.mark.slow
def test_a_thousand_npus_in_random_groups_get_many_trees() -> None:
    torus = hk.topology.torus(8, 8, 16, bandwidth="50 GB/s", latency="700 ns")
    order = random.Random(0).sample(range(1024), 1024)
    groups = [
        hk.collective_on("all-reduce", torus, "64 MB", npus=order[at : at + 8])
        for at in range(0, 1024, 8)
    ]
    plan = hk.plan_together(groups, torus, algorithm="steiner").verify()
    # 2.3 times with three trees a group of few pieces, which is all that there was time for once.
    assert hk.simulate(plan).time_ps < 1.4 * hk.bound(torus, plan.collective).time_ps


RAILS = hk.topology.rail(
    3, 4, 0, bandwidth="50 GB/s", latency="2 us", node_bandwidth="450 GB/s", node_latency="500 ns"
)
ROW = hk.topology.torus(3, 3, bandwidth="50 GB/s", latency="700 ns")


@pytest.mark.parametrize(
    ("network", "npus"),
    [(ROW, [0, 1, 2]), pytest.param(RAILS, [0, 4, 8], marks=pytest.mark.slow)],
)
def test_nothing_of_an_exchange_starts_long_before_its_turn(
    network: hk.Topology, npus: list[int]
) -> None:
    exchange = hk.collective_on("all-to-all", network, "64 MB", npus=npus)
    plan = hk.plan(exchange, network, algorithm="flows")
    # Links that share bandwidth send a little of all that is ready: else 1.6 to 2.5 times as long.
    assert hk.simulate(plan, fidelity="flow").time_ps < 1.25 * hk.simulate(plan).time_ps


def test_groups_of_different_kinds_and_sizes_share_the_links() -> None:
    kinds: list[tuple[str, str | int, list[int]]] = [
        ("all-reduce", "1 MB", [0, 3]),
        ("all-gather", "3 MB", [0, 5, 15]),
        ("reduce", 9, [1, 2]),
    ]
    several = [hk.collective_on(kind, MESH, size, npus=npus) for kind, size, npus in kinds]
    plan = hk.plan_together(several, MESH, algorithm="steiner").verify()
    assert hk.simulate(plan).time_ps >= hk.bound(MESH, plan.collective).time_ps


def test_the_bound_of_several_groups_counts_them_together() -> None:
    torus = hk.topology.torus(4, 4, bandwidth="50 GB/s", latency="700 ns")
    rows = [
        hk.collective_on("all-reduce", torus, "64 MB", npus=range(4 * row, 4 * row + 4))
        for row in range(4)
    ]
    bound = hk.bound(torus, joined(rows))
    assert bound.time_ps == pytest.approx(960_000_000, rel=1e-3)
    rail = hk.topology.rail(
        8,
        8,
        0,
        bandwidth="50 GB/s",
        latency="2 us",
        node_bandwidth="450 GB/s",
        node_latency="0.5 us",
    )
    across = [
        hk.collective_on("all-reduce", rail, "64 MB", npus=range(first, 64, 8))
        for first in range(8)
    ]
    assert hk.bound(rail, joined(across)).time_ps == pytest.approx(2_240_000_000, rel=3e-3)


def test_the_bound_of_groups_on_a_large_torus_counts_slabs() -> None:
    torus = hk.topology.torus(8, 8, 16, bandwidth="50 GB/s", latency="700 ns")
    rows = [
        hk.collective_on("all-reduce", torus, "64 MB", npus=range(8 * row, 8 * row + 8))
        for row in range(128)
    ]
    # Each of the 8 planes that rows cross sends over 512 links: 2 x 7 x 128 x 64 MB over 8 of them.
    assert hk.bound(torus, joined(rows)).time_ps == pytest.approx(1_120_000_000, rel=5e-3)


def test_relays_do_no_more_than_they_may() -> None:
    def plan(relays: str) -> hk.Plan:
        corners = {"npus": [0, 3, 12, 15], "relays": relays}
        made = hk.plan("all-reduce", MESH, size="1 MB", algorithm="steiner", chunks=2, **corners)  # type: ignore[arg-type]
        return made.verify()

    times = [hk.simulate(plan(relays)).time_ps for relays in ("sum", "forward")]
    assert times[0] < times[1]
    with pytest.raises(hk.InfeasibleError, match="over the NPUs that may relay"):
        plan("none")
    with pytest.raises(hk.SpecError, match=r"^relays: "):
        plan("add")


def test_what_steiner_does_not_do_is_refused() -> None:
    with pytest.raises(hk.InfeasibleError, match=r"every NPU takes part.*use trees"):
        hk.plan("all-reduce", MESH, size="1 MB", algorithm="steiner")
    with pytest.raises(hk.SpecError, match=r"^relays: greedy does not use it; it is for steiner$"):
        hk.plan("all-reduce", MESH, size="1 MB", algorithm="greedy", relays="none")


def test_groups_of_names_have_their_own_times_and_bounds() -> None:
    named = [
        ("tp", [hk.collective_on("all-gather", MESH, "1 MB", npus=[0, 1])]),
        ("dp", [hk.collective_on("all-gather", MESH, "9 MB", npus=[at, 15 - at]) for at in (3, 4)]),
    ]
    several = [each for _, some in named for each in some]
    plan = hk.plan_together(several, MESH, algorithm="greedy", chunks=1)
    assert plan.collective.name == "3 x all-gather"
    plan.known = None
    assert [each.time_ps for each in groups_of(plan, named)] == [None, None]
    run = hk.simulate(plan)
    plan.known = run.core
    tp, dp = groups_of(plan, named)
    assert (tp.name, tp.groups, tp.npus, tp.size_bytes) == ("tp", 1, 2, 1_000_000)
    assert tp.bound_ps == hk.bound(MESH, named[0][1][0]).time_ps
    for each in (tp, dp):
        assert each.time_ps is not None
        assert each.bound_ps <= each.time_ps <= run.time_ps
    assert max(tp.time_ps or 0, dp.time_ps or 0) == run.time_ps


def test_bounds_say_what_relays_may_do() -> None:
    corners = hk.collective_on("all-reduce", MESH, "1 MB", npus=[0, 3, 12, 15])
    times = {each: hk.bound(MESH, corners, relays=each) for each in ("sum", "forward")}
    assert [each.relays for each in times.values()] == ["sum", "forward"]
    # Either 1 MB enters a corner over two links, or 2 x 3 MB all corners over eight.
    assert times["sum"].time_ps == pytest.approx(10_000_000, rel=0.3)
    assert times["forward"].time_ps == pytest.approx(15_000_000, rel=0.3)
    # No corner is next to another.
    with pytest.raises(hk.InfeasibleError, match=r"no way from npu\d+ to npu0.*let relays forward"):
        hk.bound(MESH, corners, relays="none")
    everybody = hk.collective_on("all-reduce", MESH, "1 MB")
    assert hk.bound(MESH, everybody).relays is None
    rows = [hk.collective_on("all-reduce", MESH, 9, npus=[at, at + 1]) for at in range(0, 16, 2)]
    assert hk.bound(MESH, joined(rows)).relays == "sum"
    with pytest.raises(hk.SpecError, match=r"^relays: "):
        hk.bound(MESH, corners, relays="add")


@pytest.mark.parametrize("case", range(8))
def test_plans_with_fewer_relays_are_no_faster_than_their_bounds(case: int) -> None:
    draw = random.Random(case)
    network = hk.topology.from_networkx(small(draw))
    npus = draw.sample(range(network.npu_count), network.npu_count - 1)
    for relays in ("none", "forward"):
        group = hk.collective_on("all-reduce", network, 9_000_000, npus=npus)
        try:
            bound = hk.bound(network, group, relays=relays)
        except hk.InfeasibleError:
            with pytest.raises(hk.InfeasibleError):
                hk.plan(group, network, algorithm="steiner", relays=relays)
            continue
        assert bound.time_ps >= hk.bound(network, group).time_ps
        try:
            plan = hk.plan(group, network, algorithm="steiner", relays=relays)
        except hk.InfeasibleError:
            continue
        assert hk.simulate(plan).time_ps >= bound.time_ps


def test_a_runtime_runs_on_ranks_alone() -> None:
    plan = hk.plan(
        "all-reduce",
        "dgx1_v100",
        size="1 MB",
        npus=[0, 1, 2, 3],
        runtime="mscclpp",
        algorithm="steiner",
    )
    used = {*plan.transfers.src.tolist(), *plan.transfers.dst.tolist()}
    assert used == {0, 1, 2, 3}
