"""The outcome of a trace on a network."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING

from hocket import _core
from hocket._checks import path_of
from hocket._core.iteration import Outcome
from hocket._core.replay import Replay
from hocket._core.trace import Trace
from hocket._results import HIDDEN, Column, Result, TableResult, figure, name_of, said
from hocket.traces.files import CALLS, groups_of
from hocket.workload.accelerators import Accelerator

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MESSAGE = "message"
"""Kind of a call that is a send and its receive."""


@dataclass(frozen=True)
class RankTime(Result):
    """The use of a rank's time until its last node ended [ps].

    Attributes
    ----------
    rank
        Which.
    compute
        Its NPU computed.
    exposed
        It waited for communication under way.
    waited
        It waited for others to take part, or for a CPU or memory.
    rest
        Whatever nothing explains.
    """

    rank: int = field(metadata=said(column=Column("rank")))
    compute: int = field(metadata=said("compute_ps", column=Column("compute")))
    exposed: int = field(metadata=said("exposed_ps", column=Column("exposed calls")))
    waited: int = field(metadata=said("waited_ps", column=Column("waiting")))
    rest: int = field(metadata=said("rest_ps", column=Column("rest")))

    @property
    @figure("end_ps", column=Column("end"))
    def end(self) -> int:
        """When its last node ended: the sum."""
        return self.compute + self.exposed + self.waited + self.rest


@dataclass(frozen=True)
class TraceCall(Result):
    """A collective or a message.

    Attributes
    ----------
    name
        Of its first node.
    kind
        Of a collective; ``message`` for a send and its receive.
    size
        Bytes.
    group
        The number of its group; None of a message.
    ranks
        The group's; of a message, sender and receiver.
    start_ps, end_ps
        When it began, all who must being ready, and ended.
    """

    name: str
    kind: str
    size: int
    group: int | None = field(metadata=said(is_optional=True))
    ranks: tuple[int, ...] = field(metadata=HIDDEN)
    start_ps: int
    end_ps: int

    @property
    @figure("from", is_optional=True)
    def _from(self) -> int | None:
        """The sender of a message."""
        return None if self.kind != MESSAGE else self.ranks[0]

    @property
    @figure("to", is_optional=True)
    def _to(self) -> int | None:
        """The receiver of a message."""
        return None if self.kind != MESSAGE else self.ranks[1]


@dataclass(frozen=True)
class CallTotals(Result):
    """All calls of a kind.

    Attributes
    ----------
    calls
        Their number.
    size
        Bytes of all of them.
    time_ps
        Their times, added up [ps].
    """

    kind: str = field(metadata=said(column=Column("call")))
    calls: int = field(metadata=said(column=Column("calls")))
    size: int = field(metadata=said(column=Column("size, all", unit="bytes")))
    time_ps: int = field(metadata=said(column=Column("time, all")))


@dataclass(frozen=True)
class TraceRun(TableResult):
    """A trace in simulated time.

    Attributes
    ----------
    trace, topology, algorithm, npu
        What ran on what, and how.
    notes
        What was not done by the algorithm, and how instead.
    graph, outcome
        The trace as it ran, and when every node and call started and ended; nodes are the trace's rows.
    """

    trace: Trace = field(metadata=HIDDEN)
    topology: _core.Topology = field(metadata=said(of=name_of))
    algorithm: str
    npu: Accelerator = field(metadata=said(of=name_of))
    notes: tuple[str, ...]
    graph: Replay = field(repr=False, metadata=HIDDEN)
    outcome: Outcome = field(repr=False, metadata=HIDDEN)

    _table = "ranks"

    @property
    @figure()
    def time_ps(self) -> int:
        """When the last node ended [ps]."""
        return self.outcome.time_ps

    @property
    def time(self) -> float:
        """When the last node ended [s]."""
        return self.time_ps * 1e-12

    @cached_property
    @figure()
    def ranks(self) -> list[RankTime]:
        """The use of each rank's time."""
        import numpy as np

        exposure = self.outcome.exposed()
        computes = self.graph.engine == 0
        spans = np.where(computes, self.outcome.end_ps - self.outcome.start_ps, 0)
        columns = [
            self._by_rank(spans),
            self._by_rank(exposure.exposed_ps),
            self._by_rank(exposure.waited_ps),
            exposure.rest_ps.tolist(),
        ]
        rows = zip(*columns, strict=True)
        return [RankTime(rank, *row) for rank, row in enumerate(rows)]

    def _by_rank(self, values: NDArray[np.uint64]) -> list[int]:
        """Add a column up, rank by rank."""
        import numpy as np

        upto = np.concatenate(([0], np.cumsum(values, dtype=np.uint64)))
        ends = upto[self.trace.rank_first]
        return [int(span) for span in ends[1:] - ends[:-1]]

    @property
    @figure()
    def groups(self) -> dict[str, list[int]]:
        """Ranks of each group, by its number."""
        return {str(group): list(of) for _, _, group, of in self.whats if group is not None}

    @cached_property
    @figure()
    def calls(self) -> list[TraceCall]:
        """All collectives, then all messages."""
        trace, graph, outcome = self.trace, self.graph, self.outcome
        names, whats = trace.names, self.whats
        first_nodes = graph.calls_nodes[graph.calls_first[:-1]]
        rows = zip(
            trace.name_row[first_nodes].tolist(),
            graph.calls_what.tolist(),
            outcome.call_start_ps.tolist(),
            outcome.call_end_ps.tolist(),
            strict=True,
        )
        found = []
        for name, what, start, end in rows:
            kind, size, group, ranks = whats[what]
            found.append(TraceCall(names[name], kind, size, group, ranks, start, end))
        return found

    @cached_property
    def whats(self) -> list[tuple[str, int, int | None, tuple[int, ...]]]:
        """Kind, size, group and ranks of each distinct collective, then of each message."""
        graph = self.graph
        groups = groups_of(self.trace)
        collectives = zip(
            graph.collective_kind.tolist(),
            graph.collective_size.tolist(),
            graph.collective_group.tolist(),
            strict=True,
        )
        messages = zip(
            graph.message_size.tolist(),
            graph.message_source.tolist(),
            graph.message_target.tolist(),
            strict=True,
        )
        numbers = self.trace.group_id.tolist()
        found: list[tuple[str, int, int | None, tuple[int, ...]]] = [
            (CALLS[kind], size, numbers[group], groups[group]) for kind, size, group in collectives
        ]
        found += [(MESSAGE, size, None, (source, target)) for size, source, target in messages]
        return found

    @cached_property
    def call_of(self) -> NDArray[np.uint32]:
        """The call of each node, or ``Trace.NONE``."""
        import numpy as np

        found = np.full(len(self.trace), self.trace.NONE, dtype=np.uint32)
        counts = np.diff(self.graph.calls_first)
        found[self.graph.calls_nodes] = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
        return found

    def write_perfetto(self, path: str | PathLike[str]) -> None:
        """Write a file that Perfetto shows (``ui.perfetto.dev``): a process for each rank.

        Raises
        ------
        SpecError
            If the file cannot be written.
        """
        from hocket.traces.timeline import write_timeline

        write_timeline(path_of("path", path), self)

    @cached_property
    def kinds(self) -> dict[str, CallTotals]:
        """All calls of each kind."""
        found: dict[str, list[TraceCall]] = {}
        for call in self.calls:
            found.setdefault(call.kind, []).append(call)
        return {
            kind: CallTotals(
                kind,
                len(calls),
                sum(call.size for call in calls),
                sum(call.end_ps - call.start_ps for call in calls),
            )
            for kind, calls in found.items()
        }
