"""Plans of ``hocket plan`` of which a part is kept: by symmetry, and along trees with many pieces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hocket import _core
from hocket._core.pipelined import kept_among
from hocket.cli import options
from hocket.cli.certificate import print_certificates
from hocket.cli.numbers import share_of
from hocket.errors import InfeasibleError, SpecError
from hocket.plans.algorithms import heeded
from hocket.plans.auto import MOST_TRANSFERS as MOST_KEPT
from hocket.plans.pipelined import NAME as TREES
from hocket.plans.pipelined import PipelinedPlan, pipeline
from hocket.plans.sizes import taken
from hocket.plans.symmetric import MOST_TRANSFERS, NAME, SymmetricPlan, shift
from hocket.plans.synthesis import PlanOptions
from hocket.units import format_time_ps

SOME_NPUS = 448
"""NPUs from which on a whole plan of trees has few pieces, and others come no nearer to the bound."""
MANY_NPUS = 2048
"""NPUs from which on such a plan has too few pieces to fill the network."""
FAIR = 5
"""How far above the bound trees with many pieces may end [%]: above that, whole plans may be better."""
FAIR_OF_MANY = 20
"""The same from :data:`MANY_NPUS` on."""
SECONDS = 0.01
"""Processor time for each NPU that such trees take: growing, simulating, proving [s]."""
IN_TIME = 0.5
"""The share of a time limit that is planned for."""
FEWEST = 4
"""Trees at the least, where a time limit allows no more."""
FEW_BYTES = 1 << 14
"""Bytes for each NPU below which latency decides, not the number of pieces."""


def plan_and_show(
    collective: _core.Collective,
    topology: _core.Topology,
    planning: PlanOptions,
    output: str | None,
    json: bool,
) -> None:
    """Plan by symmetry, and show the plan."""
    with options.watching() as watch:
        most = _most(topology, output)
        made = shift(collective, topology, planning, most_transfers=most, progress=watch)
    show(made, output, json)


def chosen(
    collective: _core.Collective,
    topology: _core.Topology,
    planning: PlanOptions,
    output: str | None,
    pending: Callable[[], options.Meanwhile[_core.Bound]],
) -> SymmetricPlan | PipelinedPlan | None:
    """Plan for auto where whole plans have too many transfers to keep them one by one.

    Return None if they have not, or if no such plan comes near the bound; `pending` computes that.
    """
    if planning.runtime is not None:
        return None
    try:
        is_large = _core.registry.least_transfers(topology, collective, NAME, 1) > MOST_KEPT
    except (InfeasibleError, SpecError):
        is_large = False
    may_be_along_trees = output is None and _is_wide(collective, topology)
    if is_large or may_be_along_trees:
        made = _by_symmetry(collective, topology, planning, output)
        if made is not None:
            return made if is_large else None
    return _along_trees(collective, topology, planning, pending) if may_be_along_trees else None


def _by_symmetry(
    collective: _core.Collective,
    topology: _core.Topology,
    planning: PlanOptions,
    output: str | None,
) -> SymmetricPlan | None:
    given = heeded(NAME, planning)
    try:
        with options.watching() as watch:
            made = shift(
                collective, topology, given, most_transfers=_most(topology, output), progress=watch
            )
    except (InfeasibleError, SpecError):
        return None
    return made if made.time_ps * 100 <= made.bound_ps * 103 else None


def _is_wide(collective: _core.Collective, topology: _core.Topology) -> bool:
    """Return whether trees of an all-reduce of much data may have too few pieces in a whole plan."""
    npus = topology.npu_count
    is_all = collective.kind == "all-reduce" and len(collective.npus) == npus >= SOME_NPUS
    return is_all and collective.size >= FEW_BYTES * npus


def _along_trees(
    collective: _core.Collective,
    topology: _core.Topology,
    planning: PlanOptions,
    pending: Callable[[], options.Meanwhile[_core.Bound]],
) -> PipelinedPlan | None:
    kept, seconds = kept_among(topology.npu_count), SECONDS * topology.npu_count
    given, trees = heeded(TREES, planning), None
    if planning.seconds is not None and planning.seconds * IN_TIME < seconds:
        each = kept * planning.seconds * IN_TIME / seconds
        trees = max(int(each / 2 / (topology.npu_count - 1)), FEWEST)
        kept, seconds = trees * 2 * (topology.npu_count - 1), planning.seconds
        options.aside(f"--time-limit: few trees, {trees}, for lack of time; more of it gives more")
    cost = taken(kept, kept, seconds)
    options.announce_cost(
        f"one piece of each tree: {cost}", options.cheaper_than(collective, topology, kept, ())
    )
    try:
        with options.watching() as watch:
            bound = pending()
            made = pipeline(
                collective, topology, given, progress=watch, bound=bound.result, trees=trees
            )
    except (InfeasibleError, SpecError):
        return None
    fair = FAIR_OF_MANY if topology.npu_count >= MANY_NPUS else FAIR
    return made if trees is not None or made.time_ps * 100 <= made.bound_ps * (100 + fair) else None


def show(made: SymmetricPlan | PipelinedPlan, output: str | None, json: bool) -> None:
    """Write the whole plan if a file is named, and print what it comes to."""
    if output is not None:
        made.expand().save(output)
    if json:
        name = "symmetric-plan" if isinstance(made, SymmetricPlan) else "pipelined-plan"
        options.print_result(name, {**made.to_dict(), "file": output})
        return
    options.say(describe(made))
    above = share_of(made.gap)
    bound = format_time_ps(made.bound_ps)
    took = format_time_ps(made.time_ps)
    options.say(f"time {took}: {above} above the bound, {bound}")
    if isinstance(made, SymmetricPlan):
        options.say(group_line(made))
        print_certificates(made.packings)
    else:
        options.say(pieces_line(made))
    if output is not None:
        options.say(f"written to {Path(output)}")
    elif isinstance(made, SymmetricPlan):
        options.note("not kept: give -o plan.parquet to write the whole plan to a file")
    else:
        options.note("not kept: -o plan.parquet writes a plan of fewer pieces, which ends later")


def _most(topology: _core.Topology, output: str | None) -> int:
    """Return how many transfers of one block there may be: few, if all that they stand for are written."""
    return MOST_TRANSFERS if output is None else MOST_KEPT // topology.npu_count


def describe(made: SymmetricPlan | PipelinedPlan) -> str:
    """Describe what is planned, and how much of it is kept."""
    what = options.title(made.collective, made.topology)
    others = "one block and their shifts"
    if not isinstance(made, SymmetricPlan):
        others = "the first piece of each tree"
    whole = f"{made.transfers:,} transfers, {len(made.block):,} of {others}, proved"
    return f"{made.algorithm} {what}: {whole}"


def pieces_line(made: PipelinedPlan) -> str:
    """Return how many trees and pieces there are, and which were simulated."""
    numbers = [count for count, _ in made.simulated]
    trees = f"{made.trees} trees, each with {made.pieces} pieces one after another"
    if numbers == [made.pieces]:
        return f"{trees}: all simulated"
    few, more = numbers
    return f"{trees}: the time is extrapolated from {few} and {more} pieces of that size"


def group_line(made: SymmetricPlan) -> str:
    """Return which group it is, and how many kinds of links it leaves."""
    group = " x ".join(f"Z{order}" for order in made.group)
    kinds = "1 kind" if made.orbits == 1 else f"{made.orbits} kinds"
    return f"shifts: {group}, which take each NPU to every other; {kinds} of links"
