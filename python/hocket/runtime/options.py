"""Options of groups of processes, and of measurements."""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

from hocket._checks import whole
from hocket._options import Time, seconds
from hocket.errors import SpecError
from hocket.runtime.arrays import OPERATIONS

if TYPE_CHECKING:
    from os import PathLike

    from typing_extensions import TypedDict

    from hocket.runtime.table import PlanTable

    class ConnectKeywords(TypedDict, total=False):
        """The fields of :class:`ConnectOptions` as keywords of a call."""

        secret: str | bytes | None
        group: str
        timeout: str | float
        join_timeout: str | float
        transport: str
        streams: int
        outward: bool
        local: str | None
        serves: bool | None
        table: PlanTable | str | PathLike[str] | None

    class MeasureKeywords(TypedDict, total=False):
        """The fields of :class:`MeasureOptions` as keywords of a call."""

        root: int
        dtype: str
        op: str
        transport: str
        calls: int
        timeout: str | float


TRANSPORTS = ("auto", "tcp", "shared")
"""How numbers travel."""

DTYPES = (
    *("float64", "float32", "float16"),
    *("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"),
)
"""Types that NumPy has, and so can check."""

_MAX_SECONDS = 1e9
_MAX_STREAMS = 64


@dataclass(frozen=True)
class ConnectOptions:
    """The options of a group of processes.

    Parameters
    ----------
    secret
        What all ranks know; by default ``$HOCKET_SECRET``. An address that other hosts reach needs one.
    group
        Name of the group: groups of several names can meet at one address.
    timeout
        How long a call may stand still, as ``"30 s"``; numbers are seconds.
    join_timeout
        How long the others may take to come.
    transport
        ``tcp``; ``shared`` for memory of one host; ``auto`` shares memory where all ranks can. Calls that
        name a plan go over TCP, except with ``shared``.
    streams
        TCP connections of each link, over which the channels of a plan are spread.
    outward
        Whether each connection carries numbers one way only and is opened by the rank that sends them. Then
        the source port, which an agent of the controller can choose, says which path numbers take.
    local
        Address of this host at which other ranks reach this one; by default ``$HOCKET_LOCAL``, else the one
        from which it reaches the place where all meet.
    serves
        Whether this rank lets all meet at the address; by default rank 0 does if the address is given.
    table
        What calls run that name no plan: a table of plans or its file, or ``tuned`` for the one that
        ``hocket compare --table`` keeps for this user. By default what ``$HOCKET_TABLE`` says, else
        none. All ranks must have the same.
    """

    secret: str | bytes | None = None
    group: str = "world"
    timeout: str | float = "30 s"
    join_timeout: str | float = "60 s"
    transport: str = "auto"
    streams: int = 1
    outward: bool = False
    local: str | None = None
    serves: bool | None = None
    table: PlanTable | str | PathLike[str] | None = None

    def __post_init__(self) -> None:
        check_choice("transport", self.transport, TRANSPORTS)
        if not 0 < len(self.group) <= 1000:
            raise SpecError("group", "is not a name of a group", "give a short text")
        for name in ("timeout", "join_timeout"):
            check_time(name, getattr(self, name))
        whole("streams", self.streams, 1, _MAX_STREAMS)
        if not isinstance(self.outward, bool):
            raise SpecError("outward", f"{self.outward!r} is not true or false")
        if self.outward and (self.streams > 1 or self.table is not None):
            taken = "one stream" if self.streams > 1 else "no table of plans"
            raise SpecError("outward", f"goes with {taken}", "leave the other out")
        if self.local is None:
            object.__setattr__(self, "local", os.environ.get("HOCKET_LOCAL") or None)
        if self.local is not None:
            _check_local(self.local)


@dataclass(frozen=True)
class MeasureOptions:
    """The work of this machine's processes when a collective is measured.

    Attributes
    ----------
    root
        The root's rank.
    dtype
        Type of the numbers, one that NumPy has.
    op
        Operation of sums: sum, product, min, max or average.
    transport
        Transport: tcp or shared; auto takes TCP for plans, and shares memory without one.
    calls
        Number of timed calls, after some that are not timed.
    timeout
        Longest time without progress in a call, and at the start.
    """

    root: int = 0
    dtype: str = "float32"
    op: str = "sum"
    transport: str = "auto"
    calls: int = 20
    timeout: Time = "30 s"

    def __post_init__(self) -> None:
        check_choice("dtype", self.dtype, DTYPES)
        check_choice("op", self.op, OPERATIONS)
        check_choice("transport", self.transport, TRANSPORTS)
        check_time("timeout", self.timeout)
        if self.op == "average" and not self.dtype.startswith("float"):
            raise SpecError("op", f"there is no average of {self.dtype}", "sum, or take floats")
        if not 1 <= self.calls <= 100_000:
            raise SpecError("calls", f"{self.calls} is not 1 to 100000")


def _check_local(given: object) -> None:
    try:
        found = ip_address(given if isinstance(given, str) else "")
        if found.is_unspecified or found.is_multicast or getattr(found, "scope_id", None):
            raise ValueError
    except ValueError:
        right = 'give one of this host, as "10.0.0.7"'
        raise SpecError("local", f"{given!r} is not an address of one host", right) from None


def check_time(name: str, given: str | float) -> None:
    """Refuse what is not a time above 0.

    Raises
    ------
    SpecError
        With what would be right.
    """
    if not 0 < seconds(given, name) < _MAX_SECONDS:
        raise SpecError(name, f"{given!r} is not a time above 0", 'give "30 s"')


def check_choice(name: str, given: str, known: tuple[str, ...]) -> None:
    """Refuse what is not among the known.

    Raises
    ------
    SpecError
        Naming them.
    """
    if given not in known:
        raise SpecError(name, f"{given!r} is not known", f"one of {', '.join(known)}")
