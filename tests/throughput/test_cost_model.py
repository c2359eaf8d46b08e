"""The law of training: closed forms, and how its parts change with how a model is spread."""

from __future__ import annotations

from dataclasses import replace
from math import hypot

import pytest

from hocket.profiles.hardware import Hardware
from hocket.throughput.cost_model import iteration_s, parts_of
from hocket.throughput.job import Job
from hocket.throughput.machine import Machine
from hocket.throughput.stack import STACKS, Stack
from hocket.training import Parallel
from hocket.workload import Transformer
from hocket.workload.accelerators import Accelerator, accelerator

PLAIN = Accelerator("plain", "1 TFLOP/s", "1 TB/s")
"""Without cores: no wave is lost."""
MACHINE = Machine(PLAIN, Hardware(1e11, 2e10, npus=8), inside=1.0, nic=1.0)
MODEL = Transformer(layers=8, hidden=64, heads=8, sequence=32, vocabulary=1000)
STACK = Stack("plain", "nothing hidden", "plain")
VALUES = {
    "efficiency": 1.0,
    "depth": 0.0,
    "attention": 1.0,
    "passes": 0.0,
    "scores": 0.0,
    "launch": 0.0,
    "exposed": 1.0,
}


def job(spread: str = "dp=1", batch: int = 8, **more: object) -> Job:
    return Job(model=MODEL, parallel=Parallel.parse(spread), batch=batch, **more)  # type: ignore[arg-type]


def parts(
    what: Job, stack: Stack = STACK, machine: Machine = MACHINE, **values: float
) -> dict[str, float]:
    return parts_of(what, machine, stack, {**VALUES, **values})


def test_computation_alone_is_operations_over_peak() -> None:
    """24 s h^2 + 4 s^2 h forward in a layer and 2 s h v in the head, three times that with gradients."""
    found = parts(job())
    tokens = 8 * 32
    layers = 3 * 8 * tokens * (24 * 64**2 + 4 * 32 * 64)
    head = 3 * tokens * 2 * 64 * 1000
    assert found["products"] + found["attention"] == pytest.approx(layers * 1e-12)
    assert found["head"] == pytest.approx(head * 1e-12)
    assert job().flops == pytest.approx(layers + head)


def test_what_is_computed_again() -> None:
    none, some, full = (
        sum(parts(job(recompute=how))[name] for name in ("products", "attention"))
        for how in ("none", "selective", "full")
    )
    scores = 8 * 256 * 4 * 32 * 64 * 1e-12
    assert some - none == pytest.approx(scores)
    assert full == pytest.approx(none * 4 / 3)
    assert job(recompute="full").hardware_flops - job().flops == pytest.approx((full - none) * 1e12)


def test_gradients_go_around_the_ring_twice() -> None:
    weights = 8 * 12 * 64**2 + 1000 * 64
    inside = parts(job("dp=8"))["data"]
    assert inside == pytest.approx(2 * weights * 2 * 7 / 8 / 1e11)
    between = parts(job("dp=16", batch=16))["data"]
    assert between == pytest.approx(2 * weights * 2 * 15 / 16 / 2e10)


def test_groups_of_tensor_parallelism_share_the_nics() -> None:
    """Eight groups of two replicas on two nodes: each reduces an eighth, all over the same NICs."""
    weights = 8 * 12 * 64**2 + 1000 * 64
    assert parts(job("dp=2,tp=8"))["data"] == pytest.approx(2 * weights * 2 / 2 / 2e10)


def test_tensor_parallelism_sums_four_times_a_layer() -> None:
    what = job("tp=4")
    size = 32 * 64 * 2
    one = 2 * size * 3 / 4 / 1e11
    assert parts(what)["tensor"] == pytest.approx(8 * 8 * 4 * one)
    assert parts(replace(what, recompute="full"))["tensor"] == pytest.approx(8 * 8 * 6 * one)
    assert parts(what, replace(STACK, hides_tensor=True))["tensor"] == pytest.approx(
        8 * 8 * 2 * one
    )


def test_the_bubble_is_what_stages_wait_at_both_ends() -> None:
    """(pp - 1) / M of the work, and half of it with two groups of layers a stage."""
    machine = replace(MACHINE, hardware=Hardware(1e30, 1e30, npus=8))
    layers = [
        sum(parts(job("pp=4"), machine=machine)[name] for name in ("products", "attention")),
        sum(
            parts(job("pp=4,interleave=2"), machine=machine)[name]
            for name in ("products", "attention")
        ),
    ]
    assert parts(job("pp=4"), machine=machine)["bubble"] == pytest.approx(layers[0] * 3 / 8)
    halved = parts(job("pp=4,interleave=2"), machine=machine)["bubble"]
    assert halved == pytest.approx(layers[1] * 3 / 16)


def test_a_last_stage_of_fewer_layers_has_time_for_the_head() -> None:
    uneven = replace(job("pp=4"), model=replace(MODEL, layers=7))
    assert parts(uneven)["head"] < parts(job("pp=4"))["head"]


def test_weights_of_zero_3_are_gathered_beside_computation() -> None:
    what = job("dp=8,zero=3")
    gather = 12 * 64**2 * 2 * 7 / 8 / 1e11
    forward = 32 * (24 * 64**2 + 4 * 32 * 64) * 1e-12
    hidden = hypot(forward, gather) - forward + hypot(2 * forward, 2 * gather) - 2 * forward
    ends = 3 * 1000 * 64 * 2 * 7 / 8 / 1e11
    assert parts(what)["data"] == pytest.approx(8 * hidden + ends)
    late = parts(what, replace(STACK, hides_gathers=False))["data"]
    assert late == pytest.approx(8 * 3 * gather + ends)


def test_context_parallelism_waits_only_for_what_attention_does_not_hide() -> None:
    quick = replace(MACHINE, hardware=Hardware(1e30, 1e30, npus=8))
    assert parts(job("cp=4"), machine=quick)["context"] == pytest.approx(0)
    assert parts(job("cp=4"))["context"] > 0
    assert parts(job("cp=4"), machine=quick)["products"] == pytest.approx(
        parts(job(), machine=quick)["products"] / 4
    )


def test_sequence_parallelism_cuts_what_tensor_parallelism_leaves_whole() -> None:
    whole = parts(job("tp=8"), passes=10.0)["memory"]
    cut = parts(job("tp=8", sequence_parallel=True), passes=10.0)["memory"]
    alone = parts(job(), passes=10.0)["memory"]
    assert cut == pytest.approx(alone / 8)
    assert whole == pytest.approx(alone * (0.45 + 0.55 / 8))


def test_products_lose_a_wave_of_tiles_and_a_depth() -> None:
    """A product of exactly a wave takes twice its time; one whose inner size is the depth, too."""
    small = parts(job(), depth=64.0)["products"] / parts(job())["products"]
    assert 1 < small < 3
    a100 = replace(MACHINE, accelerator=accelerator("a100"))
    assert a100.cores == 108
    ratio = parts(job(), machine=a100)["products"] * 312 / parts(job())["products"]
    assert ratio > 10


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize(
    "spread", ["dp=8", "tp=8", "pp=4,dp=2", "dp=2,tp=2,pp=2,cp=2", "dp=8,zero=3"]
)
def test_more_of_anything_takes_longer(name: str, spread: str) -> None:
    """No part is negative; a slower chip, slower links or more work never make an iteration shorter."""
    values = {
        **VALUES,
        "depth": 100.0,
        "passes": 20.0,
        "scores": 5.0,
        "launch": 1e-6,
        "exposed": 0.5,
    }
    what, stack = job(spread, batch=16), STACKS[name]
    found = parts_of(what, MACHINE, stack, values)
    assert min(found.values()) >= 0
    whole = iteration_s(what, MACHINE, stack, values)
    assert whole == pytest.approx(sum(found.values()))
    slower = replace(MACHINE, accelerator=Accelerator("slow", "500 GFLOP/s", "1 TB/s"))
    narrow = replace(MACHINE, hardware=Hardware(5e10, 1e10, npus=8))
    for worse in (slower, narrow):
        assert iteration_s(what, worse, stack, values) >= whole
    assert iteration_s(replace(what, batch=32), MACHINE, stack, values) > whole
    assert iteration_s(replace(what, recompute="full"), MACHINE, stack, values) > whole
