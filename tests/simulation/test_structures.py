"""Rings and trees found in plans, and how many links are used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket as hk
from hocket import _core
from hocket.simulation.structures import Structure

LINK: dict[str, Any] = {"bandwidth": "1 GB/s", "latency": "0 ns"}


def run_of(topology: hk.Topology, algorithm: str, kind: str = "all-reduce", **more: Any) -> hk.Run:
    given = {"size": "1 MB", "chunks": 2} | more
    return hk.simulate(hk.plan(kind, topology, algorithm=algorithm, **given), keep_services=True)


def all_but(corner: int, npus: int) -> list[int]:
    return [npu for npu in range(npus) if npu != corner]


def links_between(topology: hk.Topology, each: Structure) -> set[tuple[int, int]]:
    return {(int(topology.link_src[i]), int(topology.link_dst[i])) for i in each.links}


@pytest.mark.parametrize("algorithm", ["tto", "tto-overlapped"])
@pytest.mark.parametrize("phase", ["reduce", "copy"])
@pytest.mark.parametrize("side", [3, 4, 5])
def test_tto_is_three_disjoint_trees(algorithm: str, phase: Any, side: int) -> None:
    """Figure 6 of Laskar et al.: two trees also lead through the corner without data."""
    npus = side * side
    mesh = hk.topology.mesh(side, side, **LINK)
    without = npus - side
    run = run_of(mesh, algorithm, npus=all_but(without, npus))
    found = run.structures(phase)
    assert [each.kind for each in found] == ["tree"] * 3
    assert {each.roots for each in found} == {(0,), (npus - 1,), (side - 1,)}
    assert [len(each.transfers) for each in found] == [npus - 1, npus - 1, npus - 2]
    assert len({link for each in found for link in each.links}) == 3 * npus - 4
    assert sorted(chunk for each in found for chunk in each.chunks) == list(range(6))
    for each in found:
        assert links_between(mesh, each) == set(each.transfers)
        root = each.roots[0]
        out = [src if phase == "reduce" else dst for src, dst in each.transfers]
        assert root not in out
        assert len(set(out)) == len(out)
        touched = {npu for pair in each.transfers for npu in pair}
        assert touched | {without} == set(range(npus))


@pytest.mark.parametrize("side", [3, 5])
@pytest.mark.parametrize("phase", ["reduce", "copy"])
def test_ring_bi_odd_is_two_rings_and_a_corner(side: int, phase: Any) -> None:
    """Figure 2 of Laskar et al."""
    npus = side * side
    run = run_of(hk.topology.mesh(side, side, **LINK), "ring-bi-odd")
    one, other, corner = run.structures(phase)
    assert (one.kind, other.kind, corner.kind) == ("ring", "ring", "branch")
    assert len(one.transfers) == len(one.links) == npus - 1
    assert {(dst, src) for src, dst in one.transfers} == set(other.transfers)
    assert one.roots == other.roots == corner.roots == ()
    assert set(one.chunks) | set(other.chunks) == set(range(run.plan.chunks))
    assert not set(one.chunks) & set(other.chunks)
    end = {pair[phase == "copy"] for pair in corner.transfers}
    assert len(end) == 1
    assert not end & {npu for pair in one.transfers for npu in pair}
    assert len(corner.links) == 2


@pytest.mark.parametrize(("algorithm", "rings"), [("ring", 1), ("bidirectional-ring", 2)])
def test_rings(algorithm: str, rings: int) -> None:
    found = run_of(hk.topology.mesh(4, 4, **LINK), algorithm).structures()
    assert [each.kind for each in found] == ["ring"] * rings
    for each in found:
        follows = dict(each.transfers)
        at, seen = 0, []
        while at not in seen:
            seen.append(at)
            at = follows[at]
        assert sorted(seen) == list(range(16))


def test_a_ring_takes_the_links_of_other_npus() -> None:
    """3x3 has no cycle through all: one step takes two links."""
    (ring,) = run_of(hk.topology.mesh(3, 3, **LINK), "ring").structures()
    assert (ring.kind, len(ring.transfers), len(ring.links)) == ("ring", 9, 10)


@pytest.mark.parametrize("topology", ["mesh", "ring", "square"])
def test_multitree_is_a_tree_from_every_npu(topology: str) -> None:
    made = {
        "mesh": hk.topology.mesh(4, 3, **LINK),
        "ring": hk.topology.ring(5, **LINK),
        "square": hk.topology.mesh(2, 2, **LINK),
    }[topology]
    for phase in ("reduce", "copy"):
        found = run_of(made, "multitree").structures(phase)
        assert [each.kind for each in found] == ["tree"] * made.npu_count
        assert [each.roots for each in found] == [(npu,) for npu in range(made.npu_count)]


def test_a_synthesized_plan_has_trees() -> None:
    machine = hk.topology.load("dgx1_v100")
    run = run_of(machine, "greedy", chunks=1)
    for phase in ("reduce", "copy"):
        found = run.structures(phase)
        assert sorted(chunk for each in found for chunk in each.chunks) == list(range(8))
        for each in found:
            assert each.kind == "tree"
            assert len(each.transfers) == len(each.links) == 7


def test_paths_through_switches_are_links() -> None:
    plan = hk.plan(
        "all-gather", hk.topology.switch(4, **LINK), size="1 MB", algorithm="greedy", unwind="1"
    )
    assert (plan.transfers.path != hk.Plan.DEFAULT_ROUTE).any()
    found = hk.simulate(plan, keep_services=True).structures()
    assert [each.kind for each in found] == ["ring"]
    assert (len(found[0].transfers), len(found[0].links)) == (4, 8)


def test_pairs_are_no_rings() -> None:
    found = run_of(hk.topology.mesh(2, 2, **LINK), "direct", "all-to-all", chunks=1).structures()
    assert [each.kind for each in found] == ["tree"] * 12


def test_one_chunk() -> None:
    run = run_of(hk.topology.mesh(4, 4, **LINK), "ring")
    (only,) = run.structures(chunk=3)
    assert (only.kind, only.chunks, len(only.transfers)) == ("tree", (3,), 15)
    ends = [[each.roots for each in run.structures(phase, chunk=3)] for phase in ("reduce", "copy")]
    assert ends[0] == ends[1]


def reduce_over_a_line(*, in_a_group: bool) -> hk.Plan:
    """NPU 3's data go to NPU 0, through two that have none."""
    line = hk.topology.line(4, **LINK)
    none, group = hk.Plan.NO_WAIT, 1 << 31
    u32 = np.uint32
    core = _core.Plan.from_columns(
        line,
        hk.collective_on("reduce", line, 8, npus=[0, 3], root=0),
        "by hand",
        chunk_offsets=np.array([0, 8], np.uint64),
        chunk_demand=np.zeros(1, u32),
        chunk=np.zeros(3, u32),
        chunk_count=np.ones(3, u32),
        src=np.array([3, 2, 1], u32),
        dst=np.array([2, 1, 0], u32),
        op=np.array([0, 0, 1], np.uint8),
        wait=np.array([none, 0, group + 1 if in_a_group else 1], u32),
        path=np.full(3, hk.Plan.DEFAULT_ROUTE, u32),
        group_offsets=np.array([0, 1, 2] if in_a_group else [0], u32),
        group_items=np.array([1, group] if in_a_group else [], u32),
        path_offsets=np.zeros(1, u32),
        path_items=np.zeros(0, u32),
    )
    return hk.Plan(core)


@pytest.mark.parametrize("in_a_group", [False, True])
def test_what_a_sum_is_passed_on_by_belongs_to_it(in_a_group: bool) -> None:
    run = hk.simulate(reduce_over_a_line(in_a_group=in_a_group), keep_services=True)
    (tree,) = run.structures()
    assert (tree.kind, tree.roots) == ("tree", (0,))
    assert tree.transfers == ((1, 0), (2, 1), (3, 2))
    with pytest.raises(hk.SpecError, match="no transfers that copy; use reduce"):
        run.structures("copy")


def waits_of(plan: hk.Plan, wait: int) -> set[int]:
    """The transfers that a wait names, through groups."""
    if wait == hk.Plan.NO_WAIT:
        return set()
    if wait < _core.Plan.GROUP:
        return {wait}
    offsets, group = plan.core.group_offsets, wait - _core.Plan.GROUP
    items = plan.core.group_items[offsets[group] : offsets[group + 1]].tolist()
    return set().union(*(waits_of(plan, item) for item in items))


def gathering(plan: hk.Plan) -> set[int]:
    """Sums, and copies to the sender of one that waits for them, until there are no more."""
    rows = plan.transfers
    start = rows.chunk.astype(int)
    end, found = start + rows.chunk_count, set(np.flatnonzero(rows.op == 1).tolist())
    while True:
        more = {
            before
            for row in found
            for before in waits_of(plan, int(rows.wait[row])) - found
            if rows.dst[before] == rows.src[row]
            if start[before] < end[row] and start[row] < end[before]
        }
        if not more:
            return found
        found |= more


NETWORKS = {
    "mesh": hk.topology.mesh(3, 3, **LINK),
    "ring": hk.topology.ring(5, **LINK),
    "switch": hk.topology.switch(4, **LINK),
    "full": hk.topology.fully_connected(4, **LINK),
    "torus": hk.topology.torus(4, 2, **LINK),
}


@given(
    name=st.sampled_from(sorted(NETWORKS)),
    kind=st.sampled_from(["all-reduce", "reduce-scatter", "all-gather", "reduce", "broadcast"]),
    algorithm=st.sampled_from(["greedy", "trees", "ring", "ring-bi-odd", "multitree", "tto"]),
    chunks=st.integers(1, 3),
)
@settings(deadline=None, max_examples=25)
def test_structures_are_what_chunks_take(name: str, kind: str, algorithm: str, chunks: int) -> None:
    """Against the transfers of each chunk by itself; rings with all but one of their links."""
    try:
        run = run_of(NETWORKS[name], algorithm, kind, chunks=chunks)
    except hk.Error:
        return
    rows, sums, plan = run.plan.transfers, gathering(run.plan), run.plan
    links: dict[int, set[int]] = {row: set() for row in range(len(plan))}
    for row, link in zip(run.core.service_transfer, run.core.service_link, strict=True):
        links[int(row)].add(int(link))
    for phase, of_phase in (("reduce", sums), ("copy", set(range(len(plan))) - sums)):
        if not of_phase:
            continue
        found = run.structures(phase)  # type: ignore[arg-type]
        branches = [each for each in found if each.kind == "branch"]
        beside = {pair for each in branches for pair in each.transfers}
        for chunk in range(plan.chunks):
            taken = {r for r in of_phase if 0 <= chunk - int(rows.chunk[r]) < rows.chunk_count[r]}
            pairs = {(int(rows.src[row]), int(rows.dst[row])) for row in taken}
            (each,) = (each for each in found if chunk in each.chunks and each not in branches)
            if each.kind == "ring":
                ring = set(each.transfers)
                assert len(ring - pairs) <= 1
                assert pairs <= ring | beside
                assert len({src for src, _ in ring}) == len({dst for _, dst in ring}) == len(ring)
            else:
                assert set(each.transfers) == pairs
                assert set(each.links) == set().union(*(links[row] for row in taken))
                assert (each.kind == "tree") <= (len(each.roots) == 1)
            (alone,) = run.structures(phase, chunk=chunk)  # type: ignore[arg-type]
            assert set(alone.transfers) == pairs


def test_what_cannot_be_asked() -> None:
    run = run_of(hk.topology.ring(4, **LINK), "ring", "all-gather")
    with pytest.raises(hk.SpecError, match="no transfers that reduce; use copy"):
        run.structures("reduce")
    with pytest.raises(hk.SpecError, match="no 'up'; use reduce or copy"):
        run.structures("up")  # type: ignore[arg-type]
    with pytest.raises(hk.SpecError, match="no 8; chunks are 0 to 7"):
        run.structures(chunk=8)
    with pytest.raises(hk.SpecError, match="keep_services=True"):
        hk.simulate(run.plan).structures()


def lockstep(side: int, algorithm: str) -> hk.Run:
    """Chunks of one size, no latency: every message takes as long."""
    npus = side * side
    size = 1000 * npus * (npus - 1)
    mesh = hk.topology.mesh(side, side, **LINK)
    return hk.simulate(hk.plan("all-reduce", mesh, size=size, algorithm=algorithm, chunks=1))


@pytest.mark.parametrize(
    ("side", "algorithm", "expected", "published"),
    [
        (8, "ring", 64 / 224, 29),
        (8, "bidirectional-ring", 128 / 224, 57),
        # 34 and 44 steps were published.
        (8, "multitree", 64 * 63 / (32 * 224), 53 * 34 / 32),
        (9, "multitree", 81 * 80 / (40 * 288), 51 * 44 / 40),
    ],
)
def test_used_links_of_table_1(side: int, algorithm: str, expected: float, published: int) -> None:
    """Of Laskar et al."""
    run = lockstep(side, algorithm)
    assert run.used_link_share == pytest.approx(expected, rel=1e-6)
    assert 100 * run.used_link_share == pytest.approx(published, abs=0.6)


def test_used_links_of_a_ring_without_a_cycle() -> None:
    """On 9x9 one of 81 steps takes two links: 82 of 288, published 28 %.

    Passing on takes a step more, so that 160 steps are 162.
    """
    run = lockstep(9, "ring")
    assert run.used_links == 82 / 288
    assert run.used_link_share == pytest.approx(160 * 82 / (162 * 288), rel=1e-3)
    assert round(100 * run.used_link_share) == round(100 * 81 / 288) == 28


def test_used_links_do_not_depend_on_time() -> None:
    tto = run_of(hk.topology.mesh(9, 9, **LINK), "tto", npus=all_but(72, 81), size="9 MB")
    assert tto.used_links == 1.0
    assert tto.used_link_share == pytest.approx(tto.heat(50).mean(), rel=1e-4)
    assert run_of(hk.topology.mesh(4, 4, **LINK), "ring").used_links == 16 / 48


@pytest.mark.parametrize("chunk", ["0", 1.5, True])
def test_a_chunk_that_is_no_number(chunk: Any) -> None:
    topology = hk.topology.ring(4, bandwidth="25 GB/s", latency="21 ns")
    plan = hk.plan("all-reduce", topology, size="1 MB", algorithm="ring", chunks=1)
    run = hk.simulate(plan, keep_services=True)
    with pytest.raises(hk.SpecError, match=r"chunk: there is no .*; chunks are 0 to "):
        run.structures(chunk=chunk)
