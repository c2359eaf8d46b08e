"""A collective by every algorithm at several sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

from hocket import _core
from hocket._checks import check_function, path_of
from hocket._results import ListResult
from hocket.collectives.collective import Progress, StepsOf
from hocket.collectives.sizes import sizes_of
from hocket.comparison.compare import Comparison, compare
from hocket.comparison.crossovers import Crossover, SizeRow, crossovers
from hocket.nccl.prediction import network_and_gpu
from hocket.plans.synthesis import PlanOptions
from hocket.simulation.options import TransferOptions
from hocket.simulation.run import Run
from hocket.topology.sources import TopologyLike
from hocket.units import Quantity, format_size

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hocket.comparison.compare import Keywords


@dataclass(frozen=True, repr=False)
class SizeComparison(ListResult[Comparison]):
    """Comparisons of a collective at several sizes.

    Attributes
    ----------
    comparisons
        One for each size, in the order in which they were asked for.
    """

    _table = "comparisons"

    comparisons: tuple[Comparison, ...]

    @property
    def sizes(self) -> list[int]:
        """The sizes [bytes]."""
        return [each.collective.size for each in self]

    @property
    def title(self) -> str:
        """A description of the comparison."""
        first, sizes = self.comparisons[0], self.sizes
        ends = f"{format_size(min(sizes))} to {format_size(max(sizes))}"
        span = f"{len(self)} sizes from {ends}"
        who = f"{len(first.collective.npus)} NPUs of {first.topology.name}"
        return f"{first.collective.name}, {span}, among {who}"

    @property
    def size_rows(self) -> list[SizeRow]:
        """Algorithm, size [bytes], algbw and the bound of algbw [bytes/s] of each result."""
        rows = []
        for each in self:
            bound, _ = _core.rates(each.collective, each.bound.time_ps)
            size = each.collective.size
            rows += [(entry.algorithm, size, entry.run.algbw, bound) for entry in each]
        return rows

    @cached_property
    def crossovers(self) -> list[Crossover]:
        """The sizes at which another algorithm becomes the fastest, in ascending order."""
        return crossovers(self.size_rows)

    def plot(self, path: str | PathLike[str]) -> None:
        """Draw algbw over size into a .png, .svg or .pdf file, crossovers numbered.

        Raises
        ------
        SpecError
            If the file can be no picture, or cannot be written.
        """
        from hocket.plot.sizes import draw_sizes

        draw_sizes(self.size_rows, path_of("path", path), title=self.title)

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {"size_bytes": each.collective.size, **row} for each in self for row in each._rows()
        ]

    def __repr__(self) -> str:
        return f"<SizeComparison: {self.title}>"


def compare_sizes(
    kind: str,
    topology: TopologyLike,
    sizes: Quantity | Iterable[Quantity],
    *,
    algorithms: Sequence[str] | None = None,
    fidelity: str | TransferOptions = "link",
    options: PlanOptions | None = None,
    on_result: Callable[[str, int, Run], None] | None = None,
    progress: Progress | None = None,
    **keywords: Unpack[Keywords],
) -> SizeComparison:
    """Compare every algorithm that applies at several sizes; each size as :func:`hocket.compare` does.

    Parameters
    ----------
    sizes
        Sizes in bytes or as text: a list, ``"8KB,1MB,256MB"``, or a sweep ``"8K:1G:x4"`` (``"1M:8M:+1M"``).
    kind, topology, algorithms, fidelity, options, on_result, progress, keywords
        As of :func:`hocket.compare`.

    Raises
    ------
    SpecError, InfeasibleError, VerificationError
        As :func:`hocket.compare`; for sizes that are none, and more than 1,000.

    Examples
    --------
    >>> import hocket as hk
    >>> found = hk.compare_sizes("all-reduce", "ring:4@25GB/s,1us", "1K:1M:x32")
    >>> [format(each.size, ",.0f") for each in found.crossovers]
    []
    """
    check_function("progress", progress)
    network, keywords["gpu"] = network_and_gpu(topology, keywords.get("gpu"))
    wanted = sizes_of(sizes)
    made = [
        compare(
            kind,
            network,
            size=size,
            algorithms=algorithms,
            fidelity=fidelity,
            options=options,
            on_result=on_result,
            progress=progress and StepsOf(progress, place, len(wanted), f"{format_size(size)}, "),
            **keywords,
        )
        for place, size in enumerate(wanted)
    ]
    return SizeComparison(tuple(made))
