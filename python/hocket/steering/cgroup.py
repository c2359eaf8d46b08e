"""Steers programs that call the kernel themselves: the kernel binds their ports in ``connect``.

The program runs in a control group of its own. A program of BPF is attached to the group; it looks up the
address that is connected to, takes a port that was asked of the agent before, and binds it. Where none is
left, ``connect`` goes on as ever. It needs Linux 5.8 with control groups of version 2, and root.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from hocket._checks import is_decimal, list_of, whole
from hocket.errors import InfeasibleError, SpecError
from hocket.steering.agent import Agent
from hocket.units import shown

MAX_PORTS = 15
"""Connections to one address and port that are steered."""
_SYSCALLS = {"x86_64": 321, "aarch64": 280}
_MAP_CREATE, _MAP_UPDATE, _PROG_LOAD, _PROG_ATTACH = 0, 2, 5, 8
_HASH_MAP, _SOCK_ADDR, _CONNECT4 = 1, 18, 10
_LOOKUP, _BIND = 1, 64
_ENTRY = 4 * (1 + MAX_PORTS)
"""A number of ports that are left, and so many ports."""
_libc = ctypes.CDLL(None, use_errno=True)


class Target(NamedTuple):
    """Whereto a program will connect."""

    address: str
    """Of IPv4."""
    port: int
    times: int = 1
    """How many connections."""


def parse_target(text: str) -> Target:
    """Read ``"10.1.0.1:5201"``, or ``"10.1.0.1:5201x4"`` for four connections.

    Raises
    ------
    SpecError
        For text that is no address and port.
    """
    ends, mark, count = text.partition("x")
    address, colon, port = ends.rpartition(":")
    try:
        socket.inet_pton(socket.AF_INET, address)
        if not colon or not is_decimal(port) or (mark and not is_decimal(count, 19)):
            raise OSError
    except OSError:
        raise SpecError(
            "to", f"{shown(text)} is no address and port", "write 10.1.0.1:5201 or 10.1.0.1:5201x4"
        ) from None
    most = whole("to", int(count) if mark else 1, 1, MAX_PORTS)
    return Target(address, whole("to", int(port), 1, 65535), most)


def launch(command: Sequence[str], to: Sequence[Target], *, agent: Agent | None = None) -> int:
    """Run a program whose connections leave from the ports that the agent gives, and give its exit code.

    Parameters
    ----------
    command
        The program and its arguments.
    to
        Whereto it will connect; other connections are left alone.
    agent
        Who is asked; by default the agent of this host.

    Raises
    ------
    SpecError
        Without a program.
    InfeasibleError
        Where the agent does not answer, the program is missing, or rights or features of the kernel are.
    """
    words = [str(each) for each in list_of("command", command)]
    if not words:
        raise SpecError("command", "there is no program", "name one after --")
    with Agent() if agent is None else agent as asked:
        ports = {
            target: [asked.port(target.address, target.port) for _ in range(target.times)]
            for target in to
        }
    with _group() as group, _attached(group, ports):
        try:
            process = subprocess.Popen(words, preexec_fn=lambda: _enter(group))
        except OSError as error:
            raise InfeasibleError(None, f"{words[0]} cannot be run: {error.strerror}") from None
        # What is meant for the program is for it alone.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            code = process.wait()
        finally:
            signal.signal(signal.SIGINT, before)
    return code if code >= 0 else 128 - code


def _enter(group: Path) -> None:
    (group / "cgroup.procs").write_text("0")


@contextmanager
def _group() -> Iterator[Path]:
    """Make a control group below that of this process."""
    own = next((line[3:] for line in _lines("/proc/self/cgroup") if line.startswith("0::")), None)
    mounts = (line.split() for line in _lines("/proc/self/mountinfo"))
    places = [words[4] for words in mounts if words[words.index("-") + 1] == "cgroup2"]
    if own is None or not places:
        raise InfeasibleError(None, "there are no control groups of version 2", "mount cgroup2")
    group = Path(places[0] + own.rstrip("/")) / f"hocket-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        raise InfeasibleError(
            None, f"{group} cannot be made: {error.strerror}", "run it as root"
        ) from None
    try:
        yield group
    finally:
        with suppress(OSError):
            group.rmdir()


def _lines(path: str) -> list[str]:
    with suppress(OSError):
        return Path(path).read_text().splitlines()
    return []


@contextmanager
def _attached(group: Path, ports: dict[Target, list[int | None]]) -> Iterator[None]:
    """Attach the program to a group; with the group it goes."""
    table = _bpf(_MAP_CREATE, struct.pack("=IIII", _HASH_MAP, 8, _ENTRY, max(len(ports), 1)))
    try:
        for target, given in ports.items():
            known = [socket.htons(port) for port in reversed(given) if port is not None]
            entry = struct.pack(
                f"={1 + MAX_PORTS}I", len(known), *known, *[0] * (MAX_PORTS - len(known))
            )
            key = socket.inet_aton(target.address) + struct.pack("=I", socket.htons(target.port))
            places = [ctypes.create_string_buffer(each, len(each)) for each in (key, entry)]
            update = struct.pack("=IIQQQ", table, 0, *map(ctypes.addressof, places), 0)
            _bpf(_MAP_UPDATE, update)
        code = ctypes.create_string_buffer(_program(table))
        licence = ctypes.create_string_buffer(b"MIT")
        size = (len(code) - 1) // 8
        where = (ctypes.addressof(code), ctypes.addressof(licence))
        load = struct.pack(
            "=IIQQIIQII16sII", _SOCK_ADDR, size, *where, 0, 0, 0, 0, 0, b"hocket", 0, _CONNECT4
        )
        program = _bpf(_PROG_LOAD, load)
        directory = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _bpf(_PROG_ATTACH, struct.pack("=IIII", directory, program, _CONNECT4, 0))
        finally:
            os.close(directory)
            os.close(program)
        yield
    finally:
        os.close(table)


def _bpf(command: int, attributes: bytes) -> int:
    number = _SYSCALLS.get(platform.machine())
    if number is None:
        raise InfeasibleError(
            None, f"{platform.machine()} is a machine it does not know", "preload the library"
        )
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    found = _libc.syscall(number, command, buffer, len(attributes))
    if found < 0:
        why = os.strerror(ctypes.get_errno()).lower()
        remedy = "run it as root on Linux 5.8 or later, or preload the library"
        raise InfeasibleError(None, f"the kernel takes no such program: {why}", remedy)
    return int(found)


def _program(table: int) -> bytes:
    """Assemble the program: registers 1 to 5 are arguments, 6 is the context, 10 the frame."""

    def one(code: int, dst: int = 0, src: int = 0, off: int = 0, imm: int = 0) -> bytes:
        return struct.pack("=BBhi", code, src << 4 | dst, off, imm)

    def move(dst: int, src: int) -> bytes:
        return one(0xBF, dst, src)

    bind = [
        one(0x07, 7, imm=-1),  # one port fewer is left
        one(0x63, 0, 7),
        one(0x67, 7, imm=2),
        one(0x0F, 0, 7),
        one(0x61, 7, 0, 4),  # the last of those that were left
        one(0x6A, 10, off=-24, imm=socket.AF_INET),  # an address: any, from this port
        one(0x6B, 10, 7, -22),
        one(0x62, 10, off=-20),
        one(0x7A, 10, off=-16),
        move(1, 6),
        move(2, 10),
        one(0x07, 2, imm=-24),
        one(0xB7, 3, imm=16),
        one(0x85, imm=_BIND),
    ]
    over = len(bind)
    lookup = [
        move(6, 1),
        one(0x61, 2, 6, 4),  # the address that is connected to, and its port
        one(0x63, 10, 2, -8),
        one(0x61, 2, 6, 24),
        one(0x63, 10, 2, -4),
        one(0x18, 1, 1, imm=table),
        one(0),
        move(2, 10),
        one(0x07, 2, imm=-8),
        one(0x85, imm=_LOOKUP),
        one(0x15, 0, off=over + 3),  # not in the table
        one(0x61, 7, 0),
        one(0x15, 7, off=over + 1),  # no port is left
        one(0x25, 7, off=over, imm=MAX_PORTS),
    ]
    # 1: let it connect, whatever became of that.
    return b"".join([*lookup, *bind, one(0xB7, 0, imm=1), one(0x95)])
