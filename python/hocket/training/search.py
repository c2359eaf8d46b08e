"""The search for the best parallelism: all splits of the NPUs into replicas, tensor and pipeline groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hocket._checks import instance_of, whole
from hocket._options import options_of
from hocket._results import HIDDEN, TableResult
from hocket.collectives.collective import Progress
from hocket.topology.sources import TopologyLike, as_topology
from hocket.training.candidates import AUTO
from hocket.training.comparison import (
    MAX_SAMPLES,
    Refused,
    TrainingRow,
    algorithms_on,
    compare_training,
)
from hocket.training.network import IDEAL
from hocket.training.options import TrainingOptions
from hocket.training.parallel import Parallel
from hocket.workload import as_workload
from hocket.workload.layers import Workload

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hocket.training.options import TrainingKeywords

MAX_SPLITS = 8
"""How many are kept by default."""
_MAX_PASSES = 1 << 17
"""Layers x micro-batches of a split that is tried; a graph of more would take minutes."""

SEARCHED = (1, 10_000)
"""How few and how many of the best splits may be asked for."""


@dataclass(frozen=True, repr=False)
class ParallelSearch(TableResult):
    """Splits of a network's NPUs by how many samples a second they train.

    Attributes
    ----------
    rows
        Those that run, the best first, by one algorithm.
    refused
        Those that do not fit dimensions, layers or memory.
    most
        How many are worth a comparison.
    """

    _table = "rows"

    rows: tuple[TrainingRow, ...]
    refused: tuple[Refused, ...]
    most: int = field(default=MAX_SPLITS, metadata=HIDDEN)

    def __repr__(self) -> str:
        best = f", {self.rows[0].parallel} is best" if self.rows else ""
        return f"<Search: {len(self.rows)} splits that run{best}>"

    @property
    def parallels(self) -> tuple[Parallel, ...]:
        """The best few."""
        return tuple(row.parallel for row in self.rows[: self.most])


def splits(npus: int, batch: int, *, zero: int = 0) -> list[Parallel]:
    """Return every dp x tp x pp of so many NPUs whose replicas share the batch evenly.

    With a pipeline a replica's share is cut into 4 micro-batches for each stage, or as many below that as
    divide it.

    Complexity: O(divisors of ``npus`` squared).
    """
    found = []
    for pp in _divisors(npus):
        for tp in _divisors(npus // pp):
            dp = npus // pp // tp
            if batch % dp:
                continue
            parts = next(n for n in range(4 * pp, 0, -1) if batch // dp % n == 0)
            micro_batches = parts if pp > 1 and parts != 4 * pp else None
            found.append(Parallel(dp=dp, tp=tp, pp=pp, zero=zero, micro_batches=micro_batches))
    return found


def search_parallels(
    workload: Workload | str,
    topology: TopologyLike,
    *,
    batch: int | None = None,
    zero: int = 0,
    most: int = MAX_SPLITS,
    algorithm: str | None = None,
    on_row: Callable[[TrainingRow], None] | None = None,
    progress: Progress | None = None,
    options: TrainingOptions | None = None,
    **keywords: Unpack[TrainingKeywords],
) -> ParallelSearch:
    """Simulate every split of a network's NPUs with one batch, and rank them.

    Parameters
    ----------
    workload, topology
        What is trained on what; all NPUs take part.
    batch
        Samples of an iteration, of all replicas together; by default the options' samples for each NPU,
        whatever the split.
    zero
        Of each split, as of :class:`Parallel`.
    most
        How many are kept.
    algorithm
        By which they are ranked; by default ``ideal`` on whole dimensions, else ``greedy``.
    on_row
        Called after each split that ran.
    options, keywords
        As of :func:`hocket.train`.

    Raises
    ------
    SpecError, InfeasibleError
        If none fits: the reason of the first.

    Pipelines of very many layers x micro-batches are left out.

    Complexity: splits x that of :func:`hocket.train`.
    """
    given = options_of(TrainingOptions, options, keywords)
    topology = as_topology(topology)
    model = as_workload(workload)
    name = topology.name
    npus = topology.npu_count
    whole("most", most, *SEARCHED)
    if batch is None:
        batch = given.samples * npus
    if algorithm is None:
        algorithm = IDEAL if IDEAL in algorithms_on(topology) else AUTO
    instance_of(str, "algorithm", algorithm, "give a name, such as greedy")
    found = splits(npus, whole("batch", batch, 1, MAX_SAMPLES), zero=zero)
    short = [each for each in found if each.parts * len(model.layers) <= _MAX_PASSES]
    compared = compare_training(
        model,
        {name: topology},
        [algorithm],
        short or found[:1],
        batch=batch,
        on_row=on_row,
        progress=progress,
        options=given,
    )
    left_out = [
        Refused(name, topology, each, algorithm, f"parallel: pp={each.pp} is too long to search")
        for each in found
        if each not in short
    ]
    return ParallelSearch(compared.rows, (*compared.refused, *left_out), most)


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]
