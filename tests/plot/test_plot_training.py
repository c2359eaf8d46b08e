"""Pictures of training: what they show is what the run did."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import hocket as hk
from hocket.plot.training import covered, passes_of, rows_of
from hocket.training import TrainingRun

PNG = b"\x89PNG\r\n\x1a\n"


def pipelined(**options: object) -> TrainingRun:
    topology = hk.topology.load("themis-2d")
    return hk.train("resnet152", topology, parallel="dp=256,pp=4", **options)  # type: ignore[arg-type]


def test_the_share_of_bins_that_spans_cover() -> None:
    edges = np.linspace(0.0, 10.0, 6)
    start = np.array([1.0, 1.5, 7.0, 9.0, 3.0])
    end = np.array([3.0, 2.5, 10.0, 9.5, 3.0])
    assert covered(start, end, edges).tolist() == [0.5, 0.5, 0.0, 0.5, 1.0]
    assert covered(start[:0], end[:0], edges).tolist() == [0.0] * 5


def test_rows_add_up_to_the_breakdown() -> None:
    run = pipelined(iterations=2)
    rows = rows_of(run, bins=100)
    wide = run.total_ps / 100
    for stage, part in enumerate(run.stage_breakdowns):
        own = {row.track: row for row in rows if row.stage == stage}
        assert set(own) == {"compute", "data", "pipeline"}
        shares = own["compute"].shares
        times = {name: share.sum() * wide for name, share in shares.items()}
        assert times["forward"] + times["recompute"] == pytest.approx(part.forward)
        assert times["backward"] == pytest.approx(part.backward)
        assert times["update"] == pytest.approx(part.update)
        for cause in ("data", "pipeline"):
            exposed = own[cause].shares[cause]
            assert exposed.sum() * wide == pytest.approx(part.exposed[cause])
            assert (exposed + own[cause].shares["hidden"] <= 1 + 1e-9).all()
    together = rows_of(run, bins=100, together=True)
    assert len(together) == 4
    for row, part in zip(together, run.stage_breakdowns, strict=True):
        filled = sum(row.shares.values(), np.zeros(100))
        assert filled.max() <= 1 + 1e-9
        assert run.total_ps - filled.sum() * wide == pytest.approx(part.waiting, abs=wide * 1e-6)


def layer_by_layer(**options: object) -> TrainingRun:
    """Train with a stage for each of 5 layers."""
    topology = hk.topology.switch(5, bandwidth="100 GB/s", latency="1 us")
    return hk.train("alexnet", topology, parallel="pp=5", **{"samples": 40, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize("made", [pipelined, layer_by_layer])
@pytest.mark.parametrize("recompute", [False, True])
def test_passes_of_micro_batches_are_those_of_1f1b(
    made: Callable[..., TrainingRun], recompute: bool
) -> None:
    run = made(iterations=2, recompute=recompute)
    found = passes_of(run)
    for stage, part in enumerate(run.stage_breakdowns):
        own = [each for each in found if each.stage == stage]
        ahead = len(run.stages) - 1 - stage
        order = [("forward", i) for i in range(ahead)]
        for i in range(run.parallel.parts):
            order += [("forward", i + ahead)] if i + ahead < run.parallel.parts else []
            order.append(("backward", i))
        order.append(("update", 0))
        assert [(each.name, each.number) for each in own] == order * 2
        assert sum(each.busy for each in own) == part.compute
        assert all(each.busy <= each.end - each.start for each in own)


@pytest.mark.parametrize("name", ["a.png", "a.svg", "a.pdf"])
def test_pictures_are_drawn(name: str, tmp_path: Path) -> None:
    run = pipelined(recompute=True)
    run.plot(tmp_path / name)
    assert (tmp_path / name).stat().st_size > 5000
    if name == "a.png":
        assert (tmp_path / name).read_bytes().startswith(PNG)
    if name == "a.svg":
        text = (tmp_path / name).read_text()
        for word in ("stage 4", "recompute", "pipeline", "waiting"):
            assert f"<!-- {word}" in text or f">{word}" in text, word


@pytest.mark.parametrize(
    ("model", "npus", "options"),
    [
        ("ncf", 2, {"parallel": "tp=2"}),
        ("ncf", 2, {"algorithm": "none", "update": False, "npu": hk.Chiplet()}),
        ("resnet152", 32, {"parallel": "pp=32", "samples": 128}),
        ("alexnet", 4, {"iterations": 40}),
    ],
    ids=["nothing to send", "chiplet", "many stages", "many iterations"],
)
def test_odd_runs_are_drawn(
    model: str, npus: int, options: dict[str, object], tmp_path: Path
) -> None:
    topology = hk.topology.switch(npus, bandwidth="100 GB/s", latency="1 us")
    hk.train(model, topology, **options).plot(tmp_path / "a.png")  # type: ignore[arg-type]
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)


def test_a_name_that_no_picture_has(tmp_path: Path) -> None:
    with pytest.raises(hk.SpecError, match=r"\.png"):
        pipelined().plot(tmp_path / "a.jpg")
