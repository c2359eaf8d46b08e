"""Flows that agents steer by segments of the spines: which way their packets go, as the kernel counts."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from ipaddress import IPv6Address
from shutil import which

import pytest
from testbed.tests.until import until

import hocket as hk
import hocket_testbed
from hocket_testbed.cables import ipv6_of
from hocket_testbed.counters import sent
from hocket_testbed.namespaces import batch, inside, write_settings
from hocket_testbed.service import Service, serve

SIZE = 1 << 20


@pytest.fixture
def service(
    prefix: str, controller_programs: None, request: pytest.FixtureRequest
) -> Iterator[Service]:
    spec = hocket_testbed.ClosSpec(prefix=prefix, spines=4, tors=2, hosts=4, ipv6=True, rate=None)
    probes = getattr(request, "param", False)
    with hocket_testbed.build(spec), serve(spec, probes=probes, segments=True) as running:
        yield running


def rules(service: Service, host: int) -> str:
    """The agent's rules of a host, and the routes of their tables."""
    namespace = service.spec.namespace(f"host{host}")
    said = [
        subprocess.run(
            ["ip", "-netns", namespace, "-6", *what.split()],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for what in ("rule show", "route show table all")
    ]
    lines = "".join(said).splitlines()
    return "\n".join(line for line in lines if "proto 74" in line)


def spine_of(service: Service, host: int, port: int) -> int | None:
    """By which spine the kernel of a host leads what is sent from a port.

    None where the two readings, of rules and of routes, do not fit: the agent wrote between them.
    """
    said = rules(service, host)
    tables = re.findall(rf"sport {port} .*lookup (\d+)", said)
    found = [
        segment
        for table in tables
        for segment in re.findall(rf"segs \d+ \[ (\S+) .*table {table} ", said)
    ]
    if len(found) != 1:
        return None
    (segment,) = found
    segments = [service.spec.spine_segment(spine) for spine in range(service.spec.spines)]
    return [IPv6Address(each) for each in segments].index(IPv6Address(segment))


class Connection:
    """A TCP connection over IPv6, whose sender may leave its address to the kernel."""

    def __init__(
        self, service: Service, stack: ExitStack, src: int, dst: int, sport: int, dport: int
    ) -> None:
        self.service, self.src = service, src
        with inside(service.spec.namespace(f"host{dst}")):
            server = stack.enter_context(socket.socket(socket.AF_INET6))
        with inside(service.spec.namespace(f"host{src}")):
            self.out = stack.enter_context(socket.socket(socket.AF_INET6))
        for each in (server, self.out):
            each.settimeout(20)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((service.address(dst), dport))
        server.listen()
        self.out.bind(("::", sport))
        self.out.connect((service.address(dst), dport))
        self.into = stack.enter_context(server.accept()[0])
        self.into.settimeout(20)

    def ways(self) -> dict[int, int]:
        """Send a mebibyte, and say how many bytes the sender's ToR has sent to each spine."""
        spec = self.service.spec
        tor = spec.namespace(f"tor{spec.tor_of(self.src)}")
        before = sent(tor)
        for _ in range(16):
            self.out.sendall(bytes(SIZE // 16))
            left = SIZE // 16
            while left:
                left -= len(self.into.recv(left))
        after = sent(tor)
        ways = {
            s: after[spec.uplink(s)].bytes - before[spec.uplink(s)].bytes
            for s in range(spec.spines)
        }
        # Neighbours are asked for now and then.
        return {spine: count for spine, count in ways.items() if count > 10_000}


def test_flows_cross_the_spine_that_is_wanted_and_no_other(service: Service) -> None:
    spec = service.spec
    with ExitStack() as stack:
        opened = {}
        for host in range(4):
            # Whether a program hears of changes or not, its flows can be moved.
            asked = hk.steering.Agent(service.socket(host), patience=20, watch=host % 2 == 0)
            agent = stack.enter_context(asked)
            flow = agent.flow(service.address(host + 4), 5000 + host, size=1 << 30)
            assert flow.port is not None
            sport = flow.port
            opened[host] = Connection(service, stack, host, host + 4, sport, 5000 + host), sport
        crossed = []
        for host, (connection, sport) in opened.items():
            spine = spine_of(service, host, sport)
            assert spine is not None
            ways = connection.ways()
            assert list(ways) == [spine]
            assert ways[spine] >= SIZE
            crossed.append(spine)
        assert sorted(crossed) == [0, 1, 2, 3], "each flow has a spine of its own"
        # A spine fails: connections that are under way take another, without their programs' doing.
        for tor in range(spec.tors):
            batch([f"link set dev {spec.uplink(0)} down"], spec.namespace(f"tor{tor}"))
        assert service.say_of_links(fail=["spine0"])["failed"] == 4
        host = crossed.index(0)
        connection, sport = opened[host]
        until(lambda: spine_of(service, host, sport) not in (0, None), "led by another spine")
        assert list(connection.ways()) == [spine_of(service, host, sport)]
    for host in range(4):
        until(lambda: rules(service, host) == "", "all rules gone with their flows")  # noqa: B023


@pytest.mark.slow
@pytest.mark.parametrize("service", [True], indirect=True)
def test_flows_leave_a_spine_that_loses_packets_and_come_back(service: Service) -> None:
    """One spine drops what it is to send to a ToR; its links stay up, and nobody tells the controller."""
    spec = service.spec
    below = "fd00:10:2::/48"
    by = f"{below} via {ipv6_of(spec.tor_address(0, 1, 0))} dev {spec.downlink(1, 0)}"
    with ExitStack() as stack:
        flows = [service.announce(host, host + 4, 5000, 1 << 30) for host in range(4)]
        for flow in flows:
            stack.callback(flow.close)
        ports = [flow.port or 0 for flow in flows]
        crossed = [spine_of(service, host, port) for host, port in enumerate(ports)]
        host = crossed.index(0)
        connection = Connection(service, stack, host, host + 4, ports[host], 5000)
        time.sleep(4)  # the window of the probes
        assert all(flow.port for flow in flows)
        assert list(connection.ways()) == [0]
        batch([f"route replace blackhole {below}"], spec.namespace("spine0"))
        until(lambda: flows[host].port is None, "fallen back")
        until(lambda: f"sport {ports[host]} " not in rules(service, host), "led no longer")
        batch([f"route del {below}", f"route add {by}"], spec.namespace("spine0"))
        until(lambda: flows[host].port == ports[host], "back")
        assert list(connection.ways()) == [0]


def test_what_a_killed_agent_leaves_is_removed(service: Service) -> None:
    agent = service.agents[0]
    with closing(service.announce(0, 4, 5000, 1 << 30)) as flow:
        assert flow.port is not None
        assert f"sport {flow.port}" in rules(service, 0)
        agent.kill()
        agent.wait()
        assert "lookup" in rules(service, 0), "packets go on"
    service.start_agent(0)
    service.wait()
    until(lambda: rules(service, 0) == "", "what was left is removed")
    with closing(service.announce(0, 4, 5000, 1 << 30)) as flow:
        assert flow.port is not None
        service.agents[0].send_signal(signal.SIGTERM)
        service.agents[0].wait(10)
        assert rules(service, 0) == ""


def test_an_agent_that_only_observes_removes_what_a_killed_one_has_left(service: Service) -> None:
    with closing(service.announce(0, 4, 5000, 1 << 30)) as flow:
        assert flow.port is not None
        service.agents[0].kill()
        service.agents[0].wait()
    assert "lookup" in rules(service, 0)
    settings = service.folder / "host0.toml"
    settings.write_text("observe = true\n" + settings.read_text())
    service.start_agent(0)
    until(lambda: rules(service, 0) == "", "what was left is removed")


def test_flows_to_a_host_that_takes_no_segments_have_ports_alone(service: Service) -> None:
    settings = service.folder / "host4.toml"
    text = settings.read_text()

    def start(text: str, *, takes: int) -> None:
        service.agents[4].terminate()
        service.agents[4].wait(10)
        write_settings(service.spec.namespace("host4"), [("ipv6/conf/all/seg6_enabled", takes)])
        settings.write_text(text)
        service.start_agent(4)

    with ExitStack() as stack:
        flow = service.announce(0, 4, 5000, 1 << 30)
        stack.callback(flow.close)
        assert f"sport {flow.port} " in rules(service, 0)
        start(text.replace("[srv6]", ""), takes=0)
        until(lambda: rules(service, 0) == "", "led no longer")
        until(lambda: flow.port is not None, "a port for the path")
        connection = Connection(service, stack, 0, 4, flow.port or 0, 5000)
        assert len(connection.ways()) == 1, "nothing is dropped"
        start(text, takes=1)
        until(lambda: f"sport {flow.port} " in rules(service, 0), "led again")
        assert len(connection.ways()) == 1


def refused(service: Service, settings: str, *before: str) -> str:
    """Start an agent of host 0 that ends at once, and give what it says."""
    namespace = service.spec.namespace("host0")
    command = ["ip", "netns", "exec", namespace, *before, os.environ["HOCKET_AGENT"]]
    done = subprocess.run(
        [*command, "--config", settings],
        cwd=service.folder,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    return done.stderr


def test_an_agent_that_is_started_twice_keeps_its_rules(service: Service) -> None:
    with closing(service.announce(0, 4, 5000, 1 << 30)):
        before = rules(service, 0)
        assert "lookup" in before
        assert "another agent listens there" in refused(service, "host0.toml")
        assert rules(service, 0) == before


def test_an_agent_without_rights_or_segments_says_so_in_a_line(service: Service) -> None:
    text = (service.folder / "host0.toml").read_text()
    settings = service.folder / "other.toml"
    settings.write_text(text.replace("host0.sock", "other.sock"))
    if which("setpriv") is not None:
        assert refused(service, "other.toml", "setpriv", "--bounding-set=-all") == (
            "hocket-agent: [srv6]: the agent has no right to set rules and routes; "
            "give it CAP_NET_ADMIN, or leave the section out\n"
        )
    for name in ("up", "all"):
        write_settings(service.spec.namespace("host0"), [(f"ipv6/conf/{name}/seg6_enabled", 0)])
        assert refused(service, "other.toml") == (
            "hocket-agent: [srv6]: the kernel of this host takes no segments: "
            "packets of other hosts would be lost; "
            f"set net.ipv6.conf.{name}.seg6_enabled = 1, or leave the section out\n"
        )
        assert not (service.folder / "other.sock").exists()
