"""Probes: which switch a packet of a known header reaches, as the switch itself says.

A packet whose time to live ends at a switch is answered by that switch, and the answer names the
interface that it came in by. It needs no right: the answer is read from the error queue of the socket
that sent the packet.
"""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from errno import EADDRINUSE, EADDRNOTAVAIL, EINPROGRESS
from os import strerror
from time import monotonic

from hocket._checks import instance_of, list_of, whole
from hocket._options import seconds
from hocket.errors import InfeasibleError, SpecError
from hocket.steering.hashes import Header
from hocket.units import Duration

_MOST_AT_ONCE = 64
_RECEIVE_ERRORS = 11  # IP_RECVERR
_ERROR_QUEUE = 0x2000  # MSG_ERRQUEUE
_OF_ICMP = 2
_TIME_EXCEEDED = 11
_ERROR = struct.Struct("=IBBBxII")
_ADDRESS_OF_OFFENDER = slice(_ERROR.size + 4, _ERROR.size + 8)
_SPOILT = (EADDRINUSE, EADDRNOTAVAIL)


def probe(header: Header, hops: int, *, patience: Duration = 0.2) -> str | None:
    """Return the address of the switch that a packet reaches after so many hops.

    Parameters
    ----------
    header : Header
        The packet's, of IPv4; it is sent from this host.
    hops : int
        1 is the first switch, 2 the one after it.
    patience : seconds or text
        How long the answer is waited for.

    Returns
    -------
    str or None
        None without an answer, or where the port is in use.
    """
    return probe_each([header], hops, patience=patience)[0]


def probe_each(
    headers: Sequence[Header], hops: int, *, patience: Duration = 0.2
) -> list[str | None]:
    """Return what :func:`probe` gives for each header, asked together.

    Raises
    ------
    SpecError
        For headers of IPv6, and addresses that this host does not have.
    """
    listed = [
        instance_of(Header, "headers", each, "make one by hk.steering.Header(...)")
        for each in list_of("headers", headers)
    ]
    life = whole("hops", hops, 1, 255)
    limit = seconds(patience, "patience")
    found: list[str | None] = []
    for start in range(0, len(listed), _MOST_AT_ONCE):
        found += _asked(listed[start : start + _MOST_AT_ONCE], life, limit)
    return found


def _asked(headers: Sequence[Header], life: int, limit: float) -> list[str | None]:
    answers: list[str | None] = [None] * len(headers)
    waiting: dict[int, tuple[int, socket.socket]] = {}
    poll = select.poll()
    try:
        for i, header in enumerate(headers):
            sent = _sent(header, life)
            if sent is not None:
                waiting[sent.fileno()] = (i, sent)
                poll.register(sent, select.POLLERR)
        end = monotonic() + limit
        while waiting and (left := end - monotonic()) > 0:
            for descriptor, _ in poll.poll(1000 * left):
                i, answered = waiting.pop(descriptor)
                poll.unregister(descriptor)
                answers[i] = _answer(answered)
                answered.close()
    finally:
        for _, unanswered in waiting.values():
            unanswered.close()
    return answers


def _sent(header: Header, life: int) -> socket.socket | None:
    """Send a packet and give its socket; None where its port is in use."""
    if ":" in header.src:
        raise SpecError("header", f"{header.src} is an address of IPv6", "probe with IPv4")
    kind = socket.SOCK_STREAM if header.protocol == "tcp" else socket.SOCK_DGRAM
    made = socket.socket(socket.AF_INET, kind | socket.SOCK_NONBLOCK)
    try:
        made.setsockopt(socket.IPPROTO_IP, _RECEIVE_ERRORS, 1)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, life)
        made.bind((header.src, header.sport))
        error = made.connect_ex((header.dst, header.dport))
        if error == 0 and kind == socket.SOCK_DGRAM:
            made.send(b"\0")
        elif error not in (0, EINPROGRESS):
            raise OSError(error, strerror(error))
        return made
    except OSError as error:
        made.close()
        if error.errno in _SPOILT and _has_address(header.src):
            return None
        where = f"{header.src} to {header.dst}"
        raise InfeasibleError(None, f"no probe goes from {where}: {error.strerror}") from None


def _has_address(address: str) -> bool:
    """Return whether this host has an address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_port, suppress(OSError):
        any_port.bind((address, 0))
        return True
    return False


def _answer(answered: socket.socket) -> str | None:
    """Read from the error queue who says that the time to live is over."""
    try:
        _, details, _, _ = answered.recvmsg(512, 512, _ERROR_QUEUE)
    except OSError:
        return None
    for level, kind, data in details:
        if (level, kind) != (socket.IPPROTO_IP, _RECEIVE_ERRORS):
            continue
        _, origin, icmp, _, _, _ = _ERROR.unpack_from(data)
        if origin == _OF_ICMP and icmp == _TIME_EXCEEDED:
            return socket.inet_ntoa(data[_ADDRESS_OF_OFFENDER])
    return None
