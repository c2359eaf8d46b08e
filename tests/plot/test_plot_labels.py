"""Names and numbers of pictures: there, inside the canvas, and none on another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hocket as hk
from hocket.plot.activity import draw_activity
from hocket.plot.compare import draw_comparison
from hocket.plot.compare_training import draw_training_comparison
from hocket.plot.heat import MAX_NAMED, draw_heat
from hocket.plot.labels import place_labels, text_inches
from hocket.plot.link_heat import draw_link_heat
from hocket.plot.network import draw_network
from hocket.plot.shape import draw_structures, ranges
from hocket.plot.style import picture
from hocket.plot.time_expanded import draw_time_expanded
from hocket.plot.timing import time_unit
from hocket.plot.training import draw_training
from hocket.simulation.run import Run
from hocket.training import compare_training

T = hk.topology
ON: dict[str, Any] = {"bandwidth": "25 GB/s", "latency": "1 us"}


def near_parallel() -> hk.Topology:
    """Six nodes with two NICs each below two leaves, whose places nearly coincide."""
    import networkx

    graph = networkx.Graph()
    for node in range(6):
        for npu in range(4):
            graph.add_edge(f"n{node}g{npu}", f"pcie{node}", bandwidth="25 GB/s", latency="1 us")
        for nic in range(2):
            name = f"nic{node}_{nic}"
            graph.add_edge(f"pcie{node}", name, bandwidth="25 GB/s", latency="1 us")
            graph.add_edge(name, f"leaf{nic}", bandwidth="25 GB/s", latency="1 us")
    for name in graph:
        is_switch = name.startswith(("nic", "pcie", "leaf"))
        graph.nodes[name]["kind"] = "switch" if is_switch else "npu"
    return T.from_networkx(graph)


NETWORKS: dict[str, Callable[[], hk.Topology]] = {
    "dgx1": lambda: T.load("dgx1_v100"),
    "two boxes": lambda: T.load("dgx_a100_2box"),
    "NICs": lambda: T.load("azure_ndv4"),
    "coinciding": lambda: T.load("mi300x_8gpu"),
    "mesh": lambda: T.mesh(4, 4, **ON),
    "ring": lambda: T.ring(60, **ON),
    "clos": lambda: T.clos(spines=4, tors=4, hosts_per_tor=4, **ON),
    "near-parallel": near_parallel,
    "two": lambda: T.switch(2, **ON),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_names_of_devices(name: str, drawn: Any, tmp_path: Path) -> None:
    topology = NETWORKS[name]()
    draw_network(topology, tmp_path / "a.png")
    assert set(topology.device_names) <= set(drawn.words.splitlines())
    assert drawn.overlaps() == []
    assert drawn.outside() == []


def run_on(topology: hk.Topology, algorithm: str = "greedy", **more: Any) -> Run:
    if algorithm == "greedy":
        more = {"chunks": 1, **more}
    plan = hk.plan("all-reduce", topology, size="64 MB", algorithm=algorithm, **more)
    return hk.simulate(plan, keep_services=True)


def test_heat_over_time_names_the_busiest_and_counts_the_rest(drawn: Any, tmp_path: Path) -> None:
    run = run_on(T.mesh(5, 5, **ON))
    draw_heat(run, tmp_path / "a.png")
    arrows = [line for line in drawn.words.splitlines() if "→" in line]
    assert len(arrows) == MAX_NAMED
    assert run.busiest_link is not None
    assert "→".join(run.busiest_link[:2]) in arrows
    assert f"the {MAX_NAMED} busiest links" in drawn.words
    assert f"{run.topology.link_count - MAX_NAMED} more" in drawn.words
    unit, size = time_unit(run.time_ps)
    assert f"time [{unit}]" in drawn.words
    assert f"{run.time_ps / size:.4g}" in drawn.words.splitlines()  # the axis ends with the run
    assert drawn.overlaps() == []


def test_heat_over_time_of_few_links_has_no_rest(drawn: Any, tmp_path: Path) -> None:
    draw_heat(run_on(T.ring(4, **ON)), tmp_path / "a.png")
    assert sum("→" in text for text, _ in drawn.texts) == 8
    assert "more" not in drawn.words


@pytest.mark.parametrize("name", ["dgx1", "two boxes", "near-parallel", "mesh"])
def test_heat_of_links_names_devices(name: str, drawn: Any, tmp_path: Path) -> None:
    topology = NETWORKS[name]()
    draw_link_heat(run_on(topology), tmp_path / "a.png")
    # Where all NPUs are npu0, npu1, ... their numbers are names enough.
    shown = {name.removeprefix("npu").removeprefix("gpu") for name in topology.device_names}
    assert shown <= {
        text.removeprefix("npu").removeprefix("gpu") for text in drawn.words.splitlines()
    }
    assert "links used; busiest: " in drawn.words
    assert drawn.overlaps() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("topology", "algorithm", "phase"),
    [
        (T.load("dgx1_v100"), "greedy", "reduce"),
        (T.mesh(5, 5, **ON), "ring-bi-odd", "reduce"),
        (T.torus(3, 3, **ON), "ring-2d", "copy"),
    ],
)
def test_trees_have_their_chunks_and_sizes(
    topology: hk.Topology, algorithm: str, phase: Any, drawn: Any, tmp_path: Path
) -> None:
    run = run_on(topology, algorithm)
    found = run.structures(phase)
    draw_structures(run, found, phase, tmp_path / "a.png")
    lines = [line for line in drawn.words.splitlines() if "chunk" in line]
    assert len(lines) >= min(len(found), 16)
    assert all(": " in line and line.endswith("B") for line in lines)
    if len(found) > 16:
        assert f"the 16 that carry the most, {16 / len(found):.0%} of all bytes" in " ".join(
            drawn.words.split()
        )
    assert drawn.overlaps() == []


def test_equal_trees_are_drawn_once(drawn: Any, tmp_path: Path) -> None:
    run = run_on(T.line(4, **ON), "direct", chunks=48)
    found = run.structures("reduce")
    assert sum(len(each.chunks) for each in found) == run.plan.chunks
    draw_structures(run, found, "reduce", tmp_path / "a.png")
    many = [each for each in found if len(each.chunks) > 1]
    assert many
    for each in many:
        assert f"same for {len(each.chunks)} chunks, {ranges(each.chunks)}: " in drawn.words


def test_chunks_as_ranges() -> None:
    assert ranges([0, 1, 2, 3]) == "0–3"
    assert ranges([0, 2]) == "0, 2"
    assert ranges([0, 1, 3, 5]) == "0–1, 3, …"


def test_transfers_of_one_chunk(drawn: Any, tmp_path: Path) -> None:
    run = run_on(T.mesh(3, 3, **ON))
    every, one = (draw_time_expanded(run, tmp_path / "a.png", chunk) for chunk in (None, 2))
    assert 0 < len(one) < len(every)
    assert (one.chunk <= 2).all()
    assert (one.chunk + one.chunk_count > 2).all()
    assert (one.slots, one.slot_ps) == (every.slots, every.slot_ps)
    assert f"chunk 2 of {run.plan.chunks}" in drawn.words


def test_compared_algorithms(drawn: Any, tmp_path: Path) -> None:
    algorithms = ["ring", "ring-2d", "multitree", "greedy"]
    mesh = T.mesh(4, 4, **ON)
    found = hk.compare("all-reduce", mesh, size="64 MB", algorithms=algorithms)
    draw_comparison(found, tmp_path / "a.png")
    assert "collective time [ms]" in drawn.words
    assert drawn.overlaps() == []
    assert drawn.outside() == []


def test_activity_of_dimensions(drawn: Any, tmp_path: Path) -> None:
    rates, delays = ["100 GB/s", "50 GB/s"], ["1 us", "1 us"]
    topology = T.product("Ring_Switch", [4, 8], bandwidth=rates, latency=delays)
    plan = hk.plan("all-reduce", topology, size="1 GB", algorithm="themis")
    draw_activity(hk.simulate(plan, fidelity="dimension"), tmp_path / "a.png")
    assert drawn.overlaps() == []


def test_compared_trainings_are_grouped(drawn: Any, tmp_path: Path) -> None:
    networks = {"square": T.torus(4, 4, **ON), "star": T.load("dgx1_v100")}
    square = compare_training(
        "alexnet",
        {"square": networks["square"]},
        ["hierarchical", "themis", "none"],
        ["dp=16", "dp=8,pp=2"],
        samples=16,
    )
    draw_training_comparison(square, tmp_path / "a.png")
    lines = drawn.words.splitlines()
    assert {"dp=16", "dp=8,pp=2"} <= set(lines)
    assert sum("hierarchical (baseline)" in line for line in lines) == 2
    assert sum(line == "none" for line in lines) == 2
    assert "training alexnet on square" in lines
    for row in square:
        assert row.algorithm in drawn.words
    assert drawn.overlaps() == []
    assert drawn.outside() == []


@pytest.mark.parametrize("recompute", [False, True])
def test_bubbles_and_recomputation_are_in_the_legend(
    recompute: bool, drawn: Any, tmp_path: Path
) -> None:
    topology = T.load("themis-2d")
    run = hk.train("resnet152", topology, parallel="dp=256,pp=4", recompute=recompute)
    draw_training(run, tmp_path / "a.png")
    assert "compute waits (bubble)" in drawn.words
    assert ("recompute" in drawn.words.splitlines()) == recompute
    assert drawn.outside() == []


def test_what_overlaps_or_is_cut_is_seen(drawn: Any, tmp_path: Path) -> None:
    with picture(tmp_path / "a.png", 4.0, 2.0) as figure:
        figure.text(0.5, 0.5, "one")
        figure.text(0.52, 0.52, "other")
        figure.text(0.98, 0.1, "cut off at the edge")
    assert drawn.overlaps() == [("one", "other")]
    assert drawn.outside() == ["cut off at the edge"]


def test_names_of_close_devices_move_apart() -> None:
    names = [f"device{i}" for i in range(12)]
    points = np.array([(0.13 * (i % 4), 0.13 * (i // 4)) for i in range(12)])
    labels = place_labels(names, points, 0.05, np.zeros((0, 2, 2)), 6.5)
    assert [label.text for label in labels] == names
    boxes = [(label.x, label.y, *text_inches(label.text, 6.5)) for label in labels]
    for i, (x, y, width, height) in enumerate(boxes):
        for other_x, other_y, other_width, other_height in boxes[:i]:
            is_beside = abs(x - other_x) >= (width + other_width) / 2
            assert is_beside or abs(y - other_y) >= (height + other_height) / 2
    (alone,) = place_labels(["a"], points[:1], 0.2, np.zeros((0, 2, 2)), 6.5)
    assert alone.is_inside
