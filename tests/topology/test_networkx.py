"""Graphs of networkx, both ways."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hocket as hk
from hocket import topology as tp

from .small_networks import pairs

EDGE = {"bandwidth": "1 GB/s", "latency": "5 ns"}


def test_undirected_graphs_go_both_ways() -> None:
    graph = nx.Graph(name="mine")
    graph.add_edge("a", "b", **EDGE)
    graph.add_edge("b", "c", bandwidth="2 GB/s", latency="6 ns")
    topology = tp.from_networkx(graph)
    assert topology.name == "mine"
    assert pairs(topology) == {("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")}
    assert sorted(topology.link_latency_ps.tolist()) == [5000, 5000, 6000, 6000]


def test_directed_graphs_go_one_way() -> None:
    graph = nx.DiGraph()
    graph.add_edge(0, 1, **EDGE)
    graph.add_edge(1, 0, bandwidth="2 GB/s", latency="6 ns")
    graph.add_edge(1, 2, **EDGE)
    topology = tp.from_networkx(graph)
    assert topology.name == "networkx graph"
    assert topology.device_names == ["0", "1", "2"]
    assert pairs(topology) == {("0", "1"), ("1", "0"), ("1", "2")}
    assert not topology.inspect().connected
    assert topology.inspect().unreachable is not None


@pytest.mark.parametrize(("kind", "links"), [(nx.MultiGraph, 4), (nx.MultiDiGraph, 2)])
def test_parallel_edges_are_parallel_links(kind: Any, links: int) -> None:
    graph = kind()
    graph.add_edge("a", "b", **EDGE)
    graph.add_edge("a", "b", **EDGE)
    assert len(tp.from_networkx(graph).link_src) == links


def test_switches_and_other_attribute_names() -> None:
    graph = nx.Graph()
    graph.add_node("s", role="switch")
    graph.add_node("a", role="npu")
    graph.add_edge("a", "s", bw="1 GB/s", lat="5 ns")
    graph.add_edge("s", "b", bw="1 GB/s", lat="5 ns")
    topology = tp.from_networkx(graph, bandwidth="bw", latency="lat", kind="role")
    assert topology.device_names == ["a", "b", "s"]  # NPUs first
    assert topology.npu_count == 2
    assert topology.switch_limits == [None]


def graph_of(*edges: tuple[Any, ...], **nodes: Any) -> nx.Graph:
    graph = nx.Graph()
    for node, data in nodes.items():
        graph.add_node(node, **data)
    for a, b, data in edges:
        graph.add_edge(a, b, **data)
    return graph


@pytest.mark.parametrize(
    ("graph", "says"),
    [
        ({"a": ["b"]}, "graph: dict is not a networkx graph; give one"),
        (None, "graph: NoneType is not a networkx graph"),
        (
            graph_of(("a", "b", {})),
            "graph: edge 'a' - 'b' has no 'bandwidth'; give every edge one, or def",
        ),
        (graph_of(("a", "b", {"bandwidth": "1 GB/s"})), "edge 'a' - 'b' has no 'latency'"),
        (
            graph_of(("a", "b", EDGE | {"bandwidth": -25})),
            "edge 'a' - 'b': bandwidth: -25 ",
        ),
        (graph_of(("a", "b", EDGE | {"latency": "x"})), "edge 'a' - 'b': latency: 'x' "),
        (graph_of(("1", 1, EDGE)), "graph: two nodes are called '1'; give each a name of its own"),
        (graph_of(a={"kind": "gpu"}), "graph: node 'a': kind is 'gpu'; use 'npu' or 'switch'"),
        (graph_of(("a", "\ud800", EDGE)), r"graph: node '\ud800' is not text in UTF-8"),
        (graph_of(("a", "a", EDGE)), "graph: "),
        (graph_of(), "graph: "),
        (graph_of(s={"kind": "switch"}), "graph: "),
    ],
)
def test_wrong_graphs(graph: Any, says: str) -> None:
    with pytest.raises(hk.SpecError) as error:
        tp.from_networkx(graph)
    assert says in str(error.value)
    assert str(error.value).startswith("graph: ")


def test_large_graphs_are_read_in_linear_time() -> None:
    graph = nx.path_graph(20_000)
    nx.set_edge_attributes(graph, "1 GB/s", "bandwidth")
    nx.set_edge_attributes(graph, "1 ns", "latency")
    assert len(tp.from_networkx(graph).link_src) == 2 * 19_999


def rows(topology: hk.Topology) -> list[tuple[int, ...]]:
    columns = ("link_src", "link_dst", "link_bandwidth", "link_latency_ps")
    return sorted(zip(*(getattr(topology, each).tolist() for each in columns), strict=True))


@st.composite
def networks(draw: st.DrawFn) -> hk.Topology:
    npus, switches = draw(st.integers(1, 6)), draw(st.integers(0, 3))
    count = npus + switches
    ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(
        lambda pair: pair[0] != pair[1]
    )
    pairs = draw(st.lists(ends, max_size=12 if count > 1 else 0))
    rates = [draw(st.integers(1, 2**62)) for _ in pairs]
    delays = [draw(st.integers(0, 10**15)) for _ in pairs]
    names = draw(
        st.lists(st.text("ab1 _é-", min_size=1), min_size=count, max_size=count, unique=True)
    )
    return hk.Topology.from_arrays(
        draw(st.sampled_from(["net", "a b"])),
        names,
        npus,
        [draw(st.none() | st.integers(1, 2**62)) for _ in range(switches)],
        np.array([a for a, _ in pairs], dtype=np.uint32),
        np.array([b for _, b in pairs], dtype=np.uint32),
        np.array(rates, dtype=np.uint64),
        np.array(delays, dtype=np.uint64),
        [],
        draw(st.sampled_from(["store-and-forward", "cut-through"])),
        draw(st.sampled_from([[], [[i] for i in range(npus)], [list(range(npus))]])),
    )


@given(topology=networks())
def test_networkx_and_back(topology: hk.Topology) -> None:
    graph = tp.to_networkx(topology)
    again = tp.from_networkx(graph)
    assert rows(again) == rows(topology)
    for field in ("name", "device_names", "npu_count", "switch_limits", "switching", "groups"):
        assert getattr(again, field) == getattr(topology, field)
    undirected = tp.from_networkx(graph.to_undirected(as_view=False))
    assert undirected.device_names == topology.device_names


def test_edges_take_defaults_and_numbers() -> None:
    graph = nx.petersen_graph()
    plain = tp.from_networkx(graph, default_bandwidth="25 GB/s", default_latency=700e-9)
    assert set(rows(plain)) == {(a, b, 25 * 10**9, 700_000) for a, b, _, _ in rows(plain)}
    graph.edges[0, 1]["bandwidth"] = 1e9
    mixed = tp.from_networkx(graph, default_bandwidth=25e9, default_latency="700 ns")
    assert sorted(set(mixed.link_bandwidth.tolist())) == [10**9, 25 * 10**9]


def test_a_value_for_the_name_of_an_attribute() -> None:
    with pytest.raises(hk.SpecError, match="did you mean default_bandwidth='25 GB/s'"):
        tp.from_networkx(nx.petersen_graph(), bandwidth="25 GB/s")
    with pytest.raises(hk.SpecError, match="default_latency: 'x' "):
        tp.from_networkx(nx.petersen_graph(), default_bandwidth=1, default_latency="x")
    mixed = graph_of(("a", "b", EDGE), a={"group": 0})
    with pytest.raises(hk.SpecError, match="graph: node 'b' has no 'group'"):
        tp.from_networkx(mixed)
