"""Every algorithm that applies, ranked, each proved, with the distance to the bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hocket import _core
from hocket._checks import check_function, list_of
from hocket._options import check_keywords, names_of, options_of
from hocket._results import HIDDEN, Column, ListResult, Result, figure, said
from hocket.collectives.collective import KEYWORDS as COLLECTIVE_KEYWORDS
from hocket.collectives.collective import Progress, collective_of, tell_step, within_step
from hocket.collectives.outcome import OnCollective, bound_parts
from hocket.comparison.limits import Turns, check_large
from hocket.errors import Error, InfeasibleError, SimulationError, SpecError, VerificationError
from hocket.nccl.model import KINDS
from hocket.nccl.prediction import NcclPrediction, library_on, network_and_gpu, prediction_on
from hocket.plans.algorithms import (
    PREFIX,
    algorithms,
    by_promise,
    check_any_uses,
    check_name,
    compared,
    heeded,
    reasons,
)
from hocket.plans.fit import Fit, Other
from hocket.plans.plan import Plan
from hocket.plans.planner import choose
from hocket.plans.registry import find
from hocket.plans.synthesis import PlanOptions
from hocket.plans.trees import Trees
from hocket.simulation.options import (
    KEYWORDS,
    DimensionOptions,
    LinkOptions,
    TransferOptions,
    fidelity_options,
)
from hocket.simulation.run import Run, simulate
from hocket.topology.sources import TopologyLike

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hocket.collectives.collective import CollectiveKeywords
    from hocket.plans.synthesis.options import PlanKeywords
    from hocket.simulation.options import FidelityKeywords

    class Keywords(CollectiveKeywords, PlanKeywords, FidelityKeywords, total=False):
        """The keywords of :func:`compare`."""

        gpu: str | None


@dataclass(frozen=True)
class Entry(Result):
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

    algorithm: str = field(metadata=said(column=Column("algorithm", leaves=0)))
    chunks: int = field(metadata=said(column=Column("chunks", leaves=4, after="gap")))
    run: Run = field(metadata=said(inline=Run, but=("_plan",)))

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self.run.plan

    @property
    @figure()
    def transfers(self) -> int:
        """The number of transfers of the plan."""
        return len(self.plan)

    @property
    @figure(column=False)
    def routing(self) -> str:
        """The routing: how transfers are spread over equal paths."""
        return self.plan.routing

    @property
    @figure()
    def verified(self) -> bool:
        """Whether the plan is proved right."""
        return self.plan.is_verified

    @property
    @figure()
    def trees(self) -> Trees | None:
        """With the cut or partition that no trees beat; None of a plan that is made of no trees."""
        return self.plan.trees

    @property
    @figure()
    def fit(self) -> Fit | None:
        """What the plan takes of the runtime that was asked for; None if none was."""
        return self.plan.fit


@dataclass(frozen=True, repr=False)
class Comparison(OnCollective, ListResult[Entry]):
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
        Why each other algorithm cannot run here, by name; the reasons do not repeat the names.
    auto
        Whose plan ``auto`` takes, unless it finds a faster one by searching further: the fastest here.
        ``None`` where something else was compared than it tries, or timed otherwise than at link fidelity.
    nccl
        What NCCL picks here and predicts for it, by its own cost model: the plan of its pick is among the
        entries, as ``nccl-ring`` and so on. ``None`` where only some algorithms were named, some NPUs take
        part, or the model has no such collective or GPU.
    """

    _table = "entries"

    collective: _core.Collective = field(metadata=HIDDEN)
    topology: _core.Topology = field(metadata=HIDDEN)
    bound: _core.Bound = field(metadata=said(of=bound_parts))
    entries: tuple[Entry, ...] = field(metadata=said("algorithms"))
    refused: dict[str, str]
    auto: str | None = None
    nccl: NcclPrediction | None = None

    @property
    def best(self) -> Entry:
        """The fastest."""
        return self.entries[0]

    def __repr__(self) -> str:
        best = self.best
        what = f"{self.collective.kind} on {self.topology.name!r}"
        return f"<Comparison of {what}: {len(self)} algorithms, {best.algorithm} is fastest>"


def compare(
    kind: str | _core.Collective,
    topology: TopologyLike,
    *,
    size: int | str | None = None,
    algorithms: Sequence[str] | None = None,
    fidelity: str | TransferOptions = "link",
    options: PlanOptions | None = None,
    on_result: Callable[[str, int, Run], None] | None = None,
    progress: Progress | None = None,
    **keywords: Unpack[Keywords],
) -> Comparison:
    """Plan, prove and simulate a collective by every algorithm that applies.

    Parameters
    ----------
    kind, topology, size
        See :func:`hocket.plan`.
    algorithms
        Names to compare, ``schedule:NAME`` for a saved schedule among them; by default all that plan in no
        more than a few seconds, which leaves out exact, blind and auto.
    fidelity
        Of the simulations, see :func:`hocket.simulate`; all but dimension fidelity.
    options
        How plans are made; where it says no number of chunks, several are tried and the fastest kept. An
        option that only some algorithms use, such as `trials`, is for these; none using it is refused.
        `latency` is that of the simulations too, unless `fidelity` is a value, which has its own.
    on_result
        Called as ``on_result(algorithm, chunks, run)`` after each simulation of a plan that fits.
    progress
        Called as ``progress(stage, done, total)`` during long work.
    keywords
        `npus`, `root` and `in_place`, see :func:`hocket.collective_on`; options of
        :class:`hocket.PlanOptions`, and of the fidelity, by their names. `latency` is of both. `gpu` says
        whose pick is shown, as of :func:`hocket.nccl.predict`.

    Raises
    ------
    InfeasibleError
        If no algorithm applies, with the reason of the first that does this kind.
    VerificationError
        If a plan is wrong: an error of hocket's own, or of an algorithm of yours that was named. Where
        it was not named, it is among those refused.
    """
    known = (*COLLECTIVE_KEYWORDS, *names_of(PlanOptions), *KEYWORDS, "gpu")
    check_keywords(keywords, known, ("size", "algorithms", "fidelity", "options", "on_result"))
    check_function("on_result", on_result)
    check_function("progress", progress)
    topology, gpu = network_and_gpu(topology, keywords.pop("gpu", None))
    collective, rest = collective_of(kind, topology, size, keywords)
    simulated = fidelity_options(
        fidelity, {key: value for key, value in rest.items() if key in KEYWORDS}
    )
    if isinstance(simulated, DimensionOptions):
        raise SpecError("fidelity", "plans are not compared on dimensions", "use link")
    planned = {
        key: value for key, value in rest.items() if key not in KEYWORDS or key == "latency_model"
    }
    if options is None and isinstance(fidelity, LinkOptions):
        planned.setdefault("latency_model", fidelity.latency_model)
    options = options_of(PlanOptions, options, planned)
    if isinstance(simulated, LinkOptions) and isinstance(fidelity, str):
        simulated = replace(simulated, latency_model=options.latency_model)
    names = named(algorithms)
    check_any_uses(names, options, is_named=algorithms is not None)
    entries: list[Entry] = []
    refused: dict[str, Error] = {}
    misfits: list[Other] = []
    turns = Turns(collective, topology, names if algorithms is None else [], options)
    quickest: Run | None = None
    for place, name in enumerate(turns.names or names):
        tell_step(progress, name, place, len(names))
        best: Entry | None = None
        error: Error | None = None
        is_named = algorithms is not None
        try:
            check_large(collective, topology, name, options, is_named=is_named)
            turns.check(name, quickest)
            best = _fastest(
                name,
                collective,
                topology,
                (options, simulated),
                on_result,
                within_step(progress),
                misfits,
            )
        except _OptionsError as wrong:
            raise wrong.error from None
        except VerificationError as wrong:
            if find(name) is None or is_named:
                raise
            error = wrong
        except (InfeasibleError, SimulationError, SpecError) as wrong:
            error = wrong
        if error is not None and name.startswith(PREFIX):
            raise error
        if best is not None:
            entries.append(best)
            quickest = min([quickest or best.run, best.run], key=lambda run: run.time_ps)
        elif error is not None:
            refused[name] = error
    if not entries:
        raise _first(collective.kind, refused)
    entries.sort(key=lambda entry: entry.run.time_ps)
    bound = entries[0].run.lower_bound
    for entry in entries:
        if entry.plan.fit is not None and misfits:
            other = min(misfits, key=lambda each: each.time_ps)
            entry.plan.fit = entry.plan.fit.beside(entry.run.time_ps, other)
        vars(entry.run)["lower_bound"] = bound  # of the same collective, network and fidelity
    auto = None
    if algorithms is None and simulated == LinkOptions(latency_model=options.latency_model):
        least = entries[0].run.time_ps
        auto = by_promise([each.algorithm for each in entries if each.run.time_ps == least])[0]
    nccl = None if algorithms is not None else _nccl(collective, topology, bound, gpu)
    why_not = reasons(refused)
    return Comparison(collective, topology, bound, tuple(entries), why_not, auto, nccl)


def _nccl(
    collective: _core.Collective, topology: _core.Topology, bound: _core.Bound, gpu: str | None
) -> NcclPrediction | None:
    """Return what NCCL picks, where its model has the collective and the GPUs."""
    if len(collective.npus) != topology.npu_count or collective.kind not in KINDS:
        return None
    try:
        library = library_on(topology, gpu)
        return prediction_on(library, collective.kind, collective.size, bound)
    except (InfeasibleError, SpecError):
        return None


class _OptionsError(Exception):
    """Return what is wrong with the options of a simulation for every algorithm."""

    def __init__(self, error: SpecError) -> None:
        super().__init__(error)
        self.error = error


def _fastest(
    name: str,
    collective: _core.Collective,
    topology: _core.Topology,
    options: tuple[PlanOptions, TransferOptions],
    on_result: Callable[[str, int, Run], None] | None,
    progress: Progress | None,
    misfits: list[Other],
) -> Entry:
    """Return what an algorithm comes to with the best number of chunks."""
    best: Entry | None = None

    def time(plan: Plan, slices: int | None) -> int:
        nonlocal best
        lanes = 1 if plan.own_schedule is None else len(plan.own_schedule)
        used = slices or plan.pieces or lanes
        run = _run(plan, options[1], progress)
        if plan.fit is not None and plan.fit.misfit is not None:
            misfits.append(Other(plan, run.time_ps, used, plan.fit.misfit))
            return run.time_ps
        if on_result is not None:
            on_result(name, used, run)
        if best is None or run.time_ps < best.run.time_ps:  # as the choice: the first of equals
            best = Entry(name, used, run)
        return run.time_ps

    given = heeded(name, options[0])
    choose(collective, topology, name, given, progress=progress, timer=time)
    assert best is not None, "a choice is of plans that were timed"
    return best


def _run(made: Plan, fidelity: TransferOptions, progress: Progress | None) -> Run:
    try:
        return simulate(made, fidelity=fidelity, progress=progress)
    except SpecError as error:
        raise _OptionsError(error) from None


def named(algorithms: Sequence[str] | None) -> list[str]:
    """Return the names to compare: those that are given, or those of every comparison."""
    if algorithms is None:
        return compared()
    names = list_of("algorithms", algorithms)
    if not names:
        raise SpecError("algorithms", "there is none", "give one or more")
    for name in names:
        if not isinstance(name, str) or not name.startswith(PREFIX):
            check_name(name)
    return names


def _first(kind: str, refused: Mapping[str, Error]) -> InfeasibleError:
    """Return why none runs: what stops the first that does this kind, where there is one."""
    able = (
        {"greedy"}
        if kind == "custom"
        else {each.name for each in algorithms() if kind in each.kinds}
    )
    error = next((refused[name] for name in refused if name in able), next(iter(refused.values())))
    return InfeasibleError(error.field, error.why, error.remedy, error.origin)
