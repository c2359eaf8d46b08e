"""Jobs on a cluster at the ends of what can be asked for, and what is refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from hocket.routing import COLLECTIVES, Cluster, Job, cluster, place, simulate


def a_job(name: str = "j", **others: Any) -> Job:
    return Job(name, **{"parameters": 10**6, "compute": "10 us", "data": 2, **others})


def small(fabric: str = "clos:2x4", **others: Any) -> Cluster:
    return cluster(fabric, **{"gpus_per_host": 2, "nics_per_host": 2, **others})


def test_thousands_of_iterations_without_computation() -> None:
    run = simulate(small(), [a_job(compute="0 s", tensor=2, data=4, iterations=3000)])
    assert run.time == pytest.approx(3000 * run.jobs[0].ideal)
    assert len(run.decisions) == 1  # all that communicates stays the same


def test_jobs_that_do_everything_at_the_same_time() -> None:
    """Nothing shared: both are as fast as one alone, and each moment is one decision."""
    jobs = [a_job(name, tensor=2, arrival="3 us", iterations=20) for name in "ab"]
    run = simulate(small("clos:4x4x4"), [*jobs, a_job("c", data=1)], scheme="edge-coloring")
    first, second = (job.iterations for job in run.jobs[:2])
    assert first == second
    assert len({each.time for each in run.decisions}) == len(run.decisions)


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("parameters", [2, 10**15])
def test_tiny_and_huge_gradients(collective: str, parameters: int) -> None:
    grid = (2, 2) if collective in ("hierarchical", "hierarchical-ring", "ring-2d") else None
    job = a_job(parameters=parameters, data=4, collective=collective, grid=grid, iterations=2)
    run = simulate(small("clos:2x8"), [job])
    assert run.jobs[0].slowdown >= 1 - 1e-12
    exact = sum(row[4] - row[3] for row in run.core.iterations)
    assert exact * 10**-12 == pytest.approx(2 * run.jobs[0].all_reduce)


def test_slow_links_are_as_slow_as_said(tmp_path: Path) -> None:
    """At a quarter of its rate a NIC makes the job four times as long; paths avoid a slow spine."""
    jobs = [a_job(compute="0 s", tensor=2, data=4, parameters=10**8)]

    def time(fabric: str | Path = "clos:4x4x4", **slow: list[str]) -> float:
        return simulate(small(str(fabric), **slow), jobs, scheme="greedy").time

    assert time(slow=["npu0=25Gb/s"]) == pytest.approx(4 * time())
    assert time(slow=["npu0,tor0=25Gb/s"]) == time(slow=["npu0=25Gb/s"])
    assert time(slow=["spine3=1Gb/s"]) < 5 * time()
    file = tmp_path / "fabric.yml"
    text = (
        "builder: clos\nspines: 4\ntors: 4\nhosts_per_tor: 4\nbandwidth: 100 Gb/s\nlatency: 0 ns\n"
    )
    file.write_text(f"{text}slow: [npu0=25Gb/s]\n", encoding="utf-8")
    assert time(file, slow=["npu5=50Gb/s"]) == time(slow=["npu0=25Gb/s"])
    for wrong, why in (
        ("npu0", "slow: 'npu0' has no rate; say what it carries: npu0=12.5GB/s"),
        ("npu99=1Gb/s", 'slow: no device is called "npu99"'),
        ("npu0=400Gb/s", "slow: npu0=50 GB/s is not slow: it has 12.5 GB/s"),
    ):
        with pytest.raises(hk.SpecError, match=why):
            time(slow=[wrong])


def test_a_job_of_one_copy_only_computes() -> None:
    run = simulate(small(), [a_job(data=1, iterations=7)])
    assert run.core.time_ps == 70 * 10**6
    assert (run.decisions, run.hit_rate, run.jobs[0].slowdown) == ((), None, 1.0)
    assert (run.jobs[0].throughput, run.jobs[0].flow_completion) == (0.0, 0.0)
    assert simulate(small(), [a_job(data=1, compute="0 s", iterations=10**5)]).time == 0


@pytest.mark.parametrize(
    ("fabric", "hosts", "job", "slowdown"),
    [
        ("clos:2x2", {"gpus_per_host": 8}, {"data": 8}, None),
        ("clos:4x4x4", {"gpus_per_host": 8, "nics_per_host": 1}, {"tensor": 8}, 1),
        ("clos:1x4x2", {}, {"tensor": 2, "data": 4}, 2),
        ("clos:2x1x8", {}, {"tensor": 2, "data": 4}, 1),
        ("clos:2x8x2", {}, {"tensor": 2, "data": 8}, 1),
        ("fat-tree:4", {}, {"tensor": 2, "data": 8}, 1),
    ],
)
def test_odd_clusters(
    fabric: str, hosts: dict[str, int], job: dict[str, int], slowdown: float | None
) -> None:
    """All in one host, one NIC for all, one spine, one ToR, one host below each ToR."""
    run = simulate(small(fabric, **hosts), [a_job(**job)], scheme="edge-coloring")
    if slowdown is None:
        assert run.jobs[0].slowdown == pytest.approx(1)
        assert not run.link_bytes.any()
        assert all(each.flows == 0 < each.all_reduce for each in run.jobs[0].iterations)
    else:
        assert run.jobs[0].slowdown == pytest.approx(slowdown)


@pytest.mark.parametrize("slow", ["up", "down"])
def test_a_nic_that_is_slower_one_way(slow: str, tmp_path: Path) -> None:
    """The ideal is of the slower way."""
    fast, half = "bandwidth: 100 GB/s, latency: 0 ns", "bandwidth: 50 GB/s, latency: 0 ns"
    ways = (half, fast) if slow == "up" else (fast, half)
    nics = [f"{{a: npu{i}, b: tor{i}, {ways[0]}, reverse: {{{ways[1]}}}}}" for i in (0, 1)]
    above = [f"[tor{i}, spine0, 100 GB/s, 0 ns]" for i in (0, 1)]
    text = (
        f"name: odd\nnpus: 2\nswitches: [tor0, tor1, spine0]\nlinks: [{', '.join(nics + above)}]\n"
    )
    (tmp_path / "odd.yml").write_text(text)
    where = cluster(tmp_path / "odd.yml", gpus_per_host=1, nics_per_host=1)
    run = simulate(where, [a_job()])
    assert run.jobs[0].slowdown == pytest.approx(1)


def test_jitter_of_everything() -> None:
    run = simulate(small(), [a_job(iterations=2000)], jitter=1.0)
    compute = [each.start - each.compute_start for each in run.jobs[0].iterations]
    assert min(compute) < 1e-7
    assert 19.9e-6 < max(compute) <= 20e-6
    assert sum(compute) / 2000 == pytest.approx(10e-6, rel=0.05)


def test_an_answer_may_take_longer_than_everything_else() -> None:
    where, listed = small("clos:4x4x4"), [a_job(n, tensor=4, iterations=4) for n in "ab"]
    plain = simulate(where, listed, scheme="edge-coloring")
    slow = simulate(where, listed, scheme="edge-coloring", answer="1 s")
    assert slow.core.time_ps == plain.core.time_ps + 4 * 10**12


CUT = ["tor0,spine0", "tor1,spine1"]
REFUSED: dict[str, tuple[type[Exception], str, str, dict[str, Any], dict[str, Any]]] = {
    "cut": (
        hk.InfeasibleError,
        r"^job 'j': no path is left from ToR 0 to ToR 1, from ToR 1 to ToR 0, for 4 of its flows; keep",
        "clos:2x4",
        {"failed": CUT},
        {"tensor": 2},
    ),
    "too few bytes": (
        hk.SpecError,
        "job 'j'.*use fewer",
        "clos:2x8",
        {},
        {"parameters": 1, "data": 8},
    ),
    "too long": (
        hk.SimulationError,
        "213 days",
        "clos:2x8",
        {"bandwidth": "1 B/s"},
        {"parameters": 10**15, "tensor": 2},
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what: str) -> None:
    kind, message, fabric, hosts, job = REFUSED[what]
    for scheme in ("greedy", "ecmp", "least-loaded", "edge-coloring", "annealing"):
        with pytest.raises(kind, match=message) as raised:
            simulate(small(fabric, **hosts), [a_job(**job)], scheme=scheme)
        assert "\n" not in str(raised.value)


def test_a_gpu_is_of_one_job() -> None:
    where = small()
    twice = [place(where, [a_job(name)])[0] for name in "ab"]
    with pytest.raises(hk.SpecError, match="job 'b': has GPU 0, which job 'a' has too"):
        simulate(where, twice)


def test_progress_is_told_and_may_raise() -> None:
    told: list[tuple[str, int, int]] = []
    job = a_job(iterations=5000, tensor=2, data=4)
    simulate(small(), [job], progress=lambda *each: told.append(each))
    done = [each[1] for each in told]
    assert len(told) > 2
    assert done == sorted(done)
    assert {(stage, total) for stage, _, total in told} == {("run jobs", 5000 * 2 * 24)}

    def stop(*_: object) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        simulate(small(), [job], progress=stop)


def test_an_interrupt_stops_jobs(interrupted: Callable[..., str]) -> None:
    script = """
from hocket.routing import Job, cluster, simulate
where = cluster("clos:8x8")
jobs = [Job(n, parameters=10**7, tensor=16, data=2, compute="10 us", iterations=10**6) for n in "ab"]
print("made", flush=True)
try:
    while True:
        simulate(where, jobs, scheme="edge-coloring")
except KeyboardInterrupt:
    print("stopped")
"""
    assert interrupted(script, within=20) == "stopped\n"


def test_limits_of_switches_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "limited.yml"
    pairs = ["npu0, tor0", "npu1, tor0", "npu2, tor1", "npu3, tor1", "tor0, spine0", "tor1, spine0"]
    links = "".join(f"  - [{pair}, 10 GB/s, 0 ns]\n" for pair in pairs)
    switches = "switches: [tor0, tor1, {name: spine0, limit: 1 GB/s}]\n"
    file.write_text(f"npus: 4\n{switches}links:\n{links}", encoding="utf-8")
    with pytest.raises(hk.SpecError, match="a switch has a limit, which flows on chosen paths"):
        simulate(cluster(file, gpus_per_host=2, nics_per_host=2), [a_job(tensor=2)])


@pytest.mark.parametrize("field", ["jitter", "rate_control"])
def test_shares_are_not_per_cent(field: str) -> None:
    with pytest.raises(hk.SpecError, match=rf"^{field}: 5 .* from 0 to 1; did you mean 0\.05\?$"):
        simulate(small(), [a_job(iterations=1)], **{field: 5})  # type: ignore[arg-type]
