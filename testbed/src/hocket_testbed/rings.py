"""Ring all-reduces over TCP between the hosts of a testbed: real bytes, whose sums are checked.

All ranks are served by one thread, which waits for all their sockets at once; each socket is in the
namespace of its rank's host. A rank sends a chunk when it has the chunk before it whole, as plans have
it, and adds what arrives piece by piece. Nothing is checked before all ranks are done: that would take
time from them.
"""

from __future__ import annotations

import gc
import os
import select
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from time import perf_counter, sleep

import numpy as np

from hocket.errors import InfeasibleError, SimulationError
from hocket_testbed.clos import ClosSpec
from hocket_testbed.namespaces import inside

__all__ = ["Ring", "all_reduce"]

_FLOAT = 4
_PRIORITY = 40
_STALLED = 20.0
"""After which time without a byte a run is given up [s]."""
_SETTLES = 0.05
_PERIOD = 97


@dataclass(frozen=True)
class Ring:
    """A ring that is to all-reduce.

    Attributes
    ----------
    hosts
        Numbers of its hosts, in rank order.
    size
        Bytes of each rank's vector of 32-bit floats; a multiple of 4 for each rank.
    dport
        Port of every rank.
    sports
        Ports from which each rank sends to the next.
    """

    hosts: tuple[int, ...]
    size: int
    dport: int
    sports: tuple[int, ...]


def all_reduce(spec: ClosSpec, rings: Sequence[Ring], *, warm_up: int = 4) -> list[float]:
    """Run rings together, and give the time that each took from the common start [s].

    Parameters
    ----------
    spec : ClosSpec
        A Clos that is there.
    rings : sequence of Ring
        What runs.
    warm_up : int
        Which part of each vector is all-reduced before, so that TCP knows the paths.

    Raises
    ------
    InfeasibleError
        Where connections cannot be made, such as for a port in use.
    SimulationError
        Where no byte comes for long, or a sum is wrong.
    """
    with ExitStack() as stack:
        ranks = [_connected(spec, ring, stack) for ring in rings]
        with _promptly():
            if warm_up:
                _run(ranks, [max(ring.size // warm_up, 1) for ring in rings])
            return _run(ranks, [ring.size for ring in rings])


def _connected(spec: ClosSpec, ring: Ring, stack: ExitStack) -> list[_Rank]:
    """Connect each rank to the next."""
    count = len(ring.hosts)
    listeners = []
    for host in ring.hosts:
        with inside(spec.namespace(f"host{host}")):
            listener = stack.enter_context(socket.create_server((spec.address(host), ring.dport)))
        listeners.append(listener)
    outs, ins = [], []
    for rank, host in enumerate(ring.hosts):
        to = (rank + 1) % count
        with inside(spec.namespace(f"host{host}")):
            out = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        out.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        out.settimeout(_STALLED)
        where = (spec.address(ring.hosts[to]), ring.dport)
        try:
            out.bind((spec.address(host), ring.sports[rank]))
            out.connect(where)
        except OSError as error:
            why = f"host{host} does not reach {where[0]} from port {ring.sports[rank]}: {error}"
            raise InfeasibleError(None, why) from None
        ins.append(stack.enter_context(listeners[to].accept()[0]))
        outs.append(out)
    for each in (*outs, *ins):
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The kernel's default may be one that paces, and shares links otherwise.
        with suppress(OSError):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        each.setblocking(False)
    return [_Rank(rank, count, outs[rank], ins[rank - 1]) for rank in range(count)]


class _Rank:
    """A rank: its vector, what it sends and what it receives."""

    def __init__(self, rank: int, count: int, out: socket.socket, into: socket.socket) -> None:
        self.rank, self.count = rank, count
        self.out, self.into = out, into
        self.steps = 2 * (count - 1)

    def start(self, size: int) -> None:
        """Fill the vector, and forget the run before."""
        length = max(size // _FLOAT // self.count, 1) * self.count
        values = np.arange(length, dtype=np.float32) % _PERIOD
        self.expected = values * self.count + self.count * (self.count - 1) // 2
        self.vector = (values + self.rank).reshape(self.count, -1)
        self.scratch = np.empty_like(self.vector[0])
        self.bytes = memoryview(self.scratch).cast("B")
        self.sending, self.received = 0, 0
        self.at_in = 0
        self.view = memoryview(b"")
        self._offer()

    @property
    def is_done(self) -> bool:
        """Whether everything has been sent and received."""
        return self.received == self.steps and self.sending == self.steps and not self.view

    def is_right(self) -> bool:
        """Return whether the vector is the sum of all."""
        return bool((self.vector.reshape(-1) == self.expected).all())

    def _offer(self) -> None:
        """Take up the next chunk to be sent, if it is there."""
        if not self.view and self.sending < self.steps and self.sending <= self.received:
            chunk = (self.rank - self.sending) % self.count
            self.view = memoryview(self.vector[chunk]).cast("B")
            self.sending += 1

    def send(self) -> bool:
        """Send what can be sent, and say whether more is to be sent that does not go now."""
        while self.view:
            try:
                gone = self.out.send(self.view)
            except BlockingIOError:
                return True
            except OSError:
                raise self._lost() from None
            self.view = self.view[gone:]
            self._offer()
        return False

    def receive(self) -> None:
        """Take in what is there: add it, or keep it in the second half."""
        while self.received < self.steps:
            try:
                more = self.into.recv_into(self.bytes[self.at_in :])
            except BlockingIOError:
                return
            except OSError:
                raise self._lost() from None
            if not more:
                raise self._lost()
            first, self.at_in = self.at_in // _FLOAT, self.at_in + more
            last = self.at_in // _FLOAT
            chunk = self.vector[(self.rank - 1 - self.received) % self.count]
            if self.received < self.count - 1:
                chunk[first:last] += self.scratch[first:last]
            else:
                chunk[first:last] = self.scratch[first:last]
            if self.at_in == len(self.bytes):
                self.at_in = 0
                self.received += 1
                self._offer()

    def _lost(self) -> SimulationError:
        return SimulationError(None, f"rank {self.rank} lost its connection")


def _run(rings: Sequence[list[_Rank]], sizes: Sequence[int]) -> list[float]:
    """All-reduce once on each ring; the time that each took."""
    for ranks, size in zip(rings, sizes, strict=True):
        for rank in ranks:
            rank.start(size)
    sleep(_SETTLES)
    ends: list[float] = [0.0] * len(rings)
    with select.epoll() as poll:
        calls: dict[int, Callable[[], None]] = {}
        waits: set[int] = set()

        def push(rank: _Rank) -> None:
            """Send, and be told when there is room again if there is none."""
            out = rank.out.fileno()
            is_blocked = rank.send()
            if is_blocked != (out in waits):
                poll.modify(out, select.EPOLLOUT if is_blocked else 0)
                (waits.add if is_blocked else waits.discard)(out)

        def take(rank: _Rank) -> None:
            rank.receive()
            push(rank)

        every = [(i, rank) for i, ranks in enumerate(rings) for rank in ranks]
        for _, rank in every:
            poll.register(rank.out, 0)
            poll.register(rank.into, select.EPOLLIN)
            calls[rank.out.fileno()] = lambda rank=rank: push(rank)  # type: ignore[misc]
            calls[rank.into.fileno()] = lambda rank=rank: take(rank)  # type: ignore[misc]
        left = [len(ranks) for ranks in rings]
        of_socket = {
            each.fileno(): (i, rank) for i, rank in every for each in (rank.out, rank.into)
        }
        done: set[int] = set()
        begun = perf_counter()
        for _, rank in every:
            push(rank)
        while any(left):
            events = poll.poll(_STALLED)
            if not events:
                raise SimulationError(None, f"no byte has come for {_STALLED:g} s")
            for descriptor, _ in events:
                calls[descriptor]()
                i, rank = of_socket[descriptor]
                if rank.is_done and id(rank) not in done:
                    done.add(id(rank))
                    left[i] -= 1
                    if not left[i]:
                        ends[i] = perf_counter() - begun
    wrong = sum(not rank.is_right() for _, rank in every)
    if wrong:
        raise SimulationError(None, f"{wrong} of {len(every)} ranks have a wrong sum")
    return ends


@contextmanager
def _promptly() -> Iterator[None]:
    """Make this thread run before all others, as far as permitted, and without pauses of its own."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    collects = gc.isenabled()
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    gc.disable()
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setscheduler(0, *before)
        if collects:
            gc.enable()
