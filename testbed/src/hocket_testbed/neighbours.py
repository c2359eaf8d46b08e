"""The fabric of a testbed, learned from what its devices tell their neighbours (LLDP).

Each device sends a frame out of each of its interfaces that says who it is, which interface that is, and
whether it forwards. Who hears it knows the other end of that cable. What is heard, put together, is the
fabric; a host is a device that does not forward.
"""

from __future__ import annotations

import errno
import re
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from select import select
from typing import TYPE_CHECKING, NamedTuple

from hocket.errors import InfeasibleError
from hocket.topology.build import build_topology
from hocket.topology.spec import LinkSpec, TopologySpec
from hocket.units import parse_bandwidth, parse_time
from hocket_testbed.namespaces import inside, names_of
from hocket_testbed.shaping import GOODPUT

if TYPE_CHECKING:
    from hocket._core import Topology
    from hocket_testbed.clos import ClosSpec

__all__ = ["LATENCY", "Heard", "fabric_spec", "frame", "heard_of", "learn_fabric"]

LATENCY = "20 us"
"""Of a link that was learned; what is heard does not tell."""
_RATE = "100 Gb/s"
"""Of a link that is not shaped."""
_ETHERTYPE = 0x88CC
_TO = bytes.fromhex("0180c200000e")
"""The nearest bridge, which passes nothing on."""
_CHASSIS, _PORT, _LIFE, _ABILITIES = 1, 2, 3, 7
_LOCAL, _INTERFACE = 7, 5
_ROUTER, _STATION = 0x10, 0x80
_SECONDS = 120
_PATIENCE = 2.0


class Heard(NamedTuple):
    """The messages that one device received from another."""

    src: str
    """The device that spoke."""
    interface: str
    """Where it sent it."""
    forwards: bool
    dst: str
    """The device that heard it."""


def frame(device: str, interface: str, *, forwards: bool, mac: bytes = bytes(6)) -> bytes:
    """Return the frame by which a device speaks of itself.

    References
    ----------
    IEEE 802.1AB: the elements chassis, port, time to live and system capabilities.
    """
    ability = (_ROUTER if forwards else _STATION).to_bytes(2, "big")
    elements = (
        (_CHASSIS, bytes([_LOCAL]) + device.encode()),
        (_PORT, bytes([_INTERFACE]) + interface.encode()),
        (_LIFE, _SECONDS.to_bytes(2, "big")),
        (_ABILITIES, 2 * ability),
        (0, b""),
    )
    body = b"".join((kind << 9 | len(value)).to_bytes(2, "big") + value for kind, value in elements)
    return _TO + mac + _ETHERTYPE.to_bytes(2, "big") + body


def heard_of(received: bytes, dst: str) -> Heard | None:
    """Read a frame that a device heard; None where it is none of these, or is cut off."""
    if received[12:14] != _ETHERTYPE.to_bytes(2, "big"):
        return None
    elements = dict(_elements(received[14:]))
    device, interface = elements.get(_CHASSIS, b""), elements.get(_PORT, b"")
    abilities = elements.get(_ABILITIES, b"")
    if device[:1] != bytes([_LOCAL]) or interface[:1] != bytes([_INTERFACE]) or len(abilities) != 4:
        return None
    try:
        names = device[1:].decode(), interface[1:].decode()
    except UnicodeDecodeError:
        return None
    return Heard(*names, bool(abilities[3] & _ROUTER), dst)


def _elements(body: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place + 2 <= len(body):
        head = int.from_bytes(body[place : place + 2], "big")
        kind, size = head >> 9, head & 0x1FF
        value = body[place + 2 : place + 2 + size]
        if kind == 0 or len(value) < size:
            return
        yield kind, value
        place += 2 + size


def learn_fabric(spec: ClosSpec) -> Topology:
    """Learn the fabric of a testbed that is there.

    Of the spec, the prefix says which namespaces are asked, and the rate what a link carries; structure
    comes from what is heard alone. Hosts are NPUs.

    Raises
    ------
    InfeasibleError
        Where there is no such testbed, or a cable is heard of from one side only.
    """
    return build_topology(fabric_spec(spec))


def fabric_spec(spec: ClosSpec) -> TopologySpec:
    """Return the fabric that :func:`learn_fabric` learns, as devices and links."""
    devices = [name.removeprefix(f"{spec.prefix}-") for name in names_of(spec.prefix)]
    if not devices:
        raise InfeasibleError(
            None, f"there is no testbed {spec.prefix}", "build it with hocket_testbed.build(...)"
        )
    heard = _listen(spec, devices)
    forwards = {each.src: each.forwards for each in heard}
    ends = Counter((each.src, each.dst) for each in heard)
    for src, dst in ends:
        if ends[src, dst] != ends[dst, src]:
            why = f"{dst} hears {src}, but {src} does not hear {dst} as often"
            raise InfeasibleError(None, why, "see whether interfaces are down")
    bandwidth = parse_bandwidth(_RATE, field="bandwidth")
    latency = parse_time(LATENCY, field="latency")
    if spec.rate_bytes is not None:
        bandwidth = int(spec.rate_bytes * GOODPUT)
    named = sorted(forwards, key=_natural)
    return TopologySpec(
        name=f"fabric of {spec.prefix}",
        npus=tuple(name for name in named if not forwards[name]),
        switches=tuple((name, None) for name in named if forwards[name]),
        links=tuple(LinkSpec(src, dst, bandwidth, latency) for src, dst in sorted(ends.elements())),
        origin="what was heard",
    )


def _natural(name: str) -> list[tuple[int, str]]:
    """Sort tor10 after tor9."""
    return [
        (int(part or 0), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)
    ]


def _listen(spec: ClosSpec, devices: list[str]) -> list[Heard]:
    """Have every device speak on every interface, and give what was heard."""
    with ExitStack() as stack:
        ears: dict[socket.socket, tuple[str, str]] = {}
        mouths: list[tuple[socket.socket, bytes]] = []
        for device in devices:
            with inside(spec.namespace(device)):
                text = Path("/proc/sys/net/ipv4/ip_forward").read_text(encoding="ascii")
                forwards = text.strip() == "1"
                for _, interface in socket.if_nameindex():
                    if interface == "lo":
                        continue
                    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETHERTYPE))
                    stack.enter_context(raw)
                    raw.bind((interface, _ETHERTYPE))
                    ears[raw] = device, interface
                    mac = raw.getsockname()[4]
                    said = frame(device, interface, forwards=forwards, mac=mac)
                    mouths.append((raw, said))
        for raw, said in mouths:
            try:
                raw.send(said)
            except OSError as error:
                if error.errno != errno.ENETDOWN:
                    raise
                # The interface is down: nothing is heard of it.
                del ears[raw]
        heard: list[Heard] = []
        waiting = dict(ears)
        end = time.monotonic() + _PATIENCE
        while waiting and time.monotonic() < end:
            ready, _, _ = select(list(waiting), [], [], end - time.monotonic())
            for raw in ready:
                received, address = raw.recvfrom(2048)
                # What this device sent itself is heard, too.
                if address[2] == socket.PACKET_OUTGOING:
                    continue
                found = heard_of(received, waiting[raw][0])
                if found is not None:
                    heard.append(found)
                    del waiting[raw]
        return heard
