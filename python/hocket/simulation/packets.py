"""The knobs of packet fidelity: how routers send packets."""

from __future__ import annotations

from dataclasses import dataclass

from hocket.errors import SpecError
from hocket.units import parse_bandwidth, parse_frequency, parse_size, shown

_PS_PER_S = 10**12
_MOST = 10**6
_MOST_CHANNELS = 64


@dataclass(frozen=True)
class Packets:
    """How routers send packets. The defaults are table II of Laskar et al. (HPCA 2024).

    Every device is an input-queued router with virtual cut-through, credits and round-robin turns; a
    head needs three cycles more than the link at each, the flits behind it two.

    Raises
    ------
    SpecError
        Naming the field, for what is no size, rate, frequency or count.

    References
    ----------
    Laskar et al.: Enhancing collective communication in MCM accelerators for deep learning training,
    table II; the stages of a router are BookSim2's.
    """

    packet: str = "8192 B"
    """Of a full packet; a message's last may be shorter."""
    flit: str = "512 B"
    """What is sent at a time, and turns go round by."""
    header_flits: int = 0
    """What each packet has before its bytes."""
    virtual_channels: int = 4
    """Of a link, 64 at most."""
    buffer_flits: int = 318
    """Room of a virtual channel's buffer; at least a packet."""
    clock: str | None = None
    """Of the routers, such as ``"1 GHz"``. The time of a flit on a link, and a link's latency, are rounded
    up to whole cycles. ``None``: 1 GHz, or the lowest of 2, 5, 10, ... GHz that makes no link more than 5 %
    slower."""
    reduction_rate: str | None = None
    """How fast an NPU sums what it has received, such as ``"100 GB/s"``; ``None``: in no time."""

    def __post_init__(self) -> None:
        """Read every field once, so that mistakes are found here."""
        self.to_core()

    @property
    def flit_bytes(self) -> int:
        """Bytes of a flit."""
        return parse_size(self.flit, field="flit")

    def to_core(self) -> dict[str, int | None]:
        """Give the knobs in bytes, picoseconds and bytes per second."""
        cycle = rate = None
        if self.clock is not None:
            clock = parse_frequency(self.clock, field="clock")
            if _PS_PER_S % clock:
                raise SpecError(
                    "clock",
                    f"a cycle of {shown(self.clock)} is no whole number of picoseconds",
                    'write it as "1 GHz" or "500 MHz"',
                )
            cycle = _PS_PER_S // clock
        if self.reduction_rate is not None:
            rate = parse_bandwidth(self.reduction_rate, field="reduction_rate")
        return {
            "packet_bytes": parse_size(self.packet, field="packet"),
            "flit_bytes": self.flit_bytes,
            "header_flits": _count(self.header_flits, "header_flits", least=0),
            "virtual_channels": _count(
                self.virtual_channels, "virtual_channels", most=_MOST_CHANNELS
            ),
            "buffer_flits": _count(self.buffer_flits, "buffer_flits"),
            "cycle_ps": cycle,
            "reduction_rate": rate,
        }


def _count(value: object, field: str, least: int = 1, most: int = _MOST) -> int:
    if type(value) is not int or not least <= value <= most:
        raise SpecError(
            field, f"{shown(value)} is no count", f"give a whole number, {least} to {most}"
        )
    return value


PRESETS = {"mcm": Packets(clock="1 GHz")}
"""By name: ``mcm`` is table II of Laskar et al., a mesh of chiplets."""
