"""ASTRA-sim's rules for traces, written down anew: what each NPU does next, and how messages cross a ring.

Read off ASTRA-sim 518bd51 and its analytical back end 599a047:

- an NPU has one computation and one collective or send under way at a time, whatever its group; a
  receive is free (``HardwareResource``). Of what is ready it takes the lowest number first
  (``issue_dep_free_nodes``);
- a collective begins when all of its group have come to it; a ring of k sends k-th parts, each when
  the one before it has come (``Ring``), one way around;
- a message goes whole from link to link, the shorter way round the ring and clockwise where both are
  as long; a link serves one at a time, first come, first served, and its latency passes while it
  serves the next.

It shares nothing with hocket's simulation but the graph of the iteration.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import count

import hocket as hk
from hocket.traces.training import _NONE, _Graph
from hocket.training.parallel import CAUSES

_PS_PER_US = 10**6


class Ring:
    """Messages on a ring of NPUs."""

    def __init__(self, topology: hk.Topology) -> None:
        self.now = 0
        self._npus = topology.npu_count
        self._rate = int(topology.link_bandwidth[0])
        self._latency = int(topology.link_latency_ps[0])
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._free: dict[tuple[int, int], int] = defaultdict(int)

    def at(self, time: int, does: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time, next(self._order), does))

    def step(self) -> bool:
        if not self._events:
            return False
        self.now, _, does = heapq.heappop(self._events)
        does()
        return True

    def send(self, src: int, dst: int, size: int, then: Callable[[], None]) -> None:
        clockwise = (dst - src) % self._npus
        self._hop(src, 1 if 2 * clockwise <= self._npus else -1, dst, size, then)

    def _hop(self, at: int, way: int, dst: int, size: int, then: Callable[[], None]) -> None:
        if at == dst:
            then()
            return
        start = max(self.now, self._free[at, way])
        self._free[at, way] = start + size * 10**12 // self._rate
        after = partial(self._hop, (at + way) % self._npus, way, dst, size, then)
        self.at(self._free[at, way] + self._latency, after)


class Replay:
    """The iteration of a run, on a ring."""

    def __init__(self, run: hk.TrainingRun) -> None:
        self.ring, self.run, self.columns = Ring(run.topology), run, run.columns
        self.graph = _Graph(run)
        npus = range(run.topology.npu_count)
        nodes = range(len(self.columns.actor))
        of = [[i for i in nodes if self.columns.actor[i] == self.graph.stage_of[p]] for p in npus]
        self.left = {(p, i): len(self._deps(i)) for p in npus for i in of[p]}
        self.after: dict[int, list[int]] = defaultdict(list)
        for node in nodes:
            for before in self._deps(node):
                self.after[before].append(node)
        self.time: dict[tuple[int, int], int] = {}
        for npu in npus:
            over = 0
            for node in (node for node in of[npu] if self.columns.call[node] == _NONE):
                micros, over = divmod(int(self.columns.time_ps[node]) + over, _PS_PER_US)
                self.time[npu, node] = max(micros * _PS_PER_US, 1000)  # 1 ns at least
        self.ready: list[tuple[list[int], list[int]]] = [([], []) for _ in npus]
        self.busy = [[False, False] for _ in npus]
        self.came: set[tuple[int, int]] = set()
        self.awaited: dict[tuple[int, int], int] = {}
        self.joined: dict[tuple[tuple[int, ...], int], int] = defaultdict(int)

    def _deps(self, node: int) -> list[int]:
        first = self.columns.first_dep
        return self.columns.deps[first[node] : first[node + 1]].tolist()

    def time_ps(self) -> int:
        for (npu, node), left in self.left.items():
            if not left:
                self._release(npu, node)
        goes_on = True
        while goes_on:
            for npu in range(len(self.busy)):
                for kind, begin in enumerate((self._compute, self._communicate)):
                    if self.ready[npu][kind] and not self.busy[npu][kind]:
                        self.busy[npu][kind] = True
                        begin(npu, heapq.heappop(self.ready[npu][kind]))
            goes_on = self.ring.step()
        assert not any(self.left.values())
        return self.ring.now

    def _release(self, npu: int, node: int) -> None:
        call = self.columns.call[node]
        if call == _NONE:
            heapq.heappush(self.ready[npu][0], node)
        elif self._exchange(call).kind != "message" or self._member(call, 0) == node:
            heapq.heappush(self.ready[npu][1], node)
        elif (npu, call) in self.came:
            self._finish(npu, node)
        else:
            self.awaited[npu, call] = node

    def _finish(self, npu: int, node: int) -> None:
        for after in self.after[node]:
            self.left[npu, after] -= 1
            if not self.left[npu, after]:
                self._release(npu, after)

    def _end(self, npu: int, kind: int, node: int) -> None:
        self.busy[npu][kind] = False
        self._finish(npu, node)

    def _exchange(self, call: int) -> hk.training.network.Exchange:
        return self.run.exchanges[self.columns.shape[call]]

    def _member(self, call: int, place: int) -> int:
        return int(self.columns.members[self.columns.first_member[call] + place])

    def _compute(self, npu: int, node: int) -> None:
        self.ring.at(self.ring.now + self.time[npu, node], partial(self._end, npu, 0, node))

    def _communicate(self, npu: int, node: int) -> None:
        call = self.columns.call[node]
        exchange = self._exchange(call)
        if exchange.kind == "message":
            receiver = self._member(call, 1)
            peer = self.graph.members["pp"][npu][self.columns.actor[receiver]]
            arrives = partial(self._arrive, npu, peer, node, call)
            self.ring.send(npu, peer, exchange.size, arrives)
            return
        assert exchange.kind == "all-reduce"
        group = self.graph._group(npu, CAUSES[self.columns.cause[node]], exchange.npus)
        self.joined[group, call] += 1
        if self.joined[group, call] == len(group):
            for member in group:
                self._pass_on(group, member, node, exchange.size, 2 * len(group) - 2)

    def _arrive(self, npu: int, peer: int, node: int, call: int) -> None:
        self._end(npu, 1, node)
        self.came.add((peer, call))
        if (peer, call) in self.awaited:
            self._finish(peer, self.awaited.pop((peer, call)))

    def _pass_on(self, group: tuple[int, ...], npu: int, node: int, size: int, steps: int) -> None:
        after = group[(group.index(npu) + 1) % len(group)]

        def received() -> None:
            if steps == 1:
                self._end(after, 1, node)
            else:
                self._pass_on(group, after, node, size, steps - 1)

        self.ring.send(npu, after, size // len(group), received)
