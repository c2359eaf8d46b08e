"""Cables: pairs of virtual interfaces, each end in a namespace with an address."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from hocket.testbed.namespaces import batch

__all__ = ["Cable", "End", "lay"]


@dataclass(frozen=True)
class End:
    """One end of a cable.

    Attributes
    ----------
    namespace, interface
        Where it is; an interface's name has up to 15 letters.
    address
        Of IPv4, without a prefix length.
    """

    namespace: str
    interface: str
    address: str


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
    lines: dict[str, list[str]] = defaultdict(list)
    for cable in listed:
        for end in cable.ends:
            lines[end.namespace] += [
                f"addr add {end.address}/31 dev {end.interface}",
                f"link set dev {end.interface} up",
            ]
    for namespace, commands in lines.items():
        batch(commands, namespace)
