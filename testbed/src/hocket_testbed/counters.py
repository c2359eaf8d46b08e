"""Counters: what the interfaces of a namespace have sent, as the kernel counts it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hocket_testbed.namespaces import inside

if TYPE_CHECKING:
    from hocket_testbed.clos import ClosSpec

__all__ = ["Sent", "sent", "sent_up"]

_BYTES, _PACKETS = 8, 9


class Sent(NamedTuple):
    """The bytes that an interface has sent since it was made."""

    bytes: int
    """Bytes of frames."""
    packets: int
    """Frames, as large as segmentation left them."""


def sent(namespace: str) -> dict[str, Sent]:
    """Return what each interface of a namespace has sent."""
    with inside(namespace):
        text = Path("/proc/thread-self/net/dev").read_text(encoding="ascii")
    found = {}
    for line in text.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        words = numbers.split()
        found[name.strip()] = Sent(int(words[_BYTES]), int(words[_PACKETS]))
    return found


def sent_up(spec: ClosSpec) -> dict[tuple[int, int], int]:
    """Return the bytes that each ToR of a Clos has sent to each spine."""
    found = {}
    for tor in range(spec.tors):
        counted = sent(spec.namespace(f"tor{tor}"))
        for spine in range(spec.spines):
            found[tor, spine] = counted[spec.uplink(spine)].bytes
    return found
