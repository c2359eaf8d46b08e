"""Writes execution traces: what each rank does, as Chakra files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from hocket._checks import check_name, list_of, path_of, whole
from hocket._core.chakra import Writer
from hocket.collectives.collective import spelled
from hocket.errors import SpecError
from hocket.files.atomic import replacing
from hocket.traces.files import CALLS
from hocket.units import Quantity, parse_size, parse_time, shown

_MAX_POSITION = 1 << 32
_CALL = {name: number for number, name in CALLS.items()}


@dataclass(frozen=True)
class _Step:
    """The common fields of steps: a name, and the earlier steps of the rank that must end first.

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
    writer, contents = Writer(), []
    for rank, steps in enumerate(list_of("ranks", ranks)):
        for number, step in enumerate(list_of(f"ranks[{rank}]", steps)):
            try:
                _add(writer, number, step)
            except SpecError as error:
                raise error.within(f"rank {rank}, step {number}") from None
        contents.append(writer.take())
    if not contents:
        raise SpecError("ranks", "there is none", "give the steps of one or more")
    paths = [Path(f"{start}.{rank}.et") for rank in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        with replacing(path) as temporary:
            temporary.write_bytes(content)
    return paths


def _add(writer: Writer, number: int, step: object) -> None:
    if not isinstance(step, _Step):
        right = "give a Compute, Call, Send or Receive of hk.traces"
        raise SpecError(None, f"{shown(step)} is not a step", right)
    check_name(step.name)
    given = ([number - 1] if number else []) if step.after is None else step.after
    after = [whole("after", each, 0, _MAX_POSITION) for each in given]
    for each in after:
        if each >= number:
            raise SpecError(
                "after", f"{each} is not an earlier step", f"steps are 0 to {number - 1}"
            )
    if isinstance(step, Compute):
        time_ps = parse_time(step.time, field="time")
        if time_ps % 1_000_000:
            why = f"{shown(step.time)} is not a whole number of microseconds"
            raise SpecError("time", why, "a trace has no others: round it")
        writer.compute(number, step.name, after, time_ps // 1_000_000)
    elif isinstance(step, Call):
        kind = spelled(step.kind)
        if kind not in _CALL:
            right = f"kinds are {', '.join(_CALL)}"
            raise SpecError("kind", f"there is no collective {shown(step.kind)}", right)
        size = 0 if kind == "barrier" else parse_size(step.size, field="size")
        group = None if step.group is None else whole("group", step.group, 0, 1 << 62)
        writer.call(number, step.name, after, _CALL[kind], size, group)
    elif isinstance(step, Send):
        writer.send(number, step.name, after, *_message("to", step.to, step.size, step.tag))
    else:
        assert isinstance(step, Receive), "there are four kinds of steps"
        peer = _message("source", step.source, step.size, step.tag)
        writer.receive(number, step.name, after, *peer)


def _message(field: str, rank: int, size: Quantity, tag: int) -> tuple[int, int, int]:
    peer = whole(field, rank, 0, _MAX_POSITION)
    return peer, parse_size(size, field="size"), whole("tag", tag, 0, 1 << 62)
