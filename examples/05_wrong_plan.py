"""What verification says about a plan that is wrong."""

import numpy as np

import hocket as hk
from hocket import _core

network = hk.topology.ring(4, bandwidth="50 GB/s", latency="500 ns")
core = hk.plan("all-reduce", network, size="4 MB", algorithm="ring").core
op = np.array(core.op)
op[5] = 0  # one reduction becomes a copy: a contribution is overwritten
columns = {
    name: getattr(core, name) for name in ("chunk", "chunk_count", "src", "dst", "wait", "path")
}
lists = {
    name: getattr(core, name)
    for name in (
        "group_offsets",
        "group_items",
        "path_offsets",
        "path_items",
        "chunk_offsets",
        "chunk_demand",
    )
}
wrong = hk.Plan(
    _core.Plan.from_columns(network, core.collective, "edited", op=op, **columns, **lists)
)
try:
    wrong.verify()
except hk.VerificationError as error:
    print(error)
    print(
        len(error.violations), "violations; the first blames transfer", error.violations[0].transfer
    )
