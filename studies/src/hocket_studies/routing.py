"""Figures 4 to 6 and 8 of Cohen et al.: training jobs on a Clos, by how their flows get paths.

The set-up is that of the paper's section 5.1 and, where that is silent or its released code does
otherwise, of the code: compute, placement below whole ToRs, arrivals, lock-step rounds, and which spines
fail. :class:`hocket.routing.Job` offers these by name. What is drawn (arrivals,
models, hosts, hashes) is drawn by seed, and in a cell everything but the method is the same. Means are
over every iteration.

References
----------
Cohen et al.: Routing for large ML models, section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from statistics import mean
from typing import NamedTuple

from hocket.cluster.seeded_random import SeededRandom
from hocket.collectives.collective import Progress
from hocket.errors import SpecError
from hocket.routing import MODELS, Cluster, Compute, Job, Placed, cluster, place, simulate
from hocket_studies.parallel import in_parallel

FABRIC, GPUS_PER_HOST, HOSTS = "clos:32x64", 8, 256
RINGS = (2, 4, 8)
JOBS = (1, 2, 3, 4, 5)
FAILED = (1, 4, 8)
FIRST = "bloom"
"""Model of job 0, whose times figures 4 and 8 show; those of the others are drawn."""
SEEDS = 5
"""By default: 0 to 4."""
_EARLIEST_US, _LATEST_US = 1_000_000, 10_000_000

OnCase = Callable[[str, int, int], None]
"""Called as ``on_case(what, done, total)`` after each run."""


class Method(NamedTuple):
    """A scheme of :func:`hocket.routing.simulate`, and its options."""

    scheme: str
    order: str = "job"


METHODS = {
    "ecmp": Method("ecmp"),
    "least-loaded": Method("least-loaded"),
    "annealing": Method("annealing"),
    "greedy": Method("greedy"),
    "greedy-by-tor": Method("greedy", order="tor"),
    "edge-coloring": Method("edge-coloring"),
    "ilp": Method("ilp"),
}
"""By the name that tables have; ``greedy-by-tor`` takes flows in the order of the released code."""

SLOW = ("ilp",)
"""Methods that take minutes in all; run with one job, or up to three where all is wanted."""

SOLVER_SECONDS = 20.0
"""For one assignment; the best so far is taken then, which differs from machine to machine."""

PLACEMENTS = {"random-hosts": "random", "best-fit": "best-fit"}
VARIANTS = (*PLACEMENTS, "data-rounds", "batch-compute", "random-spines")
"""What can be done otherwise: hosts at random, or where they fit best; a step waits for its inputs only;
the compute of an iteration's batch; failed spines at random."""


@dataclass(frozen=True, order=True)
class Cell:
    """One simulation."""

    jobs: int
    ring: int
    method: str
    seed: int = 0
    failed: int = 0
    """Spines: the highest-numbered, or random ones."""
    variant: str = ""
    """One of :data:`VARIANTS`: what is done otherwise."""


class Measured(NamedTuple):
    """The result of one job; times in seconds."""

    model: str
    all_reduces: tuple[float, ...]
    """By iteration."""
    flow_completion: float
    """Mean over flows."""
    throughput: float
    """Mean over flows [bytes/s]."""
    iteration: float
    """Mean time of an iteration, computation and all-reduce."""
    ideal: float
    """All-reduce with links that nobody shares."""

    @property
    def all_reduce(self) -> float:
        """Mean all-reduce time."""
        return mean(self.all_reduces)


class Outcome(NamedTuple):
    """The results of the jobs of a cell."""

    jobs: tuple[Measured, ...]
    draws: int
    """How often models were drawn until the jobs fitted."""
    shared_tors: int
    """ToRs below which several copies have hosts."""
    max_link_load: int
    """Largest after any decision."""
    bound: int
    """What no assignment of those flows can be below."""
    always_optimal: bool
    """Whether the largest load was the bound after every decision."""


def jobs_of(cell: Cell) -> tuple[list[Job], int]:
    """Draw the jobs of a cell: the same for every method and any failure.

    Returns
    -------
    list of Job, int
        And how often the models of all but the first were drawn until all jobs fitted the hosts.
    """
    draw = SeededRandom(cell.seed)
    span = _LATEST_US - _EARLIEST_US + 1
    arrivals = [_EARLIEST_US + draw.below(span) for _ in JOBS]
    names = list(MODELS)
    draws = 1
    while True:
        models = [FIRST, *(draw.one(names) for _ in JOBS[1:])][: cell.jobs]
        if sum(_copy_hosts(name) for name in models) * cell.ring <= HOSTS:
            break
        draws += 1
    made = [
        Job(
            f"job{i}",
            model=name,
            data=cell.ring,
            arrival=f"{arrival} us",
            compute=Compute() if cell.variant == "batch-compute" else "paper",
            rounds="data" if cell.variant == "data-rounds" else "lock-step",
            placement=PLACEMENTS.get(cell.variant, "random-tors"),
        )
        for i, (name, arrival) in enumerate(zip(models, arrivals, strict=False))
    ]
    return made, draws


def _copy_hosts(name: str) -> int:
    return MODELS[name].tensor * MODELS[name].pipeline // GPUS_PER_HOST


@lru_cache(maxsize=64)
def cluster_of(failed: int, seed: int | None = None) -> Cluster:
    """Return the hosts, less failed spines: the highest-numbered, or by seed."""
    return cluster(FABRIC, failed_spines=failed, seed=seed)


def run_of(cell: Cell, progress: Progress | None = None) -> Outcome:
    """Draw, place and run the jobs of a cell."""
    fabric = cluster_of(cell.failed, cell.seed if cell.variant == "random-spines" else None)
    jobs, draws = jobs_of(cell)
    placed = place(fabric, jobs, cell.seed)
    method = METHODS[cell.method]
    run = simulate(
        fabric,
        placed,
        scheme=method.scheme,
        order=method.order,
        seed=cell.seed,
        time_limit=SOLVER_SECONDS,
        progress=progress,
    )
    measured = tuple(
        Measured(
            str(each.job.model),
            tuple(iteration.all_reduce for iteration in each.iterations),
            each.flow_completion,
            each.throughput,
            each.iteration,
            each.ideal,
        )
        for each in run.jobs
    )
    bound = max((each.bound for each in run.decisions), default=0)
    is_optimal = all(each.max_link_load == each.bound for each in run.decisions)
    shared = shared_tors(fabric, placed)
    return Outcome(measured, draws, shared, run.max_link_load, bound, is_optimal)


def shared_tors(fabric: Cluster, placed: Iterable[Placed]) -> int:
    """Count the ToRs below which several copies have hosts, of one job or of several."""
    copies: dict[int, set[tuple[str, int]]] = {}
    for each in placed:
        for number, gpus in enumerate(each.replicas):
            for gpu in gpus:
                tor = fabric.tors[gpu // fabric.gpus_per_host]
                copies.setdefault(tor, set()).add((each.job.name, number))
    return sum(len(those) > 1 for those in copies.values())


class SeedRange(NamedTuple):
    """A quantity over seeds."""

    mean: float
    least: float
    most: float


Metric = Callable[[Measured], float]
METRICS: dict[str, Metric] = {
    "all-reduce": lambda job: job.all_reduce,
    "flow completion": lambda job: job.flow_completion,
    "throughput": lambda job: job.throughput,
    "iteration": lambda job: job.iteration,
}


@dataclass
class Study:
    """The results of all cells, each run once."""

    seeds: int = SEEDS
    outcomes: dict[Cell, Outcome] = field(default_factory=dict)

    def run(self, cells: Iterable[Cell], on_case: OnCase | None = None) -> None:
        """Run the cells that were not run yet, for every seed, on all cores, the longest first."""
        wanted = {replace(cell, seed=seed) for cell in cells for seed in range(self.seeds)}
        new = sorted(wanted - self.outcomes.keys(), key=_work, reverse=True)
        if not new:
            return
        with closing(in_parallel(run_of, new)) as outcomes:
            for done, (cell, outcome) in enumerate(outcomes, 1):
                self.outcomes[cell] = outcome
                if on_case is not None:
                    on_case(f"{cell.method}, {cell.jobs} jobs", done, len(new))

    def of(self, cell: Cell) -> list[Outcome]:
        """Return what a cell gave, by seed; empty where it was not run."""
        found = (self.outcomes.get(replace(cell, seed=seed)) for seed in range(self.seeds))
        return [outcome for outcome in found if outcome is not None]

    def values(self, cell: Cell, metric: str = "all-reduce", model: str = FIRST) -> list[float]:
        """Return a metric by seed: job 0's, or the mean over jobs of another model, where there are any."""
        of = METRICS[metric]
        if model == FIRST:
            return [of(outcome.jobs[0]) for outcome in self.of(cell)]
        each = (
            [of(job) for job in outcome.jobs if job.model == model] for outcome in self.of(cell)
        )
        return [mean(found) for found in each if found]

    def spread(
        self, cell: Cell, metric: str = "all-reduce", model: str = FIRST
    ) -> SeedRange | None:
        """Return mean and range of :meth:`values`, or None if there are none."""
        found = self.values(cell, metric, model)
        return SeedRange(mean(found), min(found), max(found)) if found else None


def _work(cell: Cell) -> tuple[int, Cell]:
    """About how long a cell takes to run, in no unit."""
    return cell.jobs * cell.ring * (10 if cell.method in SLOW else 1), cell


def _methods(jobs: int, *, full: bool) -> list[str]:
    most = 3 if full else 1
    return [name for name in METHODS if name not in SLOW or jobs <= most]


def cells_without_failures(*, full: bool = False) -> list[Cell]:
    """Return the cells of figures 4 to 6."""
    return [
        Cell(jobs, ring, method)
        for jobs in JOBS
        for ring in RINGS
        for method in _methods(jobs, full=full)
    ]


def cells_with_failures(*, full: bool = False) -> list[Cell]:
    """Return the cells of figure 8."""
    return [
        Cell(jobs, ring, method, failed=failed)
        for failed in FAILED
        for ring in RINGS[1:]
        for jobs in JOBS
        for method in _methods(jobs, full=full)
    ]


class Ratio(NamedTuple):
    """One method's mean all-reduce time over another's, over cells."""

    mean: float
    """Of cells."""
    least: float
    """Of any seed of any cell."""
    most: float


def ratio(study: Study, of: str, over: str, failed: Iterable[int] = (0,)) -> Ratio:
    """Compare job 0's all-reduces by two methods, wherever both were run.

    Raises
    ------
    SpecError
        When nothing was run by both.
    """
    counts = set(failed)
    means, each = [], []
    for cell in {replace(cell, seed=0) for cell in study.outcomes if cell.method == of}:
        ours, theirs = study.values(cell), study.values(replace(cell, method=over))
        if cell.failed in counts and not cell.variant and theirs:
            means.append(mean(ours) / mean(theirs))
            each += [a / b for a, b in zip(ours, theirs, strict=True)]
    if not means:
        raise SpecError(None, f"nothing was run by both {of} and {over}", "run their cells first")
    return Ratio(mean(means), min(each), max(each))


_TOLERANCE = 1e-9
"""Of ratios of times that are the same but for rounding to picoseconds."""


def slower(study: Study, of: str, than: str) -> list[tuple[Cell, int]]:
    """Return the cells, and the job, in which a method's mean all-reduce takes longer than another's."""
    found = []
    for cell, outcome in sorted(study.outcomes.items()):
        other = study.outcomes.get(replace(cell, method=than))
        if cell.method == of and other is not None:
            pairs = zip(outcome.jobs, other.jobs, strict=True)
            found += [
                (cell, job)
                for job, (ours, theirs) in enumerate(pairs)
                if ours.all_reduce > theirs.all_reduce * (1 + _TOLERANCE)
            ]
    return found
