"""Writes execution traces: what each rank does, as Chakra files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from hocket._checks import check_name, list_of, path_of, whole
from hocket.collectives.collective import spelled
from hocket.errors import SpecError
from hocket.files.atomic import replacing
from hocket.traces.files import CALLS, KINDS
from hocket.units import Quantity, parse_size, parse_time, shown

_MAX_POSITION = 1 << 32
_KIND = {name: number for number, name in KINDS.items()}
_CALL = {name: number for number, name in CALLS.items()}


@dataclass(frozen=True)
class _Step:
    """What all steps have: a name, and the earlier steps of the rank that must end first.

    `after` has their positions from 0; by default the step before.
    """

    name: str
    _: KW_ONLY
    after: Sequence[int] | None = None


@dataclass(frozen=True)
class Compute(_Step):
    """Computation that takes a time: seconds or text with a unit, whole microseconds in the file."""

    time: Quantity


@dataclass(frozen=True)
class Call(_Step):
    """A collective: its kind, its bytes as traces count them (docs/traces.md), and its group's number.

    `group` is one of those given to :func:`hocket.traces.load`; ``None`` for all ranks.
    """

    kind: str
    size: Quantity = 0
    group: int | None = None


@dataclass(frozen=True)
class Send(_Step):
    """A message to another rank; the receiver has a :class:`Receive` of the same size and tag."""

    to: int
    size: Quantity
    tag: int = 0


@dataclass(frozen=True)
class Receive(_Step):
    """A message from another rank."""

    source: int
    size: Quantity
    tag: int = 0


Step: TypeAlias = Compute | Call | Send | Receive


def write(prefix: str | PathLike[str], ranks: Iterable[Iterable[Step]]) -> list[Path]:
    """Write a trace, a file for each rank: ``PREFIX.0.et``, ``PREFIX.1.et``, ...

    Parameters
    ----------
    prefix
        Path of the files without rank and ending.
    ranks
        The steps of each rank, in order.

    Returns
    -------
    list of Path
        The files, by rank.

    Raises
    ------
    SpecError
        Naming the rank, the step and what is wrong with it; or if a file cannot be written.

    Examples
    --------
    >>> from hocket.traces import Call, Compute, write
    >>> both = [[Compute("forward", "5 us"), Call("gradients", "all-reduce", "1 MiB")]] * 2
    >>> write("step", both)  # doctest: +SKIP
    [PosixPath('step.0.et'), PosixPath('step.1.et')]
    """
    start = path_of("prefix", prefix)
    contents = []
    for rank, steps in enumerate(list_of("ranks", ranks)):
        nodes = []
        for number, step in enumerate(list_of(f"ranks[{rank}]", steps)):
            try:
                nodes.append(_node(number, step))
            except SpecError as error:
                raise error.within(f"rank {rank}, step {number}") from None
        messages = [_text(1, "0.0.4"), *nodes]
        contents.append(b"".join(_varint(len(message)) + message for message in messages))
    if not contents:
        raise SpecError("ranks", "there is none", "give the steps of one or more")
    paths = [Path(f"{start}.{rank}.et") for rank in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        with replacing(path) as temporary:
            temporary.write_bytes(content)
    return paths


def _node(number: int, step: object) -> bytes:
    if not isinstance(step, _Step):
        right = "give a Compute, Call, Send or Receive of hk.traces"
        raise SpecError(None, f"{shown(step)} is not a step", right)
    check_name(step.name)
    after = ([number - 1] if number else []) if step.after is None else step.after
    for each in after:
        if not 0 <= whole("after", each, 0, _MAX_POSITION) < number:
            raise SpecError(
                "after", f"{each} is not an earlier step", f"steps are 0 to {number - 1}"
            )
    kind, fields = _fields(step)
    parts = [_number(1, number), _text(2, step.name), _number(3, _KIND[kind])]
    parts += [_number(5, each) for each in after]
    return b"".join([*parts, *fields])


def _fields(step: _Step) -> tuple[str, list[bytes]]:
    """Give the kind of a node and what it has besides."""
    if isinstance(step, Compute):
        time_ps = parse_time(step.time, field="time")
        if time_ps % 1_000_000:
            why = f"{shown(step.time)} is not a whole number of microseconds"
            raise SpecError("time", why, "a trace has no others: round it")
        return "compute", [_number(7, time_ps // 1_000_000)]
    if isinstance(step, Call):
        kind = spelled(step.kind)
        if kind not in _CALL:
            right = f"kinds are {', '.join(_CALL)}"
            raise SpecError("kind", f"there is no collective {shown(step.kind)}", right)
        size = 0 if kind == "barrier" else parse_size(step.size, field="size")
        fields = [_attribute("comm_type", _CALL[kind]), _attribute("comm_size", size)]
        if step.group is not None:
            fields.append(_attribute("pg_name", whole("group", step.group, 0, 1 << 62)))
        return "collective", fields
    if isinstance(step, Send):
        return "send", _message("comm_dst", "to", step.to, step.size, step.tag)
    assert isinstance(step, Receive), "there are four kinds of steps"
    return "receive", _message("comm_src", "source", step.source, step.size, step.tag)


def _message(key: str, field: str, rank: int, size: Quantity, tag: int) -> list[bytes]:
    return [
        _attribute(key, whole(field, rank, 0, _MAX_POSITION)),
        _attribute("comm_size", parse_size(size, field="size")),
        _attribute("comm_tag", whole("tag", tag, 0, 1 << 62)),
    ]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(tag: int, value: int) -> bytes:
    return _varint(tag << 3) + _varint(value)


def _chunk(tag: int, content: bytes) -> bytes:
    return _varint(tag << 3 | 2) + _varint(len(content)) + content


def _text(tag: int, content: str) -> bytes:
    return _chunk(tag, content.encode())


def _attribute(name: str, value: int) -> bytes:
    """Encode an attribute, whose number is an ``int64``."""
    return _chunk(10, _text(1, name) + _number(9, value))
