"""Arrays as bytes: what they hold, and whether they may be written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hocket.errors import SpecError

Bytes = npt.NDArray[np.uint8]

DTYPES = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
}
"""Types of numbers that are summed, and their bytes."""

OPERATIONS = ("sum", "product", "min", "max", "average")
"""What is done to numbers of several ranks."""

_PLAIN = {np.dtype(name): name for name in DTYPES if not name.startswith(("bfloat", "float8"))}
"""Types that NumPy has: to look one up is quicker than to ask for its name."""

OF_BOOLS = {"sum": "max", "product": "min"}
"""What is done to truth values: their sum is whether any is true, their product whether all are."""

_MADE_OF = {"complex64": "float32", "complex128": "float64"}


@dataclass(slots=True)
class Numbers:
    """An array as a call takes it.

    Parameters
    ----------
    array
        The array, its elements next to each other.
    dtype
        Type of its numbers, a key of :data:`DTYPES`.
    """

    array: npt.NDArray[Any]
    dtype: str

    @property
    def bytes(self) -> Bytes:
        """Its bytes, a view."""
        return self.array.reshape(-1).view(np.uint8)

    @property
    def count(self) -> int:
        """The count of its numbers; a complex one is two."""
        return self.array.nbytes // DTYPES[self.dtype]

    def empty(self, shape: tuple[int, ...]) -> Numbers:
        """Return another of the same type."""
        return Numbers(np.empty(shape, self.array.dtype), self.dtype)

    def copy(self) -> Numbers:
        """Return one of its own with the same numbers."""
        return Numbers(self.array.copy(), self.dtype)


def numbers(name: str, given: object, dtype: str | None, op: str | None = None) -> Numbers:
    """Read an argument that is only read: elements that are not next to each other are copied.

    Parameters
    ----------
    name
        Of the argument.
    given
        An array of NumPy, or anything with DLPack or the buffer protocol.
    dtype
        What its elements are, where NumPy does not know: ``bfloat16`` in ``uint16``.
    op
        What is done to them; ``None`` if they are only moved.

    Raises
    ------
    SpecError
        If it is no array, or holds what cannot be moved or summed.
    """
    array = _array(name, given)
    kind = _PLAIN.get(array.dtype) if dtype is None else None
    if kind is None:
        kind = _kind(name, array, dtype, op)
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array).reshape(array.shape)
    return Numbers(array, kind)


def target(name: str, given: object, like: Numbers, shape: tuple[int, ...]) -> Numbers:
    """Read an argument that is written: it must have a shape, the type of another, and lie in one piece.

    Raises
    ------
    SpecError
        If it does not.
    """
    if isinstance(given, np.generic):
        raise SpecError(name, "is a number, which cannot be written", "give an array")
    array = _array(name, given)
    if array.shape != shape:
        raise SpecError(name, f"has shape {array.shape}", f"it must be {shape}")
    if array.dtype != like.array.dtype:
        raise SpecError(name, f"is of {array.dtype}", f"it must be of {like.array.dtype}")
    check_writable(name, array)
    return Numbers(array, like.dtype)


def check_writable(name: str, array: npt.NDArray[Any]) -> None:
    """Refuse an array that cannot be written in one piece.

    Raises
    ------
    SpecError
        If it is read-only, or its elements are not next to each other.
    """
    if not array.flags.writeable:
        raise SpecError(name, "is read-only", "give an array that can be written")
    if not array.flags.c_contiguous:
        raise SpecError(
            name, "its elements are not next to each other", "give a contiguous array, or copy it"
        )


def check_op(op: str) -> None:
    """Refuse what is not an operation.

    Raises
    ------
    SpecError
        If it is none of :data:`OPERATIONS`.
    """
    if op not in OPERATIONS:
        raise SpecError("op", f"{op!r} is not an operation", f"one of {', '.join(OPERATIONS)}")


def _array(name: str, given: object) -> npt.NDArray[Any]:
    if isinstance(given, np.ma.MaskedArray):
        raise SpecError(name, "has a mask, which cannot be sent", "give its data, or fill it")
    if isinstance(given, np.ndarray | np.generic):
        return np.asarray(given)
    try:
        if hasattr(given, "__dlpack__"):
            return np.from_dlpack(given)
        if not isinstance(given, str | list | tuple | int | float):
            return np.asarray(memoryview(given))  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError, BufferError):
        why = "cannot be read as an array in the memory of this host"
        raise SpecError(name, why, "copy it to NumPy") from None
    kind = type(given).__name__
    raise SpecError(name, f"{kind} is not an array", "give NumPy, DLPack or a buffer")


def _kind(name: str, array: npt.NDArray[Any], dtype: str | None, op: str | None) -> str:
    if not array.dtype.isnative:
        raise SpecError(
            name, f"{array.dtype} is not in this machine's order of bytes", "convert it"
        )
    if array.dtype.hasobject:
        raise SpecError(name, "holds objects of Python", "give numbers")
    found = array.dtype.name if dtype is None else dtype
    if found not in DTYPES and dtype is not None:
        raise SpecError("dtype", f"{dtype!r} is not known", f"one of {', '.join(DTYPES)}")
    if dtype is not None and DTYPES[dtype] != array.dtype.itemsize:
        raise SpecError("dtype", f"{dtype} has {DTYPES[dtype]} bytes, {array.dtype} has not")
    if found in DTYPES:
        return found
    if op is None or (found == "bool" and op != "average"):
        return "uint8"
    if found in _MADE_OF and op in ("sum", "average"):
        return _MADE_OF[found]
    raise SpecError(name, f"there is no {op} of {found}", f"give one of {', '.join(DTYPES)}")
