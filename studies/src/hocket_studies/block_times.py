"""The time of a program of thread blocks on a real machine, from eleven constants.

The core simulates the blocks (``hocket._core.kernel``): each runs its steps in order, on one tile of its
chunks after the other, shares links with the other blocks that send, and waits where a connection is
full. How large a tile is, and in how many parts it is passed on, follows from the library's buffers; the
constants say how long it takes.

Source: RCCL 2.21 for the buffers (``src/include/device.h``, ``src/include/msccl/msccl_struct.h``);
published times of 48 schedules for the form. docs/machines-accuracy.md has the errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hocket._checks import one_of
from hocket._core import kernel
from hocket.profiles.cost_model import PROTOCOLS
from hocket_studies.block_schedules import BlockSchedule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["RCCL", "Buffers", "block_times"]

_PER_GB = 1e-3
"""Microseconds per byte, at one GB/s."""
_THREADS = 256
"""Of a thread block in RCCL."""


@dataclass(frozen=True)
class Buffers:
    """The pieces in which a protocol sends what a connection carries.

    Attributes
    ----------
    slot
        Bytes of a transfer at most.
    parts
        In how many parts a transfer is passed on.
    in_flight
        How many parts a connection holds.
    streams
        Whether a receiver works on a part while it arrives.
    payload
        What of the bytes on a link is data; the rest are flags.
    """

    slot: int
    parts: int
    in_flight: int
    streams: bool
    payload: float


RCCL: Mapping[str, Buffers] = {
    "ll": Buffers(8 * _THREADS * 8, 1, 8, True, 1 / 2),
    "ll128": Buffers(28 * _THREADS * 8 * 7 // 8, 1, 8, True, 7 / 8),
    "simple": Buffers(4 * (512 << 10), 2, 4, False, 1.0),
}
"""By protocol. LL has lines of 8 bytes of data and 8 of flags, eight of them for a thread and step;
LL128 lines of 64 bytes, of which the last 8 are a flag, and 28 words of 8 bytes; Simple steps of 512 KiB,
two to a part and four to a transfer. A connection has eight steps."""


def block_times(
    schedule: BlockSchedule,
    sizes: Sequence[int],
    protocol: str,
    values: Mapping[str, float],
    buffers: Mapping[str, Buffers] = RCCL,
) -> Floats:
    """Return what a schedule takes with so much data [us].

    Parameters
    ----------
    schedule
        What the blocks do.
    sizes
        Of the data, as nccl-tests states them [bytes].
    protocol
        ``"ll"``, ``"ll128"`` or ``"simple"``.
    values
        Constants by name, in the units of :data:`hocket.profiles.block_constants.BLOCK_CONSTANTS`.
    buffers
        Of the library, by protocol.

    Raises
    ------
    SpecError
        If there is no such protocol, or a constant or a size is not above zero.
    InfeasibleError
        If blocks wait for each other for ever: each sends more than a connection holds before it receives.
    """
    one_of("protocol", protocol, PROTOCOLS)
    cut = buffers[protocol]
    rate = values[f"{protocol}.rate"]
    # Half goes to receiving, half to sending: a share of its own came out as 0.49 [0.47, 0.51].
    half = 0.5 / rate * _PER_GB
    chunks = np.array([schedule.chunk_bytes(size) for size in sizes], np.float64)
    return kernel.durations(
        schedule.npus,
        schedule.instances,
        schedule.core_blocks,
        chunks,
        fixed=values["fixed"] + (values["ll128.fixed"] if protocol == "ll128" else 0.0),
        latency=values[f"{protocol}.latency"],
        sync=values["sync"],
        send=half,
        receive=half,
        operand=_PER_GB / values["sum.rate"],
        link=values["link"] * cut.payload / _PER_GB,
        slot=cut.slot,
        parts=cut.parts,
        in_flight=cut.in_flight,
        streams=cut.streams,
    )
