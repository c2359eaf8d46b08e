"""A plan of one's own, and what verification says about it when it is wrong."""

import hocket as hk

network = hk.topology.ring(4, bandwidth="50 GB/s", latency="500 ns")
collective = hk.collective_on("all-reduce", network, "4 MB")


def ring(wrong: int | None = None) -> hk.Plan:
    """Reduce around the ring, then copy around it; one reduction may become a copy, which is wrong."""
    builder = hk.PlanBuilder(network, collective, name="mine", chunks=4)
    for step in range(3):
        for npu in range(4):
            send = builder.copy if len(builder) == wrong else builder.reduce
            send((npu - step) % 4, npu, (npu + 1) % 4)
    for step in range(3):
        for npu in range(4):
            builder.copy((npu + 1 - step) % 4, npu, (npu + 1) % 4)
    return builder.build()


run = hk.simulate(ring().verify())
print(f"the right one takes {run.time * 1e6:.1f} us, {run.gap:.1%} above the bound")
try:
    ring(wrong=5).verify()
except hk.VerificationError as error:
    print(error)
    first = error.violations[0]
    print(f"{len(error.violations)} violations; the first is about transfer {first.transfer}")
