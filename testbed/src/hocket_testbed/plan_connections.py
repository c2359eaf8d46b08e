"""The path of each transfer of a plan, as connections between ranks: one for each pair and route.

A connection carries what both ranks send each other by the routes of its number. Each has an address of
its own at either end, so that every device on the way needs one route for each direction, and knows
nothing of plans.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hocket import _core
from hocket.errors import SpecError
from hocket.plans.plan import Plan

__all__ = [
    "Connection",
    "PlanConnections",
    "check_same_network",
    "load_of",
    "on_network",
    "passed_on",
    "ways_of",
]

MAX_STREAMS = 64
"""Most routes between two ranks."""

_GROUP = _core.Plan.GROUP
"""In a wait: the rest is a group's number."""

Route = tuple[int, ...]


@dataclass(frozen=True)
class Connection:
    """Two ranks, the lower first, and the links that lead from each to the other.

    Attributes
    ----------
    ranks
        The lower one and the higher one.
    devices
        Where they are.
    stream
        Which of the connections between them it is.
    forth, back
        Links from the lower to the higher rank, and from the higher to the lower. Where nothing is sent one
        way, None: acknowledgements go back over the cables of the other way.
    """

    ranks: tuple[int, int]
    devices: tuple[int, int]
    stream: int
    forth: Route | None
    back: Route | None


@dataclass(frozen=True)
class PlanConnections:
    """The connections of a plan, and which of them each transfer takes.

    Attributes
    ----------
    connections
        All of them, by ranks and number.
    streams
        Connections between two ranks, the same for all.
    channel_of
        Channel of each transfer, whose number modulo `streams` is that of its connection. Where links
        serve in plan order, transfers of a connection have one channel; where they serve whoever is ready,
        each has its own.
    in_plan_order
        Whether links serve in plan order.
    """

    connections: tuple[Connection, ...]
    streams: int
    channel_of: list[int]
    in_plan_order: bool


def routes_of(plan: Plan) -> list[Route]:
    """Return the links of each transfer.

    Raises
    ------
    SpecError
        Where one has no route, or is sprayed over several.
    """
    offsets, links = plan.core.routes()
    items, ends = links.tolist(), offsets.tolist()
    shared: dict[Route, Route] = {}
    routes = (tuple(items[first:end]) for first, end in pairwise(ends))
    return [shared.setdefault(route, route) for route in routes]


def ways_of(plan: Plan) -> PlanConnections:
    """Find the connections of a plan.

    Raises
    ------
    SpecError
        Where a transfer has no route, ends at no rank, or two ranks have too many routes.
    """
    rank_of = {device: rank for rank, device in enumerate(plan.collective.npus)}
    transfers = plan.transfers
    ends = list(zip(transfers.src.tolist(), transfers.dst.tolist(), strict=True))
    routes = routes_of(plan)
    of_pair: dict[tuple[int, int], dict[Route, int]] = defaultdict(dict)
    streams = []
    for i, ((src, dst), route) in enumerate(zip(ends, routes, strict=True)):
        for device in (src, dst):
            if device not in rank_of:
                name = plan.topology.device_names[device]
                why = f"transfer {i} ends at {name}, which takes no part in the collective"
                raise SpecError("plan", why, "only participants can send and receive here")
        of_this = of_pair[rank_of[src], rank_of[dst]]
        streams.append(of_this.setdefault(route, len(of_this)))
    most = max((len(routes) for routes in of_pair.values()), default=1)
    if most > MAX_STREAMS:
        why = f"two ranks send each other over {most} routes"
        raise SpecError("plan", why, f"at most {MAX_STREAMS} can be kept apart")
    in_order = plan.link_order == "plan"
    channels = []
    sent: dict[tuple[int, int, int], int] = defaultdict(int)
    for (src, dst), stream in zip(ends, streams, strict=True):
        turn = 0 if in_order else sent[src, dst, stream]
        sent[src, dst, stream] += 1
        channels.append(stream + most * turn)
    pairs = sorted({(min(pair), max(pair)) for pair in of_pair})
    npus = plan.collective.npus
    connections = []
    for low, high in pairs:
        forth, back = list(of_pair[low, high]), list(of_pair[high, low])
        for stream in range(most):
            # A connection that nothing is sent over goes where another does.
            connections.append(
                Connection(
                    (low, high),
                    (npus[low], npus[high]),
                    stream,
                    forth[min(stream, len(forth) - 1)] if forth else None,
                    back[min(stream, len(back) - 1)] if back else None,
                )
            )
    return PlanConnections(tuple(connections), most, channels, in_order)


def load_of(plan: Plan) -> list[int]:
    """Return the bytes that a plan sends over each link of its network."""
    load = np.zeros(plan.topology.link_count, np.int64)
    for route, size in zip(routes_of(plan), plan.transfers.size_bytes.tolist(), strict=True):
        for link in route:
            load[link] += size
    return [int(each) for each in load]


def check_same_network(plan: Plan, topology: _core.Topology, field: str = "plan") -> None:
    """Check that a plan is for a network with these devices and links.

    Raises
    ------
    SpecError
        Saying what differs first.
    """
    own = plan.topology
    counts = (
        ("NPUs", own.npu_count, topology.npu_count),
        ("devices", own.device_count, topology.device_count),
        ("links", own.link_count, topology.link_count),
    )
    right = "give the network that it was made for"
    for what, has, wanted in counts:
        if has != wanted:
            raise SpecError(
                field,
                f"{plan.algorithm} was planned for {has} {what}, this network has {wanted}",
                right,
            )
    ours = np.stack([own.link_src, own.link_dst])
    theirs = np.stack([topology.link_src, topology.link_dst])
    differs = np.flatnonzero((ours != theirs).any(axis=0))
    if differs.size:
        link = int(differs[0])
        names = own.device_names
        ends = f"{names[ours[0, link]]} to {names[ours[1, link]]}"
        raise SpecError(
            field,
            f"link {link} of the network of {plan.algorithm} leads from {ends}, here it does not",
            right,
        )


def on_network(plan: Plan, topology: _core.Topology) -> Plan:
    """Return the same transfers by the same routes on a network that differs in its rates alone."""
    core = plan.core
    return _made(
        plan,
        topology,
        routes_of(plan),
        chunk=core.chunk,
        chunk_count=core.chunk_count,
        src=core.src,
        dst=core.dst,
        op=core.op,
        wait=core.wait,
        group_items=core.group_items,
    )


def _made(plan: Plan, topology: _core.Topology, routes: list[Route], **columns: Any) -> Plan:
    """Make a plan with these transfers, each by its route, and all else as another has it."""
    number = {route: i for i, route in enumerate(dict.fromkeys(routes))}
    core = plan.core
    made = _core.Plan.from_columns(
        topology,
        core.collective,
        core.algorithm,
        chunk_offsets=core.chunk_offsets,
        chunk_demand=core.chunk_demand,
        path=np.array([number[route] for route in routes], np.uint32),
        group_offsets=core.group_offsets,
        path_offsets=np.cumsum([0, *map(len, number)], dtype=np.uint32),
        path_items=np.array([link for route in number for link in route], np.uint32),
        link_order=core.link_order,
        **columns,
    )
    return Plan(made)


def passed_on(plan: Plan) -> Plan:
    """Return a plan in which no NPU that takes no part receives: where it only passes on, packets pass it.

    Raises
    ------
    SpecError
        Where such an NPU, or a switch, does more than pass on to one other what came.
    """
    taking_part = set(plan.collective.npus)
    core = plan.core
    src, dst, wait, op = (each.tolist() for each in (core.src, core.dst, core.wait, core.op))
    if all(device in taking_part for device in dst):
        return plan
    routes = routes_of(plan)
    pieces = list(zip(core.chunk.tolist(), core.chunk_count.tolist(), strict=True))
    following: dict[int, list[int]] = defaultdict(list)
    for i, (start, first) in enumerate(zip(src, wait, strict=True)):
        if start not in taking_part:
            following[first].append(i)
    gone: dict[int, int] = {}
    # Those that a transfer waits for may come after it in the plan; ways through several are chains.
    for i in range(len(src)):
        if src[i] not in taking_part or dst[i] in taking_part:
            continue
        begins, last = i, i
        while dst[last] not in taking_part:
            next_legs = [j for j in following[last] if src[j] == dst[last]]
            if op[last] or len(next_legs) != 1 or pieces[next_legs[0]] != pieces[last]:
                name = plan.topology.device_names[dst[last]]
                why = f"{name} takes no part in the collective, and does not only pass on what it gets"
                raise SpecError("plan", why, "only participants can sum and spread here")
            routes[next_legs[0]] = routes[last] + routes[next_legs[0]]
            gone[last] = last = next_legs[0]
        src[last], wait[last] = src[begins], wait[begins]
    kept = [i for i in range(len(src)) if i not in gone]
    place = {i: at for at, i in enumerate(kept)}

    def moved(bits: int) -> int:
        if bits == Plan.NO_WAIT or bits & _GROUP:
            return bits
        while bits in gone:
            bits = gone[bits]
        return place[bits]

    def column(values: list[int], kind: type[np.generic] = np.uint32) -> NDArray[Any]:
        return np.array([values[i] for i in kept], kind)

    return _made(
        plan,
        plan.topology,
        [routes[i] for i in kept],
        chunk=core.chunk[kept],
        chunk_count=core.chunk_count[kept],
        src=column(src),
        dst=column(dst),
        op=column(op, np.uint8),
        wait=column([moved(bits) for bits in wait]),
        group_items=np.array([moved(bits) for bits in core.group_items.tolist()], np.uint32),
    )
