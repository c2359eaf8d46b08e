"""The law: how long a collective takes on a real machine, by algorithm and protocol, from few constants.

A library moves data by one of three protocols, each with a fixed cost, a cost a step and the share of the
nominal bandwidth that it reaches. Of all ways (algorithm and protocol) the fastest counts; near the size
at which two are as quick, the minimum is smooth. Starting the kernel takes time as well, most of it beside
the work of the kernel before: time = (launch^4 + way^4)^(1/4).

With S bytes, n NPUs on m nodes, p = n / m, B what an NPU sends inside its node and N what a node sends
over its NICs; k steps (2 (n - 1) for an all-reduce, else n - 1), I of them between nodes (2 (m - 1), else
m - 1), and W bytes through each NPU (S times the bus factor):

==============  ====================================================================================
ring            fixed + fabric fixed [m > 1] + (k - I) step + I hop + max(W / (B e), W / (N h))
tree            all-reduce, m > 1: fixed + fabric fixed + 2 ((p - 1) step + log2(m) hop)
                + max(2 S / (0.8 B e), 2 (m - 1) / m S / (N h))
NVLS            all-reduce inside a node whose switches sum, n > 4: fixed + S (1 + 1 / n) / (B e)
NVLS tree       all-reduce, m > 1, p > 4: fixed + fabric fixed + 2 log2(m) hop
                + max(S (1 + 1 / p) / (B e), 2 (m - 1) / m S / (N h))
point to point  fixed + (p - 1) peer + (n - p) far peer + max(channel, inside, (U + V) / (N h))
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

_SHARPNESS = 8
"""Of the smooth minimum over ways."""
_LAUNCH = 4
"""Exponent with which a launch is hidden behind the kernel before."""
_TREE_SHARE = 0.8
"""What trees reach of the bandwidth of rings inside a node."""
_P2P_CHUNK = 128 << 10
"""Bytes of a peer that are sent between nodes at once (NCCL_P2P_NET_CHUNKSIZE)."""
_FEWEST_NVLS = 4
"""NPUs up to which NCCL does not use NVLS."""


def _constants() -> dict[str, Constant]:
    found: dict[str, Constant] = {}
    inside = {"ll": (8.0, 0.8, 0.10), "ll128": (25.0, 2.0, 0.45), "simple": (45.0, 3.0, 0.77)}
    for protocol, (fixed, step, share) in inside.items():
        found[f"{protocol}.fixed"] = Constant(fixed, 0.6, "us", "fixed cost")
        found[f"{protocol}.step"] = Constant(step, 0.6, "us", "cost of a step inside a node")
        found[f"{protocol}.efficiency"] = Constant(share, 0.6, "", "share of the NPU's bandwidth")
    found["nvls.fixed"] = Constant(45.0, 0.6, "us", "fixed cost of sums by switches")
    found["nvls.efficiency"] = Constant(0.69, 0.6, "", "share of the NPU's bandwidth")
    found["p2p.fixed"] = Constant(20.0, 0.6, "us", "fixed cost of point-to-point")
    found["p2p.peer"] = Constant(1.0, 0.6, "us", "cost of a peer inside the node")
    found["p2p.efficiency"] = Constant(0.75, 0.6, "", "share of the NPU's bandwidth")
    found["p2p.channel"] = Constant(0.0142, 0.6, "MB/us", "bandwidth of the channel of one peer")
    found["p2p.whole"] = Constant(2.5e6, 0.6, "B", "bytes to a peer that one channel carries")
    between = {"ll": (6.0, 5.0, 0.1), "ll128": (8.0, 8.0, 0.6), "simple": (20.0, 8.0, 0.88)}
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
        Whether switches sum, (rows,).
    """

    kind: NDArray[np.int64]
    size: Floats
    npus: Floats
    nodes: Floats
    bandwidth: Floats
    nic: Floats
    sums: NDArray[np.bool_]

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
    )


def joined(parts: Sequence[Cells]) -> Cells:
    """Return the cells of several machines as one."""
    names = Cells.__dataclass_fields__
    return Cells(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def bus_factors(kind: NDArray[np.int64], npus: Floats) -> Floats:
    """Return busbw over algbw of collectives by their numbers, as nccl-tests has it (PERFORMANCE.md)."""
    halves = [KINDS.index(each) for each in ("all-gather", "reduce-scatter", "all-to-all")]
    share = (npus - 1) / npus
    is_sum = kind == KINDS.index("all-reduce")
    factors: Floats = np.where(is_sum, 2 * share, np.where(np.isin(kind, halves), share, 1.0))
    return factors


def ways_of(cells: Cells, values: Mapping[str, float]) -> dict[tuple[str, str], Floats]:
    """Return the time of each algorithm and protocol without launch [us]; infinite if there is none.

    Parameters
    ----------
    cells
        What is asked for.
    values
        Constants by name, in the units of :data:`CONSTANTS`; those of fabrics may be missing where no
        cell has several nodes.
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
    wire = 2 * (nodes - 1) / nodes * size

    def value(name: str, other: float) -> float:
        return values.get(name, other)

    ways: dict[tuple[str, str], Floats] = {}
    for protocol in PROTOCOLS:
        fixed, step = values[f"{protocol}.fixed"], values[f"{protocol}.step"]
        inside = cells.bandwidth * values[f"{protocol}.efficiency"]
        hop, far = value(f"{protocol}.hop", 0.0), value(f"{protocol}.far", 0.0)
        outside = cells.nic * value(f"{protocol}.nic", 1.0)
        fixed_here = fixed + is_far * far
        moved = np.where(near > 1, carried / inside, 0.0)
        moved = np.where(is_far, np.maximum(moved, carried / outside), moved)
        ring = fixed_here + (steps - between) * step + between * hop + moved
        ways["ring", protocol] = np.where(is_p2p, np.inf, ring)
        tree = fixed_here + 2 * ((near - 1) * step + levels * hop)
        tree = tree + np.maximum(2 * size / (_TREE_SHARE * inside), wire / outside)
        ways["tree", protocol] = np.where(is_sum & is_far, tree, np.inf)
    by_switch = cells.bandwidth * values["nvls.efficiency"]
    can = is_sum & cells.sums
    nvls = values["nvls.fixed"] + size * (1 + 1 / npus) / by_switch
    ways["nvls", "simple"] = np.where(can & ~is_far & (npus > _FEWEST_NVLS), nvls, np.inf)
    far_out = cells.nic * value("simple.nic", 1.0)
    trunk = np.maximum(size * (1 + 1 / near) / by_switch, wire / far_out)
    start = values["nvls.fixed"] + value("simple.far", 0.0)
    nvls_tree = start + 2 * levels * value("simple.hop", 0.0) + trunk
    ways["nvls-tree", "simple"] = np.where(can & is_far & (near > _FEWEST_NVLS), nvls_tree, np.inf)
    peer = np.where(is_all, size / npus, size)
    channel = np.minimum(peer, values["p2p.whole"]) / (values["p2p.channel"] * 1e6)
    own = np.where(is_all, size * (near - 1) / npus, size)
    own = np.where(near > 1, own, 0.0) / (cells.bandwidth * values["p2p.efficiency"])
    # Of a shift only one NPU of a node sends to another node, over its own NICs.
    out = np.where(is_all, near * size * (npus - near) / npus, near * size)
    # The first chunk of each peer is received before any of it is passed on.
    first = np.where(is_all, near * (npus - near), near) * np.minimum(peer, _P2P_CHUNK)
    out = np.where(is_far, (out + first) / (cells.nic * value("p2p.nic", 1.0)), 0.0)
    peers = np.where(is_all, near - 1, np.minimum(near - 1, 1))
    far_peers = np.where(is_all, npus - near, np.minimum(npus - near, 1))
    apart = values["p2p.fixed"] + values["p2p.peer"] * peers + value("p2p.hop", 0.0) * far_peers
    apart = apart + np.maximum(channel, np.maximum(own, out))
    ways["point-to-point", "simple"] = np.where(is_p2p, apart, np.inf)
    return ways


def times(cells: Cells, values: Mapping[str, float], launch: Floats) -> Floats:
    """Return how long each cell takes by the law [us].

    Parameters
    ----------
    launch
        What launching takes for each cell [us], (rows,).
    """
    ways = np.array(list(ways_of(cells, values).values()))
    least = ways.min(axis=0)
    smooth = least * ((least / ways) ** _SHARPNESS).sum(axis=0) ** (-1 / _SHARPNESS)
    return behind(launch, smooth)


def behind(launch: Floats, work: Floats) -> Floats:
    """Return what work takes with a launch that hides behind the work before it [us]."""
    together: Floats = (launch**_LAUNCH + work**_LAUNCH) ** (1 / _LAUNCH)
    return together


def launch_behind(together: float, work: float) -> float:
    """Return the launch with which work takes so long [us], the inverse of :func:`behind`, or 0."""
    launch: float = max(together**_LAUNCH - work**_LAUNCH, 0.0) ** (1 / _LAUNCH)
    return launch
