"""Families of networks, a function each: written by ``make accept`` from the core's list."""

from __future__ import annotations

from collections.abc import Sequence

from hocket._core import Topology
from hocket.topology.declared import build
from hocket.units import Duration, Quantity

__all__ = [
    "bigraph",
    "box",
    "clos",
    "dragonfly",
    "fat_tree",
    "fully_connected",
    "hypercube",
    "hyperx_2d",
    "line",
    "mesh",
    "planes",
    "rail",
    "ring",
    "switch",
    "torus",
]


def ring(
    npus: int,
    *,
    bandwidth: Quantity,
    latency: Duration,
    both_ways: bool = True,
) -> Topology:
    """NPUs in a cycle, with links one way or both. Two NPUs are joined by one link each way.

    Parameters
    ----------
    npus
        NPUs in the cycle.
    bandwidth
        Of each link, one direction.
    latency
        Of each link.
    both_ways
        Whether links go both ways, not only from each NPU to the next.
    """
    return build("ring", npus=npus, bandwidth=bandwidth, latency=latency, both_ways=both_ways)


def line(
    npus: int,
    *,
    bandwidth: Quantity,
    latency: Duration,
) -> Topology:
    """NPUs in a row, a link each way between neighbours: 0 - 1 - 2 - 3.

    Parameters
    ----------
    npus
        NPUs in the row.
    bandwidth
        Of each link, one direction.
    latency
        Of each link.
    """
    return build("line", npus=npus, bandwidth=bandwidth, latency=latency)


def switch(
    npus: int,
    *,
    bandwidth: Quantity,
    latency: Duration,
    limit: Quantity | None = None,
) -> Topology:
    """NPUs around one switch. From NPU to NPU there are two links.

    Parameters
    ----------
    npus
        NPUs at the switch.
    bandwidth
        Of each link, one direction.
    latency
        Of each link.
    limit
        Of the switch itself, all ports together; none by default.
    """
    return build("switch", npus=npus, bandwidth=bandwidth, latency=latency, limit=limit)


def fully_connected(
    npus: int,
    *,
    bandwidth: Quantity,
    latency: Duration,
) -> Topology:
    """A link each way between every two NPUs.

    Parameters
    ----------
    npus
        NPUs in all.
    bandwidth
        Of each link, one direction.
    latency
        Of each link.
    """
    return build("fully_connected", npus=npus, bandwidth=bandwidth, latency=latency)


def mesh(
    *size: int | Sequence[int],
    bandwidth: Quantity,
    latency: Duration,
) -> Topology:
    """A mesh of any number of axes. NPU numbers vary fastest along the first.

    Parameters
    ----------
    size
        NPUs along each axis.
    bandwidth
        Of each link, one direction.
    latency
        Of each link.
    """
    return build("mesh", size=size, bandwidth=bandwidth, latency=latency)


def torus(
    *size: int | Sequence[int],
    bandwidth: Quantity,
    latency: Duration,
) -> Topology:
    """A mesh whose axes close. An axis of 2 has one link each way, not two.

    NPU numbers vary fastest along the first axis.

    Parameters
    ----------
    size
        NPUs along each axis.
    bandwidth
        Of each link, one direction.
    latency
        Of each link.
    """
    return build("torus", size=size, bandwidth=bandwidth, latency=latency)


def hypercube(
    log2_npus: int,
    *,
    bandwidth: Quantity,
    latency: Duration,
) -> Topology:
    """NPUs that are joined where their numbers differ in one bit.

    Parameters
    ----------
    log2_npus
        Dimensions: there are `2 ** log2_npus` NPUs.
    bandwidth
        Of each link, one direction.
    latency
        Of each link.
    """
    return build("hypercube", log2_npus=log2_npus, bandwidth=bandwidth, latency=latency)


def dragonfly(
    groups: int,
    group_size: int,
    npus_per_router: int | None = None,
    *,
    bandwidth: Quantity,
    latency: Duration,
    global_bandwidth: Quantity | None = None,
    global_latency: Duration | None = None,
) -> Topology:
    """Fully connected groups of routers, and a link each way between every two groups.

    The k-th group after group g (k from 0) is reached from member `k mod group_size` of g, so that
    the long links are spread evenly over the members. Router `g * group_size + i` is member i of group
    g: an NPU itself, or a switch `router0`, ... with NPUs that follow one another, which are stated as
    groups.

    Parameters
    ----------
    groups
        Groups of routers.
    group_size
        Routers in each group.
    npus_per_router
        NPUs at each router, a switch; by default NPUs are their own routers.
    bandwidth
        Of each link inside a group, those of NPUs among them, one direction.
    latency
        Of each link inside a group.
    global_bandwidth
        Of each link between groups.
        As `bandwidth` where it is left out.
    global_latency
        Of each link between groups.
        As `latency` where it is left out.

    References
    ----------
    Kim, Dally, Scott, Abts: Technology-driven, highly-scalable dragonfly topology, ISCA 2008; the
    relative arrangement of global links.
    """
    return build(
        "dragonfly",
        groups=groups,
        group_size=group_size,
        npus_per_router=npus_per_router,
        bandwidth=bandwidth,
        latency=latency,
        global_bandwidth=global_bandwidth,
        global_latency=global_latency,
    )


def clos(
    spines: int,
    tors: int,
    hosts_per_tor: int = 1,
    *,
    bandwidth: Quantity,
    latency: Duration,
    host_bandwidth: Quantity | None = None,
) -> Topology:
    r"""A two-level Clos: NPUs below ToR switches, every ToR joined to every spine.

    ::

        spine0   spine1          NPU h of ToR t is npu(t * hosts_per_tor + h)
          |  \ /  |
          |  / \  |
        tor0     tor1

    Switches are named `tor0`, ... and `spine0`, ..., ToRs first.

    Parameters
    ----------
    spines
        Switches of the upper level.
    tors
        Switches of the lower level.
    hosts_per_tor
        NPUs below each ToR switch.
    bandwidth
        Of each link between a ToR and a spine, one direction.
    latency
        Of every link.
    host_bandwidth
        Of each link between an NPU and its ToR.
        As `bandwidth` where it is left out.
    """
    return build(
        "clos",
        spines=spines,
        tors=tors,
        hosts_per_tor=hosts_per_tor,
        bandwidth=bandwidth,
        latency=latency,
        host_bandwidth=host_bandwidth,
    )


def bigraph(
    switches_per_side: int,
    npus_per_switch: int,
    *,
    bandwidth: Quantity,
    latency: Duration,
) -> Topology:
    r"""Two sides of switches, every one joined to every one across, and NPUs at all of them.

    ::

        npu0 npu1   npu2 npu3         NPU h of switch s is npu(s * npus_per_switch + h),
           \ /         \ /            the upper switches' first
         upper0      upper1
           |    \  /    |             two NPUs on different sides are joined by one shortest route
           |    /  \    |
         lower0      lower1
           / \         / \
        npu4 npu5   npu6 npu7

    Parameters
    ----------
    switches_per_side
        Switches on each of the two sides.
    npus_per_switch
        NPUs at each switch.
    bandwidth
        Of each link, one direction.
    latency
        Of each link.

    References
    ----------
    Dong et al.: EFLOPS, algorithm and system co-design for a high performance distributed training
    platform, HPCA 2020.
    """
    return build(
        "bigraph",
        switches_per_side=switches_per_side,
        npus_per_switch=npus_per_switch,
        bandwidth=bandwidth,
        latency=latency,
    )


def hyperx_2d(
    rows: int,
    columns: int,
    npus_per_switch: int,
    *,
    bandwidth: Quantity,
    latency: Duration,
    npu_bandwidth: Quantity | None = None,
    column_bandwidth: Quantity | None = None,
) -> Topology:
    r"""A grid of switches with NPUs, each joined to all others of its row and of its column.

    ::

        switch0_0 - switch0_1 - switch0_2     NPU h of the switch in row r and column c is
            |    \_________________/ |        npu((r * columns + c) * npus_per_switch + h)
        switch1_0 - switch1_1 - switch1_2
                 \_________________/

    From switch to switch there are two links at most: along the row, and along the column. NPUs at one
    switch are a group.

    Parameters
    ----------
    rows
        Rows of switches.
    columns
        Columns of switches, which is how many there are in a row.
    npus_per_switch
        NPUs at each switch.
    bandwidth
        Of each link along a row, one direction.
    latency
        Of every link.
    npu_bandwidth
        Of each link between an NPU and its switch; as `bandwidth` by default.
        As `bandwidth` where it is left out.
    column_bandwidth
        Of each link along a column; as `bandwidth` by default.
        As `bandwidth` where it is left out.

    References
    ----------
    Ahn, Binkert, Davis, McLaren, Schreiber: HyperX, topology, routing, and packaging of efficient
    large-scale networks, SC 2009: L = 2, S = (columns, rows), T = npus_per_switch, and K the bandwidths
    of rows and columns relative to that of NPUs.
    """
    return build(
        "hyperx_2d",
        rows=rows,
        columns=columns,
        npus_per_switch=npus_per_switch,
        bandwidth=bandwidth,
        latency=latency,
        npu_bandwidth=npu_bandwidth,
        column_bandwidth=column_bandwidth,
    )


def fat_tree(
    k: int,
    *,
    bandwidth: Quantity,
    latency: Duration,
) -> Topology:
    """A three-level fat tree of switches with `k` ports: `k**3 / 4` NPUs, full bisection bandwidth.

    `k` pods of `k / 2` edge and `k / 2` agg switches; every edge switch has `k / 2` NPUs; agg switch `j` of
    each pod is linked to core switches `j * k / 2` to `(j + 1) * k / 2 - 1`. Switches are named `edge0`,
    ..., `agg0`, ..., `core0`, ..., pod by pod.

    Parameters
    ----------
    k
        Ports of each switch, an even number.
    bandwidth
        Of each link, one direction.
    latency
        Of each link.

    References
    ----------
    Al-Fares, Loukissas, Vahdat: A scalable, commodity data center network architecture, SIGCOMM 2008.
    """
    return build("fat_tree", k=k, bandwidth=bandwidth, latency=latency)


def rail(
    nodes: int,
    npus: int,
    spines: int = 0,
    *,
    bandwidth: Quantity,
    latency: Duration,
    node_bandwidth: Quantity | None = None,
    node_latency: Duration | None = None,
) -> Topology:
    r"""A rail-optimised pod: NPU i of every node is linked to rail switch i, and rails to every spine.

    ::

          rail0     rail1          NPU i of node n is npu(n * npus + i)
          |    \   /    |
          |     \ /     |          npu2 - rail0, npu3 - rail1
        npu0    npu1   npu2 ...
           \    /
          switch0 (of node 0)

    The NPUs of a node are joined by a switch, as of NVLink. The nodes are its groups. Switches are named
    `switch0`, ..., `rail0`, ..., `spine0`, ...

    Parameters
    ----------
    nodes
        Nodes of the pod.
    npus
        NPUs in each node, which is the number of rails.
    spines
        Switches to each of which every rail switch is linked. Without any, NPUs of unlike places reach
        each other through their nodes.
    bandwidth
        Of each link to a rail switch or a spine, one direction.
    latency
        Of each link to a rail switch or a spine.
    node_bandwidth
        Of each link between an NPU and its node's switch.
        As `bandwidth` where it is left out.
    node_latency
        Of each link between an NPU and its node's switch.
        As `latency` where it is left out.

    References
    ----------
    Wang et al.: Rail-only, a low-cost high-performance network for training LLMs with trillion
    parameters, Hot Interconnects 2024, section II (the rail-optimised network it starts from).
    """
    return build(
        "rail",
        nodes=nodes,
        npus=npus,
        spines=spines,
        bandwidth=bandwidth,
        latency=latency,
        node_bandwidth=node_bandwidth,
        node_latency=node_latency,
    )


def box(
    nodes: int,
    npus: int,
    nics: int | None = None,
    *,
    bandwidth: Quantity,
    latency: Duration,
    node_bandwidth: Quantity | None = None,
    node_latency: Duration | None = None,
) -> Topology:
    """Nodes of NPUs with network interfaces (NICs), all of which one switch joins.

    The NPUs of a node are joined by a switch of their own. The nodes are its groups. NPUs share the
    interfaces evenly, neighbours the same one: NPU i of a node is linked to interface `i * nics / npus`.
    From NPU to NPU of another node there are four links. Switches are named `switch0`, ... (of the nodes),
    `nic0_0`, ... (node, interface) and `net`.

    Parameters
    ----------
    nodes
        Nodes in all.
    npus
        NPUs in each node.
    nics
        Network interfaces of each node, which divide its NPUs.
        As `npus` where it is left out.
    bandwidth
        Of each link to and from a NIC, one direction.
    latency
        Of each link to and from a NIC.
    node_bandwidth
        Of each link between an NPU and its node's switch.
        As `bandwidth` where it is left out.
    node_latency
        Of each link between an NPU and its node's switch.
        As `latency` where it is left out.
    """
    return build(
        "box",
        nodes=nodes,
        npus=npus,
        nics=nics,
        bandwidth=bandwidth,
        latency=latency,
        node_bandwidth=node_bandwidth,
        node_latency=node_latency,
    )


def planes(
    npus: int,
    planes: int,
    *,
    bandwidth: Quantity,
    latency: Duration,
) -> Topology:
    """NPUs, each linked to every one of some switches, as the chips of an NVLink switch system.

    The switches are named `plane0`, ...

    Parameters
    ----------
    npus
        NPUs in all.
    planes
        Switches, to each of which every NPU is linked.
    bandwidth
        Of each link, one direction.
    latency
        Of each link.

    References
    ----------
    NVIDIA GB200 NVL72: 72 GPUs with 18 links of NVLink 5 each, one to each of 18 switch chips.
    """
    return build("planes", npus=npus, planes=planes, bandwidth=bandwidth, latency=latency)
