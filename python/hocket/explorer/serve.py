"""The page, live: a form says what is to be planned, and a server on this machine has it planned anew.

What another site has a browser send is refused. What is asked for has limits, and the server itself plans
nothing: :mod:`hocket.explorer.request` and :mod:`hocket.explorer.answers` do.
"""

from __future__ import annotations

import ipaddress
import socket
import sys
import threading
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from hocket.errors import SpecError
from hocket.explorer.answers import Answers, GoneError
from hocket.explorer.request import PageRequest, refusal

_LONGEST = 4096
"""Characters of a request's path."""
_MOST = 64
"""Connections at once."""
_PATIENCE = 30.0
"""Seconds in which a request must be there whole."""


class Server(ThreadingHTTPServer):
    """Answers on one address."""

    daemon_threads = True

    def __init__(self, host: str, port: int, start: PageRequest, time_limit: float) -> None:
        self.start, self.time_limit = start, time_limit
        self.answers = Answers()
        self._room = threading.BoundedSemaphore(_MOST)
        try:
            super().__init__((host, port), _Handler)
        except BaseException:
            self.answers.close()
            raise

    @property
    def url(self) -> str:
        """Its address."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/"

    def server_close(self) -> None:
        """End what is planned, and serve no more."""
        self.answers.close()
        super().server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer on a thread of its own, or hang up where too many are answered."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and make room."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Print in one line what went wrong, unless the client has gone."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            print(f"hocket: a request failed: {type(error).__name__}: {error}", file=sys.stderr)

    def is_meant(self, host: str) -> bool:
        """Return whether a request's Host is ours: another's name may lead to this machine by a trick.

        A server at all addresses is meant by each of them, as long as that is no name.
        """
        name = host.strip()
        if not name.endswith("]"):
            name = name.rsplit(":", 1)[0] if name.count(":") == 1 or "]" in name else name
        name = name.strip("[]").lower()
        if name in {"localhost", "127.0.0.1", "::1", str(self.server_address[0])}:
            return True
        try:
            ipaddress.ip_address(name)
            return ipaddress.ip_address(str(self.server_address[0])).is_unspecified
        except ValueError:
            return False


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "hocket"
    sys_version = ""
    timeout = _PATIENCE

    def setup(self) -> None:
        """Begin to wait for a request: one that comes byte by byte is not waited for any longer."""
        super().setup()
        self._patience = threading.Timer(_PATIENCE, self._hang_up)
        self._patience.daemon = True
        self._patience.start()

    def _hang_up(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def finish(self) -> None:
        """End a connection."""
        self._patience.cancel()
        super().finish()

    def parse_request(self) -> bool:
        """Read a request, which is there whole then."""
        is_one = super().parse_request()
        self._patience.cancel()
        return is_one

    def _why_not(self) -> str | None:
        """Explain why a request is not answered: its address is another's, or another site had it sent."""
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not self.server.is_meant(hosts[0]):
            return "This address is not served.\n"
        origin = self.headers.get("Origin")
        is_own = origin is None or urlsplit(origin).netloc.lower() == hosts[0].strip().lower()
        if not is_own or self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return "Another site asked for this; open the address by yourself.\n"
        return None

    def do_GET(self) -> None:
        """Answer a form, or say that there is nothing else."""
        try:
            path = urlsplit(self.path)
            why_not = self._why_not()
        except ValueError:
            self._send(HTTPStatus.BAD_REQUEST, "That is no address.\n", "text/plain")
            return
        if why_not is not None:
            self._send(HTTPStatus.FORBIDDEN, why_not, "text/plain")
        elif path.path != "/" or len(self.path) > _LONGEST:
            self._send(HTTPStatus.NOT_FOUND, "There is only /.\n", "text/plain")
        else:
            try:
                asked = PageRequest.of(path.query, self.server.start)
            except SpecError as error:
                status, page = HTTPStatus.BAD_REQUEST, refusal(PageRequest(), str(error))
            else:
                limit = self.server.time_limit
                try:
                    status, page = self.server.answers.page(asked, limit, self.connection)
                except GoneError:
                    self.close_connection = True
                    return
            self._send(status, page, "text/html")

    def do_HEAD(self) -> None:
        """Answer without a page, and without planning."""
        is_ours = self.server.is_meant(self.headers.get("Host", ""))
        self._send(HTTPStatus.OK if is_ours else HTTPStatus.FORBIDDEN, "", "text/html")

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
        """Print nothing: the page says what happened."""
