"""Ranks that die, stand still, or do something else: an error of all ranks, and never a wrong result."""

from __future__ import annotations

import signal
import time
from typing import Any

import numpy as np
import pytest
from tests.runtime.ranks import Ended, Ranks

import hocket as hk
from hocket import runtime

LINK = {"bandwidth": "1 GB/s", "latency": "10 us"}
TRANSPORTS = pytest.mark.parametrize("transport", ["tcp", "shared"])


def by_plan(comm: runtime.Communicator) -> dict[str, Any]:
    """Do as `endless` by a plan, whose messages go through shared memory if the group was told so."""
    topology = hk.topology.fully_connected(comm.size, **LINK)
    return endless(comm, hk.plan("all-reduce", topology, size=1 << 16, algorithm="ring"))


def endless(comm: runtime.Communicator, plan: hk.Plan | None = None) -> dict[str, Any]:
    """Sum again and again until somebody dies; then go on with those that are left."""
    numbers = np.full(100_000, comm.rank + 1, np.int64)
    right = comm.size * (comm.size + 1) // 2
    calls = 0
    while True:
        try:
            total = comm.all_reduce(numbers, plan=plan)
        except hk.TransportError as failure:
            noticed = time.monotonic()
            left = comm.survivors("1 s")
            again = left.all_reduce(numbers)
            expected = sum(rank + 1 for rank in left.old_ranks)
            return {
                "code": failure.code,
                "culprit": failure.culprit,
                "call": failure.call,
                "calls": calls,
                "noticed": noticed,
                "regrouped": time.monotonic() - noticed,
                "old_ranks": left.old_ranks,
                "right": bool((again == expected).all()),
            }
        calls += 1
        assert (total == right).all(), "a wrong sum"


def kill_one(transport: str, size: int, victim: int, after: float, work: Any = endless) -> None:
    with Ranks(size, work, transport=transport, timeout="5 s") as ranks:
        time.sleep(after)
        ranks.signal(victim, signal.SIGKILL)
        killed = time.monotonic()
        others = [rank for rank in range(size) if rank != victim]
        for found in ranks.results(others):
            assert (found["code"], found["culprit"]) == ("died", victim)
            assert found["noticed"] - killed < 1
            assert found["old_ranks"] == tuple(others)
            assert found["right"]


@TRANSPORTS
def test_a_killed_rank_is_named_and_the_others_go_on(transport: str) -> None:
    kill_one(transport, 4, 2, 1.0)
    kill_one(transport, 3, 0, 0.9)


def test_a_rank_that_dies_in_a_plan_through_memory_is_named() -> None:
    kill_one("shared", 4, 1, 1.5, by_plan)


@pytest.mark.slow
@TRANSPORTS
@pytest.mark.parametrize("size", [4, 8])
def test_ranks_killed_at_any_moment(transport: str, size: int) -> None:
    random = np.random.default_rng(size)
    for _ in range(25):
        kill_one(transport, size, int(random.integers(size)), float(random.uniform(0.6, 1.2)))


@pytest.mark.slow
@pytest.mark.parametrize("size", [4, 8])
def test_ranks_killed_at_any_moment_of_a_plan_through_memory(size: int) -> None:
    random = np.random.default_rng(size)
    for _ in range(25):
        after = float(random.uniform(1.0, 2.0))
        kill_one("shared", size, int(random.integers(size)), after, by_plan)


@pytest.mark.parametrize(
    ("transport", "work"), [("tcp", endless), ("shared", endless), ("shared", by_plan)]
)
def test_a_rank_that_stands_still_is_named(transport: str, work: Any) -> None:
    with Ranks(4, work, transport=transport, timeout="1 s") as ranks:
        time.sleep(1.0 if work is endless else 1.5)
        ranks.signal(1, signal.SIGSTOP)
        stopped = time.monotonic()
        for found in ranks.results([0, 2, 3]):
            assert (found["code"], found["culprit"]) == ("stalled", 1)
            assert found["noticed"] - stopped < 2.5
            assert found["old_ranks"] == (0, 2, 3)
            assert found["right"]


def all_fail(ranks: Ranks, size: int) -> list[Ended]:
    found = [ranks.ended(rank) for rank in range(size)]
    assert all(each.failure is not None for each in found), found
    return found


@TRANSPORTS
@pytest.mark.parametrize(
    "what", ["size", "type", "operation", "call", "plan", "half", "method", "root", "roots"]
)
def test_ranks_that_do_different_things_are_all_refused(transport: str, what: str) -> None:
    topology = hk.topology.fully_connected(4, **LINK)
    plans = [
        hk.plan("all-reduce", topology, size=4000, algorithm=name, chunks=1)
        for name in ("ring", "direct")
    ]

    def work(comm: runtime.Communicator) -> None:
        odd = comm.rank == 3
        numbers = np.ones(1001 if odd and what == "size" else 1000, np.float32)
        if odd and what == "type":
            numbers = numbers.astype(np.float64)
        comm.all_reduce(np.ones(3))
        if odd and what == "call":
            comm.all_gather(np.ones(1000, np.float32))
        if what in ("root", "roots"):
            root = comm.rank if what == "roots" else int(odd)
            comm.broadcast(numbers, root)
        elif what == "method" and odd:
            comm.broadcast(numbers)
        plan = plans[odd] if what == "plan" else plans[0] if what == "half" and odd else None
        comm.all_reduce(numbers, "max" if odd and what == "operation" else "sum", plan=plan)

    with Ranks(4, work, transport=transport, timeout="10 s") as ranks:
        found = all_fail(ranks, 4)
    for each in found:
        assert each.failure is not None
        assert each.failure.code == "mismatch"
        # Who has all that it gets from ranks of the same mind goes on to the next call.
        assert each.failure.call == 2 or (what == "root" and each.failure.call == 3)
        if what == "roots":
            assert "calls broadcast with root " in str(each.failure)
        assert "rank " in str(each.failure)
        assert each.seconds < 5


@pytest.mark.parametrize("way", ["tcp", "window", "memory", "shared array"])
def test_a_rank_that_gives_up_says_so(way: str) -> None:
    """The others wait within the call by then."""
    topology = hk.topology.fully_connected(3, **LINK)
    ring = hk.plan("all-reduce", topology, size=3000, algorithm="ring", chunks=1)

    def work(comm: runtime.Communicator) -> None:
        mine = comm.empty(100_000) if way == "shared array" else np.ones(100_000)
        comm.barrier()
        if comm.rank == 1:
            time.sleep(0.2)
            comm.abort("no more data")
        comm.all_reduce(mine, out=mine, plan=ring if way == "memory" else None)

    transport = "tcp" if way == "tcp" else "shared"
    with Ranks(3, work, transport=transport, timeout="10 s") as ranks:
        found = all_fail(ranks, 3)
    for each in found:
        assert each.failure is not None
        assert (each.failure.code, each.failure.culprit) == ("aborted", 1)


def test_a_rank_that_never_comes_is_named() -> None:
    store = runtime.serve(secret="key")
    with pytest.raises(hk.TransportError) as caught:
        runtime.connect(
            store.address, rank=0, size=3, secret="key", serves=False, join_timeout="300 ms"
        )
    assert str(caught.value) == "ranks 1 and 2 did not join within 0.3 s"
    with pytest.raises(hk.TransportError, match="another secret"):
        runtime.connect(store.address, rank=0, size=3, secret="other", serves=False)
    with pytest.raises(hk.TransportError, match="address already in use"):
        runtime.serve(store.address)
