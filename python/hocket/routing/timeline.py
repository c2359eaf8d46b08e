"""The course of jobs on a cluster as spans: a process for each job, and one for the controller."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hocket.files.perfetto import Span, write_spans

if TYPE_CHECKING:
    from hocket.routing.result import ClusterRun

_COMPUTE, _COMMUNICATE = range(2)


def write_timeline(path: Path, run: ClusterRun) -> None:
    """Write when each job computed and communicated, and what the controller did, for Perfetto.

    Raises
    ------
    SpecError
        If the file cannot be written.
    """
    jobs = run.jobs
    processes = {number: job.job.name for number, job in enumerate(jobs)}
    tracks = {
        (number, track): name
        for number in processes
        for track, name in ((_COMPUTE, "compute"), (_COMMUNICATE, "communication"))
    }
    if run.decisions:
        processes[len(jobs)] = "controller"
        tracks[len(jobs), 0] = "decisions"
    write_spans(path, processes, tracks, _spans(run))


def _spans(run: ClusterRun) -> Iterator[Span]:
    for job, index, compute, start, end, flows, *_ in run.core.iterations:
        about: dict[str, object] = {"iteration": index}
        if compute < start:
            yield Span(job, _COMPUTE, "compute", compute, start, "compute", about)
        if start < end:
            about = {**about, "flows": flows}
            yield Span(job, _COMMUNICATE, "all-reduce", start, end, "communication", about)
    for each in run.decisions:
        at = each.time_ps
        name = "repair" if each.is_repair else "paths"
        about = {"flows": each.flows, "moved": each.moved, "largest load": each.max_link_load}
        yield Span(len(run.jobs), 0, name, at, at, "decision", {**about, "bound": each.bound})
