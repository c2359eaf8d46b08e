"""``hocket show --live``: the explorer's page, live, with a form that plans anew."""

from __future__ import annotations

from typing import Annotated

from hocket.cli import options
from hocket.cli.command import Option
from hocket.errors import SpecError


def serve(
    topology: Annotated[
        str,
        options.topology_option("The network to begin with: a shipped machine or a builder."),
    ] = "dgx1_v100",
    host: Annotated[
        str,
        Option(
            "--host",
            help="Address to serve on; addresses other than loopback are open to everyone.",
        ),
    ] = "127.0.0.1",
    port: Annotated[int, Option("--port", help="Port to serve on; 0 takes a free one.")] = 8422,
    seconds: Annotated[
        float, Option("--time-limit", help="Seconds that a request may take in total.")
    ] = 30.0,
) -> None:
    """Serve a page that plans and shows collectives in a browser.

    For example: hocket show --live --topology torus:8x8@25GB/s,700ns
    """
    from hocket.explorer.request import PageRequest
    from hocket.explorer.serve import Server

    if not 0 <= port < 1 << 16:
        raise SpecError("--port", f"{port} is no port", "give 0 to 65535")
    if not seconds > 0:
        raise SpecError("--time-limit", f"{seconds:g} s is no time", "give more than 0")
    PageRequest(topology=topology).network()
    try:
        server = Server(host, port, PageRequest(topology=topology), seconds)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SpecError(
            None, f"{host}:{port} cannot be served on: {reason}", "give another --port"
        ) from None
    options.say(f"hocket is at {server.url} until Ctrl-C")
    with server:
        server.serve_forever()
