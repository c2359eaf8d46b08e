"""How plans for a table are picked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hocket._checks import instance_of, truth
from hocket.errors import SpecError
from hocket.units import shown

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    class TuneKeywords(TypedDict, total=False):
        """The fields of :class:`TuneOptions` as keywords of a call."""

        measure: bool
        rounds: int
        candidates: int
        tolerance: float
        dtype: str
        op: str


_MOST_ROUNDS = 1000
_MOST_CANDIDATES = 100


@dataclass(frozen=True, kw_only=True)
class TuneOptions:
    """How plans for a table are picked.

    Attributes
    ----------
    measure
        Whether the most promising are run between processes of this machine; otherwise the
        prediction decides.
    rounds
        How often each is timed, in turns; the median counts.
    candidates
        How many of those with the best predictions are measured, of each size.
    tolerance
        By what share a plan must be quicker than what runs without a table, or than the pick of the size
        before, to be taken instead.
    dtype, op
        What is summed when it is measured.

    Raises
    ------
    SpecError
        Naming the field, for a value that makes no sense.
    """

    measure: bool = False
    rounds: int = 7
    candidates: int = 4
    tolerance: float = 0.03
    dtype: str = "float32"
    op: str = "sum"

    def __post_init__(self) -> None:
        for name, most in (("rounds", _MOST_ROUNDS), ("candidates", _MOST_CANDIDATES)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise SpecError(name, f"{shown(value)} is not a whole number from 1 to {most}")
        if isinstance(self.tolerance, bool) or not isinstance(self.tolerance, int | float):
            raise SpecError("tolerance", f"{shown(self.tolerance)} is not a number")
        if not 0 <= self.tolerance <= 1:
            raise SpecError("tolerance", f"{shown(self.tolerance)} is not a share from 0 to 1")
        truth("measure", self.measure)
        for name in ("dtype", "op"):
            instance_of(str, name, getattr(self, name), "give a name, such as float32 or sum")
        if not self.measure:
            for name in ("rounds", "dtype", "op"):
                if getattr(self, name) != getattr(TuneOptions, name):
                    why = "only a measurement uses it, and nothing is measured"
                    raise SpecError(name, why, instead=[{"measure": True}])
