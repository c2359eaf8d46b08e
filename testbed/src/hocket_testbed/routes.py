"""The kernel's answer for a route: ``ip route get`` for a packet that comes in by an interface."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hocket.steering.hashes import Header
from hocket_testbed.namespaces import batch

__all__ = ["ways_out"]

_INTERFACE = re.compile(r"\bdev (\S+)")


def ways_out(namespace: str, headers: Sequence[Header], interface: str) -> list[str]:
    """Name the interface by which a namespace would forward each packet that came in by `interface`."""
    asked = (
        f"route get {each.dst} from {each.src} iif {interface} ipproto {each.protocol} "
        f"sport {each.sport} dport {each.dport}"
        for each in headers
    )
    return _INTERFACE.findall(batch(asked, namespace))
