"""Table I and figures 8 to 14 of Laskar et al.: all-reduce on meshes of chiplets, packet by packet.

Every plan is proved, and run at packet fidelity with table II (the preset ``mcm``). Sizes are powers
of two, as in the published scripts. Nothing here was fitted to what was published; where a figure
differs, :mod:`hocket_studies.mesh_choices` tries what could explain it.

References
----------
Laskar et al.: Enhancing Collective Communication in MCM Accelerators for Deep Learning Training, HPCA
2024, sections III-C, VII and VIII.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field, replace
from statistics import mean

from hocket import _core, topology
from hocket.collectives.collective import Progress, collective_on
from hocket.collectives.timing import LinkOrder
from hocket.plans.plan import Plan
from hocket.plans.planner import plan
from hocket.simulation.options import PRESETS
from hocket.simulation.run import Run, simulate
from hocket_studies.mesh_trees import published_multitree
from hocket_studies.parallel import in_parallel

KIB, MIB = 1 << 10, 1 << 20
BANDWIDTH, LATENCY, PRESET = "25 GB/s", "21 ns", "mcm"
CHUNK = 98_304
"""Published default of TTO [bytes]."""

METHODS = (
    "ring",
    "ring-2d",
    "double-binary-tree",
    "multitree",
    "multitree-published",
    "bidirectional",
    "tto",
    "tto-chosen",
    "tto-overlapped",
)
"""``bidirectional`` is bidirectional-ring or ring-bi-odd; tto-chosen is tto with hocket's chunks."""

SLOW = ("ring-2d", "double-binary-tree")
"""Whose messages go over several links, so that every flit is simulated."""

VARIANTS = ("header", "sums", "ready", "unpipelined", "relayed", "whole-packets")
"""A header flit for each packet; sums at 100 GB/s; links serve in the order in which messages come; one
chunk; what goes over several links is stored by each, at link fidelity; messages fill their packets."""

OnCase = Callable[[str, int, int], None]
"""Called as ``on_case(what, done, total)`` after each run."""


@dataclass(frozen=True, order=True)
class Case:
    """One all-reduce on a square mesh."""

    side: int
    size: int
    """Bytes."""
    method: str
    chunk: int | None = None
    """Bytes of a chunk of tto, where it is not the published one."""
    variant: str = ""
    """Some of :data:`VARIANTS`, joined by +: what is done otherwise."""

    @property
    def variants(self) -> tuple[str, ...]:
        """The alternatives, one by one."""
        return tuple(self.variant.split("+")) if self.variant else ()


def network(side: int) -> _core.Topology:
    """Make a mesh of chiplets."""
    return topology.mesh(side, side, bandwidth=BANDWIDTH, latency=LATENCY)


def trains(side: int, method: str) -> int:
    """Return how many chiplets take part: all, or all but a corner."""
    return side * side - method.startswith("tto")


def plan_of(case: Case, progress: Progress | None = None) -> Plan:
    """Plan a case, and prove it."""
    on, size = network(case.side), f"{_filled(case)} B"
    if case.method == "multitree-published":
        return published_multitree(on, size)
    if case.method.startswith("tto"):
        corner = case.side * (case.side - 1)
        npus = [npu for npu in range(on.npu_count) if npu != corner]
        name = "tto-overlapped" if case.method == "tto-overlapped" else "tto"
        chunk = None if case.method == "tto-chosen" else min(case.chunk or CHUNK, case.size)
        chunk_size = None if chunk is None else f"{chunk} B"
        among = collective_on("all-reduce", on, size, npus=npus)
        chunks = None if chunk_size else _core.registry.default_chunks(on, among, name)
        made = plan(among, on, algorithm=name, chunks=chunks, chunk_size=chunk_size)
    elif case.method == "double-binary-tree":
        among = collective_on("all-reduce", on, size)
        default = _core.registry.default_chunks(on, among, case.method)
        chunks = 1 if "unpipelined" in case.variants else default
        made = plan("all-reduce", on, size=size, algorithm=case.method, chunks=chunks)
    else:
        bidirectional = "ring-bi-odd" if case.side % 2 else "bidirectional-ring"
        name = bidirectional if case.method == "bidirectional" else case.method
        made = plan("all-reduce", on, size=size, algorithm=name, chunks=1)
    return made.verify(progress=progress)


def _filled(case: Case) -> int:
    """Bytes of a case; with whole packets, so many that every message of a ring or tree fills its own."""
    if "whole-packets" not in case.variants:
        return case.size
    parts = case.side * case.side * (2 if case.method == "bidirectional" else 1)
    whole = parts * int(PRESETS[PRESET].to_core()["packet_bytes"] or 1)
    return -(-case.size // whole) * whole


def time_of(case: Case, progress: Progress) -> int:
    """Plan, prove and run a case; give its time [ps]."""
    return run_of(case, progress=progress).time_ps


def run_of(case: Case, *, keep_services: bool = False, progress: Progress | None = None) -> Run:
    """Plan, prove and run a case."""
    made = plan_of(case, progress)
    if "relayed" in case.variants:
        return simulate(made, switching="store-and-forward", progress=progress)
    packets = PRESETS[PRESET]
    if "header" in case.variants:
        packets = replace(packets, header_flits=1)
    if "sums" in case.variants:
        packets = replace(packets, reduction_rate="100 GB/s")
    order: LinkOrder | None = "ready" if "ready" in case.variants else None
    return simulate(
        made,
        fidelity=replace(packets, order=order),
        keep_services=keep_services,
        progress=progress,
    )


@dataclass
class Study:
    """Times of cases [ps], each run once."""

    times: dict[Case, int] = field(default_factory=dict)

    def run(self, cases: Iterable[Case], on_case: OnCase | None = None) -> None:
        """Run the cases that were not run yet, on all cores, the longest first."""
        new = sorted(set(cases) - self.times.keys(), key=_work, reverse=True)
        if not new:
            return
        with closing(in_parallel(time_of, new)) as times:
            for done, (case, time_ps) in enumerate(times, 1):
                self.times[case] = time_ps
                if on_case is not None:
                    name = " ".join(filter(None, (case.method, case.variant)))
                    on_case(f"{name} on {case.side} x {case.side}", done, len(new))

    def bandwidth(self, case: Case) -> float:
        """Size / time [bytes/s]."""
        return case.size / self.times[case] * 1e12

    def speedups(
        self, of: str, over: str, sides: Iterable[int], sizes: Iterable[int]
    ) -> list[float]:
        """Time of ``over`` / time of ``of``, wherever both were run."""
        pairs = [
            (self.times.get(Case(side, size, over)), self.times.get(Case(side, size, of)))
            for side in sides
            for size in sizes
        ]
        return [theirs / ours for theirs, ours in pairs if theirs and ours]

    def mean_speedup(
        self, of: str, over: str, sides: Iterable[int], sizes: Iterable[int]
    ) -> float | None:
        """Mean of :meth:`speedups`; ``None`` where there are none."""
        found = self.speedups(of, over, sides, sizes)
        return mean(found) if found else None


def _work(case: Case) -> int:
    """About how long a case takes to run, in no unit."""
    return case.size * case.side * case.side * (20 if case.method in SLOW else 1)


SIDES = (4, 5, 8, 9)
ODD = (5, 9)


@dataclass(frozen=True)
class Sizes:
    """Figure 8: all-reduces of many sizes on four meshes."""

    sizes: tuple[int, ...]
    study: Study

    def mean_speedup(self, of: str, over: str, sides: tuple[int, ...] = SIDES) -> float | None:
        """Mean over meshes and sizes of time of ``over`` / time of ``of``."""
        return self.study.mean_speedup(of, over, sides, self.sizes)


def figure_8(study: Study, *, full: bool, on_case: OnCase | None = None) -> Sizes:
    """Run 1 MiB to 1 GiB; without ``full`` to 256 MiB, and what is slow to simulate to 64 MiB."""
    most, most_slow = (10, 10) if full else (8, 6)
    sizes = tuple(MIB << i for i in range(most + 1))
    cases = [
        Case(side, size, method)
        for side in SIDES
        for size in sizes
        for method in METHODS
        if method not in SLOW or size <= MIB << most_slow
    ]
    study.run(cases, on_case)
    return Sizes(sizes, study)


SCALING_METHODS = ("ring", "ring-2d", "multitree", "multitree-published", "bidirectional", "tto")
SCALING_SIDES = tuple(range(3, 17))


def scaling_size(side: int) -> int:
    """375 KiB for each chiplet [bytes]."""
    return 375 * KIB * side * side


def figure_9(study: Study, on_case: OnCase | None = None) -> Study:
    """Run 9 to 256 chiplets."""
    cases = [
        Case(side, scaling_size(side), method)
        for side in SCALING_SIDES
        for method in SCALING_METHODS
    ]
    study.run(cases, on_case)
    return study


def scaling_speedup(study: Study, of: str, over: str, *, odd: bool = False) -> float:
    """Mean over meshes of time of ``over`` / time of ``of``."""
    sides = [side for side in SCALING_SIDES if side % 2 or not odd]
    pairs = [(Case(s, scaling_size(s), over), Case(s, scaling_size(s), of)) for s in sides]
    return mean(study.times[theirs] / study.times[ours] for theirs, ours in pairs)


CHUNKS = tuple(6 * KIB << i for i in range(11))
"""6 KiB to 6 MiB."""


def figure_14(study: Study, on_case: OnCase | None = None) -> dict[int, float]:
    """Bandwidth [bytes/s] of tto by chunk [bytes], 128 MiB on 8 x 8."""
    cases = {chunk: Case(8, 128 * MIB, "tto", chunk) for chunk in CHUNKS}
    study.run(cases.values(), on_case)
    return {chunk: study.bandwidth(case) for chunk, case in cases.items()}


UTILIZATION_METHODS = (
    "ring",
    "ring-2d",
    "multitree",
    "multitree-published",
    "bidirectional",
    "tto",
)


@dataclass(frozen=True)
class Curve:
    """Figure 12: the share of links in use over time."""

    method: str
    time_ps: int
    shares: tuple[float, ...]
    """Mean over links, in equal parts of the run."""
    mean: float
    """Over the whole run."""


def figure_12(
    on_case: OnCase | None = None, *, side: int = 9, size: int = 256 * MIB
) -> list[Curve]:
    """Run 256 MiB on 9 x 9."""
    curves = []
    for done, method in enumerate(UTILIZATION_METHODS):
        if on_case is not None:
            on_case(f"links of {method}", done, len(UTILIZATION_METHODS))
        run = run_of(Case(side, size, method), keep_services=True)
        shares = run.heat(100).mean(axis=0)
        curves.append(Curve(method, run.time_ps, tuple(map(float, shares)), run.used_link_share))
    return curves


def table_1(side: int) -> dict[str, float]:
    """Return used links: link-steps used / (steps x links), from runs without latency.

    Ring-2D's closing messages are stored and forwarded, a link a step.
    """
    free = topology.mesh(side, side, bandwidth=BANDWIDTH, latency="0 ns")
    size = f"{side * side * (side * side - 1) * 64} B"
    bidirectional = "ring-bi-odd" if side % 2 else "bidirectional-ring"
    names = {
        "ring": "ring",
        "bidirectional": bidirectional,
        "ring-2d": "ring-2d",
        "multitree": "multitree",
    }
    shares = {}
    for method, name in names.items():
        made = plan("all-reduce", free, size=size, algorithm=name, chunks=1)
        shares[method] = simulate(made).used_link_share
    shares["multitree-published"] = simulate(published_multitree(free, size)).used_link_share
    return shares
