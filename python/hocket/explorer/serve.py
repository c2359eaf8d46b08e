"""The page, live: a form says what is to be planned, and a server on this machine plans it anew.

Only networks and algorithms by name are taken, never files: a form that any web page could send must not
read, or run, what lies on the disk.
"""

from __future__ import annotations

import re
import sys
import threading
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from hocket import _core
from hocket._checks import did_you_mean
from hocket.errors import Error, SpecError
from hocket.explorer.page import MOST_RUNS, encode_runs, fill
from hocket.plans.algorithms import BUILTIN
from hocket.plans.plan import Plan
from hocket.plans.planner import plan
from hocket.plans.synthesis.options import PlanOptions
from hocket.simulation.run import Run, simulate
from hocket.topology.machines import names
from hocket.topology.sources import load
from hocket.units import shown

__all__ = ["Asked", "Server", "answer"]

_KINDS = (
    "all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce", "gather", "scatter", "all-to-all",
)  # fmt: skip
_NETWORK = re.compile(r"[\w.-]+(?::[\w.:,-]+)?(?:@[\w./ ,µ]+)?")
_MOST_FIELDS = 20
_LONGEST = 4096
"""Characters of a request's path."""


@dataclass(frozen=True)
class Asked:
    """What a form asks for, as texts."""

    topology: str = "dgx1_v100"
    collective: str = "all-reduce"
    size: str = "64MB"
    algorithm: str = "auto"
    failed: str = ""

    FIELDS: ClassVar[tuple[str, ...]] = ("topology", "collective", "size", "algorithm", "failed")

    @classmethod
    def of(cls, query: str, start: Asked) -> Asked:
        """Read a query; what it does not say is as at the start."""
        try:
            given = parse_qs(query, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except ValueError:
            right = f"give {_MOST_FIELDS} at most"
            raise SpecError(None, "the address has too many fields", right) from None
        for name in given:
            if name not in cls.FIELDS:
                hint = did_you_mean(name, cls.FIELDS, f"they are {', '.join(cls.FIELDS)}")
                raise SpecError(None, f"the form has no {shown(name)}", hint)
        told = {name: given[name][-1].strip() for name in cls.FIELDS if name in given}
        return cls(**{**{name: getattr(start, name) for name in cls.FIELDS}, **told})

    def runs(self, time_limit: float) -> list[Run]:
        """Plan and simulate what is asked for, an algorithm a run.

        Raises
        ------
        Error
            Where that cannot be done.
        """
        if not _NETWORK.fullmatch(self.topology) or self.topology.endswith(
            (".yml", ".yaml", ".json", ".xml")
        ):
            raise SpecError(
                "topology",
                f"{shown(self.topology)} is neither a shipped machine nor a builder",
                "write one as dgx1_v100 or torus:4x4x4@25GB/s,700ns",
            )
        algorithms = [each.strip() for each in self.algorithm.split(",") if each.strip()]
        if self.collective not in _KINDS:
            raise SpecError(
                "collective", f"{shown(self.collective)} is none", f"one of {', '.join(_KINDS)}"
            )
        for each in algorithms:
            if each not in BUILTIN:
                hint = did_you_mean(each, BUILTIN, "see `hocket algorithms`")
                raise SpecError("algorithm", f"{shown(each)} is not one of hocket's", hint)
        if not algorithms:
            right = f"name 1 to {MOST_RUNS}, separated by commas"
            raise SpecError("algorithm", "there is none", right)
        if not 1 <= len(algorithms) <= MOST_RUNS:
            raise SpecError(
                "algorithm",
                f"{len(algorithms)} do not fit beside one another",
                f"name 1 to {MOST_RUNS}, separated by commas",
            )
        network = self.network()
        if self.failed:
            network = _without(network, self.failed)
        return [
            simulate(_plan(self, network, each, time_limit), keep_services=True)
            for each in algorithms
        ]

    def network(self) -> _core.Topology:
        """Make the network, before anything fails.

        Raises
        ------
        Error
            Where there is no such network.
        """
        try:
            network: _core.Topology = load(self.topology)
        except Error as error:
            remedy = error.remedy
            if error.field in ("bandwidth", "latency"):
                remedy = "write it behind @, as torus:4x4x4@25GB/s,700ns"
            raise SpecError("topology", error.why, remedy) from None
        return network

    def form(self) -> list[dict[str, Any]]:
        """Give the form that asks for the same."""
        choices = {
            "topology": names(),
            "collective": list(_KINDS),
            "algorithm": list(BUILTIN),
        }
        labels = {"size": "size", "failed": "failed (A,B or A; blanks between)"}
        return [
            {
                "name": name,
                "label": labels.get(name, name),
                "value": getattr(self, name),
                "choices": choices.get(name, []),
                "open": name != "collective",
            }
            for name in self.FIELDS
        ]


def _plan(asked: Asked, network: _core.Topology, algorithm: str, seconds: float) -> Plan:
    """Plan what is asked for; what searches, searches for so many seconds at most."""
    options = PlanOptions(time_limit=seconds)
    return plan(asked.collective, network, size=asked.size, algorithm=algorithm, options=options)


def _without(network: _core.Topology, failed: str) -> _core.Topology:
    """Take away what has failed: ``A,B`` is a link, ``A`` a device."""
    parts = failed.split()
    links = [part for part in parts if "," in part]
    nodes = [part for part in parts if "," not in part]
    return network.without(nodes=nodes, links=links)


def answer(asked: Asked | SpecError, time_limit: float) -> tuple[HTTPStatus, str]:
    """Give the page that a form asks for, or one that says in a sentence why there is none."""
    form = {"form": (Asked() if isinstance(asked, SpecError) else asked).form()}
    try:
        if isinstance(asked, SpecError):
            raise asked
        runs = asked.runs(time_limit)
        titles = [run.plan.algorithm for run in runs] if len(runs) > 1 else None
        header, first, rest = encode_runs(runs, titles)
    except (Error, MemoryError) as error:
        said = str(error) if isinstance(error, Error) else "not enough memory; make it smaller"
        message = {"format": 1, "kind": "message", "title": "hocket", "text": said}
        return HTTPStatus.BAD_REQUEST, fill({**message, **form})
    return HTTPStatus.OK, fill({**header, **form}, first, rest)


class Server(ThreadingHTTPServer):
    """Answers on one address; one plan at a time."""

    daemon_threads = True

    def __init__(self, host: str, port: int, start: Asked, time_limit: float) -> None:
        self.start, self.time_limit = start, time_limit
        self.turn = threading.Lock()
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """Where it is found."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say in a line what went wrong, unless whoever asked has gone."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            print(f"hocket: a request failed: {type(error).__name__}: {error}", file=sys.stderr)

    def is_meant(self, host: str) -> bool:
        """Whether a request's Host is ours: another's name may lead to this machine by a trick."""
        name = host.rsplit(":", 1)[0].strip("[]").lower()
        return name in {"localhost", "127.0.0.1", "::1", str(self.server_address[0])}


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "hocket"
    sys_version = ""
    timeout = 30.0  # of whoever connects and asks for nothing [s]

    def do_GET(self) -> None:
        """Answer a form, or say that there is nothing else."""
        try:
            asked = urlsplit(self.path)
        except ValueError:
            self._send(HTTPStatus.BAD_REQUEST, "That is no address.\n", "text/plain")
            return
        if not self.server.is_meant(self.headers.get("Host", "")):
            self._send(HTTPStatus.FORBIDDEN, "This address is not served.\n", "text/plain")
        elif asked.path != "/" or len(self.path) > _LONGEST:
            self._send(HTTPStatus.NOT_FOUND, "There is only /.\n", "text/plain")
        else:
            try:
                wanted: Asked | SpecError = Asked.of(asked.query, self.server.start)
            except SpecError as error:
                wanted = error
            with self.server.turn:
                status, page = answer(wanted, self.server.time_limit)
            self._send(status, page, "text/html")

    def do_HEAD(self) -> None:
        """Answer without a page, and without planning."""
        self._send(HTTPStatus.OK, "", "text/html")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no request of a page in a line of text."""
        self.close_connection = True
        status = HTTPStatus(code)
        if self.request_version == "HTTP/0.9":  # so far not even a version was read
            self.request_version = "HTTP/1.0"
        self._send(status, f"{status.phrase}: there is only GET /.\n", "text/plain")

    def _send(self, status: HTTPStatus, text: str, kind: str) -> None:
        raw = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(raw)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the page says what happened."""
