"""Pictures of networks: everything has a place, and nothing lies on what it does not belong to."""

from __future__ import annotations

from functools import cache

import networkx as nx
import numpy as np
import pytest

import hocket as hk
from hocket.layout import tiers
from hocket.layout.network import layout
from hocket.layout.parts import Layout
from hocket.topology.machines import names

BUILT = [
    "ring:2", "ring:7", "ring:100", "line:40", "mesh:4x3", "mesh:2x2x2x2", "torus:8x8x8",
    "torus:4x4x4x4", "hypercube:6", "fully_connected:9", "fully_connected:40", "switch:9", "dragonfly:5x4",
    "clos:4x8x2", "bigraph:4x4", "fat_tree:4", "rail:4x8", "planes:16x4", "Ring_FC_SW:2x8x4", "SW_SW:16x8",
    "FC_Ring:16x4", "Ring_SW_FC_Ring:2x2x3x4",
]  # fmt: skip


def network(text: str) -> hk.topology.Topology:
    if ":" not in text:
        return hk.topology.load(text)
    try:
        return hk.topology.load(f"{text}@25GB/s,700ns")
    except hk.SpecError as error:
        pytest.skip(str(error))


@cache
def placed(text: str, *, has_stubs: bool = True) -> tuple[hk.topology.Topology, Layout]:
    built = network(text)
    return built, layout(built, has_stubs=has_stubs)


@pytest.mark.parametrize("has_stubs", [True, False])
@pytest.mark.parametrize("text", [*BUILT, *names()])
def test_everything_has_a_place(text: str, has_stubs: bool) -> None:
    built, found = placed(text, has_stubs=has_stubs)
    devices, links = built.device_count, built.link_count
    assert found.devices.shape == (devices, 2)
    assert found.ways.shape == (links, 5)
    assert np.isfinite(found.devices).all()
    assert np.isfinite(found.ways).all()
    assert len(np.unique(np.round(found.devices, 3), axis=0)) == devices, "devices lie apart"
    assert len(found.lanes) == len(found.is_stub) == len(found.bundles) == links
    if links:
        assert set(found.bundles.tolist()) == set(range(len(found.bundle_labels)))
    assert all(0 <= box < len(found.boxes) for box, _ in found.bundle_labels)
    # NPUs lie in a box.
    for x, y in found.devices[: built.npu_count].tolist():
        assert any(
            box.x <= x <= box.x + box.width and box.y <= y <= box.y + box.height
            for box in found.boxes
        )
    ends = found.ways[:, :4].reshape(-1, 2, 2)
    src, dst = found.devices[built.link_src], found.devices[built.link_dst]
    straight = ~found.is_stub
    assert has_stubs or straight.all()
    assert np.allclose(ends[straight, 0], src[straight])
    assert np.allclose(ends[straight, 1], dst[straight])
    # A stub is short, and at one of its ends.
    near = np.minimum(
        np.linalg.norm(ends - src[:, None], axis=2), np.linalg.norm(ends - dst[:, None], axis=2)
    ).min(axis=1)
    assert (near[found.is_stub] < 0.7).all()
    length = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)
    assert (length[found.is_stub] < 0.5).all()


@pytest.mark.parametrize("has_stubs", [True, False])
@pytest.mark.parametrize("text", [*BUILT, *names()])
def test_no_line_leads_through_a_third_device(text: str, has_stubs: bool) -> None:
    if network(text).device_count > 64:
        pytest.skip("too many devices to be told apart at once")
    built, found = placed(text, has_stubs=has_stubs)
    src, dst = built.link_src.astype(int), built.link_dst.astype(int)
    for link in np.flatnonzero(~found.is_stub & (found.ways[:, 4] == 0)):
        start, end = found.devices[src[link]], found.devices[dst[link]]
        along = end - start
        for device in set(range(built.device_count)) - {src[link], dst[link]}:
            at = np.clip((found.devices[device] - start) @ along / (along @ along), 0, 1)
            away = np.linalg.norm(start + at * along - found.devices[device])
            assert away > 0.16, (text, built.device_names[device])


def test_a_torus_is_grids_whose_rings_close_by_stubs() -> None:
    built, found = placed("torus:8x8x8")
    assert len(found.boxes) == 8
    # Two of three dimensions are lines but for the links that close rings: 2 x 64 rings x 2 ways.
    wraps = 2 * 2 * 64
    assert int((~found.is_stub).sum()) == 2 * 2 * 512 - wraps
    steps = np.linalg.norm(found.ways[:, :2] - found.ways[:, 2:4], axis=1)
    assert np.allclose(steps[~found.is_stub], 1.0), "only neighbours are joined by lines"
    labels = {label for _, label in found.bundle_labels}
    assert labels == {f"dim {k} {way}" for k in (1, 2, 3) for way in "+−"}
    del built


def test_every_direction_of_a_ring_is_one_bundle() -> None:
    built, found = placed("torus:4x4")
    for bundle, (_, label) in enumerate(found.bundle_labels):
        own = found.bundles == bundle
        assert own.sum() == 16, label
        src, dst = built.link_src[own].astype(int), built.link_dst[own].astype(int)
        step = (1, 4)[int(label[4]) - 1]
        sign = 1 if label[-1] == "+" else -1
        assert (((dst // step - src // step) * sign) % 4 == 1).all()


def test_tiers_of_a_clos_lie_above_one_another() -> None:
    built, found = placed("clos:4x8x2")
    height = np.round(found.devices[:, 1], 6).tolist()
    rows = {
        kind: {height[i] for i, name in enumerate(built.device_names) if name.startswith(kind)}
        for kind in ("npu", "tor", "spine")
    }
    assert all(len(row) == 1 for row in rows.values())
    assert min(rows["spine"]) < min(rows["tor"]) < min(rows["npu"])


def test_the_same_network_has_the_same_picture() -> None:
    first, second = placed("dragonfly:5x4")[1], placed("dragonfly:5x4")[1]
    assert (first.devices == second.devices).all()
    assert (first.ways == second.ways).all()


@pytest.mark.parametrize("text", ["ring:7", "clos:4x8x2", "dragonfly:5x4", "line:2", *names()[:6]])
@pytest.mark.parametrize("cells", [1, 1 << 24])
def test_hops_are_those_of_networkx(text: str, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "_CELLS", cells)
    built = network(text)
    graph = nx.Graph(zip(built.link_src.tolist(), built.link_dst.tolist(), strict=True))
    graph.add_nodes_from(range(built.device_count))
    sources = list(range(built.npu_count))[::2]
    found = tiers.hops(built, sources)
    for row, source in zip(found.tolist(), sources, strict=True):
        lengths = nx.single_source_shortest_path_length(graph, source)
        assert row == [lengths.get(i, np.inf) for i in range(built.device_count)]


def test_hops_of_what_is_cut_off() -> None:
    cut = hk.topology.load("line:4@1GB/s,1us").without(links=[("npu1", "npu2")])
    assert tiers.hops(cut, [0]).tolist() == [[0, 1, np.inf, np.inf]]
