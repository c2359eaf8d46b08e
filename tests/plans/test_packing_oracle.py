"""Packed trees against a linear program over every spanning tree and every way, which knows of no cut."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

import networkx as nx
import pytest

import hocket as hk

UNIT = 1_000_000_000
"""Bytes per second."""

Arc = tuple[int, int]


def arborescences(nodes: Sequence[int], root: int) -> Iterator[list[Arc]]:
    """Give every choice of a parent for each other node that leads back to the root."""
    others = [node for node in nodes if node != root]
    for parents in itertools.product(nodes, repeat=len(others)):
        above = dict(zip(others, parents, strict=True))
        if all(leads_to(root, node, above) for node in others):
            yield [(above[node], node) for node in others]


def leads_to(root: int, node: int, above: dict[int, int]) -> bool:
    seen: set[int] = set()
    while node != root:
        if node in seen:
            return False
        seen.add(node)
        node = above[node]
    return True


def ways(graph: nx.DiGraph, src: int, dst: int) -> Iterator[list[Arc]]:
    """Give every simple way between two NPUs that passes only switches."""
    inner = [n for n in graph if graph.nodes[n]["kind"] == "switch"]
    for path in nx.all_simple_paths(graph.subgraph([*inner, src, dst]), src, dst):
        yield list(itertools.pairwise(path))


def best_rate(graph: nx.DiGraph, kind: str, root: int) -> float:
    """Give how many bytes a second each root sends to all, at best [units of bandwidth].

    Of an all-reduce by trees that sum and copy at once: how many bytes a second all trees carry.
    """
    solver = pytest.importorskip("ortools.linear_solver.pywraplp").Solver.CreateSolver("GLOP")
    npus = [node for node in graph if graph.nodes[node]["kind"] == "npu"]
    rate = solver.NumVar(0, solver.infinity(), "rate")
    carried: dict[Arc, list[Any]] = {pair: [] for pair in itertools.permutations(npus, 2)}
    for each in [root] if kind in ("broadcast", "all-reduce") else npus:
        flows = []
        for arcs in arborescences(npus, each):
            flow = solver.NumVar(0, solver.infinity(), "")
            flows.append(flow)
            for a, b in arcs:
                carried[a, b].append(flow)
                if kind == "all-reduce":
                    carried[b, a].append(flow)
        solver.Add(sum(flows) == rate)
    loads: dict[Arc, list[Any]] = {edge: [] for edge in graph.edges}
    for (a, b), flows in carried.items():
        shares = []
        for way in ways(graph, a, b):
            share = solver.NumVar(0, solver.infinity(), "")
            shares.append(share)
            for edge in way:
                loads[edge].append(share)
        solver.Add(sum(flows) <= sum(shares))
    for edge, shares in loads.items():
        solver.Add(sum(shares) <= graph.edges[edge]["units"])
    solver.Maximize(rate)
    assert solver.Solve() == solver.OPTIMAL
    return float(rate.solution_value())


def drawn(seed: int, most_switches: int = 2) -> nx.DiGraph:
    """Draw a connected network of 3 or 4 NPUs and some switches; both directions of a link are alike."""
    chance = random.Random(seed)
    npus, switches = chance.choice([3, 4]), chance.randint(0, most_switches)
    graph = nx.DiGraph(name="drawn")
    graph.add_nodes_from(range(npus), kind="npu")
    graph.add_nodes_from(range(npus, npus + switches), kind="switch")
    devices = list(graph)
    pairs = {(chance.choice(devices[:i]), i) for i in devices[1:]}
    pairs |= {pair for pair in itertools.combinations(devices, 2) if chance.random() < 0.4}
    for a, b in sorted(pairs):
        units = chance.randint(1, 4)
        for edge in ((a, b), (b, a)):
            graph.add_edge(*edge, units=units, bandwidth=units * UNIT, latency=0.0)
    return graph


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("kind", ["all-gather", "broadcast"])
def test_the_rate_is_that_of_the_best_packing(kind: str, seed: int) -> None:
    graph = drawn(seed)
    plan = hk.plan(kind, hk.topology.from_networkx(graph), size="1 MB", algorithm="trees", chunks=1)
    assert plan.trees is not None
    (packing,) = plan.trees.packings
    stated = packing.bandwidth / packing.weight / UNIT
    assert stated == pytest.approx(best_rate(graph, kind, 0), rel=1e-6)
    assert 0.99 <= packing.reached <= 1


@pytest.mark.parametrize("seed", range(60))
def test_trees_of_an_all_reduce_are_as_good_as_any(seed: int) -> None:
    graph = drawn(seed, most_switches=0)
    network = hk.topology.from_networkx(graph)
    plan = hk.plan("all-reduce", network, size="1 MB", algorithm="trees", chunks=1)
    assert plan.trees is not None
    at_once = best_rate(graph, "all-reduce", 0)
    apart = best_rate(graph, "all-gather", 0) * network.npu_count / 2
    packing = plan.trees.packings[0]
    if packing.carries == "both":
        stated = packing.bandwidth / packing.weight / 2 / UNIT
        assert stated == pytest.approx(at_once, rel=1e-6)
        assert 0.99 <= packing.reached <= 1
    else:
        assert at_once <= apart * 1.01
