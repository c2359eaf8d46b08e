"""Placement: which GPUs of a cluster hold which replica of which job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hocket import _checks as checks
from hocket._checks import instance_of, whole
from hocket.cluster.hosts import MAX_SEED, Cluster
from hocket.cluster.jobs import Job, JobList
from hocket.cluster.seeded_random import SeededRandom
from hocket.errors import SpecError
from hocket.units import shown


@dataclass(frozen=True)
class Placed:
    """A job and its GPUs; made by :func:`place`.

    Attributes
    ----------
    job
        What is placed.
    replicas
        GPUs of each replica of the model.
    """

    job: Job
    replicas: tuple[tuple[int, ...], ...]

    @property
    def rings(self) -> tuple[tuple[int, ...], ...]:
        """GPU i of every replica, for each i: those that all-reduce with each other, in rank order."""
        return tuple(zip(*self.replicas, strict=True))

    @property
    def gpus(self) -> tuple[int, ...]:
        """GPUs of all replicas, one replica after the other."""
        return tuple(gpu for replica in self.replicas for gpu in replica)


def place(cluster: Cluster, jobs: Iterable[Job], seed: int | None = None) -> list[Placed]:
    """Assign GPUs to all jobs at once, none to two jobs.

    No two jobs share a host. A job takes the GPUs of its hosts in order, replica after replica; if a
    replica does not fill whole hosts, two replicas of the same job may share one. Listed hosts are kept
    for their jobs. The other jobs choose in order of arrival; of jobs that arrive together, the one that
    is listed first chooses first.

    Parameters
    ----------
    cluster : Cluster
        What :func:`cluster` made.
    jobs : iterable of Job
        Such as :func:`load_jobs` gives.
    seed : int, optional
        Of random placements; by default that of the jobs' file, or 0.

    Returns
    -------
    list of Placed
        In the order of ``jobs``.

    Raises
    ------
    SpecError
        With the job's name: when it wants more hosts than are free, or lists one that there is not or
        that another job has.

    Notes
    -----
    Takes O(replicas * ToRs + hosts) for each job.
    """
    given = jobs.seed if seed is None and isinstance(jobs, JobList) else seed
    draw = SeededRandom(whole("seed", 0 if given is None else given, 0, MAX_SEED))
    instance_of(Cluster, "cluster", cluster, "make one by hk.routing.cluster(...)")
    listed = _checked(jobs)
    room = _Room(cluster)
    found: dict[str, list[int]] = {}
    for job in listed:
        if job.hosts is not None:
            found[job.name] = _named(cluster, job, found)
    for taken in found.values():
        room.take(taken)
    for job in sorted(listed, key=lambda job: job.arrival_ps):
        if job.name in found:
            continue
        count = -(-job.gpus // cluster.gpus_per_host)
        if count > room.free:
            raise job.wrong(
                SpecError(
                    None,
                    f"wants {_hosts(count)} of {cluster.gpus_per_host} GPUs, and {room.free} of "
                    f"{len(cluster.hosts)} are free",
                    "make data smaller, or the fabric larger",
                )
            )
        policy = _POLICIES[job.placement or "packed"]
        found[job.name] = policy(room, _wanted(cluster, job), draw)
    return [_placed(cluster, job, found[job.name]) for job in listed]


def _checked(jobs: Iterable[Job]) -> list[Job]:
    listed = checks.list_of("jobs", jobs)
    if not listed:
        raise SpecError("jobs", "there is none", "give at least one")
    names = set()
    for i, job in enumerate(listed):
        if not isinstance(job, Job):
            raise SpecError(
                "jobs", f"{shown(job)} at position {i} is not a Job", "give a list of them"
            )
        if job.name in names:
            raise job.wrong(SpecError(None, "has the name of an earlier job", "give each its own"))
        names.add(job.name)
    return listed


def _wanted(cluster: Cluster, job: Job) -> list[int]:
    """Hosts that each replica takes besides what is left of the replica before it."""
    ends = [
        -(-replica * job.gpus_per_replica // cluster.gpus_per_host)
        for replica in range(job.data + 1)
    ]
    return [after - before for before, after in pairwise(ends)]


def _named(cluster: Cluster, job: Job, others: dict[str, list[int]]) -> list[int]:
    """Positions of the hosts that a job lists."""
    wanted = -(-job.gpus // cluster.gpus_per_host)
    if len(job.hosts or ()) != wanted:
        raise job.wrong(
            SpecError(
                "hosts",
                f"{_hosts(len(job.hosts or ()))} listed, and its {job.gpus} GPUs are {wanted} of "
                f"{cluster.gpus_per_host}",
                f"list {wanted}",
            )
        )
    positions = []
    for host in job.hosts or ():
        try:
            positions.append(cluster.index_of(host))
        except SpecError as error:
            raise job.wrong(error.but(field="hosts")) from None
        for other, taken in others.items():
            if positions[-1] in taken:
                taken_by = f"{host} is taken by job {shown(other)}"
                raise job.wrong(SpecError("hosts", taken_by, "list another"))
    return positions


def _hosts(count: int) -> str:
    return f"{count} host{'s'[: count != 1]}"


def _placed(cluster: Cluster, job: Job, hosts: Sequence[int]) -> Placed:
    per_host = cluster.gpus_per_host
    gpus = [host * per_host + i for host in hosts for i in range(per_host)]
    starts = range(0, job.gpus, job.gpus_per_replica)
    return Placed(job, tuple(tuple(gpus[i : i + job.gpus_per_replica]) for i in starts))


class _Room:
    """Free hosts below each ToR, lowest first."""

    def __init__(self, cluster: Cluster) -> None:
        self.below: dict[int, list[int]] = {tor: [] for tor in sorted(set(cluster.tors))}
        for host, tor in enumerate(cluster.tors):
            self.below[tor].append(host)
        self._tors = cluster.tors
        self.largest = max(len(hosts) for hosts in self.below.values())
        """Hosts below a ToR that has lost none."""
        self.free = len(cluster.hosts)

    @property
    def hosts(self) -> list[int]:
        """All that are free, ToR by ToR."""
        return [host for hosts in self.below.values() for host in hosts]

    def take(self, hosts: Sequence[int]) -> list[int]:
        """Take these hosts."""
        for host in hosts:
            self.below[self._tors[host]].remove(host)
        self.free -= len(hosts)
        return list(hosts)

    def take_of(self, tor: int, most: int) -> list[int]:
        """Take the lowest hosts of a ToR, so many or all."""
        return self.take(self.below[tor][:most])

    def tors(self, least: int) -> list[int]:
        """ToRs with at least so many free hosts."""
        return [tor for tor, hosts in self.below.items() if len(hosts) >= least]

    def most(self) -> list[int]:
        """ToRs with the most free hosts."""
        return self.tors(max(len(hosts) for hosts in self.below.values()))


def _random(room: _Room, wanted: Sequence[int], draw: SeededRandom) -> list[int]:
    return room.take(draw.some(room.hosts, sum(wanted)))


def _packed(room: _Room, wanted: Sequence[int], _: SeededRandom) -> list[int]:
    return room.take(room.hosts[: sum(wanted)])


def _random_tors(room: _Room, wanted: Sequence[int], draw: SeededRandom) -> list[int]:
    """Place each replica below whole ToRs, and what is left of it below one more.

    Where no ToR is wholly free, or none has room for what is left, one of those with the most room
    gives all it has.

    References
    ----------
    The released code of Cohen et al., Routing for large ML models.
    """
    hosts: list[int] = []
    for left in wanted:
        while left:
            enough = room.tors(min(left, room.largest))
            tor = draw.one(enough or room.most())
            taken = room.take_of(tor, left)
            hosts += taken
            left -= len(taken)
    return hosts


def _best_fit(room: _Room, wanted: Sequence[int], _: SeededRandom) -> list[int]:
    """Place each replica below the ToR with the least room that is enough, or below as few as can be."""
    hosts: list[int] = []
    for left in wanted:
        while left:
            enough = room.tors(left)
            tor = min(enough, key=lambda tor: len(room.below[tor])) if enough else room.most()[0]
            taken = room.take_of(tor, left)
            hosts += taken
            left -= len(taken)
    return hosts


_POLICIES: dict[str, Callable[[_Room, Sequence[int], SeededRandom], list[int]]] = {
    "random": _random,
    "random-tors": _random_tors,
    "packed": _packed,
    "best-fit": _best_fit,
}
