"""The results of collectives by NumPy, with which the results of calls are compared."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

BLOCK = 1 << 16
"""Numbers that are compared at once."""

_UFUNCS: dict[str, np.ufunc] = {
    "sum": np.add,
    "average": np.add,
    "product": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def expected(kind: str, inputs: Sequence[Array], rank: int, root: int, op: str) -> Array | None:
    """Return what a rank gets, in double precision where floats are combined, or None if it gets nothing.

    Parameters
    ----------
    kind, root, op
        The call.
    inputs
        The array of each rank, all of one shape; those of ranks that give nothing do not count.
    rank
        Whose result.
    """
    ranks = len(inputs)
    if kind in ("reduce", "gather") and rank != root:
        return None
    if kind == "broadcast":
        return inputs[root]
    if kind == "scatter":
        return np.split(inputs[root], ranks)[rank]
    if kind in ("all-gather", "gather"):
        return np.concatenate(inputs)
    if kind == "all-to-all":
        return np.concatenate([np.split(each, ranks)[rank] for each in inputs])
    total = combined(inputs, op)
    return np.split(total, ranks)[rank] if kind == "reduce-scatter" else total


def combined(inputs: Sequence[Array], op: str) -> Array:
    """Combine arrays: integers in their own type, floats in double precision."""
    wide = [each.astype(np.float64) if each.dtype.kind == "f" else each for each in inputs]
    total = wide[0].copy()
    with np.errstate(over="ignore"):
        for each in wide[1:]:
            _UFUNCS[op](total, each, out=total)
    return np.asarray(total / len(inputs) if op == "average" else total)


def tolerance(inputs: Sequence[Array], op: str, epsilon: float) -> Array:
    """Return how far each combined float may be off: a unit in the last place for each doubling of ranks.

    Parameters
    ----------
    inputs, op
        What was combined.
    epsilon
        The unit in the last place of 1, of the type.
    """
    steps = max(1, ceil(log2(len(inputs))))
    sizes = combined([np.abs(each.astype(np.float64)) for each in inputs], op)
    return np.asarray(sizes * epsilon * steps)


def check(
    kind: str, result: Array | None, inputs: Sequence[Array], rank: int, root: int, op: str
) -> str | None:
    """Compare a result with what it must be; None if it is right, else what is wrong with it.

    Sums are compared in blocks: in whole arrays of double precision, the system would spend longer on
    making new pages of memory than the call and its comparison take.
    """
    combines = kind in ("all-reduce", "reduce", "reduce-scatter")
    gives = None if kind == "reduce" and rank != root else inputs
    if combines:
        right = gives and [_own(kind, each, rank, len(inputs)) for each in gives]
    else:
        found = expected(kind, inputs, rank, root, op)
        right = None if found is None else [found]
    if right is None or result is None:
        return None if right is None and result is None else "has a result where there is none"
    shape = right[0].shape
    if result.shape != shape:
        return f"has shape {result.shape} instead of {shape}"
    flat, parts = result.reshape(-1), [each.reshape(-1) for each in right]
    count, first = 0, ""
    for start in range(0, flat.size, BLOCK):
        block = slice(start, start + BLOCK)
        wrong, should = _compared(flat[block], [each[block] for each in parts], op, combines)
        if wrong.any() and not count:
            at = int(np.argmax(wrong))
            place = np.unravel_index(start + at, shape)
            where = int(place[0]) if len(place) == 1 else tuple(map(int, place))
            first = f"{where} {flat[start + at]} instead of {should[at]}"
        count += int(wrong.sum())
    return f"{count} numbers are wrong, at {first}" if count else None


def _own(kind: str, array: Array, rank: int, ranks: int) -> Array:
    """Return the part of a combined array that a rank gets."""
    return np.split(array, ranks)[rank] if kind == "reduce-scatter" else array


def _compared(
    result: Array, parts: Sequence[Array], op: str, combines: bool
) -> tuple[Array, Array]:
    """Return which numbers are wrong, and what all must be."""
    if not combines:
        return np.asarray(result != parts[0]), parts[0]
    right = combined(parts, op)
    if op in ("min", "max") or result.dtype.kind != "f":
        return np.asarray(result != right), right
    allowed = tolerance(parts, op, float(np.finfo(result.dtype).eps))
    return ~(np.abs(result.astype(np.float64) - right) <= allowed), right
