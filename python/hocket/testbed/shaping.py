"""Shaping: what an end of a cable sends per second, with acknowledgements free.

A class of `htb` has the rate; packets below 128 bytes, which are acknowledgements of TCP, have a class of their
own, so that they do not share the link with data that goes the other way. Data goes at 1448 of 1514 bytes of
the rate: 1448 bytes of a segment in a frame of 1514.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction

from hocket.testbed.cables import End
from hocket.testbed.namespaces import batch

__all__ = ["GOODPUT", "shape"]

GOODPUT = Fraction(1448, 1514)
"""Share of a rate that TCP's data has, with frames of 1,514 bytes and timestamps."""
_BURST_TIME = Fraction(6, 10_000)
_LEAST_BURST = 16 * 1024


def shape(ends: Iterable[tuple[End, int]]) -> None:
    """Limit what ends send, each to a rate [bytes/s]."""
    lines: dict[str, list[str]] = defaultdict(list)
    for end, rate in ends:
        lines[end.namespace] += _commands(end.interface, rate)
    for namespace, commands in lines.items():
        batch(commands, namespace, program="tc")


def _commands(interface: str, rate: int) -> list[str]:
    burst = max(_LEAST_BURST, round(rate * _BURST_TIME))
    bits = f"{8 * rate}bit"
    dev = f"dev {interface}"
    return [
        f"qdisc add {dev} root handle 1: htb default 1 r2q 100",
        f"class add {dev} parent 1: classid 1:1 htb rate {bits} ceil {bits} burst {burst} cburst {burst}",
        f"class add {dev} parent 1: classid 1:2 htb rate 10gbit ceil 10gbit burst 64k cburst 64k "
        "quantum 60000",
        # The first bits of IPv4's length are 0: below 128 bytes.
        f"filter add {dev} parent 1: protocol ip prio 1 u32 match u16 0x0000 0xff80 at 2 flowid 1:2",
    ]
