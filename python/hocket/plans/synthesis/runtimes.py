"""Runtimes for which plans can be made, by the texts that name them."""

from __future__ import annotations

import re

from hocket._checks import did_you_mean
from hocket._core.formats import mscclpp_limits
from hocket.errors import SpecError
from hocket.units import shown

TITLES = {"mscclpp": "MSCCL++"}
"""Runtimes for which plans can be made, by name, and what they are called."""
OPERATIONS, FEWEST = mscclpp_limits()
"""Operations of a thread block at most; and thread blocks that every GPU with NVSwitches runs at once."""
_MOST = 1 << 16


def blocks_of(runtime: object) -> int:
    """Return how many thread blocks of a rank a runtime runs at once.

    Raises
    ------
    SpecError
        If the runtime is not known, or its limits make no sense.
    """
    if not isinstance(runtime, str):
        raise SpecError("runtime", f"{shown(runtime)} is not a name", "give mscclpp")
    name, colon, limits = runtime.partition(":")
    if name not in TITLES:
        right = "mscclpp, or mscclpp:sms=132 for a GPU with 132 processors"
        raise SpecError(
            "runtime", f"there is no {shown(name)}", did_you_mean(name, tuple(TITLES), right)
        )
    if not colon:
        return FEWEST
    found = re.fullmatch("sms=([0-9]{1,5})", limits, re.ASCII)
    if found is None or not 1 <= int(found[1]) <= _MOST:
        why = f"{shown(limits)} is not a number of processors"
        raise SpecError("runtime", why, f"give {name}:sms=132")
    return int(found[1])
