"""The ranks of a plan on a testbed: threads, each in the namespace of its NPU, with sockets of its own.

Ranks come together in a namespace beside the links, then connect over them. Without namespaces they connect
over the loopback interface, and their sockets keep to links that a `Pacer` has in common for all. They
start a call together, and nothing is checked before all have ended: that would take time from those that
have not.
"""

from __future__ import annotations

import gc
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hocket._core.runtime import Group, Pacer, Program, Store
from hocket.errors import SimulationError, SpecError, TransportError
from hocket.plans.plan import Plan
from hocket.runtime.rank import filled
from hocket.runtime.reference import expected
from hocket_testbed.namespaces import inside
from hocket_testbed.network import NetworkSpec, carried, led
from hocket_testbed.plan_connections import PlanConnections, ways_of
from hocket_testbed.priority import promptly

__all__ = ["RankThreads", "gathered"]

DTYPE = "int32"
_WIDTH = 4
_PATIENCE = 30.0
_TIMEOUT = 20.0
"""After which time without a byte a run is given up [s]."""
_SETTLES = 0.05
_HEAD_START = 0.005
"""After which time ranks that have met begin, where links take time [s]."""
_LOOKS = 0.05
"""How often a wait lets signals in [s]."""

Array = npt.NDArray[Any]
T = TypeVar("T")


@dataclass
class _Rank:
    """A rank: its group, and its vector."""

    number: int
    group: Group
    given: Array
    """What it has before."""
    input: Array
    """What a call reads; in place also what it writes."""
    output: Array | None


class RankThreads:
    """Ranks that are connected by the ways of a plan."""

    def __init__(
        self, spec: NetworkSpec, plan: Plan, ways: PlanConnections, *, real_time: bool
    ) -> None:
        self.plan, self.ways = plan, ways
        self.real_time = real_time
        self.spec = spec
        self.kind = plan.collective.kind
        self.root = plan.collective.root or 0
        npus = plan.collective.npus
        if self.kind in ("broadcast", "reduce", "gather", "scatter"):
            self.root = npus.index(self.root)
        self.count = len(npus)
        size = plan.collective.size
        self.elements = size // _WIDTH // self.count * self.count
        if self.elements == 0:
            raise SpecError("size", f"{size} bytes are no {DTYPE} for each of {self.count} ranks")
        self.program = Program(plan.core, ways.channel_of, in_plan_order=ways.in_plan_order)
        self.ranks: list[_Rank] = []
        self._pacer: Pacer | None = None
        if spec.loopback:
            self._pacer = Pacer(list(spec.goodput), spec.latency_ps / 1e12)
        self._store: Store | None = None
        self._right: list[Array | None] | None = None

    def connect(self, addresses: Sequence[tuple[str, str]]) -> None:
        """Bring ranks together, by connections with these addresses; over loopback there are none."""
        to_lower: dict[int, list[tuple[int, int, str]]] = {i: [] for i in range(self.count)}
        routes: dict[int, list[tuple[int, int, list[int]]]] = {i: [] for i in range(self.count)}
        for each, (low, _) in zip(self.ways.connections, addresses, strict=False):
            to_lower[each.ranks[1]].append((each.ranks[0], each.stream, low))
        for each in self.ways.connections:
            for (src, dst), route in ((each.ranks, each.forth), (each.ranks[::-1], each.back)):
                routes[src].append((dst, each.stream, list(route or ())))
        secret = secrets.token_bytes(16)
        with self._inside("meet"):
            store = Store("127.0.0.1:0" if self.spec.loopback else "0.0.0.0:0", secret)
        port = store.address.rpartition(":")[2]
        npus = self.plan.collective.npus

        def join(rank: int) -> _Rank:
            meeting = "127.0.0.1"
            if not self.spec.loopback:
                meeting = self.spec.meeting(npus[rank]).one.address
            group = Group.connect(
                f"{meeting}:{port}",
                group="testbed",
                rank=rank,
                size=self.count,
                secret=secret,
                patience=_PATIENCE,
                timeout=_TIMEOUT,
                shares=False,
                streams=self.ways.streams,
                # Who connects to nobody listens everywhere all the same.
                ways=None if self.spec.loopback else to_lower[rank] or [(rank, 0, meeting)],
                pacer=self._pacer,
                routes=routes[rank],
            )
            return self._with_vectors(rank, group)

        try:
            self.ranks = self._together(join)
        except BaseException:
            store.close()
            raise
        self._store = store

    def carried(self) -> list[int]:
        """Return the bytes that each link has carried so far: of frames, without namespaces of messages."""
        return carried(self.spec) if self._pacer is None else self._pacer.carried()

    def _inside(self, device: str) -> AbstractContextManager[None]:
        """Move the calling thread to where a device is, while a block runs."""
        return nullcontext() if self.spec.loopback else inside(self.spec.namespace(device))

    def _with_vectors(self, rank: int, group: Group) -> _Rank:
        kind, whole = self.kind, self.elements
        part = whole // self.count
        gives = part if kind in ("all-gather", "gather") else whole
        given = filled(rank, gives, DTYPE)
        if self.program.in_place:
            return _Rank(rank, group, given, np.empty(whole, DTYPE), None)
        reads = {"gather": part, "scatter": whole if rank == self.root else 0}.get(kind, whole)
        writes = {"gather": whole if rank == self.root else 0, "scatter": part}.get(kind, whole)
        return _Rank(rank, group, given, np.empty(reads, DTYPE), np.zeros(writes, DTYPE))

    def run(self) -> float:
        """Do the collective once, check every result, and give the time from the common start [s].

        Raises
        ------
        SimulationError
            Where a result is wrong.
        TransportError
            Where a rank stood still, or a connection broke.
        """
        for rank in self.ranks:
            self._fill(rank)
        time.sleep(_SETTLES)
        starts: list[float] = []
        gate = threading.Barrier(
            self.count, action=lambda: starts.append(time.perf_counter() + _HEAD_START)
        )

        def call(number: int) -> tuple[float, float]:
            rank = self.ranks[number]
            views = [
                None if each is None else each.view(np.uint8) for each in (rank.input, rank.output)
            ]
            few = [
                None if each is None else np.zeros(_WIDTH * self.count, np.uint8) for each in views
            ]
            with promptly(self.real_time):
                gate.wait(_PATIENCE)
                # Threads leave the gate one after the other; a call of few bytes brings them together.
                rank.group.run(self.program, DTYPE, "sum", self.count, *few)
                if self.spec.latency_ps:
                    # Who is near the last to send has it sooner: all agree on a moment.
                    gate.wait(_PATIENCE)
                    time.sleep(max(0.0, starts[-1] - time.perf_counter()))
                begun = time.perf_counter()
                rank.group.run(self.program, DTYPE, "sum", self.elements, *views)
                return begun, time.perf_counter()

        collects = gc.isenabled()
        gc.disable()
        try:
            times = self._together(call)
        finally:
            if collects:
                gc.enable()
        self._check()
        return max(end for _, end in times) - min(begun for begun, _ in times)

    def _fill(self, rank: _Rank) -> None:
        if self.kind == "all-gather":
            part = len(rank.given)
            rank.input[:] = 0
            rank.input[rank.number * part : (rank.number + 1) * part] = rank.given
        elif self.kind == "broadcast":
            rank.input[:] = rank.given if rank.number == self.root else 0
        elif len(rank.input):
            rank.input[:] = rank.given
        if rank.output is not None:
            rank.output[:] = 0

    def _check(self) -> None:
        if self._right is None:
            inputs = [rank.given for rank in self.ranks]
            everywhere = self.kind in ("all-reduce", "all-gather", "broadcast")
            of_ranks = range(1 if everywhere else self.count)
            self._right = [expected(self.kind, inputs, i, self.root, "sum") for i in of_ranks]
        wrong = []
        for rank in self.ranks:
            right = self._right[rank.number % len(self._right)]
            if right is None:
                continue
            result = rank.input if rank.output is None else rank.output
            if self.kind == "reduce-scatter":
                part = len(result) // self.count
                result = result[rank.number * part : (rank.number + 1) * part]
            if not np.array_equal(result, right):
                wrong.append(rank.number)
        if wrong:
            told = ", ".join(map(str, wrong))
            raise SimulationError("plan", f"the result of {self.plan.algorithm} is wrong at {told}")

    def close(self) -> None:
        """Part."""
        for rank in self.ranks:
            rank.group.close()
        self.ranks = []
        if self._store is not None:
            self._store.close()
            self._store = None

    def _together(self, work: Callable[[int], T]) -> list[T]:
        """Have a thread for each rank do something in the rank's namespace, and wait for all of them.

        Where one fails, the others are told, and its error is raised.
        """
        npus = self.plan.collective.npus
        places = [self.spec.device(npu) for npu in npus]
        results: list[Any] = [None] * self.count
        errors: list[BaseException] = []

        def thread(rank: int) -> None:
            try:
                with self._inside(places[rank]):
                    results[rank] = work(rank)
            except BaseException as error:
                errors.append(error)

        threads = [
            threading.Thread(target=thread, args=(rank,), daemon=True) for rank in range(self.count)
        ]
        for each in threads:
            each.start()
        told = False
        try:
            for each in threads:
                while each.is_alive():
                    each.join(_LOOKS)
                    if errors and not told:
                        told = True
                        self._abort("another rank failed")
        except BaseException:
            self._abort("the run was interrupted")
            for each in threads:
                each.join(_PATIENCE)
            raise
        if errors:
            raise _first(errors)
        return results

    def _abort(self, why: str) -> None:
        for rank in self.ranks:
            rank.group.abort(why)


def _first(errors: Sequence[BaseException]) -> BaseException:
    """Return the error that says most: one that no other rank's failure caused."""
    for error in errors:
        if not isinstance(error, TransportError | threading.BrokenBarrierError):
            return error
    return next((each for each in errors if isinstance(each, TransportError)), errors[0])


@contextmanager
def gathered(spec: NetworkSpec, plan: Plan, *, real_time: bool = True) -> Iterator[RankThreads]:
    """Connect the ranks of a plan on a network that is there, while the block runs.

    Parameters
    ----------
    spec, plan
        Where, and what.
    real_time
        Whether ranks run before everything else on this machine, as far as that is permitted.
    """
    gang = RankThreads(spec, plan, ways_of(plan), real_time=real_time)
    with ExitStack() as stack:
        addresses = [] if spec.loopback else stack.enter_context(led(spec, gang.ways.connections))
        stack.callback(gang.close)
        gang.connect(addresses)
        yield gang
