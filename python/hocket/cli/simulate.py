"""``hocket simulate``: run a plan from a file in simulated time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from hocket._results import picoseconds
from hocket.cli import complete, options
from hocket.cli.command import Option
from hocket.cli.groups import Output, Simulation
from hocket.cli.numbers import share_of
from hocket.cli.plan import describe
from hocket.cli.table import Table
from hocket.collectives.outcome import Outcome
from hocket.errors import SpecError
from hocket.files.atomic import check_apart
from hocket.plans.dimension_run import DimensionRun
from hocket.plans.plan import Plan
from hocket.profiles.plans import PlanPrediction, predict_plan
from hocket.simulation.options import DimensionOptions, LinkOptions, PacketOptions
from hocket.simulation.run import Run
from hocket.simulation.run import simulate as run_plan
from hocket.units import format_bandwidth, format_size, format_time_ps


@dataclass(frozen=True, kw_only=True)
class AnyFidelity(Simulation):
    """The options of the simulation."""

    fidelity: Annotated[
        str,
        Option(
            "--fidelity",
            complete=complete.all_fidelities,
            help="link: each link serves whole messages; flow: fluids that share links fairly; packet: "
            "flits in routers with buffers; dimension: the schedule of a multi-rail plan.",
        ),
    ] = "link"
    routing: options.OwnRouting = None


@dataclass(frozen=True)
class AsMeasured:
    """The time of the plan on a real machine."""

    panel: ClassVar[str] = "Real machine"

    profile: Annotated[
        str | None,
        Option(
            "--profile",
            metavar="PROFILE",
            help="Also predict the time on a real machine, by this profile or topology file.",
        ),
    ] = None
    protocol: Annotated[
        str | None,
        Option("--protocol", help="Protocol: ll, ll128 or simple. Default: the fastest of them."),
    ] = None
    launch: Annotated[
        str | None,
        Option(
            "--launch",
            help="How the program launches the collective: a launch kind of the profile.",
        ),
    ] = None

    def of(self, plan: Plan) -> PlanPrediction | None:
        """Predict a plan; None where that was not asked for."""
        if self.profile is None:
            for name, given in (("--protocol", self.protocol), ("--launch", self.launch)):
                if given is not None:
                    raise SpecError(name, "there is no --profile that it is of", "give one")
            return None
        return predict_plan(plan, self.profile, protocol=self.protocol, launch=self.launch)


def simulate(
    plan: options.PlanFile,
    *,
    simulation: AnyFidelity,
    measured: AsMeasured,
    file: Annotated[
        str | None,
        options.output_file("Write the start and end of every transfer to this Parquet file."),
    ] = None,
    perfetto: options.Perfetto = None,
    output: Output,
) -> None:
    """Prove a plan and run it in simulated time.

    For example: hocket simulate plan.parquet --switching cut-through --plot heat.png
    """
    fidelity = simulation.any_fidelity()
    plot = output.plot
    if file is not None:
        check_apart(file, [plan], "the plan")
    made = Plan.load(plan)
    if isinstance(fidelity, DimensionOptions):
        for name, given in (
            ("--output", file),
            ("--perfetto", perfetto),
            ("--routing", simulation.routing),
        ):
            if given is not None:
                raise SpecError(
                    name, "dimension fidelity has no links", "leave it out, or use link"
                )
        outcome = run_plan(made, fidelity=fidelity)
        show_dimension_run(outcome, describe(made), plot, output.json)
        return
    offer = [] if isinstance(fidelity, LinkOptions) else ["--fidelity link"]
    options.announce(len(made), len(made), offer)
    with options.watching() as watch:
        run = run_plan(
            made,
            fidelity=fidelity,
            routing=simulation.routing,
            keep_services=plot is not None or perfetto is not None,
            progress=watch,
        )
    if plot is not None:
        from hocket.plot.heat import draw_heat

        draw_heat(run, Path(plot))
    if perfetto is not None:
        run.save_perfetto(perfetto)
    if file is not None:
        run.save(file)
    found = measured.of(made)
    if output.json:
        extra = {} if found is None else {"measured": found.to_dict()}
        options.print_result("run", {**run.to_dict(), **extra})
    else:
        _print(run, found)


def _print(run: Run, found: PlanPrediction | None) -> None:
    table = Table(title=describe(run.plan), show_header=False)
    busiest = run.busiest_link
    _times(table, run)
    table.add_row("utilization of all links", f"{share_of(run.utilization)}")
    _uses(table, run)
    if busiest is not None:
        table.add_row(
            "busiest link", f"{busiest[0]}→{busiest[1]}, {share_of(busiest[2])} of the time"
        )
    table.add_row("most bytes over a link", format_size(run.max_link_bytes))
    table.add_row("links", _links(run))
    if run.equal_links[0]:
        idle = f"{run.plan.routing}; {options.idle_links(run)} links are idle"
        table.add_row("equal paths", idle)
    if run.cycle_ps is not None:
        table.add_row("packets", _packets(run))
        table.add_row("cycle", format_time_ps(run.cycle_ps))
    table.add_row("verified", "proved")
    if found is not None:
        took, fixed, launch = (
            format_time_ps(picoseconds(seconds))
            for seconds in (found.seconds, found.fixed, found.launch)
        )
        parts = (
            f"{found.protocol}, fixed cost {fixed}, launch {launch}; profile {found.profile.name}"
        )
        table.add_row("on a real machine", f"{took} ({parts})")
        if found.below_bound is not None:
            table.add_row("below the bound", found.below_bound)
    options.output().print(table)


def _links(run: Run) -> str:
    """Describe how links serve."""
    if run.order is None:
        return f"{run.switching}, shared max-min fairly"
    return f"{run.switching}, serve in {run.order} order"


def _packets(run: Run) -> str:
    """Describe what packets and buffers are, and what an NPU takes to sum."""
    packets = run.options
    assert isinstance(packets, PacketOptions)
    header = f" after {packets.header_flits} of a header" if packets.header_flits else ""
    sums = (
        f"; sums at {format_bandwidth(int(packets.reduction_rate))}"
        if packets.reduction_rate
        else ""
    )
    return (
        f"{packets.packet_size} B in flits of {packets.flit_size} B{header}, "
        f"{packets.virtual_channels} virtual channels of {packets.buffer_flits}{sums}"
    )


def show_dimension_run(run: DimensionRun, title: str, plot: str | None, json: bool) -> None:
    """Print what a schedule comes to at dimension fidelity, and draw it where asked."""
    if plot is not None:
        from hocket.plot.activity import draw_activity

        draw_activity(run, Path(plot))
    if json:
        options.print_result("dimension-run", run.to_dict())
        return
    table = Table(title=title, show_header=False)
    _times(table, run)
    _uses(table, run)
    table.add_row("steps", f"{run.switching}, latency {run.latency_model}")
    options.output().print(table)


def _times(table: Table, run: Outcome) -> None:
    bound = run.lower_bound
    table.add_row("time", format_time_ps(run.time_ps))
    table.add_row("algbw", format_bandwidth(round(run.algbw)))
    table.add_row("busbw", format_bandwidth(round(run.busbw)))
    table.add_row("bound", f"{format_time_ps(bound.time_ps)}: {bound.witness}")
    table.add_row("gap", f"{share_of(run.gap)}")


def _uses(table: Table, run: Outcome) -> None:
    used = iter(run.dimensions if run.topology.dimensions else ())
    for i, (kind, size, *_) in enumerate(run.topology.dimensions):
        text = f"{kind} of 1: skipped"
        if size > 1:
            use = next(used)
            rate = format_bandwidth(round(use.bandwidth))
            text = f"{use.kind} of {use.size}, {rate}: {share_of(use.utilization)}"
        table.add_row(f"dimension {i + 1}", text)
    if run.topology.dimensions:
        table.add_row("weighted utilization", f"{share_of(run.weighted_utilization)}")
        if run.ideal is not None:
            table.add_row("ideal", format_time_ps(picoseconds(run.ideal)))
