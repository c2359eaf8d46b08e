"""Random jobs on random small clusters, and how two runs of them are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import fluid
import pytest
from fluid import Fluid

import hocket as hk
from hocket.routing import Cluster, Job, Placed, cluster, place

GRIDS = {"hierarchical-ring": [(2, 2), (2, 3), (3, 2)]}
COLLECTIVES = ("ring", "ring", "tree", "halving-doubling", "hierarchical-ring", "direct")


@dataclass
class Case:
    """Jobs on a cluster."""

    cluster: Cluster
    placed: list[Placed]
    options: dict[str, Any]


def a_cluster(random: Random) -> Cluster:
    """2 to 8 ToRs, 1 to 4 spines of which some failed, hosts with as many NICs as GPUs or fewer."""
    spines, tors = random.randint(1, 4), random.randint(2, 8)
    gpus = random.randint(1, 4)
    nics = random.randint(1, gpus)
    return cluster(
        f"clos:{spines}x{tors}",
        gpus_per_host=gpus,
        nics_per_host=nics,
        hosts_per_tor=random.randint(1, 4),
        bandwidth=random.choice(["100 Gb/s", "40 Gb/s", "7 GB/s"]),
        host_bandwidth=random.choice([None, "25 Gb/s", "3 GB/s"]),
        latency=random.choice(["0 ns", "500 ns", "1234 ps"]),
        failed_spines=random.randint(0, spines - 1) if random.random() < 0.4 else 0,
        seed=random.randrange(99),
    )


def a_fat_tree(random: Random) -> Cluster:
    """Three levels of switches of 4 or 6 ports; nothing has failed."""
    gpus = random.randint(1, 4)
    return cluster(
        random.choice(["fat-tree:4", "fat-tree:4", "fat-tree:6"]),
        gpus_per_host=gpus,
        nics_per_host=1,
        bandwidth=random.choice(["100 Gb/s", "7 GB/s"]),
        latency=random.choice(["0 ns", "500 ns", "1234 ps"]),
    )


def a_job(random: Random, name: str, gpus: int) -> Job | None:
    """A job for so many GPUs at most; None where none of the kind drawn fits."""
    collective = random.choice(COLLECTIVES)
    grid = random.choice(GRIDS[collective]) if collective in GRIDS else None
    data = random.choice([1, 2, 2, 3, 3, 4, 5]) if grid is None else grid[0] * grid[1]
    if collective == "halving-doubling":
        data = random.choice([2, 4])
    tensor = random.randint(1, 4)
    if data * tensor > gpus:
        return None
    return Job(
        name,
        parameters=tensor * random.choice([1000, 250_000, 250_000, random.randint(100, 10**6)]),
        tensor=tensor,
        data=data,
        iterations=random.randint(1, 4),
        arrival=random.choice(["0 s", "0 s", "10 us", f"{random.randrange(10**5)} ns"]),
        compute=random.choice(["0 s", "20 us", "100 us", f"{random.randrange(300)} us"]),
        placement=random.choice(["random", "random", "packed", "random-tors"]),
        collective=collective,
        grid=grid,
        rounds=random.choice(["data", "lock-step"]),
    )


def some_jobs(random: Random, where: Cluster) -> list[Placed]:
    """One job to four, on hosts of their own."""
    jobs: list[Job] = []
    free = len(where.hosts)
    for number in range(random.randint(1, 4)):
        job = a_job(random, f"job{number}", free * where.gpus_per_host)
        if job is not None:
            free -= -(-job.gpus // where.gpus_per_host)
            jobs.append(job)
    return place(where, jobs, random.randrange(99)) if jobs else some_jobs(random, where)


def a_case(seed: int, *, has_three_levels: bool = False) -> Case:
    """Everything drawn, options too."""
    random = Random(seed)
    where = a_fat_tree(random) if has_three_levels else a_cluster(random)
    schemes = ["greedy", "greedy", "edge-coloring", "ecmp", "least-loaded"]
    options: dict[str, Any] = {
        "scheme": random.choice(schemes[:4] if has_three_levels else schemes),
        "seed": random.randrange(99),
        "weights": random.choice(["flows", "flows", "bytes"]),
        "answer": random.choice(["0 s", "0 s", "3 us", "200 us"]),
        "host_rate": random.choice(["300 GB/s", "5 GB/s"]),
    }
    return Case(where, some_jobs(random, where), options)


def hocket(case: Case, **others: Any) -> hk.routing.ClusterRun:
    """Run by hocket."""
    return hk.routing.simulate(case.cluster, case.placed, **{**case.options, **others})


def slowly(
    case: Case, *, is_rounded: bool = True, compute: Sequence[Sequence[int]] | None = None
) -> Fluid:
    """Run by the oracle; times of computation are those of the jobs unless they are given."""
    options = case.options
    reroutes = {"ecmp": "never", "least-loaded": "at-start"}
    units = hk.units
    times = compute or [None] * len(case.placed)
    return Fluid(
        case.cluster,
        [fluid.given(placed, own) for placed, own in zip(case.placed, times, strict=True)],
        scheme=options["scheme"],
        reroute=reroutes.get(options["scheme"], "always"),
        seed=options["seed"],
        by_bytes=options["weights"] == "bytes",
        answer=units.parse_time(options["answer"], field="answer"),
        host_rate=units.parse_bandwidth(options["host_rate"], field="host_rate"),
        is_rounded=is_rounded,
    )


def check_alike(run: hk.routing.ClusterRun, by_hand: Fluid, *, slack_ps: int = 0) -> None:
    """Times equal within so many picoseconds, everything else as near as that lets it be."""
    rows = {(row[0], row[1]): row[2:] for row in run.core.iterations}
    assert rows.keys() == by_hand.rows.keys()
    for key, expected in by_hand.rows.items():
        compute, start, end, flows, completion, throughput, slowest = rows[key]
        times = (compute, start, end, slowest)
        right = (expected.compute_start, expected.start, expected.end, expected.slowest)
        assert all(abs(a - b) <= slack_ps for a, b in zip(times, right, strict=True)), key
        assert flows == expected.flows
        loose = {"rel": 1e-9, "abs": slack_ps * flows * 1e-12}
        assert completion == pytest.approx(expected.completion, **loose)
        assert throughput == pytest.approx(expected.throughput, rel=1e-9 if not slack_ps else 1e-6)
    decisions = [
        (round(each.time * 1e12), each.flows, each.moved, each.max_link_load, each.bound)
        for each in run.decisions
    ]
    if not slack_ps:
        assert decisions == [tuple(choice) for choice in by_hand.choices]
    most = by_hand.moves + 1e-6 + slack_ps
    for link, size in enumerate(run.link_bytes.tolist()):
        assert abs(size - by_hand.link_bytes[link]) <= most, link
