"""Hashes of switches as values, the ways that headers take by them, and ports that lead along a path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from hocket._checks import instance_of, list_of, one_of, whole
from hocket._core import steering as core
from hocket._results import Result
from hocket.errors import SpecError
from hocket.units import shown

PROTOCOLS = {"tcp": 6, "udp": 17}
"""Numbers of the protocols that are steered."""
ALGORITHMS = (
    "linux",
    "linux-layer3",
    "linux-layer4",
    "crc16",
    "crc32",
    "crc32-low",
    "crc32-high",
    "crc-ccitt",
    "xor",
    "crc-xor",
    "toeplitz",
)
"""What a switch may compute; ``"linux"`` is ``fib_multipath_hash_policy`` 3."""
FIVE_TUPLE = 0x37
_PORTS = 65535
_WAYS = 1 << 16
_LABELS = (1 << 20) - 1
_QUEUE_PAIRS = (1 << 24) - 1


def check_address(field: str, value: object) -> str:
    """Return an IP address in its usual form: one of IPv4 that is written as IPv6 as IPv4."""
    try:
        address = ip_address(value)  # type: ignore[arg-type]
    except ValueError:
        raise SpecError(field, f"{shown(value)} is not an IP address", "write 10.1.0.1") from None
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        why = f"{shown(value)} has a zone, which no other host knows"
        raise SpecError(field, why, f"write {str(address).partition('%')[0]}")
    return str(getattr(address, "ipv4_mapped", None) or address)


@dataclass(frozen=True)
class Header:
    """The fields of a packet that switches see.

    Attributes
    ----------
    src, dst
        Addresses of one family.
    dport
        Port of the receiver; 4791 for RoCEv2.
    sport
        Port of the sender.
    protocol
        ``"tcp"`` or ``"udp"``.
    label
        Flow label of IPv6.

    Raises
    ------
    SpecError
        Naming the field, for a value that makes no sense.
    """

    src: str
    dst: str
    dport: int
    sport: int = 0
    protocol: str = "tcp"
    label: int = 0

    def __post_init__(self) -> None:
        for name in ("src", "dst"):
            object.__setattr__(self, name, check_address(name, getattr(self, name)))
        if (":" in self.src) != (":" in self.dst):
            raise SpecError(
                "dst", f"{self.src} is of another family than {self.dst}", "give both of one"
            )
        for name, most in (("sport", _PORTS), ("dport", _PORTS), ("label", _LABELS)):
            object.__setattr__(self, name, whole(name, getattr(self, name), 0, most))
        one_of("protocol", self.protocol, tuple(PROTOCOLS))

    def by(self, sport: int) -> Header:
        """Return the same header with another source port."""
        return replace(self, sport=sport)

    @property
    def core(self) -> tuple[str, str, int, int, int, int]:
        """The arguments of the core."""
        protocol = PROTOCOLS[self.protocol]
        return self.src, self.dst, protocol, self.sport, self.dport, self.label


@dataclass(frozen=True)
class SwitchHash(Result):
    """A switch's hash and what it is set to.

    Attributes
    ----------
    algorithm
        One of ``ALGORITHMS``.
    seed
        Its start value, 32 bits.
    fields
        What it hashes, with the bits of Linux' ``fib_multipath_hash_fields``: 1 source, 2 destination,
        4 protocol, 8 flow label, 16 source port, 32 destination port.
    offset
        How many bits of the hash are passed over.

    References
    ----------
    docs/routing.md says what each algorithm computes.
    """

    algorithm: str = "linux"
    seed: int = 0
    fields: int = FIVE_TUPLE
    offset: int = 0

    def __post_init__(self) -> None:
        one_of("algorithm", self.algorithm, ALGORITHMS)
        for name, most in (("seed", 2**32 - 1), ("fields", 63), ("offset", 31)):
            object.__setattr__(self, name, whole(name, getattr(self, name), 0, most))

    def way(self, header: Header, ways: int) -> int:
        """Return which of so many ways a header takes, in the order of the switch's next hops."""
        return self.ways([header], ways)[0]

    def ways(self, headers: Iterable[Header], ways: int) -> list[int]:
        """Return the way of each header, of so many."""
        right = "make one by hk.steering.Header(...)"
        listed = [
            instance_of(Header, "headers", each, right) for each in list_of("headers", headers)
        ]
        count = whole("ways", ways, 1, _WAYS)
        return core.ways(self.core, [header.core for header in listed], count)

    @property
    def core(self) -> tuple[str, int, int, int]:
        """The arguments of the core."""
        return self.algorithm, self.fields, self.seed, self.offset


class Stage(NamedTuple):
    """A switch on a path: its hash, how many ways it has, and the one that is wanted."""

    hash: SwitchHash
    ways: int
    wanted: int


def find_port(
    header: Header,
    forth: Sequence[Stage],
    *,
    back: Sequence[Stage] = (),
    ports: tuple[int, int] = (1024, _PORTS),
    first: int | None = None,
    taken: Iterable[int] = (),
) -> int:
    """Find a source port by which packets take the wanted way at every switch.

    Parameters
    ----------
    header : Header
        The packets'; its source port does not matter.
    forth, back : sequence of Stage
        Switches on the way to the receiver, and back from it where that matters.
    ports : (int, int)
        The lowest and the highest that may be used.
    first : int, optional
        The port that is tried first; the others follow in order, around the range.
    taken : iterable of int
        Ports that are in use.

    Raises
    ------
    InfeasibleError
        Where no port leads there: two switches hash alike, or all ports were tried.
    """
    low, high = port_range(ports, 0)
    start = low if first is None else whole("first", first, 0, _PORTS)
    used = [whole("taken", port, 0, _PORTS) for port in list_of("taken", taken)]
    return core.find_port(_checked(header), _stages(forth), _stages(back), (low, high), start, used)


def port_range(ports: object, least: int) -> tuple[int, int]:
    """Check the lowest and the highest of some source ports, and give them."""
    ends = [whole("ports", port, least, _PORTS) for port in list_of("ports", ports)]
    if len(ends) != 2:
        raise SpecError(
            "ports", f"{shown(ports)} is not a range", "give the lowest and the highest"
        )
    low, high = ends
    if low > high:
        raise SpecError("ports", f"{low} is above {high}", "give the lowest port first")
    return low, high


def find_label(
    header: Header, forth: Sequence[Stage], *, back: Sequence[Stage] = (), first: int = 1
) -> int:
    """Find a flow label of IPv6 by which packets take the wanted way at every switch.

    Parameters
    ----------
    header : Header
        The packets'; its label does not matter.
    forth, back : sequence of Stage
        Switches on the way to the receiver, and back from it where that matters; both ends then write
        the label.
    first : int
        The label that is tried first; the others follow in order, around the 20 bits, but for 0.

    Raises
    ------
    InfeasibleError
        Where no label leads there, and for IPv4, which has none.
    """
    start = whole("first", first, 1, _LABELS)
    return core.find_label(_checked(header), _stages(forth), _stages(back), start)


def _checked(header: Header) -> tuple[str, str, int, int, int, int]:
    return instance_of(Header, "header", header, "make one by hk.steering.Header(...)").core


def _stages(given: Sequence[Stage]) -> list[tuple[tuple[str, int, int, int], int, int]]:
    """Check stages, and give what the core takes."""
    right = "make one by hk.steering.Stage(...)"
    return [
        (
            stage.hash.core,
            whole("ways", stage.ways, 1, _WAYS),
            whole("wanted", stage.wanted, 0, _WAYS),
        )
        for stage in (
            instance_of(Stage, "stages", each, right) for each in list_of("stages", given)
        )
    ]


def queue_pair_port(src_qpn: int, dst_qpn: int, *, flow_label: int = 0) -> int:
    """Return the UDP port that a queue pair of RoCEv2 sends from.

    Parameters
    ----------
    src_qpn, dst_qpn : int
        Numbers of the queue pair at its two ends, 24 bits each; their order does not matter.
    flow_label : int
        What its owner has set, 20 bits; with 0, as NCCL leaves it, the numbers decide.

    Raises
    ------
    SpecError
        For numbers out of range.

    References
    ----------
    Linux, ``include/rdma/ib_verbs.h``: ``rdma_calc_flow_label`` and ``rdma_flow_label_to_udp_sport``.

    Examples
    --------
    >>> import hocket as hk
    >>> hk.steering.queue_pair_port(0x11A, 0x11B)
    63418
    """
    numbers = (
        whole("src_qpn", src_qpn, 0, _QUEUE_PAIRS),
        whole("dst_qpn", dst_qpn, 0, _QUEUE_PAIRS),
    )
    return core.queue_pair_port(numbers, whole("flow_label", flow_label, 0, _LABELS))
