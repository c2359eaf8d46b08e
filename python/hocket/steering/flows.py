"""Flows and jobs that the agent of this host knows of."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Protocol

from typing_extensions import Self

from hocket._checks import whole


class Teller(Protocol):
    """A connection to the agent."""

    def tell(self, line: str) -> None:
        """Send a line whose answer does not matter."""

    def close(self) -> None:
        """Close the connection."""


class Closing:
    """A thing that is closed when its block ends."""

    def close(self) -> None:
        """Close it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Flow(Closing):
    """A flow that the agent knows of; made by :meth:`Agent.flow`. It is closed when its block ends."""

    def __init__(
        self, agent: Teller | None, number: int | None, port: int | None, *, closes: bool = False
    ) -> None:
        self._agent = agent
        self.number = number
        """Its number with the agent; None without an agent."""
        self.port = port
        """The source port that leads along its path; None: any port."""
        self.rate: int | None = None
        """What it may send, as the controller says [bytes/s]; None: it has said nothing."""
        self._closes = closes

    def bind(self, connection: socket.socket) -> bool:
        """Bind a socket to the flow's port before it connects, and say whether that was done.

        Parameters
        ----------
        connection : socket
            Of IPv4 or IPv6, not bound yet.
        """
        return self.port is not None and bound(connection, self.port)

    def progress(self, left: int) -> None:
        """Return how many bytes are still to be sent."""
        count = whole("left", left, 0, 1 << 63)
        if self._agent is not None:
            self._agent.tell(f"progress {self.number} {count}")

    def close(self) -> None:
        """Report the end."""
        if self._agent is not None:
            self._agent.tell(f"close {self.number}")
            if self._closes:
                self._agent.close()
            self._agent = None

    def __repr__(self) -> str:
        """Return its number and port."""
        return f"<Flow {self.number}, port {self.port}>"


class Job(Closing):
    """A job that the agent knows of; made by :meth:`Agent.job`. It is forgotten when its block ends."""

    def __init__(self, agent: Teller, number: int) -> None:
        self._agent: Teller | None = agent
        self.number = number
        """Its number."""
        self.refused: str | None = None
        """Why the controller does not take it, once :meth:`Agent.changes` was told so; else None."""

    def start(self) -> None:
        """Report that an iteration's communication begins."""
        self._tell("start")

    def stop(self) -> None:
        """Report that an iteration's communication is over."""
        self._tell("stop")

    @contextmanager
    def iteration(self) -> Iterator[None]:
        """Report that an iteration's communication begins before the block and is over after it."""
        self.start()
        try:
            yield
        finally:
            self.stop()

    def close(self) -> None:
        """Report that the job is over."""
        self._tell("go")
        self._agent = None

    def _tell(self, what: str) -> None:
        if self._agent is not None:
            self._agent.tell(f"{what} {self.number}")

    def __repr__(self) -> str:
        """Return its number."""
        return f"<Job {self.number}>"


def bound(connection: socket.socket, port: int) -> bool:
    """Bind to a port, without sharing it: one in use is refused here, and not when it connects."""
    try:
        connection.bind(("::" if connection.family == socket.AF_INET6 else "0.0.0.0", port))
    except OSError:
        return False
    return True
