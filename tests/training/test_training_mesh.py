"""`train` on a mesh of chiplets against the short sum of an iteration, which shares none of its code."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import hocket as hk
from hocket.training import iteration
from hocket.training.systolic import blocks_on_chiplet
from hocket.workload.layers import blocks_of

MESH = hk.topology.mesh(8, 8, bandwidth="25 GB/s", latency="21 ns")
PUBLISHED: dict[str, Any] = {"folds": "overlapped", "data_gradient": True}
CHIPLET = hk.Chiplet(array=(256, 256), **PUBLISHED)
CASES = [
    ("alexnet", "ring"),
    ("alphagozero", "multitree"),
    ("fasterrcnn", "multitree"),
    ("googlenet", "ring"),
    ("ncf", "ring"),
    ("resnet152", "multitree"),
    ("transformer", "multitree"),
]


@cache
def lasts(algorithm: str, given: int) -> int:
    size = max(given, 8 * MESH.npu_count)
    plan = hk.plan("all-reduce", MESH, size=size, algorithm=algorithm, chunks=1)
    return hk.simulate(plan).time_ps


def trained(model: str, algorithm: str, bucket: int | None, chiplet: hk.Chiplet) -> hk.TrainingRun:
    return hk.train(
        model,
        MESH,
        algorithm=algorithm,
        chunks=1,
        npu=chiplet,
        samples=16,
        bucket=bucket,
        update=False,
        precision_bits=32,
    )


@pytest.mark.parametrize(("model", "algorithm"), CASES)
def test_one_all_reduce_after_all(model: str, algorithm: str) -> None:
    workload = hk.workload.load(model)
    short = iteration(workload, CHIPLET, lambda size: lasts(algorithm, size), samples=16)
    run = trained(model, algorithm, None, CHIPLET)
    assert run.total_ps == short.time_ps
    assert run.breakdown.forward == short.forward_ps
    assert run.breakdown.backward == short.backward_ps
    assert run.breakdown.exposed["data"] == short.exposed_ps == short.all_reduce_ps


@pytest.mark.parametrize(("model", "algorithm"), CASES)
def test_an_all_reduce_for_each_layer(model: str, algorithm: str) -> None:
    workload = hk.workload.load(model)
    short = iteration(
        workload, CHIPLET, lambda size: lasts(algorithm, size), samples=16, overlap=True, groups=1
    )
    run = trained(model, algorithm, 1, CHIPLET)
    assert run.total_ps == short.time_ps
    assert run.breakdown.exposed["data"] == short.exposed_ps
    assert run.communication_ps == short.all_reduce_ps


def test_a_clock_of_broken_picoseconds() -> None:
    """Each pass is rounded up, and not only their sum."""
    chiplet = hk.Chiplet(array=(32, 32), clock="0.7 GHz", **PUBLISHED)
    workload = hk.workload.load("alexnet")
    short = iteration(workload, chiplet, lambda size: lasts("ring", size), samples=16)
    run = trained("alexnet", "ring", None, chiplet)
    assert 0 <= run.total_ps - short.time_ps <= 3 * len(workload.layers)


def test_layers_without_weights_of_their_own_have_both_gradients() -> None:
    """Of a product of two activations, each has one; shared weights have one of each use."""
    layer = hk.Layer("scores", input_height=8, channels=64, filters=8, own_parameters=0)
    workload = hk.Workload("w", (hk.Layer("in", channels=8, filters=8), layer))
    block = blocks_of(workload)[1]
    assert block.input_gradient.flops + block.weight_gradient.flops == 2 * block.forward.flops > 0
    cycles = CHIPLET.workload(workload, 4).layers[1]
    found = blocks_on_chiplet(workload, CHIPLET, 4)[1]
    assert found.weight_gradient.time_ps is not None
    assert found.weight_gradient.time_ps * 4 == CHIPLET.time_ps(cycles.weight_gradient) > 0
