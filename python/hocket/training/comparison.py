"""Training on several networks, spread several ways, by several algorithms: every combination, ranked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from hocket import _core
from hocket._checks import check_function, instance_of, list_of, whole
from hocket._options import options_of
from hocket._results import HIDDEN, Column, ListResult, Result, figure, name_of, said
from hocket.collectives.collective import Progress, tell_step, within_step
from hocket.errors import Error, SpecError, VerificationError
from hocket.plans.algorithms import PREFIX, SCHEDULERS, check_name
from hocket.topology.sources import TopologyLike, as_topology
from hocket.training.candidates import GREEDY
from hocket.training.memory import Memory
from hocket.training.network import IDEAL, NOTHING, check_uses, has_dimensions
from hocket.training.options import TrainingOptions
from hocket.training.parallel import Parallel
from hocket.training.result import Breakdown, TrainingRun
from hocket.training.run import train
from hocket.workload import as_workload
from hocket.workload.layers import Workload

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hocket.training.options import TrainingKeywords

BASELINES = ("hierarchical", "ring", GREEDY)
"""What others are compared with: the first of these that ran on the same network, spread the same way."""
_ON_DIMENSIONS = (*SCHEDULERS, IDEAL, NOTHING)
_ANYWHERE = ("ring", "double-binary-tree", "multitree", GREEDY, NOTHING)
_MANY_NPUS = 512
MAX_SAMPLES = 1 << 40


@dataclass(frozen=True)
class Combination(Result):
    """A network, a split and an algorithm."""

    network: str = field(metadata=said(column=Column("topology", leaves=0, leaves_alike=5)))
    topology: _core.Topology = field(metadata=said(of=name_of))
    parallel: Parallel = field(
        metadata=said(column=Column("parallelism", leaves=0, leaves_alike=5))
    )
    algorithm: str = field(metadata=said(column=Column("algorithm", leaves=0, leaves_alike=5)))

    @property
    @figure()
    def npu_count(self) -> int:
        """NPUs of the network."""
        return self.topology.npu_count


@dataclass(frozen=True)
class TrainingRow(Combination):
    """The outcome of a combination.

    Attributes
    ----------
    network, topology, parallel, algorithm
        The combination; ``network`` is what the topology is called in the comparison.
    time_ps
        An iteration, the mean over all of them [ps].
    batch
        Samples of an iteration, of all replicas together.
    breakdown
        Where an iteration's time went [ps].
    memory
        What an NPU holds.
    speedup
        How many times as fast as the baseline of the same topology and parallelism; None without one.
    """

    time_ps: float = field(metadata=said(column=Column("iteration", leaves=0)))
    batch: int
    breakdown: Breakdown
    memory: Memory
    speedup: float | None = field(
        default=None,
        metadata=said(column=Column("speed-up", write="{:.3f}", after="samples_per_s")),
    )

    @property
    def time(self) -> float:
        """An iteration [s]."""
        return self.time_ps * 1e-12

    @property
    @figure(
        "samples_per_s",
        column=Column("samples/s", 4, is_rounded=True, unit="samples", after="time_ps"),
    )
    def samples_per_second(self) -> float:
        """Over all replicas."""
        return self.batch / max(self.time, 1e-12)

    @property
    @figure("communication_ps", only="rows", column=Column("exposed"))
    def exposed_ps(self) -> float:
        """Communication that compute waited for, in an iteration [ps]."""
        return self.breakdown.communication

    @property
    @figure(column=Column("share"))
    def exposed_share(self) -> float:
        """The share of an iteration, 0 to 1."""
        return self.exposed_ps / max(self.time_ps, 1.0)

    @property
    @figure(only="rows", inline=Parallel)
    def _parts(self) -> Parallel:
        return self.parallel

    @property
    @figure(only="rows")
    def memory_bytes(self) -> int:
        """Bytes that an NPU holds."""
        return self.memory.total


@dataclass(frozen=True)
class Refused(Combination):
    """A combination that cannot run, and why."""

    reason: str
    why: str = field(default="", metadata=HIDDEN)
    """The reason without what would be right."""
    instead: tuple[Mapping[str, object], ...] = field(default=(), metadata=HIDDEN)
    """Options that would do."""


@dataclass(frozen=True, repr=False)
class TrainingComparison(ListResult[TrainingRow]):
    """Combinations by how many samples a second they train, the best first.

    Where all have one batch, that is by the time of an iteration.

    Attributes
    ----------
    workload
        What was trained.
    rows
        Those that ran.
    refused
        Those that cannot.
    """

    _table = "rows"

    workload: Workload = field(metadata=said(of=name_of))
    rows: tuple[TrainingRow, ...]
    refused: tuple[Refused, ...]

    @property
    def best(self) -> TrainingRow:
        """The best by an algorithm, if there is one; ``ideal`` and ``none`` are none."""
        real = (row for row in self.rows if row.algorithm not in (IDEAL, NOTHING))
        return next(real, self.rows[0])

    def __repr__(self) -> str:
        best = self.best
        what = f"{best.parallel} by {best.algorithm} on {best.network!r}"
        return f"<TrainingComparison of {self.workload.name}: {len(self)} rows, {what} is best>"


def algorithms_on(topology: _core.Topology) -> tuple[str, ...]:
    """Return the algorithms that are compared on a network by default.

    Those that schedule dimensions where these are whole, else some that do with any links; and ``none``,
    which is what computing alone takes. From 512 NPUs on greedy is left out: its search takes minutes.
    """
    if has_dimensions(topology):
        return _ON_DIMENSIONS
    left_out = GREEDY if topology.npu_count >= _MANY_NPUS else None
    return tuple(name for name in _ANYWHERE if name != left_out)


def compare_training(
    workload: Workload | str,
    topologies: Mapping[str, TopologyLike] | Sequence[TopologyLike] | TopologyLike,
    algorithms: Sequence[str] | None = None,
    parallels: Sequence[Parallel | str] | None = None,
    *,
    batch: int | None = None,
    on_row: Callable[[TrainingRow], None] | None = None,
    progress: Progress | None = None,
    options: TrainingOptions | None = None,
    **keywords: Unpack[TrainingKeywords],
) -> TrainingComparison:
    """Simulate training by every combination of networks, parallelism and algorithms.

    Parameters
    ----------
    workload
        A model: a shipped one by name, a file, or a :class:`hocket.Workload`.
    topologies
        Networks, perhaps by what they are to be called; all NPUs of each take part.
    algorithms
        As of :func:`hocket.train`; by default :func:`algorithms_on` of each network.
    parallels
        How the model is spread; by default all NPUs have replicas.
    batch
        Samples of an iteration, of all replicas together, in place of ``samples`` of each.
    on_row
        Called after each combination that ran.
    progress
        Called as ``progress(stage, done, total)`` during long work.
    options, keywords
        As of :func:`hocket.train`.

    Raises
    ------
    SpecError, InfeasibleError
        If no combination runs: the reason of the first.

    Complexity: combinations x that of :func:`hocket.train`.
    """
    model = as_workload(workload)
    check_function("on_row", on_row)
    check_function("progress", progress)
    networks = _named(topologies)
    asked = check_algorithms(algorithms)
    spreads = [
        Parallel.parse(each) if isinstance(each, str) else each
        for each in _listed("parallels", parallels)
    ]
    made = options_of(TrainingOptions, options, keywords)
    if asked and all(each in (IDEAL, NOTHING) for each in asked):
        check_uses(asked[0], made.chunks)
    if batch is not None:
        whole("batch", batch, 1, MAX_SAMPLES)
    rows: list[TrainingRow] = []
    refused: list[Refused] = []
    errors: list[Error] = []
    steps = sum(len(asked or algorithms_on(each)) for _, each in networks) * max(len(spreads), 1)
    done = 0
    for name, network in networks:
        for spread in spreads or [Parallel(dp=network.npu_count)]:
            ran: list[TrainingRow] = []
            for algorithm in asked or algorithms_on(network):
                tell_step(progress, f"{name}, {spread}, {algorithm}", done, steps)
                done += 1
                try:
                    run = train(
                        model,
                        network,
                        parallel=spread,
                        algorithm=algorithm,
                        options=_heeded(batch, spread, algorithm, made),
                        progress=within_step(progress),
                    )
                except VerificationError:
                    raise
                except Error as error:
                    errors.append(error)
                    why = str(error.but(remedy=None)) if error.instead else ""
                    refused.append(
                        Refused(name, network, spread, algorithm, str(error), why, error.instead)
                    )
                    continue
                ran.append(_row(name, run))
                if on_row is not None:
                    on_row(ran[-1])
            rows += _with_speedups(ran)
    if not rows:
        raise errors[0]
    return TrainingComparison(model, _ranked(rows), tuple(refused))


def check_algorithms(names: Sequence[str] | None) -> list[str]:
    """Return names of algorithms of :func:`hocket.train` as a list; None becomes an empty one.

    Raises
    ------
    SpecError
        With the names that there are.
    """
    asked = _listed("algorithms", names)
    for name in asked:
        instance_of(str, "algorithms", name, "give names, such as themis")
        if name not in _ON_DIMENSIONS and not name.startswith(PREFIX):
            check_name(name)
    return asked


def merged(comparisons: Sequence[TrainingComparison]) -> TrainingComparison:
    """Rank the rows of some comparisons of one workload together."""
    rows = [row for each in comparisons for row in each.rows]
    refused = [one for each in comparisons for one in each.refused]
    return TrainingComparison(comparisons[0].workload, _ranked(rows), tuple(refused))


def _ranked(rows: list[TrainingRow]) -> tuple[TrainingRow, ...]:
    return tuple(sorted(rows, key=lambda row: -row.samples_per_second))


def _named(
    topologies: Mapping[str, TopologyLike] | Sequence[TopologyLike] | TopologyLike,
) -> list[tuple[str, _core.Topology]]:
    if isinstance(topologies, _core.Topology | str | PathLike):
        topologies = [topologies]
    if isinstance(topologies, Mapping):
        found = [(str(name), as_topology(each)) for name, each in topologies.items()]
    else:
        several = map(as_topology, list_of("topologies", topologies))
        found = [(each.name, each) for each in several]
    if not found:
        raise SpecError("topologies", "there are none", "give at least one")
    return found


def _listed(name: str, given: Sequence[Any] | None) -> list[Any]:
    if given is None:
        return []
    several = list_of(name, given)
    if not several:
        raise SpecError(name, "there is none", "give one or more")
    return several


def _heeded(
    batch: int | None, spread: Parallel, algorithm: str, options: TrainingOptions
) -> TrainingOptions:
    """Return the options of one combination, without chunks where nothing is cut."""
    if algorithm in (IDEAL, NOTHING):
        options = replace(options, chunks=None)
    return options if batch is None else _of_batch(batch, spread, options)


def _of_batch(batch: int, spread: Parallel, options: TrainingOptions) -> TrainingOptions:
    if batch % spread.dp:
        raise SpecError(
            "batch",
            f"{batch} samples do not divide among {spread.dp} replicas",
            instead=[{"batch": -(-batch // spread.dp) * spread.dp}],
        )
    return replace(options, samples=batch // spread.dp)


def _row(network: str, run: TrainingRun) -> TrainingRow:
    """Keep of a run what the comparison needs, and not its graph."""
    count = run.options.iterations
    whole_run = run.breakdown
    breakdown = Breakdown(
        whole_run.forward / count,
        whole_run.backward / count,
        whole_run.update / count,
        {cause: time / count for cause, time in whole_run.exposed.items()},
        whole_run.waiting / count,
    )
    return TrainingRow(
        network,
        run.topology,
        run.parallel,
        run.algorithm,
        run.time_ps,
        run.options.samples * run.parallel.dp,
        breakdown,
        run.memory,
    )


def _with_speedups(rows: list[TrainingRow]) -> list[TrainingRow]:
    times = {row.algorithm: row.time_ps for row in rows}
    base = next((times[name] for name in BASELINES if name in times), None)
    if base is None:
        return rows
    return [replace(row, speedup=base / max(row.time_ps, 1.0)) for row in rows]
