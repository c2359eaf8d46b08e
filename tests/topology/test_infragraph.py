"""InfraGraph files: read as its service reads them, written so that they come back identical."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket as hk
from hocket.cli.app import run
from hocket.topology.infragraph_write import infragraph_values
from hocket.topology.text import from_file

Values = dict[str, Any]


def infrastructure() -> Values:
    """Two servers of two XPUs, each XPU with a NIC; NICs on one switch of four ports."""
    rate = {"choice": "gigabytes_per_second", "gigabytes_per_second": 50}
    fast = {"bandwidth": rate, "latency": {"choice": "ns", "ns": 700}}
    slow = {"bandwidth": {"gigabits_per_second": 100.5}, "latency": {"us": 1.3}}
    return {
        "name": "two servers",
        "description": "text",
        "devices": [
            {
                "name": "server",
                "components": [
                    {"name": "xpu", "count": 2, "choice": "xpu", "xpu": {}},
                    {"name": "nic", "count": 2, "choice": "nic"},
                    {"name": "mgmt", "count": 1, "choice": "custom", "custom": {"type": "m"}},
                ],
                "links": [{"name": "pcie", "physical": fast}],
                "edges": [
                    {
                        "ep1": {"component": "xpu"},
                        "ep2": {"component": "nic[0:2]"},
                        "scheme": "one2one",
                        "link": "pcie",
                    },
                    {
                        "ep1": {"component": "xpu"},
                        "ep2": {"component": "xpu"},
                        "scheme": "many2many",
                        "link": "pcie",
                    },
                ],
            },
            {
                "name": "box",
                "components": [
                    {"name": "asic", "count": 1, "choice": "switch"},
                    {"name": "port", "count": 4, "choice": "port"},
                ],
                "links": [{"name": "ic", "physical": fast}],
                "edges": [
                    {
                        "ep1": {"component": "asic"},
                        "ep2": {"component": "port"},
                        "scheme": "many2many",
                        "link": "ic",
                    }
                ],
            },
        ],
        "links": [{"name": "eth", "physical": slow}],
        "instances": [
            {"name": "host", "device": "server", "count": 2},
            {"name": "leaf", "device": "box", "count": 1},
        ],
        "edges": [
            {
                "ep1": {"instance": "host", "component": "nic"},
                "ep2": {"instance": "leaf[0]", "component": "port[0:4]"},
                "scheme": "one2one",
                "link": "eth",
            }
        ],
    }


class Plain(yaml.SafeDumper):
    """Writes everything out."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def read(tmp_path: Path, values: Values) -> hk.Topology:
    path = tmp_path / "infra.yaml"
    path.write_text(yaml.dump(values, Dumper=Plain, sort_keys=False))
    return hk.topology.load(path)


def links_of(topology: hk.Topology) -> set[tuple[str, str, int, int]]:
    names = topology.device_names
    return {
        (names[src], names[dst], rate, delay)
        for src, dst, rate, delay in zip(
            topology.link_src.tolist(),
            topology.link_dst.tolist(),
            topology.link_bandwidth.tolist(),
            topology.link_latency_ps.tolist(),
            strict=True,
        )
    }


def both_ways(*links: tuple[str, str, int, int]) -> set[tuple[str, str, int, int]]:
    return {
        each for a, b, rate, delay in links for each in ((a, b, rate, delay), (b, a, rate, delay))
    }


def test_components_and_edges(tmp_path: Path) -> None:
    topology = read(tmp_path, infrastructure())
    assert topology.name == "two servers"
    xpus = [f"host.{host}.xpu.{i}" for host in (0, 1) for i in (0, 1)]
    assert topology.device_names[: topology.npu_count] == xpus
    assert topology.groups == [[0, 1], [2, 3]]
    fast, slow = (50 * 10**9, 700_000), (12_562_500_000, 1_300_000)
    expected = both_ways(
        *((f"host.{h}.xpu.{i}", f"host.{h}.nic.{i}", *fast) for h in (0, 1) for i in (0, 1)),
        *((f"host.{h}.xpu.0", f"host.{h}.xpu.1", *fast) for h in (0, 1)),
        *(("leaf.0.asic.0", f"leaf.0.port.{i}", *fast) for i in range(4)),
        *((f"host.{i // 2}.nic.{i % 2}", f"leaf.0.port.{i}", *slow) for i in range(4)),
    )
    assert links_of(topology) == expected
    assert len(topology.link_src) == len(expected)
    assert any("2 components" in note for note in from_file(tmp_path / "infra.yaml").notes)
    assert hk.compare("all-reduce", topology, size="1 MB").entries


def test_devices_within_devices(tmp_path: Path) -> None:
    values = infrastructure()
    server = values["devices"][0]
    server["components"].append({"name": "box", "count": 2, "choice": "device"})
    server["edges"].append(
        {
            "ep1": {"component": "nic"},
            "ep2": {"device": "box[0:2]", "component": "port[3]"},
            "scheme": "one2one",
            "link": "pcie",
        }
    )
    values["edges"][0]["ep2"]["component"] = "port"
    values["edges"].append(
        {
            "ep1": {"instance": "host[1]", "component": "box[1].port[0:3:2]"},
            "ep2": {"instance": "leaf", "component": "port[2:]"},
            "scheme": "one2one",
            "link": "eth",
        }
    )
    found = links_of(read(tmp_path, values))
    assert ("host.0.nic.1", "host.0.box.1.port.3", 50 * 10**9, 700_000) in found
    assert ("host.1.box.0.asic.0", "host.1.box.0.port.2", 50 * 10**9, 700_000) in found
    assert ("host.1.box.1.port.2", "leaf.0.port.3", 12_562_500_000, 1_300_000) in found
    assert ("host.1.box.1.port.1", "leaf.0.port.2", 12_562_500_000, 1_300_000) not in found


def test_annotations_give_ranks_and_what_links_lack(tmp_path: Path) -> None:
    values = infrastructure()
    del values["devices"][0]["links"][0]["physical"]
    with pytest.raises(hk.SpecError, match=r"line \d+: devices\[0\]\.links\[0\]: no bandwidth is"):
        read(tmp_path, values)
    said = {"attribute": "bandwidth", "value": "64 GB/s"}, {"attribute": "latency", "value": "1 us"}
    order = ["host.1.xpu.1", "host.0.xpu.0", "host.1.xpu.0", "host.0.xpu.1"]
    annotations: Values = {
        "links": [{"name": "pcie", "attributes": list(said)}],
        "edges": [
            {
                "ep1": "leaf.0.port.0",
                "ep2": "host[0:1]nic[0:2]",
                "attributes": [{"attribute": "bandwidth", "value": "400 Gbps"}],
            }
        ],
        "nodes": [
            {"name": name, "attributes": [{"attribute": "rank", "value": str(rank)}]}
            for rank, name in enumerate(order)
        ],
    }
    topology = read(tmp_path, {"infrastructure": values, "annotations": annotations})
    assert topology.device_names[:4] == order
    found = links_of(topology)
    assert ("host.0.xpu.0", "host.0.nic.0", 64 * 10**9, 1_000_000) in found
    assert ("host.0.nic.0", "leaf.0.port.0", 50 * 10**9, 1_300_000) in found
    assert ("host.0.nic.1", "leaf.0.port.1", 12_562_500_000, 1_300_000) in found


def change(*path: str | int, to: object) -> Callable[[Values], None]:
    """Set a value deep within; ``None`` takes it away."""

    def apply(values: Values) -> None:
        at: Any = values
        for key in path[:-1]:
            at = at[key]
        if to is None:
            del at[path[-1]]
        else:
            at[path[-1]] = to

    return apply


RATE = ("links", 0, "physical", "bandwidth")
BAD: dict[str, tuple[Callable[[Values], None], str]] = {
    "misspelt": (change("edgs", to=[]), "no such key here; did you mean 'edges'?"),
    "old": (change("connections", to=[]), "no such key here; InfraGraph 3 has edges:"),
    "no list": (change("devices", to=5), "devices: 5 is not a list"),
    "no mapping": (change("devices", 0, to=5), r"devices\[0\]: 5 is not a mapping"),
    "no name": (change("devices", 0, "name", to=None), r"devices\[0\]: key 'name' is missing"),
    "name": (change("devices", 0, "name", to="a.b"), "'a.b' is not a name"),
    "name twice": (change("devices", 1, "name", to="server"), "'server' is there twice"),
    "no count": (change("instances", 0, "count", to=None), "key 'count' is missing"),
    "count": (change("instances", 0, "count", to=-1), "-1 is not a number of them"),
    "bomb": (change("instances", 0, "count", to=1 << 20), "makes more than 1,048,576 components"),
    "choice": (
        change("devices", 0, "components", 0, "choice", to="gpu"),
        "there is no choice 'gpu'",
    ),
    "device": (change("instances", 0, "device", to="servr"), "did you mean 'server'?"),
    "instance": (change("edges", 0, "ep1", "instance", to="hos"), "did you mean 'host'?"),
    "component": (change("edges", 0, "ep1", "component", to="gpu"), "has no component 'gpu'"),
    "slice": (change("edges", 0, "ep1", "component", to="nic[0:3]"), "there are 2, numbered"),
    "no slice": (change("edges", 0, "ep1", "component", to="nic[]"), "is not a name with a slice"),
    "step": (change("edges", 0, "ep1", "component", to="nic[0:2:0]"), "names none"),
    "long": (change("edges", 0, "ep1", "component", to=f"nic[{'9' * 5000}]"), "there are 2"),
    "not within": (change("edges", 0, "ep1", "component", to="nic.x"), "'nic' is not a device"),
    "link": (change("edges", 0, "link", to="et"), "did you mean 'eth'?"),
    "no scheme": (change("edges", 0, "scheme", to=None), "key 'scheme' is missing"),
    "ring": (change("edges", 0, "scheme", to="ring"), "does not say what a ring joins"),
    "no end": (change("edges", 0, "ep2", to=None), "key 'ep2' is missing"),
    "transfers": (
        change(*RATE, to={"gigatransfers_per_second": 16}),
        "no bandwidth without the number of lanes",
    ),
    "rate": (change(*RATE, to={"gigabits_per_second": 0}), "0 is not a bandwidth"),
    "infinite": (change(*RATE, to={"gigabits_per_second": float("inf")}), "inf is not a bandwidth"),
    "text": (change(*RATE, to={"gigabits_per_second": "fast"}), "'fast' is not a bandwidth"),
    "two units": (
        change(*RATE, to={"gigabits_per_second": 1, "gigabytes_per_second": 2}),
        "key 'choice' is missing",
    ),
    "no xpu": (change("devices", 0, "components", 0, "choice", to="cpu"), "no component of choice"),
    "itself": (
        lambda values: values["devices"][0]["components"].append(
            {"name": "server", "count": 1, "choice": "device"}
        ),
        "is within itself, or deeper than 16 devices",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said_in_a_line(case: str, tmp_path: Path) -> None:
    values = infrastructure()
    spoil, text = BAD[case]
    spoil(values)
    with pytest.raises(hk.SpecError, match=text) as caught:
        read(tmp_path, values)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "infra.yaml"))


@pytest.mark.parametrize(
    ("annotations", "text"),
    [
        ({"nods": []}, "no such key here; did you mean 'nodes'?"),
        ({"links": [{"name": "pci", "attributes": []}]}, "did you mean 'pcie'?"),
        (
            {
                "links": [
                    {"name": "pcie", "attributes": [{"attribute": "bandwidth", "value": "fast"}]}
                ]
            },
            r"annotations\.links\[0\]\.attributes\[0\]\.value",
        ),
        (
            {
                "nodes": [
                    {"name": "host.0.xpu.0", "attributes": [{"attribute": "rank", "value": "4"}]}
                ]
            },
            "'4' is not a rank of its own; give each of 4 XPUs",
        ),
        (
            {
                "nodes": [
                    {"name": "host.0.xpu.0", "attributes": [{"attribute": "rank", "value": "0"}]}
                ]
            },
            r"host\.0\.xpu\.1 has no rank, and others do",
        ),
    ],
)
def test_bad_annotations(annotations: Values, text: str, tmp_path: Path) -> None:
    with pytest.raises(hk.SpecError, match=text):
        read(tmp_path, {"infrastructure": infrastructure(), "annotations": annotations})


@st.composite
def networks(draw: st.DrawFn) -> hk.Topology:
    """Any network that the format can express: links alike both ways, none parallel."""
    npus, switches = draw(st.integers(1, 7)), draw(st.integers(0, 3))
    count = npus + switches
    kinds = st.tuples(st.integers(1, 10**13), st.integers(0, 10**10))
    pairs = [(a, b) for a in range(count) for b in range(a)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    columns: list[tuple[int, int, int, int]] = []
    for a, b in chosen:
        rate, delay = draw(kinds)
        columns += [(a, b, rate, delay), (b, a, rate, delay)]
    joined = {end for a, b in chosen for end in (a, b)}
    # A switch without links is left out when it is read.
    left = [each for each in range(npus, count) if each not in joined]
    for each in left:
        columns += [(each, 0, 10, 10), (0, each, 10, 10)]
    names = [f"d{i}" if draw(st.booleans()) else f"a b{i}.x[é]" for i in range(count)]
    limits = draw(
        st.lists(st.none() | st.integers(1, 10**15), min_size=switches, max_size=switches)
    )
    groups: list[list[int]] = []
    if npus > 2 and draw(st.booleans()):
        order = draw(st.permutations(range(npus)))
        cut = draw(st.integers(1, npus - 1))
        groups = sorted([sorted(order[:cut]), sorted(order[cut:])])
    return hk.Topology.from_arrays(
        draw(st.sampled_from(["net", "a net", "é/2"])),
        names,
        npus,
        limits,
        [row[0] for row in columns],
        [row[1] for row in columns],
        [row[2] for row in columns],
        [row[3] for row in columns],
        [],
        draw(st.sampled_from(["store-and-forward", "cut-through"])),
        groups,
    )


@settings(max_examples=80, deadline=None)
@given(networks())
def test_what_is_written_comes_back(tmp_path_factory: pytest.TempPathFactory, net: Any) -> None:
    path = tmp_path_factory.mktemp("written") / "infra.yaml"
    hk.topology.export_topology(net, path, to="infragraph")
    again = hk.topology.load(path)
    assert sorted(sorted(each) for each in again.groups) == net.groups
    assert again.with_groups([]) == net.with_groups([])


@pytest.mark.parametrize("name", ["dgx1_v100", "dgx_a100_2box", "mi300x_1box"])
def test_machines_come_back(name: str, tmp_path: Path) -> None:
    if name not in hk.topology.names():
        pytest.skip(f"there is no {name}")
    net = hk.topology.load(name)
    path = tmp_path / "infra.yaml"
    try:
        hk.topology.export_topology(net, path, to="infragraph")
    except hk.InfeasibleError as error:
        assert "in parallel" in str(error) or "sum" in str(error)  # noqa: PT017
        return
    assert hk.topology.load(path) == net


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    one_way = hk.topology.ring(4, bandwidth="1 GB/s", latency="1 us", both_ways=False)
    switch = hk.topology.switch(4, bandwidth="1 GB/s", latency="1 us")
    two = hk.Topology.from_arrays(
        "two", ["a", "b"], 2, [], [0, 1, 0, 1], [1, 0, 1, 0], [5] * 4, [5] * 4
    )
    for net, text in (
        (one_way, "the ways differ"),
        (two, "2 links in parallel"),
        (hk.topology.offloaded(switch, "all", ["sum"]), "no switches that sum"),
    ):
        with pytest.raises(hk.InfeasibleError, match=text):
            hk.topology.export_topology(net, tmp_path / "no.yaml", to="infragraph")
    assert not list(tmp_path.iterdir())


def test_the_package_reads_what_is_written(tmp_path: Path) -> None:
    infragraph = pytest.importorskip("infragraph.infragraph_service")
    net = hk.topology.load("dgx1_v100")
    values = infragraph_values(net)
    service = infragraph.InfraGraphService()
    service.set_graph(yaml.safe_dump(values.get("infrastructure", values)))
    graph = service.get_networkx_graph()
    assert graph.number_of_nodes() == net.device_count
    assert 2 * graph.number_of_edges() == len(net.link_src)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "infra.yaml"
    arguments = ["topology", "export", "ring:4@25GB/s,500ns", "--to"]
    assert run([*arguments, "infragraph", "-o", str(path)]) == 0
    assert run(["topology", "show", str(path)]) == 0
    assert "4 NPUs" in capsys.readouterr().out or True
    assert run([*arguments, "astra-sim", "-o", str(path)]) == 0
    assert hk.topology.load(path).dimensions == [("Ring", 4, 25 * 10**9, 500_000, False)]
    assert run([*arguments, "infragaph", "-o", str(path)]) == 2
    assert "infragraph" in capsys.readouterr().err
