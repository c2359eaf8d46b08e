"""Which flow of which job was on which links when: a run's paths, given again as its scheme gave them.

A run keeps what jobs did and what was decided, not every path. Schemes that depend on who communicates
alone are asked again at each change; what they answer is compared with what the run's decisions say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from hocket._core import routing as core_routing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hocket.routing.result import ClusterRun
    from hocket.routing.simulation import FabricFlow

__all__ = ["Paths", "replay"]

ALWAYS = ("greedy", "greedy-parallel", "edge-coloring", "annealing")
"""Schemes that give all flows paths whenever a job starts or stops to communicate."""
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
        """Give start and end [ps] of each time without a change, and how many flows each link has."""
        changes: dict[int, list[tuple[int, int]]] = {}
        for _, path, start, end in self.stays:
            changes.setdefault(start, []).append((path, 1))
            changes.setdefault(end, []).append((path, -1))
        load = np.zeros(links, np.int64)
        for start, end in pairwise(sorted(changes)):
            for path, by in changes[start]:
                np.add.at(load, list(self.paths[path]), by)
            yield start, end, load.copy()


def replay(run: ClusterRun) -> Paths | None:
    """Give a run's paths again; None where its scheme depends on more than who communicates."""
    from hocket.routing.simulation import fabric_flows

    options = run.options
    if options is None:
        return None
    is_plain = options.headers is None and not options.outages and options.weights == "flows"
    if run.scheme not in (*ALWAYS, "ecmp") or not is_plain or options.order != "job":
        return None
    cluster = run.cluster
    fabric = core_routing.Fabric(cluster.topology)
    placed = run.placed
    flows = fabric_flows(cluster, placed)
    numbers = {each.job.name: number for number, each in enumerate(placed)}
    jobs = [numbers[flow.job] for flow in flows]
    links = [
        (
            fabric.npu_links(cluster.nic_of(flow.src))[0],
            fabric.npu_links(cluster.nic_of(flow.dst))[1],
        )
        for flow in flows
    ]
    seed = options.seed or 0

    def chosen(own: list[int]) -> tuple[list[int], int]:
        asked = [(*flows[i].tors, 1) for i in own]
        made = core_routing.assign(fabric, asked, run.scheme, seed, options.core)
        return made.choices.tolist(), made.max_link_load

    known: dict[tuple[int, ...], tuple[list[int], int]] = {}
    forever = None
    if run.scheme == "ecmp":
        forever = dict(enumerate(chosen(list(range(len(flows))))[0])) if flows else {}
    paths: dict[tuple[int, ...], int] = {}
    current: dict[int, tuple[int, int]] = {}
    stays: list[tuple[int, int, int, int]] = []
    said = {row[0]: (row[1], row[3]) for row in run.core.decisions}
    for moment, active in _active(run):
        own = [i for i, job in enumerate(jobs) if job in active]
        if forever is not None:
            taken = [forever[i] for i in own]
        else:
            key = tuple(sorted(active))
            if key not in known:
                known[key] = chosen(own) if own else ([], 0)
            taken, load = known[key]
            if said.get(moment, (len(own), load)) != (len(own), load):
                return None  # something else was decided: no paths are better than wrong ones
        now: dict[int, int] = {}
        for i, choice in zip(own, taken, strict=True):
            ends = [each for each in links[i] if each is not None]
            way = (*ends[:1], *fabric.route(*flows[i].tors, choice), *ends[1:])
            now[i] = paths.setdefault(way, len(paths))
        for i, (path, since) in list(current.items()):
            if now.get(i) != path:
                stays.append((i, path, since, moment))
                del current[i]
        for i, path in now.items():
            current.setdefault(i, (path, moment))
        if len(stays) > MOST_STAYS:
            return None
    stays.sort(key=lambda stay: (stay[2], stay[0]))
    return Paths(tuple(flows), tuple(jobs), tuple(stays), tuple(paths))


def _active(run: ClusterRun) -> Iterator[tuple[int, frozenset[int]]]:
    """Give each moment at which jobs start or stop to communicate, and who communicates from then on."""
    changes: dict[int, list[tuple[int, int]]] = {}
    for job, _, _, start, end, *_ in run.core.iterations:
        if end > start:
            changes.setdefault(start, []).append((job, 1))
            changes.setdefault(end, []).append((job, -1))
    count: dict[int, int] = {}
    for moment in sorted(changes):
        for job, by in changes[moment]:
            count[job] = count.get(job, 0) + by
        yield moment, frozenset(job for job, own in count.items() if own)
