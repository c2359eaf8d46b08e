"""Whole-process figures of training: each case runs in a process of its own.

``python bench/training.py`` prints seconds, passes, calls and the process's peak memory of each case.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from typing import Any

import hocket as hk

NETWORK = "themis-3d-homo"
# Name: model, options of hk.train.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "transformer-1t, 3 iterations, tp=128": (
        "transformer-1t",
        {"parallel": "dp=8,tp=128,zero=2", "samples": 16, "iterations": 3},
    ),
    "transformer-1t, 3 iterations, hierarchical": (
        "transformer-1t",
        {
            "parallel": "dp=8,tp=128,zero=2",
            "samples": 16,
            "iterations": 3,
            "algorithm": "hierarchical",
        },
    ),
    "gpt3-175b, tp=8 pp=8, 32 micro-batches": (
        "gpt3-175b",
        {"parallel": "dp=16,tp=8,pp=8,micro-batches=32", "samples": 32},
    ),
    "llama2-70b, FSDP": ("llama2-70b", {"parallel": "dp=128,tp=8,zero=3", "samples": 1}),
    "resnet152, every layer's gradient apart": (
        "resnet152",
        {"parallel": "dp=1024", "bucket": 1, "iterations": 3, "npu": "h100"},
    ),
}


def measure(name: str) -> dict[str, float]:
    """Run one case in this process."""
    model, options = CASES[name]
    topology = hk.topology.load(NETWORK)
    start = time.perf_counter()
    run = hk.train(model, topology, memory_check=False, **options)
    trained = time.perf_counter()
    assert run.breakdown.total > 0
    return {
        "train_s": trained - start,
        "breakdown_s": time.perf_counter() - trained,
        "nodes": len(run.columns.actor),
        "calls": len(run.columns.shape),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
        return
    for name in CASES:
        start = time.perf_counter()
        command = [sys.executable, __file__, name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        whole = time.perf_counter() - start
        found = json.loads(done.stdout)
        print(
            f"{name}: {found['train_s']:.2f} s, breakdown {found['breakdown_s']:.2f} s, whole process "
            f"{whole:.2f} s, {found['nodes']:,} nodes, {found['calls']:,} calls, "
            f"{found['peak_mib']:.0f} MiB"
        )


if __name__ == "__main__":
    main()
