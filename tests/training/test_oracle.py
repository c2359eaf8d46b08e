"""Iterations of random models, spread in random ways, against a slow simulation of docs/training.md."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest

import hocket as hk
from hocket.workload.costs import Block, Work

from .slow_iteration import Job, Slowly
from .small_models import Model

CASES = int(os.environ.get("HOCKET_TRAINING_CASES", "150"))
"""How many; a long run sets more."""
PARTS = 3
BANDWIDTH, MEMORY = 10**9, 10**12
SPLITS = ("copied", "columns", "rows", "inside")


def a_layer(random: Random, name: str, ep: int) -> Block:
    """A layer of any kind; experts only where they can be dealt out."""
    experts = ep * random.randint(1, 2) if random.random() < 0.4 else 0
    parameters = random.choice([0, random.randint(1, 9), random.randint(1, 10**6)])
    parameters = experts * max(1, parameters // experts) if experts else parameters
    return Block(
        name,
        *(a_work(random), a_work(random), a_work(random) if parameters else Work()),
        parameters=parameters,
        inputs=random.choice([0, 1, random.randint(1, 10**5)]),
        outputs=random.choice([0, 1, random.randint(1, 10**5)]),
        split=random.choice(SPLITS),  # type: ignore[arg-type]
        experts=experts,
        routed=random.choice([0, 1, random.randint(1, 10**5)]) if experts else 0,
    )


def a_work(random: Random) -> Work:
    return Work(time_ps=random.randint(1, 10 ** random.randint(3, 9)))


def a_table(random: Random, name: str, joins: str | None) -> Block:
    return Block(
        name,
        a_work(random),
        Work(),
        a_work(random),
        parameters=random.randint(1, 10**6),
        outputs=random.randint(1, 10**5),
        is_table=True,
        joins=joins,
    )


def a_case(seed: int) -> tuple[list[Block], dict[str, int], dict[str, Any]]:
    """Layers, sizes of parallelism, and the other options of training."""
    random = Random(seed)
    ep = random.choice([1, 1, 2, 3])
    sizes = {
        "dp": ep * random.choice([1, 1, 2, 3]),
        "tp": random.choice([1, 1, 2, 4]),
        "pp": random.choice([1, 1, 1, 2, 3]),
        "ep": ep,
        "zero": random.choice([0, 1, 2, 3, 3]),
        "micro_batches": random.choice([1, 1, 2, 3, 5]),
    }
    if sizes["dp"] * sizes["tp"] * sizes["pp"] == 1:
        sizes["dp"] = 2
    count = random.randint(sizes["pp"], 6)
    layers = [a_layer(random, f"l{i}", ep) for i in range(count)]
    if sizes["pp"] == 1:
        for t in range(random.choice([0, 0, 1, 2])):
            place = random.randint(0, count - 1)
            after = [layer.name for layer in layers[place:] if not layer.is_table]
            joins = random.choice([None, *after])
            layers.insert(place, a_table(random, f"t{t}", joins))
            count += 1
    options = {
        "samples": sizes["micro_batches"] * random.randint(1, 3),
        "iterations": random.choice([1, 1, 2, 3]),
        "precision_bits": random.choice([16, 16, 8, 3, 32]),
        "bucket": random.choice([None, 1, random.randint(1, 10**6)]),
        "recompute": random.random() < 0.3,
        "overlap_tensor": random.random() < 0.6,
        "update": random.random() < 0.7,
    }
    return layers, sizes, options


def both(seed: int) -> tuple[hk.TrainingRun, Slowly]:
    """Run by hocket, where every collective has all bandwidth of one switch; and slowly."""
    layers, sizes, options = a_case(seed)
    npus = sizes["dp"] * sizes["tp"] * sizes["pp"]
    topology = hk.topology.product("SW", [npus], bandwidth=["1 GB/s"], latency=["0 ns"])
    run = hk.train(
        Model("random", tuple(layers)),  # type: ignore[arg-type]
        topology,
        parallel=hk.Parallel(**sizes),
        algorithm="ideal",
        npu=hk.Accelerator("mine", "1 TFLOP/s", "1 TB/s"),
        memory_check=False,
        **options,
    )
    job = Job(
        run.stages,
        dp=sizes["dp"],
        tp=sizes["tp"],
        ep=sizes["ep"],
        zero=sizes["zero"],
        parts=sizes["micro_batches"],
        samples=options["samples"],
        iterations=options["iterations"],
        bits=options["precision_bits"],
        bucket=options["bucket"],
        recompute=options["recompute"],
        overlap=options["overlap_tensor"],
        bandwidth=BANDWIDTH,
        memory=MEMORY if options["update"] else None,
    )
    return run, Slowly(job)


@pytest.mark.parametrize("part", range(PARTS))
def test_random_iterations(part: int) -> None:
    for seed in range(part, CASES, PARTS):
        run, slowly = both(seed)
        assert run.total_ps == slowly.end, seed
        starts, ends = run.outcome.call_start_ps.tolist(), run.outcome.call_end_ps.tolist()
        calls = [call for stage in slowly.stages for call in stage.calls]
        by_hand = sorted((call.begun, call.ends) for call in calls)
        assert sorted(zip(starts, ends, strict=True)) == by_hand, seed


def test_random_iterations_meet_everything() -> None:
    """What is compared has every kind of call, and calls that wait for each other."""
    causes: dict[str, int] = dict.fromkeys(("data", "tensor", "pipeline", "expert", "table"), 0)
    queued = 0
    for seed in range(60):
        run, slowly = both(seed)
        for cause, time in run.breakdown.exposed.items():
            causes[cause] += time > 0
        for stage in slowly.stages:
            queued += sum(call.ends - call.begun > call.time for call in stage.calls)  # type: ignore[operator]
    assert min(causes.values()) >= 3, causes
    assert queued > 100
