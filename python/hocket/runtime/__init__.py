"""Plans run on real arrays, between processes of one host or of several.

docs/runtime.md shows how. It needs Unix; memory is shared on Linux only.

>>> comm = hk.runtime.connect("127.0.0.1:29500", rank=rank, size=4)
>>> total = comm.all_reduce(gradients)
"""

from __future__ import annotations

from hocket.runtime.communicator import Communicator
from hocket.runtime.connection import connect
from hocket.runtime.launch import Measured, run_plan
from hocket.runtime.options import ConnectOptions, MeasureOptions
from hocket.runtime.pending import Pending
from hocket.runtime.store import Store, serve
from hocket.runtime.table import PlanRow, PlanTable

__all__ = [
    "Communicator",
    "ConnectOptions",
    "MeasureOptions",
    "Measured",
    "Pending",
    "PlanRow",
    "PlanTable",
    "Store",
    "connect",
    "run_plan",
    "serve",
]


def __dir__() -> list[str]:
    return __all__
