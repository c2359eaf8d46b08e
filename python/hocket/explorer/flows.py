"""Flows of jobs on the links of a fabric over time: ribbons of a page, and where they collide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hocket.units import format_time_ps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hocket import _core
    from hocket.routing.paths import Paths

_LISTED = 200
"""Links of the table of collisions, those that are shared longest."""


def _between_switches(topology: _core.Topology) -> NDArray[np.bool_]:
    npus = topology.npu_count
    found: NDArray[np.bool_] = (topology.link_src >= npus) & (topology.link_dst >= npus)
    return found


def collisions(paths: Paths, topology: _core.Topology) -> list[tuple[int, int, int, int]]:
    """Return each time in which links between switches have two flows or more.

    Start and end [ps], how many such links there are, and the most flows of one; times that follow one
    another and differ in nothing are one.
    """
    between = _between_switches(topology)
    found: list[tuple[int, int, int, int]] = []
    for start, end, load in paths.loads(topology.link_count):
        own = load[between]
        shared, most = int((own > 1).sum()), int(own.max(initial=0))
        if not shared:
            continue
        if found and found[-1][1:] == (start, shared, most):
            found[-1] = (found[-1][0], end, shared, most)
        else:
            found.append((start, end, shared, most))
    return found


def flow_columns(
    paths: Paths, topology: _core.Topology
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the columns of flows, of their stays on paths and of paths, and a table of shared links."""
    stays = np.array(paths.stays, np.int64).reshape(-1, 4)
    ends = np.cumsum([0, *(len(path) for path in paths.paths)])
    columns = {
        "flow_job": np.array(paths.jobs, np.int64),
        "flow_src": np.array([flow.src for flow in paths.flows], np.int64),
        "flow_dst": np.array([flow.dst for flow in paths.flows], np.int64),
        "stay_flow": stays[:, 0],
        "stay_path": stays[:, 1],
        "stay_start": stays[:, 2],
        "stay_length": stays[:, 3] - stays[:, 2],
        "path_at": ends.astype(np.int64),
        "path_link": np.array([link for path in paths.paths for link in path], np.int64),
    }
    return columns, _table(paths, topology)


def _table(paths: Paths, topology: _core.Topology) -> dict[str, Any]:
    between = _between_switches(topology)
    most = np.zeros(topology.link_count, np.int64)
    shared = np.zeros(topology.link_count, np.int64)
    for start, end, load in paths.loads(topology.link_count):
        most = np.maximum(most, load)
        shared += np.where(load > 1, end - start, 0)
    shared[~between] = 0
    names = topology.device_names
    order = [int(link) for link in np.lexsort((-most, -shared)) if shared[link]][:_LISTED]
    users: dict[int, set[str]] = {link: set() for link in order}
    for flow, path, _, _ in paths.stays:
        for link in paths.paths[path]:
            if link in users:
                users[link].add(paths.flows[flow].job)
    return {
        "caption": "links between switches that had two flows or more at a time",
        "heads": ["link", "most flows", "shared for", "jobs"],
        "rows": [
            [
                f"{names[int(topology.link_src[link])]} → {names[int(topology.link_dst[link])]}",
                int(most[link]),
                format_time_ps(int(shared[link])),
                ", ".join(sorted(users[link])),
            ]
            for link in order
        ],
    }
