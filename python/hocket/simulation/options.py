"""The fidelities, each with the options that it uses: what it does not use cannot be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

from hocket._checks import one_of
from hocket._options import Frequency, Rate, Size, check_keywords, names_of, options_of
from hocket.collectives.timing import Latency, LinkOrder, Switching
from hocket.errors import SpecError
from hocket.units import parse_bandwidth, parse_frequency, parse_size, shown

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    class FidelityKeywords(TypedDict, total=False):
        """The fields of the options of all fidelities as keywords of a call."""

        order: LinkOrder | None
        switching: Switching | None
        latency_model: Latency
        flow_rate: float | str | None
        packet_size: int | str
        flit_size: int | str
        header_flits: int
        virtual_channels: int
        buffer_flits: int
        clock: float | str | None
        reduction_rate: float | str | None


_PS_PER_S = 10**12
_MAX_COUNT = 10**6
_MAX_CHANNELS = 64


def _check_model(options: object) -> None:
    """Check what options say of order, switching and latency."""
    for field, known in (
        ("order", LinkOrder),
        ("switching", Switching),
        ("latency_model", Latency),
    ):
        value = getattr(options, field, None)
        if value is not None:
            one_of(field, value, get_args(known))


def _count(value: object, field: str, least: int = 1, most: int = _MAX_COUNT) -> int:
    if type(value) is not int or not least <= value <= most:
        raise SpecError(
            field, f"{shown(value)} is not a count", f"give a whole number, {least} to {most}"
        )
    return value


@dataclass(frozen=True, kw_only=True)
class LinkOptions:
    """Link fidelity: each link serves whole messages, one at a time.

    Attributes
    ----------
    order
        How links serve messages: ready (as they come), plan (in plan order, waiting for late ones),
        priority (in plan order, never waiting). Default: the plan's.
    switching
        Switching of devices: store-and-forward or cut-through. Default: the topology's.
    latency_model
        During its latency, a link is free (`overlapped`) or busy (`occupying`, as TACOS counts).

    References
    ----------
    The congestion-aware analytical model of ASTRA-sim (Won et al., ISPASS 2023).
    """

    fidelity: ClassVar[Literal["link"]] = "link"

    order: LinkOrder | None = None
    switching: Switching | None = None
    latency_model: Latency = "overlapped"

    def __post_init__(self) -> None:
        _check_model(self)


@dataclass(frozen=True, kw_only=True)
class FlowOptions:
    """Flow fidelity: transfers are fluids that share links max-min fairly, with no order of service.

    Flows cut through, and latency does not occupy a link.

    Attributes
    ----------
    flow_rate
        Highest rate of a flow at flow fidelity [bytes/s], such as ``"10 GB/s"``. Default: that of its
        links.

    References
    ----------
    Bertsekas and Gallager, Data Networks, section 6.5.2 (max-min fairness).
    """

    fidelity: ClassVar[Literal["flow"]] = "flow"

    flow_rate: Rate | None = None

    def __post_init__(self) -> None:
        if self.flow_rate is not None:
            object.__setattr__(
                self, "flow_rate", parse_bandwidth(self.flow_rate, field="flow_rate")
            )


@dataclass(frozen=True, kw_only=True)
class PacketOptions:
    """Packet fidelity: packets and flits over routers with virtual channels, buffers and credits.

    Every device is an input-queued router with virtual cut-through, credits and round-robin turns; a
    head needs three cycles more than the link at each, the flits behind it two. The defaults are table II
    of Laskar et al. Sizes, rates and frequencies are numbers or text with a unit, kept as numbers.

    Attributes
    ----------
    packet_size
        Bytes of a packet; a message's last may be shorter.
    flit_size
        Bytes of a flit, which is sent at a time, and by which turns go round.
    header_flits
        Header flits of each packet.
    virtual_channels
        Virtual channels of each link, 64 at most.
    buffer_flits
        Flits in the buffer of each virtual channel; at least a packet.
    clock
        Clock of the routers [Hz]; times on a link are whole cycles. Default: ``"1 GHz"``, or higher for
        fast links.
    reduction_rate
        Rate at which an NPU sums [bytes/s], such as ``"100 GB/s"``. Default: sums take no time.
    order
        Order in which links serve messages, as of :class:`LinkOptions`.

    Without a clock, it is the lowest of 1, 2, 5, 10, ... GHz that makes no link more than 5 % slower.

    Raises
    ------
    SpecError
        Naming the field, for what is not a size, rate, frequency or count.

    References
    ----------
    Laskar et al.: Enhancing collective communication in MCM accelerators for deep learning training
    (HPCA 2024), table II; Dally and Towles, Principles and Practices of Interconnection Networks; BookSim2
    (Jiang et al., ISPASS 2013), whose stages and turns it has.
    """

    fidelity: ClassVar[Literal["packet"]] = "packet"

    packet_size: Size = 8192
    flit_size: Size = 512
    header_flits: int = 0
    virtual_channels: int = 4
    buffer_flits: int = 318
    clock: Frequency | None = None
    reduction_rate: Rate | None = None
    order: LinkOrder | None = None

    def __post_init__(self) -> None:
        for name in ("packet_size", "flit_size"):
            object.__setattr__(self, name, parse_size(getattr(self, name), field=name))
        _count(self.header_flits, "header_flits", least=0)
        _count(self.virtual_channels, "virtual_channels", most=_MAX_CHANNELS)
        _count(self.buffer_flits, "buffer_flits")
        if self.clock is not None:
            clock = parse_frequency(self.clock, field="clock")
            if _PS_PER_S % clock:
                raise SpecError(
                    "clock",
                    f"a cycle of {shown(self.clock)} is not a whole number of picoseconds",
                    'write it as "1 GHz" or "500 MHz"',
                )
            object.__setattr__(self, "clock", clock)
        if self.reduction_rate is not None:
            rate = parse_bandwidth(self.reduction_rate, field="reduction_rate")
            object.__setattr__(self, "reduction_rate", rate)
        _check_model(self)

    def to_core(self) -> dict[str, int | None]:
        """Return the options in bytes, picoseconds and bytes per second, without the order."""
        return {
            "packet_bytes": int(self.packet_size),
            "flit_bytes": int(self.flit_size),
            "header_flits": self.header_flits,
            "virtual_channels": self.virtual_channels,
            "buffer_flits": self.buffer_flits,
            "cycle_ps": None if self.clock is None else _PS_PER_S // int(self.clock),
            "reduction_rate": None if self.reduction_rate is None else int(self.reduction_rate),
        }


@dataclass(frozen=True, kw_only=True)
class DimensionOptions:
    """Dimension fidelity: the schedule of a multi-rail plan on its dimensions; fast.

    Attributes
    ----------
    switching
        Switching of devices: store-and-forward or cut-through. Default: the topology's.
    latency_model
        During its latency, a link is free (`overlapped`) or busy (`occupying`).
    """

    fidelity: ClassVar[Literal["dimension"]] = "dimension"

    switching: Switching | None = None
    latency_model: Latency = "overlapped"

    def __post_init__(self) -> None:
        _check_model(self)


TransferOptions: TypeAlias = LinkOptions | FlowOptions | PacketOptions
"""Options of a fidelity at which transfers are simulated."""
FidelityOptions: TypeAlias = TransferOptions | DimensionOptions
"""Options of any fidelity."""

Fidelity = Literal["link", "flow", "packet"]
"""How finely a plan's transfers are simulated."""
FIDELITIES: dict[str, type[FidelityOptions]] = {
    each.fidelity: each for each in (LinkOptions, FlowOptions, PacketOptions, DimensionOptions)
}
PRESETS = {"mcm": PacketOptions(clock="1 GHz")}
"""Options of packet fidelity by name: ``packet:mcm`` is table II of Laskar et al., a mesh of chiplets."""
KEYWORDS = tuple(dict.fromkeys(name for each in FIDELITIES.values() for name in names_of(each)))
"""What the fidelities use together."""


def fidelity_options(
    fidelity: str | FidelityOptions, keywords: Mapping[str, Any]
) -> FidelityOptions:
    """Return the options of a fidelity, with keywords over them.

    Parameters
    ----------
    fidelity
        ``link``, ``flow``, ``packet``, ``packet:mcm`` (a preset) or ``dimension``; or its options.
    keywords
        Options by name; ``None`` where one is not given.

    Raises
    ------
    SpecError
        If there is no such fidelity, or it does not use an option.
    """
    base: FidelityOptions | None
    if isinstance(fidelity, LinkOptions | FlowOptions | PacketOptions | DimensionOptions):
        base = fidelity
        name: str = fidelity.fidelity
    else:
        given_name = str(fidelity)
        name, colon, preset = given_name.partition(":")
        known = (*FIDELITIES, *(f"packet:{each}" for each in PRESETS))
        one_of("fidelity", given_name, known)
        base = PRESETS[preset] if colon else None
    check_keywords(keywords, KEYWORDS)
    kind = FIDELITIES[name]
    given = {key: value for key, value in keywords.items() if value is not None}
    for key in given:
        if key not in names_of(kind):
            use = [each for each in FIDELITIES if key in names_of(FIDELITIES[each])]
            raise SpecError(
                key,
                f"{name} fidelity does not use it",
                f"leave it out, or use {' or '.join(use)} fidelity",
            )
    return options_of(kind, base, given)
