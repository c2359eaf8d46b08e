"""HDRM on a BiGraph: figures, and what is refused."""

from __future__ import annotations

from math import log2
from typing import Any

import pytest

import hocket as hk
from hocket.cli import run

LINK = {"bandwidth": "25 GB/s", "latency": "1 us"}


@pytest.mark.parametrize("sides", [(2, 1), (2, 2), (4, 4), (8, 4)])
@pytest.mark.parametrize(("switching", "hops"), [("store-and-forward", 3), ("cut-through", 1)])
def test_time_of_an_all_reduce(sides: tuple[int, int], switching: Any, hops: int) -> None:
    """2 log2(N) steps over three links; each NPU sends 2 (N - 1) / N of the data."""
    topology = hk.topology.bigraph(*sides, **LINK)
    npus = topology.npu_count
    plan = hk.plan("all-reduce", topology, size="64 MiB", algorithm="hdrm", chunks=1).verify()
    found = hk.simulate(plan, switching=switching)
    body = 2 * (npus - 1) / npus * 2**26 / 25e9
    assert found.time == pytest.approx(2 * log2(npus) * 3e-6 + hops * body)
    across = found.link_bytes[2 * npus :]
    if sides[0] == sides[1]:
        assert across.min() > 0
    plain = hk.plan("all-reduce", topology, size="64 MiB", algorithm="halving-doubling", chunks=1)
    if sides[1] > 1:
        assert hk.simulate(plain, switching=switching).time > found.time


def test_best_of_the_halvings() -> None:
    ranked = hk.compare(
        "all-reduce",
        hk.topology.bigraph(4, 4, **LINK),
        size="64 MiB",
        algorithms=["hdrm", "halving-doubling", "double-binary-tree"],
    )
    assert ranked.best.algorithm == "hdrm"


@pytest.mark.parametrize(
    ("topology", "more", "said"),
    [
        ("switch:8", (), "as bigraph:4x4"),
        ("clos:4x4x4", (), "as bigraph:4x4"),
        ("mesh:4x4", (), "as bigraph:4x4"),
        ("bigraph:3x2", (), "must be powers of two, and they are 3 and 2"),
        ("bigraph:2x4", (), "4 NPUs at a switch would share its 2 links across"),
        ("bigraph:2x2", ("--npus", "0-3"), "all NPUs of the BiGraph must take part"),
        ("bigraph:2x2", ("--failed", "upper0,lower1"), "no link from upper0 to lower1"),
        ("bigraph:2x2", ("--failed", "npu3"), "as bigraph:4x4"),
    ],
)
def test_what_it_cannot_do_names_what_can(
    topology: str, more: tuple[str, ...], said: str, capsys: Any
) -> None:
    links = ("--bandwidth", "25 GB/s", "--latency", "1 us")
    argv = ["plan", "all-reduce", "-t", topology, *links, "-s", "1MB", *more, "-a"]
    assert run([*argv, "hdrm"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in " ".join(err.split())
    assert "use halving-doubling" in " ".join(err.split())
    assert len(err.splitlines()) == 1
    assert run([*argv, "halving-doubling"]) == 0
