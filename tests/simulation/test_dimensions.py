"""What a run says about the dimensions of a product topology."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hocket as hk
from hocket.cli import run as command

SIZES = [4, 3, 2]
RATES = [10e9, 40e9, 5e9]  # of a link; a ring has two of them, the full mesh two, a switch one
WAYS = [2, 2, 1]
BLOCK = 60_000


def product() -> hk.Topology:
    return hk.topology.product(
        "Ring_FC_SW",
        SIZES,
        bandwidth=["10 GB/s", "40 GB/s", "5 GB/s"],
        latency=["20 ns", "500 ns", "700 ns"],
    )


def hierarchical(kind: str = "all-reduce", chunks: int = 4) -> hk.Run:
    plan = hk.plan(kind, product(), size=24 * BLOCK, algorithm="hierarchical", chunks=chunks)
    return hk.simulate(plan)


@pytest.mark.parametrize(("kind", "passes"), [("all-reduce", 2), ("all-gather", 1)])
def test_bytes_of_each_stage(kind: str, passes: int) -> None:
    """(P - 1) / P of what the stages before have left, and a utilization that follows from it."""
    run = hierarchical(kind)
    left = 24 * BLOCK
    assert [use.kind for use in run.dimensions] == ["Ring", "FullyConnected", "Switch"]
    for use, size, rate, ways in zip(run.dimensions, SIZES, RATES, WAYS, strict=True):
        assert (use.size, use.bandwidth) == (size, ways * rate)
        assert use.bytes == passes * 24 * (size - 1) * left // size
        assert use.utilization == pytest.approx(use.bytes / (use.bandwidth * 24 * run.time))
        left //= size
    total = sum(use.bandwidth for use in run.dimensions)
    must = passes * 23 * BLOCK
    assert run.ideal == pytest.approx(must / total, rel=1e-12)
    assert run.weighted_utilization == pytest.approx(must / total / run.time, rel=1e-12)


def test_all_links_but_for_latency() -> None:
    topology = hk.topology.fully_connected(5, bandwidth="1 GB/s", latency="1 us")
    run = hk.simulate(hk.plan("all-reduce", topology, size=50_000, algorithm="direct", chunks=1))
    assert run.ideal == pytest.approx(20e-6, rel=1e-12)
    assert run.weighted_utilization == pytest.approx(20 / 22, rel=1e-12)
    assert (run.activity(7) == 1).all()


def test_an_ideal_is_of_three_collectives_only() -> None:
    topology = hk.topology.ring(4, bandwidth="1 GB/s", latency="1 us")
    run = hk.simulate(hk.plan("broadcast", topology, size=1000, algorithm="chain"))
    assert run.ideal is None
    assert 0 < run.weighted_utilization < 1


def spans(run: hk.Run) -> list[list[tuple[int, int]]]:
    """Start and end of the transfers of each dimension, by their ends' coordinates."""
    found: list[list[tuple[int, int]]] = [[], [], []]
    columns = run.plan.transfers
    for i, (src, dst) in enumerate(zip(columns.src.tolist(), columns.dst.tolist(), strict=True)):
        stride = 1
        for row, size in enumerate(SIZES):
            if src // stride % size != dst // stride % size:
                found[row].append((int(run.start_ps[i]), int(run.end_ps[i])))
            stride *= size
    return found


def shares(spans: list[tuple[int, int]], edges: list[float]) -> list[float]:
    points = np.unique([*edges, *(point for span in spans for point in span)])
    middles = (points[1:] + points[:-1]) / 2
    active = np.zeros(len(middles), bool)
    for start, end in spans:
        active |= (start < middles) & (middles < end)
    weights = np.diff(points) * active
    total, _ = np.histogram(middles, edges, weights=weights)
    return list(total / np.diff(edges))


def test_activity_is_the_union_of_the_transfers() -> None:
    run = hierarchical()
    found = run.activity(37)
    assert found.shape == (3, 37)
    assert found.dtype == np.float32
    edges = [run.time_ps * i / 37 for i in range(38)]
    expected = [shares(each, edges) for each in spans(run)]
    assert np.allclose(found, expected, atol=1e-5)
    assert 0.05 < found.mean() < 0.95
    assert run.activity().shape == (3, 100)

    period = 7_000_000
    edges = [min(i * period, run.time_ps) for i in range(-(-run.time_ps // period) + 1)]
    found = run.activity(period="7 us")
    assert found.shape == (3, len(edges) - 1)
    assert np.allclose(found, [shares(each, edges) for each in spans(run)], atol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: run.activity(0), "bins"),
        (lambda run: run.activity(10**12), "bins"),
        (lambda run: run.activity(1.5), "bins"),
        (lambda run: run.activity(period="0 s"), "period"),
        (lambda run: run.activity(period="0.1"), "period"),
        (lambda run: run.activity(period="5 GB"), "period"),
    ],
)
def test_bad_bins(call: Callable[[Any], object], message: str) -> None:
    with pytest.raises(hk.SpecError, match=message):
        call(hierarchical())


@pytest.mark.parametrize(
    "call",
    [
        lambda run: run.dimensions,
        lambda run: run.weighted_utilization,
        lambda run: run.ideal,
        lambda run: run.activity(),
    ],
)
def test_no_product_no_dimensions(call: Callable[[Any], object]) -> None:
    topology = hk.topology.load("dgx1_v100")
    run = hk.simulate(hk.plan("all-reduce", topology, size="1 MB", algorithm="ring", chunks=1))
    with pytest.raises(hk.SpecError, match="not a whole product of dimensions"):
        call(run)


def test_the_command_shows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = hierarchical()
    run.plan.save("plan.parquet")
    assert command(["simulate", "plan.parquet"]) == 0
    shown = capsys.readouterr().out
    for use in run.dimensions:
        assert f"{use.kind} of {use.size}" in shown
        assert f": {use.utilization:.1%}" in shown
    assert f"{run.weighted_utilization:.1%}" in shown
    assert "ideal" in shown
    assert command(["simulate", "plan.parquet", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["weighted_utilization"] == run.weighted_utilization
    assert values["ideal_ps"] == round((run.ideal or 0) * 1e12)
    assert [each["bytes"] for each in values["dimensions"]] == [u.bytes for u in run.dimensions]

    ring = hk.topology.ring(3, bandwidth="1 GB/s", latency="1 us", both_ways=False)
    hk.plan("all-reduce", ring, size="1 MB", algorithm="ring", chunks=1).save("plan.parquet")
    assert command(["simulate", "plan.parquet"]) == 0
    assert "dimension" not in capsys.readouterr().out
    assert command(["simulate", "plan.parquet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dimensions"] is None
