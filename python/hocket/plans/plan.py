"""Plans: made by an algorithm, read from a file, proved."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hocket import _core
from hocket._checks import instance_of, list_of, path_of
from hocket._memory import checked_limit
from hocket._results import Result, figure
from hocket.collectives.collective import Progress
from hocket.collectives.outcome import OnCollective
from hocket.errors import InfeasibleError, SpecError
from hocket.plans.algorithms import is_synthesized
from hocket.plans.fit import Fit
from hocket.plans.schedule import Schedule, schedule_collective
from hocket.plans.selection import Selection
from hocket.plans.synthesis import Synthesis
from hocket.plans.synthesis.options import checked_routing
from hocket.plans.trees import Trees
from hocket.units import shown

if TYPE_CHECKING:
    from os import PathLike

    import numpy as np
    import pyarrow
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Transfers:
    """The transfers of a plan, as read-only NumPy columns of equal length.

    Attributes
    ----------
    chunk, chunk_count
        First chunk and number of consecutive chunks carried, shape ``(len(plan),)``, ``uint32``.
    src, dst
        Sending and receiving NPU, ``uint32``.
    op
        0 copy, 1 reduce, ``uint8``.
    wait
        What must end first, ``uint32``: ``Plan.NO_WAIT`` nothing; with the high bit set, a group (its
        position below it); otherwise a transfer.
    path
        Position of an explicit path, ``uint32``, or ``Plan.DEFAULT_ROUTE``.
    size_bytes
        Bytes carried, ``uint64`` (computed when asked for).
    """

    chunk: NDArray[np.uint32]
    chunk_count: NDArray[np.uint32]
    src: NDArray[np.uint32]
    dst: NDArray[np.uint32]
    op: NDArray[np.uint8]
    wait: NDArray[np.uint32]
    path: NDArray[np.uint32]
    _plan: _core.Plan = field(repr=False)

    @property
    def size_bytes(self) -> NDArray[np.uint64]:
        """Bytes that each transfer carries."""
        return self._plan.size_bytes

    def __len__(self) -> int:
        return len(self.chunk)


@dataclass(frozen=True)
class _Made(Result):
    """The origin of a plan, as far as it is known."""

    synthesis: Synthesis | None
    trees: Trees | None
    selection: Selection | None


class Plan(OnCollective):
    """The transfers that implement one collective on one topology.

    Made by :func:`hocket.plan` or :meth:`Plan.load`. Immutable.

    Attributes
    ----------
    synthesis
        How it was synthesized; ``None`` for other algorithms.
    trees
        The trees that it was made of, and how good they are; ``None`` likewise.
    selection
        How ``auto`` chose it, and why; ``None`` if an algorithm was named.
    fit
        What it takes of the runtime that it was made for; ``None`` if it was made for none.
    network
        The options of the command line that name its network; ``None`` if it was made otherwise.
    pieces, known
        Into how many pieces its algorithm cut blocks, or each tree's share, where it chose that itself;
        and its run at link fidelity, where it was simulated as it was made or chosen.

    A file keeps the first three and `network`; :meth:`load` reads those that hold of the plan.
    """

    NO_WAIT = _core.Plan.NO_WAIT
    DEFAULT_ROUTE = _core.Plan.DEFAULT_ROUTE

    def __init__(
        self,
        core: _core.Plan,
        schedule: Schedule | None = None,
        synthesis: Synthesis | None = None,
        trees: Trees | None = None,
        selection: Selection | None = None,
        *,
        pieces: int | None = None,
        known: _core.Run | None = None,
    ) -> None:
        if not isinstance(core, _core.Plan):
            right = "plans are made by hk.plan, hk.PlanBuilder, hk.Plan.from_frame and hk.Plan.load"
            raise SpecError("core", f"{shown(core)} is not a plan of the core", right)
        self.core = core
        self.own_schedule = schedule
        self.synthesis = synthesis
        self.trees = trees
        self.selection = selection
        self.pieces = pieces
        self.known = known
        self.fit: Fit | None = None
        self.network: str | None = None

    @property
    @figure(inline=_Made)
    def _made(self) -> _Made:
        return _Made(self.synthesis, self.trees, self.selection)

    @property
    @figure()
    def algorithm(self) -> str:
        """Name of the algorithm that made it."""
        return self.core.algorithm

    @property
    def topology(self) -> _core.Topology:
        """The network it was made for."""
        return self.core.topology

    @property
    def collective(self) -> _core.Collective:
        """The collective that it implements."""
        return self.core.collective

    @property
    @figure("chunk_count")
    def chunks(self) -> int:
        """The number of chunks of the data."""
        return self.core.chunks

    @property
    @figure()
    def link_order(self) -> str:
        """In what order links are meant to serve its transfers: ready, plan or priority."""
        return self.core.link_order

    @property
    @figure()
    def routing(self) -> str:
        """The routing of its transfers over equal paths: balanced, ecmp:SEED, spray or single.

        ``single`` says that nobody spread them: an algorithm's own paths are what it chose.
        """
        return self.core.routing

    def routed(self, routing: str) -> Plan:
        """Spread its transfers over equal paths in another way; see :func:`plan`.

        Returns
        -------
        Plan
            Another plan, not yet verified. Paths that the algorithm chose stay, but for synthesizers',
            which took any of several equal ones.
        """
        routing = checked_routing(routing)
        release = is_synthesized(self.algorithm) and routing != "single"
        return Plan(self.core.routed(routing, release=release), self.own_schedule)

    def selected(self, selection: Selection) -> Plan:
        """Return the same plan as chosen by ``auto``."""
        same = copy(self)
        same.selection = selection
        return same

    @property
    def schedule(self) -> Schedule | None:
        """The schedule of dimensions that it carries out, or ``None`` if there is none."""
        on_dimensions = self.topology.dimensions and not self.topology.groups
        if self.own_schedule is None and self.algorithm == "hierarchical" and on_dimensions:
            lanes = self.chunks // len(self.collective.npus)
            with suppress(InfeasibleError):
                return schedule_collective(
                    self.collective, self.topology, algorithm="hierarchical", chunks=lanes
                )
        return self.own_schedule

    @property
    def nbytes(self) -> int:
        """Memory that the columns take [bytes]."""
        return self.core.nbytes

    @property
    @figure("verified")
    def is_verified(self) -> bool:
        """Whether it has been proved right."""
        return self.core.is_verified

    @property
    @figure("reproducible")
    def is_reproducible(self) -> bool | None:
        """Whether sums come out with the same bits in every timing, rounding included.

        That is so where the waits order every two sums into one value (docs/proof.md); ``None`` as
        long as the plan is not verified.
        """
        return self.core.is_reproducible

    @property
    def transfers(self) -> Transfers:
        """Every transfer, as columns; no copy is made."""
        core = self.core
        return Transfers(
            core.chunk,
            core.chunk_count,
            core.src,
            core.dst,
            core.op,
            core.wait,
            core.path,
            core,
        )

    def verify(self, *, progress: Progress | None = None) -> Plan:
        """Prove that the plan does what its collective asks, whatever the timing.

        Returns
        -------
        Plan
            This plan.

        Raises
        ------
        VerificationError
            With ``.violations``: code, transfer, chunk, NPU and what is wrong.
        """
        _core.verify(self.core, progress=progress)
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plan to a Parquet file, a transfer a row; whole or not at all."""
        from hocket.plans.parquet import save_plan

        save_plan(self, path_of("path", path))

    @staticmethod
    def load(path: str | PathLike[str]) -> Plan:
        """Read a plan that :meth:`save` wrote.

        Returns
        -------
        Plan
            Not yet verified. How it was made is read from the file and checked: the time, the bounds and
            the cuts of trees; of more than 300,000 transfers, that nothing was changed. What does not hold
            is None.

        Raises
        ------
        SpecError
            If the file is missing, truncated, or no plan.
        """
        from hocket.plans.parquet import load_plan

        return load_plan(path_of("path", path))

    def to_frame(self) -> pyarrow.Table:
        """Return the plan as an Arrow table, a transfer a row, for polars, pandas and DuckDB.

        docs/own-plans.md says what its columns hold.
        """
        from hocket.plans.parquet import to_table

        return to_table(self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_frame().__arrow_c_stream__(requested_schema)

    @staticmethod
    def from_frame(
        frame: object,
        topology: _core.Topology,
        collective: _core.Collective,
        *,
        name: str | None = None,
        chunks: int | None = None,
        link_order: str | None = None,
    ) -> Plan:
        """Make a plan of a table, a transfer a row.

        Parameters
        ----------
        frame
            A frame of polars or pandas, an Arrow table, anything else with ``__arrow_c_stream__``, or a
            dict of columns. It needs ``chunk``, ``src``, ``dst`` (NPUs by number or name) and ``op``
            (``copy`` or ``reduce``); docs/own-plans.md has all columns. Without ``wait`` and
            ``wait_group``, transfers wait as those of :class:`hocket.PlanBuilder` do.
        topology, collective
            Where, and what it has to do.
        name
            What it is called; by default as the plan that gave the frame, or ``own``.
        chunks
            Where there is no column ``chunk_sizes``, the even pieces of each demand; by default as few as
            the rows name.
        link_order
            ``"ready"``, ``"plan"`` or ``"priority"``; by default as the plan that gave the frame, or
            ``"ready"``. Frames of polars and pandas keep none.

        Returns
        -------
        Plan
            Not yet verified.

        Raises
        ------
        SpecError
            Naming the column that is missing or wrong.
        """
        from hocket.plans.builder import check_ends
        from hocket.plans.parquet import from_table

        check_ends(topology, collective)
        return from_table(
            frame, topology, collective, name=name, chunks=chunks, link_order=link_order
        )

    @figure("transfers")
    def __len__(self) -> int:
        return len(self.core)

    def __repr__(self) -> str:
        return repr(self.core)


def merge_plans(plans: Sequence[Plan], *, memory_limit: int | None = None) -> Plan:
    """Make one plan that carries out several at once, as of groups that do not know of each other.

    Each keeps its chunks and waits, and its paths unless all are routed in the same way: then equal
    paths are shared out anew among all that is sent. Transfers take turns, plan by plan, so that where
    two are ready for a link at the same time no plan is always served first. Links serve by readiness,
    unless all plans ask for plan order.

    Parameters
    ----------
    plans
        On one topology.
    memory_limit
        Bytes that the work may take; most of the machine's memory by default.

    Returns
    -------
    Plan
        Of one custom collective that has the demands of all of them; not yet verified.

    Raises
    ------
    SpecError
        If there is none, they are of different topologies, or they do not fit in memory.
    """
    several = list_of("plans", plans)
    cores = [instance_of(Plan, "plans", each, "make one by hk.plan(...)").core for each in several]
    return Plan(_core.Plan.merged(cores, checked_limit(memory_limit)))
