"""What collectives give, by NumPy: the results of calls are compared with it."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_UFUNCS: dict[str, np.ufunc] = {
    "sum": np.add,
    "average": np.add,
    "product": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def expected(kind: str, inputs: Sequence[Array], rank: int, root: int, op: str) -> Array | None:
    """Give what a rank gets, in double precision where floats are combined; None where it gets nothing.

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
    """Say how far each combined float may be off: a unit in the last place for each doubling of ranks.

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
    """Compare a result with what it must be; None if it is right, else what is wrong with it."""
    right = expected(kind, inputs, rank, root, op)
    if right is None or result is None:
        return None if right is None and result is None else "has a result where there is none"
    if result.shape != right.shape:
        return f"has shape {result.shape} instead of {right.shape}"
    wrong = result != right
    sums = kind in ("all-reduce", "reduce", "reduce-scatter") and op not in ("min", "max")
    if sums and result.dtype.kind == "f":
        allowed = tolerance(inputs, op, float(np.finfo(result.dtype).eps))
        allowed = np.split(allowed, len(inputs))[rank] if kind == "reduce-scatter" else allowed
        wrong = ~(np.abs(result.astype(np.float64) - right) <= allowed)
    if not wrong.any():
        return None
    at = np.unravel_index(int(np.argmax(wrong)), result.shape)
    place = int(at[0]) if len(at) == 1 else tuple(map(int, at))
    return f"{int(wrong.sum())} numbers are wrong, at {place} {result[at]} instead of {right[at]}"
