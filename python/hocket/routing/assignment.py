"""``assign`` and what it gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from hocket import _core
from hocket._checks import index_of, instance_of, list_of, one_of
from hocket._core import routing as core_routing
from hocket._options import options_of
from hocket.errors import SpecError
from hocket.routing.options import SchemeOptions
from hocket.units import shown

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Unpack

    from hocket.routing.options import SchemeKeywords

SCHEMES = (
    "greedy",
    "greedy-parallel",
    "ecmp",
    "least-loaded",
    "annealing",
    "edge-coloring",
    "ilp",
    "spray",
)
"""Names that ``assign`` takes as ``scheme``."""

_Flow = tuple[int, int, int]
_Loads: TypeAlias = "npt.NDArray[np.uint64] | npt.NDArray[np.float64]"


class Loads(NamedTuple):
    """The loads of each ToR's links, in the unit of the weights; 0 if there is no link."""

    up: _Loads
    """From each ToR to each spine, (ToRs, spines); on three levels to its agg of each plane."""
    down: _Loads
    """To each ToR from each spine, (ToRs, spines); on three levels from its agg of each plane."""


@dataclass(frozen=True)
class LoadBound:
    """A load that no assignment of whole flows can keep every link below, and why."""

    load: int
    """The bound, in the unit of the weights."""
    tor: int | None
    """A ToR whose flows or whose pod's force it; None without flows, or where a solver proved it."""
    witness: str
    """The proof in words."""


@dataclass(frozen=True)
class Assignment:
    """A path for each flow; made by :func:`assign`.

    Loads are in the unit of the weights. Where bandwidths between switches differ, they are what a
    link of the ``reference`` bandwidth would carry in the same time.
    """

    topology: _core.Topology
    scheme: str
    certificate: LoadBound
    reference: int
    """Bytes per second of a link that a weight loads with just itself: the least common multiple of
    all between switches, which is that of each where they are alike."""
    jobs: tuple[int, ...] | None
    """Job of each flow, where jobs were given."""
    core: core_routing.Assignment | core_routing.Sprayed

    @cached_property
    def flows(self) -> tuple[tuple[int, int, int], ...]:
        """Source ToR, destination ToR and weight of each flow."""
        return tuple(self.core.flows.rows())

    @property
    def choices(self) -> npt.NDArray[np.uint32]:
        """Number of the highest switch that each flow crosses, (flows,).

        That is a spine; on three levels a core, and an agg for flows within a pod.
        """
        return self._whole().choices

    @property
    def spines(self) -> npt.NDArray[np.uint32]:
        """The ``choices`` by their name on two levels: spines."""
        return self.choices

    @property
    def paths(self) -> list[npt.NDArray[np.uint32]]:
        """Links of the topology that each flow takes, from ToR to ToR: two, or four through a core."""
        links, starts = self._whole().path_links, [0, *self._whole().path_ends]
        return [links[start:end] for start, end in pairwise(starts)]

    @property
    def loads(self) -> Loads:
        """The load of each link between a ToR and the switches above it."""
        up, down = self.core.up_loads, self.core.down_loads
        return Loads(up.reshape(self.core.shape), down.reshape(self.core.shape))

    @property
    def link_loads(self) -> _Loads:
        """The load of each link of the topology, (links,); 0 for links of NPUs."""
        return self.core.link_loads

    @property
    def max_link_load(self) -> int | float:
        """The largest load of a link, a whole number but for ``"spray"``."""
        return self.core.max_link_load

    @property
    def gap(self) -> float:
        """The gap of the largest load to its bound: 0 for an optimum, 0.5 for half more.

        Spraying divides flows and may be below.
        """
        return self.max_link_load / self.certificate.load - 1 if self.certificate.load else 0.0

    @property
    def job_loads(self) -> dict[int, int]:
        """Largest load of a link that each job crosses; without jobs all flows are job 0."""
        loads = self.link_loads
        found: dict[int, int] = {}
        for i, path in enumerate(self.paths):
            job = 0 if self.jobs is None else self.jobs[i]
            found[job] = max(found.get(job, 0), int(loads[path].max()))
        return dict(sorted(found.items()))

    def _whole(self) -> core_routing.Assignment:
        if isinstance(self.core, core_routing.Assignment):
            return self.core
        raise SpecError(
            None, "spray sends every flow over all its paths: it has no one choice or path"
        )

    def __repr__(self) -> str:
        """Scheme, size and quality."""
        return (
            f"<Assignment by {self.scheme}: {len(self.core.flows)} flows, largest load "
            f"{self.max_link_load}, at least {self.certificate.load}>"
        )


def assign(
    fabric: _core.Topology,
    flows: Iterable[Sequence[int]] | npt.NDArray[np.integer[Any]],
    *,
    scheme: str = "greedy",
    jobs: Sequence[int] | None = None,
    options: SchemeOptions | None = None,
    **keywords: Unpack[SchemeKeywords],
) -> Assignment:
    """Choose a path for every flow across a two-level Clos or a three-level fat tree.

    Parameters
    ----------
    fabric : Topology
        Made by ``hk.topology.clos`` or ``hk.topology.fat_tree``, less switches or links that failed.
        Switches keep the numbers in their names; the ToRs of a fat tree are its edge switches.
    flows : iterable of (int, int) or (int, int, int), or integer array of shape (flows, 2) or (flows, 3)
        Source ToR, destination ToR and, if it is not 1, weight: a whole number in any unit that all
        flows share, such as bytes.
    scheme : str
        ``"greedy"`` (Algorithm 1 of the paper), ``"greedy-parallel"`` (the same on all cores),
        ``"ecmp"``, ``"least-loaded"`` (of a switch's own uplinks), ``"annealing"`` (Hedera's),
        ``"edge-coloring"`` (the optimum for equal weights and links where only whole switches failed),
        ``"ilp"`` (the optimum, with OR-Tools where the bound does not settle it) or ``"spray"`` (every
        flow evenly over all its paths).
    jobs : sequence of int, optional
        Job of each flow. ``"ilp"`` then goes on from the least maximum to max-min fairness between
        jobs: the largest load that the second worst job meets, the third worst, and so on.
    options, keywords
        How schemes give paths: a :class:`SchemeOptions`, or its fields by name.

    Raises
    ------
    SpecError
        When the network is not a Clos or fat tree, or flows or options make no sense.
    InfeasibleError
        When failures leave flows without a path; they are named.

    References
    ----------
    Cohen et al.: Routing for large ML models, sections 3 and 4.
    """
    one_of("scheme", scheme, SCHEMES)
    instance_of(_core.Topology, "fabric", fabric, "make one, as by hk.topology.clos(...)")
    known = core_routing.Fabric(fabric)
    checked = flows_of(flows)
    of_jobs = None
    if jobs is not None:
        of_jobs = tuple(_whole("job", i, job) for i, job in enumerate(list_of("jobs", jobs)))
    if of_jobs is not None and len(of_jobs) != len(checked):
        raise SpecError(
            None, f"there are {len(of_jobs)} jobs for {len(checked)} flows", "give each one"
        )
    given = options_of(SchemeOptions, options, keywords)

    def made(
        core: core_routing.Assignment | core_routing.Sprayed, certificate: LoadBound
    ) -> Assignment:
        return Assignment(fabric, scheme, certificate, known.reference, of_jobs, core)

    if scheme == "spray":
        sprayed = core_routing.spray(known, checked)
        return made(sprayed, LoadBound(*sprayed.bound))
    hashed = given.choices(known, checked) if scheme == "ecmp" else None
    if scheme != "ilp" and hashed is None:
        found = core_routing.assign(known, checked, scheme, given.seed or 0, given.core)
        return made(found, LoadBound(*found.bound))
    choices, proved = (
        (hashed, 0) if hashed is not None else solve(fabric, known, checked, of_jobs, given)
    )
    core = core_routing.assignment_of(known, checked, choices)
    certificate = LoadBound(*core.bound)
    if proved > certificate.load:
        certificate = LoadBound(proved, None, f"the solver found no assignment below {proved}")
    return made(core, certificate)


def solve(
    topology: _core.Topology,
    fabric: core_routing.Fabric,
    flows: core_routing.Flows,
    jobs: Sequence[int] | None,
    options: SchemeOptions,
) -> tuple[list[int], int]:
    """Return choices by the solver, which starts from the better of two schemes, and a proved bound.

    ``fabric`` is the topology's, less what failed since.
    """
    from hocket.routing.ilp import optimum

    schemes = ("edge-coloring", "greedy")
    known = [
        core_routing.assign(fabric, flows, name, options.seed or 0, options.core)
        for name in schemes
    ]
    start = min(known, key=lambda core: core.max_link_load)
    return optimum(topology, fabric, flows.rows(), start, jobs, options)


def flows_of(given: Any) -> core_routing.Flows:
    """Return flows as the core takes them: of a list of tuples or an array at once, of others one by one.

    Raises
    ------
    SpecError
        Naming the first flow that makes no sense.
    """
    rows = given
    if hasattr(given, "__array__"):
        import numpy as np

        rows = np.asarray(given)
        if rows.dtype.kind in "iu":
            rows = rows.astype(np.int64, copy=False)
    with suppress(TypeError, ValueError, OverflowError):
        return core_routing.Flows(rows)
    return core_routing.Flows([_flow(i, flow) for i, flow in enumerate(list_of("flows", given))])


def _flow(i: int, flow: Any) -> _Flow:
    try:
        parts = tuple(flow)
    except TypeError:
        parts = ()
    if len(parts) not in (2, 3):
        raise SpecError(
            None,
            f"flow {i} is {shown(flow)}",
            "a flow is (source ToR, destination ToR) or, with a weight, (source ToR, "
            "destination ToR, weight)",
        )
    src, dst = (_whole("ToR", i, part, 2**32) for part in parts[:2])
    return src, dst, _whole("weight", i, parts[2], 2**63) if len(parts) == 3 else 1


def _whole(what: str, i: int, value: Any, most: int | None = None) -> int:
    try:
        number = index_of(value)
    except TypeError:
        raise SpecError(None, f"flow {i}: {what} {shown(value)} is not a whole number") from None
    if most is not None and not 0 <= number < most:
        wrong = "is negative" if number < 0 else "is too large"
        raise SpecError(None, f"flow {i}: {what} {number} {wrong}", "give it 0 or more")
    return number
