"""The client of the agent on a host, against one that stands in for it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

import hocket as hk

from .stand_in import agent

PORT = 23456


def answers(line: str) -> str | None:
    word, *rest = line.split()
    if word == "port":
        return f"port {PORT}" if rest[2] != "10.9.9.9" else "none no path is known"
    if word == "open":
        return f"flow 7 port {PORT}" if rest[2] != "10.9.9.9" else "flow 8 none it is small"
    return None if word in ("progress", "close") else "error what is this"


def test_ports_and_flows(tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    with agent(path, answers) as stand_in, hk.steering.Agent(path) as client:
        assert client.port("10.1.0.1", 5000) == PORT
        assert client.port("10.9.9.9", 5000, protocol="udp", src="10.0.0.1") is None
        with client.flow("10.1.0.1", 5000, size="64 MB", job=3) as flow:
            assert (flow.number, flow.port) == (7, PORT)
            flow.progress(1_000_000)
        flow.close()  # once is enough
        assert client.flow("10.9.9.9", 5000, size=1).port is None
    assert stand_in.lines == [
        "port tcp - 10.1.0.1 5000",
        "port udp 10.0.0.1 10.9.9.9 5000",
        "open tcp - 10.1.0.1 5000 64000000 3",
        "progress 7 1000000",
        "close 7",
        "open tcp - 10.9.9.9 5000 1 0",
    ]


def test_changes_are_told_to_who_watches(tmp_path: Path) -> None:
    def says(line: str) -> str | None:
        if line.startswith("open"):
            return f"rate 7 1000\nflow 7 port {PORT}\nrate 7 5000\nrate 9 1\nodd 7 8"
        if line == "progress 7 1":
            return "path 7 port 23457\npath 7 none the path is bad\nrate 7 6000"
        return None

    path = tmp_path / "agent.sock"
    with agent(path, says) as stand_in, hk.steering.Agent(path, watch=True) as client:
        assert client.changes() == []
        flow = client.flow("10.1.0.1", 5000, size=1)
        assert (flow.port, stand_in.lines[0]) == (PORT, "watch")
        assert client.changes("5 s") == [flow]
        assert flow.rate == 5000
        flow.progress(1)
        while flow.rate == 5000:
            assert client.changes("5 s") in ([flow], [])
        assert (flow.port, flow.rate) == (None, 6000)
        assert client.changes("1 ms") == []
    with pytest.raises(hk.SpecError, match=r"^wait: "):
        client.changes("soon")


def test_jobs(tmp_path: Path) -> None:
    def says(line: str) -> str | None:
        word, number = line.split()[:2]
        if word == "job" and not line.endswith("..."):
            return (
                f"job {number} registered" if number != "9" else "error job 9 is another program's"
            )
        return "job 7 none refused: not a job of this host" if line == "stop 7" else None

    path = tmp_path / "agent.sock"
    ring = [("10.0.0.1", "10.0.1.1", "64 MB"), ("10.0.1.1", "10.0.0.1", 5)]
    with agent(path, says) as stand_in, hk.steering.Agent(path) as client:
        with client.job(7, ring) as job:
            with job.iteration():
                assert job.refused is None
            assert client.changes("5 s") == [job]
            assert job.refused == "refused: not a job of this host"
        job.start()  # it is over
        many = [(f"10.0.{i >> 8}.{i & 255}", "10.1.0.1", 1000) for i in range(1000)]
        client.job(8, many).close()
        with pytest.raises(hk.InfeasibleError, match="job 9 is another program's"):
            client.job(9, [])
        client.close()
    lines = stand_in.lines
    flows = "10.0.0.1 10.0.1.1 64000000 10.0.1.1 10.0.0.1 5"
    assert lines[:4] == [f"job 7 {flows}", "start 7", "stop 7", "go 7"]
    parts = [line.split() for line in lines[4:-2]]
    assert len(parts) > 2
    assert max(map(len, lines)) <= 8192
    assert [part[-1] == "..." for part in parts] == [True] * (len(parts) - 1) + [False]
    words = [word for part in parts for word in part[2:] if word != "..."]
    assert words == [str(word) for flow in many for word in flow]
    assert lines[-2:] == ["go 8", "job 9"]


def test_answers_to_what_was_only_told_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    with (
        agent(path, lambda line: answers(line) or "ok"),
        hk.steering.Agent(path) as client,
    ):
        flow = client.flow("10.1.0.1", 5000, size=1)
        for left in range(20):
            flow.progress(left)
        flow.close()
        assert client.port("10.1.0.1", 5000) == PORT


def test_sockets_are_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "agent.sock"
    monkeypatch.setenv("HOCKET_AGENT_SOCKET", str(path))
    with agent(path, answers):
        for family in (socket.AF_INET, socket.AF_INET6):
            with socket.socket(family) as tcp, socket.socket(family) as other:
                assert hk.steering.bind(tcp, ("10.1.0.1", 5000)) == PORT
                assert tcp.getsockname()[1] == PORT
                assert hk.steering.bind(other, ("10.1.0.1", 5000)) is None  # it is in use
                assert other.getsockname()[1] == 0
                assert hk.steering.bind(other, ("10.9.9.9", 5000)) is None
        with (
            socket.socket(type=socket.SOCK_DGRAM) as udp,
            hk.steering.flow("10.1.0.1", 5000, size=1, protocol="udp") as flow,
        ):
            assert flow.bind(udp)
            assert udp.getsockname()[1] == PORT
            assert not flow.bind(udp)


def test_without_an_agent_the_kernel_chooses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOCKET_AGENT_SOCKET", str(tmp_path / "nobody.sock"))
    with socket.socket() as tcp:
        assert hk.steering.bind(tcp, ("10.1.0.1", 5000)) is None
        with hk.steering.flow("10.1.0.1", 5000, size=1) as flow:
            assert (flow.number, flow.port, flow.bind(tcp)) == (None, None, False)
            flow.progress(0)
    with hk.steering.Agent() as client, pytest.raises(hk.InfeasibleError, match="No such file"):
        client.port("10.1.0.1", 5000)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("error too many flows", "too many flows"),
        ("port", "it answers 'port'"),
        ("port 70000", "it answers 'port 70000'"),
        ("flow x port 5", "it answers 'flow x port 5'"),
        (None, "no answer in time"),
    ],
)
def test_odd_answers(tmp_path: Path, answer: str | None, says: str) -> None:
    path = tmp_path / "agent.sock"
    with agent(path, lambda _: answer), hk.steering.Agent(path, patience="50 ms") as client:
        for ask in (
            lambda: client.port("10.1.0.1", 5000),
            lambda: client.flow("10.1.0.1", 5000, size=1),
        ):
            with pytest.raises(hk.InfeasibleError) as caught:
                ask()
            assert says in str(caught.value)
            assert "\n" not in str(caught.value)


def test_refusals() -> None:
    client = hk.steering.Agent("agent.sock")
    for words, call in (
        ("^dst: 'x' is not an IP", lambda: client.port("x", 1)),
        ("^dport: 0 is too small", lambda: client.port("10.0.0.1", 0)),
        ("^protocol: there is no 'sctp'", lambda: client.port("10.0.0.1", 1, protocol="sctp")),
        ("^job: 'bert' is not a whole", lambda: client.flow("10.0.0.1", 1, size=1, job="bert")),
        ("^size: ", lambda: client.flow("10.0.0.1", 1, size="much")),
        ("^number: 0 is too small", lambda: client.job(0, [])),
        (
            r"^pattern\[1\]: 'x' is no sender",
            lambda: client.job(1, [("10.0.0.1",) * 2 + (1,), "x"]),
        ),  # type: ignore[list-item]
        (r"^pattern\[0\]: 'y' is not an IP", lambda: client.job(1, [("y", "10.0.0.1", 1)])),
        ("^watch: ", lambda: hk.steering.Agent("x", watch="yes")),  # type: ignore[arg-type]
        ("^path: ", lambda: hk.steering.Agent(3)),  # type: ignore[arg-type]
        ("^connection: 3 is not a socket", lambda: hk.steering.bind(3, ("10.0.0.1", 1))),  # type: ignore[arg-type]
    ):
        with pytest.raises(hk.SpecError, match=words):
            call()
    with socket.socket() as tcp, pytest.raises(hk.SpecError, match=r"^to: 3 is no address"):
        hk.steering.bind(tcp, 3)  # type: ignore[arg-type]
    with (
        socket.socket(socket.AF_UNIX) as local,
        pytest.raises(hk.SpecError, match="neither of TCP nor of UDP"),
    ):
        hk.steering.bind(local, ("10.0.0.1", 1))
