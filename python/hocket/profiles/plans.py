"""The time of a plan on a real machine: simulated on the network as a protocol sees it.

A protocol reaches a share of the bandwidth of every link, each transfer costs a step, or a hop between
nodes, and switches pass data on as it arrives. Link fidelity then runs the plan as on any other network;
its time, the protocol's fixed cost and the launch together are what is measured. A ring in one piece
takes exactly what the law says of rings. Where switches sum or multicast, their constants count (NVLS):
their fixed cost and share of bandwidth, no cost a step, and between nodes what Simple costs, with which
alone libraries do so.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from hocket._checks import instance_of, one_of
from hocket._core import Topology
from hocket._results import Result, name_of, said
from hocket.collectives.bounds import bound
from hocket.errors import SpecError
from hocket.plans.plan import Plan
from hocket.profiles.cost_model import PROTOCOLS, behind
from hocket.profiles.hardware import owners
from hocket.profiles.profile import Profile, as_profile, why_below
from hocket.simulation.run import simulate


@dataclass(frozen=True)
class PlanPrediction(Result):
    """The time of a plan on a real machine.

    Attributes
    ----------
    profile
        Whose constants were used.
    protocol
        The one with which it is the fastest, or the one that was asked for; ``"simple"`` where switches
        sum.
    seconds
        What it takes, launched again and again.
    moving, fixed, launch
        What the transfers take, the protocol's fixed cost, and the launch [s]; the launch hides behind the
        others.
    below_bound
        Why it stands below the bound on any plan; ``None`` where it does not.
    """

    profile: Profile = field(metadata=said(of=name_of))
    protocol: str
    seconds: float = field(metadata=said("time_s"))
    moving: float = field(metadata=said("moving_s"))
    fixed: float = field(metadata=said("fixed_s"))
    launch: float = field(metadata=said("launch_s"))
    below_bound: str | None = None


def predict_plan(
    plan: Plan,
    profile: Profile | str,
    *,
    protocol: str | None = None,
    launch: str | None = None,
) -> PlanPrediction:
    """Predict the time of a plan on the real machine of its topology.

    Parameters
    ----------
    plan
        Any plan; it is proved again on the network as the protocol sees it.
    profile
        Constants of the machine: a shipped profile, or a topology file that has one.
    protocol
        ``"ll"``, ``"ll128"`` or ``"simple"``; by default the fastest of them. Where switches sum or
        multicast it can only be ``"simple"``.
    launch
        Kind of program, of those that the profile has; by default its first.

    Raises
    ------
    SpecError
        If there is no such profile, protocol or kind of program, or the plan takes no such protocol.

    Examples
    --------
    >>> import hocket as hk
    >>> plan = hk.plan("all-reduce", "dgx_a100_1box", size="1 GiB", algorithm="ring")
    >>> hk.predict_plan(plan, "a100").protocol
    'simple'
    """
    instance_of(Plan, "plan", plan, "make one, as by hk.plan(...)")
    used = as_profile(profile)
    if protocol is not None:
        one_of("protocol", protocol, PROTOCOLS)
    nodes = _nodes(plan)
    start = used.launching_all(len(plan.collective.npus), nodes, launch)
    frame = plan.to_frame()
    by_switches = ends_at_switches(plan)
    if by_switches and protocol not in (None, "simple"):
        wrong = "switches sum or multicast in this plan, which libraries do with simple alone"
        raise SpecError("protocol", wrong, "leave it out, or give simple")
    found = []
    usual = ("simple",) if by_switches else PROTOCOLS
    for each in usual if protocol is None else (protocol,):
        inside = "nvls" if by_switches else each
        network = measured_network(plan.topology, used, each, inside=inside)
        again = Plan.from_frame(frame, network, plan.collective)
        moving = simulate(again).time_ps * 1e-6
        fixed = used.values[f"{inside}.fixed"]
        fixed += used.values[f"{each}.far"] if nodes > 1 else 0.0
        took = float(behind(np.array([start]), np.array([fixed + moving]))[0])
        moving, fixed, launching = (value * 1e-6 for value in (moving, fixed, start))
        found.append(PlanPrediction(used, each, took * 1e-6, moving, fixed, launching))
    best = min(found, key=lambda each: each.seconds)
    limit = bound(plan.topology, plan.collective)
    return replace(best, below_bound=why_below(limit, best.seconds, used))


def ends_at_switches(plan: Plan) -> bool:
    """Return whether transfers of a plan end at switches, which then sum or multicast."""
    columns = plan.transfers
    most = max(int(each.max(initial=0)) for each in (columns.src, columns.dst))
    return most >= plan.topology.npu_count


def measured_network(
    topology: Topology, profile: Profile, protocol: str, *, inside: str | None = None
) -> Topology:
    """Return a network as a protocol sees it: shares of bandwidth, step costs instead of latencies.

    Links inside a node have the protocol's efficiency, the others that of its NICs. A transfer costs a step
    on the link by which it leaves an NPU; one that leaves a node costs what a hop costs more. Switches pass
    data on as it arrives.

    Parameters
    ----------
    inside
        ``"nvls"`` where switches sum: theirs is the efficiency inside nodes, and steps cost nothing.
    """
    values = profile.values
    within = inside or protocol
    efficiency, outside = values[f"{within}.efficiency"], values[f"{protocol}.nic"]
    step, hop = values.get(f"{within}.step", 0.0), values[f"{protocol}.hop"]
    groups = [list(group) for group in topology.groups] or [list(range(topology.npu_count))]
    owner = np.array(owners(topology, groups))
    src, dst = np.asarray(topology.link_src), np.asarray(topology.link_dst)
    is_inside = (owner[src] == owner[dst]) & (owner[src] >= 0)
    leaves = (owner[src] != owner[dst]) & (owner[src] >= 0)
    from_npu = src < topology.npu_count
    share = np.where(is_inside, efficiency, outside)
    bandwidth = np.maximum(np.asarray(topology.link_bandwidth) * share, 1.0)
    delay = np.where(from_npu, step, 0.0) + np.where(leaves, max(hop - step, 0.0), 0.0)
    return Topology.from_arrays(
        topology.name,
        topology.device_names,
        topology.npu_count,
        topology.switch_limits,
        src,
        dst,
        np.rint(bandwidth).astype(np.uint64),
        np.rint(delay * 1e6).astype(np.uint64),
        switching="cut-through",
        groups=topology.groups,
        switch_offloads=topology.switch_offloads,
    )


def _nodes(plan: Plan) -> int:
    """Return on how many nodes the participants of a plan are."""
    node = {npu: number for number, npus in enumerate(plan.topology.groups) for npu in npus}
    return len({node.get(npu, -1) for npu in plan.collective.npus})
