"""Golden files: where algorithms run, on networks of every kind, and what their runs are on some.

``applies.csv`` has a row for each algorithm and a column for each network: its letters are the collectives
that run. ``results.csv`` has a row for each run. ``make accept`` writes both anew.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

import hocket as hk

HERE = Path(__file__).parent
HEAD = (
    "network",
    "collective",
    "size",
    "algorithm",
    "slices",
    "chunks",
    "transfers",
    "time_ps",
    "bound_ps",
)
Row = tuple[str, ...]

FAILED = "dgx1_v100 without gpu0,gpu1"
OF_EIGHT = "mesh:3x3 of 0-7"
SUMS = "switch:6 that sums"
NETWORKS = (
    "line:4",
    "ring:8",
    "fc:5",
    "switch:6",
    "mesh:3x3",
    "torus:3x4",
    "hypercube:3",
    "Ring_FC_SW:2x3x2",
    "dragonfly:3x2",
    "bigraph:2x2",
    "clos:2x3x2",
    "box:4x2",
    "dgx1_v100",
    FAILED,
    OF_EIGHT,
    SUMS,
)
TIMED = (
    "line:4",
    "mesh:3x3",
    "Ring_FC_SW:2x3x2",
    "bigraph:2x2",
    "box:4x2",
    "dgx1_v100",
    OF_EIGHT,
    SUMS,
)
"""Networks whose runs are kept: enough for every algorithm to run on one."""
KINDS = {
    "R": "all-reduce",
    "s": "reduce-scatter",
    "g": "all-gather",
    "t": "all-to-all",
    "b": "broadcast",
    "r": "reduce",
    "S": "scatter",
    "G": "gather",
}
LEFT_OUT = {"multirail-optimal", "exact", "blind", "auto"}
"""They search for a second or more each time, or until one has passed; they have tests of their own."""


FEW = hk.PlanOptions(trials=4)
"""Enough to see that a search finds what it found."""


def network_of(name: str) -> hk.Topology:
    """Give a network of the table."""
    if name == FAILED:
        return hk.topology.load("dgx1_v100").without(links=[("gpu0", "gpu1")])
    if ":" not in name:
        return hk.topology.load(name)
    network = hk.topology.load(name.split()[0], bandwidth="25 GB/s", latency="700 ns")
    return hk.topology.offloaded(network) if name == SUMS else network


def runs_of(name: str, size: str = "64 MB") -> list[Row]:
    """Give what runs on a network: by collective, algorithms by name."""
    network = network_of(name)
    npus = "0-7" if name == OF_EIGHT else None
    algorithms = [each.name for each in hk.algorithms() if each.name not in LEFT_OUT]
    rows = []
    for kind in KINDS.values():
        made = hk.compare(kind, network, size=size, algorithms=algorithms, npus=npus, options=FEW)
        bound = str(made.bound.time_ps)
        for entry in sorted(made, key=lambda each: each.algorithm):
            plan = entry.plan
            found = (entry.chunks, plan.chunks, len(plan.transfers), entry.run.time_ps)
            rows.append((name, kind, size, entry.algorithm, *map(str, found), bound))
    return rows


def letters(runs: Iterable[Row]) -> dict[str, str]:
    """Give the collectives that run on a network, as letters by algorithm."""
    found = {(algorithm, kind) for _, kind, _, algorithm, *_ in runs}
    return {
        each.name: "".join(key for key, kind in KINDS.items() if (each.name, kind) in found) or "-"
        for each in hk.algorithms()
        if each.name not in LEFT_OUT
    }


def read(name: str) -> list[Row]:
    """Give the rows of a golden file, its head first."""
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return [tuple(row) for row in csv.reader(file)]


def write(name: str, rows: Iterable[Row]) -> None:
    """Write the rows of a golden file."""
    with (HERE / name).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
