"""The store where ranks meet."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hocket._checks import is_decimal
from hocket.errors import InfeasibleError, SpecError

if sys.platform == "win32":
    if not TYPE_CHECKING:
        raise InfeasibleError("runtime", "plans run on Unix only", "simulate them instead")
from hocket._core.runtime import Store

__all__ = ["Store", "secret_bytes", "serve"]

SECRET = "HOCKET_SECRET"
"""The environment variable with what all ranks know."""


def serve(address: str = "127.0.0.1:0", *, secret: str | bytes | None = None) -> Store:
    """Serve an address at which ranks meet, in threads of this process.

    Parameters
    ----------
    address
        Host and port; port 0 takes a free one.
    secret
        What all ranks know; by default ``$HOCKET_SECRET``. An address that other hosts reach needs one.

    Returns
    -------
    Store
        Its `address` has the port. It ends when it is closed or forgotten; groups that have met there
        can then no longer tell who has failed.

    Raises
    ------
    SpecError
        If the address makes no sense, or needs a secret.
    TransportError
        If it is not of this host, or in use.
    """
    check_address(address)
    return Store(address, secret_bytes(secret))


def check_address(address: object) -> None:
    """Refuse what is not a host and a port.

    Raises
    ------
    SpecError
        With what would be right.
    """
    host, _, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    if not host or not is_decimal(port) or int(port) > 65535:
        raise SpecError("address", f"{address!r} is not HOST:PORT", 'give "127.0.0.1:29500"')


def secret_bytes(secret: str | bytes | None) -> bytes:
    """Return the secret as bytes: that of the environment, or none, if it is not given.

    Raises
    ------
    SpecError
        If it is not text.
    """
    given = os.environ.get(SECRET, "") if secret is None else secret
    if isinstance(given, bytes):
        return given
    if not isinstance(given, str):
        raise SpecError("secret", f"{type(given).__name__} is not text", "give text or bytes")
    return given.encode()
