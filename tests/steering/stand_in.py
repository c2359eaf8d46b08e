"""A small agent that stands in for hocket-agent: it answers each line as a test says, and keeps it.

Several answers to one line are said one after the other.
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread


class StandIn:
    """Listens until it is closed; ``lines`` has what was asked."""

    def __init__(self, path: Path, answer: Callable[[str], str | None]) -> None:
        self.lines: list[str] = []
        self._answer = answer
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(path))
        self._listener.listen(64)
        self._stop, self._stopped = socket.socketpair()
        self._thread = Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._stop.close()
        self._thread.join()
        self._listener.close()
        self._stopped.close()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._listener, selectors.EVENT_READ)
            waiting.register(self._stopped, selectors.EVENT_READ)
            connections: list[socket.socket] = []
            while True:
                for key, _ in waiting.select():
                    ready = key.fileobj
                    if ready is self._stopped:
                        for each in connections:
                            each.close()
                        return
                    if ready is self._listener:
                        connections.append(self._listener.accept()[0])
                        waiting.register(connections[-1], selectors.EVENT_READ)
                        continue
                    assert isinstance(ready, socket.socket)
                    try:
                        line = ready.recv(1 << 16).decode()
                    except OSError:
                        line = ""
                    if not line:
                        waiting.unregister(ready)
                        connections.remove(ready)
                        ready.close()
                        continue
                    self.lines.append(line)
                    for said in (self._answer(line) or "").splitlines():
                        with suppress(OSError):  # whoever asked has gone
                            ready.send(said.encode())


@contextmanager
def agent(path: Path, answer: Callable[[str], str | None]) -> Iterator[StandIn]:
    made = StandIn(path, answer)
    try:
        yield made
    finally:
        made.close()
