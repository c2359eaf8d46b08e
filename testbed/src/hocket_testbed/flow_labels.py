"""Flow labels of IPv6 on sockets of this host."""

from __future__ import annotations

import socket
import struct

__all__ = ["write_label"]

_FLOWLABEL_MGR, _FLOWINFO_SEND = 32, 33
_GET, _SHARED, _CREATE = 0, 255, 1
"""Action, sharing (with any flow) and flag."""


def write_label(connection: socket.socket, dst: str, label: int) -> None:
    """Have a socket of IPv6 write a flow label, which is leased from the kernel for the receiver.

    Connect it afterwards with the label as the third part of the address: ``(dst, port, label, 0)``.

    Raises
    ------
    OSError
        Where the kernel does not give the label.

    References
    ----------
    Linux, ``include/uapi/linux/in6.h``: ``struct in6_flowlabel_req``.
    """
    receiver = socket.inet_pton(socket.AF_INET6, dst)
    asked = (
        receiver + struct.pack("!I", label) + struct.pack("=BBHHH4x", _GET, _SHARED, _CREATE, 0, 0)
    )
    connection.setsockopt(socket.IPPROTO_IPV6, _FLOWLABEL_MGR, asked)
    connection.setsockopt(socket.IPPROTO_IPV6, _FLOWINFO_SEND, 1)
