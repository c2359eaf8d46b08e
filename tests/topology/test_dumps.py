"""One node's dump for several nodes, dumps of unequal nodes, and networks written to be edited."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.nccl.dumps import DGX_A100, DGX_H100

import hocket as hk
from hocket.cli import run
from hocket.nccl.gpus import check_gpu
from hocket.topology.build import build_topology
from hocket.topology.sources import names
from hocket.topology.spec import TopologySpec
from hocket.topology.text import from_file, from_text
from hocket.topology.yaml_write import spec_by_links, yaml_of_links


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
        ("dump:{one},nodes=2", 2, "has several numbers of nodes; state it once"),
        ("dump:{one},{one}", 2, "has 2 nodes of its own, and 2 like one are asked for"),
        ("dump:,nodes=2", None, "names no file; write dump:a.xml,b.xml or dump:a.xml,nodes=2"),
        ("dump:none.xml,nodes=2", None, "none.xml: there is no such file"),
        ("dump:{one},nodes=0", None, "0 is too small; give a whole number from 1 to 65536"),
        ("dump:{one},nodes=x", None, "'nodes=x' is no number of nodes; write dump:a.xml"),
        ("dump:{one},node=2", None, "'node=2' is no number of nodes; write dump:a.xml"),
        ("dump:{one},nodes=2,nodes=3", None, "has several numbers of nodes; state it once"),
        ("dump:dgx1_v100", None, "leave 'dump:' out for the shipped machine dgx1_v100"),
        ("{one}", 65_537, "nodes: 65537 is too large"),
        ("{one}", True, "nodes: true is not a"),
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


def read_again(spec: TopologySpec, folder: Path) -> TopologySpec:
    file = folder / "mine.yml"
    file.write_text(yaml_of_links(spec_by_links(spec)))
    return from_file(file)


@pytest.mark.parametrize(
    "shipped",
    [["dgx_a100_1box", "mi300x_8gpu"], pytest.param(names(), marks=pytest.mark.slow)],
    ids=["two", "all"],
)
def test_a_written_machine_keeps_its_gpus(
    shipped: list[str], one: Path, other: Path, tmp_path: Path
) -> None:
    """Shipped machines and dumps: devices, links, GPUs, profile and notes are those of before."""
    for text in [*shipped, f"{one}", f"dump:{one},nodes=2", f"dump:{one},{other}"]:
        spec = from_text(text, bandwidth=None, latency=None)
        again = read_again(spec, tmp_path)
        assert same(build_topology(again), build_topology(spec)), text
        for each in ("gpu", "profile", "notes"):
            assert getattr(again, each) == getattr(spec, each), (text, each)
        assert check_gpu(again, None) == check_gpu(spec, None), text
    spec = from_text("dgx_a100_1box", bandwidth=None, latency=None)
    less = read_again(spec.with_failures(["b0g0"], []), tmp_path)
    assert (less.profile, less.notes) == (spec.profile, spec.notes)


def test_gpus_that_a_file_states(one: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.yml"
    assert run(["topology", "export", str(one), "--to", "yaml", "-o", str(file)]) == 0
    assert "gpu: sm90" in file.read_text()
    spec = from_text(str(file), bandwidth=None, latency=None)
    with pytest.raises(hk.SpecError, match=r"by its file \(sm90\), not ampere"):
        check_gpu(spec, "ampere")
    file.write_text(file.read_text().replace("sm90", "h100"))
    with pytest.raises(
        hk.SpecError, match=r"line 5: gpu: 'h100' names no GPUs; write sm90 or gfx942"
    ):
        hk.topology.load(file)


SLOW = [
    ("dgx1_v100", "gpu0,gpu1=5 GB/s", lambda src, dst: {src, dst} == {"gpu0", "gpu1"}, 5 * 10**9),
    ("dgx1_v100", "gpu0=5GB/s", lambda src, dst: "gpu0" in (src, dst), 5 * 10**9),
    (
        "clos:2x4x2@25GB/s,700ns",
        "spine0=10 Gb/s",
        lambda src, dst: "spine0" in (src, dst),
        1_250_000_000,
    ),
]


@pytest.mark.parametrize(("text", "slow", "is_slow", "rate"), SLOW)
def test_slow_parts_carry_less(
    text: str, slow: str, is_slow: Callable[[str, str], bool], rate: int, tmp_path: Path
) -> None:
    whole, less = hk.topology.load(text), hk.topology.load(text, slow=slow)
    names = whole.device_names
    ends = [(names[a], names[b]) for a, b in zip(whole.link_src, whole.link_dst, strict=True)]
    for (src, dst), before, after in zip(
        ends, whole.link_bandwidth, less.link_bandwidth, strict=True
    ):
        assert after == (min(before, rate) if is_slow(src, dst) else before)
    assert (less.groups, less.switch_offloads) == (whole.groups, whole.switch_offloads)
    assert less.link_latency_ps.tolist() == whole.link_latency_ps.tolist()
    # A file says it too.
    file = tmp_path / "mine.yml"
    hk.topology.export_topology(whole, file, to="yaml")
    file.write_text(f"slow: ['{slow}']\n{file.read_text()}")
    assert same(hk.topology.load(file), less)


def test_a_plan_on_a_slow_machine_takes_longer(capsys: pytest.CaptureFixture[str]) -> None:
    times = []
    for more in ([], ["--slow", "gpu0=1GB/s"]):
        command = [
            "compare",
            "all-gather",
            "-t",
            "dgx1_v100",
            "-s",
            "8MB",
            "-a",
            "direct",
            "--json",
        ]
        assert run([*command, *more]) == 0
        times.append(json.loads(capsys.readouterr().out)["algorithms"][0]["time_ps"])
    assert times[1] > 2 * times[0]


@pytest.mark.parametrize(
    ("slow", "says"),
    [
        ("gpu9=5GB/s", "no device is called"),
        ("gpu0,gpu7=5GB/s", "no link joins gpu0 and gpu7"),
        ("gpu0=500GB/s", "gpu0=500 GB/s is not slow: it has 50 GB/s; give less"),
        ("gpu0", "slow: 'gpu0' has no rate; say what it carries: gpu0=12.5GB/s"),
        ("gpu0,gpu1,gpu2=1GB/s", "is no slow device or link"),
        ("gpu0,nic0=", "'gpu0,nic0=' has no rate; say what it carries: gpu0,nic0=12.5GB/s"),
        ("gpu0=fast", "slow"),
        ("gpu0=0", "slow"),
    ],
)
def test_what_is_no_slow_part_is_refused(slow: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(hk.SpecError) as caught:
        hk.topology.load("dgx1_v100", slow=[slow])
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    file = tmp_path / "mine.yml"
    hk.topology.export_topology(hk.topology.load("dgx1_v100"), file, to="yaml")
    file.write_text(f"slow: ['{slow}']\n{file.read_text()}")
    with pytest.raises(hk.SpecError) as caught:
        hk.topology.load(file)
    assert "line 1" in str(caught.value)
