"""Keys of a sweep file: what values each takes, how they are read, and which column they fill."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from hocket._checks import instance_of, is_decimal, truth, whole
from hocket._options import declared
from hocket.collectives.collective import kind_of
from hocket.collectives.custom import is_own
from hocket.collectives.sizes import sizes_of
from hocket.errors import Error, SpecError
from hocket.plans.algorithms import check_name
from hocket.plans.synthesis import PlanOptions
from hocket.units import parse_bandwidth, parse_size, parse_time, parse_written, shown

Value: TypeAlias = str | int | float | bool | tuple[str, ...]
"""What a key may have at a point; texts are names in a list, such as of what has failed."""
Column: TypeAlias = Literal["text", "whole", "number", "truth"]
"""Types of columns: string, 64-bit integer, double, boolean."""

MOST_OF_RANGE = 1_000_000
"""How many whole numbers a range may have."""


@dataclass(frozen=True)
class Key:
    """A key of a command.

    Attributes
    ----------
    column
        The type of its column.
    read
        Reads one value; its error has no field.
    several
        Reads a text that stands for several values, such as ``8K:1G:x4``; None where there are none.
    is_list
        Whether one value is itself a list, as what has failed.
    """

    column: Column
    read: Callable[[object], Value]
    several: Callable[[str], list[Value]] | None = None
    is_list: bool = False

    def cell(self, value: Value | None) -> str | int | float | bool | None:
        """Return a value as it stands in its column."""
        return " ".join(value) if isinstance(value, tuple) else value


def text(value: object) -> str:
    """Read a text, in one line."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise SpecError(None, f"{shown(value)} is not text", "write it in quotes if it is a name")
    return value


def words(check: Callable[[str], object]) -> Key:
    """Return a key of texts that `check` accepts."""

    def read(value: object) -> str:
        given = text(value)
        bare(check, given)
        return given

    return Key("text", read)


def flags(check: Callable[[bool], object] = bool) -> Key:
    """Return a key of truth values."""

    def read(value: object) -> bool:
        if not isinstance(value, bool):
            right = "write true or false"
            raise SpecError(None, f"{shown(value)} is neither true nor false", right)
        bare(check, truth("value", value))
        return value

    return Key("truth", read)


def numbers(check: Callable[[float], object] = float) -> Key:
    """Return a key of numbers."""

    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise SpecError(None, f"{shown(value)} is not a number", "write one, such as 0.5")
        bare(check, value)
        return float(value)

    return Key("number", read)


def wholes(check: Callable[[int], object] = int, *, least: int = 0, most: int = 2**63 - 1) -> Key:
    """Return a key of whole numbers, of which ``0:9:+1`` and ``1:64:x2`` are several."""

    def read(value: object) -> int:
        try:
            number = whole_of(value, least, most)
        except SpecError as wrong:
            try:
                bare(check, value)
            except SpecError as told:  # its words say what it is a number of
                raise told from None
            except (TypeError, ValueError):
                pass
            raise wrong from None
        bare(check, number)
        return number

    def several(given: str) -> list[Value]:
        return [read(each) for each in _range(given)]

    return Key("whole", read, several)


def whole_of(value: object, least: int, most: int) -> int:
    """Read a whole number within bounds."""
    try:
        return whole("value", value, least, most)
    except SpecError as error:
        raise error.but(field=None) from None


def quantities(check: Callable[[str], object]) -> Key:
    """Return a key of texts with a unit that `check` accepts."""

    def read(value: object) -> str:
        bare(check, value)
        return text(value)

    return Key("text", read)


def bare(check: Callable[[Any], object], value: object) -> object:
    """Check a value; the error names no field, since the key stands before it."""
    try:
        return check(value)
    except Error as error:
        raise SpecError(None, error.why, error.remedy) from None


def _range(given: str) -> Iterable[int]:
    """Read ``begin:end``, ``begin:end:+step`` or ``begin:end:xfactor``."""
    right = "write begin:end:+step or begin:end:xfactor, as 0:9:+1 or 1:64:x2"
    parts = [part.strip() for part in given.split(":")]
    step = parts[2] if len(parts) == 3 else "+1"
    digits = [*parts[:2], step[1:]]
    is_range = len(parts) in (2, 3) and step[:1] in ("+", "x", "*")
    if not is_range or not all(is_decimal(each, 18) for each in digits):
        raise SpecError(None, f"{shown(given)} is no range of whole numbers", right)
    begin, end, by = map(int, digits)
    if end < begin:
        raise SpecError(None, f"{shown(given)} ends before it begins", right)
    if step[0] != "+" and begin == 0:
        raise SpecError(None, f"{shown(given)} multiplies 0", "begin at 1 or more")
    if by < (1 if step[0] == "+" else 2):
        wrong = f"{shown(given)} never gets further"
        raise SpecError(None, wrong, "give a step of +1 or more, or a factor of x2 or more")
    if step[0] == "+":
        count = (end - begin) // by + 1
        if count > MOST_OF_RANGE:
            limit = f"a range has at most {MOST_OF_RANGE:,}"
            raise SpecError(None, f"{shown(given)} has {count:,} numbers", limit)
        return range(begin, end + 1, by)
    found = [begin]
    while found[-1] * by <= end:
        found.append(found[-1] * by)
    return found


def _sizes(given: str) -> list[Value]:
    try:
        return list(sizes_of(given))
    except SpecError as error:
        raise error.but(field=None) from None


def _size(value: object) -> int:
    return parse_size(value, field=None)


def _parts(
    value: object, read: Callable[[list[str]], object], what: str, right: str
) -> tuple[str, ...]:
    """Check texts that name parts of a network, one or a list, and give them."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list):
        raise SpecError(None, f"{shown(value)} is no list of {what}", right)
    bare(read, items)
    return tuple(" ".join(each.split()) for each in items)


def _failures(value: object) -> tuple[str, ...]:
    from hocket.topology.text import read_failures

    right = "write [gpu0, 'gpu1,gpu2'], or [] where nothing has failed"
    return _parts(value, read_failures, "devices and links", right)


def _slow(value: object) -> tuple[str, ...]:
    from hocket.topology.slow import read_slow

    right = "write [nic0=50Gb/s], or [] where nothing is slow"
    return _parts(value, read_slow, "slow devices and links", right)


def _collective(given: str) -> None:
    if not is_own(given):
        kind_of(given)


def _groups(given: str) -> None:
    if ".json" in given:
        why = f"{shown(given)} is a file, and points are run elsewhere"
        raise SpecError(None, why, "write words, as dp=2,tp=4")


def _algorithm(name: str) -> None:
    if name.endswith(".py") or ".py:" in name:
        why = f"{shown(name)} is a file"
        raise SpecError(None, why, "register the algorithm by an entry point, and give its name")
    if not name.startswith("schedule:"):
        check_name(name)


def _training_algorithm(name: str) -> None:
    if name not in ("ideal", "none"):
        _algorithm(name)


def _rate(value: object) -> int:
    return parse_written(parse_bandwidth, value, field=None)


def _rates(value: str) -> None:
    instance_of(str, "value", value, "write it with a unit")
    for each in value.split(","):
        _rate(each)


def _delays(value: str) -> None:
    instance_of(str, "value", value, "write it with a unit")
    for each in value.split(","):
        _delay(each)


def _delay(value: object) -> int:
    return parse_written(parse_time, value, field=None)


def _of(kind: Callable[..., object], field: str) -> Callable[[Any], object]:
    """Check a value as a field of options."""
    return lambda value: kind(**{field: value})


def _parallel(given: str) -> None:
    from hocket.training.parallel import Parallel

    Parallel.parse(given)


def anything(value: object) -> object:
    """Accept what the library checks at each point, since it depends on the network."""
    return value


def of_options(kind: type, but: Container[str] = ()) -> dict[str, Key]:
    """Return the keys that the options of a class are, but some."""
    readers = (wholes, words, numbers, flags)
    plain: dict[type, Callable[..., Key]] = dict(zip((int, str, float, bool), readers, strict=True))
    units = {"SIZE": SIZE, "TIME": DELAY, "RATE": RATE}
    return {
        each.name: units.get(each.unit) or plain[each.kind](_of(kind, each.name))
        for each in declared(kind).values()
        if each.name not in but
    }


SIZE = Key("whole", _size, _sizes)
TEXT = words(anything)
FAILED = Key("text", _failures, is_list=True)
SLOW = Key("text", _slow, is_list=True)
PARALLEL = words(_parallel)
RATE = quantities(_rate)
DELAY = quantities(_delay)
SEED = wholes(_of(PlanOptions, "seed"))

NETWORK: Mapping[str, Key] = {
    "topology": TEXT,
    "bandwidth": quantities(_rates),
    "latency": quantities(_delays),
    "failed": FAILED,
    "slow": SLOW,
    "groups": TEXT,
}
"""Where: as ``--topology`` and its companions."""

TASK: Mapping[str, Key] = {
    "collective": words(_collective),
    "size": SIZE,
    "npus": TEXT,
    "root": TEXT,
    "process_groups": words(_groups),
}
"""What is to be done."""

PLANNING: Mapping[str, Key] = {
    "algorithm": words(_algorithm),
    **of_options(PlanOptions, but=("memory_limit",)),
}
"""How plans are made."""


def training_algorithm() -> Key:
    """Return the key of the algorithm of all collectives of a training."""
    return words(_training_algorithm)
