"""``hocket show --ten``: a plan as arrows in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hocket as hk
from hocket.plot.time_expanded import _hops, expand

PNG = b"\x89PNG\r\n\x1a\n"
MAGIC = {".png": PNG, ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.fixture
def mesh_plan(folder: Path) -> str:
    """An all-gather along a ring on a 3x3 mesh, which has no ring of single links."""
    topo = hk.topology.mesh(3, 3, bandwidth="100 GB/s", latency="500 ns")
    hk.plan("all-gather", topo, size="9 MB", algorithm="ring", chunks=1).save(
        folder / "plan.parquet"
    )
    return "plan.parquet"


@pytest.mark.parametrize("suffix", MAGIC)
def test_draws_a_plan(hocket: Any, folder: Path, mesh_plan: str, suffix: str) -> None:
    result = hocket("show", mesh_plan, "--ten", "-o", f"ten{suffix}")
    assert (result.code, result.err) == (0, "")
    assert "72 transfers of 9 chunks in 94.5 us, 9 slots of 10.5 us" in result.out
    assert f"drawn to ten{suffix}" in result.out
    assert (folder / f"ten{suffix}").read_bytes().startswith(MAGIC[suffix])


def test_two_pictures_are_alike(hocket: Any, folder: Path, mesh_plan: str) -> None:
    for name in ("a.png", "b.png"):
        assert hocket("show", mesh_plan, "--ten", "-o", name).code == 0
    assert (folder / "a.png").read_bytes() == (folder / "b.png").read_bytes()


def test_json_has_the_arrows(hocket: Any, folder: Path, mesh_plan: str) -> None:
    result = hocket("show", mesh_plan, "--ten", "--json")
    assert (result.code, result.err) == (0, "")
    value = result.json()
    assert (value["slot_ps"], value["slots"], value["time_ps"]) == (10_500_000, 9, 94_500_000)
    assert value["file"] is None
    arrows = value["arrows"]
    assert sorted(arrow["transfer"] for arrow in arrows) == list(range(72))
    starts = [arrow["start_ps"] for arrow in arrows]
    assert starts == sorted(starts)
    assert max(arrow["end_ps"] for arrow in arrows) == value["time_ps"]
    plan = hk.Plan.load(folder / mesh_plan).transfers
    for arrow in arrows:
        i = arrow["transfer"]
        assert (arrow["src"], arrow["dst"]) == (plan.src[i], plan.dst[i])
        assert (arrow["chunk"], arrow["chunks"]) == (plan.chunk[i], plan.chunk_count[i])
    assert list(folder.iterdir()) == [folder / mesh_plan]


def test_json_beside_a_picture(hocket: Any, folder: Path, mesh_plan: str) -> None:
    value = hocket("show", mesh_plan, "--ten", "--json", "-o", "ten.png").json()
    assert value["file"] == "ten.png"
    assert (folder / "ten.png").read_bytes().startswith(PNG)


def test_links_that_wait_have_no_slots(hocket: Any, folder: Path) -> None:
    """Latency that overlaps lets messages follow each other by less than they take."""
    topo = hk.topology.ring(4, bandwidth="1 GB/s", latency="7 us")
    hk.plan("all-reduce", topo, size="1 MB", algorithm="direct", chunks=1).save(
        folder / "p.parquet"
    )
    value = hocket("show", "p.parquet", "--ten", "--json", "-o", "p.png").json()
    assert value["slots"] is None
    assert value["slot_ps"] is None
    occupying = ("--latency-model", "occupying")
    value = hocket("show", "p.parquet", "--ten", "--json", *occupying, "-o", "p.png").json()
    assert (value["slots"], value["slot_ps"]) == (6, 257_000_000)


def test_links_of_several_speeds_take_several_slots() -> None:
    topo = hk.topology.product(
        "Ring_Ring", [3, 3], bandwidth=["4 GB/s", "1 GB/s"], latency=["0 ns", "0 ns"]
    )
    arrows = expand(
        hk.simulate(hk.plan("all-gather", topo, size="9 MB", algorithm="direct", chunks=1))
    )
    assert arrows.slot_ps == 250_000_000
    lengths = (arrows.end_ps - arrows.start_ps) / arrows.slot_ps
    slots = set(np.round(lengths).astype(int))
    # Over one link; over a fast and a slow one, which others take first.
    assert slots >= {1, 4}
    assert max(slots) == 4 + 4 + 4


def test_sizes_that_do_not_divide_keep_to_slots() -> None:
    topo = hk.topology.ring(7, bandwidth="1 GB/s", latency="0 ns")
    arrows = expand(
        hk.simulate(hk.plan("all-reduce", topo, size=1_000_003, algorithm="ring", chunks=1))
    )
    assert arrows.slots == 12


@pytest.mark.parametrize("latency", ["overlapped", "occupying"])
def test_transfers_over_several_links_are_followed(latency: Any) -> None:
    topo = hk.topology.ring(6, bandwidth="1 GB/s", latency="1 us")
    run = hk.simulate(
        hk.plan("scatter", topo, size="6 MB", algorithm="direct", chunks=1),
        latency_model=latency,
        keep_services=True,
    )
    hops = _hops(run)
    assert len(hops.transfer) == 1 + 2 + 3 + 2 + 1
    assert set(hops.end_ps - hops.start_ps) == {1_001_000_000}
    farthest = hops.transfer == 2  # to the other side
    assert (hops.src[farthest].tolist(), hops.dst[farthest].tolist()) in (
        ([0, 1, 2], [1, 2, 3]),
        ([0, 5, 4], [5, 4, 3]),
    )
    for transfer in range(len(run.plan)):
        assert hops.end_ps[hops.transfer == transfer].max() == run.end_ps[transfer]


def test_a_switch_is_part_of_a_hop() -> None:
    topo = hk.topology.product(
        "Ring_SW", [2, 4], bandwidth=["3 GB/s", "1 GB/s"], latency=["0 ns", "0 ns"]
    )
    run = hk.simulate(
        hk.plan("all-gather", topo, size="8 MB", algorithm="direct", chunks=1), keep_services=True
    )
    hops = _hops(run)
    assert hops.src.max() < 8
    assert hops.dst.max() < 8
    assert (hops.end_ps > hops.start_ps).all()
    ends = [hops.end_ps[hops.transfer == i].max() for i in range(len(run.plan))]
    assert ends == run.end_ps.tolist()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("all-to-all", {"size": "4 MB", "algorithm": "direct"}),
        ("all-reduce", {"size": "4 MB", "algorithm": "ring", "chunks": 6}),
        ("all-gather", {"size": "4 MB", "algorithm": "ring", "npus": [0, 3]}),
    ],
)
def test_any_small_plan_can_be_drawn(
    hocket: Any, folder: Path, kind: str, options: dict[str, Any]
) -> None:
    topo = hk.topology.product(
        "Ring_SW", [2, 2], bandwidth=["3 GB/s", "1 GB/s"], latency=["1 us", "2 us"]
    )
    hk.plan(kind, topo, **options).save(folder / "p.parquet")
    result = hocket("show", "p.parquet", "--ten", "-o", "p.png")
    assert (result.code, result.err) == (0, "")
    assert (folder / "p.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--ten"], ["--output", "-o ten.png", "--json"]),
        (["--ten", "-o", "ten.gif"], ["ten.gif", ".png, .svg, .pdf"]),
        (["--ten", "-o", "none/ten.png"], ["none"]),
        (["--ten", "--json", "--latency-model", "late"], ["'late'", "overlapped or occupying"]),
    ],
)
def test_bad_input_is_one_line(
    hocket: Any, folder: Path, mesh_plan: str, argv: list[str], words: list[str]
) -> None:
    result = hocket("show", mesh_plan, *argv)
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert all(word in result.err for word in words), result.err
    assert list(folder.iterdir()) == [folder / mesh_plan]


@pytest.mark.parametrize(
    ("npus", "algorithm", "words"),
    [
        (65, "ring", ["65 NPUs", "4,160 transfers", "64 NPUs", "hocket simulate --plot"]),
        (40, "direct", ["40 NPUs", "3,120 transfers", "2,000", "hocket simulate --plot"]),
    ],
)
def test_too_much_is_refused(
    hocket: Any, folder: Path, npus: int, algorithm: str, words: list[str]
) -> None:
    topo = hk.topology.ring(npus, bandwidth="1 GB/s", latency="0 ns")
    kind = "all-gather" if algorithm == "ring" else "all-reduce"
    hk.plan(kind, topo, size="1 MB", algorithm=algorithm, chunks=1).save(folder / "p.parquet")
    for argv in (["-o", "p.png"], ["--json"]):
        result = hocket("show", "p.parquet", "--ten", *argv)
        assert result.code == 2
        assert result.err.count("\n") == 1
        assert all(word in result.err for word in words), result.err
    assert not (folder / "p.png").exists()


def test_no_such_plan(hocket: Any) -> None:
    result = hocket("show", "nowhere.parquet", "--ten", "--json")
    assert result.code == 2
    assert "nowhere.parquet" in result.err
