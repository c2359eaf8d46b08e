"""Client of the agent on this host: asks for source ports and tells it of flows.

The agent listens on a local socket, named by ``HOCKET_AGENT_SOCKET`` or ``/run/hocket/agent.sock``. A
request is a line, and so is its answer. :func:`flow` and :func:`bind` do without an agent where there
is none: the kernel then chooses the port, and the network the path.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from threading import Lock
from time import monotonic
from types import TracebackType

from hocket._checks import instance_of, one_of, path_of, whole
from hocket._options import seconds
from hocket.errors import InfeasibleError, SpecError
from hocket.steering.hashes import PROTOCOLS, check_address
from hocket.units import Duration, parse_size, shown

__all__ = ["Agent", "Flow", "bind", "flow"]

DEFAULT_SOCKET = Path("/run/hocket/agent.sock")
_VARIABLE = "HOCKET_AGENT_SOCKET"
_LONGEST = 4096
_PATIENCE = 0.1
_OPENED = 3
"""Words of ``flow 7 port 50123``, at least."""


class Agent:
    """A connection to the agent of this host, made when it is first used; a context manager.

    Parameters
    ----------
    path : str or path, optional
        The agent's socket; by default what ``HOCKET_AGENT_SOCKET`` says, or ``/run/hocket/agent.sock``.
    patience : seconds or text
        How long an answer is waited for.

    Raises
    ------
    SpecError
        Naming the argument that makes no sense.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, patience: Duration = _PATIENCE
    ) -> None:
        named = os.environ.get(_VARIABLE) or DEFAULT_SOCKET if path is None else path
        self.path = path_of("path", named)
        self.patience = seconds(patience, "patience")
        self._socket: socket.socket | None = None
        self._lock = Lock()

    def port(
        self, dst: str, dport: int, *, protocol: str = "tcp", src: str | None = None
    ) -> int | None:
        """Ask for the source port of a connection that is to come.

        Parameters
        ----------
        dst, dport
            Whereto: an address and a port.
        protocol : str
            ``"tcp"`` or ``"udp"``.
        src : str, optional
            The address that it comes from, where that is known.

        Returns
        -------
        int or None
            None where the agent has none, and any port will do.

        Raises
        ------
        SpecError
            Naming the argument that makes no sense.
        InfeasibleError
            Where nobody answers, or not what was asked.
        """
        answer = self._ask(f"port {_ends(dst, dport, protocol, src)}")
        return self._port_of(answer)

    def flow(
        self,
        dst: str,
        dport: int,
        *,
        size: int | str,
        job: int = 0,
        protocol: str = "tcp",
        src: str | None = None,
    ) -> Flow:
        """Announce a flow, which is open until it is closed.

        Parameters
        ----------
        dst, dport, protocol, src
            As for :meth:`port`.
        size : bytes or text
            What will be sent.
        job : int
            Number of the job that it belongs to; 0: none.

        Raises
        ------
        SpecError
            Naming the argument that makes no sense.
        InfeasibleError
            Where nobody answers, or not what was asked.
        """
        count = parse_size(size, field="size")
        number = whole("job", job, 0, (1 << 32) - 1)
        answer = self._ask(f"open {_ends(dst, dport, protocol, src)} {count} {number}")
        words = answer.split(" ", 2)
        if words[0] != "flow" or len(words) < _OPENED or not words[1].isdecimal():
            raise self._odd(answer)
        return Flow(self, int(words[1]), self._port_of(words[2]))

    def close(self) -> None:
        """Close the connection. A later request makes another."""
        with self._lock:
            self._drop()

    def __enter__(self) -> Agent:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        """Where the agent listens."""
        return f"<Agent at {self.path}>"

    def tell(self, line: str) -> None:
        """Send a line whose answer does not matter; a lost connection is made again by the next request."""
        with self._lock, suppress(OSError):
            self._connected().send(line.encode())

    def _ask(self, line: str) -> str:
        with self._lock:
            try:
                answer = self._asked(line)
            except OSError as error:
                self._drop()
                why = "no answer in time" if isinstance(error, TimeoutError) else error.strerror
                raise InfeasibleError(
                    None,
                    f"{why}",
                    "start hocket-agent, or go on without a port",
                    f"agent at {self.path}",
                ) from None
        if answer.startswith("error"):
            raise InfeasibleError(
                None, answer[len("error") :].strip(), origin=f"agent at {self.path}"
            )
        return answer

    def _asked(self, line: str) -> str:
        """Send a line and give its answer, passing over answers to what was only told."""
        connection = self._connected()
        connection.setblocking(False)
        with suppress(BlockingIOError):
            while connection.recv(_LONGEST):
                pass
        connection.settimeout(self.patience)
        connection.send(line.encode())
        end = monotonic() + self.patience
        while True:
            connection.settimeout(max(end - monotonic(), 1e-3))
            answer = connection.recv(_LONGEST)
            if not answer:
                raise ConnectionResetError(0, "it closed the connection")
            text = answer.decode(errors="replace").strip()
            if text.partition(" ")[0] in ("port", "none", "flow", "error"):
                return text

    def _connected(self) -> socket.socket:
        if self._socket is None:
            made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            made.settimeout(self.patience)
            try:
                made.connect(str(self.path))
            except OSError:
                made.close()
                raise
            self._socket = made
        return self._socket

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _port_of(self, answer: str) -> int | None:
        word, _, rest = answer.partition(" ")
        if word == "none":
            return None
        if word != "port" or not rest.isdecimal() or not 0 < int(rest) < 1 << 16:
            raise self._odd(answer)
        return int(rest)

    def _odd(self, answer: str) -> InfeasibleError:
        return InfeasibleError(
            None,
            f"it answers {shown(answer)}",
            "use an agent of this version",
            f"agent at {self.path}",
        )


class Flow:
    """A flow that the agent knows of; made by :meth:`Agent.flow`. It is closed when its block ends."""

    def __init__(self, agent: Agent | None, number: int | None, port: int | None) -> None:
        self._agent = agent
        self.number = number
        """Its number with the agent; None without an agent."""
        self.port = port
        """The source port that leads along its path; None: any port."""
        self._closes = False

    def bind(self, connection: socket.socket) -> bool:
        """Bind a socket to the flow's port before it connects, and say whether that was done.

        Parameters
        ----------
        connection : socket
            Of IPv4 or IPv6, not bound yet.
        """
        return self.port is not None and _bound(connection, self.port)

    def progress(self, left: int) -> None:
        """Tell how many bytes are still to be sent."""
        count = whole("left", left, 0, 1 << 63)
        if self._agent is not None:
            self._agent.tell(f"progress {self.number} {count}")

    def close(self) -> None:
        """Tell that it is over."""
        if self._agent is not None:
            self._agent.tell(f"close {self.number}")
            if self._closes:
                self._agent.close()
            self._agent = None

    def __enter__(self) -> Flow:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        """Say its number and port."""
        return f"<Flow {self.number}, port {self.port}>"


def flow(
    dst: str,
    dport: int,
    *,
    size: int | str,
    job: int = 0,
    protocol: str = "tcp",
    src: str | None = None,
) -> Flow:
    """Announce a flow to the agent of this host, as :meth:`Agent.flow`; without one it has no port.

    Raises
    ------
    SpecError
        Naming the argument that makes no sense.
    """
    agent = Agent()
    try:
        made = agent.flow(dst, dport, size=size, job=job, protocol=protocol, src=src)
    except InfeasibleError:
        return Flow(None, None, None)
    made._closes = True
    return made


def bind(
    connection: socket.socket, to: tuple[str, int], *, agent: Agent | None = None
) -> int | None:
    """Bind a socket to the port that leads along the path to an address, before it connects.

    Parameters
    ----------
    connection : socket
        Of TCP or UDP, not bound yet.
    to : (str, int)
        The address and the port that it will connect to.
    agent : Agent, optional
        Who is asked; by default the agent of this host.

    Returns
    -------
    int or None
        None where there is no agent, it has no port, or the port is in use: the kernel then chooses.

    Raises
    ------
    SpecError
        For what is no socket of TCP or UDP, and no address.
    """
    right = "make one by socket.socket(...)"
    instance_of(socket.socket, "connection", connection, right)
    kinds = {socket.SOCK_STREAM: "tcp", socket.SOCK_DGRAM: "udp"}
    protocol = kinds.get(connection.type)
    if protocol is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        raise SpecError("connection", "it is neither of TCP nor of UDP", right)
    try:
        dst, dport = to[0], to[1]
    except (TypeError, IndexError):
        raise SpecError("to", f"{shown(to)} is no address", 'give ("10.1.0.1", 5000)') from None
    asked = Agent() if agent is None else instance_of(Agent, "agent", agent, "make an Agent()")
    try:
        port = asked.port(dst, dport, protocol=protocol)
    except InfeasibleError:
        return None
    finally:
        if agent is None:
            asked.close()
    return port if port is not None and _bound(connection, port) else None


def _bound(connection: socket.socket, port: int) -> bool:
    """Bind to a port, without sharing it: one in use is refused here, and not when it connects."""
    try:
        connection.bind(("::" if connection.family == socket.AF_INET6 else "0.0.0.0", port))
    except OSError:
        return False
    return True


def _ends(dst: object, dport: object, protocol: object, src: object) -> str:
    one_of("protocol", protocol, tuple(PROTOCOLS))
    source = "-" if src is None else check_address("src", src)
    port = whole("dport", dport, 1, 65535)
    return f"{protocol} {source} {check_address('dst', dst)} {port}"
