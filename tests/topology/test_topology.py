"""``hocket.topology``: builders, graphs, failures, and networks given as text."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hocket as hk
from hocket import topology as tp
from hocket.topology.build import build_topology
from hocket.topology.json import topology_from_json, topology_to_json
from hocket.topology.text import KINDS, from_text

LINK = {"bandwidth": "2 GB/s", "latency": "3 ns"}
GB = 10**9


def pairs(topology: hk.Topology) -> set[tuple[str, str]]:
    names = topology.device_names
    return {(names[a], names[b]) for a, b in zip(topology.link_src, topology.link_dst, strict=True)}


def text(value: str, **options: Any) -> hk.Topology:
    given = {"bandwidth": ["2 GB/s"], "latency": ["3 ns"]} | options
    return build_topology(from_text(value, **given))


@pytest.mark.parametrize(
    ("topology", "npus", "switches", "links"),
    [
        (tp.line(5, **LINK), 5, 0, 8),
        (tp.ring(5, **LINK), 5, 0, 10),
        (tp.ring(5, both_ways=False, **LINK), 5, 0, 5),
        (tp.ring(2, **LINK), 2, 0, 2),
        (tp.fully_connected(5, **LINK), 5, 0, 20),
        (tp.switch(5, **LINK), 5, 1, 10),
        (tp.mesh(3, 4, **LINK), 12, 0, 34),
        (tp.mesh(2, 3, 4, **LINK), 24, 0, 92),
        (tp.torus(3, 4, **LINK), 12, 0, 48),
        (tp.torus(2, 2, **LINK), 4, 0, 8),
        (tp.torus(3, 3, 3, **LINK), 27, 0, 162),
        (tp.hypercube(4, **LINK), 16, 0, 64),
        (tp.dragonfly(4, 5, **LINK), 20, 0, 92),
        (tp.clos(spines=2, tors=4, hosts_per_tor=3, **LINK), 12, 6, 40),
        (tp.bigraph(2, 3, **LINK), 12, 4, 32),
        (tp.fat_tree(4, **LINK), 16, 20, 96),
    ],
    ids=lambda value: value.name if isinstance(value, hk.Topology) else "",
)
def test_builders(topology: hk.Topology, npus: int, switches: int, links: int) -> None:
    found = topology.inspect()
    assert (found.npus, found.switches, found.links) == (npus, switches, links)
    assert found.connected
    assert set(topology.link_bandwidth.tolist()) == {2 * GB}
    assert set(topology.link_latency_ps.tolist()) == {3000}


def test_builders_with_two_kinds_of_links() -> None:
    far = tp.dragonfly(3, 2, global_bandwidth="8 Gb/s", global_latency="1 us", **LINK)
    assert set(far.link_bandwidth.tolist()) == {2 * GB, GB}
    assert set(far.link_latency_ps.tolist()) == {3000, 1_000_000}
    clos = tp.clos(spines=2, tors=2, hosts_per_tor=3, host_bandwidth="1 GB/s", **LINK)
    assert (clos.link_bandwidth == GB).sum() == 12
    assert tp.switch(4, limit="6 GB/s", **LINK).switch_limits == [6 * GB]
    assert tp.switch(4, **LINK).switch_limits == [None]


def test_numpy_integers_are_sizes() -> None:
    assert tp.mesh(np.int64(3), np.uint8(3), **LINK) == tp.mesh(3, 3, **LINK)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: tp.ring(-1, **LINK), "npus: -1 is no whole number from 1 to 2^32 - 1"),
        (lambda: tp.ring(0, **LINK), "npus: 0 is no whole number"),
        (lambda: tp.ring(True, **LINK), "npus: true is no whole number"),
        (lambda: tp.ring(4.0, **LINK), "npus: 4.0 is no whole number"),  # type: ignore[arg-type]
        (lambda: tp.ring("4", **LINK), "npus: '4' is no whole number"),  # type: ignore[arg-type]
        (lambda: tp.ring(2**32, **LINK), "npus: 4294967296 is no whole number"),
        (lambda: tp.ring(1, **LINK), "size of the ring: is 1; give it at least 2"),
        (lambda: tp.mesh(3, 0, **LINK), "size 1: 0 is no whole number"),
        (lambda: tp.mesh(**LINK), "mesh"),
        (lambda: tp.fat_tree(3, **LINK), "k of the fat tree: is 3; give it an even number"),
        (lambda: tp.ring(4, bandwidth="2", latency="3 ns"), "bandwidth: '2' has no unit"),
        (lambda: tp.ring(4, bandwidth=True, latency="3 ns"), "bandwidth: true is no bandwidth"),
        (lambda: tp.ring(4, bandwidth=-2, latency="3 ns"), "bandwidth: -2 is negative"),
        (lambda: tp.ring(4, bandwidth=2, latency=float("nan")), "latency: nan is no time"),
        (lambda: tp.ring(4, bandwidth="2 GB/s", latency="-1 ns"), "latency: '-1 ns' is negative"),
        (lambda: tp.switch(4, limit="0 B/s", **LINK), "limit: '0 B/s' is 0"),
        (lambda: tp.dragonfly(4, 5, global_bandwidth="x", **LINK), "global_bandwidth: 'x' is no"),
        (lambda: tp.dragonfly(4, 5, global_latency="x", **LINK), "global_latency: 'x' is no time"),
        (
            lambda: tp.clos(spines=1, tors=0, hosts_per_tor=1, **LINK),
            "tors: 0 is no whole number",
        ),
        (
            lambda: tp.bigraph(0, 4, **LINK),
            "switches_per_side: 0 is no whole number from 1 to 2^32 - 1",
        ),
        (lambda: tp.bigraph(4, 2.0, **LINK), "npus_per_switch: 2.0 is no whole"),  # type: ignore[arg-type]
        (lambda: tp.bigraph(10**6, 4, **LINK), "of memory, more than the limit"),
        (lambda: tp.ring(10**9, **LINK), "needs about 150 GiB of memory"),
        (lambda: tp.fully_connected(10**9, **LINK), "of memory, more than the limit"),
        (lambda: tp.mesh(10**5, 10**5, **LINK), "of memory, more than the limit"),
        (lambda: tp.fat_tree(10**5, **LINK), "of memory, more than the limit"),
        (lambda: tp.hypercube(40, **LINK), "of memory, more than the limit"),
        (lambda: tp.load("mesh:9x9"), 'bandwidth: mesh:9x9 needs one; give bandwidth="25 GB/s"'),
        (lambda: tp.load("dgx1"), "name_or_path: there is no 'dgx1'; did you mean 'dgx1_v100'"),
        (lambda: tp.load(""), "name_or_path: there is no ''; give a shipped machine"),
    ],
)
def test_wrong_arguments(build: Callable[[], hk.Topology], says: str) -> None:
    with pytest.raises(hk.SpecError) as error:
        build()
    assert says in str(error.value)
    assert len(str(error.value).splitlines()) == 1


# Products.


def product(kinds: Any, sizes: Any, rates: Any = None, delays: Any = None) -> hk.Topology:
    rates = ["1 GB/s"] * len(sizes) if rates is None else rates
    delays = ["1 ns"] * len(sizes) if delays is None else delays
    return tp.product(kinds, sizes, bandwidth=rates, latency=delays)


def test_products_are_named_as_astra_sim_names_them() -> None:
    rates = ["200 GB/s", "100 GB/s", "50 GB/s"]
    delays = ["50 ns", "500 ns", "2 us"]
    topology = product("Ring_FullyConnected_Switch", [2, 8, 4], rates, delays)
    assert topology.dimensions == [
        ("Ring", 2, 200 * GB, 50_000, False),
        ("FullyConnected", 8, 100 * GB, 500_000, False),
        ("Switch", 4, 50 * GB, 2_000_000, False),
    ]
    assert (topology.npu_count, len(topology.link_src)) == (64, 64 + 64 * 7 + 64 * 2)
    assert len(topology.device_names) == 64 + 16
    assert topology == product("r_FC_sw", [2, 8, 4], rates, delays)


@pytest.mark.parametrize(("alias", "kind"), KINDS.items())
def test_every_alias_of_a_dimension(alias: str, kind: str) -> None:
    for name in (alias, alias.upper()):
        assert [each[0] for each in product(f"{name}_Ring", [3, 2]).dimensions] == [kind, "Ring"]


def test_npus_vary_fastest_in_the_first_dimension() -> None:
    topology = product("Line_Line", [3, 2], ["1 GB/s", "2 GB/s"])
    of = {
        (int(a), int(b)): int(rate)
        for a, b, rate in zip(
            topology.link_src, topology.link_dst, topology.link_bandwidth, strict=True
        )
    }
    assert of[0, 1] == GB
    assert of[0, 3] == 2 * GB
    assert (2, 3) not in of


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("Ring_Foo", [2, 2]), "kinds: 'Foo' is no dimension; use Ring, FullyConnected (FC)"),
        (("", [2]), "kinds: '' is no dimension"),
        ((3, [2]), "kinds: 3 is no text; give it as 'Ring_FC_SW'"),
        (("Ring_Ring", [2]), "sizes: 1 given for the 2 dimensions of 'Ring_Ring'; give a list"),
        (("Ring_Ring", [2, 2], ["1 GB/s"]), "bandwidth: 1 given for the 2 dimensions"),
        (("Ring_Ring", [2, 2], "1 GB/s"), "bandwidth: only '1 GB/s' given for the 2 dimensions"),
        (("Ring_Ring", [2, 2], None, ["1 ns"] * 3), "latency: 3 given for the 2 dimensions"),
        (("Ring_Ring", [2, 2], ["1 GB/s", "1"]), "bandwidth[1]: '1' has no unit"),
        (("Ring_Ring", [2, 2], None, ["1", "1 ns"]), "latency[0]: '1' has no unit"),
        (("Ring_Ring", [2, 0]), "sizes[1]: 0 is no whole number"),
    ],
)
def test_wrong_products(arguments: tuple[Any, ...], says: str) -> None:
    with pytest.raises(hk.SpecError) as error:
        product(*arguments)
    assert str(error.value).startswith(says)


def test_sizes_that_are_no_list() -> None:
    with pytest.raises(hk.SpecError, match=r"^sizes: only 4 given for the 1 dimensions of 'Ring'"):
        tp.product("Ring", 4, bandwidth=["1 GB/s"], latency=["1 ns"])  # type: ignore[arg-type]


# Graphs.

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
        ({"a": ["b"]}, "graph: dict is no networkx graph; give one"),
        (None, "graph: NoneType is no networkx graph"),
        (
            graph_of(("a", "b", {})),
            "graph: edge 'a' - 'b' has no 'bandwidth'; give every edge one, or def",
        ),
        (graph_of(("a", "b", {"bandwidth": "1 GB/s"})), "edge 'a' - 'b' has no 'latency'"),
        (
            graph_of(("a", "b", EDGE | {"bandwidth": -25})),
            "edge 'a' - 'b': bandwidth: -25 is negative",
        ),
        (graph_of(("a", "b", EDGE | {"latency": "x"})), "edge 'a' - 'b': latency: 'x' is no time"),
        (graph_of(("1", 1, EDGE)), "graph: two nodes are called '1'; give each a name of its own"),
        (graph_of(a={"kind": "gpu"}), "graph: node 'a': kind is 'gpu'; use 'npu' or 'switch'"),
        (graph_of(("a", "\ud800", EDGE)), r"graph: node '\ud800' is no text in UTF-8"),
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


# Failures.


def test_without_keeps_the_names_of_the_rest() -> None:
    whole = tp.load("dgx_a100_2box")
    less = whole.without(nodes=["b0g3", "ib1"], links=[("b0g0", "b0nvs")])
    assert less.npu_count == 15
    assert set(less.device_names) == set(whole.device_names) - {"b0g3", "ib1"}
    gone = {pair for pair in pairs(whole) if {"b0g3", "ib1"} & set(pair)}
    gone |= {("b0g0", "b0nvs"), ("b0nvs", "b0g0")}
    assert pairs(less) == pairs(whole) - gone
    assert pairs(whole) >= gone  # the whole one is as it was
    again = less.without(nodes=["b1g7"])
    assert "b1g7" not in again.device_names
    assert again.device_index("b1g6") < again.npu_count


def test_without_what_is_not_there() -> None:
    topology = tp.ring(4, **LINK)
    with pytest.raises(hk.SpecError, match='no device is called "npu9"; devices are'):
        topology.without(nodes=["npu9"])
    with pytest.raises(hk.SpecError, match='there is no link "npu0" -> "npu2"; links of "npu0"'):
        topology.without(links=[("npu0", "npu2")])
    with pytest.raises(hk.SpecError, match="leave no NPU"):
        topology.without(nodes=topology.device_names)


def test_failures_of_an_option_are_told_from_those_of_a_file(tmp_path: Path) -> None:
    spec = from_text("ring:4", bandwidth=["1 GB/s"], latency=["1 ns"])
    with pytest.raises(hk.SpecError, match=r"^--topology ring:4: --failed: no device is called"):
        build_topology(spec.with_failures(["npu9"], []))
    spec = from_text("dgx1_v100", bandwidth=None, latency=None)
    with pytest.raises(hk.SpecError, match=r"^dgx1_v100: --failed: there is no link"):
        build_topology(spec.with_failures([], [("gpu0", "gpu7")]))
    file = tmp_path / "net.yml"
    file.write_text("npus: 2\nlinks: []\nfailed: {nodes: [x]}\n")
    spec = from_text(str(file), bandwidth=None, latency=None)
    with pytest.raises(hk.SpecError, match=r"net\.yml: failed: no device is called"):
        build_topology(spec.with_failures(spec.failed_nodes, spec.failed_links))


# Networks given as text.


@pytest.mark.parametrize(
    ("given", "same"),
    [
        ("line:4", tp.line(4, **LINK)),
        ("ring:4", tp.ring(4, **LINK)),
        ("fc:4", tp.fully_connected(4, **LINK)),
        ("fully_connected:4", tp.fully_connected(4, **LINK)),
        ("switch:4", tp.switch(4, **LINK)),
        ("mesh:3x4", tp.mesh(3, 4, **LINK)),
        ("mesh:3X4", tp.mesh(3, 4, **LINK)),
        ("torus:3x3x2", tp.torus(3, 3, 2, **LINK)),
        ("hypercube:3", tp.hypercube(3, **LINK)),
        ("dragonfly:4x5", tp.dragonfly(4, 5, **LINK)),
        ("clos:2x4x3", tp.clos(spines=2, tors=4, hosts_per_tor=3, **LINK)),
        ("clos:2x4", tp.clos(spines=2, tors=4, hosts_per_tor=1, **LINK)),
        ("bigraph:2x3", tp.bigraph(2, 3, **LINK)),
        ("fat_tree:4", tp.fat_tree(4, **LINK)),
        ("fat-tree:4", tp.fat_tree(4, **LINK)),
        ("Ring_FC_SW:2x8x4", product("Ring_FC_SW", [2, 8, 4], ["2 GB/s"] * 3, ["3 ns"] * 3)),
        ("Switch:4", product("Switch", [4], ["2 GB/s"], ["3 ns"])),
    ],
)
def test_text_is_as_the_builder(given: str, same: hk.Topology) -> None:
    assert text(given) == same


@pytest.mark.parametrize("rates", [["1 GB/s", "2 GB/s", "4 GB/s"], ["1 GB/s,2 GB/s,4 GB/s"]])
def test_a_bandwidth_for_each_dimension(rates: list[str]) -> None:
    topology = text("Ring_FC_SW:2x2x2", bandwidth=rates)
    assert [each[2] for each in topology.dimensions] == [GB, 2 * GB, 4 * GB]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("mesh", "--topology: there is no 'mesh'; write it with its size, as mesh:9x9"),
        ("mesh:", "--topology: 'mesh:': '' is no size; write sizes as 9x9"),
        ("mesh:9y9", "--topology: 'mesh:9y9': '9y9' is no size; write sizes as 9x9"),
        ("mesh:-1", "--topology: 'mesh:-1': '-1' is no size; write sizes as 9x9"),
        ("mesh:٣", "--topology: 'mesh:٣': '٣' is no size"),
        ("mesh:0", "--topology mesh:0: dimensions of"),
        ("mesh:4294967296", "--topology: 'mesh:4294967296': a size is 2^32 or more"),
        ("mesh:" + "9" * 30, "--topology: 'mesh:999"),
        ("mesh:" + "x".join("1" * 40), "--topology: 'mesh:1x1"),
        ("ring:3x3", "--topology: 'ring:3x3' has 2 sizes; write it as ring:16"),
        ("fully_connected:3x3", "--topology: 'fully_connected:3x3' has 2 sizes; write it as fully"),
        ("dragonfly:4", "--topology: 'dragonfly:4' has 1 size; write it as dragonfly:GROUPS"),
        (
            "clos:4",
            "--topology: 'clos:4' has 1 size; write it as clos:SPINESxTORS or clos:SPINESxTORSx",
        ),
        (
            "bigraph:4",
            "--topology: 'bigraph:4' has 1 size; write it as bigraph:SWITCHES_PER_SIDExNPU",
        ),
        (
            "bigraph:0x4",
            "--topology bigraph:0x4: switches per side of the BiGraph: is 0; give it at",
        ),
        ("bigraph:4x0", "--topology bigraph:4x0: NPUs per switch of the BiGraph: is 0; give it at"),
        ("Ring_FC:2", "--topology: 'Ring_FC:2' has 1 size; give one for each of 2 dimensions"),
        ("rng:4", "--topology: there is no 'rng' to build; did you mean 'ring'?"),
        ("qqq:4", "--topology: there is no 'qqq' to build; give a shipped machine"),
        ("Ring_Foo:2x2", "--topology: there is no 'Ring_Foo' to build; "),
        ("ring:1", "--topology ring:1: size of the ring: is 1; give it at least 2"),
        ("ring:1000000000", "--topology ring:1000000000: ring 1000000000 (1000000000 NPUs"),
    ],
)
def test_wrong_text(given: str, says: str) -> None:
    with pytest.raises(hk.SpecError) as error:
        text(given)
    assert str(error.value).startswith(says)
    assert len(str(error.value)) < 450


@pytest.mark.parametrize(
    ("given", "options", "says"),
    [
        (
            "mesh:3x3",
            {"bandwidth": None},
            '--bandwidth: mesh:3x3 needs one; give --bandwidth "25 GB',
        ),
        ("mesh:3x3", {"latency": None}, '--latency: mesh:3x3 needs one; give --latency "700 ns"'),
        ("mesh:3x3", {"latency": []}, "--latency: mesh:3x3 needs one"),
        ("mesh:3x3", {"bandwidth": ["1 GB/s"] * 2}, "--bandwidth: 2 given for mesh:3x3; give one"),
        (
            "Ring_FC_SW:2x2x2",
            {"latency": ["1 ns", "2 ns"]},
            "--latency: 2 given for Ring_FC_SW:2x2x2; give one, or one for each of 3 dimensions",
        ),
        ("mesh:3x3", {"bandwidth": ["25"]}, "--bandwidth: '25' has no unit"),
        ("mesh:3x3", {"latency": ["fast"]}, "--latency: 'fast' is no time"),
        (
            "dgx1_v100",
            {"latency": None},
            "--bandwidth: dgx1_v100 has its own; leave the option out",
        ),
        (
            "dgx1_v100",
            {"bandwidth": None},
            "--latency: dgx1_v100 has its own; leave the option out",
        ),
    ],
)
def test_wrong_options(given: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(hk.SpecError) as error:
        text(given, **options)
    assert str(error.value).startswith(says)


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("dgx1", "did you mean 'dgx1_v100'"),
        ("DGX1_V100", "did you mean 'dgx1_v100'"),
        ("mi300", "did you mean 'mi300x_8gpu'"),
        ("ndv2", "did you mean 'ndv2_1box' or 'ndv2_2box' or 'ndv2_4box'?"),
        ("something", "give a shipped machine (`hocket topology list`), a .yml file, ring:16"),
    ],
)
def test_near_names_of_machines(given: str, near: str) -> None:
    with pytest.raises(hk.SpecError) as error:
        from_text(given, bandwidth=None, latency=None)
    assert near in str(error.value)


def test_a_machine_comes_before_a_file_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    network = "npus: 2\nlinks:\n  - [npu0, npu1, 1 GB/s, 1 ns]\n"
    for name in ("dgx1_v100", "mine", "mine.yml"):
        Path(name).write_text(network)
    assert tp.load("dgx1_v100").npu_count == 8
    assert tp.load(tmp_path / "dgx1_v100").npu_count == 2
    assert tp.load("mine").npu_count == 2
    assert tp.load("mine.yml").npu_count == 2
    with pytest.raises(hk.SpecError, match=r"^--bandwidth: mine\.yml has its own; leave"):
        text("mine.yml", latency=None)


def test_numbers_are_in_si_units() -> None:
    text = tp.mesh(4, 4, bandwidth="25 GB/s", latency="700 ns")
    assert tp.mesh((4, 4), bandwidth=25e9, latency=700e-9) == text
    assert tp.mesh([4, 4], bandwidth=text.link_bandwidth[0], latency=Fraction(7, 10**7)) == text
    assert tp.clos(4, 4, 4, **LINK) == tp.clos(spines=4, tors=4, hosts_per_tor=4, **LINK)
    run = hk.simulate(hk.plan("all-reduce", text, size=1e6, algorithm="ring"))
    again = tp.ring(4, bandwidth=run.algbw, latency=run.time)
    assert again.link_bandwidth[0] == round(run.algbw)
    assert again.link_latency_ps[0] == run.time_ps


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("mesh:4x4", {"bandwidth": 25e9, "latency": 700e-9}),
        ("mesh:4x4", {"bandwidth": ["25 GB/s"], "latency": "700 ns"}),
        ("mesh:4x4@25GB/s,700ns", {}),
        ("mesh:4x4@200 Gb/s, 0.7 us", {}),
    ],
)
def test_load_takes_builders(text: str, keys: dict[str, Any]) -> None:
    assert tp.load(text, **keys) == tp.mesh(4, 4, bandwidth="25 GB/s", latency="700 ns")


def test_load_takes_what_goes_with_a_topology() -> None:
    broken = tp.load("dgx1_v100", failed=["gpu7", "gpu0,gpu1"])
    assert broken == tp.load("dgx1_v100").without(["gpu7"], ["gpu0,gpu1"])
    assert broken == tp.load("dgx1_v100").without(["gpu7"], [("gpu0", "gpu1")])
    assert tp.load("dgx1_v100", failed="gpu7").npu_count == 7
    product = tp.load("Ring_SW:4x2", bandwidth=[1e9, 2e9], latency=1e-6)
    assert [rate for _, _, rate, _, _ in product.dimensions] == [10**9, 2 * 10**9]
    assert tp.load("ring:8@1GB/s,1us", groups=4).groups == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_text_is_as_good_as_a_topology() -> None:
    ring = tp.ring(4, bandwidth=1e9, latency=1e-6)
    assert tp.as_topology(ring) is ring
    assert tp.as_topology("ring:4@1GB/s,1us") == ring
    assert tp.as_topology(Path("dgx1_v100")) == tp.load("dgx1_v100")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: tp.as_topology(3), "topology: 3 is no topology; give one of hk.topology, or text"),
        (lambda: tp.as_topology("dgx1"), "topology: there is no 'dgx1'; did you mean 'dgx1_v100'"),
        (lambda: tp.as_topology("mesh:4x4"), "bandwidth: mesh:4x4 needs one; give bandwidth="),
        (lambda: tp.as_topology("mesh:4x4@25GB/s"), "topology: 'mesh:4x4@25GB/s' has no latency"),
        (lambda: tp.as_topology("mesh:4x4@25,1ns"), "bandwidth: '25' has no unit"),
        (lambda: tp.as_topology("mesh:4@1GB/s,"), "latency: '' is no time"),
        (
            lambda: tp.load("mesh:4@1GB/s,1ns", bandwidth=1e9),
            "name_or_path: 'mesh:4@1GB/s,1ns' has its own bandwidth and latency",
        ),
        (lambda: tp.load("dgx1_v100", bandwidth=1), "bandwidth: dgx1_v100 has its own"),
        (lambda: tp.load("dgx1_v100", failed=["gpu0,gpu1,gpu2"]), "failed: 'gpu0,gpu1,gpu2'"),
        (lambda: tp.load("dgx1_v100").without(links=["gpu0"]), 'links: "gpu0" is no link; give'),
        (lambda: tp.load("dgx1_v100").without(links=[["gpu0"]]), 'links: "gpu0" is no link'),
        (lambda: tp.load("dgx1_v100").without(links=["gpu0,gpu9"]), 'no device is called "gpu9"'),
    ],
)
def test_wrong_texts_of_topologies(call: Callable[[], object], says: str) -> None:
    with pytest.raises(hk.SpecError) as error:
        call()
    assert says in str(error.value)
    assert "\n" not in str(error.value)


GROUPS = [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    "groups",
    [3, "3", "0-2 3-5", "npu0,npu1,2  3-4,npu5", GROUPS, [["npu0", 1, 2], ("npu3", 4, "npu5")]],
)
def test_groups(groups: Any) -> None:
    ring = tp.ring(6, **LINK)
    grouped = tp.grouped(ring, groups)
    assert grouped.groups == GROUPS
    assert ring.groups == []
    assert grouped != ring
    assert topology_from_json(topology_to_json(grouped)) == grouped
    assert grouped.without(["npu1"]).groups == [[0, 1], [2, 3, 4]]


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        (4, "groups: 4 does not divide the 6 NPUs of 'ring 6'"),
        (0, "groups: 0 does not divide"),
        (True, "groups: true does not divide"),
        (-3, "groups: -3 does not divide"),
        ("", "groups: there is none; give a number of NPUs"),
        (None, "groups: None is no list of groups"),
        ([1, 2], "groups: [1, 2] is no list of groups"),
        (["ab"], "groups: ['ab'] is no list of groups"),
        ("0-2 3-6", "groups[1]: there is no NPU 6; NPUs are 0 to 5"),
        ("5-3", "groups: '5-3' is no range of NPUs"),
        ([[0, "npu9"]], "groups[0]: there is no NPU 'npu9'; did you mean"),
        ([[0, 1.0]], "groups[0]: there is no NPU 1.0"),
        ([[0, 1, 2], [3, 4]], 'groups: "npu5" is in none'),
        ([[0, 1, 2], [2, 3, 4, 5]], 'group 1: has "npu2", which is in group 0 too'),
        ([[0, 1, 2, 3, 4, 5], []], "group 1: has no NPU"),
    ],
)
def test_wrong_groups(groups: Any, says: str) -> None:
    with pytest.raises(hk.SpecError) as error:
        tp.grouped(tp.ring(6, **LINK), groups)
    assert says in str(error.value)


def test_a_switch_is_in_no_group() -> None:
    with pytest.raises(hk.SpecError, match="'sw0' is a switch"):
        tp.grouped(tp.switch(2, **LINK), [["npu0", "npu1", "sw0"]])


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
    with pytest.raises(hk.SpecError, match="default_latency: 'x' is no time"):
        tp.from_networkx(nx.petersen_graph(), default_bandwidth=1, default_latency="x")
    mixed = graph_of(("a", "b", EDGE), a={"group": 0})
    with pytest.raises(hk.SpecError, match="graph: node 'b' has no 'group'"):
        tp.from_networkx(mixed)


FAR = {"bandwidth": "10 GB/s", "latency": "1 us"}
NEAR = {"node_bandwidth": "90 GB/s", "node_latency": "350 ns"}


@pytest.mark.parametrize(
    ("text", "made", "groups"),
    [
        ("rail:4x8", tp.rail(4, 8, **FAR, **NEAR), 8),
        ("rail:4x8x2", tp.rail(4, 8, 2, **FAR, **NEAR), 8),
        ("box:6x4", tp.box(6, 4, **FAR, **NEAR), 4),
        ("box:6x4x2", tp.box(6, 4, 2, **FAR, **NEAR), 4),
    ],
)
def test_nodes(text: str, made: hk.Topology, groups: int, tmp_path: Path) -> None:
    assert made == tp.load(text, bandwidth=[90e9, 10e9], latency=[350e-9, 1e-6])
    assert made.groups == tp.grouped(made, groups).groups
    assert sorted(set(made.link_bandwidth.tolist())) == [10 * GB, 90 * GB]
    alike = tp.load(text + "@10GB/s,1us")
    assert set(alike.link_bandwidth.tolist()) == {10 * GB}
    family, _, sizes = text.partition(":")
    nodes, npus, *third = sizes.split("x")
    keys = f"builder: {family}\nnodes: {nodes}\nnpus: {npus}\nbandwidth: 10 GB/s\nlatency: 1 us\n"
    keys += "node_bandwidth: 90 GB/s\nnode_latency: 350 ns\n"
    keys += f"{'spines' if family == 'rail' else 'nics'}: {third[0]}\n" if third else ""
    (tmp_path / "net.yml").write_text(keys)
    assert tp.load(tmp_path / "net.yml") == made


def test_planes_and_routers(tmp_path: Path) -> None:
    rack = tp.load("gb200_nvl72")
    assert rack == tp.planes(72, 18, bandwidth=50e9, latency=350e-9).with_name("gb200_nvl72")
    assert rack.inspect().total_bandwidth == 2 * 72 * 900 * GB  # 130 TB/s, both ways together
    assert tp.load("planes:72x18@50GB/s,350ns") == rack.with_name("planes 72x18")
    routers = tp.dragonfly(5, 4, 3, bandwidth=2e9, latency="3 ns", global_bandwidth=1e9)
    keys = "builder: dragonfly\ngroups: 5\ngroup_size: 4\nnpus_per_router: 3\nbandwidth: 2 GB/s\n"
    (tmp_path / "net.yml").write_text(keys + "latency: 3 ns\nglobal_bandwidth: 1 GB/s\n")
    assert tp.load(tmp_path / "net.yml") == routers
    assert tp.load("dragonfly:5x4x3@2GB/s,3ns").npu_count == 60
    assert len(routers.groups) == 20


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: tp.box(2, 4, 3, **FAR), "3 do not divide 4 NPUs"),
        (lambda: tp.box(2, 4, 0, **FAR), "nics: 0 is no whole number"),
        (lambda: tp.rail(0, 4, **FAR), "nodes: 0 is no whole number"),
        (lambda: tp.rail(2, 4, -1, **FAR), "spines: -1 is too small"),
        (lambda: tp.rail(2, 4, node_bandwidth="9", **FAR), "node_bandwidth: '9' has no unit"),
        (lambda: tp.dragonfly(5, 4, 0, **FAR), "npus_per_router: 0 is no whole number"),
        (lambda: tp.planes(1, 4, **FAR), "NPUs of the planes: is 1; give it at least 2"),
        (
            lambda: text("rail:4"),
            "has 1 size; write it as rail:NODESxNPUS or rail:NODESxNPUSxSPINES",
        ),
        (
            lambda: text("box:4x2", bandwidth=["1 GB/s", "2 GB/s", "3 GB/s"]),
            "3 given for box:4x2; give one, or one for each of 2 kinds of links, those within nodes",
        ),
        (lambda: text("box:4x2", latency=["1 ns", "2"]), "--latency, kind 2: '2' has no unit"),
    ],
)
def test_wrong_nodes(call: Callable[[], object], says: str) -> None:
    with pytest.raises(hk.SpecError) as error:
        call()
    assert says in str(error.value)
