"""One node's dump for several nodes, dumps of unequal nodes, and networks written to be edited."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.nccl.dumps import DGX_A100, DGX_H100

import hocket as hk
from hocket.cli import run


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A DGX H100 as NCCL sees it."""
    file = tmp_path / "one.xml"
    file.write_text(DGX_H100.topology())
    return file


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A DGX A100 as NCCL sees it."""
    file = tmp_path / "other.xml"
    file.write_text(DGX_A100.topology())
    return file


def same(left: hk.Topology, right: hk.Topology) -> bool:
    """Whether devices, links, nodes and what switches can are equal; names and dimensions may differ."""
    columns = ("link_src", "link_dst", "link_bandwidth", "link_latency_ps")
    return (
        left.device_names == right.device_names
        and left.npu_count == right.npu_count
        and all(np.array_equal(getattr(left, each), getattr(right, each)) for each in columns)
        and left.groups == right.groups
        and left.switch_limits == right.switch_limits
        and left.switch_offloads == right.switch_offloads
        and left.switching == right.switching
    )


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_one_dump_stands_for_several_nodes(one: Path, nodes: int) -> None:
    machine = hk.nccl.load_machine([(one, None)], nodes).topology
    for network in (
        hk.topology.load(one, nodes=nodes),
        hk.topology.load(f"dump:{one},nodes={nodes}"),
        hk.topology.as_topology(f"pod=dump:{one},nodes={nodes}"),
    ):
        assert same(network, machine)
    assert machine.npu_count == 8 * nodes
    assert len(machine.groups) == (nodes if nodes > 1 else 0)


def test_dumps_of_unequal_nodes_stand_in_one_text(one: Path, other: Path) -> None:
    machine = hk.nccl.load_machine([(one, None), (other, None), (one, None)]).topology
    assert same(hk.topology.load(f"dump:{one},{other},{one}"), machine)


def test_commands_take_one_dump_for_two_nodes(
    one: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = []
    for network in (["-t", f"dump:{one},nodes=2"], ["-t", str(one), "--nodes", "2"]):
        assert run(["compare", "all-gather", *network, "-s", "1MB", "-a", "ring", "--csv"]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    ("text", "nodes", "says"),
    [
        (
            "ring:4@1GB/s,1us",
            2,
            "nodes: 2 nodes like 'ring:4@1GB/s,1us', which is no dump of a node",
        ),
        ("dgx1_v100", 2, "nodes: 2 nodes like 'dgx1_v100', which is no dump of a node"),
        ("dump:{one},nodes=2", 2, "has its own number of nodes; state it once"),
        ("dump:{one},{one}", 2, "has 2 nodes of its own, and 2 like one are asked for"),
        ("dump:,nodes=2", None, "names no file; write dump:a.xml,b.xml or dump:a.xml,nodes=2"),
        ("dump:none.xml,nodes=2", None, "none.xml: there is no such file"),
        ("dump:{one},nodes=0", None, "0 is too small; give a whole number from 1 to 65536"),
        ("dump:{one},nodes=x", None, "nodes=x: there is no such file"),
        ("{one}", 65_537, "nodes: 65537 is too large"),
        ("{one}", True, "nodes: true is not a number"),
    ],
)
def test_what_is_no_number_of_nodes_is_refused(
    one: Path, text: str, nodes: int | None, says: str
) -> None:
    with pytest.raises(hk.SpecError) as caught:
        hk.topology.load(text.replace("{one}", str(one)), nodes=nodes)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


NETWORKS = (
    "ring:4@1GB/s,1us",
    "Ring_FC_SW:2x2x2@25GB/s,700ns",
    "clos:2x4x2@25GB/s,700ns",
    "dgx1_v100",
    "hgx_h100_8gpu_validated",
    "dgx_h100_4box_quantum2",
)


@pytest.mark.parametrize("text", NETWORKS)
def test_a_written_network_is_read_as_it_was(text: str, tmp_path: Path) -> None:
    network = hk.topology.load(text)
    file = tmp_path / "mine.yml"
    hk.topology.export_topology(network, file, to="yaml")
    again = hk.topology.load(file)
    assert same(again, network)
    assert again.name == network.name.replace(" ", "-")


def test_a_shipped_machine_is_written_with_its_sources(one: Path, tmp_path: Path) -> None:
    whole, less = tmp_path / "whole.yml", tmp_path / "less.yml"
    export = ["topology", "export", "dgx1_v100", "--to", "yaml", "-o"]
    assert run([*export, str(whole)]) == 0
    assert "source:" in whole.read_text()
    assert same(hk.topology.load(whole), hk.topology.load("dgx1_v100"))
    assert run([*export, str(less), "--failed", "gpu0"]) == 0
    assert same(hk.topology.load(less), hk.topology.load("dgx1_v100", failed="gpu0"))
    two = ["topology", "export", str(one), "--nodes", "2", "--to", "yaml", "-o", str(less)]
    assert run(two) == 0
    assert same(hk.topology.load(less), hk.topology.load(one, nodes=2))
