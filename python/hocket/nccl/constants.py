"""Numbers of NCCL's cost model.

Source: NVIDIA/nccl 2.30.7, src/graph/tuning.cc and src/graph/topo.h (Apache-2.0), read at commit 5067397.
Times in microseconds, bandwidths in GB/s.
"""

from __future__ import annotations

from dataclasses import dataclass

VERSION = "2.30.7"

PROTOCOLS = ("LL", "LL128", "Simple")

BASE = {
    "tree": (6.8, 14.0, 8.4),
    "ring": (6.6, 14.0, 8.4),
    "nvls": (0.0, 0.0, 0.0),
    "nvls-tree": (0.0, 0.0, 0.0),
}
"""What starting takes, of each protocol."""

NVLINK = {
    "tree": (0.6, 1.25, 4.0),
    "ring": (0.6, 1.9, 3.4),
    "nvls": (25.0, 25.0, 25.0),
    "nvls-tree": (25.0, 25.0, 25.0),
}
"""A step over NVLink."""
PCI = {
    "tree": (1.0, 1.9, 4.0),
    "ring": (1.0, 2.5, 5.7),
    "nvls": (0.0, 0.0, 0.0),
    "nvls-tree": (0.0, 0.0, 0.0),
}
"""A step over PCI Express."""
NET = {
    "tree": (5.0, 8.5, 14.0),
    "ring": (2.7, 4.0, 14.0),
    "nvls": (18.0, 18.0, 18.0),
    "nvls-tree": (20.9, 20.9, 20.9),
}
"""A step over the network."""

POSTING = {"intel": 1.0, "amd": 2.0, "other": 1.0, "mixed": 1.0}
"""What posting to a NIC takes, by whose processors nodes have; three times that with Simple."""

LL, LL128, SIMPLE = range(3)

MOST_CHANNELS = 64
"""Channels of a communicator, those of its graphs doubled (src/include/device.h)."""
THREADS = {"LL": 512, "LL128": 640, "Simple": 512}
"""Threads of a channel at most."""
THRESHOLDS = {"LL": 8, "LL128": 8, "Simple": 64}
"""Bytes of a thread from which on another channel has work; a ring's with LL that times the ranks."""

TREE_CORRECTION = (
    [1.0] * 4
    + [0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    + [1.0] * 5,
    [1.0] * 5 + [0.9, 0.8, 0.8, 0.8, 0.7] + [0.6] * 6 + [0.8] + [0.9] * 4 + [1.0] * 3,
    [0.9] * 7 + [0.8, 0.7, 0.6, 0.6] + [0.5] * 4 + [0.6, 0.7, 0.8, 0.7, 0.7, 0.8] + [0.9] * 3,
)
"""What a tree reaches of its bandwidth, from 64 bytes upwards by powers of two, of each protocol."""
TREE_CORRECTED = 1 << 29
"""Bytes from which on it is not corrected."""
RING_PLATEAU, RING_PLATEAU_OLD = 1.4, 1.9
"""Factors of a ring's latency over several nodes with Simple, from Ampere on and before."""
RING_LL128 = 0.92
TREE_LL = 3.8
TREE_PLAIN = 0.85
NVLS_MOST_HEADS = 32
"""GPUs of a node that have a channel of sums in switches each (src/include/device.h)."""
NVLS_CHANNELS = {"hopper": (16, 16), "blackwell": (24, 32)}
"""Channels of a communicator that sum in switches, of one node and of several (src/transport/nvls.cc)."""

OLDEST = (2, 21)
"""The oldest version whose model is known: older ones are counted as this one."""
REVISED_FROM = (2, 23)
"""The version from which on a hop of trees with Simple has the latency above, all-gathers and
reduce-scatters over NVLS have its whole bandwidth, and rings take two steps less between nodes."""
SHARES_FROM = (2, 27)
"""From which on these have the bandwidth of what others send alone."""
EFFICIENCY_FROM = (2, 28)
"""From which on NVLS is counted by its efficiency, and its trees by the most that a channel reaches."""
NVLS_TREE_FROM = (2, 28, 9)
"""From which on a hop of NVLS trees over the network has the latency above."""
NVLS_PAIRS_FROM = (2, 28, 7)
"""From which on two GPUs of a node may sum in switches."""
OLD_TREE_SIMPLE = 28.0
"""A hop of trees with Simple before, over whatever; starting took nothing."""
OLD_RING_LL128 = 0.7
"""What rings of one GPU of a node reached before with LL128, instead of `RING_LL128`."""
OLD_NVLS_TREE = 14.0
"""A hop of NVLS trees over the network before."""
OLD_NVLS = 5 / 6
"""What NVLS reached of its channels before it had an efficiency."""


@dataclass(frozen=True)
class Generation:
    """GPUs of one architecture. Triples are of 1, 2, and 4 or more nodes.

    Attributes
    ----------
    nominal, link
        Bandwidth of an NVLink, as its maker states it and as NCCL counts it.
    speeds, speeds_between
        What the search tries for a channel, in a lone node and where there are several.
    ll
        The most that LL reaches in all.
    ring_ll128, tree_ll128, tree, nvls_tree
        The most that a channel reaches.
    nvls
        What switches that sum reach of the links; 0 where there are none.
    """

    name: str
    nominal: float
    link: float
    speeds: tuple[float, ...]
    speeds_between: tuple[float, ...]
    ll: tuple[float, float, float]
    ring_ll128: float
    tree_ll128: tuple[float, float, float]
    tree: tuple[float, float, float]
    nvls_tree: tuple[float, float, float]
    nvls: float
    net_per_100g: float = 12.0


_GENERIC = (40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0)
_SM90 = (60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0)
_SM100 = (90.0, 80.0, 70.0, 60.0, 50.0, 45.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0)
_LEAST = (12.0, 6.0, 3.0, 2.4, 1.2, 0.24, 0.12)
_GENERIC_FAR: tuple[float, ...] = (
    48.0,
    30.0,
    28.0,
    24.0,
    20.0,
    18.0,
    15.0,
    12.0,
    10.0,
    9.0,
    7.0,
    6.0,
    5.0,
    4.0,
    3.0,
)
_GENERIC_FAR += (2.4, 1.2, 0.24, 0.12)
_SM90_FAR = (48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, *_LEAST)
_SM100_FAR = (96.0, 86.0, 80.0, 48.0, 45.1, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, *_LEAST)
_T20 = (20.0, 20.0, 20.0)

GENERATIONS = {
    each.name: each
    for each in (
        Generation(
            "volta",
            25.0,
            20.0,
            _GENERIC,
            _GENERIC_FAR,
            (39.0, 39.0, 20.4),
            20.0,
            _T20,
            (26.5, 18.5, 10.0),
            (26.5, 18.5, 10.0),
            0.0,
        ),
        Generation(
            "ampere",
            25.0,
            20.0,
            _GENERIC,
            _GENERIC_FAR,
            (87.7, 22.5, 19.0),
            20.0,
            _T20,
            (24.0, 23.6, 17.8),
            (24.0, 23.6, 17.8),
            0.0,
        ),
        Generation(
            "hopper",
            25.0,
            20.6,
            _SM90,
            _SM90_FAR,
            (141.0, 45.0, 35.0),
            36.7,
            (36.7, 36.7, 29.0),
            (38.7, 41.4, 36.0),
            (0.0, 57.7, 45.5),
            0.85,
        ),
        Generation(
            "blackwell",
            50.0,
            40.1,
            _SM100,
            _SM100_FAR,
            (282.0, 90.0, 70.0),
            40.0,
            (55.6, 31.67, 20.0),
            (70.0, 42.8, 24.0),
            (0.0, 96.0, 80.0),
            0.74,
        ),
    )
}
"""By name."""
