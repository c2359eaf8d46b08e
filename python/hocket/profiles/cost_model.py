"""The law: how long a collective takes on a real machine, by algorithm and protocol, from few constants.

A library moves data by one of three protocols, each with a fixed cost, a cost a step and the share of the
nominal bandwidth that it reaches. Of all ways (algorithm and protocol) the fastest counts. Near the size at
which two ways are as quick, the minimum is smooth; so is each maximum below, where two parts of a machine
are as busy (exponent 8). Starting the kernel takes time as well, most of it beside the work of the kernel
before: time = (launch^4 + way^4)^(1/4).

With S bytes, n NPUs on m nodes, p = n / m, B what an NPU sends inside its node and N what a node sends
over its NICs; k steps (2 (n - 1) for an all-reduce, else n - 1), I of them between nodes (2 (m - 1), else
m - 1), and W bytes through each NPU (S times the bus factor). Up a tree and down again go T = 2 S bytes, of
two nodes over NICs that need no processor S, as each is the root of half:

==============  ====================================================================================
ring            fixed + far [m > 1] + (k - I) step + I hop + max(W / (B e), W / (N h))
tree            all-reduce, m > 1: fixed + far + 2 ((p - 1) step + log2(m) hop)
                + max(2 S / (t B e), T / (N h))
NVLS            all-reduce inside a node whose switches sum, n > 4: fixed + S (1 + 1 / n) / (B e)
NVLS tree       all-reduce, m > 1, p > 4: fixed + far + 2 log2(m) hop
                + max(S (1 + 1 / p) / (B e), T / (N h))
CollNet         all-reduce, m > 1, switches between nodes that sum (SHARP): fixed + far + 2 hop
                + max(S (1 + 1 / p) / (B e), S / (N h))
point to point  fixed + ramp c / (c + 1 MiB) + (p - 1) peer + (n - p) hop
                + max(channel, inside, (U + V) / (N h)), with c bytes to each peer; of a shift h falls
                with the nodes, by (m / 2)^-spread
==============  ====================================================================================

U is what a node sends to other nodes, V the first chunk of it for each pair of NPUs.

Source: NCCL's own model of its algorithms (src/graph/tuning.cc, 2.30) for the steps and the bytes of each;
published sweeps for the form and the priors of the constants. docs/machines-accuracy.md has the errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hocket.fitting.constants import Constant
from hocket.profiles.hardware import Hardware
from hocket.profiles.measurement import COLLECTIVES, Measurement

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

PROTOCOLS = ("ll", "ll128", "simple")
KINDS = tuple(COLLECTIVES.values())
"""Of collectives, in the order of the numbers in :class:`Cells`."""

_LAUNCH = 4
"""Exponent with which a launch is hidden behind the kernel before."""
_P2P_CHUNK = 128 << 10
"""Bytes of a peer that are sent between nodes at once (NCCL_P2P_NET_CHUNKSIZE)."""
_RAMP = 1 << 20
"""Bytes to a peer at which half of what large ones cost more has come."""
_FEWEST_NVLS = 4
"""NPUs up to which NCCL does not use NVLS."""


def _constants() -> dict[str, Constant]:
    found: dict[str, Constant] = {}
    inside = {
        "ll": (8.0, 0.8, 0.10, 0.6),
        "ll128": (25.0, 2.0, 0.6, 0.3),
        "simple": (45.0, 3.0, 0.77, 0.2),
    }
    for protocol, (fixed, step, share, width) in inside.items():
        found[f"{protocol}.fixed"] = Constant(fixed, 0.6, "us", "fixed cost")
        found[f"{protocol}.step"] = Constant(step, 0.6, "us", "cost of a step inside a node")
        found[f"{protocol}.efficiency"] = Constant(share, width, "", "share of the NPU's bandwidth")
    found["tree.efficiency"] = Constant(0.75, 0.15, "", "what trees reach of it, of rings' share")
    found["nvls.fixed"] = Constant(60.0, 0.5, "us", "fixed cost of sums by switches")
    found["nvls.efficiency"] = Constant(0.65, 0.4, "", "share of the NPU's bandwidth")
    found["p2p.fixed"] = Constant(18.0, 0.6, "us", "fixed cost of point-to-point")
    found["p2p.ramp"] = Constant(57.0, 0.5, "us", "what large messages to a peer cost more")
    found["p2p.peer"] = Constant(1.0, 0.6, "us", "cost of a peer inside the node")
    found["p2p.efficiency"] = Constant(0.75, 0.6, "", "share of the NPU's bandwidth")
    found["p2p.channel"] = Constant(0.0142, 0.6, "MB/us", "bandwidth of the channel of one peer")
    found["p2p.whole"] = Constant(2.5e6, 0.6, "B", "bytes to a peer that one channel carries")
    between = {"ll": (6.0, 5.0, 0.1), "ll128": (8.0, 8.0, 0.4), "simple": (20.0, 8.0, 0.88)}
    for protocol, (hop, fixed, share) in between.items():
        found[f"{protocol}.hop"] = Constant(
            hop, 0.8, "us", "cost of a step between nodes", "fabric"
        )
        found[f"{protocol}.far"] = Constant(fixed, 0.8, "us", "fixed cost between nodes", "fabric")
        found[f"{protocol}.nic"] = Constant(
            share, 0.5, "", "share of the NICs' bandwidth", "fabric"
        )
    found["p2p.hop"] = Constant(3.0, 0.8, "us", "cost of a peer on another node", "fabric")
    found["p2p.nic"] = Constant(0.75, 0.5, "", "share of the NICs' bandwidth", "fabric")
    found["p2p.spread"] = Constant(
        0.4, 0.2, "", "exponent by which a shift's share falls with the nodes", "fabric"
    )
    found["sharp.nic"] = Constant(0.7, 0.2, "", "share of the NICs' bandwidth", "fabric")
    return found


CONSTANTS = _constants()
"""By name, with their priors: medians over published sweeps, and how far families of GPUs lie apart."""


@dataclass(frozen=True)
class Cells:
    """The times that are asked for, one row each.

    Attributes
    ----------
    kind
        Position in ``KINDS``, (rows,).
    size, npus, nodes
        Of each row, (rows,); sizes as nccl-tests states them [bytes].
    bandwidth, nic
        Nominal, of an NPU and of a node's NICs [bytes/us], (rows,).
    sums
        Whether switches of a node sum, (rows,).
    sums_between
        Whether those between nodes do (SHARP), (rows,).
    by_processor
        Whether processors serve the NICs (sockets), (rows,).
    protocols
        Which of ``PROTOCOLS`` may be used, (rows, protocols).
    """

    kind: NDArray[np.int64]
    size: Floats
    npus: Floats
    nodes: Floats
    bandwidth: Floats
    nic: Floats
    sums: NDArray[np.bool_]
    sums_between: NDArray[np.bool_]
    by_processor: NDArray[np.bool_]
    protocols: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.size)


def cells_of(rows: Sequence[Measurement], hardware: Hardware) -> Cells:
    """Return what is asked for by rows of one machine."""
    count = len(rows)
    is_all = np.array([row.kind == "all-to-all" for row in rows], bool)
    inside, nics = hardware.bandwidth, hardware.nic_bandwidth
    return Cells(
        np.array([KINDS.index(row.kind) for row in rows], np.int64),
        np.array([row.size for row in rows], np.float64),
        np.array([row.npus for row in rows], np.float64),
        np.array([row.nodes for row in rows], np.float64),
        np.where(is_all, hardware.spread or inside, inside) * 1e-6,
        np.maximum(np.where(is_all, hardware.nic_spread or nics, nics), 1.0) * 1e-6,
        np.full(count, hardware.sums),
        np.full(count, hardware.sums_between),
        np.full(count, hardware.by_processor),
        np.tile([each not in hardware.without for each in PROTOCOLS], (count, 1)),
    )


def joined(parts: Sequence[Cells]) -> Cells:
    """Return the cells of several machines as one."""
    names = Cells.__dataclass_fields__
    return Cells(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


_SHARES = np.array(
    [
        {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1, "all-to-all": 1}.get(kind, 0)
        for kind in KINDS
    ]
)
"""How often a collective's data, but for an NPU's own share, crosses the busiest link; 0: all of it."""


def bus_factors(kind: NDArray[np.int64], npus: Floats) -> Floats:
    """Return busbw over algbw of collectives by their numbers, as nccl-tests has it (PERFORMANCE.md)."""
    share = (npus - 1) / npus
    factors: Floats = np.where(_SHARES[kind] > 0, _SHARES[kind] * share, 1.0)
    return factors


def ways_of(cells: Cells, values: Mapping[str, float | Floats]) -> dict[tuple[str, str], Floats]:
    """Return the time of each algorithm and protocol without launch [us]; infinite if there is none.

    Parameters
    ----------
    cells
        What is asked for.
    values
        Constants by name, in the units of :data:`CONSTANTS`, of all cells or of each, (rows,); those of
        fabrics may be missing where no cell has several nodes.
    """
    kind, size, npus, nodes = cells.kind, cells.size, cells.npus, cells.nodes
    near = npus / nodes
    is_sum = kind == KINDS.index("all-reduce")
    is_all = kind == KINDS.index("all-to-all")
    is_p2p = is_all | (kind == KINDS.index("send-receive"))
    is_far = nodes > 1
    steps = np.where(is_sum, 2, 1) * (npus - 1)
    between = np.where(is_sum, 2, 1) * (nodes - 1)
    carried = size * bus_factors(kind, npus)
    levels = np.log2(nodes)
    # Of two nodes each is the root of half, and sends the other half only.
    rooted = np.where((nodes > 2) | cells.by_processor, 2 * size, size)

    def value(name: str, other: float) -> float | Floats:
        return values.get(name, other)

    ways: dict[tuple[str, str], Floats] = {}
    for place, protocol in enumerate(PROTOCOLS):
        fixed, step = values[f"{protocol}.fixed"], values[f"{protocol}.step"]
        inside = cells.bandwidth * values[f"{protocol}.efficiency"]
        hop, far = value(f"{protocol}.hop", 0.0), value(f"{protocol}.far", 0.0)
        outside = cells.nic * value(f"{protocol}.nic", 1.0)
        fixed_here = fixed + is_far * far
        can = cells.protocols[:, place] & ~is_p2p
        moved = (near > 1) * carried / inside
        moved = np.where(is_far, _longer(moved, carried / outside), moved)
        ring = fixed_here + (steps - between) * step + between * hop + moved
        ways["ring", protocol] = np.where(can, ring, np.inf)
        tree = fixed_here + 2 * ((near - 1) * step + levels * hop)
        up = (near > 1) * 2 * size / (values["tree.efficiency"] * inside)
        tree = tree + _longer(up, rooted / outside)
        ways["tree", protocol] = np.where(can & is_sum & is_far, tree, np.inf)
    by_switch = cells.bandwidth * values["nvls.efficiency"]
    can = is_sum & cells.sums
    nvls = values["nvls.fixed"] + size * (1 + 1 / npus) / by_switch
    ways["nvls", "simple"] = np.where(can & ~is_far & (npus > _FEWEST_NVLS), nvls, np.inf)
    inside = size * (1 + 1 / near) / by_switch
    trunk = _longer(inside, rooted / (cells.nic * value("simple.nic", 1.0)))
    start, hop = values["nvls.fixed"] + value("simple.far", 0.0), value("simple.hop", 0.0)
    nvls_tree = start + 2 * levels * hop + trunk
    ways["nvls-tree", "simple"] = np.where(can & is_far & (near > _FEWEST_NVLS), nvls_tree, np.inf)
    if cells.sums_between.any():
        moved = _longer(inside, size / (cells.nic * value("sharp.nic", 1.0)))
        can = is_sum & is_far & cells.sums_between
        ways["collnet", "simple"] = np.where(can, start + 2 * hop + moved, np.inf)
    ways["point-to-point", "simple"] = np.where(is_p2p, _point_to_point(cells, values), np.inf)
    return ways


def _point_to_point(cells: Cells, values: Mapping[str, float | Floats]) -> Floats:
    """Return what an all-to-all or a shift takes without launch [us], (rows,)."""
    size, npus, nodes = cells.size, cells.npus, cells.nodes
    near = npus / nodes
    is_all, is_far = cells.kind == KINDS.index("all-to-all"), nodes > 1

    def value(name: str, other: float) -> float | Floats:
        return values.get(name, other)

    peer = np.where(is_all, size / npus, size)
    carried = 1 / _longer(1 / peer, 1 / np.asarray(values["p2p.whole"]))
    channel = carried / (values["p2p.channel"] * 1e6)
    own = np.where(is_all, size * (near - 1) / npus, size)
    own = np.where(near > 1, own, 0.0) / (cells.bandwidth * values["p2p.efficiency"])
    # Of a shift only one NPU of a node sends to another node, over its own NICs.
    out = np.where(is_all, near * size * (npus - near) / npus, near * size)
    # The first chunk of each peer is received before any of it is passed on.
    first = np.where(is_all, near * (npus - near), near) * np.minimum(peer, _P2P_CHUNK)
    fewer = np.where(is_all, 1.0, (np.maximum(nodes, 2) / 2) ** -value("p2p.spread", 0.0))
    out = np.where(is_far, (out + first) / (cells.nic * value("p2p.nic", 1.0) * fewer), 0.0)
    peers = np.where(is_all, near - 1, np.minimum(near - 1, 1))
    far_peers = np.where(is_all, npus - near, np.minimum(npus - near, 1))
    apart = values["p2p.fixed"] + values["p2p.ramp"] * peer / (peer + _RAMP)
    apart = apart + values["p2p.peer"] * peers + value("p2p.hop", 0.0) * far_peers
    found: Floats = apart + _longer(channel, _longer(own, out))
    return found


def _longer(one: Floats, other: Floats) -> Floats:
    """Return the smooth maximum of two that go on at once: near the point at which they are as long."""
    found: Floats = np.sqrt(np.sqrt(np.sqrt(_eighth(one) + _eighth(other))))
    return found


def _eighth(value: Floats) -> Floats:
    """Return the eighth power: how sharp the smooth maximum and minimum are."""
    square = value * value
    fourth = square * square
    return fourth * fourth


def times(cells: Cells, values: Mapping[str, float | Floats], launch: Floats) -> Floats:
    """Return how long each cell takes by the law [us].

    Parameters
    ----------
    launch
        What launching takes for each cell [us], (rows,).
    """
    return quickest(np.array(list(ways_of(cells, values).values())), launch)


def quickest(ways: Floats, launch: Floats) -> Floats:
    """Return how long each cell takes by the ways that there are, (ways, rows) without launch [us]."""
    least = ways.min(axis=0)
    smooth = least / np.sqrt(np.sqrt(np.sqrt(_eighth(least / ways).sum(axis=0))))
    return behind(launch, smooth)


def behind(launch: Floats, work: Floats) -> Floats:
    """Return what work takes with a launch that hides behind the work before it [us]."""
    together: Floats = np.sqrt(np.sqrt((launch * launch) ** 2 + (work * work) ** 2))
    return together


def launch_behind(together: float, work: float) -> float:
    """Return the launch with which work takes so long [us], the inverse of :func:`behind`, or 0."""
    launch: float = max(together**_LAUNCH - work**_LAUNCH, 0.0) ** (1 / _LAUNCH)
    return launch
