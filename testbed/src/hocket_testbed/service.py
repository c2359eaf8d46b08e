"""The routing controller and its agents on a testbed: the programs themselves, as a cluster runs them.

::

    controller  10.255.h.0  ----  10.255.h.1  host h      certificates of both ends, one session a host

The controller has a namespace of its own and a cable to each host beside the fabric, so that what it says
does not share links with what it steers. The fabric is learned from what its devices tell their neighbours.
"""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hocket._programs import path_of_program
from hocket.errors import InfeasibleError, SpecError
from hocket.steering.agent import Agent
from hocket.steering.flows import Flow
from hocket_testbed.cables import Cable, End, ipv6_of, lay
from hocket_testbed.clos import ClosSpec
from hocket_testbed.namespaces import inside, make
from hocket_testbed.neighbours import learn_fabric
from hocket_testbed.ports import PORTS

if TYPE_CHECKING:
    from hocket._core import Topology

__all__ = ["Announced", "Service", "serve"]

_CONTROLLER = "controller"
_PORT, _OPERATOR = 7400, 7401
_PATIENCE = 20.0
"""How long the programs may take to be ready [s]."""
_DISCARD = 9


class Announced:
    """A flow that an agent knows of, while this is open; its port may change until it is used."""

    def __init__(self, agent: Agent, flow: Flow) -> None:
        self._agent = agent
        self._flow = flow

    @property
    def port(self) -> int | None:
        """The port that leads along the flow's path now; None where the controller has none for it."""
        self._agent.changes()
        return self._flow.port

    def close(self) -> None:
        """End the flow."""
        self._agent.close()


class Service:
    """A controller and an agent on each host, which run; made by :func:`serve`."""

    def __init__(self, spec: ClosSpec, folder: Path, *, segments: bool) -> None:
        self.spec = spec
        self.folder = folder
        self.segments = segments
        self.controller: subprocess.Popen[bytes] | None = None
        self.agents: dict[int, subprocess.Popen[bytes]] = {}

    def socket(self, host: int) -> Path:
        """Return the socket at which programs of a host reach its agent (``HOCKET_AGENT_SOCKET``)."""
        return self.folder / f"host{host}.sock"

    def address(self, host: int) -> str:
        """Address of a host that the controller knows: of IPv6 where flows are steered by segments."""
        return _address(self.spec, host, segments=self.segments)

    def start_controller(self) -> None:
        """Start the controller, or start it again."""
        self.controller = self._start(
            "hocket-controller", _CONTROLLER, "serve", "--config", "controller.toml"
        )

    def start_agent(self, host: int) -> None:
        """Start the agent of a host, or start it again."""
        self.agents[host] = self._start(
            "hocket-agent", f"host{host}", "--config", f"host{host}.toml"
        )

    def announce(self, host: int, dst: int, dport: int, size: int, job: int = 0) -> Announced:
        """Announce a flow of a host to another, which ends when what this gives is closed."""
        agent = self.agent(host)
        ends = (self.address(dst), dport)
        try:
            flow = agent.flow(*ends, size=size, job=job, src=self.address(host))
        except InfeasibleError:
            agent.close()
            raise
        return Announced(agent, flow)

    def agent(self, host: int) -> Agent:
        """Return a connection to the agent of a host, which hears of changes."""
        return Agent(self.socket(host), patience=_PATIENCE, watch=True)

    def state(self) -> dict[str, Any]:
        """Return what the controller's page shows."""
        return self._operate("GET", "/state")

    def say_of_links(self, fail: Sequence[str] = (), back: Sequence[str] = ()) -> dict[str, Any]:
        """Report failed or returned links as an operator: switches, or ends as ``"tor0,spine1"``."""
        return self._operate("POST", "/links", {"fail": [*fail], "return": [*back]})

    def forget(self) -> None:
        """Wait until the controller knows of no flow any more, as those end some time after their sockets.

        Raises
        ------
        InfeasibleError
            If some are left for long.
        """
        end = time.monotonic() + _PATIENCE
        while left := self.state()["flows"]:
            if time.monotonic() > end:
                raise InfeasibleError(None, f"{left} flows have not ended for {_PATIENCE:g} s")
            time.sleep(0.05)

    def _operate(self, method: str, path: str, value: object = None) -> dict[str, Any]:
        token = (self.folder / "state" / "operator.token").read_text().strip()
        with inside(self.spec.namespace(_CONTROLLER)):
            asked = socket.create_connection(("127.0.0.1", _OPERATOR), timeout=_PATIENCE)
        connection = HTTPConnection("127.0.0.1", _OPERATOR)
        connection.sock = asked
        with closing(connection):
            headers = {"Authorization": f"Bearer {token}"}
            connection.request(method, path, json.dumps(value), headers)
            found: dict[str, Any] = json.loads(connection.getresponse().read())
        return found

    def wait(self) -> None:
        """Wait until every agent has a port from the controller to give.

        Raises
        ------
        InfeasibleError
            Saying what the program wrote last, if one has ended or says nothing for long.
        """
        end = time.monotonic() + _PATIENCE
        for host in range(self.spec.host_count):
            dst = (host + self.spec.hosts) % self.spec.host_count
            while not self._is_steered(host, dst):
                self._check()
                if time.monotonic() > end:
                    raise InfeasibleError(
                        None,
                        f"host{host} has had no port from the controller for {_PATIENCE:g} s",
                        f"it wrote: {self._last(f'host{host}')}",
                    )
                time.sleep(0.05)

    def _is_steered(self, host: int, dst: int) -> bool:
        try:
            with closing(self.announce(host, dst, _DISCARD, 1 << 30)) as flow:
                return flow.port is not None
        except InfeasibleError:
            return False

    def _check(self) -> None:
        running = {_CONTROLLER: self.controller}
        running.update({f"host{host}": agent for host, agent in self.agents.items()})
        for name, process in running.items():
            if process is not None and process.poll() is not None:
                raise InfeasibleError(None, self._last(name), origin=name)

    def _start(self, program: str, device: str, *arguments: str) -> subprocess.Popen[bytes]:
        namespace = self.spec.namespace(device)
        with (self.folder / f"{device}.log").open("ab") as log:
            return subprocess.Popen(
                ["ip", "netns", "exec", namespace, path_of_program(program), *arguments],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _last(self, device: str) -> str:
        """Return the last line that a program wrote."""
        log = self.folder / f"{device}.log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return lines[-1] if lines else "nothing"

    def stop(self) -> None:
        """End all programs."""
        for process in (*self.agents.values(), self.controller):
            if process is not None and process.poll() is None:
                process.terminate()
        for process in (*self.agents.values(), self.controller):
            if process is not None:
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


@contextmanager
def serve(spec: ClosSpec, *, probes: bool = False, segments: bool = False) -> Iterator[Service]:
    """Run a controller and the agents of all hosts on a Clos that is there, while the block runs.

    Parameters
    ----------
    spec : ClosSpec
        The Clos.
    probes : bool
        Whether agents probe the paths of their flows.
    segments : bool
        Whether agents steer flows by segments of the spines, over IPv6. It needs a Clos with IPv6 and one
        link between each ToR and each spine.

    Raises
    ------
    SpecError
        Naming ``segments``, for another Clos.
    InfeasibleError
        Where the programs are missing or do not start.
    """
    if segments and not (spec.ipv6 and spec.links == 1):
        raise SpecError(
            "segments", "they need IPv6 and single links", "build it with ipv6=True and links=1"
        )
    hosts = range(spec.host_count)
    controller = spec.namespace(_CONTROLLER)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hocket-")))
        _make_certificates(folder, [f"host{host}" for host in hosts])
        (folder / "fabric.json").write_text(
            json.dumps(_fabric(learn_fabric(spec))), encoding="utf-8"
        )
        settings = _controller_settings(spec, segments=segments)
        (folder / "controller.toml").write_text(settings, encoding="utf-8")
        for host in hosts:
            settings = _agent_settings(host, probes=probes, segments=segments)
            (folder / f"host{host}.toml").write_text(settings, encoding="utf-8")
        make([controller])
        lay(
            Cable(
                End(controller, f"host{host}", f"10.255.{host}.0"),
                End(spec.namespace(f"host{host}"), "manage", f"10.255.{host}.1"),
            )
            for host in hosts
        )
        service = Service(spec, folder, segments=segments)
        stack.callback(service.stop)
        service.start_controller()
        for host in hosts:
            service.start_agent(host)
        service.wait()
        yield service


def _make_certificates(folder: Path, hosts: Sequence[str]) -> None:
    command = [path_of_program("hocket-controller"), "certs", str(folder / "certs"), "--host"]
    done = subprocess.run([*command, *hosts], capture_output=True, text=True, check=False)
    if done.returncode:
        raise InfeasibleError(None, done.stderr.strip() or "no certificates were made")


def _fabric(topology: Topology) -> dict[str, Any]:
    """Return what ``hocket topology show --json`` prints, as far as the controller reads it."""
    names = topology.device_names
    columns = (
        topology.link_src.tolist(),
        topology.link_dst.tolist(),
        topology.link_bandwidth.tolist(),
        topology.link_latency_ps.tolist(),
    )
    return {
        "format": "hocket.topology",
        "version": 1,
        "name": topology.name,
        "npus": names[: topology.npu_count],
        "switches": names[topology.npu_count :],
        "links": [
            {
                "src": names[src],
                "dst": names[dst],
                "bandwidth_bytes_per_s": bandwidth,
                "latency_ps": latency,
            }
            for src, dst, bandwidth, latency in zip(*columns, strict=True)
        ],
    }


def _address(spec: ClosSpec, host: int, *, segments: bool) -> str:
    address = spec.address(host)
    return ipv6_of(address) if segments else address


def _controller_settings(spec: ClosSpec, *, segments: bool) -> str:
    hosts = range(spec.host_count)
    lines = [
        f'listen = "0.0.0.0:{_PORT}"',
        f'operator = "127.0.0.1:{_OPERATOR}"',
        'fabric = "fabric.json"',
        'state = "state"',
        'events = "64 MiB"',
        *_tls("controller"),
        "[hash]",
        'algorithm = "linux"',
        f"fields = {spec.tor_hash(0, ipv6=segments).fields}",
    ]
    for tor in range(spec.tors):
        lines += [f"[switches.tor{tor}]", f"seed = {spec.tor_seed(tor)}"]
    for spine in range(spec.spines):
        lines += [f"[switches.spine{spine}]", f"seed = {spec.spine_seed(spine)}"]
        if segments:
            lines += [f'segment = "{spec.spine_segment(spine)}"']
    for host in hosts:
        address = _address(spec, host, segments=segments)
        lines += [f"[hosts.host{host}]", f'nics = ["{address} host{host}"]']
    return "\n".join([*lines, ""])


def _agent_settings(host: int, *, probes: bool, segments: bool) -> str:
    lines = [
        f'controllers = ["10.255.{host}.0:{_PORT}"]',
        f'socket = "host{host}.sock"',
        f'state = "state-host{host}"',
        f"first_port = {PORTS[0]}",
        f"last_port = {PORTS[1]}",
        'patience = "2 s"',
        'port_patience = "2 s"',
        'hold = "3 s"',
        *_tls(f"host{host}"),
        *(["[probe]"] if probes else []),
        *(["[srv6]"] if segments else []),
    ]
    return "\n".join([*lines, ""])


def _tls(name: str) -> list[str]:
    files = {"ca": "ca.pem", "certificate": f"{name}.pem", "key": f"{name}.key"}
    return ["[tls]", *(f'{key} = "certs/{file}"' for key, file in files.items())]
