"""The simulated time of ring all-reduces on a testbed, with the ports that they have."""

from __future__ import annotations

from collections.abc import Sequence

from hocket.cluster.hosts import Cluster, cluster
from hocket.cluster.jobs import Job
from hocket.cluster.placement import Placed
from hocket.errors import SpecError
from hocket.routing.simulation import fabric_flows, simulate
from hocket.steering.hashes import Header
from hocket.topology.families import clos
from hocket_testbed.clos import ClosSpec
from hocket_testbed.rings import Ring
from hocket_testbed.shaping import GOODPUT

__all__ = ["LATENCY", "cluster_of", "ideal_time", "predict"]

LATENCY = 80e-6
"""From a rank to the next through this executor, besides the time that bytes take [s]."""
_HOPS = 4
_FLOAT = 4


def cluster_of(spec: ClosSpec) -> Cluster:
    """Return the hosts of a testbed as a cluster: a GPU and a NIC each, links with the rate that data has.

    Raises
    ------
    SpecError
        Where links are not shaped, or more than one joins a ToR and a spine.
    """
    if spec.rate_bytes is None or spec.links > 1:
        right = "give a rate, and one link between each ToR and each spine"
        raise SpecError("spec", "the simulation knows no such links", right)
    topology = clos(
        spines=spec.spines,
        tors=spec.tors,
        hosts_per_tor=spec.hosts,
        bandwidth=int(spec.rate_bytes * GOODPUT),
        latency=LATENCY / _HOPS,
    )
    return cluster(topology, gpus_per_host=1, nics_per_host=1)


def ideal_time(spec: ClosSpec, ring: Ring) -> float:
    """Return the time of a ring whose flows share no link [s]."""
    assert spec.rate_bytes is not None
    ranks = len(ring.hosts)
    step = ring.size / ranks / int(spec.rate_bytes * GOODPUT) + LATENCY
    return 2 * (ranks - 1) * step


def predict(spec: ClosSpec, rings: Sequence[Ring]) -> tuple[list[float], list[tuple[int, int]]]:
    """Return the time of each ring by the flow simulation [s], and the ToR and the spine of each flow.

    Flows take the spines that their headers lead to, as ``ecmp`` with the hash ``"linux"`` has it.
    """
    hosts = cluster_of(spec)
    placed = [
        Placed(
            Job(
                f"ring{i}",
                parameters=ring.size // _FLOAT,
                data=len(ring.hosts),
                iterations=1,
                compute="0 s",
            ),
            tuple((host,) for host in ring.hosts),
        )
        for i, ring in enumerate(rings)
    ]
    by_name = {f"ring{i}": ring for i, ring in enumerate(rings)}
    headers = []
    flows = fabric_flows(hosts, placed)
    for flow in flows:
        ring = by_name[flow.job]
        sport = ring.sports[ring.hosts.index(flow.src)]
        headers.append(
            Header(spec.address(flow.src), spec.address(flow.dst), ring.dport, sport, "tcp")
        )
    seeds = [spec.tor_seed(tor) for tor in range(spec.tors)]
    run = simulate(hosts, placed, scheme="ecmp", hash="linux", headers=headers, switch_seeds=seeds)
    ways = [
        (flow.tors[0], spec.tor_hash(flow.tors[0]).way(header, spec.spines))
        for flow, header in zip(flows, headers, strict=True)
    ]
    return [job.iterations[0].all_reduce for job in run.jobs], ways
