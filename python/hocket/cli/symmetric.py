"""The command ``hocket plan --algorithm symmetric``."""

from __future__ import annotations

from pathlib import Path

from hocket import _core
from hocket.cli import options
from hocket.cli.certificate import print_certificates
from hocket.cli.numbers import share_of
from hocket.errors import InfeasibleError, SpecError
from hocket.plans.algorithms import heeded
from hocket.plans.auto import MOST_TRANSFERS as MOST_KEPT
from hocket.plans.symmetric import MOST_TRANSFERS, NAME, SymmetricPlan, shift
from hocket.plans.synthesis import PlanOptions
from hocket.units import format_time_ps


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
) -> SymmetricPlan | None:
    """Plan by symmetry for auto, where whole plans have too many transfers to keep them one by one.

    Return None if they have not, or if that is not within 3 % of the bound.
    """
    given = heeded(NAME, planning)
    if planning.runtime is not None:
        return None
    try:
        if _core.registry.least_transfers(topology, collective, NAME, 1) <= MOST_KEPT:
            return None
        with options.watching() as watch:
            made = shift(
                collective, topology, given, most_transfers=_most(topology, output), progress=watch
            )
    except (InfeasibleError, SpecError):
        return None
    return made if made.time_ps * 100 <= made.bound_ps * 103 else None


def show(made: SymmetricPlan, output: str | None, json: bool) -> None:
    """Write the whole plan if a file is named, and print what it comes to."""
    if output is not None:
        made.expand().save(output)
    if json:
        options.print_result("symmetric-plan", {**made.to_dict(), "file": output})
        return
    options.say(describe(made))
    above = share_of(made.gap)
    bound = format_time_ps(made.bound_ps)
    took = format_time_ps(made.time_ps)
    options.say(f"time {took}: {above} above the bound, {bound}")
    options.say(group_line(made))
    print_certificates(made.packings)
    if output is not None:
        options.say(f"written to {Path(output)}")
    else:
        options.note("not kept: give -o plan.parquet to write the whole plan to a file")


def _most(topology: _core.Topology, output: str | None) -> int:
    """Return how many transfers of one block there may be: few, if all that they stand for are written."""
    return MOST_TRANSFERS if output is None else MOST_KEPT // topology.npu_count


def describe(made: SymmetricPlan) -> str:
    """Describe what is planned, and how much of it is kept."""
    what = options.title(made.collective, made.topology)
    whole = f"{made.transfers:,} transfers, {len(made.block):,} of one block and their shifts"
    return f"symmetric {what}: {whole}, proved"


def group_line(made: SymmetricPlan) -> str:
    """Return which group it is, and how many kinds of links it leaves."""
    group = " x ".join(f"Z{order}" for order in made.group)
    kinds = "1 kind" if made.orbits == 1 else f"{made.orbits} kinds"
    return f"shifts: {group}, which take each NPU to every other; {kinds} of links"
