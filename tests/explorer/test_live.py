"""The live page has limits: of size, of time and of who may ask; nobody holds up others."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest

from hocket.errors import SpecError
from hocket.explorer import answers, request, serve
from hocket.explorer.answers import Answers, GoneError
from hocket.explorer.request import PageRequest, answer
from hocket.explorer.serve import Server

WORKER = """
import json, os, struct, sys, time
for line in sys.stdin.buffer:
    fields, seconds = json.loads(line)
    what = fields["algorithm"]
    if what == "dies":
        os.abort()
    raw = what.encode()
    head = struct.pack("<HQ", 200, len(raw) + (what == "half"))
    if what != "forever":
        os.write(1, head + raw)
    if what in ("forever", "half"):
        time.sleep(1e6)
"""
"""What stands for a process that plans: it does what the algorithm says."""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes that are started."""
    found: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        made = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        found.append(made)
        return made

    monkeypatch.setattr(answers, "_start", start)
    return found


@pytest.fixture
def pages(started: list[subprocess.Popen[bytes]]) -> Iterator[Answers]:
    """Answers by such processes, all of which have ended in the end."""
    made = Answers()
    yield made
    made.close()
    assert all(each.wait() is not None for each in started)


class Asker:
    """Asks on a thread of its own, as somebody at a connection who may go."""

    def __init__(self, pages: Answers, what: str, seconds: float = 600) -> None:
        self.near, self.far = socket.socketpair()
        self.found: tuple[HTTPStatus, str] | BaseException | None = None

        def work() -> None:
            try:
                self.found = pages.page(PageRequest(algorithm=what), seconds, self.near)
            except GoneError as error:
                self.found = error

        self.thread = threading.Thread(target=work)
        self.thread.start()

    def heard(self) -> tuple[HTTPStatus, str] | BaseException | None:
        self.thread.join()
        self.near.close()
        self.far.close()
        return self.found


@pytest.mark.parametrize("what", ["forever", "half"])
def test_a_request_has_a_limit_of_time(
    pages: Answers, started: list[subprocess.Popen[bytes]], what: str
) -> None:
    status, page = Asker(pages, what, 0.3).heard()
    assert status == HTTPStatus.SERVICE_UNAVAILABLE
    assert "it takes longer than 0.3 s; ask for less" in page
    assert started[0].poll() == -signal.SIGKILL
    assert Asker(pages, "ring").heard() == (HTTPStatus.OK, "ring")
    assert Asker(pages, "ring").heard() == (HTTPStatus.OK, "ring")
    assert len(started) == 2


@pytest.mark.parametrize("what", ["forever", "half"])
def test_nobody_works_for_who_has_gone(
    pages: Answers, started: list[subprocess.Popen[bytes]], what: str
) -> None:
    asker = Asker(pages, what)
    asker.far.sendall(b"more than was asked")
    other = Asker(pages, what)
    other.far.close()
    assert isinstance(other.heard(), GoneError)
    ends = [each.poll() for each in started]
    assert sorted(end is not None for end in ends) in ([True], [False, True])
    pages.close()
    assert asker.heard() is not None


@pytest.mark.parametrize("name", ["own", "own.txt", "own.xml", "own.conf", "own.yml@25GB", "own@1"])
def test_no_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Where the server runs there may be files of any name."""
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("builder: {family: ring, npus: 3, bandwidth: 1 GB/s, latency: 1 us}\n")
    with pytest.raises(SpecError, match="neither a shipped machine nor a builder"):
        PageRequest(topology=name).network()
    status, page = answer(PageRequest(topology=name), 10)
    assert status == HTTPStatus.BAD_REQUEST
    assert "neither a shipped machine nor a builder" in page


def test_others_are_served_meanwhile_and_wait_in_turn(
    pages: Answers, started: list[subprocess.Popen[bytes]]
) -> None:
    first = Asker(pages, "forever")
    assert Asker(pages, "ring").heard() == (HTTPStatus.OK, "ring")
    second = Asker(pages, "forever")
    while len(started) < 2:
        time.sleep(0.01)
    status, page = Asker(pages, "ring", 0.3).heard()
    assert status == HTTPStatus.SERVICE_UNAVAILABLE
    assert "others were planned for 0.3 s" in page
    waits = Asker(pages, "ring")
    waits.far.close()
    assert isinstance(waits.heard(), GoneError)
    third = Asker(pages, "ring")
    first.far.close()
    assert isinstance(first.heard(), GoneError)
    assert third.heard() == (HTTPStatus.OK, "ring")
    second.far.close()
    assert isinstance(second.heard(), GoneError)


def test_a_process_that_dies_is_replaced(
    pages: Answers, started: list[subprocess.Popen[bytes]]
) -> None:
    status, page = Asker(pages, "dies").heard()
    assert status == HTTPStatus.BAD_REQUEST
    assert "it takes more than 4.295 GB of memory" in page
    assert Asker(pages, "ring").heard() == (HTTPStatus.OK, "ring")
    started[-1].kill()
    started[-1].wait()
    assert Asker(pages, "tree").heard() == (HTTPStatus.OK, "tree")


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "says"),
    [
        (
            "ring:100000000@1GB/s,1us",
            "all-to-all",
            "direct",
            "has 100,000,000 NPUs; the most that a",
        ),
        ("torus:999x999x999@1GB/s,1us", "all-reduce", "ring", "has 997,002,999 NPUs; the most"),
        ("clos:2x99999x99@1GB/s,1us", "all-reduce", "ring", "has 9,899,901 NPUs; the most"),
        ("fat_tree:1000@1GB/s,1us", "all-reduce", "ring", "has 250,000,000 NPUs; the most"),
        ("Ring_FC:65536x65536@1GB/s,1us", "all-reduce", "auto", "has 4,294,967,296 NPUs; the most"),
        (
            "torus:64x64@1GB/s,1us",
            "all-to-all",
            "direct",
            "a plan of 16773120 transfers needs about 2 GiB",
        ),
        ("torus:64x64@1GB/s,1us", "all-to-all", "pairwise", "a plan of 16773120 transfers"),
    ],
)
def test_what_is_asked_for_has_a_limit_of_size(
    topology: str, collective: str, algorithm: str, says: str
) -> None:
    wanted = PageRequest(topology, collective, "1GB", algorithm)
    status, page = answer(wanted, 10.0)
    assert status == HTTPStatus.BAD_REQUEST
    assert says in page


def test_searches_have_half_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    plan = request._plan

    def noted(*arguments: object) -> object:
        given.append(arguments[-1])  # type: ignore[arg-type]
        return plan(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(request, "_plan", noted)
    assert (
        answer(PageRequest("ring:4@1GB/s,1us", size="1MB", algorithm="ring,direct"), 12.0)[0] == 200
    )
    assert given == [3.0, 3.0]


@pytest.fixture
def server(pages: Answers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(serve, "Answers", lambda: pages)
    with Server("127.0.0.1", 0, PageRequest(algorithm="ring"), 600.0) as served:
        thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield served
        served.shutdown()
        thread.join()


def got(server: Server, headers: dict[str, str], path: str = "/") -> tuple[int, str]:
    connection = http.client.HTTPConnection(*server.server_address[:2])  # type: ignore[arg-type]
    connection.putrequest("GET", path, skip_host=True)
    for name, value in headers.items():
        connection.putheader(name.rstrip("2"), value)
    connection.endheaders()
    reply = connection.getresponse()
    found = reply.status, reply.read().decode()
    connection.close()
    return found


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost:8422"}, 200),
        ({"Host": "127.0.0.1"}, 200),
        ({"Host": "[::1]:8422"}, 200),
        ({"Host": "localhost", "Sec-Fetch-Site": "none"}, 200),
        ({"Host": "localhost", "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Host": "localhost:1", "Origin": "http://localhost:1"}, 200),
        ({"Host": "localhost", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "localhost", "Sec-Fetch-Site": "same-site"}, 403),
        ({"Host": "localhost", "Sec-Fetch-Site": "anything"}, 403),
        ({"Host": "localhost:1", "Origin": "http://localhost:2"}, 403),
        ({"Host": "localhost", "Origin": "null"}, 403),
        ({"Host": "localhost", "Origin": "https://evil.example"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Host": "localhost.evil.example:8422"}, 403),
        ({"Host": "192.0.2.7"}, 403),
        ({"Host": ""}, 403),
        ({}, 403),
        ({"Host": "localhost", "Host2": "evil.example"}, 403),
        ({"Host": "localhost", "Origin": "http://["}, 400),
    ],
)
def test_other_sites_are_refused(server: Server, headers: dict[str, str], status: int) -> None:
    found, text = got(server, headers)
    assert found == status
    assert text == "ring" if status == 200 else len(text.splitlines()) == 1


@pytest.mark.parametrize(
    ("bound", "host", "is_meant"),
    [
        ("0.0.0.0", "192.0.2.7:8422", True),
        ("::", "[2001:db8::7]:8422", True),
        ("::", "2001:db8::7", True),
        ("0.0.0.0", "evil.example", False),
        ("192.0.2.7", "192.0.2.7", True),
        ("192.0.2.7", "192.0.2.8", False),
        ("127.0.0.1", "192.0.2.7", False),
    ],
)
def test_a_server_at_all_addresses_is_meant_by_each(bound: str, host: str, is_meant: bool) -> None:
    made = Server.__new__(Server)
    made.server_address = (bound, 8422)
    assert made.is_meant(host) == is_meant


def test_who_hangs_up_ends_the_work_and_the_rest_is_served(
    server: Server, started: list[subprocess.Popen[bytes]]
) -> None:
    with socket.create_connection(server.server_address[:2]) as connection:
        connection.sendall(b"GET /?algorithm=forever HTTP/1.0\r\nHost: localhost\r\n\r\n")
        while not started:
            time.sleep(0.01)
        assert got(server, {"Host": "localhost"}) == (200, "ring")
        assert got(server, {"Host": "localhost"}, "/?algorithms=x")[0] == 400
        assert started[0].poll() is None
    assert started[0].wait() == -signal.SIGKILL


def test_half_a_request_is_not_waited_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "_PATIENCE", 0.2)
    with socket.create_connection(server.server_address[:2]) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\nHost: local")
        assert connection.recv(100) == b""


def test_no_more_connections_than_there_is_room_for(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server._room = threading.BoundedSemaphore(1)
    with socket.create_connection(server.server_address[:2]) as first:
        first.sendall(b"GET /?algorithm=forever HTTP/1.0\r\nHost: localhost\r\n")
        with socket.create_connection(server.server_address[:2]) as second:
            assert second.recv(100) == b""


@pytest.mark.skipif(sys.platform != "linux", reason="a parent's end kills on Linux")
def test_what_plans_ends_with_the_server() -> None:
    process = answers._start()
    assert process.stdin is not None
    assert process.stdout is not None
    other = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os, time; from hocket.explorer import answers; p = answers._start();"
            "print(p.pid, flush=True); time.sleep(1e6)",
        ],
        stdout=subprocess.PIPE,
    )
    assert other.stdout is not None
    with process, other:
        pid = int(other.stdout.readline())
        other.kill()
        other.wait()
        for _ in range(6000):
            try:
                if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                    break
            except OSError:
                break
            time.sleep(0.01)
        else:
            raise AssertionError("it goes on")
        os.killpg(process.pid, signal.SIGKILL)
