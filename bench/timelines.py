"""What writing a timeline of a million spans takes: ``python bench/timelines.py [pftrace|json]``."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import hocket as hk

NPUS = 1024


def main(ending: str) -> None:
    network = hk.topology.ring(NPUS, bandwidth="50 GB/s", latency="500 ns")
    plan = hk.plan("all-gather", network, size=64 << 20, algorithm="ring").verify()
    run = hk.simulate(plan, keep_services=True)
    spans = len(run.core.service_link)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"run.{ending}"
        start = time.process_time()
        run.save_perfetto(path)
        seconds = time.process_time() - start
        size = path.stat().st_size
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{spans:,} spans as .{ending}: {seconds:.2f} s, {size / 1e6:.0f} MB, "
        f"{(after - before) / 1024:.0f} MiB beside the run's {before / 1024:.0f}"
    )


if __name__ == "__main__":
    main(*sys.argv[1:2] or ["pftrace"])
