"""``hocket run``: a plan, or a collective, among processes of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from hocket.cli import complete, options
from hocket.cli.command import Argument, Option, Panel
from hocket.cli.groups import Given
from hocket.cli.table import Table
from hocket.errors import SpecError
from hocket.plans.plan import Plan
from hocket.runtime.options import MeasureOptions
from hocket.units import format_bandwidth, format_size, format_time_ps

if TYPE_CHECKING:
    from hocket.runtime import TimedCalls


@dataclass(frozen=True, kw_only=True)
class Unplanned:
    """The collective, if there is no plan."""

    panel: ClassVar[str] = "Without a plan"

    kind: Annotated[
        str | None,
        Option(
            "--collective",
            complete=complete.collectives,
            help="The collective. Default: all-reduce.",
        ),
    ] = None
    algorithm: Annotated[
        str | None,
        options.algorithm_option(
            "Algorithm that plans on a fully connected network. Default: no plan, and "
            "shared memory if possible."
        ),
    ] = None
    given: Annotated[Given, Panel("Without a plan", only=["root"], of=MeasureOptions)]

    def check_none(self) -> None:
        """Refuse options of which a plan has its own."""
        own = {
            "--collective": self.kind,
            "--algorithm": self.algorithm,
            "--root": self.given or None,
        }
        for name, given in own.items():
            if given is not None:
                raise SpecError(name, "the plan has its own", "leave it out")


def run(
    plan: Annotated[
        str | None,
        Argument(metavar="[PLAN]", help="A plan file, as written by `hocket plan -o`."),
    ] = None,
    *,
    ranks: Annotated[
        int | None,
        Option("--np", "-n", help="Number of processes. Default: the ranks of the plan."),
    ] = None,
    unplanned: Unplanned,
    size: Annotated[
        str | None,
        Option(
            "--size",
            "-s",
            help="Bytes of the whole vector. Default: those of the plan.",
            panel="Calls",
        ),
    ] = None,
    given: Annotated[Given, Panel("Calls", but=["root"], of=MeasureOptions)],
    json: options.Json = False,
) -> None:
    """Run a plan between processes of this machine, check the result, and time it.

    For example: hocket run plan.parquet  ·  hocket run --np 4 --size 16MB --algorithm ring
    """
    from hocket.runtime.launch import run_plan

    chosen = MeasureOptions(**unplanned.given, **given)
    what: Plan | str = unplanned.kind or "all-reduce"
    if plan is not None:
        unplanned.check_none()
        what = Plan.load(plan)
    with options.watching() as watch:
        found = run_plan(
            what,
            ranks=ranks,
            size=size,
            algorithm=unplanned.algorithm,
            options=chosen,
            progress=watch,
        )
    if json:
        options.print_result("timed-calls", found.to_dict())
    else:
        options.output().print(_table(found))


def _table(found: TimedCalls) -> Table:
    what = f"{found.collective} of {format_size(found.size)} {found.dtype}"
    table = Table(title=f"{what} between {found.ranks} processes", show_header=False)
    table.add_row("algorithm", found.algorithm)
    table.add_row("transport", found.transport)
    table.add_row("result", "right at every rank")
    table.add_row("calls", f"{len(found.times_ps)}")
    table.add_row("median", format_time_ps(found.median_ps))
    table.add_row("90 % within", format_time_ps(found.p90_ps))
    table.add_row("algbw", format_bandwidth(round(found.algbw)))
    table.add_row("busbw", format_bandwidth(round(found.busbw)))
    if found.predicted_ps is not None:
        table.add_row("simulated", format_time_ps(found.predicted_ps))
    return table
