"""Shaping: what an end of a cable sends per second, evenly shared by flows, with acknowledgements free.

A class of `htb` has the rate. Below it are classes that flows fall into by the low bits of their source
ports, or of the addresses that they go to, and that send in turn: flows that share a link then share it
evenly whenever they start, as the simulation of flows has it, while in one queue whoever comes late
would wait behind what others have queued. Packets below 128 bytes, which are acknowledgements of TCP,
have a class of their own, so that they do not share the link with data that goes the other way. Data
goes at 1448 of 1514 bytes of the rate: 1448 bytes of a segment in a frame of 1514.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Literal

from hocket_testbed.cables import End
from hocket_testbed.namespaces import batch

__all__ = ["GOODPUT", "shape"]

GOODPUT = Fraction(1448, 1514)
"""Share of a rate that TCP's data has, with frames of 1,514 bytes and timestamps."""
_BURST_TIME = Fraction(6, 10_000)
_LEAST_BURST = 16 * 1024
SHORT = 8 * 1024
"""Least burst where messages are to end when their last byte is due, not a burst before [bytes]."""
_CLASSES = 32
_FIRST_CLASS = 0x10
_TURN = 60_000
"""What a class sends in its turn: a frame as large as segmentation leaves it [bytes]."""
_LEAST_RATE = 8000
_KEYS = {"port": f"0x{_CLASSES - 1 << 16:08x} at 20", "receiver": f"0x{_CLASSES - 1:08x} at 16"}
"""Where in a packet of IPv4 what tells flows apart is."""


def shape(
    ends: Iterable[tuple[End, int]],
    *,
    by: Literal["port", "receiver"] = "port",
    least_burst: int = _LEAST_BURST,
) -> None:
    """Limit what ends send, each to a rate [bytes/s].

    Flows are told apart by the low bits of their source ports, or of the addresses that they go to.
    """
    lines: dict[str, list[str]] = defaultdict(list)
    for end, rate in ends:
        lines[end.namespace] += _commands(end.interface, rate, _KEYS[by], least_burst)
    for namespace, commands in lines.items():
        batch(commands, namespace, program="tc")


def _commands(interface: str, rate: int, key: str, least_burst: int) -> Iterator[str]:
    burst = max(least_burst, round(rate * _BURST_TIME * least_burst / _LEAST_BURST))
    bits, share = f"{8 * rate}bit", f"{max(8 * rate // _CLASSES, _LEAST_RATE)}bit"
    bursts = f"burst {burst} cburst {burst}"
    dev = f"dev {interface}"
    above, below = f"class add {dev} parent 1: classid", f"class add {dev} parent 1:1 classid"
    filters = f"filter add {dev} parent 1: protocol ip prio"
    yield f"qdisc add {dev} root handle 1: htb default {_FIRST_CLASS:x} r2q 100"
    yield f"{above} 1:1 htb rate {bits} ceil {bits} {bursts}"
    yield f"{above} 1:2 htb rate 10gbit ceil 10gbit burst 64k cburst 64k quantum {_TURN}"
    # The first bits of IPv4's length are 0: below 128 bytes.
    yield f"{filters} 1 u32 match u16 0x0000 0xff80 at 2 flowid 1:2"
    yield f"{filters} 2 handle 100: u32 divisor {_CLASSES}"
    yield f"{filters} 2 u32 ht 801:: match u32 0 0 at 0 link 100: hashkey mask {key}"
    for i in range(_CLASSES):
        flow = f"1:{_FIRST_CLASS + i:x}"
        yield f"{below} {flow} htb rate {share} ceil {bits} {bursts} quantum {_TURN}"
        yield f"{filters} 2 u32 ht 100:{i:x}: match u32 0 0 at 0 flowid {flow}"
