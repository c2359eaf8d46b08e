"""Values from bytes: the first bytes decide first, and what is spent gives zeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """Draws values from bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        """Give so many bytes, or as many as are left."""
        taken = self._data[self._at : self._at + count]
        self._at += len(taken)
        return taken

    def rest(self) -> bytes:
        """Give what has not been drawn yet."""
        return self.take(len(self._data))

    def below(self, count: int) -> int:
        """Give a number below ``count``, which is 1 to 256."""
        return (self.take(1) or b"\0")[0] % count

    def word(self) -> int:
        """Give a number of 64 bits."""
        return int.from_bytes(self.take(8), "little")

    def one_of(self, values: Sequence[T]) -> T:
        """Give one of some values."""
        return values[self.below(len(values))]

    def text(self) -> str:
        """Give up to 15 characters, whatever they are."""
        return self.take(self.below(16)).decode("utf-8", errors="replace")


ODD: tuple[object, ...] = (
    None, True, 0, 1, -1, 2, 1.5, 1 << 31, 1 << 32, 1 << 63, 1 << 64, 10**400, -(1 << 63), 1e308,
    float("inf"), float("nan"), "", " ", "x", "1", "0", "é", "\x1b[31m", "a\nb", "npu0", "9" * 30, [],
    [1], {}, {"a": 1}, [[]], "1 GB/s", "1 us", "1 MB", "ring", "1e999 TB", "\ud800", b"x",
)  # fmt: skip
"""What a value may be that should be another."""
