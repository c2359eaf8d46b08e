"""The golden table: what every algorithm does, on networks of every kind, for each collective.

A row is a run: an algorithm without a row on a network does not run there. ``make golden`` writes the table
anew; a change that is meant then shows in its diff, row by row.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import hocket as hk

FILE = Path(__file__).parent / "results.csv"
COLUMNS = (
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
KINDS = (
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    "all-to-all",
    "broadcast",
    "reduce",
    "scatter",
    "gather",
)
SIZES = ("8 KB", "64 MB")
LEFT_OUT = {"multirail-optimal", "exact", "blind", "auto"}
"""They search for a second or more each time, or until one has passed; they have tests of their own."""


def network_of(name: str) -> hk.Topology:
    """Give a network of the table."""
    if name == FAILED:
        return hk.topology.load("dgx1_v100").without(links=[("gpu0", "gpu1")])
    if ":" not in name:
        return hk.topology.load(name)
    network = hk.topology.load(name.split()[0], bandwidth="25 GB/s", latency="700 ns")
    return hk.topology.offloaded(network) if name == SUMS else network


def rows_of(name: str) -> Iterator[Row]:
    """Give the rows of a network: by collective and size, algorithms by name."""
    network = network_of(name)
    npus = "0-7" if name == OF_EIGHT else None
    algorithms = [each.name for each in hk.algorithms() if each.name not in LEFT_OUT]
    for kind in KINDS:
        for size in SIZES:
            made = hk.compare(kind, network, size=size, algorithms=algorithms, npus=npus)
            bound = str(made.bound.time_ps)
            for entry in sorted(made, key=lambda each: each.algorithm):
                plan = entry.plan
                found = (entry.chunks, plan.chunks, len(plan.transfers), entry.run.time_ps)
                yield (name, kind, size, entry.algorithm, *map(str, found), bound)


def read() -> list[Row]:
    """Give the rows as they are kept."""
    with FILE.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert tuple(head) == COLUMNS
    return [tuple(row) for row in rows]


def write() -> None:
    """Make the table anew."""
    rows = [row for name in NETWORKS for row in rows_of(name)]
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows)
    print(f"{len(rows)} rows")


if __name__ == "__main__":
    write()
