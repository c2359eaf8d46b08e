"""A collective among processes of this machine: started, checked against NumPy, and timed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from hocket import _core
from hocket._options import options_of, seconds
from hocket._results import Result, figure, said
from hocket.collectives.collective import ROOTED
from hocket.errors import InfeasibleError, SimulationError, SpecError
from hocket.plans.plan import Plan
from hocket.plans.planner import plan as make_plan
from hocket.runtime.options import MeasureOptions
from hocket.runtime.processes import MAX_RANKS, run_processes
from hocket.simulation.run import simulate
from hocket.topology import fully_connected
from hocket.units import parse_size

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hocket.runtime.options import MeasureKeywords

_SHARED = "shared-memory"
_TCP = "tcp"
_CHOSEN = "chosen by size"


def _count(times: tuple[int, ...]) -> int:
    return len(times)


@dataclass(frozen=True)
class TimedCalls(Result):
    """The time of a collective on this machine.

    Attributes
    ----------
    collective, algorithm, ranks, root, size, dtype, op, transport
        What was run: bytes of the whole vector, and ``shared-memory`` where no plan was.
    times_ps
        Of each call, until the last rank had its result.
    predicted_ps
        Of a plan: its time at link fidelity on the network that it was planned for.
    load_average
        Of the machine when it began.
    """

    collective: str
    algorithm: str
    ranks: int
    root: int
    size: int = field(metadata=said("size_bytes"))
    dtype: str
    op: str
    transport: str
    times_ps: tuple[int, ...] = field(metadata=said("calls", of=_count))
    predicted_ps: int | None
    load_average: float

    @property
    @figure()
    def min_ps(self) -> int:
        """The least time of a call."""
        return min(self.times_ps)

    @property
    @figure()
    def median_ps(self) -> int:
        """The median time of a call."""
        return round(median(self.times_ps))

    @property
    @figure()
    def p90_ps(self) -> int:
        """The time within which nine of ten calls ended."""
        return round(float(np.percentile(self.times_ps, 90)))

    @property
    @figure()
    def algbw(self) -> float:
        """Bytes of the vector by the median time [bytes/s]."""
        return self.size * 1e12 / self.median_ps

    @property
    @figure()
    def busbw(self) -> float:
        """The rate that each link must have carried, as nccl-tests counts it [bytes/s]."""
        root = self.root if self.collective in ROOTED else None
        done = _core.Collective(self.collective, list(range(self.ranks)), self.size, root)
        return self.algbw * done.bus_factor


def run_plan(
    what: Plan | str = "all-reduce",
    *,
    ranks: int | None = None,
    size: int | str | None = None,
    algorithm: str | None = None,
    options: MeasureOptions | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    **keywords: Unpack[MeasureKeywords],
) -> TimedCalls:
    """Start processes that do a collective, check the result against NumPy, and time it.

    Parameters
    ----------
    what
        A plan, or a kind of collective.
    ranks
        How many processes; by default those of the plan.
    size
        Bytes of the whole vector, rounded down to whole numbers for all ranks; by default the plan's.
    algorithm
        Of a kind: the plan that is run, on a fully connected network. Without it the collective goes
        through shared memory where that is possible, or takes the plan that a communicator chooses.
    options
        What is done, and how often.
    progress
        Called as ``progress(stage, done, total)``.
    keywords
        Any option of :class:`MeasureOptions` by its name, in place of the one in `options`.

    Returns
    -------
    Measured
        With the time of each call.

    Raises
    ------
    SpecError
        For arguments that make no sense.
    InfeasibleError
        If the plan cannot be made or run, or memory cannot be shared.
    TransportError
        If a process died or stood still.
    VerificationError
        If the plan is wrong.
    """
    chosen = options_of(MeasureOptions, options, keywords)
    plan, kind, ranks, size, root = _task(what, ranks, size, algorithm, chosen.root)
    width = np.dtype(chosen.dtype).itemsize
    count = size // width // ranks * ranks
    if count == 0:
        raise SpecError("size", f"{size} bytes are no {chosen.dtype} for each of {ranks} ranks")
    predicted = None
    if plan is not None:
        plan.verify()
        if plan.collective.size == size:
            predicted = _predicted(plan)
    is_auto = chosen.transport == "auto"
    given: dict[str, Any] = {
        "kind": kind,
        "root": root,
        "op": chosen.op,
        "dtype": chosen.dtype,
        "count": count,
        "transport": _TCP if plan is not None and is_auto else chosen.transport,
        "plan": None,
        "calls": chosen.calls,
        "timeout": seconds(chosen.timeout, "timeout"),
    }
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="hocket-") as folder:
        if plan is not None:
            given["plan"] = str(Path(folder) / "plan.parquet")
            plan.save(given["plan"])
        ended = run_processes("hocket.runtime.rank", given, ranks, progress, ("run", chosen.calls))
    times = np.array([each["times"] for each in ended]).max(axis=0) * 1000
    used = str(ended[0]["transport"])
    unplanned = _CHOSEN if used == _TCP else _SHARED
    return TimedCalls(
        collective=kind,
        algorithm=unplanned if plan is None else plan.algorithm,
        ranks=ranks,
        root=root,
        size=count * width,
        dtype=chosen.dtype,
        op=chosen.op,
        transport=used,
        times_ps=tuple(int(each) for each in times),
        predicted_ps=predicted,
        load_average=load,
    )


def _predicted(plan: Plan) -> int | None:
    """Simulate a plan; None where it is too large for that."""
    try:
        return simulate(plan).time_ps
    except (InfeasibleError, SimulationError, SpecError):
        return None


def _task(
    what: Plan | str, ranks: int | None, size: int | str | None, algorithm: str | None, root: int
) -> tuple[Plan | None, str, int, int, int]:
    """Return the plan, kind, number of ranks, size and root."""
    wanted = None if size is None else parse_size(size, field="size")
    if isinstance(what, Plan):
        collective = what.collective
        has = len(collective.npus)
        if algorithm is not None:
            raise SpecError("algorithm", "the plan has its own", "leave it out")
        if ranks not in (None, has):
            raise SpecError("ranks", f"the plan is for {has} ranks, not {ranks}")
        return what, collective.kind, has, wanted or collective.size, collective.root or 0
    if ranks is None:
        raise SpecError("ranks", "is missing", "say how many processes to start")
    if not 2 <= ranks <= MAX_RANKS:
        raise SpecError("ranks", f"{ranks} is not 2 to {MAX_RANKS}")
    if wanted is None:
        raise SpecError("size", "is missing", 'give bytes, as in "16 MB"')
    if not 0 <= root < ranks:
        raise SpecError("root", f"{root} is not a rank of 0 to {ranks - 1}")
    network = fully_connected(ranks, bandwidth="10 GB/s", latency="10 us")
    plan = None
    kind = _core.Collective(what, list(range(ranks)), wanted, root if what in ROOTED else None).kind
    if algorithm is not None:
        plan = make_plan(
            kind, network, size=wanted, algorithm=algorithm, root=root if kind in ROOTED else None
        )
    return plan, kind, ranks, wanted, root if kind in ROOTED else 0
