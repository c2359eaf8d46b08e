"""The cost of every single failure of a network for a collective."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from hocket import _core
from hocket._checks import check_function, list_of, one_of
from hocket._options import options_of
from hocket._results import HIDDEN, Column, Result, TableResult, figure, said
from hocket.collectives.outcome import OnCollective
from hocket.comparison.compare import Comparison, compare
from hocket.errors import InfeasibleError, SpecError
from hocket.plans.algorithms import heeded_by_any
from hocket.plans.synthesis import PlanOptions
from hocket.topology.sources import TopologyLike, as_topology
from hocket.topology.symmetry import Symmetry
from hocket.units import Quantity, parse_size

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hocket.plans.synthesis.options import PlanKeywords

Part: TypeAlias = Literal["link", "switch", "npu"]
_PARTS: tuple[Part, ...] = ("link", "switch", "npu")
_OTHERS = ("greedy", "trees")
"""What plans any network, and so what is left of one."""
_Ends: TypeAlias = tuple[str, ...]
"""A device's name, or those of both ends of a link."""


@dataclass(frozen=True)
class Failure(Result):
    """A failure and its cost.

    Attributes
    ----------
    part
        ``"link"`` (both ways, with all parallel ones), ``"switch"`` or ``"npu"``.
    names
        What fails, as ``--failed`` takes it, ``"A"`` or ``"A,B"``: all those that are alike, of which the
        first was computed.
    time_ps
        Time of the collective without it [ps]; ``None`` where it cannot run.
    slowdown
        By how much longer that is, as a share of the time without failures; ``None`` where it cannot run.
    algorithm
        What ran fastest; ``None`` where none does.
    why
        Why it cannot run; ``None`` where it can.
    """

    part: Part = field(metadata=said(column=True))
    names: tuple[str, ...] = field(metadata=said(column=True))
    time_ps: int | None = field(
        metadata=said(column=Column("time", leaves=0, after="count", nothing="cannot run"))
    )
    slowdown: float | None = field(
        metadata=said(column=Column("slower", leaves=0, after="time_ps"))
    )
    algorithm: str | None = field(metadata=said(column=Column("algorithm", after="slowdown")))
    why: str | None = None

    @property
    @figure("failed", only="table", column=Column("failed", leaves=0))
    def _failed(self) -> str:
        return f"{self.part} {self.names[0]}"

    @property
    @figure("count", only="table", column=Column("count"))
    def _count(self) -> int:
        return len(self.names)


@dataclass(frozen=True, repr=False)
class FailureAdvice(OnCollective, TableResult):
    """Every single failure, the worst first.

    Attributes
    ----------
    collective, topology
        What is done on what.
    algorithm, chunks
        The fastest without failures, which runs again after each.
    time_ps
        Its time without failures [ps].
    failures
        What fails, the worst first: those after which the collective cannot run, then by time.
    """

    _table = "failures"

    collective: _core.Collective = field(metadata=HIDDEN)
    topology: _core.Topology = field(metadata=HIDDEN)
    algorithm: str
    chunks: int
    time_ps: int
    failures: tuple[Failure, ...]

    def __repr__(self) -> str:
        """Return one line: what, and the worst failure."""
        worst = self.failures[0].names[0] if self.failures else "none"
        kinds, count = len(self.failures), sum(len(each.names) for each in self.failures)
        return (
            f"<FailureAdvice: {count} failures of {kinds} kinds on {self.topology.name!r}, "
            f"worst {worst}>"
        )


def advise_failures(
    kind: str,
    topology: TopologyLike,
    *,
    size: Quantity,
    algorithms: Sequence[str] | None = None,
    parts: Sequence[Part] = _PARTS,
    options: PlanOptions | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    **keywords: Unpack[PlanKeywords],
) -> FailureAdvice:
    """Rank every single failure of a network by what it costs a collective.

    The collective is planned anew without the failed part, by the algorithm that is fastest on the whole
    network, and by greedy and trees; the fastest counts. Where `algorithms` are named, greedy and trees are
    asked only if the fastest of those does not apply any more. An NPU that fails does not take part; the
    others do, with as many bytes. Of failures that are alike, as on symmetric networks, the first is
    computed; as algorithms take NPUs in the order of their numbers, the others may take a little more or
    less.

    Parameters
    ----------
    kind, size
        See :func:`hocket.compare`.
    topology
        The network, or text as :func:`hocket.topology.load` takes it.
    algorithms
        The fastest of these on the whole network is taken; by default of all.
    parts
        What may fail: ``"link"``, ``"switch"`` and ``"npu"``.
    options
        How plans are made; where it says no number of chunks, the fastest on the whole network is kept.
    progress
        Called as ``progress("failures", done, total)``, total being the kinds of failures.
    keywords
        Any option of :class:`hocket.PlanOptions` by its name, in place of the one in `options`.

    Raises
    ------
    SpecError, InfeasibleError
        As :func:`hocket.compare`; for parts that there are not.
    """
    network = as_topology(topology)
    check_function("progress", progress)
    parts = list_of("parts", parts)
    if not parts:
        raise SpecError("parts", "there is none", "give some of link, switch, npu")
    for part in parts:
        one_of("parts", part, _PARTS)
    count = parse_size(size, field="size")
    given = options_of(PlanOptions, options, keywords)
    whole = compare(kind, network, size=count, algorithms=algorithms, options=given)
    best = whole.best
    alike = alike_failures(network, parts)
    failures = []
    for done, (part, kin) in enumerate(alike):
        if progress is not None:
            progress("failures", done, len(alike))
        found = _after(
            (kind, count),
            network,
            kin[0],
            (best.algorithm, best.chunks),
            given,
            always=algorithms is None,
        )
        names = tuple(",".join(ends) for ends in kin)
        failures.append(_failure(part, names, found, best.run.time_ps))
    failures.sort(key=lambda each: (each.time_ps is not None, -(each.time_ps or 0)))
    return FailureAdvice(
        whole.collective, network, best.algorithm, best.chunks, best.run.time_ps, tuple(failures)
    )


def _after(
    what: tuple[str, int],
    whole: _core.Topology,
    lost: _Ends,
    first: tuple[str, int],
    given: PlanOptions,
    *,
    always: bool,
) -> Comparison | str:
    """Return the best after a failure, by an algorithm and its chunks or by others; or why none runs.

    The others are asked always, or only where that algorithm does not apply.
    """
    try:
        network = whole.without(links=[lost]) if len(lost) == 2 else whole.without(lost)
    except SpecError as error:  # the last NPU
        return str(error)
    found: list[Comparison] = []
    why = ""
    for algorithms, chunks in (([first[0]], first[1]), (_OTHERS, None)):
        if found and not always:
            break
        try:
            options = heeded_by_any(algorithms, replace(given, chunks=chunks, chunk_size=None))
            after = compare(what[0], network, size=what[1], algorithms=algorithms, options=options)
        except (InfeasibleError, SpecError) as error:
            why = str(error)
        else:
            found.append(after)
    return min(found, key=lambda after: after.best.run.time_ps, default=why)


def _failure(part: Part, names: tuple[str, ...], found: Comparison | str, whole_ps: int) -> Failure:
    if isinstance(found, str):
        return Failure(part, names, None, None, None, found)
    time = found.best.run.time_ps
    slowdown = time / whole_ps - 1 if whole_ps else 0.0
    return Failure(part, names, time, slowdown, found.best.algorithm)


def alike_failures(
    network: _core.Topology, parts: Sequence[Part]
) -> list[tuple[Part, list[_Ends]]]:
    """Return the kinds of failures, each with all that are of it, in the order of their first."""
    symmetry = Symmetry(network)
    names = network.device_names
    kinds: dict[tuple[Part, bytes], list[_Ends]] = {}
    for part, devices in _failures(network, parts):
        ends = tuple(names[device] for device in devices)
        kinds.setdefault((part, symmetry.key(devices)), []).append(ends)
    return [(part, kin) for (part, _), kin in kinds.items()]


def _failures(
    network: _core.Topology, parts: Sequence[Part]
) -> Iterator[tuple[Part, tuple[int, ...]]]:
    """Return what may fail: a device, or both ends of a link."""
    if "link" in parts:
        ends = zip(network.link_src.tolist(), network.link_dst.tolist(), strict=True)
        for a, b in dict.fromkeys((min(pair), max(pair)) for pair in ends):
            yield "link", (a, b)
    for i in range(network.device_count):
        part: Part = "npu" if i < network.npu_count else "switch"
        if part in parts:
            yield part, (i,)
