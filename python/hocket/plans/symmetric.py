"""Plans by symmetry: of one NPU's block, which a group shifts to the blocks of all others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hocket import _core
from hocket._checks import check_function
from hocket._core.symmetry import SymmetricPlan as CorePlan
from hocket._core.symmetry import plan_symmetric as core_plan
from hocket._memory import checked_limit
from hocket._options import check_keywords, names_of, options_of
from hocket._results import HIDDEN, said
from hocket.collectives.collective import KEYWORDS as COLLECTIVE_KEYWORDS
from hocket.collectives.collective import Progress, collective_of
from hocket.plans.algorithms import check_options
from hocket.plans.kept import KeptInPart, kept_transfers
from hocket.plans.plan import Plan
from hocket.plans.synthesis import PlanOptions
from hocket.plans.trees import Packing, Trees, packing_of
from hocket.topology.sources import TopologyLike, as_topology

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hocket.collectives.collective import CollectiveKeywords
    from hocket.plans.synthesis.options import PlanKeywords

    class Keywords(CollectiveKeywords, PlanKeywords, total=False):
        """The keywords of :func:`plan_symmetric`."""


NAME = "symmetric"
"""The algorithm."""
MOST_TRANSFERS = 2_000_000
"""Transfers of one block up to which more pieces are tried."""

_BOUND_IN_FULL = 2048
"""NPUs up to which a bound looks at all cuts and pairs."""


@dataclass(frozen=True)
class SymmetricPlan(KeptInPart):
    """A plan of one NPU's block, proved, and the group that shifts it to the blocks of all others.

    All shifts together are the plan of the collective. The proof of one block and the check of the group
    prove it: see ``docs/proof.md``. What is kept is one NPU-th of it.

    Attributes
    ----------
    group
        Orders of the cyclic groups whose product takes every NPU to every other.
    orbits
        Kinds of links: the group takes each link to all of its kind, and to no others.
    time_ps
        When the whole plan ends at link fidelity [ps]; where blocks or their chunks
        differ by a byte, at the latest.
    bound_ps, witness
        What no plan is faster than [ps], and what proves it.
    pieces
        Pieces that every tree carries, one after another.
    packings
        The trees of one NPU: of what is summed, and of what is copied.
    block
        The plan of the block, proved: a broadcast of an all-gather, a reduction of a reduce-scatter, an
        all-reduce of an all-reduce.
    transfers
        How many transfers the whole plan has.
    collective
        What the whole plan does.
    """

    group: tuple[int, ...]
    orbits: int
    time_ps: int
    bound_ps: int
    witness: str = field(metadata=said("bound_witness"))
    pieces: int
    packings: tuple[Packing, ...]
    block: Plan = field(metadata=said("kept_transfers", of=kept_transfers))
    transfers: int
    collective: _core.Collective = field(metadata=HIDDEN)
    _core_plan: CorePlan = field(repr=False)

    def expand(self, memory_limit: int | None = None) -> Plan:
        """Return the whole plan; :meth:`hocket.Plan.verify` proves it without the group.

        Raises
        ------
        SpecError
            If it does not fit in `memory_limit` bytes; ``None`` for most of the memory there is.
        """
        trees = Trees(self.time_ps, self.pieces, self.packings)
        return Plan(self._core_plan.expand(checked_limit(memory_limit)), trees=trees)


def plan_symmetric(
    kind: str | _core.Collective,
    topology: TopologyLike,
    *,
    size: int | str | None = None,
    options: PlanOptions | None = None,
    progress: Progress | None = None,
    **keywords: Unpack[Keywords],
) -> SymmetricPlan:
    """Plan an all-gather, a reduce-scatter or an all-reduce where every NPU sees the same network.

    Finds a group that takes every NPU to every other, plans the block of one NPU, proves it and simulates
    it. ``hk.plan(..., algorithm="symmetric")`` gives a whole plan, of fewer pieces.

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
        Where there is no such group, with a link or two NPUs that show it; and for other collectives.
    """
    known = (*COLLECTIVE_KEYWORDS, *names_of(PlanOptions))
    check_keywords(keywords, known, ("size", "options", "progress"))
    check_function("progress", progress)
    on = as_topology(topology)
    collective, rest = collective_of(kind, on, size, keywords)
    return shift(collective, on, options_of(PlanOptions, options, rest), progress=progress)


def shift(
    collective: _core.Collective,
    topology: _core.Topology,
    options: PlanOptions,
    *,
    most_transfers: int = MOST_TRANSFERS,
    progress: Progress | None = None,
) -> SymmetricPlan:
    """As :func:`plan_symmetric`, of a collective that is made; `most_transfers` are those of one block."""
    check_options(NAME, options)
    made = core_plan(
        topology,
        collective,
        pieces=options.slices(collective.size),
        latency=options.latency_model,
        memory_limit=options.limit_bytes,
        most_transfers=most_transfers,
        time_limit=options.seconds,
        progress=progress,
    )
    small = topology.npu_count <= _BOUND_IN_FULL
    bound = _core.bound(topology, collective) if small else made.bound()
    return SymmetricPlan(
        group=tuple(made.orders),
        orbits=made.orbits,
        time_ps=made.time_ps,
        bound_ps=bound.time_ps,
        witness=bound.witness,
        pieces=made.pieces,
        packings=tuple(packing_of(each) for each in made.packings),
        block=Plan(made.block),
        transfers=made.transfers,
        collective=collective,
        _core_plan=made,
    )
