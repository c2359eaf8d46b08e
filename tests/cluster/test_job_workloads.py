"""Jobs on a fabric whose compute and gradients are those of a workload's layers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from hocket.routing import Compute, Job, load_jobs
from hocket.training.alone import gradient_bytes
from hocket.workload.costs import Block, Work

SECOND = 10**12
SMALL = hk.Workload(
    "small",
    tuple(hk.Layer(f"l{i}", input_height=64, channels=128, filters=96 + i) for i in range(9)),
)


@pytest.mark.parametrize("workload", ["resnet152", SMALL])
@pytest.mark.parametrize("sizes", [(4, 1, 1), (1, 1, 1), (2, 2, 1), (3, 1, 4), (1, 2, 2)])
@pytest.mark.parametrize("knobs", [{}, {"npu": "h100", "efficiency": 0.4, "precision": 32}])
def test_compute_of_a_workload_is_that_of_its_training(
    workload: hk.Workload | str, sizes: tuple[int, int, int], knobs: dict[str, Any]
) -> None:
    data, tensor, pipeline = sizes
    given = {"tensor": tensor, "pipeline": pipeline, "data": data}
    job = Job("j", workload=workload, samples=48, **given, **knobs)
    as_trained = {"precision_bits" if k == "precision" else k: v for k, v in knobs.items()}
    copies = max(data, 2) if tensor * pipeline == 1 else data
    run = hk.train(
        workload,
        hk.topology.fully_connected(copies * tensor * pipeline, bandwidth="1 GB/s", latency="1 us"),
        parallel=hk.Parallel(dp=copies, tp=tensor, pp=pipeline),
        algorithm="none",
        samples=48,
        **as_trained,
    )
    assert job.compute_ps == run.total_ps
    per_number = knobs.get("precision", 16) // 8
    sums = [sum(block.parameters for block in stage) * per_number for stage in run.stages]
    assert job.gradient_bytes == max(sums)  # convolutions are not cut by tensor parallelism
    assert (job.gpus_per_replica, job.gpus) == (tensor * pipeline, tensor * pipeline * data)
    assert replace(job, data=2 * data).compute_ps == job.compute_ps
    measured = replace(job, compute="1.5 s")
    assert (measured.compute_ps, measured.gradient_bytes) == (1.5 * SECOND, job.gradient_bytes)


def test_what_tensor_parallelism_cuts_is_summed_in_parts() -> None:
    blocks = [
        Block("a", Work(1000), Work(1000), Work(1000), parameters=1001, split="columns"),
        Block("b", Work(1000), Work(1000), Work(1000), parameters=600, split="rows"),
        Block("c", Work(1000), Work(1000), Work(1000), parameters=7),
    ]
    parallel = hk.Parallel(dp=2, tp=2)
    assert gradient_bytes(blocks, parallel, 16) == 1001 + 600 + 14
    table = replace(blocks[0], split="copied", is_table=True, outputs=1)
    assert gradient_bytes([table, blocks[2]], parallel, 32) == 28
    expert = replace(blocks[1], split="copied", experts=4)
    assert gradient_bytes([expert], hk.Parallel(dp=4, ep=2), 8) == 300


def test_micro_batches_of_a_workload() -> None:
    job = Job("j", workload=SMALL, pipeline=3, samples=48)
    assert replace(job, micro_batches=12) == replace(job, micro_batches=12)
    assert replace(job, micro_batches=12).compute_ps == job.compute_ps
    assert replace(job, micro_batches=1).compute_ps > job.compute_ps


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({"npu": "a101"}, r"npu: there is no 'a101'; did you mean 'a100'"),
        ({"npu": 3}, "npu: 3 is not a name"),
        ({"samples": 0}, "samples: 0 "),
        ({"samples": True}, "samples: true "),
        ({"precision": 0}, "precision: 0 "),
        ({"precision": 5000}, "precision: 5000 "),
        ({"efficiency": -1}, "efficiency: -1 "),
        ({"efficiency": 50}, r"efficiency: 50 .*; did you mean 0\.5\?"),
        ({"efficiency": [1]}, r"efficiency: \[1\] "),
        ({"pipeline": 3, "samples": 7}, "samples: 7 do not divide into 12 micro-batches"),
        ({"pipeline": 10, "samples": 40}, "pp=10 stages need a layer each"),
        ({"micro_batches": 0}, "micro_batches: 0 "),
        ({"compute": Compute(efficiency=0.4)}, "compute: the workload's layers say it"),
        ({"compute": "paper"}, "compute: the workload's layers say it"),
        ({"model": "bloom"}, "model: there is a workload"),
        ({"training_tokens": 5}, "training_tokens: there is a workload"),
        ({"parameters": 5}, "parameters: the workload says them"),
        ({"bytes_per_parameter": 2}, "bytes_per_parameter: of a workload it is precision"),
        ({"workload": "resnet"}, "workload: there is no workload 'resnet'; did you mean"),
        ({"workload": 3}, "workload: 3 is not a name"),
        ({"workload": None, "parameters": 1, "samples": 3}, "samples: is of a workload"),
    ],
)
def test_bad_workloads(keys: dict[str, Any], part: str) -> None:
    with pytest.raises(hk.SpecError, match=rf"^job 'j': .*{part}"):
        Job("j", **{"workload": SMALL, **keys})


def test_workloads_run_on_a_fabric() -> None:
    fabric = hk.routing.cluster("clos:8x4")
    jobs = [Job(name, workload="resnet152", data=16, iterations=2) for name in "ab"]
    run = hk.routing.simulate(fabric, jobs, scheme="edge-coloring")
    for job in run.jobs:
        assert job.iterations[0].start == pytest.approx(jobs[0].compute_ps / SECOND)
        assert job.ideal > 0


def test_workloads_of_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    text = "name: own\nlayers:\n  - {name: a, channels: 64, filters: 32, input: [9, 9]}\n"
    (folder / "own.yml").write_text(text, encoding="utf-8")
    file = tmp_path / "jobs.yml"
    file.write_text(
        "defaults: {model: bloom, npu: h100, compute: paper, bytes_per_parameter: 2, tensor: 2}\n"
        "jobs:\n"
        "  - {name: shipped, workload: resnet152, samples: 8, efficiency: 0.75, precision: 32}\n"
        "  - {name: own, workload: models/own.yml, npu: v100, micro_batches: 2}\n"
        "  - {name: model, data: 2}\n",
        encoding="utf-8",
    )
    shipped, own, by_model = load_jobs(file)
    knobs = {"samples": 8, "efficiency": 0.75, "precision": 32, "npu": "h100", "tensor": 2}
    assert shipped == Job("shipped", workload="resnet152", **knobs)  # type: ignore[arg-type]
    assert isinstance(own.workload, hk.Workload)
    assert (own.workload.name, own.npu, own.micro_batches) == ("own", "v100", 2)
    model = {"compute": "paper", "bytes_per_parameter": 2, "tensor": 2, "data": 2}
    assert by_model == Job("model", model="bloom", **model)  # type: ignore[arg-type]
