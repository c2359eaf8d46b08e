"""Choices of ``auto`` that are kept: the question as a hash, the answer as what was chosen and why.

What is kept is the choice, never the plan: that is made again by its algorithm, and proved again.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import Any

from hocket import _core
from hocket.files.cache import keep, recall
from hocket.plans.algorithms import BUILTIN
from hocket.plans.selection import ENDS, Selection
from hocket.plans.synthesis.options import PlanOptions

_SHELF = "auto"
_FORMAT = 1
"""Raised where an entry, or what ``auto`` tries, changes within a version."""


def question(collective: _core.Collective, topology: _core.Topology, options: PlanOptions) -> str:
    """Return what was asked as a hash: the network, the collective, the options, the version."""
    return hashed(topology, collective, {**asdict(options), "cache": None})


def hashed(*values: object) -> str:
    """Hash plain values, networks and collectives, by all that is in them, with the version of hocket."""
    digest = hashlib.sha256()
    _feed(digest, [_FORMAT, _core.__version__, *values])
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    """Hash values of Python and columns, so that different ones hash apart whatever is beside them."""
    if isinstance(value, _core.Topology | _core.Collective):
        value = value.__reduce__()[1][1]
    if isinstance(value, dict):
        value = sorted(value.items())
    if isinstance(value, list | tuple):
        digest.update(f"[{len(value)}".encode())
        for each in value:
            _feed(digest, each)
    elif hasattr(value, "tobytes"):
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(value.tobytes())
    else:
        text = f"{type(value).__name__}:{value!r}".encode(errors="surrogatepass")
        digest.update(f"{len(text)} ".encode() + text)


def answer(key: str) -> Selection | None:
    """Return the choice kept for a question, or ``None`` if there is none, or none that is valid."""
    found = recall(_SHELF, key)
    if found is None:
        return None
    try:
        made = Selection(
            algorithm=found["algorithm"],
            chunks=found["chunks"],
            seed=found["seed"],
            time_ps=_count(found["time_ps"]),
            bound_ps=_count(found["bound_ps"]),
            times_ps={_text(name): _count(ps) for name, ps in found["times_ps"].items()},
            plans=_count(found["plans"]),
            left_out={_text(name): _text(why) for name, why in found["left_out"].items()},
            ended=found["ended"],
            cached=True,
        )
        is_right = (
            made.algorithm in BUILTIN and made.ended in ENDS and made.algorithm in made.times_ps
        )
        is_right &= _count(made.seed, 1 << 64) >= 0
        is_right &= made.chunks is None or _count(made.chunks, 1 << 32) > 0
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return made if is_right else None


def keep_answer(key: str, chosen: Selection) -> None:
    """Keep what was chosen for a question."""
    keep(_SHELF, key, dict(chosen.to_dict()))


def _count(value: object, end: int = 1 << 63) -> int:
    """Return a number from 0 and below `end`; hocket has no times of 2^63 ps and more."""
    if type(value) is not int or not 0 <= value < end:
        raise ValueError(value)
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
