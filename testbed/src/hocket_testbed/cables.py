"""Cables: pairs of virtual interfaces, each end in a namespace with an address."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from hocket_testbed.namespaces import batch

__all__ = ["Cable", "End", "ipv6_of", "lay", "raise_ends"]


def ipv6_of(address: str) -> str:
    """Return the address of IPv6 that goes with one of IPv4: ``fd00:10:1:2::1`` with ``10.1.2.1``."""
    one, two, three, four = address.split(".")
    return f"fd00:{one}:{two}:{three}::{four}"


@dataclass(frozen=True)
class End:
    """One end of a cable.

    Attributes
    ----------
    namespace, interface
        Where it is; an interface's name has up to 15 letters.
    address
        Of IPv4, without a prefix length.
    has_ipv6
        Whether it has an address of IPv6 as well, :func:`ipv6_of` this one.
    """

    namespace: str
    interface: str
    address: str
    has_ipv6: bool = False

    @property
    def addresses(self) -> tuple[str, ...]:
        """Its addresses with prefix lengths, as ``ip addr add`` takes them."""
        if not self.has_ipv6:
            return (f"{self.address}/31",)
        # Nobody else has them, which need not be found out.
        return f"{self.address}/31", f"{ipv6_of(self.address)}/127 nodad"


@dataclass(frozen=True)
class Cable:
    """Two ends, whose addresses differ in the last bit."""

    one: End
    other: End

    @property
    def ends(self) -> tuple[End, End]:
        """Both."""
        return self.one, self.other


_QUEUES = "numtxqueues 1 numrxqueues 1"


def lay(cables: Iterable[Cable]) -> None:
    """Make the interfaces of cables in namespaces that are there, give them addresses, and raise them."""
    listed = list(cables)
    made = (
        f"link add {cable.one.interface} netns {cable.one.namespace} {_QUEUES} type veth "
        f"peer name {cable.other.interface} netns {cable.other.namespace} {_QUEUES}"
        for cable in listed
    )
    batch(made)
    raise_ends(listed)


def raise_ends(cables: Iterable[Cable]) -> None:
    """Return the interfaces of cables their addresses, and raise them."""
    lines: dict[str, list[str]] = defaultdict(list)
    for cable in cables:
        for end in cable.ends:
            lines[end.namespace] += [
                *(f"addr add {address} dev {end.interface}" for address in end.addresses),
                f"link set dev {end.interface} up",
            ]
    for namespace, commands in lines.items():
        batch(commands, namespace)
