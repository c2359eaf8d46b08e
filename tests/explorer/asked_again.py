"""Paths of a run, its scheme asked again whenever jobs start or stop: an oracle for those kept."""

from __future__ import annotations

from collections.abc import Iterator

from hocket._core import routing as core_routing
from hocket.routing.result import ClusterRun
from hocket.routing.simulation import fabric_flows

Stay = tuple[int, tuple[int, ...], int, int]


def asked_again(run: ClusterRun) -> list[Stay]:
    """Give flow, links, start and end [ps] of each stay, where paths follow from who communicates."""
    options = run.options
    assert options is not None
    fabric = core_routing.Fabric(run.cluster.topology)
    flows = fabric_flows(run.cluster, run.placed)
    numbers = {each.job.name: number for number, each in enumerate(run.placed)}
    jobs = [numbers[flow.job] for flow in flows]

    def chosen(own: list[int]) -> dict[int, int]:
        asked = core_routing.Flows([flows[i].tors for i in own])
        made = core_routing.assign(fabric, asked, run.scheme, options.seed or 0, options.core)
        return dict(zip(own, made.choices.tolist(), strict=True))

    forever = chosen(list(range(len(flows)))) if run.scheme == "ecmp" else None
    current: dict[int, tuple[tuple[int, ...], int]] = {}
    stays: list[Stay] = []
    for moment, active in _active(run):
        own = [i for i, job in enumerate(jobs) if job in active]
        taken = forever or (chosen(own) if own else {})
        now = {}
        for i in own:
            first = fabric.npu_links(run.cluster.nic_of(flows[i].src))[0]
            last = fabric.npu_links(run.cluster.nic_of(flows[i].dst))[1]
            assert first is not None
            assert last is not None
            now[i] = (first, *fabric.route(*flows[i].tors, taken[i]), last)
        for i, (path, since) in list(current.items()):
            if now.get(i) != path:
                stays.append((i, path, since, moment))
                del current[i]
        for i, path in now.items():
            current.setdefault(i, (path, moment))
    return sorted(stays)


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
