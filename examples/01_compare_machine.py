"""Rank every algorithm for an all-reduce on a real machine."""

import hocket as hk

machine = hk.topology.load("dgx1_v100")
comparison = hk.compare("all-reduce", machine, size="256 MB")
print(
    f"no plan takes less than {comparison.bound.time_ps / 1e9:.3f} ms: {comparison.bound.witness}"
)
for entry in comparison:
    run = entry.run
    print(
        f"{entry.algorithm:20} {run.time * 1e3:7.3f} ms  {run.busbw / 1e9:6.1f} GB/s  gap {run.gap:.0%}"
    )
