"""The controller and its agents on a Clos of namespaces: what goes on when one of them is gone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from threading import Thread

import pytest
from testbed.tests.until import PATIENCE, until

import hocket as hk
import hocket_testbed
from hocket_testbed.namespaces import batch, write_settings
from hocket_testbed.rings import Ring, all_reduce
from hocket_testbed.service import Announced, Service, serve


@pytest.fixture
def service(
    prefix: str, controller_programs: None, request: pytest.FixtureRequest
) -> Iterator[Service]:
    spec = hocket_testbed.ClosSpec(prefix=prefix, spines=2, tors=2, hosts=2)
    probes = getattr(request, "param", False)
    with hocket_testbed.build(spec), serve(spec, probes=probes) as running:
        yield running


def announced(service: Service, stack: ExitStack, dport: int = 5000) -> list[Announced]:
    """A flow from each host to the one below the other ToR that has the same place."""
    flows = [service.announce(host, (host + 2) % 4, dport, 1 << 30) for host in range(4)]
    for flow in flows:
        stack.callback(flow.close)
    until(lambda: all(flow.port for flow in flows), "steered")
    return flows


def test_flows_are_steered_and_end(service: Service) -> None:
    assert service.state()["hosts"] == service.state()["sessions"] == 4
    with ExitStack() as stack:
        announced(service, stack)
        until(lambda: service.state()["flows"] == 4, "four flows")
        assert service.state()["excess"] == 0
    until(lambda: service.state()["flows"] == 0, "no flow left")


@pytest.mark.slow
def test_a_controller_that_is_killed_moves_nothing(service: Service) -> None:
    with ExitStack() as stack:
        flows = announced(service, stack)
        ports = [flow.port for flow in flows]
        assert service.controller is not None
        service.controller.kill()
        service.controller.wait()
        late = service.announce(0, 3, 6000, 1 << 30)
        stack.callback(late.close)
        assert late.port is None, "nobody answers, so the switches hash it"
        assert [flow.port for flow in flows] == ports
        service.start_controller()
        until(lambda: late.port is not None, "steered after the restart")
        until(lambda: service.state()["flows"] == 5, "five flows")
        assert [flow.port for flow in flows] == ports
        assert service.state()["epoch"] == 2


@pytest.mark.slow
def test_an_agent_that_is_killed_leaves_others_alone(service: Service) -> None:
    with ExitStack() as stack:
        flows = announced(service, stack)
        ports = [flow.port for flow in flows]
        service.agents[0].kill()
        service.agents[0].wait()
        until(lambda: service.state()["flows"] == 3, "three flows: the lease is over")
        assert [flow.port for flow in flows[1:]] == ports[1:]
        service.start_agent(0)
        service.wait()
        again = service.announce(0, 2, 5000, 1 << 30)
        stack.callback(again.close)
        until(lambda: again.port is not None, "steered again")


@pytest.mark.slow
def test_a_host_that_is_cut_off_keeps_its_paths(service: Service) -> None:
    controller = service.spec.namespace("controller")
    with ExitStack() as stack:
        flows = announced(service, stack)
        ports = [flow.port for flow in flows]
        batch(["link set dev host0 down"], controller)
        late = service.announce(0, 3, 6000, 1 << 30)
        stack.callback(late.close)
        assert late.port is None
        assert [flow.port for flow in flows] == ports
        batch(["link set dev host0 up"], controller)
        until(lambda: late.port is not None, "steered again")
        assert [flow.port for flow in flows] == ports


@pytest.mark.slow
def test_traffic_goes_on_when_a_spine_fails_and_programs_are_killed(service: Service) -> None:
    spec = service.spec
    with ExitStack() as stack:
        flows = announced(service, stack)
        hosts = (0, 2, 1, 3)
        sports = (flows[0].port, 10_001, flows[1].port, 10_002)
        ring = Ring(hosts, 4 << 20, 5000, tuple(port or 0 for port in sports))
        done: list[list[float]] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                done.extend(all_reduce(spec, [ring], warm_up=0) for _ in range(6))
            except BaseException as error:
                errors.append(error)

        thread = Thread(target=run)
        thread.start()
        time.sleep(0.3)
        links = [f"link set dev {spec.uplink(0)} down"]
        for tor in range(spec.tors):
            batch(links, spec.namespace(f"tor{tor}"))
        assert service.say_of_links(fail=["spine0"])["failed"] == 4
        until(lambda: all(flow.port for flow in flows), "steered by the other spine")
        assert service.controller is not None
        service.controller.kill()
        service.agents[1].kill()
        thread.join(PATIENCE)
        assert not errors
        assert len(done) == 6


def test_a_job_is_seen_while_its_program_runs(service: Service) -> None:
    spec = service.spec
    ring = [(spec.address(host), spec.address((host + 2) % 4), "1 GB") for host in range(4)]

    def seen() -> list[dict[str, object]]:
        return service.state()["jobs"]

    with service.agent(0) as agent, agent.job(7, ring) as job:
        known = {"job": 7, "leader": "host0", "flows": 4, "live": False}
        until(lambda: seen() == [known], "registered")
        with job.iteration():
            until(lambda: seen() == [known | {"live": True}], "live")
            until(lambda: service.state()["flows"] == 4, "four flows")
        until(lambda: service.state()["flows"] == 0, "no flow between iterations")
        job.close()
        until(lambda: seen() == [], "gone")
        agent.job(8, ring)
        until(lambda: len(seen()) == 1, "another registered")
    until(lambda: seen() == [], "gone with its program")


def way_of(spec: hocket_testbed.ClosSpec, host: int, flow: Announced, dport: int = 5000) -> int:
    """By which spine a flow goes that leads below the other ToR."""
    src, dst = spec.address(host), spec.address((host + 2) % 4)
    header = hk.steering.Header(src, dst, dport, protocol="tcp").by(flow.port or 0)
    return spec.tor_hash(spec.tor_of(host)).way(header, spec.spines)


@pytest.mark.slow
@pytest.mark.parametrize("service", [True], indirect=True)
def test_flows_leave_a_path_that_loses_packets_and_come_back(service: Service) -> None:
    """One link drops all that it is given; its ends stay up, and nobody tells the controller."""
    spec = service.spec
    spine = spec.namespace("spine0")
    drops = f"ipv4/conf/{spec.downlink(0, 0)}/forwarding"
    with ExitStack() as stack:
        flows = announced(service, stack)
        ways = [way_of(spec, host, flow) for host, flow in enumerate(flows)]
        (host,) = (host for host in (0, 1) if ways[host] == 0)
        time.sleep(4)  # the window of the probes
        assert all(flow.port for flow in flows)
        write_settings(spine, [(drops, 0)])
        until(lambda: flows[host].port is None, "fallen back")
        time.sleep(5)  # longer than it is left alone for
        assert flows[host].port is None
        write_settings(spine, [(drops, 1)])
        until(lambda: all(flow.port for flow in flows), "back")
        assert [way_of(spec, host, flow) for host, flow in enumerate(flows)] == ways
        assert service.say_of_links()["failed"] == 0
    log = (service.folder / f"host{host}.log").read_text()
    assert "probes find a path bad" in log
