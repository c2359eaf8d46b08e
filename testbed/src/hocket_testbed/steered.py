"""The test of whether flows take the wanted paths, by the kernel's counters."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

from hocket._checks import check_function, list_of, one_of, whole
from hocket._results import Column, Result, TableResult, figure, picoseconds, said
from hocket.cluster.hosts import MAX_SEED
from hocket.cluster.seeded_random import SeededRandom
from hocket.errors import InfeasibleError
from hocket.steering.hashes import PROTOCOLS, Header
from hocket_testbed.clos import ClosSpec
from hocket_testbed.counters import sent
from hocket_testbed.flow_labels import write_label
from hocket_testbed.namespaces import inside
from hocket_testbed.packet_marks import Marked, check_methods, mark
from hocket_testbed.ports import METHODS, PORTS, Wanted

if TYPE_CHECKING:
    from hocket.collectives.collective import Progress

__all__ = ["Steered", "SteeredRow", "steer_flows"]

_MESSAGE, _MESSAGES = 1000, 3
_PATIENCE = 2.0
_RESET = struct.pack("ii", 1, 0)
"""For SO_LINGER: a connection ends at once and leaves its ports free."""


@dataclass(frozen=True)
class SteeredRow(Result):
    """Flows of one kind."""

    method: str = field(metadata=said(column=Column("steered by")))
    """How they were steered, or how their ports were found."""
    protocol: str = field(metadata=said(column=Column("protocol")))
    """``"tcp"`` or ``"udp"``."""
    stages: int = field(metadata=said(column=Column("switches that choose")))
    """Switches whose choice was wanted: the ToR's, or the ToR's and the spine's."""
    flows: int = field(metadata=said(column=Column("flows")))
    """How many there were."""
    right: int = field(metadata=said(column=Column("right", leaves=0)))
    """How many went the wanted way and no other, as the kernel counted."""
    port_seconds: float = field(
        metadata=said(
            "port_elapsed_ps", of=picoseconds, column=Column("time to find a port", leaves=1)
        )
    )
    """Mean time to find a port or a label [s]."""


@dataclass(frozen=True)
class Steered(TableResult):
    """The results of steered flows; made by :func:`steer_flows`."""

    _table = "rows"

    rows: tuple[SteeredRow, ...]

    @property
    @figure()
    def flows(self) -> int:
        """Flows of all kinds."""
        return sum(row.flows for row in self.rows)

    @property
    @figure()
    def right(self) -> int:
        """The number of them that went the wanted way."""
        return sum(row.right for row in self.rows)

    def __repr__(self) -> str:
        """Return the number of flows that went right."""
        return f"<Steered: {self.right} of {self.flows} flows>"


def steer_flows(
    spec: ClosSpec,
    *,
    flows: int = 200,
    methods: Sequence[str] = METHODS,
    protocols: Sequence[str] = tuple(PROTOCOLS),
    seed: int = 0,
    progress: Progress | None = None,
) -> Steered:
    """Send flows between random hosts by random paths, and look where their bytes went.

    Parameters
    ----------
    spec : ClosSpec
        A Clos that is there (:func:`build`).
    flows : int
        Of each kind: method, protocol and number of stages. There are two stages where more than one link
        joins a spine and a ToR.
    methods
        How flows are steered: ``METHODS`` by source ports over IPv4, which are found in these ways;
        ``METHODS_IPV6`` where the Clos has IPv6.
    protocols
        What is sent.
    seed : int
        Of hosts, ports and paths.
    progress : callable, optional
        Called with (stage, done, total).

    Raises
    ------
    SpecError
        Naming the argument that makes no sense.
    InfeasibleError
        Where nothing leads along a path.
    """
    count = whole("flows", flows, 1, 10**6)
    check_methods(spec, list_of("methods", methods))
    for each in list_of("protocols", protocols):
        one_of("protocols", each, tuple(PROTOCOLS))
    check_function("progress", progress)
    draw = SeededRandom(whole("seed", seed, 0, MAX_SEED))
    stages = (1, 2) if spec.links > 1 else (1,)
    kinds = [(way, what, many) for way in methods for what in protocols for many in stages]
    rows = []
    for i, (method, protocol, many) in enumerate(kinds):
        right, spent = 0, 0.0
        for j in range(count):
            header, wanted = _drawn(spec, draw, protocol, many)
            begun = perf_counter()
            marked = mark(spec, method, header, wanted)
            spent += perf_counter() - begun
            right += _went(spec, marked, wanted)
            if progress is not None:
                progress(f"{method}, {protocol}", i * count + j + 1, len(kinds) * count)
        rows.append(SteeredRow(method, protocol, many, count, right, spent / count))
    return Steered(tuple(rows))


def _drawn(spec: ClosSpec, draw: SeededRandom, protocol: str, stages: int) -> tuple[Header, Wanted]:
    """Draw a flow between two ToRs, the port that is tried first, and a path."""
    src = draw.below(spec.host_count)
    dst = draw.below(spec.host_count - spec.hosts)
    if dst >= spec.tor_of(src) * spec.hosts:
        dst += spec.hosts
    dport = 2000 + draw.below(7000)
    first = PORTS[0] + draw.below(PORTS[1] - PORTS[0])
    header = Header(spec.address(src), spec.address(dst), dport, first, protocol)
    up = draw.below(spec.spines * spec.links)
    return header, Wanted(src, dst, up, draw.below(spec.links) if stages == 2 else None)


def _went(spec: ClosSpec, marked: Marked, wanted: Wanted) -> bool:
    """Send a flow, and say whether it went the wanted way and no other."""
    tor = spec.namespace(f"tor{spec.tor_of(wanted.src)}")
    spine = spec.namespace(f"spine{wanted.up // spec.links}")
    below = spec.tor_of(wanted.dst)
    before = [sent(tor), sent(spine)]
    with marked.in_force(spec, wanted.src):
        _send(spec, marked.header, wanted)
    after = [sent(tor), sent(spine)]
    took = [
        {name for name in one if other[name].bytes - one[name].bytes >= _MESSAGES * _MESSAGE}
        for one, other in zip(before, after, strict=True)
    ]
    if {name for name in took[0] if name.startswith("up")} != {spec.uplink(wanted.up)}:
        return False
    downs = {spec.downlink(below, link) for link in range(spec.links)}
    right = downs if wanted.down is None else {spec.downlink(below, wanted.down)}
    return len(took[1] & downs) == 1 and took[1] & downs <= right


def _send(spec: ClosSpec, header: Header, wanted: Wanted) -> None:
    """Send some messages, and wait until they are there."""
    family = socket.AF_INET6 if ":" in header.src else socket.AF_INET
    kind = socket.SOCK_STREAM if header.protocol == "tcp" else socket.SOCK_DGRAM
    with ExitStack() as sockets:
        with inside(spec.namespace(f"host{wanted.dst}")):
            end = sockets.enter_context(socket.socket(family, kind))
        with inside(spec.namespace(f"host{wanted.src}")):
            source = sockets.enter_context(socket.socket(family, kind))
        for each in (end, source):
            each.settimeout(_PATIENCE)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            end.bind((header.dst, header.dport))
            if kind == socket.SOCK_STREAM:
                end.listen()
            source.bind((header.src, header.sport))
            if header.label:
                write_label(source, header.dst, header.label)
                source.connect((header.dst, header.dport, header.label, 0))
            else:
                source.connect((header.dst, header.dport))
            if kind == socket.SOCK_STREAM:
                end = sockets.enter_context(end.accept()[0])
                end.settimeout(_PATIENCE)
                source.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            for _ in range(_MESSAGES):
                source.sendall(bytes(_MESSAGE))
            left = _MESSAGES * _MESSAGE
            while left > 0:
                left -= len(end.recv(left))
        except OSError as error:
            why = f"a flow from {header.src} to {header.dst} failed: {error}"
            raise InfeasibleError(None, why) from None
