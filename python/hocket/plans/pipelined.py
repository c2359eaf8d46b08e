"""All-reduces along trees with many pieces one after another: a plan of one piece of each tree is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hocket import _core
from hocket._checks import check_function
from hocket._core.pipelined import PipelinedPlan as CorePlan
from hocket._core.pipelined import plan_pipelined as core_plan
from hocket._memory import checked_limit
from hocket._options import check_keywords, names_of, options_of
from hocket._results import HIDDEN, said
from hocket.collectives.collective import KEYWORDS as COLLECTIVE_KEYWORDS
from hocket.collectives.collective import Progress, collective_of
from hocket.plans.algorithms import check_options
from hocket.plans.kept import KeptInPart, kept_transfers
from hocket.plans.plan import Plan
from hocket.plans.synthesis import PlanOptions
from hocket.plans.synthesis.make import limited
from hocket.topology.sources import TopologyLike, as_topology

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hocket.plans.symmetric import Keywords

NAME = "trees"
"""The algorithm."""


@dataclass(frozen=True)
class PipelinedPlan(KeptInPart):
    """An all-reduce along trees with many pieces: a plan of one piece of each tree is kept, proved.

    The pieces of a tree follow each other along the same ways. A piece waits for others at links alone, and
    these serve whichever comes first in the plan. So the proof of one piece of each tree proves all: see
    ``docs/proof.md``.

    Attributes
    ----------
    time_ps
        When the whole plan ends at link fidelity [ps]: simulated, or extrapolated from fewer pieces.
    bound_ps, witness
        What no plan is faster than [ps], and what proves it.
    pieces
        Pieces that every tree carries, one after another.
    trees
        How many trees there are.
    simulated
        Numbers of pieces that were simulated, and when they end [ps]: all, or two from which that of
        all is extrapolated.
    block
        The plan of one piece of each tree, proved.
    transfers
        How many transfers the whole plan has.
    collective
        What the whole plan does.
    """

    time_ps: int
    bound_ps: int
    witness: str = field(metadata=said("bound_witness"))
    pieces: int
    trees: int
    simulated: tuple[tuple[int, int], ...]
    block: Plan = field(metadata=said("kept_transfers", of=kept_transfers))
    transfers: int
    collective: _core.Collective = field(metadata=HIDDEN)
    _core_plan: CorePlan = field(repr=False)

    def expand(self, memory_limit: int | None = None) -> Plan:
        """Return the whole plan; :meth:`hocket.Plan.verify` proves it transfer by transfer.

        Raises
        ------
        SpecError
            If it does not fit in `memory_limit` bytes; ``None`` for most of the memory there is.
        """
        return Plan(self._core_plan.expand(checked_limit(memory_limit)))


def plan_pipelined(
    kind: str | _core.Collective,
    topology: TopologyLike,
    *,
    size: int | str | None = None,
    options: PlanOptions | None = None,
    progress: Progress | None = None,
    **keywords: Unpack[Keywords],
) -> PipelinedPlan:
    """Plan an all-reduce among all NPUs of a large network, whole or damaged, along few trees.

    ``hk.plan(..., algorithm="trees")`` gives a whole plan, of fewer pieces.

    Parameters
    ----------
    kind, topology, size
        See :func:`hocket.plan`.
    options
        Of these, `chunks` (pieces that every tree carries), `chunk_size`, `latency`, `time_limit` and
        `memory_limit` are used.
    progress
        Called as ``progress(stage, done, total)``.
    keywords
        `npus` and `in_place`, see :func:`hocket.collective_on`; and any option of
        :class:`hocket.PlanOptions`.

    Raises
    ------
    SpecError
        For input that makes no sense, or more than fits in memory.
    InfeasibleError
        For another collective, for some of the NPUs or fewer than 448, and for one-way links.
    """
    known = (*COLLECTIVE_KEYWORDS, *names_of(PlanOptions))
    check_keywords(keywords, known, ("size", "options", "progress"))
    check_function("progress", progress)
    on = as_topology(topology)
    collective, rest = collective_of(kind, on, size, keywords)
    return pipeline(collective, on, options_of(PlanOptions, options, rest), progress=progress)


def pipeline(
    collective: _core.Collective,
    topology: _core.Topology,
    options: PlanOptions,
    *,
    progress: Progress | None = None,
    bound: Callable[[], _core.Bound] | None = None,
    trees: int | None = None,
) -> PipelinedPlan:
    """As :func:`plan_pipelined`, of a collective that is made, along so many trees.

    `bound` gives the bound where somebody is computing it already.
    """
    check_options(NAME, options)
    with limited(NAME, options, None):
        made = core_plan(
            topology,
            collective,
            pieces=options.slices(collective.size),
            latency=options.latency_model,
            memory_limit=options.limit_bytes,
            trees=trees,
            time_limit=options.seconds,
            progress=progress,
        )
    least = _core.bound(topology, collective) if bound is None else bound()
    block = Plan(made.block)
    return PipelinedPlan(
        time_ps=made.time_ps,
        bound_ps=least.time_ps,
        witness=least.witness,
        pieces=made.pieces,
        trees=block.chunks,
        simulated=tuple(made.simulated),
        block=block,
        transfers=made.transfers,
        collective=collective,
        _core_plan=made,
    )
