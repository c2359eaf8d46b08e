"""Plan, prove, bound and simulate collective communication on any network.

>>> import hocket as hk
>>> topo = hk.topology.mesh(4, 4, bandwidth="25 GB/s", latency="21 ns")
>>> plan = hk.plan("all-reduce", topo, size="256 MB", algorithm="ring")
>>> run = hk.simulate(plan.verify())
"""

from hocket import topology
from hocket._core import Bound, Collective, Topology, __version__, algorithms, bound
from hocket.comparing import Comparison, compare
from hocket.errors import (
    Error,
    InfeasibleError,
    SimulationError,
    SpecError,
    VerificationError,
)
from hocket.planning import Plan, collective_on, plan, plan_collective
from hocket.running import DimensionUse, Run, simulate

__all__ = [
    "Bound",
    "Collective",
    "Comparison",
    "DimensionUse",
    "Error",
    "InfeasibleError",
    "Plan",
    "Run",
    "SimulationError",
    "SpecError",
    "Topology",
    "VerificationError",
    "__version__",
    "algorithms",
    "bound",
    "collective_on",
    "compare",
    "plan",
    "plan_collective",
    "simulate",
    "topology",
]
