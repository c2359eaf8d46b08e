"""Runs: plans in simulated time."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Literal, cast, overload

from hocket import _core
from hocket._checks import check_function, path_of, truth
from hocket._memory import memory_limit
from hocket._results import Column, Result, figure, said
from hocket.collectives.bins import MAX_CELLS, to_bins
from hocket.collectives.collective import Progress
from hocket.collectives.outcome import Outcome
from hocket.collectives.timing import LinkOrder, Switching
from hocket.errors import SpecError
from hocket.plans.algorithms import SCHEDULERS
from hocket.plans.choice import link_run
from hocket.plans.dimension_run import DimensionRun
from hocket.plans.plan import Plan
from hocket.plans.schedule import check_rails
from hocket.simulation.options import (
    DimensionOptions,
    Fidelity,
    FidelityOptions,
    FlowOptions,
    PacketOptions,
    TransferOptions,
    fidelity_options,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from hocket.simulation.options import FidelityKeywords
    from hocket.simulation.structures import Structure


@dataclass(frozen=True)
class BusiestLink(Result):
    """The link that is occupied longest."""

    src: str
    dst: str
    busy_share: float = field(metadata=said(column=Column("busy", leaves=6, decimals=0)))

    def __str__(self) -> str:
        return f"{self.src}→{self.dst}"


@dataclass(frozen=True)
class EqualLinks(Result):
    """Links among which equal paths differ, and how many of them carried nothing."""

    links: int
    idle: int


@dataclass(frozen=True)
class Packets(Result):
    """Options of packet fidelity."""

    packet_bytes: int
    flit_bytes: int
    header_flits: int
    virtual_channels: int
    buffer_flits: int
    cycle_ps: int
    reduction_rate: int | None


def _equal(found: tuple[int, int]) -> EqualLinks:
    return EqualLinks(*found)


class Run(Outcome):
    """The result of a simulation.

    Times are seconds (``float``) unless the name ends in ``_ps`` (whole picoseconds); rates are
    bytes per second.

    Attributes
    ----------
    plan
        What was simulated.
    options
        How.
    """

    def __init__(self, core: _core.Run, plan: Plan, options: TransferOptions) -> None:
        self.core = core
        self.plan = plan
        self.options = options

    @property
    def fidelity(self) -> Fidelity:
        """The fidelity of the simulation."""
        return cast(Fidelity, self.core.fidelity)

    @property
    @figure(inline=Plan)
    def _plan(self) -> Plan:
        return self.plan

    @property
    def cycle_ps(self) -> int | None:
        """A cycle of the routers' clock [ps]; ``None`` but at packet fidelity."""
        return self.core.cycle_ps

    @cached_property
    def lower_bound(self) -> _core.Bound:
        """The lower bound on any plan's time at this fidelity, with its witness."""
        packets = self.options if isinstance(self.options, PacketOptions) else PacketOptions()
        return _core.bound(self.topology, self.collective, self.fidelity, int(packets.flit_size))

    @property
    @figure()
    def order(self) -> LinkOrder | None:
        """In what order links served; ``None`` at flow fidelity, where they serve all at once."""
        return cast(LinkOrder | None, self.core.order)

    @property
    def switching(self) -> Switching:
        """The switching: how messages crossed devices."""
        return cast(Switching, self.core.switching)

    @property
    def time_ps(self) -> int:
        """Collective time: start to last transfer's end [ps]."""
        return self.core.time_ps

    @property
    def collective(self) -> _core.Collective:
        """The collective."""
        return self.plan.collective

    @property
    def topology(self) -> _core.Topology:
        """On what."""
        return self.plan.topology

    @cached_property
    def _report(self) -> _core.Report:
        return _core.report(self.core)

    @property
    def utilization(self) -> float:
        """Bytes moved over all links / (all links' bandwidth x time), 0 to 1."""
        return self._report.utilization

    @property
    @figure("busiest_link", parts=BusiestLink, column=Column("busiest link", leaves=5))
    def _busiest(self) -> BusiestLink | None:
        return None if self.busiest_link is None else BusiestLink(*self.busiest_link)

    @property
    def busiest_link(self) -> tuple[str, str, float] | None:
        """Source and destination of the link occupied longest, and for what share of the time."""
        return self._report.busiest_link

    @property
    @figure(column=Column("max load", leaves=7))
    def max_link_bytes(self) -> int:
        """Most bytes that crossed one link."""
        return self._report.max_link_bytes

    @cached_property
    @figure(of=_equal)
    def equal_links(self) -> tuple[int, int]:
        """Links among which equal paths differ, and how many of them carried nothing."""
        return _core.equal_links(self.core)

    @property
    @figure(column=False)
    def latency_model(self) -> str:
        """The effect of a link's latency on the next message: overlapped or occupying."""
        return self.core.latency_model

    @property
    @figure()
    def packets(self) -> Packets | None:
        """The options of packet fidelity."""
        if not isinstance(self.options, PacketOptions) or self.cycle_ps is None:
            return None
        return Packets(**{**self.options.to_core(), "cycle_ps": self.cycle_ps})  # type: ignore[arg-type]

    @property
    def start_ps(self) -> NDArray[np.uint64]:
        """When each transfer began to occupy its first link [ps], shape ``(len(plan),)``."""
        return self.core.start_ps

    @property
    def end_ps(self) -> NDArray[np.uint64]:
        """When each transfer had arrived whole [ps], shape ``(len(plan),)``."""
        return self.core.end_ps

    @property
    def link_busy_ps(self) -> NDArray[np.uint64]:
        """Time that each link was occupied [ps], shape ``(link_count,)``."""
        return self.core.link_busy_ps

    @property
    def link_bytes(self) -> NDArray[np.uint64]:
        """Bytes that crossed each link, shape ``(link_count,)``."""
        return self.core.link_bytes

    @property
    def used_links(self) -> float:
        """Directed links that carried anything / all of them, 0 to 1."""
        carried = self.link_bytes > 0
        return float(carried.mean()) if len(carried) else 0.0

    @property
    def used_link_share(self) -> float:
        """Mean over all directed links of the share of the time that they were occupied, 0 to 1.

        Without latency, and with chunks of equal size that go in steps, this is link-steps used /
        (steps x links), as "Used Link Percentage" counts: 64 / 224 of an 8x8 mesh for a ring, twice
        that for a bidirectional one, and 64 x 63 / (32 x 224) for MultiTree's trees of 32 steps (the
        published 53 % are 34 steps). No count of ring-2d was found that gives what is published of
        it: where a ring closes over its row this is far from steps of one length, and depends on the
        switching.

        References
        ----------
        Laskar et al.: Enhancing collective communication in MCM accelerators for deep learning
        training (HPCA 2024), table I; figure 12 is its course, the mean over links of :meth:`heat`.
        """
        links = len(self.link_busy_ps)
        return float(self.link_busy_ps.sum()) / max(links * self.time_ps, 1)

    @property
    @figure()
    def median_busy_share(self) -> float:
        """Median over all directed links of the share of the time that each is occupied, 0 to 1."""
        import numpy as np

        busy = self.link_busy_ps
        return float(np.median(busy)) / max(self.time_ps, 1) if len(busy) else 0.0

    def structures(
        self, phase: Literal["reduce", "copy"] | None = None, *, chunk: int | None = None
    ) -> list[Structure]:
        """Find the rings and trees that the plan's chunks take; see :mod:`hocket.simulation.structures`.

        Raises
        ------
        SpecError
            If the run was made without ``keep_services``, or there is no such phase or chunk.
        """
        from hocket.simulation.structures import structures

        return structures(self, phase, chunk=chunk)

    @cached_property
    def _dimension_report(self) -> _core.DimensionReport:
        return _core.dimension_report(self.core)

    def activity(self, bins: int = 100, *, period: str | None = None) -> NDArray[np.float32]:
        """Share of each time bin in which each dimension has activity, 0 to 1.

        A dimension has activity while at least one transfer that takes one of its links is between
        start and end.

        Parameters
        ----------
        bins
            How many bins, equally long.
        period
            Instead of a number, the length of each, such as ``"100 us"``; the last ends with the
            run.

        Returns
        -------
        Shape ``(len(run.dimensions), bins)``.

        Raises
        ------
        SpecError
            If the topology is not a product, or for bins too few or too many.

        References
        ----------
        "Frontend activity rate" of Themis, section 6.1 and figure 9 (period of 100 us).
        """
        number, length = to_bins(self.time_ps, len(self.dimensions), bins, period)
        return _core.activity(self.core, number, length)

    def heat(self, bins: int = 200) -> NDArray[np.float32]:
        """Share of each time bin in which each link was occupied, shape ``(link_count, bins)``.

        Raises
        ------
        SpecError
            If the run was made without ``keep_services``, or for bins too few or too many.
        """
        most = MAX_CELLS // max(self.plan.topology.link_count, 1)
        if type(bins) is not int or not 1 <= bins <= most:
            raise SpecError("bins", f"{bins!r} is not a number of bins", f"give 1 to {most}")
        return _core.heat(self.core, bins)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plan with start and end of every transfer to a Parquet file; whole or not at all."""
        from hocket.simulation.parquet import save_run

        save_run(self, path_of("path", path))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Run:
        """Read what :meth:`save` wrote; its plan is simulated again, with ``keep_services``.

        Raises
        ------
        SpecError
            If the file is no run, or its times are not those of its plan.
        """
        from hocket.simulation.parquet import load_run

        return load_run(path_of("path", path))

    def save_perfetto(self, path: str | PathLike[str]) -> None:
        """Write when each transfer occupied each link, for ui.perfetto.dev: .pftrace or .json.

        Raises
        ------
        SpecError
            If the run was made without ``keep_services``, or the file cannot be written.
        """
        from hocket.simulation.timeline import write_timeline

        write_timeline(path_of("path", path), self)

    def __repr__(self) -> str:
        return f"<Run of {self.plan!r}: {self.time * 1e6:.3f} us>"


@overload
def simulate(
    plan: Plan,
    *,
    fidelity: Fidelity | TransferOptions = "link",
    routing: str | None = None,
    keep_services: bool = False,
    progress: Progress | None = None,
    **keywords: Unpack[FidelityKeywords],
) -> Run: ...


@overload
def simulate(
    plan: Plan,
    *,
    fidelity: Literal["dimension"] | DimensionOptions,
    routing: str | None = None,
    keep_services: bool = False,
    progress: Progress | None = None,
    **keywords: Unpack[FidelityKeywords],
) -> DimensionRun: ...


@overload
def simulate(
    plan: Plan,
    *,
    fidelity: str | FidelityOptions,
    routing: str | None = None,
    keep_services: bool = False,
    progress: Progress | None = None,
    **keywords: Unpack[FidelityKeywords],
) -> Run | DimensionRun: ...


def simulate(
    plan: Plan,
    *,
    fidelity: str | FidelityOptions = "link",
    routing: str | None = None,
    keep_services: bool = False,
    progress: Progress | None = None,
    **keywords: Unpack[FidelityKeywords],
) -> Run | DimensionRun:
    """Simulate a plan; it is verified first if it was not yet.

    Parameters
    ----------
    plan
        The plan.
    fidelity
        ``"link"``, ``"flow"``, ``"packet"``, ``"packet:mcm"`` (a preset) or ``"dimension"``; or the options
        of one: :class:`hocket.LinkOptions`, :class:`hocket.FlowOptions`, :class:`hocket.PacketOptions`,
        :class:`hocket.DimensionOptions`.
    routing
        Spread transfers over equal paths in another way than the plan says, see
        :class:`hocket.PlanOptions`; ``"spray"`` at flow and packet fidelity only.
    keep_services
        Whether to keep every stay on a link, which :meth:`Run.heat` needs.
    progress
        Called as ``progress(stage, done, total)`` during long work.
    keywords
        Options of the fidelity by their names, as ``switching="cut-through"``.

    Raises
    ------
    VerificationError
        If the plan is wrong.
    SimulationError
        If links that serve in plan order wait for each other, or packets for each other's buffers.
    SpecError
        If an option makes no sense or the fidelity does not use it.
    """
    if not isinstance(plan, Plan):
        raise SpecError(
            "plan", f"{plan!r} is not a Plan", "make one by hk.plan(...) or hk.Plan.load(...)"
        )
    truth("keep_services", keep_services)
    check_function("progress", progress)
    options = fidelity_options(fidelity, keywords)
    if isinstance(options, DimensionOptions):
        if routing is not None or keep_services:
            field = "keep_services" if routing is None else "routing"
            raise SpecError(field, "dimension fidelity has no links", "leave it out, or use link")
        return _on_dimensions(plan, options)
    if routing is not None:
        plan = plan.routed(routing)
    return Run(_run(plan, options, keep_services, progress), plan, options)


def _run(
    plan: Plan, options: TransferOptions, keep_services: bool, progress: Progress | None
) -> _core.Run:
    if isinstance(options, FlowOptions):
        rate = None if options.flow_rate is None else int(options.flow_rate)
        return _core.simulate_flows(
            plan.core, flow_rate=rate, keep_services=keep_services, progress=progress
        )
    if isinstance(options, PacketOptions):
        return _core.simulate_packets(
            plan.core,
            **options.to_core(),  # type: ignore[arg-type]
            order=options.order,
            keep_services=keep_services,
            progress=progress,
        )
    if not keep_services and options.order is None and options.switching is None:
        return link_run(plan, options.latency_model, progress)
    return _core.simulate(
        plan.core,
        order=options.order,
        switching=options.switching,
        latency=options.latency_model,
        keep_services=keep_services,
        progress=progress,
    )


def _on_dimensions(plan: Plan, options: DimensionOptions) -> DimensionRun:
    check_rails(plan.topology)
    schedule = plan.schedule
    if schedule is None:
        raise SpecError(
            "fidelity",
            f"{plan.algorithm} schedules no dimensions",
            f"{', '.join(SCHEDULERS)} do, or use link",
        )
    if any(offload for *_, offload in plan.topology.dimensions):
        raise SpecError(
            "fidelity",
            "switches sum (offload), which no plan makes use of",
            "simulate a schedule, as by `hocket plan --dimension-only`, or use link",
        )
    if plan.link_order != "plan":
        raise SpecError(
            "fidelity",
            f"the plan of {plan.algorithm} keeps to no schedule: chunks travel whole, and links serve what "
            "comes first",
            f"use link, or `hocket plan --dimension-only -a {plan.algorithm}`, which makes no plan",
        )
    plan.verify()
    own = plan.own_schedule
    if own is not None and not _core.carries_out(plan.core, own.core, memory_limit()):
        raise SpecError(
            "fidelity", "the plan does not carry its schedule out", "plan again, or use link"
        )
    return schedule.simulate(switching=options.switching, latency_model=options.latency_model)
