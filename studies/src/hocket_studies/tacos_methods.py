"""The methods of TACOS's tables: synthesis and baselines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hocket import _core, topology
from hocket._memory import memory_limit
from hocket.collectives.collective import collective_on, joined
from hocket.collectives.timing import Latency
from hocket.errors import InfeasibleError
from hocket.plans.plan import Plan, merge_plans
from hocket.plans.planner import plan

LATENCY_MODEL: Latency = "occupying"
"""A link is taken for its latency as well: alpha + beta n, section II-C."""

CLUSTER_SLOTS = 4
"""Slots that each search of time clustering sees."""


def make_plan(
    collectives: Sequence[_core.Collective],
    network: _core.Topology,
    method: str,
    *,
    chunks: int,
    unwind: str | None,
    time_limit: str,
) -> Plan:
    """Plan one collective, or several at once, by one method.

    Raises
    ------
    InfeasibleError
        If the method cannot do this.
    """
    if method in ("ring", "rank-ring", "direct"):
        plans = [_baseline(each, network, method) for each in collectives]
        return plans[0] if len(plans) == 1 else merge_plans(plans)
    searched = method in ("exact", "early", "cluster")
    return plan(
        collectives[0] if len(collectives) == 1 else joined(collectives),
        network,
        algorithm="exact" if searched else method,
        chunks=chunks,
        time_limit=time_limit if searched else None,
        unwind=unwind,
        latency_model=LATENCY_MODEL,
        window=CLUSTER_SLOTS if method == "cluster" else None,
    )


def _baseline(collective: _core.Collective, network: _core.Topology, method: str) -> Plan:
    if method == "rank-ring":
        return rank_ring(collective, network)
    return plan(collective, network, algorithm=method, chunks=1)


def rank_ring(collective: _core.Collective, network: _core.Topology) -> Plan:
    """Plan a ring through the NPUs in rank order, whatever the links.

    hocket's own ``ring`` takes the best cycle that it finds instead.
    """
    npus = network.npu_count
    if list(collective.npus) != list(range(npus)):
        raise InfeasibleError(None, "a ring in rank order is of all NPUs here", "leave npus out")
    alone = topology.ring(npus, bandwidth="1 GB/s", latency="0 ns", both_ways=False)
    same = collective_on(collective.kind, alone, collective.size)
    core = _core.plan(alone, same, "ring", None, memory_limit()).plan_and_run[0]
    return Plan(_core.Plan.from_columns(network, collective, "rank-ring", **_columns(core)))


_NAMES = (
    "chunk_offsets",
    "chunk_demand",
    "chunk",
    "chunk_count",
    "src",
    "dst",
    "op",
    "wait",
    "path",
    "group_offsets",
    "group_items",
    "path_offsets",
    "path_items",
)


def _columns(core: _core.Plan) -> dict[str, Any]:
    return {name: getattr(core, name) for name in _NAMES}
