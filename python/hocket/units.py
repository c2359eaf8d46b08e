"""Quantities as people write them: ``"200 Gb/s"``, ``"700 ns"``, ``"256 MiB"``.

b is bit, B is byte; k, M, G, T are powers of 1000, Ki, Mi, Gi, Ti of 1024. Inside, bandwidth is whole
bytes per second, time whole picoseconds, size whole bytes. A bare number is refused, and so is what
rounding to whole ones would change: a rate by more than a billionth, a time by more than a thousandth.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

from hocket.errors import SpecError

_NUMBER = re.compile(
    r"\s*([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?)\s*([^\s0-9][^\s]*(?: ?/ ?s)?)?\s*"
)
_LONGEST = 64
_LIMIT = 1 << 63
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
_SIZES = {
    **{f"{prefix}B": Fraction(factor) for prefix, factor in _PREFIXES.items()},
    "byte": Fraction(1),
    "bytes": Fraction(1),
}
_BITS = {f"{prefix}{bit}": factor for prefix, factor in _PREFIXES.items() for bit in ("b", "bit")}
_RATES = {
    **{f"{name}{per}": Fraction(f) for name, f in _SIZES.items() for per in ("/s", "ps")},
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


def parse_size(text: object, *, field: str | None) -> int:
    """Read a size, such as ``"256 MB"``, ``"64KiB"`` or ``"98304 B"`` [bytes].

    Raises
    ------
    SpecError
        Naming ``field``, if it is no size, not positive or not a whole number of bytes.
    """
    value = _parse(text, field, _SIZES, "size", '"256 MB" or "64 KiB"')
    if value.denominator != 1:
        raise SpecError(
            field, f"{text!r} is {float(value):g} bytes", "give a whole number of bytes"
        )
    return int(_positive(value, field, text, "a byte"))


def parse_bandwidth(text: object, *, field: str | None) -> int:
    """Read a bandwidth, such as ``"200 Gb/s"`` or ``"25 GB/s"`` [bytes/s].

    Raises
    ------
    SpecError
        Naming ``field``, if it is no bandwidth, less than one byte per second, or not a whole number of
        bytes per second within a billionth.
    """
    value = _parse(text, field, _RATES, "bandwidth", '"25 GB/s" or "200 Gb/s"')
    return _whole(value, field, text, ("a byte per second", "bytes per second"))


def parse_time(text: object, *, field: str | None) -> int:
    """Read a time, such as ``"700 ns"`` or ``"1.7 us"`` [ps], rounded up.

    Raises
    ------
    SpecError
        Naming ``field``, if it is no time, or rounding would add more than a thousandth of it.
    """
    value = _parse(text, field, _TIMES, "time", '"700 ns" or "1.7 us"')
    whole = -(-value.numerator // value.denominator)
    if whole - value > value * _LATER:
        raise SpecError(
            field, f"{text!r} is {float(value):.12g} picoseconds", "give a whole number of them"
        )
    return whole


def parse_frequency(text: object, *, field: str | None) -> int:
    """Read a frequency, such as ``"1 GHz"`` or ``"940 MHz"`` [Hz].

    Raises
    ------
    SpecError
        Naming ``field``, if it is no frequency, less than one hertz, or not a whole number of hertz within
        a billionth.
    """
    value = _parse(text, field, _FREQUENCIES, "frequency", '"1 GHz" or "940 MHz"')
    return _whole(value, field, text, ("a hertz", "hertz"))


def parse_operations(text: object, *, field: str | None) -> int:
    """Read operations per second, such as ``"312 TFLOP/s"`` [FLOP/s].

    Raises
    ------
    SpecError
        Naming ``field``, if it is none, less than one a second, or not a whole number a second within a
        billionth.
    """
    right = '"312 TFLOP/s" or "1.5 PFLOP/s"'
    value = _parse(text, field, _OPERATIONS, "speed", right)
    return _whole(value, field, text, ("an operation per second", "operations per second"))


def parse_count(value: object, *, field: str | None) -> int:
    """Read a large count, such as ``13_000_000_000``, ``13e9`` or ``"13e9"``, which has no unit.

    Raises
    ------
    SpecError
        Naming ``field``, if it is no whole number from 1 to 2^63 - 1.
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
        raise SpecError(field, f"{shown(value)} is no whole number", right)
    if not 1 <= number < _LIMIT:
        size = "small" if number < 1 else "large"
        raise SpecError(field, f"{shown(value)} is too {size}", right)
    return int(number)


def _parse(
    text: object, field: str | None, units: dict[str, Fraction], what: str, right: str
) -> Fraction:
    if text is None:
        raise SpecError(field, "there is no value", f"write a {what} as {right}")
    is_number = isinstance(text, int) or (isinstance(text, float) and math.isfinite(text))
    if is_number and not isinstance(text, bool):
        raise SpecError(field, f"{shown(text)} has no unit", f"write a {what} as {right}")
    match = _NUMBER.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
    if match is None:
        negative = isinstance(text, str) and _NUMBER.fullmatch(text.strip().removeprefix("-"))
        wrong = "is negative" if negative and len(str(text)) <= _LONGEST else f"is no {what}"
        raise SpecError(field, f"{shown(text)} {wrong}", f"write it as {right}")
    number, unit = match.group(1), (match.group(2) or "").replace(" ", "")
    if not unit:
        raise SpecError(field, f"{text!r} has no unit", f"write a {what} as {right}")
    if unit not in units:
        raise SpecError(
            field,
            f"{text!r}: {unit!r} is no unit of {what}{_hint(unit, what)}",
            f"write it as {right}",
        )
    value = Fraction(number) * units[unit]
    if value >= _LIMIT:
        raise SpecError(field, f"{text!r} is too large", f"write a {what} as {right}")
    return value


def _hint(unit: str, what: str) -> str:
    if what in ("time", "frequency", "speed") or unit.lower() not in {
        name.lower() for name in (*_SIZES, *_RATES, *_BITS)
    }:
        return ""
    return " (b is bit, B is byte)"


def _positive(value: Fraction, field: str | None, text: object, least: str) -> Fraction:
    if value < 1:
        wrong = "0; give it more than 0" if value == 0 else f"less than {least}; give it more"
        raise SpecError(field, f"{text!r} is {wrong}")
    return value


def _whole(value: Fraction, field: str | None, text: object, names: tuple[str, str]) -> int:
    """Give a rate as a whole number; ``names`` say what one of them is, and several."""
    least, many = names
    whole = round(_positive(value, field, text, least))
    if abs(whole - value) > value * ROUNDING:
        raise SpecError(
            field, f"{text!r} is {float(value):.12g} {many}", "give a whole number of them"
        )
    return whole


def printable(text: str) -> str:
    """Give a text of one line for a terminal: what would steer it, or hide, stands there as in Python."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shown(value: object) -> str:
    """Give a wrong value for a message: in one line, cut where it is long."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        return "a number of thousands of digits"
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def format_size(size: int) -> str:
    """Write a size [bytes] with a unit: ``256 MB``, ``64 KiB`` where that is a whole number."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor and size % factor == 0 and size % 1000:
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
