"""How a row of TACOS's tables is carried out: synthesized, or by a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any, cast

import numpy as np

from hocket import _core, topology
from hocket.collectives import collective_on
from hocket.errors import InfeasibleError
from hocket.memory import memory_limit
from hocket.outcome import Latency
from hocket.planning import Plan, plan_collective

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
        return plans[0] if len(plans) == 1 else _at_once(plans, network)
    options: dict[str, Any] = {"algorithm": method, "chunks": chunks, "seed": 0}
    if unwind is not None:
        options["unwind"] = unwind
    if method in ("exact", "early", "cluster"):
        options.update(algorithm="exact", time_limit=time_limit)
    if method == "cluster":
        options["cluster"] = CLUSTER_SLOTS
    return _synthesize(collectives, network, options)


def _synthesize(
    collectives: Sequence[_core.Collective], network: _core.Topology, options: dict[str, Any]
) -> Plan:
    """Call the synthesizers; the one place that knows their face."""
    import hocket as hk

    if not can_synthesize():
        raise InfeasibleError("there are no synthesizers in this version")
    options = {"latency": LATENCY_MODEL, **options}
    if len(collectives) > 1:
        return cast(Plan, vars(hk)["plan_together"](collectives, network, **options))
    return cast(Plan, cast(Any, plan_collective)(collectives[0], network, **options))


def can_synthesize() -> bool:
    """Whether this version has synthesizers."""
    return "seed" in signature(plan_collective).parameters


def _baseline(collective: _core.Collective, network: _core.Topology, method: str) -> Plan:
    if method == "rank-ring":
        return rank_ring(collective, network)
    return plan_collective(collective, network, algorithm=method)


def rank_ring(collective: _core.Collective, network: _core.Topology) -> Plan:
    """Plan a ring through the NPUs in rank order, whatever the links.

    hocket's own ``ring`` takes the best cycle that it finds instead.
    """
    npus = network.npu_count
    if list(collective.npus) != list(range(npus)):
        raise InfeasibleError("a ring in rank order is of all NPUs here; leave npus out")
    alone = topology.ring(npus, bandwidth="1 GB/s", latency="0 ns", both_ways=False)
    same = collective_on(collective.kind, alone, collective.size)
    core = _core.plan(alone, same, "ring", None, memory_limit())
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
_GROUP = np.uint32(1 << 31)


def _columns(core: _core.Plan) -> dict[str, Any]:
    return {name: getattr(core, name) for name in _NAMES}


def _at_once(plans: Sequence[Plan], network: _core.Topology) -> Plan:
    """Put plans side by side in one, which does all that each does."""
    columns = _columns(plans[0].core)
    demands = plans[0].collective.demands()
    for each in plans[1:]:
        columns = _beside(columns, _columns(each.core), len(demands))
        demands = [*demands, *each.collective.demands()]
    collective = _core.Collective.custom(list(range(network.npu_count)), demands)
    algorithm = plans[0].algorithm
    return Plan(_core.Plan.from_columns(network, collective, algorithm, **columns))


def _beside(one: dict[str, Any], other: dict[str, Any], demands: int) -> dict[str, Any]:
    """Append columns whose chunks, transfers, groups and paths are counted from 0 to others."""
    chunks, transfers = len(one["chunk_demand"]), len(one["chunk"])
    groups, paths = len(one["group_offsets"]) - 1, len(one["path_offsets"]) - 1

    def waits(values: Any) -> Any:
        shift = np.where(values & _GROUP, groups, transfers).astype(np.uint32)
        return np.where(values == Plan.NO_WAIT, values, values + shift).astype(np.uint32)

    def offsets(name: str) -> Any:
        return np.concatenate([one[name], other[name][1:] + one[name][-1]]).astype(one[name].dtype)

    shifted = {
        **other,
        "chunk_demand": other["chunk_demand"] + demands,
        "chunk": other["chunk"] + chunks,
        "wait": waits(other["wait"]),
        "group_items": waits(other["group_items"]),
        "path": np.where(other["path"] == Plan.DEFAULT_ROUTE, other["path"], other["path"] + paths),
    }
    joined = {
        name: np.concatenate([one[name], shifted[name]]).astype(one[name].dtype) for name in _NAMES
    }
    for name in ("chunk_offsets", "group_offsets", "path_offsets"):
        joined[name] = offsets(name)
    return joined
