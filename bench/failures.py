"""What it takes to plan anew after a failure, beside what a plan that is to be mended takes before mending.

``python bench/failures.py`` prints the table.

An old plan has to be read, and proved again once it is mended; all that starting from it could save is the
rest of planning anew.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import hocket as hk

LINKS = {"bandwidth": "100 GB/s", "latency": "500 ns"}
CASES: dict[str, tuple[Callable[[], hk.Topology], tuple[str, str], str, int]] = {
    "mesh 10x10": (lambda: hk.topology.mesh(10, 10, **LINKS), ("npu44", "npu45"), "64 MB", 4),
    "mesh 16x16": (lambda: hk.topology.mesh(16, 16, **LINKS), ("npu100", "npu101"), "64 MB", 1),
    "mesh 32x32": (lambda: hk.topology.mesh(32, 32, **LINKS), ("npu500", "npu501"), "64 MB", 1),
    "torus 8x8x8": (lambda: hk.topology.torus(8, 8, 8, **LINKS), ("npu0", "npu1"), "64 MB", 1),
    "Line_Line 16x16, 100 and 50 GB/s": (
        lambda: hk.topology.product(
            "Line_Line", [16, 16], bandwidth=["100 GB/s", "50 GB/s"], latency=["500 ns"] * 2
        ),
        ("npu100", "npu101"),
        "64 MB",
        1,
    ),
    "dgx1_v100": (lambda: hk.topology.load("dgx1_v100"), ("gpu0", "gpu1"), "64 MB", 16),
}
REPEAT = 5


def median_ms(work: Callable[[], object]) -> float:
    """Run something a few times; give the median time [ms]."""
    times = []
    for _ in range(REPEAT):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def median_seconds(runs: list[hk.Synthesis | None]) -> float:
    """Give the median of what synthesis took, without the simulation that follows it [s]."""
    return statistics.median(run.seconds for run in runs if run is not None)


def main() -> None:
    print(
        "| network, all-gather | transfers | read and prove the old plan ms | plan anew, one trial ms |"
        " all trials ms | above the least, one trial | all trials |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, (build, link, size, chunks) in CASES.items():
        whole = build()
        broken = whole.without(links=[link])

        def plan(
            network: hk.Topology, trials: int | None, size: str = size, chunks: int = chunks
        ) -> hk.Plan:
            return hk.plan(
                "all-gather", network, size=size, algorithm="greedy", chunks=chunks, trials=trials
            )

        healthy = plan(whole, None)
        few, many = plan(broken, 1).verify(), plan(broken, None).verify()
        assert few.synthesis is not None
        assert many.synthesis is not None
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "plan.parquet"
            healthy.save(file)
            reading = median_ms(lambda file=file: hk.Plan.load(file).verify())
        first = median_seconds([plan(broken, 1).synthesis for _ in range(REPEAT)])
        trials = median_seconds([plan(broken, None).synthesis for _ in range(REPEAT)])
        print(
            f"| {name} | {len(many):,} | {reading:.1f} | {first * 1e3:.1f} | {trials * 1e3:.1f} |"
            f" {few.synthesis.gap:.1%} | {many.synthesis.gap:.1%} |"
        )


if __name__ == "__main__":
    main()
