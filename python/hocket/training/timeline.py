"""The computation and messages of each stage over time, as rows and as trace events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hocket.files.atomic import write_text
from hocket.training.parallel import CAUSES, PASSES
from hocket.training.stages import spoken

if TYPE_CHECKING:
    from hocket.training.result import TrainingRun

COMPUTE = "compute"
"""The track of what is computed; those of calls are named as their causes."""
_US = 1e6
"""Picoseconds of a microsecond, the unit of trace events."""


class Span(NamedTuple):
    """Something that took time.

    Attributes
    ----------
    stage
        Of the pipeline, from 0.
    track
        ``compute``, or the cause of a call.
    name
        What it is and of which layer: ``forward conv1``, ``all-reduce conv1``, ``receive conv1``. A call
        has the name of the layer that it followed, which for a bucket of gradients is its last one.
    does
        The pass: ``forward``, ``recompute``, ``input gradient``, ``weight gradient`` or ``update``.
    iteration
        From 0.
    start_ps, end_ps
        In picoseconds from the first start; of a call, from when it could begin.
    cause
        Of a call: one of :data:`hocket.training.parallel.CAUSES`; None of compute.
    size
        Bytes of a call, as collectives count them; 0 of compute.
    exposed_ps
        How long compute waited for it: the last part of the span.
    """

    stage: int
    track: str
    name: str
    does: str
    iteration: int
    start_ps: int
    end_ps: int
    cause: str | None
    size: int
    exposed_ps: int


def timeline(run: TrainingRun) -> list[Span]:
    """Return everything that was computed and sent, stage by stage, in the order of starts.

    A message between stages is in both: as one sends it and as the other receives it.

    Complexity: O(nodes x log nodes).
    """
    return sorted(_spans(run), key=lambda span: (span.stage, span.start_ps, span.end_ps))


def labels(run: TrainingRun) -> list[str]:
    """Return the name of each node: what it does and of which layer."""
    columns = run.columns
    layers = [block.name for blocks in run.stages for block in blocks]
    shape, first = columns.shape.tolist(), columns.members[columns.first_member[:-1]].tolist()
    names = []
    rows = zip(*(columns.layer.tolist(), columns.does.tolist(), columns.call.tolist()), strict=True)
    for node, (layer, does, call) in enumerate(rows):
        of = f" {layers[layer]}" if layer < len(layers) else ""
        if call >= len(shape):
            names.append(PASSES[does] + of)
            continue
        kind = run.exchanges[shape[call]].kind
        if kind == "message":
            kind = "send" if first[call] == node else "receive"
        names.append(kind + (" weights" if PASSES[does] == "update" else of))
    return names


def _spans(run: TrainingRun) -> Iterator[Span]:
    columns, outcome = run.columns, run.outcome
    shape = columns.shape.tolist()
    call_starts, call_ends = outcome.call_start_ps.tolist(), outcome.call_end_ps.tolist()
    rows = zip(
        columns.actor.tolist(),
        labels(run),
        columns.does.tolist(),
        columns.iteration.tolist(),
        outcome.start_ps.tolist(),
        outcome.end_ps.tolist(),
        columns.cause.tolist(),
        run.exposed_ps.tolist(),
        columns.call.tolist(),
        strict=True,
    )
    for stage, name, does, iteration, start, end, cause, exposed, call in rows:
        what = (name, PASSES[does], iteration)
        if call >= len(shape):
            yield Span(stage, COMPUTE, *what, start, end, None, 0, 0)
            continue
        size = run.exchanges[shape[call]].size
        times = (call_starts[call], call_ends[call])
        yield Span(stage, CAUSES[cause], *what, *times, CAUSES[cause], size, exposed)


def save_iteration(run: TrainingRun, path: Path) -> None:
    """Write a run's figures and its time-line, a column for each attribute of spans, as JSON."""
    spans = timeline(run)
    columns = {
        name: [getattr(span, name) for span in spans]
        for name in ("stage", "track", "name", "does", "start_ps", "end_ps", "exposed_ps")
    }
    document = {"format": "hocket.training-run", **run.to_dict(), "spans": columns}
    write_text(path, json.dumps(document) + "\n")


def save_perfetto(run: TrainingRun, path: Path) -> None:
    """Write a run's time-line as trace events: JSON, whole or not at all.

    A process is a stage; names count stages from 1. What overlaps on a track goes to tracks of its own.
    """
    from hocket.files.perfetto import Span as Event
    from hocket.files.perfetto import in_lanes, write_spans

    by_track: dict[tuple[int, str], list[Span]] = {}
    for span in timeline(run):
        by_track.setdefault((span.stage, span.track), []).append(span)
    names: dict[tuple[int, int], str] = {}
    events = []
    for stage in range(len(run.stages)):
        for track in (COMPUTE, *CAUSES):
            spans = by_track.get((stage, track), [])
            lanes = in_lanes((span.start_ps, span.end_ps) for span in spans)
            first = sum(1 for process, _ in names if process == stage)
            for lane in range(max(lanes, default=-1) + 1):
                names[stage, first + lane] = track + (f" {lane + 1}" if lane else "")
            for span, lane in zip(spans, lanes, strict=True):
                times = (span.start_ps, span.end_ps)
                events.append(Event(stage, first + lane, span.name, *times, track, _about(span)))
    write_spans(
        path,
        {s: f"stage {s + 1}: {spoken(own)}" for s, own in enumerate(run.pieces)},
        names,
        events,
    )


def _about(span: Span) -> dict[str, object]:
    about: dict[str, object] = {"pass": span.does, "iteration": span.iteration}
    if span.cause is not None:
        about |= {"cause": span.cause, "bytes": span.size, "exposed_us": span.exposed_ps / _US}
    return about
