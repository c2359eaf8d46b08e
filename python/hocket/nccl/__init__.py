"""What NCCL would do on a network: which algorithm, protocol and channels it picks, and what it predicts.

``hk.nccl.predict("all-reduce", "dgx_a100_2box", size="64 MiB")`` gives its pick; ``choices`` of the result
are all that it weighed. The prediction is NCCL's own, by the constants of the version that :data:`VERSION`
names: it ranks algorithms, and says 0.2 to 0.9 of what is measured below 64 MiB (docs/machines.md).
"""

from __future__ import annotations

from hocket.nccl.audit import Audit, AuditEntry, audit
from hocket.nccl.constants import VERSION
from hocket.nccl.graphs import Graph, read_graph, write_graph
from hocket.nccl.prediction import NcclPrediction, predict

__all__ = [
    "VERSION",
    "Audit",
    "AuditEntry",
    "Graph",
    "NcclPrediction",
    "audit",
    "predict",
    "read_graph",
    "write_graph",
]


def __dir__() -> list[str]:
    return __all__
