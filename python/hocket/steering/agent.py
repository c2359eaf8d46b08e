"""Client of the agent on this host: asks for source ports and tells it of flows.

The agent listens on a local socket, named by ``HOCKET_AGENT_SOCKET`` or ``/run/hocket/agent.sock``. A
request is a line, and so is its answer. :func:`flow` and :func:`bind` do without an agent where there
is none: the kernel then chooses the port, and the network the path.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from time import monotonic
from weakref import WeakValueDictionary

from hocket._checks import instance_of, is_decimal, one_of, path_of, truth, whole
from hocket._options import seconds
from hocket.errors import InfeasibleError, SpecError
from hocket.steering.flows import Closing, Flow, Job, bound
from hocket.steering.hashes import PROTOCOLS, check_address
from hocket.units import Duration, parse_size, shown

DEFAULT_SOCKET = Path("/run/hocket/agent.sock")
_VARIABLE = "HOCKET_AGENT_SOCKET"
_LONGEST = 4096
_PATIENCE = 0.1
_LINE = 8000
"""Most bytes of a line that has a pattern."""
_JOBS = 1 << 31
_ANSWERS = ("port", "none", "flow", "job", "error")
_OPENED = 3
"""Words of ``flow 7 port 50123``, at least."""
_ENDS = 3
"""Sender, receiver and size of a pattern's flow."""


class Agent(Closing):
    """A connection to the agent of this host, made when it is first used; a context manager.

    Parameters
    ----------
    path : str or path, optional
        The agent's socket; by default what ``HOCKET_AGENT_SOCKET`` says, or ``/run/hocket/agent.sock``.
    patience : seconds or text
        How long an answer is waited for.
    watch : bool
        Whether :meth:`changes` is to tell of other ports and rates. The controller may then move the flows
        of this connection; those of others keep the port that they are given.

    Raises
    ------
    SpecError
        Naming the argument that makes no sense.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        patience: Duration = _PATIENCE,
        watch: bool = False,
    ) -> None:
        named = os.environ.get(_VARIABLE) or DEFAULT_SOCKET if path is None else path
        self.path = path_of("path", named)
        self.patience = seconds(patience, "patience")
        self.watch = truth("watch", watch)
        self._flows: WeakValueDictionary[int, Flow] = WeakValueDictionary()
        self._jobs: WeakValueDictionary[int, Job] = WeakValueDictionary()
        self._changed: list[Flow | Job] = []
        self._socket: socket.socket | None = None
        self._lock = Lock()

    def port(
        self, dst: str, dport: int, *, protocol: str = "tcp", src: str | None = None
    ) -> int | None:
        """Return the source port for a connection that is to come.

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
        if words[0] != "flow" or len(words) < _OPENED or not is_decimal(words[1], 19):
            raise self._odd(answer)
        made = Flow(self, int(words[1]), self._port_of(words[2]))
        self._flows[int(words[1])] = made
        return made

    def job(self, number: int, pattern: Iterable[tuple[str, str, int | str]]) -> Job:
        """Register the flows that each iteration of a job sends, of all its hosts.

        The controller then plans their paths before they are needed. :meth:`Job.start` and :meth:`Job.stop`
        tell when an iteration communicates. Flows that programs announce with the job's number and the ends
        of such a flow are that flow.

        Parameters
        ----------
        number : int
            The job, from 1; one that another connection has registered is refused.
        pattern
            Of each flow the addresses of its sender and its receiver, and its size (bytes or text).

        Raises
        ------
        SpecError
            Naming the argument that makes no sense.
        InfeasibleError
            Where nobody answers, or the agent does not take the job. What the controller refuses is told by
            :meth:`changes` and :attr:`Job.refused`.
        """
        name = f"job {whole('number', number, 1, _JOBS - 1)}"
        line = name
        for at, flow in enumerate(pattern):
            words = _flow_of(flow, f"pattern[{at}]")
            if len(line) + len(words) > _LINE:
                self.tell(f"{line} ...")
                line = name
            line = f"{line} {words}"
        answer = self._ask(line)
        if answer != f"{name} registered":
            raise self._odd(answer)
        made = Job(self, number)
        self._jobs[number] = made
        return made

    def changes(self, wait: Duration = 0) -> list[Flow | Job]:
        """Return the flows whose port or rate is another, and jobs that are refused, in the order told.

        Parameters
        ----------
        wait : seconds or text
            How long the first one is waited for, where there is none yet.

        Raises
        ------
        SpecError
            Naming the argument that makes no sense.
        InfeasibleError
            Where the agent has ended.
        """
        patience = seconds(wait, "wait")
        with self._lock:
            try:
                self._drain()
                if patience and not self._changed and self._socket is not None:
                    self._socket.settimeout(patience)
                    with suppress(TimeoutError):
                        self._note(self._received(self._socket))
                    self._drain()
            except OSError as error:
                self._drop()
                raise self._gone(error) from None
            changed, self._changed = self._changed, []
        return changed

    def close(self) -> None:
        """Close the connection. A later request makes another."""
        with self._lock:
            self._drop()

    def __repr__(self) -> str:
        """Return the address of the agent."""
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
                raise self._gone(error) from None
        if answer.startswith("error"):
            raise InfeasibleError(
                None, answer[len("error") :].strip(), origin=f"agent at {self.path}"
            )
        return answer

    def _asked(self, line: str) -> str:
        """Send a line and give its answer, passing over answers to what was only told."""
        connection = self._connected()
        self._drain()
        connection.settimeout(self.patience)
        connection.send(line.encode())
        end = monotonic() + self.patience
        while True:
            connection.settimeout(max(end - monotonic(), 1e-3))
            text = self._received(connection)
            if not self._note(text) and text.partition(" ")[0] in _ANSWERS:
                return text

    def _received(self, connection: socket.socket) -> str:
        answer = connection.recv(_LONGEST)
        if not answer:
            raise ConnectionResetError(0, "it closed the connection")
        return answer.decode(errors="replace").strip()

    def _drain(self) -> None:
        """Take what is there already: news, and answers to what was only told."""
        if self._socket is not None:
            self._socket.setblocking(False)
            with suppress(BlockingIOError):
                while True:
                    self._note(self._received(self._socket))

    def _note(self, text: str) -> bool:
        """Take what the agent says of its own accord; False for an answer."""
        word, _, rest = text.partition(" ")
        number, _, rest = rest.partition(" ")
        if word not in ("path", "rate", "job") or not is_decimal(number, 19):
            return False
        told: Flow | Job | None = None
        if word == "job":
            if not rest.startswith("none "):
                return False
            job = told = self._jobs.get(int(number))
            if job is not None:
                job.refused = rest[len("none ") :]
        else:
            flow = told = self._flows.get(int(number))
            if flow is not None and word == "path":
                flow.port = self._port_of(rest)
            elif flow is not None and is_decimal(rest, 19):
                flow.rate = int(rest)
        if told is not None and told not in self._changed:
            self._changed.append(told)
        return True

    def _connected(self) -> socket.socket:
        if self._socket is None:
            made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            made.settimeout(self.patience)
            try:
                made.connect(str(self.path))
            except OSError:
                made.close()
                raise
            if self.watch:
                made.send(b"watch")
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
        if word != "port" or not is_decimal(rest) or not 0 < int(rest) < 1 << 16:
            raise self._odd(answer)
        return int(rest)

    def _gone(self, error: OSError) -> InfeasibleError:
        why = "no answer in time" if isinstance(error, TimeoutError) else error.strerror
        return InfeasibleError(
            None,
            f"{why}",
            "start hocket-agent, or go on without a port",
            f"agent at {self.path}",
        )

    def _odd(self, answer: str) -> InfeasibleError:
        return InfeasibleError(
            None,
            f"it answers {shown(answer)}",
            "use an agent of this version",
            f"agent at {self.path}",
        )


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
    return Flow(agent, made.number, made.port, closes=True)


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
    return port if port is not None and bound(connection, port) else None


def _ends(dst: object, dport: object, protocol: object, src: object) -> str:
    one_of("protocol", protocol, tuple(PROTOCOLS))
    source = "-" if src is None else check_address("src", src)
    port = whole("dport", dport, 1, 65535)
    return f"{protocol} {source} {check_address('dst', dst)} {port}"


def _flow_of(flow: object, field: str) -> str:
    if not isinstance(flow, tuple) or len(flow) != _ENDS:
        right = 'give ("10.0.0.1", "10.0.1.1", "64 MB")'
        raise SpecError(field, f"{shown(flow)} is no sender, receiver and size", right)
    src, dst, size = flow
    ends = f"{check_address(field, src)} {check_address(field, dst)}"
    return f"{ends} {parse_size(size, field=field)}"
