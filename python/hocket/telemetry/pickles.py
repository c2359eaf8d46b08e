"""Pickles of plain data, without running anything: what names code is refused before anything is loaded.

A pickle is a program, and loading one from a stranger runs what it says. Flight Recorder's dumps hold
mappings, lists, texts and numbers alone. So every step of the program is looked at first: only those that
make such values may be there, none that names a class or a function, or calls one.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any

from hocket._memory import check_fits
from hocket.errors import SpecError

_STEPS = (
    "PROTO FRAME STOP MARK POP POP_MARK NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 "
    "LONG4 FLOAT BINFLOAT UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 SHORT_BINBYTES BINBYTES "
    "BINBYTES8 EMPTY_LIST APPEND APPENDS LIST EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT DICT "
    "SETITEM SETITEMS GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT MEMOIZE"
)
_PLAIN = frozenset(_STEPS.split())
_OBJECT = 80
"""Bytes that a value takes, about, beside those of its text; one made by a step alone is the least."""
_MOST = 4 << 30
"""Bytes that all values may take."""
_MADE = ("PUT", "BINPUT", "LONG_BINPUT")
_BROKEN = (
    pickle.UnpicklingError,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


class _Plain(pickle.Unpickler):
    """Loads what names no code; the second lock behind the look at every step."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name}")


def is_pickle(data: bytes) -> bool:
    """Return whether bytes begin as a pickle does, of a version from this century."""
    return data[:1] == b"\x80" and data[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")


def load_plain(data: bytes, origin: str) -> object:
    """Return the values of a pickle.

    Raises
    ------
    SpecError
        Naming file and byte, if it has more than plain data in it, or is cut off.
    """
    right = "give what Flight Recorder dumped, as a pickle or as JSON"
    place = size = 0
    try:
        for number, (step, given, at) in enumerate(pickletools.genops(data)):
            place = at or 0
            size += _OBJECT
            if not number & 0xFFFF:
                check_fits(size, "what is in it", most=_MOST, origin=origin)
            if step.name not in _PLAIN:
                named = f" {str(given)[:60]!r}" if isinstance(given, str) else ""
                why = f"holds more than plain data ({step.name}{named}): loading it could run code"
                raise SpecError(None, why, right, f"{origin}, byte {place}")
            if step.name in _MADE and int(given or 0) > number:
                raise ValueError("a memo out of order")
        return _Plain(io.BytesIO(data)).load()
    except SpecError:
        raise
    except _BROKEN:
        why = "is no whole pickle"
        raise SpecError(None, why, right, f"{origin}, byte {place}") from None
