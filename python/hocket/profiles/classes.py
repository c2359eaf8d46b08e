"""Classes of boxes, fabrics and launches, of which a profile is composed: ``h100+ib``.

A box is a node with its GPUs, a fabric joins boxes, and a launch is how a program starts a collective. The
constants of each class are in a file of their own (``shipped/boxes``, ``shipped/fabrics``); here are the
facts that nobody has to measure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Box:
    """A class of nodes.

    Attributes
    ----------
    what
        The machines that it is.
    bandwidth
        Nominal, of a GPU inside its node, one direction [bytes/s].
    is_switched
        Whether switches join its GPUs.
    can_sum
        Whether these may sum (NVLink SHARP).
    gpus
        Names of its GPUs in dumps, as ``"sm90"``.
    rack
        What a node of more than 8 GPUs sends to others at most, whatever its NICs could [bytes/s]; 0: as
        much as they can.
    """

    what: str
    bandwidth: float
    is_switched: bool
    can_sum: bool
    gpus: tuple[str, ...]
    rack: float = 0.0


@dataclass(frozen=True)
class Fabric:
    """A class of what joins nodes.

    Attributes
    ----------
    what
        The machines that have it.
    latency
        What is known of its latencies, over those of InfiniBand; 1 if nothing.
    without
        Protocols that are not used over it.
    by_processor
        Whether processors serve its NICs (sockets).
    most
        What a node sends over it at most, whatever its NICs could [bytes/s]; 0: as much as they can.
    can_sum
        Whether its switches may sum (SHARP).
    """

    what: str
    latency: float = 1.0
    without: tuple[str, ...] = ()
    by_processor: bool = False
    most: float = 0.0
    can_sum: bool = False


_G = 1e9
BOX_NPUS = 8
"""GPUs of a node at most; more are a rack."""
BOXES: Mapping[str, Box] = {
    "v100": Box("V100, NVLink in a cube mesh or NVSwitches", 150 * _G, False, False, ("sm70",)),
    "a100": Box("A100, NVSwitches", 300 * _G, True, False, ("sm80",)),
    "a100-mesh": Box("4 A100, each linked to each", 300 * _G, False, False, ("sm80",)),
    "h100": Box("H100 or H200, NVSwitches", 450 * _G, True, True, ("sm90",)),
    "gh200": Box("4 GH200, each linked to each", 450 * _G, False, False, ("sm90",)),
    "b200": Box(
        "B200, B300, GB200 or GB300, NVSwitches", 900 * _G, True, True, ("sm100", "sm103"), 400 * _G
    ),
    "mi300x": Box("MI300X or MI325X, each linked to each", 336 * _G, False, False, ("gfx942",)),
    "mi350x": Box("MI350X or MI355X, each linked to each", 403.2 * _G, False, False, ("gfx950",)),
}
"""Bandwidths by the makers' specifications; of AMD's links three quarters, as RCCL counts them.

Racks of 72 GB200 reach 400 GB/s with one another, in the tables of two owners."""

FABRICS: Mapping[str, Fabric] = {
    "ib": Fabric("InfiniBand, or RoCE with NVIDIA's NICs", can_sum=True),
    "roce-amd": Fabric("RoCE among nodes of AMD GPUs", 2.0),
    "slingshot": Fabric("Slingshot, NICs over PCI Express", without=("ll128",)),
    "slingshot-gh": Fabric("Slingshot, a NIC for each superchip", without=("ll128",)),
    "efa0": Fabric("EFA of p3dn", 5.0, ("ll128",)),
    "efa1": Fabric("EFA of p4d and p4de", 2.5, ("ll128",)),
    "efa2": Fabric("EFA of p5", 2.5),
    "efa3": Fabric("EFA of p5e, p5en, p6 and later", 1.2),
    "tcp": Fabric("sockets", without=("ll128",), by_processor=True, most=3.4 * _G),
    "tcpx": Fabric("GPUDirect-TCPX, a3-highgpu", without=("ll",)),
    "tcpxo": Fabric("GPUDirect-TCPXO, a3-megagpu", without=("ll",)),
}
"""Latencies of EFA as its plugin states them (150, 75 and 35 us), over 30 us; of AMD's as RCCL's table of
costs has its hops over NCCL's. Protocols by the guides of the makers of each fabric: AWS's plugin asks for
Simple where stores of 128 bytes are not in order, GCP's guide to TCPX for Simple and LL128."""
