"""A run as spans: a process for each device, with a track for each link that leaves it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hocket.errors import SpecError
from hocket.files.perfetto import Span, in_lanes, write_spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hocket.simulation.run import Run

_OPS = ("copy", "reduce")
_AT_ONCE = 10_000
"""Spans that are made together."""
_LANES = 1 << 20
"""Tracks that a link may have at most."""


def write_timeline(path: Path, run: Run) -> None:
    """Write when each transfer occupied each link, for Perfetto.

    Messages that share a link, as at flow and packet fidelity, have tracks of their own.

    Raises
    ------
    SpecError
        If the run kept no services, or the file cannot be written.
    """
    core, topology = run.core, run.topology
    if len(run.plan.transfers) and not len(core.service_link):
        raise SpecError(None, "the run kept no services", "simulate with keep_services=True")
    order = np.lexsort((core.service_end_ps, core.service_start_ps, core.service_link))
    lanes = _lanes(
        core.service_link[order], core.service_start_ps[order], core.service_end_ps[order]
    )
    links = core.service_link[order].astype(np.uint64) * _LANES + lanes
    used, track_of = np.unique(links, return_inverse=True)
    names = topology.device_names
    processes: dict[int, str] = {}
    tracks: dict[tuple[int, int], str] = {}
    for track, (link, lane) in enumerate(zip(*divmod(used, _LANES), strict=True)):
        src, dst = int(topology.link_src[link]), int(topology.link_dst[link])
        processes[src] = names[src]
        tracks[src, track] = f"to {names[dst]}" + (f" ({lane + 1})" if lane else "")
    in_order = {process: processes[process] for process in sorted(processes)}
    write_spans(path, in_order, tracks, _spans(run, order, track_of))


def _lanes(
    link: NDArray[np.uint32], start: NDArray[np.uint64], end: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Choose for each service, sorted by link and start, a lane of its link in which no two overlap."""
    lanes = np.zeros(len(link), np.uint64)
    overlap = (link[1:] == link[:-1]) & (start[1:] < end[:-1])
    for shared in np.unique(link[1:][overlap]):
        low, high = np.searchsorted(link, shared), np.searchsorted(link, shared, side="right")
        times = zip(start[low:high].tolist(), end[low:high].tolist(), strict=True)
        lanes[low:high] = in_lanes(times)
    return lanes


def _spans(run: Run, order: NDArray[np.intp], track_of: NDArray[np.intp]) -> Iterator[Span]:
    core, transfers, topology = run.core, run.plan.transfers, run.topology
    sizes = transfers.size_bytes
    for low in range(0, len(order), _AT_ONCE):
        rows = order[low : low + _AT_ONCE]
        transfer = core.service_transfer[rows]
        columns = (
            topology.link_src[core.service_link[rows]],
            track_of[low : low + _AT_ONCE],
            core.service_start_ps[rows],
            core.service_end_ps[rows],
            transfer,
            transfers.chunk[transfer],
            transfers.chunk_count[transfer],
            transfers.op[transfer],
            sizes[transfer],
        )
        for process, track, start, end, number, chunk, count, op, size in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            name = f"chunk {chunk}" if count == 1 else f"chunks {chunk} to {chunk + count - 1}"
            about: dict[str, object] = {"transfer": number, "bytes": size}
            yield Span(process, track, name, start, end, _OPS[op], about)
