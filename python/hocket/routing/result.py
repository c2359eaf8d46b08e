"""The course of jobs on a cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hocket._core import cluster as core_cluster
from hocket._results import TableResult
from hocket.cluster.hosts import Cluster
from hocket.cluster.jobs import Job
from hocket.cluster.placement import Placed
from hocket.workload.layers import Workload

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from hocket.routing.data import ClusterRunData, DecisionData, IterationData, JobData
    from hocket.routing.options import ClusterOptions

__all__ = ["ClusterRun", "Decision", "Iteration", "JobRun"]

_SECOND = 10**12


class Iteration(NamedTuple):
    """One iteration of a job; times in seconds."""

    compute_start: float
    """When it began to compute."""
    start: float
    """When its flows could start."""
    end: float
    """When the last of them had arrived."""
    flows: int
    """Transfers over NICs."""
    flow_completion: float
    """Their mean time from first byte sent to last byte received; 0 without any."""
    throughput: float
    """Their mean rate, each its bytes over its own time [bytes/s]; 0 without any."""
    slowest: float
    """The longest time of one."""

    @property
    def all_reduce(self) -> float:
        """From the start of communication to its end."""
        return self.end - self.start

    @property
    def time(self) -> float:
        """From the start of computation to the end of communication."""
        return self.end - self.compute_start


class Decision(NamedTuple):
    """An action of the controller at a moment."""

    time: float
    """When what it answers to happened [s]: a job started or stopped to communicate, or links failed."""
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


@dataclass(frozen=True)
class JobRun:
    """The course of one job."""

    placed: Placed
    iterations: tuple[Iteration, ...]
    ideal: float
    """Seconds in which no all-reduce by the same transfers ends sooner: the busiest NIC's bytes at its
    rate, or within a host those of the busiest pair of GPUs."""

    @property
    def job(self) -> Job:
        """The job."""
        return self.placed.job

    @property
    def all_reduce(self) -> float:
        """Mean all-reduce time [s]."""
        return _mean([each.all_reduce for each in self.iterations])

    @property
    def flow_completion(self) -> float:
        """Mean completion time of a flow, over all flows of all iterations [s]."""
        return self._by_flow([each.flow_completion for each in self.iterations])

    @property
    def throughput(self) -> float:
        """Mean throughput of a flow, over all flows of all iterations [bytes/s]."""
        return self._by_flow([each.throughput for each in self.iterations])

    @property
    def iteration(self) -> float:
        """Mean time of an iteration [s]."""
        return _mean([each.time for each in self.iterations])

    @property
    def slowdown(self) -> float:
        """Mean all-reduce time over the ideal; 1 where there is nothing to communicate."""
        return self.all_reduce / self.ideal if self.ideal else 1.0

    @property
    def end(self) -> float:
        """When the last iteration ended [s]."""
        return self.iterations[-1].end

    def _by_flow(self, values: Sequence[float]) -> float:
        flows = sum(each.flows for each in self.iterations)
        each = zip(values, self.iterations, strict=True)
        return sum(value * of.flows for value, of in each) / flows if flows else 0.0


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
            times = (compute / _SECOND, start / _SECOND, end / _SECOND)
            means = (completion / count, throughput / count, slowest / _SECOND)
            rows[job].append(Iteration(*times, flows, *means))
        made = zip(self._placed, self._ideals, strict=True)
        return tuple(
            JobRun(placed, tuple(rows[i]), ideal) for i, (placed, ideal) in enumerate(made)
        )

    @property
    def time(self) -> float:
        """When the last job ended."""
        return self.core.time_ps / _SECOND

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """The actions of the controller, in order."""
        rows = self.core.decisions
        return tuple(
            Decision(time / _SECOND, flows, moved, most, bound, foreseen, is_repair, why)
            for time, flows, moved, most, bound, foreseen, is_repair, why in rows
        )

    @property
    def max_link_load(self) -> int:
        """Largest load of a link after any decision."""
        return max((each.max_link_load for each in self.decisions), default=0)

    @property
    def routing_seconds(self) -> list[float]:
        """The time of each assignment that was waited for, on this machine."""
        return self.core.routing_seconds[0]

    @property
    def hit_rate(self) -> float | None:
        """Share of decisions that had been computed ahead; None without decisions."""
        made = self.decisions
        return sum(each.foreseen for each in made) / len(made) if made else None

    @property
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

        write_timeline(Path(path), self)

    def to_dict(self) -> ClusterRunData:
        """Return the result as JSON values."""
        return {
            "scheme": self.scheme,
            "topology": self.cluster.topology.name,
            "hosts": len(self.cluster.hosts),
            "time_ps": self.core.time_ps,
            "max_link_load": self.max_link_load if self.decisions else None,
            "hit_rate": self.hit_rate,
            "time_saved_ps": _ps(self.time_saved),
            "computed_ahead": self.core.computed_ahead,
            "routing_elapsed_ps": [_ps(seconds) for seconds in self.routing_seconds],
            "jobs": [_job_dict(job, self.cluster) for job in self.jobs],
            "decisions": [_decision_dict(each) for each in self.decisions],
        }

    def _rows(self) -> list[dict[str, Any]]:
        rows = [_job_dict(job, self.cluster) for job in self.jobs]
        whole = ("hosts", "iterations")
        return [{key: value for key, value in row.items() if key not in whole} for row in rows]

    def __repr__(self) -> str:
        """Scheme, size and time."""
        return f"<ClusterRun by {self.scheme}: {len(self._placed)} jobs, {self.time:.6g} s>"


def _ps(seconds: float) -> int:
    return round(seconds * _SECOND)


def _job_dict(run: JobRun, cluster: Cluster) -> JobData:
    job = run.job
    iterations: list[IterationData] = [
        {
            "compute_start_ps": _ps(each.compute_start),
            "start_ps": _ps(each.start),
            "end_ps": _ps(each.end),
            "all_reduce_ps": _ps(each.all_reduce),
            "flows": each.flows,
            "flow_completion_ps": _ps(each.flow_completion),
            "throughput_bytes_per_s": each.throughput,
            "slowest_ps": _ps(each.slowest),
        }
        for each in run.iterations
    ]
    return {
        "name": job.name,
        "model": job.model,
        "workload": job.workload.name if isinstance(job.workload, Workload) else None,
        "gpus": job.gpus,
        "hosts": list(dict.fromkeys(cluster.host_of(gpu) for gpu in run.placed.gpus)),
        "all_reduce_ps": _ps(run.all_reduce),
        "ideal_ps": _ps(run.ideal),
        "slowdown": run.slowdown,
        "flow_completion_ps": _ps(run.flow_completion),
        "throughput_bytes_per_s": run.throughput,
        "iteration_ps": _ps(run.iteration),
        "iterations": iterations,
    }


def _decision_dict(decision: Decision) -> DecisionData:
    return {
        "time_ps": _ps(decision.time),
        "flows": decision.flows,
        "moved": decision.moved,
        "max_link_load": decision.max_link_load,
        "bound": decision.bound,
        "foreseen": decision.foreseen,
        "is_repair": decision.is_repair,
        "witness": decision.witness,
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
