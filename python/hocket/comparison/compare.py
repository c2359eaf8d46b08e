"""Every algorithm that applies, ranked, each proved, with the distance to the bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

from hocket import _core
from hocket._memory import checked_limit
from hocket.collectives.collective import check_chunks, collective_on
from hocket.collectives.timing import Latency, LinkOrder, Switching
from hocket.comparison.sizes import too_large
from hocket.errors import InfeasibleError, SimulationError, SpecError
from hocket.plans import algorithms as registry
from hocket.plans.plan import Plan, checked_routing
from hocket.plans.planner import plan_collective
from hocket.plans.schedule import PREFIX
from hocket.plans.synthesis import SYNTHESIZERS
from hocket.simulation.packets import Packets
from hocket.simulation.run import Fidelity, Run, simulate


@dataclass(frozen=True)
class Entry:
    """One algorithm's result.

    Attributes
    ----------
    algorithm
        Its name.
    chunks
        Number of slices it ran with: what was asked for, or the best of those tried.
    run
        The verified and simulated plan.
    """

    algorithm: str
    chunks: int
    run: Run

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self.run.plan


@dataclass(frozen=True)
class Comparison:
    """Results of every algorithm that applies, fastest first.

    Attributes
    ----------
    collective, topology
        What was compared on what.
    bound
        The lower bound on any plan's time at the fidelity, with its witness.
    entries
        Results, fastest first.
    refused
        Why each other algorithm cannot run here, by name.
    """

    collective: _core.Collective
    topology: _core.Topology
    bound: _core.Bound
    entries: tuple[Entry, ...]
    refused: dict[str, str]

    @property
    def best(self) -> Entry:
        """The fastest."""
        return self.entries[0]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


def compare(
    kind: str,
    topology: _core.Topology,
    *,
    size: int | str,
    algorithms: Sequence[str] | None = None,
    chunks: int | None = None,
    npus: Sequence[int | str] | None = None,
    root: int | str | None = None,
    order: LinkOrder | None = None,
    switching: Switching | None = None,
    latency: Latency = "overlapped",
    fidelity: Fidelity = "link",
    packets: Packets | str | None = None,
    flow_rate: str | None = None,
    time_limit: str | None = None,
    memory_limit: int | None = None,
    routing: str = "balanced",
    on_result: Callable[[str, int, Run], None] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Comparison:
    """Plan, prove and simulate a collective by every algorithm that applies.

    Parameters
    ----------
    kind, topology, size, npus, root
        See :func:`hocket.collective_on`.
    algorithms
        Names to compare, ``schedule:NAME`` for a saved schedule among them; by default all that plan in no
        more than a few seconds, which leaves out exact, blind and auto.
    chunks
        Number of pipelined slices; several are tried and the fastest kept if left out.
    order, switching, latency, packets, flow_rate
        See :func:`hocket.simulate`.
    fidelity
        Of the simulations: ``link``, ``flow`` or ``packet``.
    time_limit
        For each search, see :func:`hocket.schedule`.
    routing
        How transfers are spread over equal paths, see :func:`hocket.plan`; ``"spray"`` at flow and packet
        fidelity only.
    on_result
        Called as ``on_result(algorithm, chunks, run)`` after each simulation.
    progress
        Called as ``progress(stage, done, total)`` during long work.

    Raises
    ------
    InfeasibleError
        If no algorithm applies, with the reason of the first that does this kind.
    VerificationError
        If a plan is wrong: an error of hocket's own.
    """
    collective = collective_on(kind, topology, size, npus=npus, root=root)
    check_chunks(chunks)
    checked_routing(routing)
    if fidelity not in get_args(Fidelity):
        raise SpecError(
            "fidelity", f"{fidelity!r} cannot be compared at", "use link, flow or packet"
        )
    known = [algorithm.name for algorithm in registry.algorithms()]
    names = (
        [algorithm.name for algorithm in _core.algorithms()]
        if algorithms is None
        else list(algorithms)
    )
    if isinstance(algorithms, str) or not names:
        raise SpecError("algorithms", f"{algorithms!r} is not a list of names", "give one or more")
    for name in names:
        if name not in known and not name.startswith(PREFIX):
            raise SpecError(
                "algorithm", f"there is no {name!r}", f"algorithms are {', '.join(known)}"
            )
    entries: list[Entry] = []
    refused: dict[str, str] = {}
    limit = checked_limit(memory_limit)
    count, sides = len(collective.npus), topology.dimensions
    for name in names:
        is_named = algorithms is not None
        reason = too_large(collective.kind, count, sides, name, chunks, is_named, limit)
        if reason is not None:
            refused[name] = reason
            continue
        best: Entry | None = None
        try:
            for slices in _ladder(name, topology, collective, chunks):
                made = plan_collective(
                    collective,
                    topology,
                    algorithm=name,
                    chunks=slices,
                    memory_limit=memory_limit,
                    time_limit=time_limit,
                    latency=latency,
                    routing=routing,
                    progress=progress,
                )
                made.verify(progress=progress)
                run = _run(made, fidelity, order, switching, latency, packets, flow_rate, progress)
                used = slices or (len(made.schedule) if made.schedule is not None else 1)
                if on_result is not None:
                    on_result(name, used, run)
                if best is None or run.time_ps < best.run.time_ps:
                    best = Entry(name, used, run)
        except _WrongKnobsError as error:
            raise error.wrong from None
        except (InfeasibleError, SimulationError, SpecError) as error:
            if name.startswith(PREFIX):
                raise
            if best is None:
                refused[name] = str(error)
        if best is not None:
            entries.append(best)
    if not entries:
        raise InfeasibleError(None, _reason(kind, refused))
    entries.sort(key=lambda entry: entry.run.time_ps)
    bound = entries[0].run.lower_bound
    return Comparison(collective, topology, bound, tuple(entries), refused)


class _WrongKnobsError(Exception):
    """What is wrong with a simulation's options, whatever the algorithm."""

    def __init__(self, wrong: SpecError) -> None:
        super().__init__(wrong)
        self.wrong = wrong


def _run(
    made: Plan,
    fidelity: Fidelity,
    order: LinkOrder | None,
    switching: Switching | None,
    latency: Latency,
    packets: Packets | str | None,
    flow_rate: str | None,
    progress: Callable[[str, int, int], None] | None,
) -> Run:
    try:
        return simulate(
            made,
            fidelity=fidelity,
            order=order,
            switching=switching,
            latency=latency,
            packets=packets,
            flow_rate=flow_rate,
            progress=progress,
        )
    except SpecError as error:
        raise _WrongKnobsError(error) from None


def _ladder(
    name: str, topology: _core.Topology, collective: _core.Collective, chunks: int | None
) -> list[int | None]:
    """Give the numbers of slices to try."""
    if name.startswith(PREFIX):
        return [None]
    if chunks is not None:
        return [chunks]
    asked = "greedy" if name in SYNTHESIZERS else name
    return list(_core.chunk_ladder(topology, collective, asked))


def _reason(kind: str, refused: dict[str, str]) -> str:
    """Say why none runs: what stops the first that does this kind, where there is one."""
    able = {each.name for each in _core.algorithms() if kind in each.kinds}
    return next((refused[name] for name in refused if name in able), next(iter(refused.values())))
