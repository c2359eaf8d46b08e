"""The accelerators and the links between them, as the model of training times needs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hocket._checks import whole
from hocket._core import Topology
from hocket.errors import SpecError
from hocket.profiles.hardware import Hardware, hardware_of, neighbour_bandwidth
from hocket.units import parse_bandwidth, parse_operations
from hocket.workload.accelerators import Accelerator

CORES = {"v100": 80, "a100": 108, "h100": 132, "b200": 148, "gb300": 160}
"""Streaming multiprocessors of families of accelerators, by NVIDIA's data sheets."""
NOMINAL_POWER = {
    "v100": 300,
    "a100": 400,
    "a100-40gb": 400,
    "h100": 700,
    "h200": 700,
    "b200": 1000,
    "gb200": 1200,
    "gb300": 1400,
    "mi300x": 750,
}
"""What an accelerator may take at most [W], by the makers' data sheets."""
INSIDE = 0.75
"""Share of the nominal bandwidth inside a node that rings reach: 0.66 to 0.78 in published sweeps."""
NIC = 0.88
"""Share of the NICs' nominal bandwidth that rings reach: 0.84 to 0.95 on InfiniBand and RoCE."""
_G = 1e9
_MOST_WATTS = 1 << 20
_USUAL = {
    "v100": Hardware(150 * _G, 50 * _G),
    "a100": Hardware(300 * _G, 200 * _G),
    "h100": Hardware(450 * _G, 400 * _G),
    "b200": Hardware(900 * _G, 400 * _G),
    "gb300": Hardware(900 * _G, 7200 * _G, npus=72),
}
"""Nodes of DGX-1, DGX A100, DGX H100, DGX B200 and DGX GB300, by NVIDIA's data sheets."""
_FAMILIES = {"a100-40gb": "a100", "h200": "h100", "gb200": "b200"}


def family_of(name: str) -> str:
    """Name the accelerator that has the same cores."""
    return _FAMILIES.get(name, name)


@dataclass(frozen=True)
class Machine:
    """NPUs in nodes.

    Attributes
    ----------
    accelerator
        What an NPU can do at most.
    hardware
        Nominal bandwidths inside a node and of its NICs, and NPUs of a node.
    inside
        Share of the bandwidth inside a node that is reached.
    nic
        Share of the NICs' bandwidth that is reached.
    groups
        Bandwidth of an NPU within a group of so many neighbours [bytes/s], where links of a mesh leave less
        than the whole.
    power
        Share of the nominal power that an NPU may take: it computes, and moves numbers, at that share of
        its speed.
    """

    accelerator: Accelerator
    hardware: Hardware
    inside: float = INSIDE
    nic: float = NIC
    groups: Mapping[int, float] = field(default_factory=dict, hash=False)
    power: float = 1.0

    @cached_property
    def peak(self) -> float:
        """Operations a second on numbers of 16 bits."""
        return float(parse_operations(self.accelerator.peak, field="peak"))

    @cached_property
    def memory_bandwidth(self) -> float:
        """The bandwidth of an NPU's memory [bytes/s]."""
        text = self.accelerator.memory_bandwidth
        return float("inf") if text is None else float(parse_bandwidth(text, field="memory"))

    @property
    def family(self) -> str:
        """The accelerator with the same cores."""
        return family_of(self.accelerator.name)

    @property
    def cores(self) -> int:
        """Tiles of a product that are computed at once; 0 where that is not known."""
        return CORES.get(self.family, 0)

    def pass_s(self, size: float, npus: int, near: int, share: int = 1) -> float:
        """Return how long gathering or scattering takes over a ring [s].

        Parameters
        ----------
        size
            What every NPU has in the end, or had at the beginning [bytes].
        npus
            Of the group.
        near
            How many of them are on one node.
        share
            Groups that use a node's NICs at once.
        """
        if npus <= 1:
            return 0.0
        carried = size * (npus - 1) / npus
        if near >= npus:
            return carried / (self.groups.get(npus, self.hardware.bandwidth) * self.inside)
        between = carried * share / (self.hardware.nic_bandwidth * self.nic)
        return max(between, carried / (self.hardware.bandwidth * self.inside))


def share_of_power(watts: int, accelerator: Accelerator) -> float:
    """Return the share of its nominal power that an accelerator is limited to.

    Raises
    ------
    SpecError
        If the limit is above it, or it is not known.
    """
    nominal = NOMINAL_POWER.get(accelerator.name)
    if nominal is None:
        wrong = f"the nominal power of {accelerator.name!r} is not known"
        raise SpecError("power", wrong, "leave it out, and give efficiency")
    if whole("power", watts, 1, _MOST_WATTS) > nominal:
        wrong = f"{watts} W is above the nominal {nominal} W of {accelerator.name!r}"
        raise SpecError("power", wrong, f"give at most {nominal}")
    return watts / nominal


def usual_hardware(accelerator: Accelerator) -> Hardware:
    """Return the node that an accelerator usually comes in.

    Raises
    ------
    SpecError
        If that is not known.
    """
    found = _USUAL.get(family_of(accelerator.name))
    if found is None:
        wrong = f"in which nodes {accelerator.name!r} comes is not known"
        raise SpecError("topology", wrong, "name a topology that has such nodes")
    return found


def machine_of(topology: Topology, accelerator: Accelerator) -> Machine:
    """Read off a topology what the law needs; its groups are the nodes, of which there may be more.

    Raises
    ------
    InfeasibleError
        If nodes have a single NPU, or do not reach each other.
    """
    hardware = hardware_of(topology)
    sizes = [1 << power for power in range(1, 8) if 1 << power < hardware.npus]
    within = {size: neighbour_bandwidth(topology, size) for size in sizes}
    groups = {size: rate for size, rate in within.items() if 0 < rate < 0.999 * hardware.bandwidth}
    return Machine(accelerator, hardware, groups=groups)
