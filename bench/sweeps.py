"""Times a sweep of small all-reduces, and a report of many rows: ``bench/sweeps.py [POINTS [ROWS]]``.

The share of the cores that the processes of the sweep have is what keeps them busy, on a machine that does
nothing else.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hocket as hk
from hocket.sweeps import run
from hocket.sweeps.batch import schema_of
from hocket.sweeps.yaml import from_text

SWEEP = """
command: simulate
grid:
  topology: ["ring:4@25GB/s,1us", "ring:8@25GB/s,1us", "mesh:3x3@25GB/s,1us", "fc:8@5GB/s,1us",
    "switch:8@50GB/s,1us"]
  algorithm: [ring, direct, bidirectional-ring, double-binary-tree]
  chunks: [1, 2, 4, 8, 16]
  size: 1KB:{sizes}KB:+1KB
  seed: 0:{last}:+1
costs: {{link: {{each: 10, bandwidth: 1 per GB/s}}}}
"""


def sweep(points: int, folder: Path) -> None:
    """Run a sweep and say how fast."""
    made = from_text(SWEEP.format(sizes=max(points // 100, 1), last=0), "bench")
    begin = time.monotonic()
    found = hk.run_sweep(made, folder)
    took = time.monotonic() - begin
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime
    share = cpu / took / run.cores()
    print(f"{made.count:,} points, {found.failed} failed: {took:.1f} s, {made.count / took:.0f}/s")
    print(f"processes took {cpu:.1f} s of CPU: {made.count / cpu:.0f} points a second of a core")
    print(f"whoever started them took {own.ru_utime + own.ru_stime:.1f} s with its imports")
    print(
        f"share of {run.cores()} cores: {100 * share:.1f} %, with a load of {os.getloadavg()[0]:.1f}"
    )


def report(rows: int, folder: Path) -> None:
    """Write rows and say how long a report of them takes."""
    sizes = min(max(rows // 100, 1), 1000)
    made = from_text(SWEEP.format(sizes=sizes, last=max(rows // (100 * sizes) - 1, 0)), "bench")
    run._prepared(made, folder)
    draw = np.random.default_rng(0)
    for part in range(made.parts):
        points = [{"point": number, **made.point(number)} for number in made.numbers(part)]
        times = draw.integers(10**6, 10**9, len(points)).tolist()
        costs = draw.integers(1, 1000, len(points)).tolist()
        for point, took, cost in zip(points, times, costs, strict=True):
            point.update(time_ps=took, cost=float(cost), planned_by="ring")
        table = pa.Table.from_pylist(points, schema=schema_of(made))
        pq.write_table(table, run.part_file(folder, part))
    begin, cpu = time.monotonic(), time.process_time()
    found = hk.report_sweep(folder, by=["topology", "algorithm"])
    took = time.monotonic() - begin
    print(f"report of {found.rows:,} rows: {took:.2f} s, {time.process_time() - cpu:.2f} s of CPU")
    begin, cpu = time.monotonic(), time.process_time()
    found = hk.report_sweep(folder)
    took = time.monotonic() - begin
    groups = f"{len(found.table):,} groups, {len(found.pareto_front):,} on fronts"
    print(f"with {groups}: {took:.2f} s, {time.process_time() - cpu:.2f} s of CPU")


def main(points: int = 10_000, rows: int = 1_000_000) -> None:
    """Time both."""
    with tempfile.TemporaryDirectory() as folder:
        sweep(points, Path(folder) / "sweep")
        report(rows, Path(folder) / "report")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
