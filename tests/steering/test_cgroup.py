"""Programs in a control group: their connections leave from the agent's ports, whoever wrote them."""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from threading import Thread

import pytest

import hocket as hk
from hocket.cli import run
from hocket.steering.agent import Agent
from hocket.steering.cgroup import Target, launch, parse_target

from .stand_in import StandIn

NUMBERS = count(random.randrange(12_000, 31_000))
"""Ports, none of them twice: the kernel remembers connections for a while."""


class Given(Agent):
    """An agent's client; ``ports`` are those that it was given."""

    ports: list[int]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Given]:
    ports: list[int] = []

    def answer(_: str) -> str:
        ports.append(next(NUMBERS))
        return f"port {ports[-1]}"

    stand_in = StandIn(tmp_path / "agent.sock", answer)
    client = Given(tmp_path / "agent.sock", patience=5)
    client.ports = ports
    yield client
    stand_in.close()


@pytest.fixture
def server() -> Iterator[tuple[int, list[int]]]:
    """A server's port, and the ports that connections came from."""
    seen: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                connection, peer = listener.accept()
                connection.close()
                if peer[1] == last:
                    return
                seen.append(peer[1])

        with socket.socket() as end:
            end.bind(("127.0.0.1", 0))
            last = end.getsockname()[1]
            thread = Thread(target=accept)
            thread.start()
            port = listener.getsockname()[1]
            yield port, seen
            end.connect(("127.0.0.1", port))
            thread.join()


def tried(agent: Given, command: list[str], *to: Target) -> int:
    try:
        return launch(command, to, agent=agent)
    except hk.InfeasibleError as error:
        pytest.skip(f"no control group can be had here: {error.why}")


def until(seen: list[int], count: int) -> None:
    """Wait until a server has accepted so many connections."""
    end = time.monotonic() + 30
    while len(seen) < count:
        assert time.monotonic() < end, f"{len(seen)} of {count} connections arrived"
        time.sleep(0.01)
    assert len(seen) == count


def connecting(port: int, times: int) -> list[str]:
    connect = f"socket.create_connection(('127.0.0.1', {port})).close()"
    return [sys.executable, "-c", f"import socket\nfor _ in range({times}): {connect}"]


def test_connections_leave_from_the_ports(agent: Given, server: tuple[int, list[int]]) -> None:
    port, seen = server
    assert tried(agent, connecting(port, 4), Target("127.0.0.1", port, 3)) == 0
    until(seen, 4)
    assert seen[:3] == agent.ports
    assert seen[3] not in agent.ports, "no port is left: the kernel chooses"


def test_other_connections_are_left_alone(agent: Given, server: tuple[int, list[int]]) -> None:
    port, seen = server
    assert tried(agent, connecting(port, 1), Target("127.0.0.2", port)) == 0
    assert tried(agent, connecting(port, 1), Target("127.0.0.1", port % 65535 + 1)) == 0
    until(seen, 2)
    assert not set(seen) & set(agent.ports)


@pytest.mark.slow
def test_a_program_that_calls_the_kernel_itself(
    agent: Given, server: tuple[int, list[int]], tmp_path: Path
) -> None:
    """No library would see its calls."""
    if shutil.which("go") is None:
        pytest.skip("Go is not installed")
    port, seen = server
    dial = 'if c, e := net.Dial("tcp", "127.0.0.1:%d"); e != nil { panic(e) } else { c.Close() }'
    code = f'package main; import "net"; func main() {{ {dial % port} }}'
    (tmp_path / "main.go").write_text(code)
    build = ["go", "build", "-o", "main", "main.go"]
    subprocess.run(build, cwd=tmp_path, check=True, timeout=300)
    assert tried(agent, [str(tmp_path / "main")], Target("127.0.0.1", port)) == 0
    until(seen, 1)
    assert seen == agent.ports


def test_the_programs_exit_code_is_given(agent: Given) -> None:
    assert tried(agent, ["/bin/sh", "-c", "exit 7"]) == 7
    assert tried(agent, ["/bin/sh", "-c", "kill -9 $$"]) == 128 + 9


def test_a_program_that_is_not_there(agent: Given) -> None:
    tried(agent, ["/bin/true"])
    with pytest.raises(hk.InfeasibleError, match="/nowhere cannot be run: No such file"):
        launch(["/nowhere"], [], agent=agent)


NONE = [
    "",
    "10.1.0.1",
    "10.1.0.1:",
    ":5201",
    "10.1.0.1:0",
    "10.1.0.1:99999",
    "10.1.0.1:5x",
    "host:5",
]


@pytest.mark.parametrize("text", [*NONE, "10.1.0.1:5x0", "10.1.0.1:5x16", "::1:5"])
def test_targets_that_are_none(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(hk.SpecError, match=r"^to: "):
        parse_target(text)
    assert run(["agent", "launch", "--to", text, "--", "/bin/true"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("hocket: --to")


def test_targets() -> None:
    assert parse_target("10.1.0.1:5201") == Target("10.1.0.1", 5201, 1)
    assert parse_target("10.1.0.1:5201x15") == Target("10.1.0.1", 5201, 15)


def test_without_an_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = [
        "agent",
        "launch",
        "--agent",
        str(tmp_path / "none"),
        "--to",
        "10.1.0.1:5201",
        "--",
        "/bin/true",
    ]
    assert run(argv) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "none" in line
    assert run(["agent", "launch", "--", "/bin/true"]) == 2
    assert "--to: it is missing" in capsys.readouterr().err
