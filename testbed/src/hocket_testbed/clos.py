"""A two-level Clos of namespaces: hosts, ToRs and spines that hash as Linux does.

::

    spine s   10.0.s.2i   ----  10.0.s.2i+1  tor t      i = t * links + link
    tor t     10.t+1.h.0  ----  10.t+1.h.1   host h of the ToR

With IPv6, fd00:10:a:b::c goes with 10.a.b.c, and spine s has segments: fd01:s:u:t:d::1 is reached by link u
and sends on to ToR t by link d, fd01:s:0:ffff::1 is reached by link 0 and sends on as the spine's routes
say.

A ToR's next hops are its links to spine 0, then those to spine 1, and so on; a spine's to a ToR are its
links to that ToR. Each switch hashes addresses, ports and protocol (policy 3) under a seed of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from hocket._checks import instance_of, list_of, whole
from hocket._core import steering as core_steering
from hocket._results import TableResult, figure, picoseconds
from hocket.cluster.hosts import MAX_SEED
from hocket.errors import SpecError
from hocket.steering.hashes import SwitchHash
from hocket.units import Quantity, parse_bandwidth
from hocket_testbed.cables import Cable, End, ipv6_of, lay
from hocket_testbed.namespaces import batch, check_prefix, make, write_settings
from hocket_testbed.ownership import owned
from hocket_testbed.rights import check_rights
from hocket_testbed.shaping import shape

__all__ = ["ClosSpec", "build"]

_FIELDS = 0x37
_FIELDS_IPV6 = 0x3F
"""Addresses, ports, protocol, and the flow label."""
_MOST_SPINES, _MOST_TORS, _MOST_HOSTS, _MOST_LINKS = 256, 64, 256, 16
_MOST_INTERFACES = 128
"""Of a spine, by the addresses that it has."""
_WINDOW = 800
"""Segments that TCP may have under way from the start: more than a mebibyte, so that a flow that shares two
links has something waiting at both."""
_SWITCH = (
    ("ipv4/ip_forward", 1),
    ("ipv4/conf/all/rp_filter", 0),
    ("ipv4/conf/default/rp_filter", 0),
    ("ipv4/fib_multipath_hash_policy", 3),
    ("ipv4/fib_multipath_hash_fields", _FIELDS),
    # Probes ask many times a second, and are answered by the interface that they came in by.
    ("ipv4/icmp_ratelimit", 0),
    ("ipv4/icmp_msgs_per_sec", 100_000),
    ("ipv4/icmp_errors_use_inbound_ifaddr", 1),
)
_BOTH_IPV6 = (
    ("ipv6/conf/all/seg6_enabled", 1),
    ("ipv6/conf/default/seg6_enabled", 1),
    # Addresses are used at once: nobody else has them.
    ("ipv6/conf/default/accept_dad", 0),
)
_SWITCH_IPV6 = (
    *_BOTH_IPV6,
    ("ipv6/conf/all/forwarding", 1),
    ("ipv6/fib_multipath_hash_policy", 3),
    ("ipv6/fib_multipath_hash_fields", _FIELDS_IPV6),
)
_HOST_IPV6 = (
    *_BOTH_IPV6,
    # Flow labels are those that programs set.
    ("ipv6/auto_flowlabels", 0),
)
_HOST = (
    ("ipv4/conf/all/rp_filter", 0),
    ("ipv4/conf/default/rp_filter", 0),
    ("ipv4/tcp_slow_start_after_idle", 0),
    ("ipv4/tcp_no_metrics_save", 1),
)


@dataclass(frozen=True, kw_only=True)
class ClosSpec:
    """A Clos that is to be built.

    Attributes
    ----------
    spines, tors
        Switches of both levels.
    hosts
        Below each ToR.
    links
        Cables between each ToR and each spine; with more than one, spines choose a way as well.
    rate
        What each end of a cable sends [bytes/s], as bits on the wire; None: as fast as the kernel goes.
    seed
        From which each switch's seed is drawn, as ecmp draws it.
    switch_seeds
        Seeds of the ToRs and then of the spines, instead of those drawn.
    ipv6
        Whether every device has addresses of IPv6 as well. Switches then hash flow labels, too, and
        take segments.
    prefix
        With which the names of its namespaces begin. Two testbeds at a time need two.

    Raises
    ------
    SpecError
        Naming the field, for a value that makes no sense.
    """

    spines: int = 4
    tors: int = 4
    hosts: int = 4
    links: int = 1
    rate: Quantity | None = "100 Mb/s"
    seed: int = 0
    switch_seeds: tuple[int, ...] | None = None
    ipv6: bool = False
    prefix: str = "hocket"

    def __post_init__(self) -> None:
        for name, least, most in (
            ("spines", 1, _MOST_SPINES),
            ("tors", 2, _MOST_TORS),
            ("hosts", 1, _MOST_HOSTS),
            ("links", 1, _MOST_LINKS),
            ("seed", 0, MAX_SEED),
        ):
            object.__setattr__(self, name, whole(name, getattr(self, name), least, most))
        instance_of(bool, "ipv6", self.ipv6, "give True or False")
        if self.tors * self.links > _MOST_INTERFACES:
            raise SpecError(
                "links",
                f"{self.links} to each of {self.tors} ToRs are more than {_MOST_INTERFACES} of a spine",
                "give fewer",
            )
        if self.rate is not None:
            object.__setattr__(self, "rate", parse_bandwidth(self.rate, field="rate"))
        if self.switch_seeds is not None:
            self._check_seeds()
        check_prefix(self.prefix)

    def _check_seeds(self) -> None:
        most = 2**32 - 1
        seeds = list_of("switch_seeds", self.switch_seeds)
        checked = tuple(whole("switch_seeds", seed, 1, most) for seed in seeds)
        if len(checked) != self.tors + self.spines:
            switches = f"{self.tors} ToRs and {self.spines} spines"
            raise SpecError(
                "switch_seeds", f"there are {len(checked)} for {switches}", "give one each"
            )
        object.__setattr__(self, "switch_seeds", checked)

    @property
    def rate_bytes(self) -> int | None:
        """The rate [bytes/s]."""
        return None if self.rate is None else int(self.rate)  # type: ignore[arg-type]

    @property
    def host_count(self) -> int:
        """Hosts below all ToRs; host i is below ToR ``i // hosts``."""
        return self.tors * self.hosts

    def tor_of(self, host: int) -> int:
        """Return the number of the ToR above a host."""
        return host // self.hosts

    def namespace(self, device: str) -> str:
        """Name of the namespace of ``"host3"``, ``"tor0"`` or ``"spine1"``."""
        return f"{self.prefix}-{device}"

    def address(self, host: int) -> str:
        """Address of a host."""
        return f"10.{self.tor_of(host) + 1}.{host % self.hosts}.1"

    def tor_seed(self, tor: int) -> int:
        """Return the seed of a ToR's hash."""
        if self.switch_seeds is not None:
            return self.switch_seeds[tor]
        return core_steering.switch_seed(self.seed, 0, tor)

    def spine_seed(self, spine: int) -> int:
        """Return the seed of a spine's hash."""
        if self.switch_seeds is not None:
            return self.switch_seeds[self.tors + spine]
        return core_steering.switch_seed(self.seed, 1, spine)

    def tor_hash(self, tor: int, *, ipv6: bool = False) -> SwitchHash:
        """Hash by which a ToR chooses among its links up."""
        return SwitchHash("linux", self.tor_seed(tor), _FIELDS_IPV6 if ipv6 else _FIELDS)

    def spine_hash(self, spine: int, *, ipv6: bool = False) -> SwitchHash:
        """Hash by which a spine chooses among its links to a ToR."""
        return SwitchHash("linux", self.spine_seed(spine), _FIELDS_IPV6 if ipv6 else _FIELDS)

    def segment(self, way: int, tor: int, link: int) -> str:
        """Return the segment of the spine behind a next hop of ToRs that sends on to a ToR by a link."""
        spine, up = divmod(way, self.links)
        return f"fd01:{spine:x}:{up:x}:{tor:x}:{link:x}::1"

    def spine_segment(self, spine: int) -> str:
        """Return the segment of a spine that sends on by its routes."""
        return f"fd01:{spine:x}:0:ffff::1"

    def uplink(self, way: int) -> str:
        """Name of the interface of a ToR that its next hop leads to."""
        spine, link = divmod(way, self.links)
        return f"up{spine}.{link}"

    def downlink(self, tor: int, link: int) -> str:
        """Name of the interface of a spine that leads to a ToR."""
        return f"tor{tor}.{link}"

    def cables(self) -> Iterator[Cable]:
        """Return all cables: first those of hosts, then those between switches."""
        for host in range(self.host_count):
            tor, below = divmod(host, self.hosts)
            network = f"10.{tor + 1}.{below}"
            yield Cable(
                End(self.namespace(f"tor{tor}"), f"host{host}", f"{network}.0", self.ipv6),
                End(self.namespace(f"host{host}"), "up", f"{network}.1", self.ipv6),
            )
        for tor in range(self.tors):
            for way in range(self.spines * self.links):
                spine, link = divmod(way, self.links)
                yield Cable(
                    End(
                        self.namespace(f"spine{spine}"),
                        self.downlink(tor, link),
                        self.spine_address(spine, tor, link),
                        self.ipv6,
                    ),
                    End(
                        self.namespace(f"tor{tor}"),
                        self.uplink(way),
                        self.tor_address(spine, tor, link),
                        self.ipv6,
                    ),
                )

    def spine_address(self, spine: int, tor: int, link: int) -> str:
        """Address of a spine on a cable."""
        return f"10.0.{spine}.{2 * (tor * self.links + link)}"

    def tor_address(self, spine: int, tor: int, link: int) -> str:
        """Address of a ToR on a cable."""
        return f"10.0.{spine}.{2 * (tor * self.links + link) + 1}"


class OnClos(TableResult):
    """Runs on a Clos, one row each."""

    _table = "runs"

    spec: ClosSpec

    @property
    @figure()
    def spines(self) -> int:
        """Spines of the Clos."""
        return self.spec.spines

    @property
    @figure()
    def tors(self) -> int:
        """ToRs of the Clos."""
        return self.spec.tors

    @property
    @figure()
    def hosts(self) -> int:
        """Hosts below all ToRs."""
        return self.spec.host_count

    @property
    @figure("rate_bytes_per_s")
    def rate(self) -> int | None:
        """Bandwidth of each link; None if links have their own."""
        return self.spec.rate_bytes


def each_in_picoseconds(times: tuple[float, ...]) -> list[int]:
    """Return times as results say them."""
    return [picoseconds(each) for each in times]


@contextmanager
def build(spec: ClosSpec) -> Iterator[ClosSpec]:
    """Build a Clos, which is there while the block runs and leaves nothing behind.

    Raises
    ------
    SpecError
        For what is not a :class:`ClosSpec`.
    InfeasibleError
        Where rights, programs or features of the kernel are missing, or another process has the prefix.
    """
    instance_of(ClosSpec, "spec", spec, "make one by hocket_testbed.ClosSpec(...)")
    check_rights()
    with owned(spec.prefix):
        _build(spec)
        yield spec


def _build(spec: ClosSpec) -> None:
    tors = [spec.namespace(f"tor{tor}") for tor in range(spec.tors)]
    spines = [spec.namespace(f"spine{spine}") for spine in range(spec.spines)]
    hosts = [spec.namespace(f"host{host}") for host in range(spec.host_count)]
    make([*hosts, *tors, *spines])
    of_switch = [*_SWITCH, *(_SWITCH_IPV6 if spec.ipv6 else ())]
    for host in hosts:
        write_settings(host, [*_HOST, *(_HOST_IPV6 if spec.ipv6 else ())])
    # The seed serves both families.
    seed = "ipv4/fib_multipath_hash_seed"
    for i, tor in enumerate(tors):
        write_settings(tor, [*of_switch, (seed, spec.tor_seed(i))])
    for i, spine in enumerate(spines):
        write_settings(spine, [*of_switch, (seed, spec.spine_seed(i))])
    lay(spec.cables())
    routes = _routes(spec, lambda address: address)
    if spec.ipv6:
        routes += _routes(spec, ipv6_of) + _segments(spec)
    for device, group in groupby(sorted(routes), key=itemgetter(0)):
        batch([line for _, line in group], spec.namespace(device))
    if spec.rate_bytes is not None:
        shape((end, spec.rate_bytes) for cable in spec.cables() for end in cable.ends)


def _routes(spec: ClosSpec, of: Callable[[str], str]) -> list[tuple[str, str]]:
    """Return the routes of one family, to which `of` takes addresses: (device, command)."""
    is_ipv6 = ":" in of("0.0.0.0")
    everywhere = "::/0" if is_ipv6 else "default"
    routes = []
    for host in range(spec.host_count):
        gateway = of(f"10.{spec.tor_of(host) + 1}.{host % spec.hosts}.0")
        route = f"route add {everywhere} via {gateway} initcwnd {_WINDOW} initrwnd {_WINDOW}"
        routes.append((f"host{host}", route))
    for tor in range(spec.tors):
        hops = []
        for way in range(spec.spines * spec.links):
            spine, link = divmod(way, spec.links)
            hops.append((of(spec.spine_address(spine, tor, link)), spec.uplink(way)))
        routes.append((f"tor{tor}", _multipath(everywhere, hops)))
    for spine in range(spec.spines):
        for tor in range(spec.tors):
            hops = [
                (of(spec.tor_address(spine, tor, link)), spec.downlink(tor, link))
                for link in range(spec.links)
            ]
            below = f"fd00:10:{tor + 1}::/48" if is_ipv6 else f"10.{tor + 1}.0.0/16"
            routes.append((f"spine{spine}", _multipath(below, hops)))
    return routes


def _segments(spec: ClosSpec) -> list[tuple[str, str]]:
    """Return the routes to segments and what spines do with them: (device, command)."""
    routes = []
    for tor in range(spec.tors):
        for way in range(spec.spines * spec.links):
            spine, up = divmod(way, spec.links)
            via = ipv6_of(spec.spine_address(spine, tor, up))
            network = f"fd01:{spine:x}:{up:x}::/48"
            routes.append((f"tor{tor}", f"route add {network} via {via} dev {spec.uplink(way)}"))
            for link in range(spec.links):
                on = ipv6_of(spec.tor_address(spine, tor, link))
                does = f"encap seg6local action End.X nh6 {on} dev {spec.downlink(tor, link)}"
                routes.append((f"spine{spine}", f"route add {spec.segment(way, tor, link)} {does}"))
    for spine in range(spec.spines):
        # The kernel wants an interface, and takes none.
        does = f"encap seg6local action End dev {spec.downlink(0, 0)}"
        routes.append((f"spine{spine}", f"route add {spec.spine_segment(spine)} {does}"))
    return routes


def _multipath(to: str, hops: list[tuple[str, str]]) -> str:
    """Return the command for a route over next hops: (address, interface)."""
    if len(hops) == 1:
        return f"route add {to} via {hops[0][0]} dev {hops[0][1]}"
    return f"route add {to} " + " ".join(f"nexthop via {via} dev {dev}" for via, dev in hops)
