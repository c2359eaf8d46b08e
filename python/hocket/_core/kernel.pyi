"""The time of a kernel whose thread blocks run their steps in order, round after round."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["durations"]

_Step: TypeAlias = tuple[bool, bool, int, int, Sequence[tuple[int, int]]]
"""Receives, sends, local operands, chunks, and blocks with their steps that it waits for."""
_Block: TypeAlias = tuple[int, int | None, int | None, int, Sequence[_Step]]
"""NPU, whom it sends to, whom it receives from, channel, steps."""

def durations(
    npus: int,
    instances: int,
    blocks: Sequence[_Block],
    chunks: npt.NDArray[np.float64],
    *,
    fixed: float,
    latency: float,
    sync: float,
    send: float,
    receive: float,
    operand: float,
    link: float,
    slot: float,
    parts: int,
    in_flight: int,
    streams: bool,
) -> npt.NDArray[np.float64]:
    """Return how long it takes with chunks of each of these sizes [us].

    Costs are in microseconds, bytes and microseconds per byte: ``fixed`` of a kernel that moves nothing;
    ``latency`` until a receiver works on a part; ``sync`` until who waits for a step sees it done;
    ``send`` and ``receive`` of a block, and ``operand`` for each local operand; ``link`` is what a link
    carries [bytes/us]. A transfer has ``slot`` bytes at most and is passed on in ``parts``; a connection
    holds ``in_flight`` of them. A receiver works on a part while it arrives, if it ``streams``.
    """
