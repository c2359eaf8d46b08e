"""Names, nodes and warnings: what a network says of itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hocket as hk
from hocket.cli import run

from .topology_files import (
    DIMS,
    MESH,
    PAIR,
    RING,
    load,
    refusal,
)


@pytest.mark.parametrize(
    "text",
    [MESH, RING, DIMS, PAIR + "  - [a, b, k]\n", "name: mine\nfailed: {nodes: [npu1]}\n" + MESH],
)
def test_a_name_is_the_name_of_the_network(tmp_path: Path, text: str) -> None:
    text = text.removeprefix("name: mine\n")
    name = load(tmp_path, "name: mine\n" + text).name
    assert name == ("mine without npu1" if "failed" in text else "mine")


def test_nodes_of_a_file(tmp_path: Path) -> None:
    assert load(tmp_path, RING + "groups: 2\n").groups == [[0, 1], [2, 3]]
    lists = "groups: [[npu3, npu0], [npu1, npu2]]\n"
    assert load(tmp_path, RING + lists).groups == [[3, 0], [1, 2]]
    assert load(tmp_path, RING + lists + "failed: {nodes: [npu0]}\n").groups == [[2], [0, 1]]
    dragonfly = "builder: dragonfly\ngroups: 3\ngroup_size: 2\nbandwidth: 1 GB/s\nlatency: 1 us\n"
    assert load(tmp_path, dragonfly).groups == []


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ("3", "groups: 3 does not divide the 4 NPUs"),
        ("0", "groups: 0 "),
        ("x", "groups: 'x' "),
        ("[a, b]", "groups[0]"),
        ("[[]]", "groups[0]"),
        ("[[npu0, npu1], [npu2, npu9]]", "groups[1]: there is no NPU 'npu9'"),
        ("[[npu0, npu1], [npu2]]", "is in none; put every NPU in a group"),
        ("[[npu0, npu1, npu2, npu3, npu0]]", "is in group 0 too; leave one out"),
    ],
)
def test_wrong_nodes(tmp_path: Path, groups: str, says: str) -> None:
    assert says in refusal(tmp_path, RING + f"groups: {groups}\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("npus: [a, b]\nlinks: []\n", "there are no links, so that its 2 NPUs cannot communicate"),
        ("npus: [a]\nlinks: []\n", "there is one NPU"),
        (
            "npus: [a, b, c]\nlinks: [[a, b, 1 GB/s, 1 us]]\n",
            "it is not connected: a does not reach c",
        ),
        (RING, ""),
    ],
)
def test_what_is_odd_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    file = tmp_path / "net.yml"
    file.write_text(text)
    assert run(["topology", "show", str(file)]) == 0
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if "warning: " in line and says in line][:1] == [
        line for line in printed.splitlines() if "warning" in line
    ]
    assert run(["topology", "show", str(file), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["warnings"]) == bool(says)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("rail:2x4@450GB/s,200ns@50GB/s,1us", {(450, 200), (50, 1000)}),
        ("box:2x4@450GB/s,200ns@50GB/s,1us", {(450, 200), (50, 1000)}),
        ("dragonfly:4x5@100GB/s,300ns@25GB/s", {(100, 300), (25, 300)}),
        ("clos:2x4x2@100GB/s,1us@50GB/s", {(100, 1000), (50, 1000)}),
        ("Ring_FC:2x4@1GB/s,1us@2GB/s,3us", {(1, 1000), (2, 3000)}),
        ("rail:2x4@50GB/s,1us", {(50, 1000)}),
    ],
)
def test_each_kind_of_links_in_the_text(text: str, kinds: set[tuple[int, int]]) -> None:
    made = hk.topology.load(text)
    links = zip(made.link_bandwidth.tolist(), made.link_latency_ps.tolist(), strict=True)
    assert {(rate // 10**9, delay // 1000) for rate, delay in links} == kinds


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("mesh:4x4@1GB/s,1us@2GB/s,1us", "2 given for mesh:4x4; give one"),
        ("rail:2x4@1GB/s@2GB/s", "has no latency"),
        ("clos:2x4@1GB/s,1us@2GB/s,2us", "2 given for clos:2x4; give one"),
        ("box:2x4@1GB/s,1us@2GB/s,1us@3GB/s", "has 2 latencies"),
        ("rail:2x4@1GB/s,1us@", "bandwidth"),
    ],
)
def test_links_in_the_text_that_do_not_fit(text: str, why: str) -> None:
    with pytest.raises(hk.SpecError) as caught:
        hk.topology.load(text)
    assert why in str(caught.value)
