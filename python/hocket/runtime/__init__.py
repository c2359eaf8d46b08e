"""Plans run on real arrays, between processes of one host or of several.

docs/runtime.md shows how. It needs Unix; memory is shared on Linux only.

>>> comm = hk.runtime.connect("127.0.0.1:29500", rank=rank, size=4)
>>> total = comm.all_reduce(gradients)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hocket._moved import renamed
from hocket.runtime.communicator import Communicator
from hocket.runtime.connection import connect
from hocket.runtime.launch import TimedCalls, run_plan
from hocket.runtime.options import ConnectOptions, MeasureOptions
from hocket.runtime.pending import Pending
from hocket.runtime.store import Store, serve
from hocket.runtime.table import PlanRow, PlanTable

__all__ = [
    "Communicator",
    "ConnectOptions",
    "MeasureOptions",
    "Pending",
    "PlanRow",
    "PlanTable",
    "Store",
    "TimedCalls",
    "connect",
    "run_plan",
    "serve",
]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # which would take every name for one of the package
    __getattr__ = renamed(__name__, {"Measured": "TimedCalls"})
