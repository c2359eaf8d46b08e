"""Traces replayed slowly: what docs/traces.md says, moment by moment, on one switch without latency.

Written for nothing but being right: at every moment each rank, each call and each rank's link is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from . import chakra_files as chakra
from .chakra_files import Node

TERA = 10**12
US = 10**6
SENT_TWICE = (chakra.ALL_REDUCE,)
"""What sends all of its bytes but one rank's twice."""
WHOLE = (chakra.BROADCAST, chakra.REDUCE)
"""What one rank must get, or give, all bytes of."""
GATHERED = (chakra.ALL_GATHER, chakra.GATHER)
"""What is as many times larger than what goes in at one rank as there are ranks."""

Key = tuple[int, int]
"""A rank and the number of a node in its file."""


@dataclass
class Call:
    """A collective or a message."""

    number: int
    time: int
    priority: int
    starters: list[Key]
    members: list[Key]
    begun: int | None = None
    waiting: list[int] = field(default_factory=list)
    """Ranks whose links have not taken it on."""
    serving: dict[int, int] = field(default_factory=dict)
    """Ranks whose links it is on, and until when."""
    ended: int | None = None


def transmission(kind: int, ranks: int, given: int, bandwidth: int) -> int:
    """Give what a collective takes at all bandwidth of an NPU's link [ps]."""
    if ranks == 1 or kind == chakra.BARRIER:
        return 0
    size = given * ranks if kind in GATHERED else given
    parts = ranks if kind in WHOLE else (ranks - 1) * (2 if kind in SENT_TWICE else 1)
    return -(-size * parts * TERA // (ranks * bandwidth))


def matched(
    ranks: Sequence[Sequence[Node]], groups: Mapping[str, Sequence[int]]
) -> list[list[Key]]:
    """Give the nodes of each collective: the n-th of each rank of a group, by their numbers."""
    found = []
    for name, members in groups.items():
        each = [
            sorted(
                node.id
                for node in ranks[rank]
                if node.kind == chakra.COLLECTIVE and node.attributes.get("pg_name", "0") == name
            )
            for rank in members
        ]
        for ids in zip(*each, strict=True):
            found.append(list(zip(members, ids, strict=True)))
    return found


class SlowTrace:
    """Runs a trace whose messages have tags of their own; `end` is when each node ends."""

    def __init__(
        self,
        ranks: Sequence[Sequence[Node]],
        groups: Mapping[str, Sequence[int]],
        numbers: Mapping[Key, int],
        *,
        bandwidth: int,
        is_lifo: bool = False,
    ) -> None:
        self.nodes = {(rank, node.id): node for rank, nodes in enumerate(ranks) for node in nodes}
        self.is_lifo, self.now = is_lifo, 0
        self.end: dict[Key, int] = {}
        self.going: dict[tuple[int, bool], tuple[Key, int]] = {}
        """By rank and whether it is beside the NPU: what is computed, and until when."""
        self.calls: list[Call] = []
        for members in matched(ranks, groups):
            node = self.nodes[members[0]]
            kind, size = node.attributes["comm_type"], node.attributes["comm_size"]
            assert isinstance(kind, int)
            assert isinstance(size, int)
            time = transmission(kind, len(members), size, bandwidth)
            most = max(self.priority(key) for key in members)
            self.calls.append(Call(numbers[members[0]], time, most, members, members))
        for key, node in self.nodes.items():
            if node.kind == chakra.SEND:
                size, to = node.attributes["comm_size"], node.attributes["comm_dst"]
                assert isinstance(size, int)
                assert isinstance(to, int)
                other = next(
                    each
                    for each, receiver in self.nodes.items()
                    if each[0] == to
                    and receiver.kind == chakra.RECEIVE
                    and receiver.attributes["comm_src"] == key[0]
                    and receiver.attributes["comm_tag"] == node.attributes["comm_tag"]
                )
                time = -(-size * TERA // bandwidth)
                self.calls.append(Call(numbers[key], time, 0, [key], [key, other]))
        self.call_of = {key: call for call in self.calls for key in call.members}
        self._run()

    def priority(self, key: Key) -> int:
        """Of a collective's node; 0 where it has none."""
        given = self.nodes[key].attributes.get("comm_priority", 0)
        assert isinstance(given, int)
        return given

    def is_ready(self, key: Key) -> bool:
        """Whether all that a node waits for has ended."""
        node = self.nodes[key]
        return all((key[0], before) in self.end for before in (*node.control, *node.data))

    def _run(self) -> None:
        while True:
            while self._nodes_end() or self._calls_begin():
                pass
            if self._engines_take() or self._links_take():
                continue
            if len(self.end) == len(self.nodes):
                return
            times = [until for _, until in self.going.values()]
            times += [until for call in self.calls for until in call.serving.values()]
            assert times, "ranks wait for each other"
            self.now = min(times)

    def _nodes_end(self) -> bool:
        """Everything that ends at this moment."""
        moved = False
        for engine, (key, until) in list(self.going.items()):
            if until == self.now:
                self.end[key] = self.now
                del self.going[engine]
                moved = True
        for call in self.calls:
            for rank, until in list(call.serving.items()):
                if until == self.now:
                    del call.serving[rank]
                    moved = True
            if call.begun is not None and call.ended is None and not (call.waiting or call.serving):
                call.ended = self.now
                moved = True
        for key, node in self.nodes.items():
            if key in self.end or not self.is_ready(key):
                continue
            call = self.call_of.get(key)
            if node.kind == chakra.METADATA or (call is not None and call.ended is not None):
                self.end[key] = self.now
                moved = True
        return moved

    def _calls_begin(self) -> bool:
        moved = False
        for call in self.calls:
            if call.begun is None and all(self.is_ready(key) for key in call.starters):
                call.begun = self.now
                call.waiting = sorted({rank for rank, _ in call.starters}) if call.time else []
                moved = True
        return moved

    def _engines_take(self) -> bool:
        """Of the nodes that may begin, the first in the file."""
        moved = False
        for key, node in self.nodes.items():
            if node.kind not in (chakra.COMPUTE, chakra.MEMORY_LOAD, chakra.MEMORY_STORE):
                continue
            is_beside = node.kind != chakra.COMPUTE or bool(node.attributes.get("is_cpu_op", False))
            engine = (key[0], is_beside)
            begun = key in self.end or key in [each for each, _ in self.going.values()]
            if not begun and engine not in self.going and self.is_ready(key):
                self.going[engine] = (key, self.now + node.micros * US)
                moved = True
        return moved

    def _links_take(self) -> bool:
        """Of the calls that wait for a rank's link, that of most priority, then the first or the last."""
        moved = False
        for rank in {rank for rank, _ in self.nodes}:
            if any(rank in call.serving for call in self.calls):
                continue
            waiting = [call for call in self.calls if rank in call.waiting]
            if waiting:
                sign = -1 if self.is_lifo else 1
                first = min(
                    waiting,
                    key=lambda call: (-call.priority, sign * (call.begun or 0), sign * call.number),
                )
                first.waiting.remove(rank)
                first.serving[rank] = self.now + first.time
                moved = True
        return moved
