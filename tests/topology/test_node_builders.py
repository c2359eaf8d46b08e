"""Builders of nodes: boxes, rails, planes and routers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import hocket as hk
from hocket import topology as tp

from .small_networks import GB, text

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
    rack = tp.offloaded(tp.load("gb200_nvl72"), "all", [])
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
        (lambda: tp.box(2, 4, 0, **FAR), "nics: 0 "),
        (lambda: tp.rail(0, 4, **FAR), "nodes: 0 "),
        (lambda: tp.rail(2, 4, -1, **FAR), "spines: -1 "),
        (lambda: tp.rail(2, 4, node_bandwidth="9", **FAR), "node_bandwidth: '9' "),
        (lambda: tp.dragonfly(5, 4, 0, **FAR), "npus_per_router: 0 "),
        (lambda: tp.planes(1, 4, **FAR), "NPUs of the planes: is 1; give it at least 2"),
        (
            lambda: text("rail:4"),
            "has 1 size; write it as rail:NODESxNPUS[xSPINES]",
        ),
        (
            lambda: text("box:4x2", bandwidth=["1 GB/s", "2 GB/s", "3 GB/s"]),
            "3 given for box:4x2; give one, or one for each of 2 kinds of links: node_bandwidth, band",
        ),
        (lambda: text("box:4x2", latency=["1 ns", "2"]), "--latency, kind 2: '2' "),
    ],
)
def test_wrong_nodes(call: Callable[[], object], says: str) -> None:
    with pytest.raises(hk.SpecError) as error:
        call()
    assert says in str(error.value)
