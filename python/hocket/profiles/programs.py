"""The programs of nccl-tests: what each measures, and what of its lines tells it from the others.

References
----------
NVIDIA/nccl-tests, src/*.cu and doc/PERFORMANCE.md: how a program computes busbw.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hocket.errors import SpecError, listed
from hocket.units import shown

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,2})?")
NONE = ("N/A", "nan", "-nan", "inf", "-inf")
_LEAST, _MOST = 1e-3, 1e12
"""Microseconds that are taken for a time."""
_SLACK = 0.01
"""Share by which a rate may differ from size over time: of both, no more digits are printed."""


@dataclass(frozen=True)
class Program:
    """The measurements of an nccl-tests program, and the meaning of its lines.

    Attributes
    ----------
    kind
        The collective; of one that has no model here, why it is left out.
    sums
        Whether its column ``redop`` names an operation; ``None`` if it may or may not.
    is_rooted
        Whether its column ``root`` names a rank.
    factor
        Busbw over algbw among so many ranks; ``None`` if it differs from run to run.
    """

    kind: str
    sums: bool | None
    is_rooted: bool
    factor: Callable[[int], float] | None
    is_modelled: bool = True


def _share(ranks: int) -> float:
    return (ranks - 1) / ranks


def _twice(ranks: int) -> float:
    return 2 * _share(ranks)


def _one(_: int) -> float:
    return 1.0


_NO_MODEL = "whose collective has no model here"
PROGRAMS = {
    "all_reduce": Program("all-reduce", True, False, _twice),
    "all_gather": Program("all-gather", False, False, _share),
    "reduce_scatter": Program("reduce-scatter", True, False, _share),
    "broadcast": Program("broadcast", False, True, _one),
    "reduce": Program("reduce", True, True, _one),
    "alltoall": Program("all-to-all", False, False, _share),
    "sendrecv": Program("send-receive", None, False, _one),
    "gather": Program(_NO_MODEL, False, True, _share, False),
    "scatter": Program(_NO_MODEL, False, True, _share, False),
    "alltoallv": Program("whose parts differ in size", False, False, None, False),
    "hypercube": Program(
        "which is an all-gather of the test's own and no call of the library",
        False,
        False,
        _one,
        False,
    ),
}
COLLECTIVES = {name: each.kind for name, each in PROGRAMS.items() if each.is_modelled}
"""What nccl-tests calls a collective, and what hocket does."""


@dataclass(frozen=True)
class Time:
    """A time of a row and the rates beside it, as printed; ``wrong`` says which results were wrong."""

    text: str
    in_place: bool
    algbw: str
    busbw: str
    wrong: str


@dataclass(frozen=True)
class Row:
    """A row of a table; ``redop`` and ``root`` are ``None`` in versions that have no such column."""

    line: int
    size: int
    redop: str | None
    root: int | None
    times: tuple[Time, ...]


def microseconds(text: str, column: str, where: str) -> float:
    """Read a time [us] as seconds.

    Raises
    ------
    SpecError
        Naming the column, if it is none that a collective takes.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (_LEAST <= value < _MOST):
        right = f"give microseconds from {_LEAST:g} to {_MOST:g}, or leave the row out"
        raise SpecError(column, f"{shown(text)} is not a time", right, where)
    return value * 1e-6


def left_out(name: str) -> str | None:
    """Return why times of a program are left out; ``None`` for those with a model, and unknown ones."""
    program = PROGRAMS.get(name)
    return None if program is None or program.is_modelled else f"of {name}_perf, {program.kind}"


def guessed(rows: Sequence[Row], npus: int, where: str) -> str:
    """Return the only program that prints such lines.

    Raises
    ------
    SpecError
        If none does, or several do.
    """
    able = [
        name
        for name, program in PROGRAMS.items()
        if program.factor and all(_against(row, program, npus) is None for row in rows)
    ]
    if len(able) == 1:
        return able[0]
    names = [f"{name}_perf" for name in able]
    why = "no line says which collective it is" + (f": {listed(names)}" if able else "")
    example = names[0] if able else "all_reduce_perf"
    raise SpecError(None, why, f'write it in the file before its ranks, as "# {example}"', where)


def check_row(row: Row, program: Program, what: tuple[str, int], where: str) -> None:
    """Check that a row is one of a program, and that its rates follow from size and time.

    Parameters
    ----------
    what
        The program, and among how many ranks it ran.

    Raises
    ------
    SpecError
        Naming what contradicts the program.
    """
    name, npus = what
    why = _against(row, program, npus)
    if why is not None:
        right = "keep the lines of all ranks, and each run's own name before it"
        if why.startswith("busbw") and all(_is_zero(time.busbw) for time in row.times):
            right = "build nccl-tests with MPI=1, so that processes join"
        raise SpecError(None, f"{why}, which is no {name}_perf among {npus} ranks", right, where)
    for time in row.times if row.size else ():
        if NUMBER.fullmatch(time.algbw) is None or NUMBER.fullmatch(time.text) is None:
            continue
        low, high = _bounds(time.text)
        if high <= 0 or _is_zero(time.algbw):
            continue
        rates = row.size / high / 1e3, row.size / max(low, 1e-9) / 1e3
        if not _may_equal(_bounds(time.algbw), rates, _SLACK):
            why = f"algbw {time.algbw} is not {row.size} bytes in {time.text} us"
            raise SpecError(None, why, "give the log as it was printed", where)


def _against(row: Row, program: Program, npus: int) -> str | None:
    """Describe what of a row no run of a program on so many ranks prints, or return ``None``."""
    if row.redop is not None and program.sums is not None:
        does_sum = row.redop not in ("", "none")
        if does_sum != program.sums:
            return f"redop is {row.redop or 'empty'}"
    if row.root is not None and (row.root >= 0) != program.is_rooted:
        return f"root is {row.root}"
    for time in row.times:
        rates = time.algbw, time.busbw
        if program.factor is None or not all(NUMBER.fullmatch(each) for each in rates):
            continue
        factor = program.factor(npus)
        low, high = _bounds(time.algbw)
        if not _may_equal(_bounds(time.busbw), (low * factor, high * factor), 1e-6):
            return f"busbw {time.busbw} beside algbw {time.algbw}"
    return None


def _is_zero(text: str) -> bool:
    return NUMBER.fullmatch(text) is not None and float(text) == 0


def _bounds(text: str) -> tuple[float, float]:
    """Return the least and the largest number that is printed so."""
    digits, _, power = text.lower().partition("e")
    half = 0.5 * 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    return float(text) - half, float(text) + half


def _may_equal(one: tuple[float, float], other: tuple[float, float], slack: float) -> bool:
    """Return whether two numbers, each between two, may differ by no more than a share."""
    least = slack * max(abs(one[1]), abs(other[1]))
    return one[0] <= other[1] + least and other[0] <= one[1] + least
