"""What a failed link costs."""

import hocket as hk

healthy = hk.topology.load("dgx1_v100")
degraded = healthy.without(links=[("gpu0", "gpu1")])
for name, network in (("healthy", healthy), ("gpu0-gpu1 down", degraded)):
    best = hk.compare("all-reduce", network, size="256 MB").best
    print(f"{name}: {best.algorithm}, {best.run.time * 1e3:.3f} ms")
