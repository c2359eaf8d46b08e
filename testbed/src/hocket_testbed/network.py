"""Any topology as namespaces: one for each device, and a cable for each pair of opposite links.

::

    npu0   l0 10.128.0.0  ----  10.128.0.1 l5  npu1        link 0 there, link 5 back
       meet  10.192.0.1  ----  10.192.0.0 m0  meet        where ranks meet, beside the links

Interface ``lI`` of a namespace sends what link I carries, at its rate. A link without another the other way
has a cable of its own, whose far end ``rI`` sends acknowledgements alone. Every connection has an address
at either end, on the loopback interface, and every device on its way a route to each.
"""

from __future__ import annotations

import ipaddress
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction

from hocket import _core
from hocket._checks import instance_of, truth, whole
from hocket.errors import InfeasibleError, SpecError
from hocket.units import Quantity, parse_bandwidth, parse_time, shown
from hocket_testbed.cables import Cable, End, lay
from hocket_testbed.delayed import Delays, lay_delayed
from hocket_testbed.namespaces import batch, check_prefix, make, write_settings
from hocket_testbed.ownership import owned
from hocket_testbed.plan_connections import Connection, Route
from hocket_testbed.rights import check_rights
from hocket_testbed.shaping import GOODPUT, SHORT, shape

__all__ = ["NetworkSpec", "build_network", "carried", "led"]

MAX_DEVICES = 128
MAX_LINKS = 512
_MOST_LATENCY = 10**12
"""More is no link [ps]."""
_LEAST_RATE = 125_000
"""A slower link would take minutes for little [bytes/s]."""
_CONNECTIONS = int(ipaddress.IPv4Address("10.0.0.0"))
_CABLES = int(ipaddress.IPv4Address("10.128.0.0"))
_MEETING = int(ipaddress.IPv4Address("10.192.0.0"))
_SETTINGS = (
    ("ipv4/ip_forward", 1),
    ("ipv4/conf/all/rp_filter", 0),
    ("ipv4/conf/default/rp_filter", 0),
    ("ipv4/tcp_slow_start_after_idle", 0),
    ("ipv4/tcp_no_metrics_save", 1),
)
_CONGESTION = "congctl cubic"
"""The kernel's default may be one that paces, and shares links otherwise."""
_WINDOW = 800
"""Segments that a connection has under way from the start, where links take time."""


def _address(number: int) -> str:
    return str(ipaddress.IPv4Address(number))


@dataclass(frozen=True, kw_only=True)
class NetworkSpec:
    """A network that is to be built.

    Attributes
    ----------
    topology
        What is joined to what.
    rate
        Of its fastest link, as bits on the wire; the others are slower in proportion.
    prefix
        With which the names of its namespaces begin. Two testbeds at a time need two.
    latency
        What each link takes besides bytes, as ``"1 ms"``: a relay holds frames for that long.
    loss
        Share of frames that links drop, of which TCP is to make up for; simulations know nothing of it.
    seed
        From which it is drawn which frames are dropped.
    loopback
        Whether there are no namespaces: ranks then send over the loopback interface, no faster than links
        of these rates and latencies that they share.

    Raises
    ------
    SpecError
        For a network that is too large, or that has what namespaces do not.
    """

    topology: _core.Topology
    rate: Quantity = "200 Mb/s"
    prefix: str = "hocket"
    latency: Quantity = 0
    loss: float = 0.0
    seed: int = 0
    loopback: bool = False
    rates: tuple[int, ...] = field(init=False)
    """Of each link on the wire [bytes/s]."""
    reverse: tuple[int | None, ...] = field(init=False)
    """The link that shares its cable, for each link."""

    def __post_init__(self) -> None:
        topology = instance_of(_core.Topology, "topology", self.topology, "give one of hk.topology")
        check_prefix(self.prefix)
        object.__setattr__(self, "rate", parse_bandwidth(self.rate, field="rate"))
        for what, has, most in (
            ("devices", topology.device_count, MAX_DEVICES),
            ("links", topology.link_count, MAX_LINKS),
        ):
            if has > most:
                why = f"{topology.name} has {has} {what}"
                raise SpecError("topology", why, f"give a network of {most} at most")
        if topology.link_count == 0:
            raise SpecError("topology", f"{topology.name} has no links", "give one that has")
        limits = topology.switch_limits
        for switch, limit in enumerate(limits, topology.npu_count):
            if limit is not None:
                name = topology.device_names[switch]
                why = f"switch {name} has a limit of its own, which a namespace has not"
                raise SpecError("topology", why, "leave the limit out")
        bandwidths = topology.link_bandwidth.tolist()
        fastest = max(bandwidths)
        rates = tuple(int(Fraction(self.rate_bytes * each, fastest)) for each in bandwidths)
        if min(rates) < _LEAST_RATE:
            why = f"its slowest link would have {8 * min(rates) / 1e6:.3g} Mb/s"
            raise SpecError("rate", why, "give a higher rate, so that it has 1 Mb/s at least")
        object.__setattr__(self, "rates", rates)
        object.__setattr__(self, "reverse", _reverses(topology))
        latency = parse_time(self.latency, field="latency")
        if latency > _MOST_LATENCY:
            raise SpecError("latency", f"{shown(self.latency)} is long", "give 1 s at most")
        object.__setattr__(self, "latency", latency)
        loss: object = self.loss
        if isinstance(loss, bool) or not isinstance(loss, int | float) or not 0 <= loss < 1:
            raise SpecError(
                "loss", f"{shown(loss)} is not valid", "give 0, or a share such as 0.01"
            )
        whole("seed", self.seed, 0, (1 << 64) - 1)
        if truth("loopback", self.loopback) and self.loss:
            right = "leave it out, or build namespaces"
            raise SpecError("loss", "the loopback interface drops nothing", right)

    @property
    def latency_ps(self) -> int:
        """The latency of each link [ps]."""
        return int(self.latency)  # type: ignore[arg-type]

    @property
    def delays(self) -> Delays:
        """The losses and delays on its cables."""
        return Delays(self.latency_ps / 1e12, self.loss, self.seed)

    @property
    def goodput(self) -> tuple[int, ...]:
        """The rate of data on each link [bytes/s]."""
        return tuple(max(1, int(rate * GOODPUT)) for rate in self.rates)

    @property
    def rate_bytes(self) -> int:
        """Rate of the fastest link [bytes/s]."""
        return int(self.rate)  # type: ignore[arg-type]

    def device(self, number: int) -> str:
        """Name of a device, as part of its namespace's."""
        npus = self.topology.npu_count
        return f"npu{number}" if number < npus else f"switch{number - npus}"

    def namespace(self, device: str) -> str:
        """Name of the namespace of ``"npu3"``, ``"switch0"`` or ``"meet"``."""
        return f"{self.prefix}-{device}"

    def namespaces(self) -> list[str]:
        """Name all of them, in the order of devices, the one in which ranks meet last."""
        names = [self.device(i) for i in range(self.topology.device_count)]
        return [self.namespace(name) for name in (*names, "meet")]

    def ends(self, link: int) -> tuple[End, End]:
        """Return the ends of the cable of a link: where it is sent from, and where it arrives."""
        other = self.reverse[link]
        first = link if other is None else min(link, other)
        address = _CABLES + 2 * first
        src, dst = self.topology.link_src[link], self.topology.link_dst[link]
        near = End(
            self.namespace(self.device(int(src))), f"l{link}", _address(address + (link != first))
        )
        name = f"r{link}" if other is None else f"l{other}"
        far = End(self.namespace(self.device(int(dst))), name, _address(address + (link == first)))
        return near, far

    def cables(self) -> Iterator[Cable]:
        """Return the cables of all links."""
        for link, other in enumerate(self.reverse):
            if other is None or link < other:
                yield Cable(*self.ends(link))

    def meeting(self, npu: int) -> Cable:
        """Return the cable by which an NPU reaches the place where ranks meet: that end first."""
        address = _MEETING + 2 * npu
        return Cable(
            End(self.namespace("meet"), f"m{npu}", _address(address)),
            End(self.namespace(self.device(npu)), "meet", _address(address + 1)),
        )


def _reverses(topology: _core.Topology) -> tuple[int | None, ...]:
    """Pair each link with one the other way, the first of parallel ones with the first."""
    ends = list(zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True))
    between: dict[tuple[int, int], list[int]] = defaultdict(list)
    for link, pair in enumerate(ends):
        between[pair].append(link)
    reverse: list[int | None] = [None] * len(ends)
    for (src, dst), links in between.items():
        for link, other in zip(links, between.get((dst, src), ()), strict=False):
            reverse[link] = other
    return tuple(reverse)


@contextmanager
def build_network(spec: NetworkSpec) -> Iterator[NetworkSpec]:
    """Build a network, which is there while the block runs and leaves nothing behind.

    Over the loopback interface there is nothing to build.

    Raises
    ------
    SpecError
        For what is not a :class:`NetworkSpec`.
    InfeasibleError
        Where rights, programs or features of the kernel are missing, or another process has the prefix.
    """
    instance_of(NetworkSpec, "spec", spec, "make one by hocket_testbed.NetworkSpec(...)")
    if spec.loopback:
        yield spec
        return
    check_rights()
    with owned(spec.prefix), ExitStack() as stack:
        names = spec.namespaces()
        make(names)
        for name in names:
            write_settings(name, _SETTINGS)
        cables = [*spec.cables()]
        beside = [spec.meeting(npu) for npu in range(spec.topology.npu_count)]
        if spec.delays.needs_relay:
            stack.enter_context(lay_delayed(cables, spec.delays))
            lay(beside)
        else:
            lay([*cables, *beside])
        rates = ((spec.ends(link)[0], rate) for link, rate in enumerate(spec.rates))
        shape(rates, by="receiver", least_burst=SHORT)
        yield spec


@contextmanager
def led(spec: NetworkSpec, connections: Sequence[Connection]) -> Iterator[list[tuple[str, str]]]:
    """Return connections addresses, and lead packets to each along its links, while the block runs.

    Yields the addresses of each connection, at the lower and at the higher rank.
    """
    lines = commands(spec, connections)
    for namespace, group in lines.items():
        batch(group, namespace)
    try:
        yield [addresses_of(number) for number in range(len(connections))]
    finally:
        for namespace, group in lines.items():
            # Routes first: they name addresses.
            undone = sorted((line.replace(" add ", " del ", 1) for line in group), reverse=True)
            batch(undone, namespace)


def addresses_of(number: int) -> tuple[str, str]:
    """Return the addresses of a connection by its number."""
    return _address(_CONNECTIONS + 2 * number + 2), _address(_CONNECTIONS + 2 * number + 3)


def commands(spec: NetworkSpec, connections: Sequence[Connection]) -> dict[str, list[str]]:
    """Return the commands of ``ip`` for each namespace; see :func:`led`."""
    lines: dict[str, list[str]] = defaultdict(list)
    first = _CONGESTION
    if spec.latency_ps:
        first += f" initcwnd {_WINDOW} initrwnd {_WINDOW}"
    for number, each in enumerate(connections):
        addresses = addresses_of(number)
        for device, address in zip(each.devices, addresses, strict=True):
            name = spec.namespace(spec.device(device))
            lines[name].append(f"addr add {address}/32 dev lo")
    for number, each in enumerate(connections):
        low, high = addresses_of(number)
        for source, to, route, other in (
            (low, high, each.forth, each.back),
            (high, low, each.back, each.forth),
        ):
            for i, (near, far) in enumerate(_cables_along(spec, route, other)):
                line = f"route add {to}/32 via {far.address} dev {near.interface}"
                lines[near.namespace].append(f"{line} src {source} {first}" if i == 0 else line)
    return lines


def _cables_along(
    spec: NetworkSpec, route: Route | None, other: Route | None
) -> list[tuple[End, End]]:
    """Return the ends of cables along a way, or back along the other way where there is none."""
    if route is not None:
        return [spec.ends(link) for link in route]
    assert other is not None, "a connection has a way"
    return [(far, near) for near, far in map(spec.ends, reversed(other))]


_CLASS = re.compile(r"class htb 1:1 .*?\n Sent (\d+) bytes", re.DOTALL)


def carried(spec: NetworkSpec) -> list[int]:
    """Return the bytes of frames that each link has carried since it was made, without acknowledgements.

    Raises
    ------
    InfeasibleError
        Where the kernel does not say.
    """
    found = [0] * len(spec.rates)
    of_namespace: dict[str, list[int]] = defaultdict(list)
    for link in range(len(spec.rates)):
        of_namespace[spec.ends(link)[0].namespace].append(link)
    for namespace, links in of_namespace.items():
        asked = "".join(f"class show dev l{link} classid 1:1\n" for link in links)
        done = subprocess.run(
            ["tc", "-s", "-netns", namespace, "-batch", "-"],
            input=asked,
            capture_output=True,
            text=True,
            check=False,
        )
        counts = _CLASS.findall(done.stdout)
        if len(counts) != len(links):
            raise InfeasibleError(None, "the kernel does not say what links carried", origin="tc")
        for link, count in zip(links, counts, strict=True):
            found[link] = int(count)
    return found
