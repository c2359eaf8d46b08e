"""The options of tuning."""

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
    """The options of tuning.

    Attributes
    ----------
    measure
        Run the most promising plans between processes of this machine, instead of predicting alone.
    rounds
        Number of timed runs of each plan; the median counts.
    candidates
        Number of best predictions that are measured.
    tolerance
        Share by which a plan must be faster than what runs without a table, or than the previous size's
        pick.
    dtype
        Type of the numbers.
    op
        Operation of sums: sum, product, min or max.

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
