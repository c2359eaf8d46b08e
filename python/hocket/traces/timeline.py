"""A replayed trace as spans: a process for each rank, with tracks for what it computes and its calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hocket.files.perfetto import Span, in_lanes, write_spans
from hocket.traces.result import TraceRun

_ENGINES = ("NPU", "CPU and memory")
_CALLS = len(_ENGINES)
"""First of the tracks of calls."""


def write_timeline(path: Path, run: TraceRun) -> None:
    """Write when every node ran, and every call at each of its ranks, for Perfetto.

    Raises
    ------
    SpecError
        If the file cannot be written.
    """
    ranks = [_calls_of(run, rank) for rank in range(run.trace.ranks)]
    tracks: dict[tuple[int, int], str] = {}
    for rank, calls in enumerate(ranks):
        lanes = range(1 + max((span.track - _CALLS for span in calls), default=-1))
        names = [*_ENGINES, *("calls" if lane == 0 else f"calls {lane + 1}" for lane in lanes)]
        tracks |= {(rank, track): name for track, name in enumerate(names)}
    processes = {rank: f"rank {rank}" for rank in range(run.trace.ranks)}
    write_spans(path, processes, tracks, _spans(run, ranks))


def _spans(run: TraceRun, calls: list[list[Span]]) -> Iterator[Span]:
    for rank, of_rank in enumerate(calls):
        yield from _nodes_of(run, rank)
        yield from of_rank


def _nodes_of(run: TraceRun, rank: int) -> Iterator[Span]:
    """Return what kept the rank's NPU, CPU or memory busy, each in the order of starts."""
    import numpy as np

    trace, outcome, names = run.trace, run.outcome, run.trace.names
    first, last = trace.rank_first[rank : rank + 2].tolist()
    keys = (outcome.end_ps, outcome.start_ps, run.graph.engine)
    rows = first + np.lexsort([key[first:last] for key in keys])
    columns = zip(
        run.graph.engine[rows].tolist(),
        trace.name_row[rows].tolist(),
        outcome.start_ps[rows].tolist(),
        outcome.end_ps[rows].tolist(),
        strict=True,
    )
    for engine, name, start, end in columns:
        if engine < _CALLS:
            yield Span(rank, engine, names[name], start, end, "compute")


def _calls_of(run: TraceRun, rank: int) -> list[Span]:
    """Return the calls that a rank takes part in, in the order of starts."""
    import numpy as np

    trace, graph, outcome, names = run.trace, run.graph, run.outcome, run.trace.names
    low, high = trace.rank_first[rank : rank + 2].tolist()
    rows = np.flatnonzero(run.call_of[low:high] != trace.NONE) + low
    begin, end = (
        times[run.call_of[rows]] for times in (outcome.call_start_ps, outcome.call_end_ps)
    )
    rows = rows[np.lexsort((end, begin))]
    calls = run.call_of[rows]
    whats = [kind for kind, *_ in run.whats]
    columns = list(
        zip(
            graph.calls_what[calls].tolist(),
            trace.name_row[rows].tolist(),
            outcome.call_start_ps[calls].tolist(),
            outcome.call_end_ps[calls].tolist(),
            strict=True,
        )
    )
    lanes = in_lanes((start, end) for _, _, start, end in columns)
    return [
        Span(rank, _CALLS + lane, names[name], start, end, whats[what])
        for lane, (what, name, start, end) in zip(lanes, columns, strict=True)
    ]
