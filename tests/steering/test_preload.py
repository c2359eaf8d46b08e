"""hocket-preload, loaded into programs: their connections leave from the ports that an agent gives."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from threading import Thread

import pytest
from tests.built import preload

from .stand_in import agent

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def library() -> Path:
    """The library, built if it is not yet."""
    found = preload()
    if found is None:
        pytest.skip("the library is of Linux and built by cargo")
    return found


@pytest.fixture(scope="module")
def address() -> str:
    """An address of this host outside 127/8, which the library leaves alone."""
    with socket.socket(type=socket.SOCK_DGRAM) as udp:
        try:
            udp.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this host has no address but that of itself")
        return str(udp.getsockname()[0])


def free_ports(count: int) -> list[int]:
    """Ports outside the range that the kernel gives, that nobody has."""
    found = []
    for port in range(20_000 + os.getpid() % 5000, 32_000):
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            try:
                tcp.bind(("0.0.0.0", port))
                udp.bind(("0.0.0.0", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    pytest.skip("no ports are free")


class Peers:
    """A server that answers HTTP, and keeps the ports that connections and packets came from."""

    def __init__(self, address: str) -> None:
        self.seen: list[int] = []
        self._tcp = socket.create_server((address, 0))
        self.port = self._tcp.getsockname()[1]
        self._udp = socket.socket(type=socket.SOCK_DGRAM)
        self._udp.bind((address, self.port))
        self._threads = [Thread(target=self._accept), Thread(target=self._receive)]
        for thread in self._threads:
            thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, peer = self._tcp.accept()
            except OSError:
                return
            with connection:
                self.seen.append(peer[1])
                connection.settimeout(2)
                connection.recv(4096)
                connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")

    def _receive(self) -> None:
        while data := self._udp.recvfrom(4096):
            if data[0] == b"stop":
                return
            self.seen.append(data[1][1])

    def close(self) -> None:
        self._udp.sendto(b"stop", self._udp.getsockname())
        self._tcp.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._tcp.close()
        self._udp.close()


@contextmanager
def peers(address: str) -> Iterator[Peers]:
    made = Peers(address)
    try:
        yield made
    finally:
        made.close()


PRELOADED = {"HOCKET_AGENT_PATIENCE_MS": "3000"}  # however busy the machine is


def preloaded(library: Path, folder: Path) -> dict[str, str]:
    """The environment of a program that the library is loaded into."""
    return {
        **os.environ,
        "LD_PRELOAD": str(library),
        "HOCKET_AGENT_SOCKET": str(folder / "agent.sock"),
        **PRELOADED,
        "HOCKET_PRELOAD_REPORT": str(folder / "report"),
    }


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(library: Path, tmp_path: Path) -> Run:
    """Run a program with the library."""

    def started(*command: str) -> subprocess.CompletedProcess[str]:
        environment = preloaded(library, tmp_path)
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, timeout=60
        )

    return started


def counts(tmp_path: Path) -> dict[str, int]:
    """What all processes counted together."""
    found: dict[str, int] = {}
    for line in (tmp_path / "report").read_text().splitlines():
        words = line.split()[1:]
        for name, number in zip(words[::2], words[1::2], strict=True):
            found[name] = found.get(name, 0) + int(number)
    return found


PROGRAMS = {
    "tcp": "s = socket.socket(); s.connect(to); s.send(b'GET'); s.recv(99)",
    "tcp over IPv6": (
        "s = socket.socket(socket.AF_INET6); s.connect(('::ffff:' + to[0], to[1])); s.send(b'GET')"
    ),
    "without waiting": (
        "import errno, select; s = socket.socket(); s.setblocking(False); "
        "assert s.connect_ex(to) == errno.EINPROGRESS; select.select([], [s], []); s.send(b'GET')"
    ),
    "asyncio": (
        "import asyncio\n"
        "async def main():\n"
        "    _, w = await asyncio.open_connection(*to); w.write(b'GET'); await w.drain(); w.close()\n"
        "asyncio.run(main())"
    ),
    "reusing addresses": (
        "s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.connect(to); "
        "assert s.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR); s.send(b'GET')"
    ),
    "udp": "s = socket.socket(type=socket.SOCK_DGRAM); s.connect(to); s.send(b'x')",
    "udp by sendto": (
        "s = socket.socket(type=socket.SOCK_DGRAM); s.sendto(b'x', to); s.sendto(b'y', to)"
    ),
    "udp by sendmsg": ("s = socket.socket(type=socket.SOCK_DGRAM); s.sendmsg([b'x'], [], 0, to)"),
}


def python(code: str, address: str, port: int) -> list[str]:
    return [sys.executable, "-c", f"import socket; to = ({address!r}, {port})\n{code}"]


def wait_for(served: Peers, count: int) -> list[int]:
    """The ports seen, once there are so many."""
    for _ in range(200):
        if len(served.seen) >= count:
            break
        time.sleep(0.01)
    return served.seen


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_leave_from_the_agents_port(
    program: str, run: Run, address: str, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    with (
        peers(address) as served,
        agent(tmp_path / "agent.sock", lambda _: f"port {port}") as stand_in,
    ):
        run(*python(PROGRAMS[program], address, served.port))
        assert set(wait_for(served, 1)) == {port}
        protocol = "udp" if program.startswith("udp") else "tcp"
        assert stand_in.lines == [f"port {protocol} - {address} {served.port}"]
    found = counts(tmp_path)
    assert (found["asked"], found["steered"]) == (1, 1)


def test_curl(run: Run, address: str, tmp_path: Path) -> None:
    if which("curl") is None:
        pytest.skip("there is no curl")
    (port,) = free_ports(1)
    with peers(address) as served, agent(tmp_path / "agent.sock", lambda _: f"port {port}"):
        told = run("curl", "--silent", "--noproxy", "*", f"http://{address}:{served.port}/")
        assert told.stdout == "ok"
        assert served.seen == [port]


def test_iperf3(run: Run, address: str, tmp_path: Path) -> None:
    if which("iperf3") is None:
        pytest.skip("there is no iperf3")
    serve, *ports = free_ports(4)
    given = iter(ports)
    server = subprocess.Popen(
        ["iperf3", "-s", "-1", "-p", str(serve), "--forceflush"],
        stdout=subprocess.PIPE,
        text=True,
    )
    with server, agent(tmp_path / "agent.sock", lambda _: f"port {next(given)}"):
        assert server.stdout is not None
        while "listening" not in server.stdout.readline():
            pass
        told = run("iperf3", "-c", address, "-p", str(serve), "-P", "2", "-n", "1M")
        local = {int(each) for each in re.findall(r"local \S+ port (\d+)", told.stdout)}
        assert local == set(ports[1:])  # the first is of its own talk with the server
    assert counts(tmp_path)["steered"] == 3


def test_a_ring_of_plain_sockets(library: Path, address: str, tmp_path: Path) -> None:
    """Four ranks, each a process, send to the next; each connection has a port of its own."""
    ports = free_ports(8)
    listen, leave = ports[:4], ports[4:]
    given = dict(zip(listen, leave, strict=True))
    code = """
import os, socket, sys
address, rank, ports = sys.argv[1], int(sys.argv[2]), list(map(int, sys.argv[3:]))
server = socket.create_server((address, ports[rank]))
print("ready", flush=True)
sys.stdin.readline()
out = socket.socket()
out.connect((address, ports[(rank + 1) % 4]))
into, peer = server.accept()
total = rank
value = rank
for _ in range(3):
    out.sendall(value.to_bytes(4, "big"))
    value = int.from_bytes(into.recv(4, socket.MSG_WAITALL), "big")
    total += value
print(peer[1], total, flush=True)
"""
    environment = preloaded(library, tmp_path)
    with agent(tmp_path / "agent.sock", lambda line: f"port {given[int(line.split()[-1])]}"):
        ranks = [
            subprocess.Popen(
                [sys.executable, "-c", code, address, str(rank), *map(str, listen)],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(4)
        ]
        try:
            for rank in ranks:
                assert rank.stdout is not None
                assert rank.stdout.readline() == "ready\n"
            for rank in ranks:
                assert rank.stdin is not None
                rank.stdin.write("go\n")
                rank.stdin.flush()
            told = [rank.communicate(timeout=60)[0].split() for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
                with rank:  # closes its pipes, which else the next test is blamed for
                    pass
    assert told == [[str(given[port]), "6"] for port in listen]


def test_go_programs_call_the_kernel_themselves(run: Run, address: str, tmp_path: Path) -> None:
    """What docs/testbed.md says cannot be done."""
    if which("go") is None:
        pytest.skip("there is no go")
    source = """package main
import ("net"; "os")
func main() { c, err := net.Dial("tcp", os.Args[1]); if err != nil { panic(err) }; c.Write([]byte("GET")) }
"""
    (tmp_path / "main.go").write_text(source)
    program = str(tmp_path / "program")
    environment = {**os.environ, "CGO_ENABLED": "0", "GO111MODULE": "off", "GOFLAGS": ""}
    subprocess.run(
        ["go", "build", "-o", program, "main.go"], cwd=tmp_path, env=environment, check=True
    )
    (port,) = free_ports(1)
    with (
        peers(address) as served,
        agent(tmp_path / "agent.sock", lambda _: f"port {port}") as stand_in,
    ):
        run(program, f"{address}:{served.port}")
        assert port not in wait_for(served, 1)
        assert stand_in.lines == []


ALONE = {
    "bound": "s = socket.socket(); s.bind(('', 0)); own = s.getsockname()[1]; s.connect(to); "
    "assert s.getsockname()[1] == own; s.send(b'GET')",
    "loopback": "l = socket.create_server(('127.0.0.1', 0)); "
    "s = socket.socket(); s.connect(l.getsockname())",
    "local": "a, b = socket.socketpair(); l = socket.socket(socket.AF_UNIX); l.bind('\\0hocket-test'); "
    "l.listen(); s = socket.socket(socket.AF_UNIX); s.connect('\\0hocket-test')",
    "connected before": "s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 0)); s.sendto(b'x', to)",
}


@pytest.mark.parametrize("program", ALONE)
def test_what_is_left_alone(program: str, run: Run, address: str, tmp_path: Path) -> None:
    with (
        peers(address) as served,
        agent(tmp_path / "agent.sock", lambda _: "port 20000") as stand_in,
    ):
        run(*python(ALONE[program], address, served.port))
        assert stand_in.lines == []


CONNECT = "s = socket.socket(); s.connect(to); s.send(b'GET')"


def test_without_an_agent_the_kernel_chooses(run: Run, address: str, tmp_path: Path) -> None:
    with peers(address) as served:
        run(*python(CONNECT, address, served.port))
        assert len(wait_for(served, 1)) == 1
    found = counts(tmp_path)
    assert (found["asked"], found["steered"], found["absent"]) == (1, 0, 1)


@pytest.mark.parametrize(
    "answer", ["none no path is known", "error what", "port x", "port 99999", ""]
)
def test_without_a_port_the_kernel_chooses(
    answer: str, run: Run, address: str, tmp_path: Path
) -> None:
    with peers(address) as served, agent(tmp_path / "agent.sock", lambda _: answer or " "):
        run(*python(CONNECT, address, served.port))
        assert len(wait_for(served, 1)) == 1
    found = counts(tmp_path)
    assert (found["asked"], found["steered"], found["none"]) == (1, 0, 1)


def test_an_agent_that_says_nothing_is_counted(
    run: Run, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PRELOADED, "HOCKET_AGENT_PATIENCE_MS", "20")
    with peers(address) as served, agent(tmp_path / "agent.sock", lambda _: None):
        run(*python(CONNECT, address, served.port))
        assert len(wait_for(served, 1)) == 1
    found = counts(tmp_path)
    assert (found["asked"], found["steered"], found["timeouts"]) == (1, 0, 1)


def test_a_port_in_use_is_not_shared(run: Run, address: str, tmp_path: Path) -> None:
    """Another is asked for; where that is in use too, the kernel chooses."""
    taken, free = free_ports(2)
    given = iter([taken, free, taken, taken, taken])
    with (
        socket.socket() as holder,
        peers(address) as served,
        agent(tmp_path / "agent.sock", lambda _: f"port {next(given)}"),
    ):
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("0.0.0.0", taken))
        both = f"{CONNECT}\nr = socket.socket(); r.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
        run(*python(f"{both}r.connect(to); r.send(b'GET')", address, served.port))
        seen = wait_for(served, 2)
        assert seen[0] == free
        assert seen[1] not in (taken, free)
    found = counts(tmp_path)
    assert (found["asked"], found["steered"], found["refused"]) == (2, 1, 4)


def test_errors_stay_as_they_are(run: Run, address: str, tmp_path: Path) -> None:
    (closed,) = free_ports(1)
    code = """
import errno
s = socket.socket()
assert s.connect_ex(to) == errno.ECONNREFUSED
closed = socket.socket(); number = closed.fileno(); closed.close()
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
assert libc.connect(number, b"\\2\\0\\x30\\x39\\x0a\\1\\1\\1" + bytes(8), 16) == -1
assert ctypes.get_errno() == errno.EBADF
assert libc.connect(s.fileno(), None, 0) == -1
assert libc.connect(s.fileno(), b"\\2", 1) == -1
"""
    with agent(tmp_path / "agent.sock", lambda _: "none"):
        run(*python(code, address, closed))
