"""``hocket plan --dimension-only``: which way each chunk goes through the dimensions, without a plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, ClassVar

from hocket import _core
from hocket._core import multirail
from hocket.cli import options
from hocket.cli.command import Argument, Option, Panel
from hocket.cli.groups import Given, Output
from hocket.cli.numbers import share_of
from hocket.cli.simulate import show_dimension_run
from hocket.errors import SpecError
from hocket.plans.advice import MAX_DIMENSIONS, advise_dimensions
from hocket.plans.algorithms import PREFIX, SCHEDULERS, check_name
from hocket.plans.schedule import Schedule
from hocket.plans.schedule import schedule as make_schedule
from hocket.plans.synthesis import PlanOptions
from hocket.simulation.options import DimensionOptions
from hocket.units import counted


@dataclass(frozen=True, kw_only=True)
class Scheduling:
    """The schedule: collective, network and method."""

    panel: ClassVar[str] = "Schedule"

    topology: Annotated[
        str | None,
        options.topology_option("A product topology."),
    ] = None
    bandwidth: options.Bandwidth = None
    latency: options.LatencyText = None
    size: Annotated[
        str | None, Option("--size", "-s", help='Size in bytes, such as "1 GB" or 64MiB.')
    ] = None
    algorithm: Annotated[
        str,
        options.algorithm_option(f"{', '.join(SCHEDULERS)}, or schedule:NAME (a saved schedule)."),
    ] = "multirail-optimal"
    planning: Annotated[
        Given, Panel("Schedule", of=PlanOptions, only=["chunks", "effort", "time_limit"])
    ]
    model: Annotated[DimensionOptions, Panel("Schedule")]

    def network(self) -> _core.Topology:
        """Make the network."""
        network = options.read_topology(self.topology or "", self.bandwidth, self.latency, None)
        switching = self.model.switching
        return network if switching is None else network.with_switching(switching)


def schedule(
    kind: Annotated[
        str | None,
        Argument(metavar="COLLECTIVE", help="all-reduce, reduce-scatter or all-gather."),
    ] = None,
    *,
    what: Scheduling,
    save: Annotated[
        str | None,
        Option("--save", help="Save the schedule under this name, or in this .json file."),
    ] = None,
    saved: Annotated[bool, Option("--list", help="List the saved schedules.")] = False,
    output: Output,
) -> None:
    """Schedule a collective on a product topology, and run the schedule at dimension fidelity.

    For example: hocket plan --dimension-only all-reduce --topology themis-3d-homo --size 1GB --algorithm
    themis --save homo  ·  hocket plan all-reduce --topology themis-3d-homo --size 1GB --algorithm
    schedule:homo
    """
    if saved:
        _list(output.json)
        return
    if kind is None or what.topology is None or what.size is None:
        raise SpecError(
            "schedule",
            "give a collective, --topology and --size, or --list",
            "as `hocket plan --dimension-only all-reduce -t themis-2d -s 1GB`",
        )
    if not what.algorithm.startswith(PREFIX):
        check_name(what.algorithm)
    plot, json = output.plot, output.json
    before = False
    if save is not None:
        from hocket.plans.schedule_file import check_name as check_kept
        from hocket.plans.schedule_file import is_kept

        check_kept(save)
        before = is_kept(save)
    network = what.network()
    with options.watching() as watch:
        made = make_schedule(
            kind,
            network,
            size=what.size,
            algorithm=what.algorithm,
            **what.planning,
            progress=watch,
        )
    if save is not None:
        made.save(save)
    run = made.simulate(latency_model=what.model.latency_model)
    show_dimension_run(run, describe_schedule(made), plot, json)
    if not json:
        console = options.output()
        for line in _orders(made):
            console.print(line)
        limits = limited_by(network)
        if limits is not None:
            console.print(limits)
        if save is not None:
            instead = " in place of an earlier one" if before else ""
            console.print(f"kept as {save}{instead}; use it by --algorithm schedule:{save}")


def describe_schedule(schedule: Schedule) -> str:
    """Describe in a few words what a schedule is."""
    what = options.title(schedule.collective, schedule.topology)
    return f"{schedule.algorithm} {what}: {counted(len(schedule), 'chunk')}, {schedule.policy}"


def limited_by(topology: _core.Topology) -> str | None:
    """Print which dimensions limit every order of the chunks, if any does."""
    rails = multirail.rails(topology)
    if len(rails) > MAX_DIMENSIONS or any(rail[-1] for rail in rails):
        return None
    advice = advise_dimensions(topology)
    return f"{advice.verdict} (hocket topology advise)" if advice.limiting else None


def _orders(schedule: Schedule, most: int = 6) -> list[str]:
    """Return which orders the chunks take, the most frequent first."""
    total = sum(lane.bytes for lane in schedule.lanes)
    shares: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
    counts: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
    for lane in schedule.lanes:
        shares[lane.reduce_scatter, lane.all_gather] += lane.bytes
        counts[lane.reduce_scatter, lane.all_gather] += 1
    lines = []
    for (first, second), size in shares.most_common(most):
        passes = [
            f"{name} {' '.join(str(i + 1) for i in order)}"
            for name, order in (("reduce-scatter", first), ("all-gather", second))
            if order
        ]
        count = counts[first, second]
        lines.append(
            f"{counted(count, 'chunk')}, {share_of(size / total)} of the data: {', '.join(passes)}"
        )
    rest = len(shares) - most
    if rest > 0:
        lines.append(f"and {rest} other orders")
    return lines


def _list(json: bool) -> None:
    from hocket.plans.schedule_file import schedule_folder, schedule_names

    names = schedule_names()
    if json:
        options.print_result("schedules", {"schedules": names})
        return
    for name in names:
        print(name)
    if not names:
        print(f"none yet: --save NAME keeps one in {schedule_folder()}")
