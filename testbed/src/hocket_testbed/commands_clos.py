"""``hocket testbed run-clos``: plans on a Clos whose switches hash; what all commands on a Clos take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from hocket._results import picoseconds
from hocket.cli import complete, options
from hocket.cli.command import Argument, Option
from hocket.cli.form import Form
from hocket.cli.numbers import TIMES
from hocket.cli.table import NEVER, Table
from hocket.errors import SpecError
from hocket.units import format_size

if TYPE_CHECKING:
    from hocket_testbed import ClosPlans, ClosSpec

Prefix = Annotated[
    str,
    Option(
        "--prefix", help="First part of the names of the namespaces; each testbed needs its own."
    ),
]


@dataclass(frozen=True)
class Fabric:
    """The network that is built."""

    panel: ClassVar[str] = "Network"

    spines: Annotated[int, Option("--spines", help="Number of spines.")] = 4
    tors: Annotated[int, Option("--tors", help="Number of ToRs.")] = 4
    hosts: Annotated[int, Option("--hosts", help="Number of hosts below each ToR.")] = 4
    seed: Annotated[
        int, Option("--seed", help="Seed from which the seeds of the switches are drawn.")
    ] = 0
    prefix: Prefix = "hocket"

    def spec(self, *, rate: str | None, links: int = 1) -> ClosSpec:
        """Return what is to be built."""
        from hocket_testbed import ClosSpec

        return ClosSpec(
            spines=self.spines,
            tors=self.tors,
            hosts=self.hosts,
            links=links,
            rate=rate,
            seed=self.seed,
            prefix=self.prefix,
        )


_NAMED = ("collective", "size", "calls", "rate", "spines", "tors", "hosts", "seed", "prefix")
"""Arguments that are called as options are."""


def run_clos(
    plans: Annotated[
        list[str],
        Argument(
            metavar="PLAN",
            help="Plan files for the hosts of the Clos, and algorithms that plan for them.",
            complete=complete.algorithms,
        ),
    ],
    *,
    fabric: Fabric,
    rate: Annotated[
        str, Option("--rate", help="Bandwidth of each link, counted on the wire.")
    ] = "100 Mb/s",
    collective: Annotated[
        str,
        Option(
            "--collective",
            help="Collective that algorithms plan.",
            complete=complete.collectives,
        ),
    ] = "all-reduce",
    size: Annotated[str, Option("--size", "-s", help="Size for which they plan.")] = "8 MiB",
    calls: Annotated[
        int, Option("--calls", help="Number of calls of each plan, for their median.")
    ] = 5,
    form: Form,
) -> None:
    """Run plans by hocket.runtime on a Clos whose switches hash: by ECMP, and steered by the controller.

    For example: hocket testbed run-clos ring direct --hosts 2
    """
    from hocket_testbed import build, run_clos_plans
    from hocket_testbed.plan_runs import load_or_name

    try:
        named = [load_or_name(each) for each in plans]
        spec = fabric.spec(rate=rate)
        with options.watching() as watch, build(spec):
            study = run_clos_plans(
                spec, named, collective=collective, size=size, calls=calls, progress=watch
            )
    except SpecError as error:
        field = error.field or ""
        raise error.but(field=f"--{field}" if field in _NAMED else error.field) from None
    if not form.prints("testbed-clos-plans", study.to_dict, lambda: study):
        _print_clos_plans(study)


def _print_clos_plans(study: ClosPlans) -> None:
    spec, first = study.spec, study.runs[0]
    table = Table(
        title=f"{first.plan.collective.name} of {format_size(first.plan.collective.size)} among "
        f"{spec.host_count} hosts, {spec.spines} spines, {spec.tors} ToRs"
    )
    table.add_column("plan")
    table.add_column("paths")
    table.add_column("measured", units=TIMES, leaves=NEVER)
    table.add_column("simulated", units=TIMES, leaves=2)
    table.add_column("steered", justify="right", leaves=1)
    table.add_column("fullest link to mean", justify="right", leaves=3)
    table.add_column("load", justify="right", leaves=4)
    for run in study.runs:
        table.add_row(
            run.plan.algorithm,
            run.paths,
            picoseconds(run.time),
            picoseconds(run.predicted),
            f"{run.steered} of {run.connections}",
            f"{run.fullest:.2f}",
            f"{run.load:.1f}",
        )
    console = options.output()
    console.print(table)
    for run, gain in zip(study.runs[::2], study.gains, strict=True):
        console.note(f"{run.plan.algorithm}: by ECMP {gain:.2f} times as long as steered")
