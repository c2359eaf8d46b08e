"""Algorithms for meshes from Python and the command line: chunk sizes, corners, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import hocket as hk
from hocket.cli import run


def mesh(columns: int, rows: int) -> hk.Topology:
    return hk.topology.mesh(columns, rows, bandwidth="25 GB/s", latency="21 ns")


def all_but(corner: int, npus: int) -> list[int]:
    return [npu for npu in range(npus) if npu != corner]


def test_published_chunk_size() -> None:
    """98,304 bytes: 11 chunks of 1 MiB, in thirds."""
    given: dict[str, Any] = {"size": "1 MiB", "algorithm": "tto", "npus": all_but(56, 64)}
    plan = hk.plan("all-reduce", mesh(8, 8), chunk_size="96 KiB", **given).verify()
    assert plan.chunks == 3 * 11
    assert hk.plan("all-reduce", mesh(8, 8), chunk_size=98304, **given).chunks == 3 * 11
    assert hk.plan("all-reduce", mesh(8, 8), chunks=11, **given).chunks == 3 * 11


def test_chosen_chunks_are_quicker_than_published_ones_on_small_data() -> None:
    """11 chunks do not fill trees of height 14."""
    given: dict[str, Any] = {"size": "1 MiB", "algorithm": "tto", "npus": all_but(56, 64)}
    chosen = hk.plan("all-reduce", mesh(8, 8), **given).verify()
    published = hk.plan("all-reduce", mesh(8, 8), chunk_size=98304, **given).verify()
    times = [hk.simulate(plan, latency_model="occupying").time for plan in (chosen, published)]
    assert times[0] < 0.7 * times[1]


@pytest.mark.parametrize(("columns", "rows"), [(4, 4), (5, 3), (3, 6)])
def test_any_corner_may_have_no_data(columns: int, rows: int) -> None:
    """2 (H + C - 1) steps of a third of a chunk, 250 kB."""
    npus = columns * rows
    steps = 2 * (columns + rows - 2 + 4 - 1)
    expected = steps * (21e-9 + 250_000 / 25e9)
    for corner in (0, columns - 1, npus - columns, npus - 1):
        for algorithm in ("tto", "tto-overlapped"):
            plan = hk.plan(
                "all-reduce",
                mesh(columns, rows),
                size="3 MB",
                algorithm=algorithm,
                chunks=4,
                npus=all_but(corner, npus),
            ).verify()
            time = hk.simulate(plan, latency_model="occupying").time
            if algorithm == "tto":
                assert time == pytest.approx(expected)
            else:
                assert time <= expected


@pytest.mark.parametrize("npus", [2, 4, 9])
def test_two_trees_on_a_line(npus: int) -> None:
    """2 (H + C - 1) steps of half a chunk, 250 kB, with H = NPUs - 1."""
    line = hk.topology.mesh(npus, bandwidth="25 GB/s", latency="21 ns")
    given: dict[str, Any] = {"size": "2 MB", "algorithm": "two-tree-overlap"}
    plan = hk.plan("all-reduce", line, chunks=4, **given).verify()
    time = hk.simulate(plan, latency_model="occupying").time
    assert time == pytest.approx(2 * (npus - 1 + 4 - 1) * (21e-9 + 250_000 / 25e9))
    chosen = hk.plan("all-reduce", line, **given).verify()
    assert hk.simulate(chosen, latency_model="occupying").time <= time


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"chunk_size": "2 GB"}, "chunk_size: 2000000000 B is more than the data, 1000000 B"),
        ({"chunk_size": 0}, "chunk_size: 0 "),
        ({"chunk_size": "96 KiB", "chunks": 3}, "chunk_size: chunks says the same"),
        ({"chunk_size": "much"}, "chunk_size: 'much'"),
    ],
)
def test_chunk_sizes_that_are_none(given: dict[str, Any], said: str) -> None:
    with pytest.raises(hk.SpecError) as caught:
        hk.plan("all-reduce", mesh(3, 3), size="1 MB", algorithm="ring", **given)
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("topology", "more", "algorithm", "said"),
    [
        ("torus:3x3", (), "ring-bi-odd", "use greedy"),
        ("mesh:1x5", (), "tto", "use two-tree-overlap"),
        ("line:5", (), "tto-overlapped", "use two-tree-overlap"),
        ("mesh:3x3", (), "two-tree-overlap", "as line:8"),
        ("line:4", ("--npus", "0-2"), "two-tree-overlap", "all NPUs of the line"),
        ("mesh:4x4", (), "ring-bi-odd", "use bidirectional-ring"),
        ("mesh:4x4", (), "tto", "0-11,13-15"),
        ("mesh:3x3", ("--failed", "npu4"), "ring-bi-odd", "use greedy"),
        ("mesh:3x3", ("--failed", "npu4,npu5"), "ring-bi-odd", "no link from npu4 to npu5"),
        ("switch:4", (), "multitree", "use greedy"),
        ("ring:4", (), "ring-2d", "use ring or greedy"),
    ],
)
def test_what_they_cannot_do_names_what_can(
    topology: str, more: tuple[str, ...], algorithm: str, said: str, capsys: Any
) -> None:
    links = ("--bandwidth", "25 GB/s", "--latency", "21 ns")
    argv = ["plan", "all-reduce", "-t", topology, *links, "-s", "1MB", *more, "-a", algorithm]
    assert run(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in " ".join(err.split())
    assert len(err.splitlines()) == 1
