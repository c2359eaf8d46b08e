"""The course of jobs on a cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING

from hocket._checks import path_of
from hocket._core import cluster as core_cluster
from hocket._results import HIDDEN, Column, Result, TableResult, figure, picoseconds, said
from hocket.cluster.hosts import Cluster
from hocket.cluster.jobs import Job
from hocket.cluster.placement import Placed
from hocket.workload.layers import Workload

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from hocket.routing.options import ClusterOptions

_SECOND = 10**12


@dataclass(frozen=True)
class Iteration(Result):
    """One iteration of a job; times are seconds, but whole picoseconds where the name ends in ``_ps``."""

    compute_start_ps: int
    """When it began to compute."""
    start_ps: int
    """When its flows could start."""
    end_ps: int
    """When the last of them had arrived."""
    flows: int
    """Transfers over NICs."""
    flow_completion: float = field(metadata=said("flow_completion_ps", of=picoseconds))
    """Their mean time from first byte sent to last byte received; 0 without any."""
    throughput: float = field(metadata=said("throughput_bytes_per_s"))
    """Their mean rate, each its bytes over its own time [bytes/s]; 0 without any."""
    slowest_ps: int
    """The longest time of one."""

    @property
    @figure()
    def all_reduce_ps(self) -> int:
        """From the start of communication to its end."""
        return self.end_ps - self.start_ps

    @property
    def compute_start(self) -> float:
        """When it began to compute."""
        return self.compute_start_ps / _SECOND

    @property
    def start(self) -> float:
        """When its flows could start."""
        return self.start_ps / _SECOND

    @property
    def end(self) -> float:
        """When the last of them had arrived."""
        return self.end_ps / _SECOND

    @property
    def slowest(self) -> float:
        """The longest time of one."""
        return self.slowest_ps / _SECOND

    @property
    def all_reduce(self) -> float:
        """From the start of communication to its end."""
        return self.all_reduce_ps / _SECOND

    @property
    def time(self) -> float:
        """From the start of computation to the end of communication."""
        return (self.end_ps - self.compute_start_ps) / _SECOND


@dataclass(frozen=True)
class Decision(Result):
    """An action of the controller at a moment."""

    time_ps: int
    """When what it answers to happened: a job started or stopped to communicate, or links failed."""
    flows: int
    """Flows between ToRs that were given a path."""
    moved: int
    """How many that were under way took another."""
    max_link_load: int
    """Largest load of a link."""
    bound: int
    """A load that no assignment can keep every link below."""
    foreseen: bool
    """Whether it had been computed ahead."""
    is_repair: bool
    """Whether it answers to a failure."""
    witness: str
    """Why no assignment has less than the bound: the ToR that forces it, in words."""

    @property
    def time(self) -> float:
        """When that was [s]."""
        return self.time_ps / _SECOND


@dataclass(frozen=True)
class JobRun(Result):
    """The course of one job."""

    placed: Placed = field(metadata=HIDDEN)
    iterations: tuple[Iteration, ...]
    ideal: float = field(
        metadata=said(
            "ideal_ps",
            of=picoseconds,
            column=Column("ideal", leaves=5, after="all_reduce_ps", hides_zero=True),
        )
    )
    """Seconds in which no all-reduce by the same transfers ends sooner: the busiest NIC's bytes at its
    rate, or within a host those of the busiest pair of GPUs."""

    @property
    def job(self) -> Job:
        """The job."""
        return self.placed.job

    @property
    @figure("rings", only="table", column=Column("rings", leaves=7, write="{}"))
    def _rings(self) -> str:
        return f"{len(self.placed.rings)} of {self.job.data}"

    @property
    @figure("iteration_count", only="table", column=Column("iterations", leaves=6))
    def _iteration_count(self) -> int:
        return len(self.iterations)

    @property
    @figure("all_reduce_ps", of=picoseconds, column=Column("all-reduce", leaves=0, hides_zero=True))
    def all_reduce(self) -> float:
        """Mean all-reduce time [s]."""
        return _mean([each.all_reduce for each in self.iterations])

    @property
    @figure(
        "flow_completion_ps",
        of=picoseconds,
        column=Column("flow completion", leaves=4, hides_zero=True),
    )
    def flow_completion(self) -> float:
        """Mean completion time of a flow, over all flows of all iterations [s]."""
        return self._by_flow([each.flow_completion for each in self.iterations])

    @property
    @figure("throughput_bytes_per_s", column=Column("throughput", leaves=3, hides_zero=True))
    def throughput(self) -> float:
        """Mean throughput of a flow, over all flows of all iterations [bytes/s]."""
        return self._by_flow([each.throughput for each in self.iterations])

    @property
    @figure("iteration_ps", of=picoseconds, column=Column("iteration", leaves=0))
    def iteration(self) -> float:
        """Mean time of an iteration [s]."""
        return _mean([each.time for each in self.iterations])

    @property
    @figure()
    def slowdown(self) -> float:
        """Mean all-reduce time over the ideal; 1 where there is nothing to communicate."""
        return self.all_reduce / self.ideal if self.ideal else 1.0

    @property
    @figure(
        "slowed",
        only="table",
        column=Column("slowdown", leaves=0, write="{:.2f}", after="ideal_ps"),
    )
    def _slowed(self) -> float | None:
        return self.slowdown if self.ideal else None

    @property
    @figure("communicating", only="table", column=Column("communicating", leaves=2, decimals=0))
    def _communicating(self) -> float | None:
        return self.all_reduce / self.iteration if self.iteration else None

    @property
    def end(self) -> float:
        """When the last iteration ended [s]."""
        return self.iterations[-1].end

    def _by_flow(self, values: Sequence[float]) -> float:
        flows = sum(each.flows for each in self.iterations)
        each = zip(values, self.iterations, strict=True)
        return sum(value * of.flows for value, of in each) / flows if flows else 0.0


@dataclass(frozen=True)
class _Simulated(Result):
    """The simulated scheme and jobs."""

    scheme: str = field(metadata=said(column=Column("scheme")))
    topology: str
    hosts: int
    time_ps: int = field(metadata=said(column=Column("end", leaves=0, after="worst_slowdown")))
    max_link_load: int | None = field(
        metadata=said(column=Column("load", leaves=0, after="time_ps"))
    )
    computed_ahead: int
    routing_elapsed_ps: list[int]
    """What each assignment that was waited for took on this machine."""


@dataclass(frozen=True)
class PlacedRun(Result):
    """A job, and where it ran."""

    name: str = field(metadata=said(column=Column("job")))
    model: str | None
    workload: str | None
    gpus: int = field(metadata=said(column=Column("GPUs", leaves=8)))
    run: JobRun = field(metadata=said(inline=JobRun))
    hosts: list[str]


class ClusterRun(TableResult):
    """The course of jobs on a cluster; made by :func:`simulate`. Times are seconds."""

    def __init__(
        self,
        cluster: Cluster,
        placed: Sequence[Placed],
        scheme: str,
        ideals: Sequence[float],
        answer_ps: int,
        core: core_cluster.Outcome,
        options: ClusterOptions | None = None,
    ) -> None:
        self.cluster = cluster
        self.scheme = scheme
        self.core = core
        self.options = options
        self._placed = tuple(placed)
        self._ideals = tuple(ideals)
        self._answer_ps = answer_ps

    @property
    def placed(self) -> tuple[Placed, ...]:
        """The jobs and their GPUs, in the order in which they were given."""
        return self._placed

    @cached_property
    def jobs(self) -> tuple[JobRun, ...]:
        """The course of each job, in the given order."""
        rows: dict[int, list[Iteration]] = defaultdict(list)
        for (
            job,
            _,
            compute,
            start,
            end,
            flows,
            completion,
            throughput,
            slowest,
        ) in self.core.iterations:
            count = max(flows, 1)
            means = (completion / count / _SECOND, throughput / count)
            rows[job].append(Iteration(compute, start, end, flows, *means, slowest))
        made = zip(self._placed, self._ideals, strict=True)
        return tuple(
            JobRun(placed, tuple(rows[i]), ideal) for i, (placed, ideal) in enumerate(made)
        )

    _table = "_placed_runs"

    @property
    @figure("jobs")
    def _placed_runs(self) -> list[PlacedRun]:
        made = []
        for run in self.jobs:
            job, hosts = run.job, map(self.cluster.host_of, run.placed.gpus)
            workload = job.workload.name if isinstance(job.workload, Workload) else None
            made.append(
                PlacedRun.taken_from(
                    job, workload=workload, run=run, hosts=list(dict.fromkeys(hosts))
                )
            )
        return made

    @property
    @figure(inline=_Simulated)
    def _simulated(self) -> _Simulated:
        topology, loads = self.cluster.topology.name, self.decisions
        return _Simulated(
            *(self.scheme, topology, len(self.cluster.hosts), self.time_ps),
            self.max_link_load if loads else None,
            self.core.computed_ahead,
            [picoseconds(each) for each in self.routing_seconds],
        )

    @property
    def time(self) -> float:
        """When the last job ended."""
        return self.time_ps / _SECOND

    @property
    def time_ps(self) -> int:
        """When the last job ended [ps]."""
        return self.core.time_ps

    @cached_property
    @figure()
    def decisions(self) -> tuple[Decision, ...]:
        """The actions of the controller, in order."""
        rows = self.core.decisions
        return tuple(Decision(*row) for row in rows)

    @property
    def max_link_load(self) -> int:
        """Largest load of a link after any decision."""
        return max((each.max_link_load for each in self.decisions), default=0)

    @property
    @figure("bound", only="table", column=Column("bound", leaves=1, after="max_link_load"))
    def _bound(self) -> int | None:
        return max((each.bound for each in self.decisions), default=None)

    @property
    @figure("moves", only="table", column=Column("moves", leaves=1, after="bound"))
    def _moves(self) -> int | None:
        return sum(each.moved for each in self.decisions) if self.decisions else None

    @property
    @figure(only="table", column=Column("mean", leaves=0, write="x{:.2f}", after="scheme"))
    def mean_slowdown(self) -> float:
        """Mean slowdown of a job."""
        return _mean([each.slowdown for each in self.jobs])

    @property
    @figure(only="table", column=Column("worst", leaves=0, write="x{:.2f}", after="mean_slowdown"))
    def worst_slowdown(self) -> float:
        """Largest slowdown of a job."""
        return max(each.slowdown for each in self.jobs)

    @property
    @figure(only="table")
    def mean_iteration_ps(self) -> float:
        """Mean time of an iteration, over the jobs [ps]."""
        return _mean([picoseconds(each.iteration) for each in self.jobs])

    @property
    def routing_seconds(self) -> list[float]:
        """The time of each assignment that was waited for, on this machine."""
        return self.core.routing_seconds[0]

    @property
    @figure()
    def hit_rate(self) -> float | None:
        """Share of decisions that had been computed ahead; None without decisions."""
        made = self.decisions
        return sum(each.foreseen for each in made) / len(made) if made else None

    @property
    @figure("time_saved_ps", of=picoseconds)
    def time_saved(self) -> float:
        """Seconds of waiting for the controller that looking ahead spared, by the time of an answer."""
        return sum(each.foreseen for each in self.decisions) * self._answer_ps / _SECOND

    @property
    def link_bytes(self) -> npt.NDArray[np.uint64]:
        """Bytes over each link of the topology, (links,)."""
        return self.core.link_bytes

    def save_perfetto(self, path: str | PathLike[str]) -> None:
        """Write when each job computed and communicated, for ui.perfetto.dev: .pftrace or .json.

        Raises
        ------
        SpecError
            If the file cannot be written.
        """
        from hocket.routing.timeline import write_timeline

        write_timeline(path_of("path", path), self)

    def __repr__(self) -> str:
        """Scheme, size and time."""
        return f"<ClusterRun by {self.scheme}: {len(self._placed)} jobs, {self.time:.6g} s>"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
