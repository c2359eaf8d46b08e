"""Cables that take time: two TAP devices, and a relay that holds each frame for a while.

The kernel's queues cannot be relied on to delay frames: netem is an option of it. So a thread reads what
one device sends and writes it to the other when it is due. Frames have Ethernet headers, as on other
cables, and pass whole, up to 64 kB of them at a time. When the process ends, devices go with its files.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hocket._core.runtime import relay
from hocket.errors import InfeasibleError
from hocket_testbed.cables import Cable, End, raise_ends
from hocket_testbed.namespaces import inside
from hocket_testbed.priority import promptly

__all__ = ["Delays", "lay_delayed", "what_relay_lacks"]

DEVICE = Path("/dev/net/tun")
_SET_DEVICE, _SET_OFFLOAD = 0x400454CA, 0x400454D0
_TAP, _BARE, _OFFLOAD_HEADER = 0x0002, 0x1000, 0x4000
_SUMS, _LONG_IPV4, _LONG_IPV6 = 0x01, 0x02, 0x04
_NAME = struct.Struct("16sH22x")


@dataclass(frozen=True)
class Delays:
    """The losses and delays on cables.

    Attributes
    ----------
    time
        How long a frame takes besides being sent [s].
    loss
        Share of frames that are dropped.
    seed
        From which it is drawn which are.
    """

    time: float
    loss: float = 0.0
    seed: int = 0

    @property
    def needs_relay(self) -> bool:
        """Whether cables of the kernel alone would not do."""
        return self.time > 0 or self.loss > 0


def what_relay_lacks() -> tuple[str, str] | None:
    """Describe what is missing for cables that take time, and what would help, or None if nothing is."""
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return f"{DEVICE} cannot be opened", "use a kernel with TUN, or leave the latency out"
    return None


@contextmanager
def lay_delayed(cables: Sequence[Cable], delays: Delays) -> Iterator[None]:
    """Lay cables between namespaces that are there, over a relay that runs while the block does.

    Raises
    ------
    InfeasibleError
        Where the kernel has no such devices.
    """
    missing = what_relay_lacks()
    if missing is not None:
        raise InfeasibleError(None, *missing)
    with ExitStack() as stack:
        pairs = [
            (stack.enter_context(_device(each.one)), stack.enter_context(_device(each.other)))
            for each in cables
        ]
        raise_ends(cables)
        stopped, stop = os.pipe()
        stack.callback(os.close, stopped)

        def run() -> None:
            # Before ranks: it stands for wires, which wait for nobody.
            with promptly(True, above=1):
                relay(pairs, delays.time, delays.loss, delays.seed, stopped)

        thread = threading.Thread(target=run, name="testbed-relay", daemon=True)
        thread.start()
        stack.callback(thread.join)
        stack.callback(os.close, stop)
        yield


@contextmanager
def _device(end: End) -> Iterator[int]:
    """Make a device at an end of a cable, and give its open file; it goes when that is closed."""
    file = _opened(end)
    try:
        yield file
    finally:
        os.close(file)


def _opened(end: End) -> int:
    asked = _NAME.pack(end.interface.encode("ascii"), _TAP | _BARE | _OFFLOAD_HEADER)
    file = -1
    try:
        with inside(end.namespace):
            file = os.open(DEVICE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            fcntl.ioctl(file, _SET_DEVICE, asked)
            fcntl.ioctl(file, _SET_OFFLOAD, _SUMS | _LONG_IPV4 | _LONG_IPV6)
    except OSError as error:
        if file >= 0:
            os.close(file)
        why = f"no device can be made by {DEVICE}: {error.strerror}"
        raise InfeasibleError(None, why, "leave the latency out") from None
    return file
