"""What each transfer of a builder waits for, by the rules themselves: slow, and a place at a time.

A place is a chunk at an NPU. Its accesses, in the order of the plan, fall into phases: the longest runs of
reads, or of sums. A copy is a phase of its own. At each place, a transfer waits for the phase before its.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import hocket as hk

NOTHING = hk.Plan.NO_WAIT
GROUP = 1 << 31
READ, SUM, COPY = "read", "sum", "copy"


class RefusalError(Exception):
    """Why a transfer is not taken, as the builder says it."""


class Oracle:
    """Transfers on a network whose links are `links`, with `ends` that send and receive."""

    def __init__(
        self,
        topology: hk.Topology,
        ends: Sequence[int],
        chunks: int,
        links: Sequence[tuple[int, int]],
    ) -> None:
        self.topology, self.ends, self.chunks, self.links = topology, ends, chunks, links
        self.waits: list[int] = []
        self.groups: list[tuple[int, ...]] = []
        self.paths: list[tuple[int, ...]] = []
        self.taken: list[int] = []
        self.phases: dict[tuple[int, int], list[tuple[str, list[int]]]] = {}
        self.barriers = (0, NOTHING)

    def send(
        self,
        is_sum: bool,
        chunks: range,
        src: int,
        dst: int,
        after: Sequence[int] | None = None,
        path: Sequence[int] | None = None,
    ) -> int:
        number = len(self.waits)
        self.check(number, chunks, src, dst)
        given = None if after is None else self.join(self.handle(number, each) for each in after)
        taken = NOTHING if path is None else self.path(number, path, src, dst)
        waits: list[int] = []
        for npu, kind in ((src, READ), (dst, SUM if is_sum else COPY)):
            for chunk in chunks:
                phases = self.phases.setdefault((npu, chunk), [(READ, [])])
                if kind == COPY or kind != phases[-1][0]:
                    phases.append((kind, []))
                phases[-1][1].append(number)
                if len(phases) > 1:
                    waits.append(self.join(phases[-2][1]))
        self.waits.append(self.join(waits) if given is None else given)
        self.taken.append(taken)
        return number

    def check(self, number: int, chunks: range, src: int, dst: int) -> None:
        if not chunks:
            text = f"chunk: {chunks} is not a run of chunks; give one such as range(4, 8)"
            raise RefusalError(f"transfer {number}: {text}")
        if chunks.start < 0 or chunks.stop > self.chunks:
            text = f"chunk: there is no chunk {chunks}; chunks are 0 to {self.chunks - 1}"
            raise RefusalError(f"transfer {number}: {text}")
        npus = self.topology.npu_count
        for field, npu in (("src", src), ("dst", dst)):
            if npu not in self.ends:
                text = f"there is no NPU {npu}; NPUs are 0 to {npus - 1}"
                raise RefusalError(f"transfer {number}: {field}: {text}")
        if src == dst:
            text = f"NPU {dst} is the sender, too; name another NPU"
            raise RefusalError(f"transfer {number}: dst: {text}")

    def handle(self, number: int, wait: int) -> int:
        is_group = GROUP <= wait < GROUP + len(self.groups)
        if wait == NOTHING or is_group or 0 <= wait < number:
            return wait
        text = f"{wait} is none of the {number} transfers so far"
        right = "give what copy, reduce or barrier returned"
        raise RefusalError(f"transfer {number}: after: {text}; {right}")

    def join(self, waits: Iterable[int]) -> int:
        """Return the wait for all of several, of which the same ones share a group."""
        different = tuple(dict.fromkeys(wait for wait in waits if wait != NOTHING))
        if not different:
            return NOTHING
        if len(different) == 1:
            return different[0]
        if different not in self.groups:
            self.groups.append(different)
        return GROUP + self.groups.index(different)

    def barrier(self) -> int:
        first, before = self.barriers
        joined = self.join([before, *range(first, len(self.waits))])
        self.barriers = (len(self.waits), joined)
        return joined

    def path(self, number: int, devices: Sequence[int], src: int, dst: int) -> int:
        names = self.topology.device_names
        for start, end in pairwise(devices):
            if (start, end) not in self.links:
                text = f"path: there is no link from {names[start]!r} to {names[end]!r}"
                raise RefusalError(f"transfer {number}: {text}")
        if len(devices) < 2 or (devices[0], devices[-1]) != (src, dst):
            right = "name the devices from the sender to the receiver, both included"
            text = f"path: {list(devices)} does not join them; {right}"
            raise RefusalError(f"transfer {number}: {text}")
        if tuple(devices) not in self.paths:
            self.paths.append(tuple(devices))
        return self.paths.index(tuple(devices))
