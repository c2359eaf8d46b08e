"""How far predictions are off: for machines of whose owners nothing was fitted, by class and size.

Each owner was left out of the fit in turn, and then predicted. A fabric that fewer than five owners
published is no class of its own, nor is a box that nobody did; and more than four times the nodes that a
fabric was fitted to count as a fabric that was not. docs/machines-accuracy.md says how often the stated
errors held.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hocket._results import Result
from hocket.profiles.classes import BOX_NPUS

BELOW, FROM = "below 1 MiB", "from 1 MiB"
"""Bands of sizes."""
ONE_BOX, OTHER = "one box", "other machines"
"""Classes of machines; the others are fabrics that several owners published, by name."""
TWO_KNOWN = ", two all-reduces known"
"""What follows a class where the smallest and the largest all-reduce of the machine are fitted."""
FURTHER = 4
"""Times the nodes that a fabric was fitted to, beyond which it counts as one that was not."""
FEWEST_OWNERS = 5
"""Owners below which a fabric is no class of its own."""
_BAND = 1 << 20
_FILE = Path(__file__).parent / "shipped" / "evidence.yml"


@dataclass(frozen=True)
class ExpectedError(Result):
    """How far predictions of a class of machines were off.

    Attributes
    ----------
    of, sizes
        The class of machines, and the band of sizes.
    owners, times
        Who published what was left out, and how many times that were.
    median, factor
        Of how many times as long or as short as predicted times were, from 1 up; each owner weighs the
        same. Half are below the one, and 9 of 10 of an owner who is new below the other.
    """

    of: str
    sizes: str
    owners: int
    times: int
    median: float
    factor: float


@dataclass(frozen=True)
class Evidence:
    """What the shipped classes were fitted to, and how far they were off.

    Attributes
    ----------
    boxes
        By name, how many owners published times of it.
    fabrics
        By name, how many owners did, and on how many nodes at most.
    errors
        By class of machines and band of sizes.
    """

    boxes: Mapping[str, int]
    fabrics: Mapping[str, tuple[int, int]]
    errors: Mapping[tuple[str, str], ExpectedError]

    def class_of(self, box: str, fabric: str, nodes: int, npus: int = 8) -> str:
        """Return the class of so many boxes on a fabric, of so many NPUs each."""
        if box not in self.boxes or (nodes > 1 and npus > BOX_NPUS):
            return OTHER
        if nodes == 1:
            return ONE_BOX
        owners, most = self.fabrics.get(fabric, (0, 0))
        return fabric if owners >= FEWEST_OWNERS and nodes <= FURTHER * most else OTHER

    def of_class(self, of: str, size: int) -> ExpectedError:
        """Return the error to expect of a class of machines at a size [bytes]."""
        band = band_of(size)
        return self.errors.get((of, band)) or self.errors[OTHER, band]

    def narrowed(self, error: ExpectedError) -> ExpectedError | None:
        """Return what two all-reduces of the machine leave of an error, or ``None`` if it gets no less."""
        near = self.errors.get((error.of + TWO_KNOWN, error.sizes))
        return near if near is not None and near.factor < error.factor else None


def band_of(size: int) -> str:
    """Return the band that a size [bytes] is in."""
    return BELOW if size < _BAND else FROM


@cache
def evidence() -> Evidence:
    """Read what the shipped classes were fitted to."""
    from hocket.files.yaml_tree import read_yaml

    values, _ = read_yaml(_FILE)
    errors = [ExpectedError(**each) for each in values["errors"]]
    fabrics = {name: (owners, nodes) for name, (owners, nodes) in values["fabrics"].items()}
    return Evidence(values["boxes"], fabrics, {(each.of, each.sizes): each for each in errors})
