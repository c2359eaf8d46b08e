"""Writes spans of time for Perfetto: its own traces, or trace events, which chrome://tracing shows too.

References
----------
Google: Trace Event Format (JSON; times in microseconds). Perfetto: ``perfetto_trace.proto``, which
:mod:`hocket._core.perfetto` writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from hocket._core.perfetto import Writer
from hocket.errors import SpecError
from hocket.files.atomic import check_target, replacing
from hocket.units import shown

_AT_ONCE = 10_000
"""Events that are written together."""
PROTOBUF = (".pftrace", ".perfetto-trace")
"""Endings of Perfetto's own traces."""


class Span(NamedTuple):
    """Something that took its time on a track of a process; times in ps; what else there is to say of it.

    Those of a track come in the order of their starts; they do not overlap, or lie within each other.
    """

    process: int
    track: int
    name: str
    start_ps: int
    end_ps: int
    category: str = ""
    about: dict[str, object] | None = None


def check_trace(option: str, path: Path) -> None:
    """Refuse a file that cannot be a trace, before the work.

    Raises
    ------
    SpecError
        If its name ends neither in ``.json`` nor in one of :data:`PROTOBUF`, or it cannot be written.
    """
    if path.suffix in (".json", *PROTOBUF) or path.is_dir():
        check_target(path)
        return
    raise SpecError(option, f"{shown(str(path))} has no ending that fits", "use .pftrace or .json")


def write_spans(
    path: Path,
    processes: Mapping[int, str],
    tracks: Mapping[tuple[int, int], str],
    spans: Iterable[Span],
) -> None:
    """Write a file whole or not at all, span by span.

    A name that ends in one of :data:`PROTOBUF` makes a trace of Perfetto, with every text once and times in
    whole nanoseconds, rounded down; any other makes trace events, with times to the picosecond.

    Parameters
    ----------
    processes
        The name of each.
    tracks
        The name of each track, by process and track.

    Raises
    ------
    SpecError
        If the file cannot be written.
    """
    write = _write_packets if path.suffix in PROTOBUF else _write_events
    with replacing(path) as temporary:
        write(temporary, processes, tracks, spans)


def _write_packets(
    path: Path,
    processes: Mapping[int, str],
    tracks: Mapping[tuple[int, int], str],
    spans: Iterable[Span],
) -> None:
    writer = Writer()
    for process, name in processes.items():
        writer.process(process, name)
    for (process, track), name in tracks.items():
        writer.track(process, track, name)
    rest = iter(spans)
    with path.open("wb") as file:
        file.write(writer.spans([]))
        while batch := list(islice(rest, _AT_ONCE)):
            file.write(writer.spans(batch))


def _write_events(
    path: Path,
    processes: Mapping[int, str],
    tracks: Mapping[tuple[int, int], str],
    spans: Iterable[Span],
) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit":"ns","traceEvents":[\n')
        events = _events(processes, tracks, spans)
        before = ""
        while batch := list(islice(events, _AT_ONCE)):
            file.write(before + ",\n".join(batch))
            before = ",\n"
        file.write("\n]}\n")


def _events(
    processes: Mapping[int, str], tracks: Mapping[tuple[int, int], str], spans: Iterable[Span]
) -> Iterable[str]:
    for process, name in processes.items():
        yield _named("process_name", process, 0, name)
    for (process, track), name in tracks.items():
        yield _named("thread_name", process, track, name)
    texts: dict[str, str] = {}

    def quoted(text: str) -> str:
        return texts.get(text) or texts.setdefault(text, json.dumps(text))

    for process, track, name, start, end, category, about in spans:
        args = "" if about is None else f',"args":{json.dumps(about, separators=(",", ":"))}'
        yield (
            f'{{"ph":"X","pid":{process},"tid":{track},"name":{quoted(name)},"cat":{quoted(category)},'
            f'"ts":{_micros(start)},"dur":{_micros(end - start)}{args}}}'
        )


def _named(what: str, process: int, track: int, name: str) -> str:
    event = {"ph": "M", "pid": process, "tid": track, "name": what, "args": {"name": name}}
    return json.dumps(event, separators=(",", ":"))


def _micros(time_ps: int) -> str:
    """Write a time [ps] in microseconds, exactly."""
    whole, part = divmod(time_ps, 10**6)
    return f"{whole}.{part:06d}" if part else str(whole)


def in_lanes(spans: Iterable[tuple[int, int]]) -> list[int]:
    """Choose for each span (start, end) the lowest free lane, so that no two overlap in one."""
    times = list(spans)
    lanes = [0] * len(times)
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    used = 0
    for at in sorted(range(len(times)), key=times.__getitem__):
        start, end = times[at]
        while busy and busy[0][0] <= start:
            heappush(free, heappop(busy)[1])
        if not free:
            free, used = [used], used + 1
        lanes[at] = heappop(free)
        heappush(busy, (end, lanes[at]))
    return lanes
