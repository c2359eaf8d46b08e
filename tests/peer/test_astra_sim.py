"""Simulated times against ASTRA-sim's congestion-aware analytical back end (commit 518bd51).

One all-reduce of 64 MiB; links of 50 x 2^30 bytes/s and 500 ns, both ways; 1 ns of endpoint delay per
message there. docs/models.md has the table and says where the models differ.
"""

from __future__ import annotations

import pytest

import hocket as hk

# Topology, algorithm, NPUs, chunks under way together, such lots in turn, nanoseconds in ASTRA-sim.
ROWS = [
    ("ring", "ring", 16, 1, 1, 2_358_961),
    ("ring", "ring", 16, 64, 1, 2_342_902),  # 64 active
    ("ring", "ring", 16, 1, 64, 3_304_384),  # 1 active
    ("ring", "direct", 16, 1, 1, 5_627_015),
    ("ring", "ring", 64, 1, 1, 2_524_222),
    ("ring", "ring", 64, 64, 1, 2_460_022),  # 64 active
    ("ring", "direct", 64, 1, 1, 20_626_742),
    ("ring", "direct", 64, 1, 64, 20_766_272),  # 1 active
    ("ring", "ring", 256, 1, 1, 2_745_331),
    ("ring", "direct", 256, 1, 1, 80_613_587),
    ("ring", "ring", 1024, 1, 1, 3_521_167),
    ("ring", "ring", 1024, 1, 64, 68_090_944),
    ("fully_connected", "direct", 16, 1, 1, 157_265),
    ("fully_connected", "direct", 64, 1, 1, 40_068),
    ("fully_connected", "direct", 64, 1, 64, 103_232),  # 1 active
    ("fully_connected", "direct", 256, 1, 1, 10_767),
]


def simulated_ns(topology: str, algorithm: str, npus: int, chunks: int, lots: int) -> float:
    build = getattr(hk.topology, topology)
    network = build(npus, bandwidth="50 GiB/s", latency="500 ns")
    size = (64 << 20) // lots
    plan = hk.plan("all-reduce", network, size=size, algorithm=algorithm, chunks=chunks)
    return lots * hk.simulate(plan).time_ps / 1000


@pytest.mark.parametrize(("topology", "algorithm", "npus", "chunks", "lots", "expected"), ROWS)
def test_within_a_percent(
    topology: str, algorithm: str, npus: int, chunks: int, lots: int, expected: int
) -> None:
    simulated = simulated_ns(topology, algorithm, npus, chunks, lots)
    assert simulated == pytest.approx(expected, rel=0.01)


@pytest.mark.long
def test_direct_over_a_ring_of_1024() -> None:
    assert simulated_ns("ring", "direct", 1024, 1, 1) == pytest.approx(320_442_323, rel=0.01)


def test_one_active_chunk_hides_no_latency() -> None:
    """All 64 chunks under way together take less than half of the time."""
    assert simulated_ns("fully_connected", "direct", 64, 64, 1) < 0.5 * 103_232
