"""A run as what a page shows: names and figures, and columns of numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hocket import _core
from hocket.errors import SpecError
from hocket.layout.network import layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hocket.simulation.run import Run

    Columns: TypeAlias = dict[str, NDArray[Any]]

_GRID = 1000
"""Parts of a unit that places are rounded to."""
_GROUP = _core.Plan.GROUP
_MOST_BINS, _CELLS = 1000, 16_000_000
"""Bins of time, and of all links together, at most."""
_ALL_SUMS = 15
"""Of a bin in which a link only carried what is summed."""


def network_of(topology: _core.Topology) -> tuple[dict[str, Any], Columns]:
    """Return a network's picture: head and columns."""
    found = layout(topology)
    names = "\n".join(topology.device_names).encode()
    head = {
        "name": topology.name,
        "npus": topology.npu_count,
        "devices": topology.device_count,
        "links": topology.link_count,
        "boxes": [
            [
                round(each.x, 3),
                round(each.y, 3),
                round(each.width, 3),
                round(each.height, 3),
                each.label,
            ]
            for each in found.boxes
        ],
        "bundles": [list(each) for each in found.bundle_labels],
        "warning": found.warning,
    }
    ways = np.round(found.ways * _GRID).astype(np.int64)
    places = np.round(found.devices * _GRID).astype(np.int64)
    columns: Columns = {
        "names": np.frombuffer(names, np.uint8),
        "x": places[:, 0],
        "y": places[:, 1],
        "src": topology.link_src,
        "dst": topology.link_dst,
        "rate": topology.link_bandwidth,
        "bundle": found.bundles,
        "lane": found.lanes,
        "stub": found.is_stub.astype(np.uint8),
    }
    # Ends of lines as what they differ by from the devices: mostly nothing.
    for i, (key, base) in enumerate(
        (
            ("x0", places[topology.link_src, 0]),
            ("y0", places[topology.link_src, 1]),
            ("x1", places[topology.link_dst, 0]),
            ("y1", places[topology.link_dst, 1]),
        )
    ):
        columns[key] = ways[:, i] - np.where(
            found.is_stub & (i >= 2), places[topology.link_src, i % 2], base
        )
    columns["bend"] = ways[:, 4]
    return head, columns


def bin_count(links: int) -> int:
    """Return how many bins of time a page has for so many links."""
    return max(16, min(_MOST_BINS, _CELLS // max(links, 1)))


def scene_of(run: Run) -> tuple[dict[str, Any], Columns]:
    """Return what a run came to and its use over time: head and columns.

    Raises
    ------
    SpecError
        If the run was made without ``keep_services``.
    """
    if len(run.plan) and not len(run.core.service_link):
        raise SpecError(None, "the run kept no services", "simulate with keep_services=True")
    bins = bin_count(run.topology.link_count)
    heat, sums = _core.use_and_sums(run.core, bins)
    op = run.plan.transfers.op
    is_one_kind = len(op) == 0 or bool((op == op[0]).all())
    bound, collective = run.lower_bound, run.collective
    head: dict[str, Any] = {
        "algorithm": run.plan.algorithm,
        "collective": collective.name,
        "size": collective.size,
        "topology": run.topology.name,
        "fidelity": run.fidelity,
        "time_ps": run.time_ps,
        "bound_ps": bound.time_ps,
        "witness": bound.witness,
        "sides": bound.sides if sum(map(len, bound.sides)) <= 1 << 16 else [],
        "algbw": run.algbw,
        "busbw": run.busbw,
        "utilization": run.utilization,
        "rows": len(run.plan),
        "chunks": run.plan.chunks,
        "bins": bins,
        "phase": (_ALL_SUMS * int(op[0]) if len(op) else 0) if is_one_kind else -1,
        "demands": _demands(collective),
        "participants": _spans(collective.npus),
    }
    columns: Columns = {
        "heat": heat,
        "busy": run.core.link_busy_ps,
        "bytes": run.core.link_bytes,
    }
    if not is_one_kind:
        columns["phases"] = sums
    return head, columns


def _demands(collective: _core.Collective) -> list[list[Any]]:
    """Return which demands are sums, who has what they need and who wants it; None means all."""
    return [
        [
            int(reduced),
            None if holders is None else _spans(holders),
            None if wanted is None else _spans(wanted),
        ]
        for _, reduced, holders, wanted in collective.demands()
    ]


def _spans(numbers: list[int]) -> list[list[int]]:
    """Return numbers as first and last of what follows one another."""
    values = np.sort(np.asarray(numbers, np.int64))
    if not len(values):
        return []
    breaks = np.flatnonzero(np.diff(values) != 1)
    firsts = values[np.concatenate([[0], breaks + 1])]
    lasts = values[np.concatenate([breaks, [len(values) - 1]])]
    spans: list[list[int]] = np.column_stack([firsts, lasts]).tolist()
    return spans


def transfers_of(run: Run) -> tuple[dict[str, Any], Columns]:
    """Return all transfers and their stays on links, times in the head's unit.

    Where each transfer stays on one link, from its start on, there are no columns of stays, only how long
    before its end it has left that link.
    """
    core, moved = run.core, run.plan.transfers
    rows = len(moved)
    transfer, link = core.service_transfer, core.service_link
    begin, finish = core.service_start_ps, core.service_end_ps
    if len(transfer) != rows or not bool((transfer == np.arange(rows)).all()):
        order = np.lexsort((begin, transfer))
        transfer, link, begin, finish = transfer[order], link[order], begin[order], finish[order]
    is_single = (
        len(transfer) == rows
        and bool((transfer == np.arange(rows)).all())
        and bool((begin == run.start_ps).all())
        and bool((finish <= run.end_ps).all())
    )
    moments = [run.start_ps, run.end_ps, finish, *([] if is_single else [begin])]
    unit = max(1, math.gcd(*(int(np.gcd.reduce(each, initial=0)) for each in moments)))
    start = (run.start_ps // np.uint64(unit)).astype(np.int64)
    end = (run.end_ps // np.uint64(unit)).astype(np.int64)
    wait = moved.wait.astype(np.int64)
    numbers = np.arange(rows)
    in_group = (wait >= _GROUP) & (moved.wait != run.plan.NO_WAIT)
    columns: Columns = {
        "start": start,
        "length": end - start,
        "chunk": moved.chunk,
        "count": moved.chunk_count,
        "op": moved.op,
        "wait": np.where(wait < _GROUP, numbers - wait, 0),
        "group": np.where(in_group, wait - _GROUP + 1, 0),
        "demand": run.plan.core.chunk_demand,
        "size": np.diff(run.plan.core.chunk_offsets.astype(np.int64)),
    }
    if is_single:
        columns["link"] = link
        columns["tail"] = end - (finish // np.uint64(unit)).astype(np.int64)
    else:
        hops = np.bincount(transfer, minlength=rows)
        begin = (begin // np.uint64(unit)).astype(np.int64)
        finish = (finish // np.uint64(unit)).astype(np.int64)
        columns |= {
            "from": moved.src,
            "to": moved.dst,
            "hops": hops,
            "stay_link": link,
            "stay_start": begin - start[transfer],
            "stay_length": finish - begin,
        }
    return {"unit_ps": unit, "single": is_single}, columns
