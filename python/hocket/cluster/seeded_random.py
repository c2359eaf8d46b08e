"""Random choices that are the same on every version of Python."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class SeededRandom:
    """Chooses by a seed.

    Of ``random.Random`` only ``random()`` is promised to stay as it is for a seed; ``choice``,
    ``sample`` and ``shuffle`` have changed. So everything here is made of ``random()``.
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def below(self, count: int) -> int:
        """Return a number from 0 to ``count - 1``, all as likely."""
        return int(self._random.random() * count)

    def one(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[self.below(len(items))]

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """Return so many of the items, in the order in which they were drawn.

        References
        ----------
        Knuth: The Art of Computer Programming 2, section 3.4.2, algorithm P.
        """
        left = list(items)
        for i in range(count):
            j = i + self.below(len(left) - i)
            left[i], left[j] = left[j], left[i]
        return left[:count]
