"""Connection of ranks to one group."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hocket._checks import is_decimal
from hocket._core.runtime import Group
from hocket._options import options_of, seconds
from hocket.errors import SpecError
from hocket.runtime.communicator import Communicator
from hocket.runtime.options import ConnectOptions
from hocket.runtime.store import check_address, secret_bytes, serve
from hocket.runtime.table import table_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hocket.runtime.options import ConnectKeywords

_VARIABLES = {"address": "HOCKET_STORE", "rank": "HOCKET_RANK", "size": "HOCKET_SIZE"}


@dataclass(frozen=True)
class _Place:
    address: str
    rank: int
    size: int
    is_given: bool


def connect(
    address: str | None = None,
    *,
    rank: int | None = None,
    size: int | None = None,
    options: ConnectOptions | None = None,
    **keywords: Unpack[ConnectKeywords],
) -> Communicator:
    """Join a group of processes, and wait until all are there.

    Parameters
    ----------
    address
        Where ranks meet, as ``"127.0.0.1:29500"``. Rank 0 listens there, unless `serves` says otherwise.
        By default ``$HOCKET_STORE``, with ``$HOCKET_RANK`` and ``$HOCKET_SIZE``, as launchers set them; a
        store listens there already then.
    rank, size
        Which rank this is, from 0, and how many there are.
    options
        How the group comes together.
    keywords
        Any option of :class:`ConnectOptions` by its name, in place of the one in `options`.

    Returns
    -------
    Communicator
        The group.

    Raises
    ------
    SpecError
        For arguments that make no sense.
    TransportError
        If not all come in time, the address is not of this host or in use, the secret is another one, or
        ranks have different tables of plans.
    InfeasibleError
        If memory is to be shared and cannot be.
    """
    chosen = options_of(ConnectOptions, options, keywords)
    place = _place(address, rank, size)
    secret = secret_bytes(chosen.secret)
    is_server = chosen.serves
    if is_server is None:
        is_server = place.is_given and place.rank == 0
    table = None if chosen.outward else table_of(chosen.table)
    store = serve(place.address, secret=secret) if is_server else None
    at = place.address if store is None else store.address

    def join(name: str, rank: int, size: int) -> Group:
        return Group.connect(
            at,
            group=name,
            rank=rank,
            size=size,
            secret=secret,
            patience=seconds(chosen.join_timeout, "join_timeout"),
            timeout=seconds(chosen.timeout, "timeout"),
            shares=chosen.transport != "tcp" or size == 1,
            streams=2 if chosen.outward else chosen.streams,
            local=chosen.local,
            outward=chosen.outward,
            table=0 if table is None else table.hash,
        )

    made = join(chosen.group, place.rank, place.size)
    communicator = Communicator(
        made,
        store=store,
        join=lambda name, *who: join(f"{chosen.group}/{name}", *who),
        by_memory=chosen.transport == "shared",
        table=table,
        outward=chosen.outward,
    )
    if chosen.transport == "shared":
        communicator.check_shared()
    return communicator


def _place(address: str | None, rank: int | None, size: int | None) -> _Place:
    given = {"address": address, "rank": rank, "size": size}
    missing = [name for name, value in given.items() if value is None]
    if address is not None and rank is not None and size is not None:
        check_address(address)
        return _Place(address, _count("rank", rank, 0), _count("size", size), True)
    if len(missing) < len(given):
        raise SpecError(missing[0], "is missing", "give address, rank and size, or none of them")
    found = {name: os.environ.get(variable) for name, variable in _VARIABLES.items()}
    for name, text in found.items():
        if text is None:
            variable = _VARIABLES[name]
            raise SpecError(name, f"is missing, and so is ${variable}", "give address, rank, size")
    numbers = {}
    for name in ("rank", "size"):
        text = found[name] or ""
        if not is_decimal(text):
            raise SpecError(f"${_VARIABLES[name]}", f"{text!r} is not a whole number")
        numbers[name] = int(text)
    check_address(found["address"])
    size_given = _count("size", numbers["size"])
    return _Place(str(found["address"]), _count("rank", numbers["rank"], 0), size_given, False)


def _count(name: str, given: object, least: int = 1) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or not least <= given < 1 << 31:
        raise SpecError(name, f"{given!r} is not a whole number from {least}")
    return given
