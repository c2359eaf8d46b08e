"""Schematics: what they count is what the network has, and all of it can be read."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

import hocket as hk
from hocket.layout.groups import Group, alike, chosen, device_kinds, groups_of, link_kinds
from hocket.plot.labels import text_inches
from hocket.plot.panels import panels_of
from hocket.plot.schematic import draw_schematic, failures_of
from hocket.plot.tiers import Failures, arrange

T = hk.topology
ON: dict[str, Any] = {"bandwidth": "25 GB/s", "latency": "1 us"}


def rails() -> hk.Topology:
    rates = ["400 GB/s", "50 GB/s"]
    return T.product("Switch_Switch", [8, 64], bandwidth=rates, latency=["1 us"] * 2)


NETWORKS = {
    "torus": lambda: T.torus(8, 8, 8, **ON),
    "rails": rails,
    "clos": lambda: T.clos(spines=8, tors=32, hosts_per_tor=4, **ON),
    "fat tree": lambda: T.fat_tree(16, **ON),
    "dragonfly": lambda: T.dragonfly(32, 16, **ON),
    "mesh": lambda: T.mesh(32, 32, **ON),
    "boxes": lambda: T.load("dgx_a100_8box"),
    "four dimensions": lambda: T.load("themis_4d_ring_fc_ring_sw"),
    "hypercube": lambda: T.hypercube(8, **ON),
    "bigraph": lambda: T.bigraph(switches_per_side=4, npus_per_switch=8, **ON),
    "ring": lambda: T.ring(100, **ON),
    "switch": lambda: T.switch(100, **ON),
    "five axes": lambda: T.mesh(3, 2, 2, 3, 2, **ON),
    "one box": lambda: T.load("mi300x_8gpu"),
    "two": lambda: T.ring(2, **ON),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_overlaps_or_is_cut(name: str, drawn: Any, tmp_path: Path) -> None:
    topology = NETWORKS[name]()
    draw_schematic(topology, tmp_path / "a.png")
    assert drawn.overlaps() == []
    assert drawn.outside() == []
    npus, links = topology.npu_count, topology.link_count
    assert f"{npus:,} NPUs" in drawn.words
    assert f"{links:,} links" in drawn.words


@pytest.mark.parametrize("name", ["torus", "clos", "mesh"])
def test_pictures_are_cropped(name: str, tmp_path: Path) -> None:
    draw_schematic(NETWORKS[name](), tmp_path / "a.png")
    ink = matplotlib.image.imread(tmp_path / "a.png")[:, :, :3].min(axis=2) < 0.95
    rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    most = 30  # pixels, at 150 an inch
    assert rows[0] < most
    assert columns[0] < most
    assert ink.shape[0] - rows[-1] < most
    assert ink.shape[1] - columns[-1] < most


@pytest.mark.parametrize("name", NETWORKS)
def test_groups_and_kinds_of_links_have_all_there_is(name: str) -> None:
    topology = NETWORKS[name]()
    group = groups_of(topology)
    assert group.devices == tuple(range(topology.device_count))
    assert group.npu_count == topology.npu_count
    assert sum(kind.count for kind in link_kinds(topology)) == topology.link_count


def shape(group: Group, kinds: list[str]) -> Any:
    """Give tiers with their sizes, and the number and shape of the groups within."""
    tiers = [(kinds[tier[0]], len(tier)) for tier in group.tiers]
    within = [(len(each), shape(each[0], kinds)) for each in alike(group.children, kinds)]
    return tiers, within or len(group.npus)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("clos", ([("spine", 8)], [(32, ([("tor", 1)], 4))])),
        (
            "fat tree",
            ([("core", 64)], [(16, ([("agg", 8)], [(8, ([("edge", 1)], 8))]))]),
        ),
        ("boxes", ([("ib", 2)], [(8, ([("nvs", 1), ("nic", 8)], 8))])),
        ("bigraph", ([], [(4, ([("upper", 1)], 8)), (4, ([("lower", 1)], 8))])),
    ],
)
def test_groups_are_what_they_are_called(name: str, expected: Any) -> None:
    topology = NETWORKS[name]()
    assert shape(groups_of(topology), device_kinds(topology)) == expected


@pytest.mark.parametrize(
    "name", ["torus", "rails", "dragonfly", "mesh", "four dimensions", "hypercube", "five axes"]
)
def test_panels_multiply_to_the_network(name: str) -> None:
    topology = NETWORKS[name]()
    panels = panels_of(topology, Failures())
    assert panels is not None
    assert math.prod(panel.count for panel in panels) == topology.npu_count
    assert sum(panel.links for panel in panels) == topology.link_count
    inner = 1
    for panel in panels:
        assert panel.inner == inner
        inner *= panel.count


@pytest.mark.parametrize("name", ["clos", "fat tree", "boxes", "bigraph", "one box"])
def test_boxes_have_room_for_their_text_and_stay_apart(name: str) -> None:
    topology = NETWORKS[name]()
    devices = frozenset({topology.device_count - 1})
    for failures in (Failures(), Failures(devices)):
        drawing = arrange(topology, failures)
        for box in drawing.boxes:
            assert max(text_inches(line, 7.5)[0] for line in box.lines) <= box.width
        inner = [box for box in drawing.boxes if box.kind != "group"]
        for i, box in enumerate(inner):
            for other in inner[:i]:
                is_beside = max(box.x, other.x) >= min(box.x + box.width, other.x + other.width)
                above = max(box.y, other.y) >= min(box.y + box.height, other.y + other.height)
                assert is_beside or above, (box, other)


def test_panels_say_what_dimensions_are(drawn: Any, tmp_path: Path) -> None:
    draw_schematic(NETWORKS["torus"](), tmp_path / "a.svg")
    assert "dimensions 1 and 2: torus of 8 x 8, × 8" in drawn.words
    assert "dimension 3: Ring of 8" in drawn.words
    assert "64 rings, one a position" in drawn.words
    draw_schematic(rails(), tmp_path / "a.svg")
    for words in ("8 switches", "× 64", "400 GB/s a link", "sw64", "sw71"):
        assert words in drawn.words
    draw_schematic(NETWORKS["dragonfly"](), tmp_path / "a.svg")
    for words in ("16 NPUs, fully connected, × 32", "1 link each way between every two groups"):
        assert words in drawn.words


def test_tiers_are_named_and_counted(drawn: Any, tmp_path: Path) -> None:
    draw_schematic(NETWORKS["clos"](), tmp_path / "a.svg")
    for words in ("spine0", "spine7", "… × 8", "… × 32", "32 of 32: 4 NPUs", "npu124 … npu127"):
        assert words in drawn.words
    assert "tor – spine: 256 links each way, 25 GB/s, 1 us" in drawn.words


def test_failures_show(drawn: Any, tmp_path: Path) -> None:
    clos = NETWORKS["clos"]()
    failed = failures_of(clos, ["spine3"], [("tor7", "spine0")])
    assert len(failed.links) == 2
    draw_schematic(clos, tmp_path / "a.svg", failed)
    for words in ("✕ spine3", "tor7", "failed: spine3, tor7–spine0"):
        assert words in drawn.words
    assert drawn.overlaps() == []
    draw_schematic(clos, tmp_path / "a.svg", failures_of(clos, ["npu9"], []))
    assert "npu9 failed" in drawn.words
    rail = rails()
    draw_schematic(rail, tmp_path / "a.svg", failures_of(rail, ["sw67"], []))
    assert "sw67" in drawn.words
    assert drawn.overlaps() == []


def test_panels_show_the_group_in_which_something_failed() -> None:
    torus = NETWORKS["torus"]()
    # NPU 100 is at 4, 4, 1; it and NPU 164, at 4, 4, 2, are joined along the third dimension.
    panels = panels_of(torus, failures_of(torus, ["npu100"], []))
    assert panels is not None
    assert panels[0].members_failed == {(4, 4)}
    assert (panels[1].members_failed, panels[1].shown) == ({(1,)}, (1,))
    panels = panels_of(torus, failures_of(torus, [], [("npu100", "npu164")]))
    assert panels is not None
    assert panels[0].members_failed == frozenset()
    assert panels[1].links_failed == {((1,), (2,)), ((2,), (1,))}


def test_the_first_the_last_and_the_marked_are_drawn() -> None:
    assert chosen(3, 2, 1) == [0, 1, 2]
    assert chosen(64, 2, 1) == [0, 1, None, 63]
    assert chosen(64, 2, 1, lambda i: i == 5) == [0, 1, None, 5, None, 63]
    assert chosen(4, 2, 1) == [0, 1, 2, 3]  # one alone takes no more room than dots
    assert chosen(100, 1, 1, lambda _: True) == [0, 1, 2, 3, None, 99]


def test_a_failed_link_to_a_switch_is_no_failed_member() -> None:
    rail = rails()
    panels = panels_of(rail, failures_of(rail, [], [("npu10", "sw1")]))
    assert panels is not None
    assert [rail.device_names[each] for each in panels[0].switches] == ["sw1"]
    assert (panels[0].members_failed, panels[0].links_failed) == (frozenset(), {((2,), (2,))})
    assert panels[1].members_failed == {(1,)}  # what is in it


def test_every_box_in_which_something_failed_is_drawn(drawn: Any, tmp_path: Path) -> None:
    boxes = NETWORKS["boxes"]()
    draw_schematic(boxes, tmp_path / "a.svg", failures_of(boxes, ["b3nic2", "b5g1"], []))
    for words in ("4 of 8: 8 NPUs", "✕ b3nic2", "6 of 8: 8 NPUs", "b5g1 failed"):
        assert words in drawn.words
    assert drawn.overlaps() == []
