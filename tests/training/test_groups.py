"""Groups of layers, such as those of a transformer: what they keep, and that they stay together."""

from __future__ import annotations

from fractions import Fraction

import pytest

import hocket as hk
from hocket.training.stages import partition, units
from hocket.workload.costs import Block, Work
from hocket.workload.layers import blocks_of

from .small_models import Model, network, tags, trained

LAYERS, WIDTH, LENGTH = 6, 64, 128
NUMBERS = WIDTH * LENGTH


def model(**more: object) -> hk.workload.Workload:
    sizes = {"layers": LAYERS, "hidden": WIDTH, "heads": 8, "sequence": LENGTH}
    return hk.workload.transformer("mine", **sizes, final_norm=False, **more)  # type: ignore[arg-type]


def layer(name: str, time: int = 1, numbers: int = 1000) -> Block:
    work = Work(time_ps=time * 10**6)
    return Block(name, work, work, work, parameters=1000, inputs=numbers, outputs=numbers)


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_tensor_parallelism_divides_what_is_cut(tp: int) -> None:
    run = trained(model(), network(8), f"dp={8 // tp},tp={tp}", samples=3)  # type: ignore[arg-type]
    # Korthikanti et al., MLSys 2023, section 4.2.1, without dropout's masks of 2 bytes.
    each = 8 + Fraction(24, tp)
    assert run.memory.activations == 3 * LAYERS * NUMBERS * each


@pytest.mark.parametrize("tp", [1, 4])
@pytest.mark.parametrize("pp", [1, 2])
def test_recomputation_keeps_what_comes_into_a_group(tp: int, pp: int) -> None:
    spread = f"dp={8 // tp // pp},tp={tp},pp={pp},micro-batches=2"
    run = trained(model(), network(8), spread, samples=2, recompute=True)  # type: ignore[arg-type]
    # Their section 5: 2 bytes a number and layer; and one layer that is being computed again.
    kept = 2 * (LAYERS // pp) * min(pp, 2) + 8 + Fraction(24, tp)
    assert run.memory.activations == NUMBERS * kept
    assert (
        run.memory.activations
        < trained(
            model(),
            network(8),
            spread,
            samples=2,  # type: ignore[arg-type]
        ).memory.activations
    )


def test_groups_share_their_names_but_for_the_last_part() -> None:
    names = ["stem", "a.1/x", "a.1/y", "a.2/x", "b/a.2/x", "b/c", "head", "tail"]
    found = [[block.name for block in unit] for unit in units([layer(name) for name in names])]
    assert found == [
        ["stem"],
        ["a.1/x", "a.1/y"],
        ["a.2/x"],
        ["b/a.2/x"],
        ["b/c"],
        ["head"],
        ["tail"],
    ]
    assert len(units(list(blocks_of(model())))) == LAYERS


def test_groups_are_recomputed_whole_and_first() -> None:
    layers = Model("mine", tuple(layer(name) for name in ("a/x", "a/y", "b")))
    run = trained(layers, network(2), "dp=2", samples=1, recompute=True, algorithm="none")
    passes = [(tag.does, tag.layer) for tag in tags(run) if tag.cause is None]
    again = [("recompute", 0), ("recompute", 1)]
    gradients = ("input gradient", "weight gradient")
    assert passes[3:] == [
        ("recompute", 2),
        *((does, 2) for does in gradients),
        *again,
        *((does, 1) for does in gradients),
        *((does, 0) for does in gradients),
        ("update", -1),
    ]


def test_stages_keep_groups_whole_as_long_as_they_can() -> None:
    blocks = [layer(name) for name in ("a/x", "a/y", "a/z", "b/x", "c")]
    times = [1, 1, 1, 1, 1]
    assert [len(stage) for stage in partition(blocks, 2, times)] == [3, 2]
    assert [len(stage) for stage in partition(blocks, 3, times)] == [3, 1, 1]
    # Four stages of three groups: layers are all there is to cut between.
    assert sorted(len(stage) for stage in partition(blocks, 4, times)) == [1, 1, 1, 2]


def test_an_npu_does_the_operations_of_its_share() -> None:
    work = Work(flops=3 * 10**9)
    block = Block("a", work, work, work, parameters=1000, inputs=10, outputs=10)
    options = {"samples": 4, "algorithm": "none", "update": False, "efficiency": 0.5}
    run = trained(Model("mine", (block,)), network(8), "dp=8", **options)
    # Nothing but compute: the share of the peak that was asked for.
    assert run.utilization == pytest.approx(0.5)
    assert run.operations_per_second == pytest.approx(156e12)
    again = trained(Model("mine", (block,)), network(8), "dp=8", recompute=True, **options)
    assert again.utilization == pytest.approx(0.5 * 3 / 4)
    # Each of four computes it whole, and the model has it once.
    copied = trained(Model("mine", (block,)), network(8), "dp=2,tp=4", **options)
    assert copied.utilization == pytest.approx(0.5 / 4)
    measured = trained(Model("mine", (layer("a"),)), network(8), "dp=8", samples=4)
    assert measured.utilization is None
    assert measured.operations_per_second is None


@pytest.mark.parametrize("algorithm", ["greedy", "ring"])
def test_plans_have_the_fastest_number_of_chunks(algorithm: str) -> None:
    topology = hk.topology.ring(4, bandwidth="1 GB/s", latency="10 ns")
    one = Model("mine", (layer("a"),))
    options = {"samples": 1, "update": False, "algorithm": algorithm, "bucket": None}
    run = trained(one, topology, "dp=4", precision_bits=1000, **options)
    found = hk.compare("all-reduce", topology, size="125 kB", algorithms=[algorithm])
    assert found.best.chunks > 1
    assert run.shapes[0].lone_ps == found.best.run.time_ps
    whole = trained(one, topology, "dp=4", precision_bits=1000, chunks=1, **options)
    assert run.shapes[0].lone_ps < whole.shapes[0].lone_ps
