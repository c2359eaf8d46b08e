"""``hocket show``: a plan's rings and trees on its network, and how busy links are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

import hocket as hk

PNG = b"\x89PNG\r\n\x1a\n"
MAGIC = {".png": PNG, ".svg": b"<?xml", ".pdf": b"%PDF"}
COLORS = ("#2563b0", "#c8442c", "#2f8f46")  # of the first three structures
PURPLE = "#8448a8"  # of what leads to rings
LINK: dict[str, Any] = {"bandwidth": "25 GB/s", "latency": "21 ns"}


def save(folder: Path, algorithm: str, topology: hk.Topology, **more: Any) -> str:
    given = {"size": "1 MB", "chunks": 2, "kind": "all-reduce"} | more
    hk.plan(given.pop("kind"), topology, algorithm=algorithm, **given).save(folder / "p.parquet")
    return "p.parquet"


@pytest.fixture
def trees(folder: Path) -> str:
    """Three trees on 3x3."""
    return save(folder, "tto", hk.topology.mesh(3, 3, **LINK), npus=[0, 1, 2, 3, 4, 5, 7, 8])


def has(picture: Path, color: str) -> bool:
    """Whether some part of a picture has a colour."""
    pixels = matplotlib.image.imread(picture)[:, :, :3]
    rgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return bool((np.abs(pixels - rgb).max(axis=2) < 0.01).sum() > 100)


@pytest.mark.parametrize("more", [[], ["--heat"]])
@pytest.mark.parametrize("suffix", MAGIC)
def test_draws_a_plan(hocket: Any, folder: Path, trees: str, suffix: str, more: list[str]) -> None:
    result = hocket("show", trees, *more, "-o", f"a{suffix}")
    assert (result.code, result.err) == (0, "")
    assert f"drawn to a{suffix}" in result.out
    said = "100.0% of links used" if more else "3 trees on 23 of 24 links"
    assert said in " ".join(result.out.split())
    first = (folder / f"a{suffix}").read_bytes()
    assert first.startswith(MAGIC[suffix])
    if suffix != ".pdf":
        assert hocket("show", trees, *more, "-o", f"b{suffix}").code == 0
        assert (folder / f"b{suffix}").read_bytes() == first


def test_each_tree_has_its_colour(hocket: Any, folder: Path, trees: str) -> None:
    assert hocket("show", trees, "-o", "p.png").code == 0
    assert all(has(folder / "p.png", color) for color in COLORS)
    assert not has(folder / "p.png", PURPLE)


def test_corners_of_rings_have_a_third_colour(hocket: Any, folder: Path) -> None:
    plan = save(folder, "ring-bi-odd", hk.topology.mesh(5, 5, **LINK))
    result = hocket("show", plan, "-o", "p.png")
    assert "2 rings and what leads to them on 50 of 80 links" in " ".join(result.out.split())
    assert all(has(folder / "p.png", color) for color in (*COLORS[:2], PURPLE))
    assert not has(folder / "p.png", COLORS[2])


def test_json_has_the_structures(hocket: Any, folder: Path, trees: str) -> None:
    value = hocket("show", trees, "--json").json()
    assert (value["phase"], value["chunk"], value["file"]) == ("reduce", None, None)
    assert (value["links"], value["links_in_use"]) == (24, 23)
    rows = value["structures"]
    assert [(row["kind"], row["roots"]) for row in rows] == [
        ("tree", ["npu0"]),
        ("tree", ["npu8"]),
        ("tree", ["npu2"]),
    ]
    assert [row["chunks"] for row in rows] == [[0, 3], [1, 4], [2, 5]]
    for row in rows:
        ends = [[link["src"], link["dst"]] for link in row["links"]]
        assert sorted(ends) == sorted(row["transfers"])
    back = hocket("show", trees, "--json", "--phase", "copy").json()
    assert back["phase"] == "copy"
    assert {tuple(row["roots"]) for row in back["structures"]} == {("npu0",), ("npu8",), ("npu2",)}
    one = hocket("show", trees, "--json", "--chunk", "4").json()["structures"]
    assert [(row["chunks"], row["roots"]) for row in one] == [([4], ["npu8"])]
    assert list(folder.iterdir()) == [folder / trees]


def test_copies_are_drawn_where_nothing_is_summed(hocket: Any, folder: Path) -> None:
    plan = save(folder, "ring", hk.topology.ring(4, **LINK), kind="all-gather")
    value = hocket("show", plan, "--json", "-o", "p.png").json()
    assert (value["phase"], value["file"]) == ("copy", "p.png")
    assert [row["kind"] for row in value["structures"]] == ["ring"]
    assert has(folder / "p.png", COLORS[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("topology", "algorithm", "said"),
    [
        (hk.topology.mesh(3, 3, **LINK), "multitree", "9 trees on 24 of 24 links"),
        (hk.topology.load("dgx1_v100"), "greedy", "trees on 32 of 32 links"),
        (hk.topology.switch(4, **LINK), "ring", "1 ring on 8 of 8 links"),
        (hk.topology.torus(3, 3, **LINK), "ring-2d", "18 trees on 18 of 36 links"),
        (hk.topology.ring(2, **LINK), "ring", "2 trees on 2 of 2 links"),
    ],
)
def test_any_small_network_can_be_drawn(
    hocket: Any, folder: Path, topology: hk.Topology, algorithm: str, said: str
) -> None:
    plan = save(folder, algorithm, topology)
    views = [["--chunk", "0"], ["--phase", "copy"]] if algorithm in ("multitree", "ring") else []
    for more in ([], *views, ["--heat"]):
        result = hocket("show", plan, *more, "-o", "p.png")
        assert (result.code, result.err) == (0, "")
        assert (folder / "p.png").read_bytes().startswith(PNG)
        if not more:
            assert said in " ".join(result.out.split())
            assert has(folder / "p.png", COLORS[0])


def test_json_has_the_heat(hocket: Any, folder: Path) -> None:
    plan = save(folder, "ring", hk.topology.mesh(4, 4, bandwidth="1 GB/s", latency="0 ns"))
    value = hocket("show", plan, "--heat", "--json", "-o", "heat.png").json()
    busy = [link["busy"] for link in value["links"]]
    assert len(busy) == 48
    assert sorted(set(np.round(busy, 6))) == [0.0, 1.0]
    assert value["used_links"] == pytest.approx(16 / 48)
    assert value["used_link_share"] == pytest.approx(16 / 48)
    assert np.mean(value["in_use"]) == pytest.approx(16 / 48, rel=1e-4)
    assert value["bin_ps"] * len(value["in_use"]) == pytest.approx(value["time_ps"])
    assert (value["latency_model"], value["file"]) == ("overlapped", "heat.png")
    assert has(folder / "heat.png", "#000004")  # all of the time


def test_heat_heeds_the_latency_model(hocket: Any, folder: Path) -> None:
    plan = save(folder, "ring", hk.topology.ring(4, bandwidth="1 GB/s", latency="1 ms"))
    shares = [
        hocket("show", plan, "--heat", "--json", "--latency-model", model).json()["used_link_share"]
        for model in ("overlapped", "occupying")
    ]
    assert shares[0] < 0.2
    assert shares[1] == pytest.approx(0.5)


def test_heat_of_packets(hocket: Any, folder: Path) -> None:
    """A link is busy for 21 of its 21 cycles a flit, and idle between messages."""
    plan = save(folder, "ring", hk.topology.mesh(4, 4, **LINK), size="1 MiB", chunks=1)
    packet = ("show", plan, "--heat", "--fidelity", "packet")
    result = hocket(*packet, "-o", "a.png")
    assert (result.code, result.err) == (0, "")
    assert "in 80.909 us; 33.3% of links used" in " ".join(result.out.split())
    assert hocket(*packet, "-o", "b.png").code == 0
    assert (folder / "a.png").read_bytes() == (folder / "b.png").read_bytes()
    value = hocket(*packet, "--json").json()
    assert (value["fidelity"], value["cycle_ps"], value["time_ps"]) == ("packet", 1000, 80_909_000)
    carried = 30 * 128 * 21 / 80_909  # 30 messages of 65,536 B
    assert [link["busy"] for link in value["links"] if link["busy"]] == pytest.approx(
        [carried] * 16
    )
    assert np.mean(value["in_use"]) == pytest.approx(carried / 3, rel=1e-4)
    link = hocket("show", plan, "--heat", "--json").json()
    assert (link["fidelity"], link["cycle_ps"]) == ("link", None)


def test_heat_heeds_the_options_of_packets(hocket: Any, folder: Path) -> None:
    plan = save(folder, "double-binary-tree", hk.topology.mesh(3, 3, **LINK), chunks=1)
    packet = ("show", plan, "--heat", "--fidelity", "packet", "--json")
    base = hocket(*packet).json()
    for more in (
        ("--header-flits", "1"),
        ("--packet-size", "1024 B"),
        ("--clock", "2 GHz"),
        ("--virtual-channels", "1"),
        ("--reduction-rate", "10 GB/s"),
    ):
        assert hocket(*packet, *more).json()["time_ps"] != base["time_ps"], more
    assert hocket(*packet, "--preset", "mcm").json() == base


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], ["--output", "-o plan.png", "--json"]),
        (["--heat"], ["--output", "-o heat.png", "--json"]),
        (["--ten", "--heat", "-o", "p.png"], ["--ten", "--heat", "one at a time"]),
        (["-o", "p.gif"], ["p.gif", ".png, .svg, .pdf"]),
        (["--heat", "-o", "none/p.png"], ["none"]),
        (["--phase", "up", "--json"], ["--phase", "'up'", "reduce or copy"]),
        (["--heat", "--phase", "copy", "--json"], ["--phase", "leave out --heat"]),
        (["--heat", "--chunk", "1", "--json"], ["--chunk", "of --ten", "leave it out, or --heat"]),
        (["--ten", "--chunk", "6", "--json"], ["no 6", "0 to 5"]),
        (["--chunk", "6", "--json"], ["no 6", "0 to 5"]),
        (["--chunk", "-1", "-o", "p.png"], ["no -1", "0 to 5"]),
        (["--latency-model", "occupying", "--json"], ["--latency-model", "leave it out"]),
        (["--heat", "--latency-model", "late", "--json"], ["'late'", "overlapped or occupying"]),
        (["--heat", "--fidelity", "dimension", "--json"], ["dimension", "flow or packet"]),
        (["--fidelity", "packet", "--json"], ["--fidelity", "packet is of --heat", "as well"]),
        (["--ten", "--fidelity", "packet", "--json"], ["--fidelity", "in place of --ten"]),
        (["--heat", "--clock", "1 GHz", "--json"], ["--clock: link fidelity", "use packet"]),
        (["--heat", "--fidelity", "packet", "--flit-size", "no", "--json"], ["--flit-size", "no"]),
        (
            [*["--heat", "--fidelity", "packet", "--json"], "--latency-model", "occupying"],
            ["--latency-model", " packet fidelity "],
        ),
    ],
)
def test_bad_input_is_one_line(
    hocket: Any, folder: Path, trees: str, argv: list[str], words: list[str]
) -> None:
    result = hocket("show", trees, *argv)
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert all(word in result.err for word in words), result.err
    assert list(folder.iterdir()) == [folder / trees]


@pytest.mark.parametrize("more", [[], ["--heat"]])
def test_too_many_devices_are_refused(hocket: Any, folder: Path, more: list[str]) -> None:
    topology = hk.topology.ring(401, **LINK)
    plan = save(folder, "binomial", topology, kind="broadcast", root=0)
    for argv in (["-o", "p.png"], ["--json"]):
        result = hocket("show", plan, *more, *argv)
        assert result.code == 2
        assert result.err.count("\n") == 1
        assert all(word in result.err for word in ("401 devices", "400", "hocket simulate --plot"))
    assert not (folder / "p.png").exists()


def test_a_file_that_is_no_plan(hocket: Any, folder: Path) -> None:
    (folder / "no.parquet").write_text("no plan")
    for more in ([], ["--heat"]):
        result = hocket("show", "no.parquet", *more, "-o", "p.png")
        assert result.code == 2
        assert "no.parquet" in result.err
        assert result.err.count("\n") == 1
    assert not (folder / "p.png").exists()


def test_a_plan_is_not_drawn_over(hocket: Any, folder: Path, trees: str) -> None:
    (folder / trees).rename(folder / "p.png")
    before = (folder / "p.png").read_bytes()
    result = hocket("show", "p.png", "-o", "p.png")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "name another file" in result.err
    assert (folder / "p.png").read_bytes() == before
