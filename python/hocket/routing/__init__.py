"""Routing on a Clos or fat tree: clusters of hosts, jobs placed on them, and paths for their flows.

>>> import hocket as hk
>>> fab = hk.topology.clos(spines=4, tors=8, hosts_per_tor=4, bandwidth="100 Gb/s", latency="1 us")
>>> hk.routing.assign(fab, [(0, 5), (3, 5)], scheme="greedy").spines.tolist()
[0, 1]
>>> hosts = hk.routing.cluster("clos:32x64")
>>> placed = hk.routing.place(hosts, [hk.routing.Job("bloom", model="bloom", data=2)])
>>> placed[0].rings[0]
(0, 48)
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from hocket._checks import path_of
from hocket._moved import renamed
from hocket.cluster.hosts import Cluster, HostOptions, cluster
from hocket.cluster.jobs import COLLECTIVES, POLICIES, ROUNDS, Compute, Job, JobList
from hocket.cluster.models import MODELS, Model
from hocket.cluster.placement import Placed, place
from hocket.routing.assignment import SCHEMES, Assignment, LoadBound, Loads, assign
from hocket.routing.options import ClusterOptions, SchemeOptions
from hocket.routing.result import ClusterRun, Decision, Iteration, JobRun
from hocket.routing.simulation import CLUSTER_SCHEMES, FabricFlow, fabric_flows, simulate

__all__ = [
    "CLUSTER_SCHEMES",
    "COLLECTIVES",
    "MODELS",
    "POLICIES",
    "ROUNDS",
    "SCHEMES",
    "Assignment",
    "Cluster",
    "ClusterOptions",
    "ClusterRun",
    "Compute",
    "Decision",
    "FabricFlow",
    "HostOptions",
    "Iteration",
    "Job",
    "JobList",
    "JobRun",
    "LoadBound",
    "Loads",
    "Model",
    "Placed",
    "SchemeOptions",
    "assign",
    "cluster",
    "fabric_flows",
    "load_jobs",
    "place",
    "simulate",
]


def load_jobs(path: str | PathLike[str]) -> JobList:
    """Read a file of jobs (docs/jobs.md).

    Raises
    ------
    SpecError
        Naming file, line, job and key, what was wrong and what would be right.
    """
    from hocket.cluster.yaml import from_file

    return from_file(path_of("path", path))


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # which would take every name for one of the package
    __getattr__ = renamed(__name__, {"Certificate": "LoadBound"})
