"""The constants that say what thread blocks of a collective take, which a profile may state."""

from __future__ import annotations

from hocket.fitting.constants import Constant


def _constants() -> dict[str, Constant]:
    found = {"fixed": Constant(8.0, 1.0, "us", "time of a kernel that moves nothing")}
    found["ll128.fixed"] = Constant(20.0, 2.5, "us", "what LL128 adds to that")
    prior = {"ll": (1.0, 2.0), "ll128": (2.0, 3.0), "simple": (4.0, 12.0)}
    for protocol, (latency, rate) in prior.items():
        what = "from a part being sent, or there, to its receiver"
        found[f"{protocol}.latency"] = Constant(latency, 1.0, "us", what)
        what = "data that a thread block receives and sends on"
        found[f"{protocol}.rate"] = Constant(rate, 1.0, "GB/s", what)
    found["sync"] = Constant(1.5, 1.0, "us", "from a step being done to blocks that wait for it")
    found["sum.rate"] = Constant(12.0, 1.0, "GB/s", "operands that a thread block adds")
    found["link"] = Constant(50.0, 1.0, "GB/s", "what a link carries of all blocks")
    return found


BLOCK_CONSTANTS = _constants()
"""By name, with their priors: the order of magnitude that GPUs of these years have."""
