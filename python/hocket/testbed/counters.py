"""Counters: what the interfaces of a namespace have sent, as the kernel counts it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hocket.testbed.namespaces import inside

__all__ = ["Sent", "sent"]

_BYTES, _PACKETS = 8, 9


class Sent(NamedTuple):
    """What an interface has sent since it was made."""

    bytes: int
    """Bytes of frames."""
    packets: int
    """Frames, as large as segmentation left them."""


def sent(namespace: str) -> dict[str, Sent]:
    """Give what each interface of a namespace has sent."""
    with inside(namespace):
        text = Path("/proc/thread-self/net/dev").read_text(encoding="ascii")
    found = {}
    for line in text.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        words = numbers.split()
        found[name.strip()] = Sent(int(words[_BYTES]), int(words[_PACKETS]))
    return found
