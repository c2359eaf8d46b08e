"""Ranks that die, stand still, or do something else: an error of all ranks, and never a wrong result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.runtime.ranks import Ended, Ranks

import hocket as hk
from hocket import runtime

LINK = {"bandwidth": "1 GB/s", "latency": "10 us"}
PATIENCE = 4.0
"""Seconds that a busy machine may add: less than after which the dead would be called slow."""
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
            assert found["noticed"] - killed < PATIENCE
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


@pytest.mark.slow
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
            assert found["noticed"] - stopped < 1 + PATIENCE
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


def busy(seconds: float) -> None:
    """Stay busy in Python until a signal comes."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


@pytest.mark.slow
@TRANSPORTS
@pytest.mark.parametrize("where", ["in a call", "in a started call", "between calls"])
def test_an_interrupted_rank_is_named_at_once(transport: str, where: str) -> None:
    def work(comm: runtime.Communicator) -> None:
        comm.barrier()
        if comm.rank == 1 and where == "between calls":
            busy(120)
        if comm.rank == 1 and where == "in a started call":
            comm.start(comm.barrier).wait()
        if comm.rank == 2:
            time.sleep(2)
        comm.barrier()
        comm.barrier()

    with Ranks(3, work, transport=transport, timeout="600 s") as ranks:
        ranks.begin()
        time.sleep(0.5)
        ranks.signal(1, signal.SIGINT)
        assert "KeyboardInterrupt" in str(ranks.ended(1).error)
        for rank in (0, 2):
            failure = ranks.ended(rank).failure
            assert failure is not None
            assert (failure.code, failure.culprit) == ("aborted", 1)


@TRANSPORTS
def test_a_killed_rank_is_named_though_a_child_of_it_lives_on(transport: str) -> None:
    def work(comm: runtime.Communicator) -> Any:
        comm.barrier()
        if os.fork() == 0:
            with pytest.raises(hk.SpecError, match="has forked this one"):
                comm.barrier()
            signal.pause()
        return until_it_fails(comm)

    with Ranks(3, work, transport=transport, timeout="600 s") as ranks:
        ranks.begin()
        time.sleep(0.5)
        ranks.signal(1, signal.SIGKILL)
        try:
            for rank in (0, 2):
                failure = ranks.ended(rank).failure
                assert failure is not None
                assert (failure.code, failure.culprit) == ("died", 1)
        finally:
            for process in ranks.processes:
                assert process.pid is not None
                os.killpg(process.pid, signal.SIGKILL)


def test_a_child_that_ends_does_not_leave_for_its_parent() -> None:
    """It forgets the communicator that it has from its parent."""

    def work(comm: runtime.Communicator) -> int:
        child = os.fork()
        if child == 0:
            comm.close()
            os._exit(0)
        os.waitpid(child, 0)
        time.sleep(0.2 * comm.rank)
        return int(comm.all_reduce(np.array([1]))[0])

    with Ranks(2, work, timeout="600 s") as ranks:
        assert ranks.results() == [2, 2]


def test_what_a_failure_needs_is_loaded_before_it() -> None:
    program = """
import sys
import numpy as np
import hocket as hk
from hocket import runtime

comm = runtime.connect("127.0.0.1:0", rank=0, size=1)
comm.all_reduce(np.ones(3))
before = {*sys.modules}
comm.abort("no more data")
try:
    comm.all_reduce(np.ones(3))
except hk.SpecError:
    raise SystemExit("another error")
except hk.TransportError as failure:
    assert failure.code == "aborted", failure
    assert isinstance(failure, hk.Error), failure
    str(failure), repr(failure)
left = comm.survivors("1 s")
assert left.all_reduce(np.ones(3)).tolist() == [1, 1, 1]
try:
    left.all_reduce(np.ones(3), "or")
except (hk.InfeasibleError, hk.VerificationError, hk.SimulationError):
    raise SystemExit("another error")
except hk.SpecError as error:
    str(error)
left.close()
comm.close()
print(*sorted({*sys.modules} - before))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr, done.stdout.strip()) == (0, "", "")


@pytest.mark.long
def test_no_living_rank_is_blamed_on_a_busy_machine() -> None:
    """Kills over TCP beside processes that take all there is: ``HOCKET_RUNTIME_KILLS`` says how many."""
    random = np.random.default_rng(15)
    spin = [sys.executable, "-c", "while True: pass"]
    spinners = [subprocess.Popen(spin) for _ in range(4)]
    told: Counter[tuple[str, bool]] = Counter()
    try:
        for _ in range(int(os.environ.get("HOCKET_RUNTIME_KILLS", "10"))):
            victim = int(random.integers(4))
            with Ranks(4, until_it_fails, transport="tcp", timeout="20 s") as ranks:
                ranks.begin()
                time.sleep(float(random.uniform(0.0, 0.3)))
                ranks.signal(victim, signal.SIGKILL)
                for rank in {*range(4)} - {victim}:
                    failure = ranks.ended(rank).failure
                    assert failure is not None
                    assert failure.culprit in (None, victim), failure
                    told[failure.code, failure.culprit == victim] += 1
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
    print(dict(told))
    assert told["died", True] >= 0.95 * told.total()


def until_it_fails(comm: runtime.Communicator) -> None:
    numbers = np.full(20_000, comm.rank, np.int64)
    while True:
        comm.all_reduce(numbers)


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
