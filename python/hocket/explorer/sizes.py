"""A sweep over sizes as a page shows it: algorithms, the bound and what NCCL picks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from hocket._results import picoseconds
from hocket.errors import SpecError, listed
from hocket.units import format_size


def sweep_page(comparisons: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the header of a page of comparisons of one collective on one network, a size each.

    Raises
    ------
    SpecError
        If there are none, or they differ in more than the size, or none has a plan.
    """
    if not comparisons:
        raise SpecError(None, "there is no comparison to show", "compare at one size or more")
    where = {(each["collective"], each["topology"], len(each["npus"])) for each in comparisons}
    if len(where) > 1:
        listed = ", ".join(f"{kind} of {npus} NPUs of {on}" for kind, on, npus in sorted(where))
        raise SpecError(None, f"comparisons of different things: {listed}", "give those of one")
    ((kind, network, npus),) = where
    lines: dict[str, list[list[float]]] = defaultdict(list)
    bound: list[list[float]] = []
    nccl: list[dict[str, Any]] = []
    best: list[str] = []
    below: dict[str, list[str]] = {}
    factor = None
    for each in sorted(comparisons, key=lambda each: int(each["size_bytes"])):
        size, rows = each["size_bytes"], each["algorithms"]
        if not rows:
            continue
        first = rows[0]
        # Busbw is a factor times size over time, which is the collective's own.
        factor = first["busbw_bytes_per_s"] * first["time_ps"] / 1e12 / max(size, 1)
        for row in rows:
            lines[row["algorithm"]].append([size, row["time_ps"], row["busbw_bytes_per_s"]])
        limit = each["bound"]["time_ps"]
        bound.append([size, limit, factor * size / max(limit, 1) * 1e12])
        best.append(min(rows, key=lambda row: row["time_ps"])["algorithm"])
        pick = each.get("nccl")
        if pick is not None:
            time_ps = picoseconds(pick["time_s"])
            reason = pick.get("below_bound")
            if reason is not None:
                below.setdefault(str(reason), []).append(format_size(int(size)))
            nccl.append(
                {
                    "size": size,
                    "time_ps": time_ps,
                    "busbw": factor * size / time_ps * 1e12,
                    "pick": f"{pick['algorithm']} with {pick['protocol']}",
                }
            )
    if factor is None:
        raise SpecError(
            None, "no algorithm has a plan at any size", "see why by `hocket compare --why`"
        )
    return {
        "format": 1,
        "kind": "sweep",
        "title": f"{kind} among {npus} NPUs of {network}",
        "note": _note(below),
        "factor": factor,
        "lines": [{"name": name, "points": points} for name, points in lines.items()],
        "bound": bound,
        "nccl": nccl,
        "best": best,
    }


def _note(below: Mapping[str, Sequence[str]]) -> str | None:
    """Explain at which sizes NCCL's prediction is below the bound and why, or return None."""
    said = [
        f"at {listed(sizes)} NCCL's prediction is below the bound: {why}"
        for why, sizes in below.items()
    ]
    return "; ".join(said) or None
