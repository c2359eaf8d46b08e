"""Jobs whose flows get paths from the solver, and which schemes tell hosts a rate."""

from __future__ import annotations

import pytest

from hocket.routing import Job, cluster, simulate

FABRIC = "clos:3x4x8"


def jobs() -> list[Job]:
    shape = {"parameters": 10**9, "tensor": 8, "data": 2, "iterations": 3}
    return [Job(name, compute="50 ms", **shape) for name in "ab"]  # type: ignore[arg-type]


@pytest.mark.parametrize("spine", range(3))
def test_the_solver_sends_nothing_over_what_failed(spine: int) -> None:
    """Eight flows from a ToR on two spines in place of three: four on a link, for two rounds."""
    pytest.importorskip("ortools")
    run = simulate(cluster(FABRIC), jobs(), scheme="ilp", outages=[f"spine{spine}@60 ms"])
    repairs = [each for each in run.decisions if each.is_repair]
    assert [(each.max_link_load, each.bound) for each in repairs] == [(4, 4)]
    rate = 12.5e9 / 4
    for job in run.jobs:
        assert job.iterations[-1].all_reduce == pytest.approx(job.job.gradient_bytes / rate)


@pytest.mark.parametrize("scheme", ["ecmp", "least-loaded", "spray"])
def test_hosts_are_held_to_no_share_where_no_controller_gives_one(scheme: str) -> None:
    """A job that met another would else be slow until it starts anew."""
    shape = {"tensor": 8, "data": 2, "compute": "1 ms"}
    long = Job("long", parameters=10**9, iterations=1, hosts=["host0", "host2"], **shape)  # type: ignore[arg-type]
    short = Job("short", parameters=10**8, iterations=1, hosts=["host1", "host3"], **shape)  # type: ignore[arg-type]
    fabric = cluster("clos:1x2x16")
    free, held = (
        simulate(fabric, [long, short], scheme=scheme, rate_control=slack) for slack in (None, 0.0)
    )
    assert free.jobs[0].slowdown > 8
    assert [job.all_reduce for job in free.jobs] == [job.all_reduce for job in held.jobs]
