"""The paths that a run has kept: which flow of which job was on which links when."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hocket.routing.result import ClusterRun
    from hocket.routing.simulation import FabricFlow

MOST_STAYS = 400_000
"""Paths of flows over time that are listed."""


@dataclass(frozen=True)
class Paths:
    """Paths of flows between ToRs over time.

    Attributes
    ----------
    flows
        The flows.
    jobs
        The number of each one's job.
    stays
        Flow, path, start and end [ps], in order of starts.
    paths
        Links of each path, the NICs' own included.
    """

    flows: tuple[FabricFlow, ...]
    jobs: tuple[int, ...]
    stays: tuple[tuple[int, int, int, int], ...]
    paths: tuple[tuple[int, ...], ...]

    def loads(self, links: int) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
        """Return start and end [ps] of each time without a change, and how many flows each link has."""
        changes: dict[int, list[tuple[int, int]]] = {}
        for _, path, start, end in self.stays:
            changes.setdefault(start, []).append((path, 1))
            changes.setdefault(end, []).append((path, -1))
        load = np.zeros(links, np.int64)
        for start, end in pairwise(sorted(changes)):
            for path, by in changes[start]:
                np.add.at(load, list(self.paths[path]), by)
            yield start, end, load.copy()


def paths_of(run: ClusterRun) -> Paths | None:
    """Return a run's paths, or None if packets take all paths, or there are too many."""
    kept = run.core.paths
    if kept is None:
        return None
    from hocket.routing.simulation import fabric_flows

    given, links = kept
    flows = fabric_flows(run.cluster, run.placed)
    numbers = {each.job.name: number for number, each in enumerate(run.placed)}
    jobs = [numbers[flow.job] for flow in flows]
    phases = _phases(run)
    changes: list[list[tuple[int, int]]] = [[] for _ in flows]
    for moment, flow, path in given:
        if flow >= len(flows):
            return None  # of other jobs
        changes[flow].append((moment, path))
    stays: list[tuple[int, int, int, int]] = []
    for flow, own in enumerate(changes):
        times = phases.get(jobs[flow], [])
        ends = [end for _, end in times]
        untils = [*(moment for moment, _ in own[1:]), None]
        for (since, path), until in zip(own, untils, strict=True):
            for number in range(bisect_right(ends, since), len(times)):
                start, end = times[number]
                if until is not None and start >= until:
                    break
                last = end if until is None else min(end, until)
                stays.append((flow, path, max(start, since), last))
            if len(stays) > MOST_STAYS:
                return None
    stays.sort(key=lambda stay: (stay[2], stay[0]))
    return Paths(tuple(flows), tuple(jobs), tuple(stays), tuple(map(tuple, links)))


def _phases(run: ClusterRun) -> dict[int, list[tuple[int, int]]]:
    """Return when each job communicates, by its number."""
    found: dict[int, list[tuple[int, int]]] = {}
    for job, _, _, start, end, *_ in run.core.iterations:
        if end > start:
            found.setdefault(job, []).append((start, end))
    return found
