"""One process of ``hocket run``: ``python -m hocket.runtime.rank``.

It is started by :mod:`hocket.runtime.launch`, reads what to do from standard input, as JSON, and writes
lines of JSON: what it has done so far, and in the end what came of it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hocket.errors import Error, TransportError
from hocket.plans.plan import Plan
from hocket.runtime.communicator import Communicator
from hocket.runtime.connection import connect
from hocket.runtime.reference import check

WARM = 3
"""Calls before the first that is timed."""


def filled(rank: int, count: int, dtype: str) -> npt.NDArray[Any]:
    """Return numbers that tell ranks and places apart, the same in every process that asks."""
    random = np.random.default_rng(rank)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return random.standard_normal(count, dtype=np.float32).astype(kind, copy=False)
    most = min(100, np.iinfo(kind).max)
    return random.integers(0, most, count).astype(kind, copy=False)


def method_of(
    comm: Communicator, given: dict[str, Any], array: npt.NDArray[Any], plan: Plan | None
) -> Callable[[], Any]:
    """Return the call, with arrays that it uses again each time."""
    kind, root, op = given["kind"], given["root"], given["op"]
    ranks, is_root = comm.size, comm.rank == given["root"]
    part = array[: len(array) // ranks]
    whole = np.empty(len(array) * ranks, array.dtype)
    if kind == "all-reduce":
        out = np.empty_like(array)
        return lambda: comm.all_reduce(array, op, out=out, plan=plan)
    if kind == "reduce":
        into = np.empty_like(array) if is_root else None
        return lambda: comm.reduce(array, root, op, out=into, plan=plan)
    if kind == "reduce-scatter":
        own = np.empty_like(part)
        return lambda: comm.reduce_scatter(array, op, out=own, plan=plan)
    if kind == "all-gather":
        return lambda: comm.all_gather(array, out=whole, plan=plan)
    if kind == "gather":
        return lambda: comm.gather(array, root, out=whole if is_root else None, plan=plan)
    if kind == "scatter":
        own = np.empty_like(part)
        return lambda: comm.scatter(array if is_root else None, root, out=own, plan=plan)
    if kind == "all-to-all":
        out = np.empty_like(array)
        return lambda: comm.all_to_all(array, out=out, plan=plan)
    buffer = array.copy()
    return lambda: comm.broadcast(buffer, root, plan=plan)


def work(given: dict[str, Any]) -> None:
    """Connect, check one call, and time the others."""
    say({"started": True})
    with connect(
        timeout=given["timeout"],
        join_timeout=given["timeout"],
        transport=given["transport"],
        outward=given.get("outward", False),
    ) as comm:
        plan = None if given["plan"] is None else Plan.load(given["plan"])
        kind, ranks = given["kind"], comm.size
        # The size is that of the whole vector, of which gathers have a part each.
        count = given["count"] // ranks if kind in ("all-gather", "gather") else given["count"]
        array = filled(comm.rank, count, given["dtype"])
        call = method_of(comm, given, array, plan)
        result = call()
        inputs = [filled(rank, count, given["dtype"]) for rank in range(ranks)]
        wrong = check(kind, result, inputs, comm.rank, given["root"], given["op"])
        del inputs
        if wrong is not None:
            say({"wrong": wrong})
            return
        for _ in range(WARM):
            call()
        # A call of few bytes on the plan's own connections, where others would be opened for a barrier.
        few = filled(comm.rank, ranks, given["dtype"])
        meet = method_of(comm, given, few, plan) if given.get("outward") else comm.barrier
        times: list[int] = []
        say({"done": 0})
        for done in range(1, given["calls"] + 1):
            meet()
            start = time.perf_counter_ns()
            call()
            times.append(time.perf_counter_ns() - start)
            say({"done": done})
        meet()
        transport = comm.transport if plan is None else comm.plan_transport
        say({"times": times, "transport": transport})


def say(what: dict[str, Any]) -> None:
    """Write a line of JSON."""
    print(json.dumps(what), flush=True)


def run_process(work: Callable[[dict[str, Any]], None]) -> None:
    """Do what standard input says; say what stopped it."""
    try:
        work(json.load(sys.stdin))
    except TransportError as failure:
        say({"error": failure.why, "failed": [failure.code, failure.culprit, failure.call]})
    except Error as error:
        say({"error": str(error)})
    except KeyboardInterrupt:
        say({"error": "was interrupted"})


if __name__ == "__main__":
    run_process(work)
