"""Traces read and replayed: seconds and peak memory, as they grow.

``python bench/traces.py --all`` prints a line for each case, each run in a process of its own.
A trace is 8 ranks in lockstep: of each 8 nodes 5 compute, 1 is a collective of
all ranks, 1 one of half of them, and 1 a send to the next rank or the receive of it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import hocket as hk

GIB = float(1 << 30)
RANKS = 8
NODES = (62_500, 125_000, 250_000, 500_000)
"""Of each rank."""
COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
ALL_REDUCE, ALL_GATHER = 0, 2


def varint(value: int) -> bytes:
    """Encode a number as protobuf does."""
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(tag: int, content: bytes) -> bytes:
    """Encode bytes with their tag and length."""
    return varint(tag << 3 | 2) + varint(len(content)) + content


def attributes(**values: int) -> bytes:
    """Encode attributes that are numbers."""
    rows = (field(1, name.encode()) + b"\x48" + varint(value) for name, value in values.items())
    return b"".join(field(10, row) for row in rows)


def rest_of(rank: int, step: int, place: int) -> tuple[int, bytes]:
    """Give the kind of a node, and its attributes or its time."""
    ahead, behind = (rank + 1) % RANKS, (rank - 1) % RANKS
    if place == 2:
        return COLLECTIVE, attributes(comm_type=ALL_REDUCE, comm_size=1 << 20)
    if place == 4:
        group = 1 + rank // (RANKS // 2)
        return COLLECTIVE, attributes(comm_type=ALL_GATHER, comm_size=1 << 16, pg_name=group)
    if place == 6 and rank % 2 == step % 2:
        return SEND, attributes(comm_dst=ahead, comm_size=1 << 18, comm_tag=0)
    if place == 6:
        return RECEIVE, attributes(comm_src=behind, comm_size=1 << 18, comm_tag=0)
    return COMPUTE, b"\x38" + varint(1 + (rank * 7 + step + place) % 20)


def write(prefix: Path, nodes: int) -> None:
    """Write a trace of so many nodes at each rank."""
    for rank in range(RANKS):
        parts = [b"\x00"]
        for number in range(nodes):
            kind, rest = rest_of(rank, *divmod(number, 8))
            deps = field(5, varint(number - 1)) if number else b""
            node = b"\x08" + varint(number) + field(2, b"n%d" % (number % 8))
            node += b"\x18" + varint(kind) + deps + rest
            parts.append(varint(len(node)) + node)
        prefix.with_name(f"{prefix.name}.{rank}.et").write_bytes(b"".join(parts))


def measure(prefix: Path) -> dict[str, float]:
    """Read and replay a trace in this process."""
    network = hk.topology.product(
        "Ring_SW", [4, 2], bandwidth=["100 GB/s", "50 GB/s"], latency=["500 ns", "1 us"]
    )
    clock = [time.perf_counter()]
    halves = {1 + half: [4 * half + rank for rank in range(4)] for half in range(2)}
    trace = hk.traces.load(prefix, halves)
    clock.append(time.perf_counter())
    run = hk.traces.replay(trace, network)
    clock.append(time.perf_counter())
    assert sum(rank.compute for rank in run.ranks)
    clock.append(time.perf_counter())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "nodes": len(trace),
        "calls": len(run.graph.calls_what),
        "read_s": clock[1] - clock[0],
        "replay_s": clock[2] - clock[1],
        "ranks_s": clock[3] - clock[2],
        "peak_gib": peak / GIB,
        "simulated_s": run.time,
    }


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prefix", type=Path, help="measure this trace, in this process")
    parser.add_argument("--all", action="store_true", help="every size, each in its own process")
    given = parser.parse_args()
    if given.prefix is not None:
        print(json.dumps(measure(given.prefix)))
        return
    if not given.all:
        parser.error("name a trace with --prefix, or give --all")
    for nodes in NODES:
        with TemporaryDirectory() as folder:
            prefix = Path(folder) / "t"
            write(prefix, nodes)
            command = [sys.executable, __file__, "--prefix", str(prefix)]
            print(
                subprocess.run(command, capture_output=True, check=True, text=True).stdout, end=""
            )


if __name__ == "__main__":
    main()
