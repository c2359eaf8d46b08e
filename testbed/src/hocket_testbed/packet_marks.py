"""The marks that make a flow's packets take a path: source port, flow label or segment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from hocket._checks import one_of
from hocket.errors import SpecError
from hocket.steering.hashes import Header, find_label, find_port
from hocket_testbed.cables import ipv6_of
from hocket_testbed.clos import ClosSpec
from hocket_testbed.namespaces import batch
from hocket_testbed.ports import METHODS, PORTS, Wanted, port_for, stages

__all__ = ["METHODS_IPV6", "Marked", "check_methods", "mark"]

METHODS_IPV6 = ("ipv6-port", "flow-label", "segments")
"""How flows over IPv6 are steered: by ports and labels that the model finds, and by a segment (SRv6)."""


class Marked(NamedTuple):
    """A flow, and what is done to its packets."""

    header: Header
    segment: str | None = None
    """What they cross on the way, written in front of them."""

    @contextmanager
    def in_force(self, spec: ClosSpec, host: int) -> Iterator[None]:
        """Have a host write the segment in front of what it sends to the receiver while the block runs."""
        if self.segment is None:
            yield
            return
        namespace = spec.namespace(f"host{host}")
        gateway = ipv6_of(f"10.{spec.tor_of(host) + 1}.{host % spec.hosts}.0")
        to = f"{self.header.dst}/128"
        does = f"encap seg6 mode inline segs {self.segment} via {gateway} dev up"
        batch([f"route add {to} {does}"], namespace)
        try:
            yield
        finally:
            batch([f"route del {to}"], namespace)


def check_methods(spec: ClosSpec, methods: list[str]) -> None:
    """Check that a Clos can be steered so.

    Raises
    ------
    SpecError
        Naming ``methods``, for one that is unknown, or is of IPv6 where the Clos has none.
    """
    for method in methods:
        one_of("methods", method, (*METHODS, *METHODS_IPV6))
        if method in METHODS_IPV6 and not spec.ipv6:
            raise SpecError("methods", f"{method} needs IPv6", "build it with ipv6=True")


def mark(spec: ClosSpec, method: str, header: Header, wanted: Wanted) -> Marked:
    """Find out what leads a flow along a path; its own source port is tried first.

    Raises
    ------
    InfeasibleError
        Where nothing of the kind leads there.
    """
    if method in METHODS:
        return Marked(header.by(port_for(spec, method, header, wanted)))
    header = replace(header, src=ipv6_of(header.src), dst=ipv6_of(header.dst))
    if method == "segments":
        return Marked(header, spec.segment(wanted.up, spec.tor_of(wanted.dst), wanted.down or 0))
    forth = stages(spec, wanted, ipv6=True)
    if method == "flow-label":
        return Marked(replace(header, label=find_label(header, forth, first=header.sport)))
    return Marked(header.by(find_port(header, forth, ports=PORTS, first=header.sport)))
