"""Links that fail while jobs run, and hosts that keep to their share."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import cases
import fluid
import pytest
from fluid import Fluid

import hocket as hk
from hocket.routing import Cluster, Job, cluster, simulate


def four_tors(nics: int = 4) -> Cluster:
    """Three spines, hosts of two NICs."""
    return cluster(f"clos:3x4x{nics}", gpus_per_host=2, nics_per_host=2)


def a_job(name: str = "j", *, bytes_each: int = 10**6, every: int = 1, **others: object) -> Job:
    """A ring of four hosts, one below each ToR."""
    sizes = {"parameters": bytes_each, "tensor": 2, "data": 4, "compute": "100 us", **others}
    return Job(name, **sizes)  # type: ignore[arg-type]


CONTROLLED = ("greedy", "greedy-parallel", "annealing", "edge-coloring", "ilp")


@pytest.mark.parametrize("failover", [False, True])
@pytest.mark.parametrize("scheme", hk.routing.CLUSTER_SCHEMES)
def test_every_scheme_leaves_what_fails(scheme: str, failover: bool) -> None:
    """Two outages of which the second takes the spine that is left to one pair of ToRs but one."""
    where = four_tors(2)
    outages = ["spine0@150 us", "tor0,spine1@300 us"]
    run = simulate(where, [a_job()], scheme=scheme, failover=failover, outages=outages)
    fabric = where.topology
    assert len(run.jobs[0].iterations) == 10
    ends = zip(fabric.link_src.tolist(), fabric.link_dst.tolist(), strict=True)
    by_spine = dict.fromkeys(["spine0", "spine1", "spine2"], 0)
    for (src, dst), size in zip(ends, run.link_bytes.tolist(), strict=True):
        for name in {fabric.device_names[src], fabric.device_names[dst]} & by_spine.keys():
            by_spine[name] += size
    assert by_spine["spine2"] > 10 * by_spine["spine0"]
    if scheme != "spray":
        assert sum(each.is_repair for each in run.decisions) == 2


@pytest.mark.parametrize("scheme", hk.routing.CLUSTER_SCHEMES)
@pytest.mark.parametrize("what", ["npu0", "npu0,tor0"])
def test_a_nic_that_is_lost_before_anything_is_sent_is_named(scheme: str, what: str) -> None:
    with pytest.raises(hk.InfeasibleError, match="loses the link of npu0 at 50 us"):
        simulate(four_tors(2), [a_job()], scheme=scheme, outages=[f"{what}@50 us"])


def test_a_nic_that_nobody_needs_may_be_lost() -> None:
    where, hosts = four_tors(), ("host0", "host2", "host4", "host6")
    run = simulate(where, [a_job(hosts=hosts)], outages=["npu2@50 us", "npu3@300 us"])
    assert run.time == simulate(where, [a_job(hosts=hosts)]).time


@pytest.mark.parametrize("scheme", CONTROLLED)
def test_a_failure_at_the_moment_in_which_a_job_starts(scheme: str) -> None:
    """What was foreseen has paths for who was sending; who starts gets its own in the same moment."""
    where = four_tors()
    hosts = [tuple(f"host{2 * tor + i}" for tor in range(4)) for i in (0, 1)]
    jobs = [
        a_job("long", bytes_each=10**7, iterations=2, hosts=hosts[0]),
        a_job("short", bytes_each=10**4, iterations=20, hosts=hosts[1]),
    ]
    starts = [row[3] for row in simulate(where, jobs, scheme=scheme).core.iterations if row[0]]
    foreseen = []
    for spine in range(3):
        outages = [f"spine{spine}@{starts[4]} ps"]
        run = simulate(where, jobs, scheme=scheme, failover=True, outages=outages)
        assert len(run.jobs[1].iterations) == 20
        foreseen += [each for each in run.decisions if each.is_repair and each.foreseen]
    assert foreseen
    assert all(each.moved > 0 and each.max_link_load >= each.bound for each in foreseen)


def test_what_failed_before_is_no_failure() -> None:
    outages = ["spine0@150 us", "spine0@150 us", "tor0,spine0@160 us", "spine0@300 us"]
    run = simulate(four_tors(2), [a_job()], outages=outages)
    assert sum(each.is_repair for each in run.decisions) == 1


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_outages_and_rate_control_by_hand(part: int) -> None:
    """Equal to the picosecond, whatever fails at whatever moment."""
    compared = 0
    for seed in range(300 + 25 * part, 325 + 25 * part):
        random = Random(seed)
        case = cases.a_case(seed)
        scheme = random.choice(["greedy", "edge-coloring", "annealing"])
        slack = random.choice([None, 0.0, 0.05, 1.0])
        options = {**case.options, "scheme": scheme, "answer": "0 s", "rate_control": slack}
        case = replace(case, options=options)
        outages = some_outages(random, case)
        try:
            run = cases.hocket(
                case, outages=[f"{one},{other}@{time} ps" for time, one, other in outages]
            )
        except hk.InfeasibleError:
            continue
        compared += bool(outages)
        by_hand = Fluid(
            case.cluster,
            [fluid.given(placed) for placed in case.placed],
            scheme=scheme,
            seed=options["seed"],
            by_bytes=options["weights"] == "bytes",
            host_rate=hk.units.parse_bandwidth(options["host_rate"], field="host_rate"),
            outages=outages,
            slack_ppm=None if slack is None else round(slack * 10**6),
        )
        cases.check_alike(run, by_hand)
    assert compared > 5


def some_outages(random: Random, case: cases.Case) -> list[tuple[int, str, str]]:
    """Up to three links between switches; half of them fail as something else happens."""
    fabric = case.cluster.topology
    ends = zip(fabric.link_src.tolist(), fabric.link_dst.tolist(), strict=True)
    links = [pair for pair in ends if min(pair) >= fabric.npu_count]
    moments = [time for row in cases.hocket(case).core.iterations for time in row[2:5]]
    found = []
    for _ in range(random.randint(0, 3)):
        one, other = (fabric.device_names[end] for end in random.choice(links))
        time = random.choice(moments) if random.random() < 0.5 else random.randrange(10**9)
        found.append((time, one, other))
    return found
