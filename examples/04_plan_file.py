"""A plan to a file and back, and what is in it."""

import tempfile
from pathlib import Path

import polars as pl

import hocket as hk

network = hk.topology.torus(4, 4, bandwidth="50 GB/s", latency="500 ns")
plan = hk.plan("all-reduce", network, size="16 MB", algorithm="hierarchical", chunks=4).verify()
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "plan.parquet"
    plan.save(file)
    again = hk.Plan.load(file)
    rows = pl.read_parquet(file)
print(f"{len(plan)} transfers, {len(again)} read back")
print(rows.group_by("op").agg(pl.len(), pl.col("size_bytes").sum()).sort("op"))
print(f"{hk.simulate(again).time * 1e6:.1f} us")
