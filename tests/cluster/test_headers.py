"""Jobs whose flows have headers that are known, hashed as Linux does."""

from __future__ import annotations

import pytest

import hocket as hk

BANDWIDTH = 10**9


def placed(hosts: hk.routing.Cluster) -> list[hk.routing.Placed]:
    jobs = [
        hk.routing.Job(
            name, parameters=10**6, data=4, iterations=1, compute="0 s", placement="random"
        )
        for name in ("a", "b")
    ]
    return hk.routing.place(hosts, jobs, seed=3)


def test_flows_are_listed_in_the_order_of_their_headers() -> None:
    """Every flow on its own spine is as fast as alone; all on one are as slow as they are many."""
    hosts = hk.routing.cluster(
        hk.topology.clos(spines=8, tors=4, hosts_per_tor=2, bandwidth=BANDWIDTH, latency=0),
        gpus_per_host=1,
        nics_per_host=1,
    )
    jobs = placed(hosts)
    flows = hk.routing.fabric_flows(hosts, jobs)
    assert {flow.job for flow in flows} == {"a", "b"}
    for flow in flows:
        assert flow.tors == (flow.src // 2, flow.dst // 2)
        assert flow.tors[0] != flow.tors[1]
    assert flows == sorted(flows, key=lambda flow: flow.job)
    tor = hk.steering.SwitchHash("linux", seed=9)

    def run(wanted: list[int]) -> hk.routing.ClusterRun:
        headers = []
        for flow, spine in zip(flows, wanted, strict=True):
            header = hk.steering.Header(f"10.0.0.{flow.src + 1}", f"10.0.1.{flow.dst + 1}", 5000)
            port = hk.steering.find_port(header, [hk.steering.Stage(tor, 8, spine)])
            headers.append(header.by(port))
        return hk.routing.simulate(
            hosts, jobs, scheme="ecmp", hash="linux", headers=headers, switch_seeds=[9] * 4
        )

    apart = run([i % 8 for i in range(len(flows))])
    assert [job.slowdown for job in apart.jobs] == pytest.approx([1, 1], rel=1e-6)
    together = run([0] * len(flows))
    crowd = max(sum(flow.tors[0] == tor for flow in flows) for tor in range(4))
    assert crowd > 1
    assert max(job.slowdown for job in together.jobs) > 1.5


def test_flows_of_jobs_that_are_not_placed() -> None:
    hosts = hk.routing.cluster("clos:2x2", nics_per_host=1)
    with pytest.raises(hk.SpecError, match=r"^jobs: 3 is not a Placed"):
        hk.routing.fabric_flows(hosts, [3])  # type: ignore[list-item]
