"""Ways to do a collective among processes of this machine, timed in turns in the same processes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from hocket._options import seconds
from hocket.errors import SpecError
from hocket.plans.plan import Plan
from hocket.runtime.options import MeasureOptions
from hocket.runtime.processes import MAX_RANKS, run_processes


@dataclass(frozen=True)
class Candidate:
    """One way to do it.

    Parameters
    ----------
    name
        For messages.
    plan
        What runs; None for what a communicator does by itself.
    transport
        ``tcp`` or ``shared``.
    """

    name: str
    plan: Plan | None
    transport: str


def contest(
    kind: str,
    ranks: int,
    sizes: Sequence[tuple[int, Sequence[Candidate]]],
    *,
    rounds: int = 7,
    options: MeasureOptions | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[list[int]]:
    """Start processes that do a collective in each way, check every result, and time them in turns.

    Parameters
    ----------
    kind, ranks
        What is done, and among how many.
    sizes
        Bytes of the whole vector, each with its candidates.
    rounds
        How often each candidate has its turn.
    options
        Root, type of numbers, operation and timeout.
    progress
        Called as ``progress(stage, done, total)``.

    Returns
    -------
    list of list of int
        For each size the median time of each candidate [ps], until the last rank has its result.

    Raises
    ------
    SpecError
        If there are more ranks than are started on one machine, or a size has no number for each.
    InfeasibleError, TransportError
        If a result is wrong, memory cannot be shared, or a process dies.
    """
    chosen = options or MeasureOptions()
    if not 2 <= ranks <= MAX_RANKS:
        raise SpecError("ranks", f"{ranks} is not 2 to {MAX_RANKS}")
    width = np.dtype(chosen.dtype).itemsize
    with tempfile.TemporaryDirectory(prefix="hocket-") as folder:
        names: dict[int, str] = {}
        asked = []
        for size, candidates in sizes:
            count = size // width // ranks * ranks
            if count == 0:
                why = f"{size} bytes are no {chosen.dtype} for each of {ranks} ranks"
                raise SpecError("size", why)
            for each in candidates:
                if each.plan is not None and id(each.plan) not in names:
                    names[id(each.plan)] = str(Path(folder) / f"{len(names)}.parquet")
                    each.plan.save(names[id(each.plan)])
            told = [
                {
                    "name": each.name,
                    "plan": None if each.plan is None else names[id(each.plan)],
                    "transport": each.transport,
                }
                for each in candidates
            ]
            asked.append({"count": count, "candidates": told})
        transports = sorted({each.transport for _, some in sizes for each in some})
        given = {
            "kind": kind,
            "root": chosen.root,
            "op": chosen.op,
            "dtype": chosen.dtype,
            "timeout": seconds(chosen.timeout, "timeout"),
            "rounds": rounds,
            "plans": list(names.values()),
            "transports": transports,
            "sizes": asked,
        }
        module = "hocket.runtime.contestant"
        ended = run_processes(module, given, ranks, progress, ("measure", len(asked)))
    found = []
    for number, (_, candidates) in enumerate(sizes):
        by_rank = np.array([each["times"][number] for each in ended])
        assert by_rank.shape[1] == len(candidates)
        found.append([round(median(times)) * 1000 for times in by_rank.max(axis=0).tolist()])
    return found
