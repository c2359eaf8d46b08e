"""Quantities as people write them, ``"200 Gb/s"``, and as programs compute them, ``25e9``.

In text, b is bit, B is byte; k, M, G, T are powers of 1000, Ki, Mi, Gi, Ti of 1024. Text needs a unit, and
what rounding to whole ones would change is refused: a rate by more than a billionth, a time by more than a
thousandth. A number has the SI unit: bytes per second, seconds, bytes, hertz; it is rounded. Inside,
bandwidth is whole bytes per second, time whole picoseconds, size whole bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import SupportsFloat, TypeAlias

from hocket.errors import SpecError

Quantity: TypeAlias = str | SupportsFloat
"""Text with a unit, or a number in the SI unit: of Python, NumPy, ``fractions`` or ``decimal``."""
Duration: TypeAlias = str | SupportsFloat | timedelta
"""As :data:`Quantity`; a number is in seconds."""

_NUMBER = re.compile(
    r"\s*([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?)\s*([^\s0-9][^\s]*(?: ?/ ?s)?)?\s*"
)
_LONGEST = 64
_LIMIT = 1 << 63
_DIGITS = 100
ROUNDING = Fraction(1, 10**9)
"""By how much a rate may be changed, as a share of it."""
_LATER = Fraction(1, 1000)

_PREFIXES = {
    "": 1,
    "k": 10**3,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
_BYTES = {
    **{f"{prefix}B": Fraction(factor) for prefix, factor in _PREFIXES.items()},
    "byte": Fraction(1),
    "bytes": Fraction(1),
}
_SIZES = {
    **_BYTES,
    **{
        letter: Fraction(2**power)
        for power, letters in ((10, "kK"), (20, "mM"), (30, "gG"))
        for letter in letters
    },
}
_BITS = {f"{prefix}{bit}": factor for prefix, factor in _PREFIXES.items() for bit in ("b", "bit")}
_RATES = {
    **{f"{name}{per}": Fraction(f) for name, f in _BYTES.items() for per in ("/s", "ps")},
    **{f"{name}{per}": Fraction(f, 8) for name, f in _BITS.items() for per in ("/s", "ps")},
}
_FREQUENCIES = {
    f"{prefix}Hz": Fraction(factor)
    for prefix, factor in (("", 1), ("k", 10**3), ("M", 10**6), ("G", 10**9))
}
_OPERATIONS = {
    f"{prefix}{name}": Fraction(10**power)
    for prefix, power in (("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15))
    for name in ("FLOP/s", "FLOPS")
}
_TIMES = {
    "ps": Fraction(1),
    "ns": Fraction(10**3),
    "us": Fraction(10**6),
    "µs": Fraction(10**6),
    "μs": Fraction(10**6),
    "ms": Fraction(10**9),
    "s": Fraction(10**12),
}


@dataclass(frozen=True)
class _Kind:
    """A quantity: its units, how it is written, and the unit of a number."""

    name: str
    units: dict[str, Fraction]
    example: str
    si: Fraction = Fraction(1)


_SIZE = _Kind("size", _SIZES, '"256 MB" or "64 KiB"')
_RATE = _Kind("bandwidth", _RATES, '"25 GB/s" or "200 Gb/s"')
_TIME = _Kind("time", _TIMES, '"700 ns" or "1.7 us"', Fraction(10**12))
_FREQUENCY = _Kind("frequency", _FREQUENCIES, '"1 GHz" or "940 MHz"')
_SPEED = _Kind("speed", _OPERATIONS, '"312 TFLOP/s" or "1.5 PFLOP/s"')


def parse_size(value: object, *, field: str | None) -> int:
    """Read a size, such as ``"256 MB"``, ``"64KiB"``, ``"8K"`` or ``98304`` [bytes].

    A lone ``K``, ``M`` or ``G``, small or not, is a power of 1024, as in the options of nccl-tests
    (``parsesize`` in its ``src/common.cu``).

    Raises
    ------
    SpecError
        Naming ``field``, if it is not a size, not positive or not a whole number of bytes.
    """
    size = _read(value, field, _SIZE)
    if size.denominator != 1:
        raise SpecError(
            field, f"{shown(value)} is {float(size):g} bytes", "give a whole number of bytes"
        )
    return int(_positive(size, field, value, "a byte"))


def parse_bandwidth(value: object, *, field: str | None) -> int:
    """Read a bandwidth, such as ``"200 Gb/s"`` or ``25e9`` [bytes/s].

    Raises
    ------
    SpecError
        Naming ``field``, if it is not a bandwidth, less than one byte per second, or text that is not a
        whole number of bytes per second within a billionth.
    """
    return _whole(value, field, _RATE, ("a byte per second", "bytes per second"))


def parse_time(value: object, *, field: str | None) -> int:
    """Read a time, such as ``"700 ns"``, ``700e-9`` (in seconds) or a ``timedelta`` [ps], rounded up.

    Raises
    ------
    SpecError
        Naming ``field``, if it is not a time, less than a picosecond but not 0, or text that rounding would
        make longer by more than a thousandth.
    """
    time = _read(value, field, _TIME)
    whole = -(-time.numerator // time.denominator)
    if not isinstance(value, str):
        if 0 < time < 1:
            raise SpecError(field, f"{shown(value)} is less than a picosecond", "give it more")
        near = round(time)  # the last digit of a float is not a reason to round up
        return near if abs(near - time) <= time * ROUNDING else whole
    if whole - time > time * _LATER:
        raise SpecError(
            field, f"{value!r} is {float(time):.12g} picoseconds", "give a whole number of them"
        )
    return whole


def parse_frequency(value: object, *, field: str | None) -> int:
    """Read a frequency, such as ``"1 GHz"`` or ``940e6`` [Hz].

    Raises
    ------
    SpecError
        Naming ``field``, if it is not a frequency, less than one hertz, or text that is not a whole
        number of hertz within a billionth.
    """
    return _whole(value, field, _FREQUENCY, ("a hertz", "hertz"))


def parse_operations(value: object, *, field: str | None) -> int:
    """Read operations per second, such as ``"312 TFLOP/s"`` or ``312e12`` [FLOP/s].

    Raises
    ------
    SpecError
        Naming ``field``, if it is none, less than one a second, or text that is not a whole number a second
        within a billionth.
    """
    return _whole(value, field, _SPEED, ("an operation per second", "operations per second"))


def parse_written(read: Callable[..., int], value: object, *, field: str | None) -> int:
    """Read a quantity of a file by one of the functions above: a number there has no unit, and is refused.

    Raises
    ------
    SpecError
        Naming ``field``, if it is a number, or `read` refuses it.
    """
    if _number(value) is None:
        return read(value, field=field)
    kind = _READ_BY[read]
    raise SpecError(field, f"{shown(value)} has no unit", f"write a {kind.name} as {kind.example}")


_READ_BY: dict[Callable[..., int], _Kind] = {
    parse_size: _SIZE,
    parse_bandwidth: _RATE,
    parse_time: _TIME,
    parse_frequency: _FREQUENCY,
    parse_operations: _SPEED,
}


def parse_count(value: object, *, field: str | None) -> int:
    """Read a large count, such as ``13_000_000_000``, ``13e9`` or ``"13e9"``, which has no unit.

    Raises
    ------
    SpecError
        Naming ``field``, if it is not a whole number from 1 to 2^63 - 1.
    """
    right = "give a whole number of 1 or more, such as 13e9"
    number: Fraction | None = None
    if isinstance(value, str) and len(value) <= _LONGEST:
        match = _NUMBER.fullmatch(value)
        number = Fraction(match.group(1)) if match and match.group(2) is None else None
    elif isinstance(value, float):
        number = Fraction(value) if math.isfinite(value) else None
    elif isinstance(value, int) and not isinstance(value, bool):
        number = Fraction(value)
    if number is None or number.denominator != 1:
        raise SpecError(field, f"{shown(value)} is not a whole number", right)
    if not 1 <= number < _LIMIT:
        size = "small" if number < 1 else "large"
        raise SpecError(field, f"{shown(value)} is too {size}", right)
    return int(number)


def _read(value: object, field: str | None, kind: _Kind) -> Fraction:
    """Return a quantity in the unit that is used inside."""
    if value is None:
        raise SpecError(field, "there is no value", f"write a {kind.name} as {kind.example}")
    if isinstance(value, str):
        return _parse(value, field, kind)
    exact = _seconds(value) if kind is _TIME else None
    if exact is None:
        exact = _number(value)
    if exact is None:
        raise SpecError(
            field, f"{shown(value)} is not a {kind.name}", f"write it as {kind.example}"
        )
    if exact < 0:
        raise SpecError(field, f"{shown(value)} is negative", f"write it as {kind.example}")
    return _fitting(exact * kind.si, value, field, kind)


def _parse(text: str, field: str | None, kind: _Kind) -> Fraction:
    what, right, units = kind.name, kind.example, kind.units
    if "," in text and len(text) <= _LONGEST:
        several = [_NUMBER.fullmatch(each) for each in text.split(",")]
        if all(each is not None and each.group(2) in units for each in several):
            raise SpecError(field, f"{text!r} is a list", f"give one {what}, such as {right}")
    match = _NUMBER.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        negative = len(text) <= _LONGEST and _NUMBER.fullmatch(text.strip().removeprefix("-"))
        wrong = "is negative" if negative else f"is not a {what}"
        raise SpecError(field, f"{shown(text)} {wrong}", f"write it as {right}")
    number, unit = match.group(1), (match.group(2) or "").replace(" ", "")
    if not unit:
        raise SpecError(field, f"{text!r} has no unit", f"write a {what} as {right}")
    if unit not in units:
        raise SpecError(
            field,
            f"{text!r}: {unit!r} is not a unit of {what}{_hint(unit, what)}",
            f"write it as {right}",
        )
    return _fitting(Fraction(number) * units[unit], text, field, kind)


def _fitting(exact: Fraction, value: object, field: str | None, kind: _Kind) -> Fraction:
    if exact >= _LIMIT:
        raise SpecError(
            field, f"{shown(value)} is too large", f"write a {kind.name} as {kind.example}"
        )
    return exact


def _number(value: object) -> Fraction | None:
    """Return a finite number exactly, a float as its shortest decimal, or None for other values."""
    if isinstance(value, bool) or _is_span(value):
        return None
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, Decimal):
        if not value.is_finite():
            return None
        far = max(-_DIGITS, min(value.adjusted(), _DIGITS))  # 10 to the billionth fills memory
        return Fraction(
            value if far == value.adjusted() else Decimal(value.is_signed() * -2 + 1).scaleb(far)
        )
    if isinstance(value, Real):
        return Fraction(str(value)) if math.isfinite(value) else None
    return None


def _is_span(value: object) -> bool:
    """Return whether it is NumPy's ``timedelta64``, which counts as a whole number, of any unit."""
    return getattr(getattr(value, "dtype", None), "kind", "") == "m"


def _seconds(value: object) -> Fraction | None:
    """Return a Python or NumPy time span in seconds, or None if the value is not a time span."""
    if isinstance(value, timedelta):
        return Fraction(value // timedelta(microseconds=1), 10**6)
    if _is_span(value):
        span: object = value.item()  # type: ignore[attr-defined]
        if isinstance(span, timedelta):
            return _seconds(span)
        scale = str(value.dtype).removeprefix("timedelta64[").removesuffix("]")  # type: ignore[attr-defined]
        if isinstance(span, int) and scale in ("ns", "ps"):
            return Fraction(span) * _TIMES[scale] / _TIMES["s"]
    return None


def _hint(unit: str, what: str) -> str:
    if what in ("time", "frequency", "speed") or unit.lower() not in {
        name.lower() for name in (*_BYTES, *_RATES, *_BITS)
    }:
        return ""
    return " (b is bit, B is byte)"


def _positive(exact: Fraction, field: str | None, value: object, least: str) -> Fraction:
    if exact < 1:
        wrong = "0; give it more than 0" if exact == 0 else f"less than {least}; give it more"
        raise SpecError(field, f"{shown(value)} is {wrong}")
    return exact


def _whole(value: object, field: str | None, kind: _Kind, names: tuple[str, str]) -> int:
    """Return a rate as a whole number; ``names`` say what one of them is, and several."""
    least, many = names
    exact = _positive(_read(value, field, kind), field, value, least)
    whole = round(exact)
    if isinstance(value, str) and abs(whole - exact) > exact * ROUNDING:
        raise SpecError(
            field, f"{value!r} is {float(exact):.12g} {many}", "give a whole number of them"
        )
    return whole


def counted(number: int, what: str) -> str:
    """Write how many of something there are: ``"1 chunk"``, ``"1,024 chunks"``."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def printable(text: str) -> str:
    """Return text as one line for a terminal; control characters are escaped as in Python."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shown(value: object) -> str:
    """Return a wrong value for a message: in one line, cut where it is long."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = _start_of(value)
    except ValueError:  # an integer of more digits than Python prints
        return "a number of thousands of digits"
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def _start_of(value: object, room: int = _LONGEST + 1) -> str:
    """Return how a value is written, and little more than so many characters of it.

    A value of a stranger's file may hold one list many times over, in levels: written out it has no end.
    """
    if room <= 0:
        return ""
    if type(value) is str:
        return repr(value[:room])
    if type(value) is list or type(value) is tuple:
        begin, end = ("[", "]") if type(value) is list else ("(", ")" if len(value) != 1 else ",)")
    elif type(value) is dict:
        begin, end = "{", "}"
    else:
        return repr(value)
    text = begin
    for each in value:
        if len(text) >= room:
            return text
        text += ", " if len(text) > 1 else ""
        text += _start_of(each, room - len(text))
        if type(value) is dict:
            text += f": {_start_of(value[each], room - len(text))}"
    return text + end


def format_size(size: int) -> str:
    """Write a size [bytes]: ``256 MB``, or ``64 KiB`` where that is whole and of four digits at most."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if factor <= size < 10_000 * factor and size % factor == 0 and size % 1000:
            return f"{size // factor} {unit}"
    return _scaled(size, (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3), ("B", 1)))


def format_estimate(size: int) -> str:
    """Write a size [bytes] that is not exact with a unit and four digits: ``2.391 GB``."""
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.4g} {unit}"
    return f"{size} B"


def format_bandwidth(rate: int) -> str:
    """Write a bandwidth [bytes/s] with a unit: ``25 GB/s``."""
    return _scaled(rate, (("GB/s", 10**9), ("MB/s", 10**6), ("kB/s", 10**3), ("B/s", 1)))


def format_flops(flops: int) -> str:
    """Write operations with a unit: ``4.089 GFLOP``."""
    powers = (("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3), ("", 0))
    return _scaled(flops, tuple((f"{prefix}FLOP", 10**power) for prefix, power in powers))


def format_time_ps(time: int) -> str:
    """Write a time [ps] with a unit: ``1.5 us``."""
    units = (("s", 10**12), ("ms", 10**9), ("us", 10**6), ("ns", 10**3), ("ps", 1))
    return _scaled(time, units)


def _scaled(value: int, units: tuple[tuple[str, int], ...]) -> str:
    for name, factor in units:
        if value >= factor:
            return f"{value / factor:.3f}".rstrip("0").rstrip(".") + f" {name}"
    return f"{value} {units[-1][0]}"
