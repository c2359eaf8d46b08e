"""One process of a contest: ``python -m hocket.runtime.contestant``.

It is started by :mod:`hocket.runtime.contest`, reads what to do from standard input, as JSON, and writes
lines of JSON as :mod:`hocket.runtime.rank` does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from hocket.plans.plan import Plan
from hocket.runtime.communicator import Communicator
from hocket.runtime.connection import connect
from hocket.runtime.options import ConnectOptions
from hocket.runtime.rank import filled, method_of, run_process, say
from hocket.runtime.reference import check

_LEAST_ROUND = 2e-3
"""A round makes calls for as long as this [s]: what is shorter is mostly the clock and the barrier."""
_MOST_CALLS = 50


def work(given: dict[str, Any]) -> None:
    """Connect by each transport, check every candidate, and time them in turns."""
    say({"started": True})
    options = ConnectOptions(timeout=given["timeout"], join_timeout=given["timeout"])
    comms: dict[str, Communicator] = {}
    for way in given["transports"]:
        comms[way] = connect(options=options, transport=way, group=way)
    plans = {name: Plan.load(name) for name in given["plans"]}
    found = []
    say({"done": 0})
    for done, size in enumerate(given["sizes"], 1):
        found.append(contest(comms, plans, given, size))
        if found[-1] is None:
            return
        say({"done": done})
    for comm in comms.values():
        comm.barrier()
        comm.close()
    say({"times": found})


def contest(
    comms: dict[str, Communicator], plans: dict[str, Plan], given: dict[str, Any], size: Any
) -> list[list[int]] | None:
    """Return the time of a call per candidate and round [ns], or None if a result was wrong."""
    meet = next(iter(comms.values()))
    kind, ranks, root, op = given["kind"], meet.size, given["root"], given["op"]
    count = size["count"] // ranks if kind in ("all-gather", "gather") else size["count"]
    array = filled(meet.rank, count, given["dtype"])
    inputs = [filled(rank, count, given["dtype"]) for rank in range(ranks)]
    task = {"kind": kind, "root": root, "op": op}
    calls: list[Callable[[], Any]] = []
    for candidate in size["candidates"]:
        plan = None if candidate["plan"] is None else plans[candidate["plan"]]
        call = method_of(comms[candidate["transport"]], task, array, plan)
        wrong = check(kind, call(), inputs, meet.rank, root, op)
        if wrong is not None:
            say({"wrong": f"{candidate['name']}: {wrong}"})
            return None
        calls.append(call)
    del inputs
    repeats = []
    for call in calls:
        meet.barrier()
        start = time.perf_counter()
        call()
        # All ranks must make as many calls: as the slowest needs.
        took = meet.all_reduce(np.array([time.perf_counter() - start]), "max")[0]
        repeats.append(int(min(max(_LEAST_ROUND / max(took, 1e-9), 1), _MOST_CALLS)))
    times: list[list[int]] = [[] for _ in calls]
    for turn in range(given["rounds"]):
        # No candidate always runs after the same one.
        order = [(turn + i) % len(calls) for i in range(len(calls))]
        for which in order if turn % 2 else reversed(order):
            meet.barrier()
            began = time.perf_counter_ns()
            for _ in range(repeats[which]):
                calls[which]()
            times[which].append((time.perf_counter_ns() - began) // repeats[which])
    return times


if __name__ == "__main__":
    run_process(work)
