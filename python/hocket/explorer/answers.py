"""Answers of the live page, each made by a process that has limits: none may hold up the server, or end it.

``python -m hocket.explorer.answers PARENT`` is that process: it reads what is asked for, a line each, and
writes a page behind its status and length. It waits for the next question until its parent ends.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from http import HTTPStatus

from hocket._children import end, end_with, limit_to
from hocket.explorer.request import PageRequest, answer, refusal
from hocket.units import format_estimate

MOST_AT_ONCE = 2
"""Processes that plan at the same time."""
MEMORY = 4 << 30
"""Bytes that each may take."""
_HEAD = struct.Struct("<HQ")
_LONGEST = 1 << 28
"""Bytes of a page."""
_OFTEN = 0.2
"""How often somebody who waits for a turn is looked after [s]."""


class GoneError(Exception):
    """Whoever asked has gone."""


class Answers:
    """Processes that plan, so many at once; one whose time is over, or whose asker has gone, is ended."""

    def __init__(self) -> None:
        self._turns = threading.BoundedSemaphore(MOST_AT_ONCE)
        self._lock = threading.Lock()
        self._all: set[subprocess.Popen[bytes]] = set()
        self._idle: list[subprocess.Popen[bytes]] = []
        self._is_closed = False
        # A process ends with the thread that started it, so that one starts them all.
        self._starter = ThreadPoolExecutor(1)

    def page(
        self, asked: PageRequest, seconds: float, asker: socket.socket
    ) -> tuple[HTTPStatus, str]:
        """Return the page that answers a question, or says in a sentence why there is none.

        Raises
        ------
        GoneError
            If whoever asked has gone; nobody works on it any more.
        """
        deadline = time.monotonic() + seconds
        busy = HTTPStatus.SERVICE_UNAVAILABLE
        while not self._turns.acquire(timeout=_OFTEN):
            if _has_gone(asker):
                raise GoneError
            if time.monotonic() > deadline:
                said = f"others were planned for {seconds:g} s; ask again when they are done"
                return busy, refusal(asked, said)
        try:
            process = self._one()
            try:
                status, page = _ask(process, asked, (seconds, deadline), asker)
            except BaseException:
                self._end(process)
                raise
            with self._lock:
                self._idle.append(process)
            return status, page
        except TimeoutError:
            right = "ask for less, or start with a longer --time-limit"
            return busy, refusal(asked, f"it takes longer than {seconds:g} s; {right}")
        except EOFError:
            most = format_estimate(MEMORY)
            said = f"it takes more than {most} of memory, or cannot be planned; make it smaller"
            return HTTPStatus.BAD_REQUEST, refusal(asked, said)
        finally:
            self._turns.release()

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._is_closed = True
            left, idle = list(self._all), list(self._idle)
        for each in left:  # whoever reads of one hears that it has ended
            end(each)
        for each in idle:
            self._end(each)
        self._starter.shutdown()

    def _one(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_closed:
                raise GoneError
            while self._idle:
                if (process := self._idle.pop()).poll() is None:
                    return process
                self._all.discard(process)
                _closed(process)
        process = self._starter.submit(_start).result()
        with self._lock:
            self._all.add(process)
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._all.discard(process)
            if process in self._idle:
                self._idle.remove(process)
        end(process)
        process.wait()
        _closed(process)


def _closed(process: subprocess.Popen[bytes]) -> None:
    for file in (process.stdin, process.stdout):
        assert file is not None
        with suppress(OSError):
            file.close()


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "hocket.explorer.answers", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,
    )


def _ask(
    process: subprocess.Popen[bytes],
    asked: PageRequest,
    limit: tuple[float, float],
    asker: socket.socket,
) -> tuple[HTTPStatus, str]:
    """Send a request to a process, and wait for its answer until the limit of seconds is over.

    Raises
    ------
    EOFError
        If it ends.
    TimeoutError
        If the time is over.
    GoneError
        If whoever asked has gone.
    """
    seconds, deadline = limit
    assert process.stdin is not None
    assert process.stdout is not None
    left = max(deadline - time.monotonic(), 0.001)
    with suppress(BrokenPipeError):  # it has ended, as reading says
        process.stdin.write(json.dumps([asdict(asked), min(left, seconds)]).encode() + b"\n")
    data, whole = bytearray(), _HEAD.size
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(asker, selectors.EVENT_READ)
        while len(data) < whole:
            if (left := deadline - time.monotonic()) <= 0:
                raise TimeoutError
            for key, _ in selector.select(left):
                if key.fileobj is asker:
                    if _has_gone(asker):
                        raise GoneError
                    selector.unregister(asker)  # it says more than it was asked
                    continue
                more = os.read(key.fd, 1 << 20)
                if not more:
                    raise EOFError
                data += more
                if whole == _HEAD.size and len(data) >= whole:
                    whole += min(_HEAD.unpack_from(data)[1], _LONGEST)
    return HTTPStatus(_HEAD.unpack_from(data)[0]), data[_HEAD.size : whole].decode()


def _has_gone(asker: socket.socket) -> bool:
    """Return whether whoever is at the other end has closed the connection."""
    with selectors.DefaultSelector() as selector:
        selector.register(asker, selectors.EVENT_READ)
        if not selector.select(0):
            return False
    try:
        return not asker.recv(1, socket.MSG_PEEK)
    except OSError:
        return True


def main(answers: Callable[[PageRequest, float], tuple[HTTPStatus, str]] = answer) -> None:
    """Answer what is asked until standard input ends."""
    end_with(int(sys.argv[1]))
    source = os.fdopen(os.dup(0), "rb")
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints is no answer
    from hocket._core.interrupt import unattended

    unattended()
    limit_to(MEMORY)
    for line in source:
        fields, seconds = json.loads(line)
        status, page = answers(PageRequest(**fields), seconds)
        raw = page.encode()
        target.write(_HEAD.pack(status, len(raw)) + raw)
        target.flush()


if __name__ == "__main__":
    main()
