"""Files with pipelines, run byte by byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.formats.executor import Executor

import hocket as hk
from hocket.formats.exported import export_plan
from hocket.formats.options import ExportOptions

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast")
CASES = [
    ("ring:5@10GB/s,1us", "ring", 40),
    ("fc:4@10GB/s,1us", "direct", 100),
    ("amd4_sccl", "trees", 64),
    ("mesh:2x3@10GB/s,1us", "trees", 32),
    ("dgx_a100_2box", "symmetric", 4),
]


def _given(kind: str, ranks: int, count: int) -> list[Any]:
    seeded = np.random.default_rng(ranks * count)
    return [seeded.integers(-1000, 1000, count, np.int32) for _ in range(ranks)]


def _wanted(kind: str, given: list[Any], rank: int) -> Any:
    ranks = len(given)
    if kind == "all-gather":
        return np.concatenate(given)
    if kind == "all-to-all":
        return np.concatenate([np.split(each, ranks)[rank] for each in given])
    whole = given[0] if kind == "broadcast" else np.sum(given, axis=0, dtype=np.int32)
    return np.split(whole, ranks)[rank] if kind == "reduce-scatter" else whole


@pytest.mark.parametrize("in_place", [None, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("network", "algorithm", "slices"), CASES)
def test_pipelines_move_every_byte_of_any_message(
    network: str, algorithm: str, slices: int, kind: str, in_place: bool | None, tmp_path: Path
) -> None:
    some = {"size": "1MB", "algorithm": algorithm, "chunks": slices}
    try:
        plan = hk.plan(kind, network, **some)
    except (hk.InfeasibleError, hk.SpecError):
        pytest.skip(f"{algorithm} has no {kind}")
    file = tmp_path / "plan.json"
    options = ExportOptions(in_place=in_place, channels=2)
    try:
        export_plan(plan, str(file), to="mscclpp", options=options)
    except hk.InfeasibleError as error:
        pytest.skip(str(error))
    written = json.loads(file.read_text())
    blocks = [block for gpu in written["gpus"] for block in gpu["threadblocks"]]
    if not any(op["name"] == "pipeline" for block in blocks for op in block["ops"]):
        pytest.skip("it fits without pipelines")
    ranks, gpu = len(written["gpus"]), written["gpus"][0]
    for times in (1, 3, 77, 1000):  # bytes of a chunk: of one round, and of many with a rest
        given = _given(kind, ranks, gpu["input_chunks"] * 4 * times)
        inputs = [each.copy().view(np.uint8) for each in given]
        outputs = [np.zeros(gpu["output_chunks"] * 16 * times, np.uint8) for _ in given]
        if written["inplace"]:
            outputs = _over(kind, inputs, outputs)
        machine = Executor(written, inputs, outputs)
        for seed in range(2):
            for own, start in zip(inputs, given, strict=True):
                own[:] = start.view(np.uint8)
            machine.call(seed)
            for rank, found in enumerate(outputs):
                wanted = _wanted(kind, given, rank)
                np.testing.assert_array_equal(found.view(np.int32), wanted)
        assert not any(machine.counts.values())


def _over(kind: str, inputs: list[Any], outputs: list[Any]) -> list[Any]:
    """Lay the smaller of both buffers of each rank into the larger one."""
    for rank, (own, out) in enumerate(zip(inputs, outputs, strict=True)):
        if own.nbytes == out.nbytes:
            outputs[rank] = own
        elif own.nbytes < out.nbytes:
            inputs[rank] = out[rank * own.nbytes : (rank + 1) * own.nbytes]
        else:
            outputs[rank] = own[rank * out.nbytes : (rank + 1) * out.nbytes]
    return outputs
