"""A small sweep whose rows are known, so that a change of results does not go unseen."""

from __future__ import annotations

from pathlib import Path

import hocket as hk
from hocket.sweeps.yaml import from_text

SWEEP = """
command: simulate
grid:
  topology: ["ring:4@1GB/s,1us", "switch:4@1GB/s,1us"]
  algorithm: [ring, direct]
  size: [4 KB, 4 MB]
set: {chunks: 1}
costs: {link: {each: 10, bandwidth: 2 per GB/s}, switch: {each: 100, bandwidth: 1 per GB/s}}
"""


def test_the_rows_of_a_small_sweep(tmp_path: Path) -> None:
    found = hk.run_sweep(from_text(SWEEP, "s.yml"), tmp_path / "out", workers=1)
    columns = ("point", "cost", "time_ps", "bound_ps", "transfers", "error")
    rows = [tuple(row[name] for name in columns) for row in found.to_frame().to_pylist()]
    # A ring: six steps of a quarter, 1 ns a byte, and 1 us each. A switch has two links a step; cables
    # cost 12 each, a switch 100 and 1 for each of its four ports.
    assert [row[1] for row in rows] == [4 * 12.0] * 4 + [4 * 12.0 + 104.0] * 4
    assert rows[0][2] == 6 * (1_000_000 + 1_000_000)
    assert rows[1][2] == 6 * (1_000_000_000 + 1_000_000)
    assert rows == GOLDEN


GOLDEN = [
    (0, 48.0, 12000000, 4000000, 24, None),
    (1, 48.0, 6006000000, 3001000000, 24, None),
    (2, 48.0, 9000000, 4000000, 24, None),
    (3, 48.0, 6003000000, 3001000000, 24, None),
    (4, 152.0, 18000000, 8000000, 24, None),
    (5, 152.0, 6012000000, 6002000000, 24, None),
    (6, 152.0, 10000000, 8000000, 24, None),
    (7, 152.0, 6004000000, 6002000000, 24, None),
]
