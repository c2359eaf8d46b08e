"""What the manifest of a deployed folder says of plans: for those who write one, and those who judge it."""

from __future__ import annotations

from collections.abc import Sequence

from hocket import _core
from hocket._core.formats import Checked
from hocket._results import picoseconds
from hocket.deployment.manifest import ALIGNMENT, Estimates
from hocket.errors import Error
from hocket.nccl.model import KINDS
from hocket.nccl.prediction import Library, library_on
from hocket.plans.plan import Plan
from hocket.plans.planner import plan
from hocket.simulation.run import Run, simulate
from hocket.topology.slow import with_rates
from hocket.units import counted

PREDICTIONS = ("predicted_ps", "nccl_ps", "over_bound")
"""Figures that another version of hocket may compute differently."""


def figures(
    run: Run, program: Checked, estimates: Estimates, nccl_ps: int | None
) -> dict[str, object]:
    """Return what an entry says of a plan and its program, by key."""
    collective = run.plan.collective
    kind, size, ranks = collective.kind, collective.size, len(collective.npus)
    return {
        "collective": kind,
        "ranks": ranks,
        "algorithm": run.plan.algorithm,
        "name": program.name,
        "protocol": program.protocol,
        "unit_bytes": ALIGNMENT * program.chunks,
        "max_bytes": program.max_bytes,
        "blocks": program.blocks,
        "switches": uses_switches(run.plan),
        "planned_bytes": size,
        "predicted_ps": estimates.staged_ps(kind, size, ranks, run.time_ps),
        "nccl_ps": nccl_ps,
        "over_bound": run.gap,
    }


def uses_switches(plan: Plan) -> bool:
    """Return whether switches sum or multicast in a plan."""
    ends, npus = plan.transfers, plan.topology.npu_count
    return bool((ends.src >= npus).any() or (ends.dst >= npus).any())


def names_and_nodes(network: _core.Topology) -> list[tuple[str, int]]:
    """Return the name and the node of each NPU; those of no node have one of their own."""
    node_of = {npu: node for node, npus in enumerate(network.groups) for npu in npus}
    return [
        (name, node_of.get(npu, len(network.groups)))
        for npu, name in enumerate(network.device_names[: network.npu_count])
    ]


def shared_network(
    network: _core.Topology, groups: Sequence[Sequence[int]], size: int
) -> _core.Topology:
    """Return what a network is for each of some groups that communicate at once.

    The rate of a link is divided by the number of groups of which a message, from some NPU to another,
    goes over it. The network itself is returned if no two groups have a link in common.

    Parameters
    ----------
    network, groups
        A network, and the NPUs of each group.
    size
        Bytes of a message, which its path may depend on.
    """
    import numpy as np

    groups_on = np.zeros(network.link_count, dtype=np.uint64)
    for npus in groups:
        if len(npus) > 1:
            whole = size * len(npus)
            made = plan("all-to-all", network, size=whole, npus=npus, algorithm="direct")
            groups_on += simulate(made).link_bytes > 0
    if groups_on.max(initial=0) < 2:
        return network
    rates = np.maximum(network.link_bandwidth // np.maximum(groups_on, 1), 1)
    return with_rates(network, shared_name(network.name, len(groups)), rates)


def shared_name(name: str, groups: int) -> str:
    """Return the name of a network that so many groups share."""
    return f"{name} shared by {counted(groups, 'group')}"


def library_among(network: _core.Topology, gpu: str | None, npus: Sequence[int]) -> Library | None:
    """Return what NCCL is among some NPUs, or None if its model does not say it."""
    others = sorted(set(range(network.npu_count)) - set(npus))
    try:
        return library_on(network.without([network.device_names[npu] for npu in others]), gpu)
    except Error:
        return None


def nccl_ps(library: Library | None, kind: str, size: int) -> int | None:
    """Return what NCCL is predicted to take [ps], or None if its model does not say it."""
    if library is None or kind not in KINDS:
        return None
    return picoseconds(library.choices(kind, size)[0].seconds)
