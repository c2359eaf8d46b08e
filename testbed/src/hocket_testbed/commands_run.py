"""``hocket testbed run``: plans on a network of namespaces, measured beside their simulation."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from hocket._checks import whole
from hocket._results import picoseconds
from hocket.cli import complete, options
from hocket.cli.command import Argument, Option
from hocket.cli.form import Form
from hocket.cli.groups import Nodes
from hocket.cli.numbers import TIMES
from hocket.cli.table import NEVER, Table
from hocket.errors import SpecError
from hocket.topology.build import build_topology
from hocket.units import format_size, format_time_ps

if TYPE_CHECKING:
    from hocket_testbed import PlanStudy

WIDE = 0.005
"""What a link may be off before plans run."""


@dataclass(frozen=True)
class Planned:
    """The collective and size that algorithms plan."""

    panel: ClassVar[str] = "Algorithms"

    collective: Annotated[
        str | None,
        Option(
            "--collective",
            complete=complete.collectives,
            help="Collective that algorithms plan. Default: all-reduce.",
        ),
    ] = None
    size: Annotated[
        str | None,
        Option("--size", "-s", help="Size for which algorithms plan. Default: 16 MB."),
    ] = None
    npus: options.Npus = None
    chunks: Annotated[
        int | None,
        Option(
            "--chunks",
            "-c",
            help="Number of equal slices of the data. Default: the fastest number whose messages "
            "have at least 64 kB.",
        ),
    ] = None


@dataclass(frozen=True)
class Bed:
    """The testbed."""

    panel: ClassVar[str] = "Testbed"

    rate: Annotated[
        str,
        Option(
            "--link-bandwidth",
            help="Bandwidth of the fastest link, counted on the wire; the others are slower in proportion.",
        ),
    ] = "200 Mb/s"
    repeats: Annotated[
        int, Option("--repeats", help="Number of times each plan runs, for its median.")
    ] = 5
    real_time: Annotated[
        bool,
        Option(
            "--real-time/--no-real-time",
            help="Run ranks before everything else on this machine.",
        ),
    ] = True
    prefix: Annotated[
        str,
        Option(
            "--prefix",
            help="First part of the names of the namespaces; each testbed needs its own.",
        ),
    ] = "hocket"
    link_latency: Annotated[
        str,
        Option(
            "--link-latency",
            metavar="TIME",
            help="Latency of each link, such as 1ms: a delay line holds frames for that long.",
        ),
    ] = "0 s"
    loopback: Annotated[
        bool,
        Option(
            "--loopback",
            help="Use no namespaces: ranks send over loopback, no faster than the links. Needs "
            "no rights; the default if namespaces cannot be had.",
        ),
    ] = False


@dataclass(frozen=True)
class Shown:
    """The output files."""

    panel: ClassVar[str] = "Output"

    plot: options.Plot = None


_OPTIONS = {
    "rate": "--link-bandwidth",
    "latency": "--link-latency",
    "topology": "--topology",
    **{name: f"--{name}" for name in ("collective", "size", "npus", "chunks", "repeats", "prefix")},
}
"""What the arguments are called here."""


def run(
    plans: Annotated[
        list[str],
        Argument(
            metavar="PLAN",
            help="Plan files, as written by `hocket plan -o`, and algorithms that plan on the network.",
            complete=complete.algorithms,
        ),
    ],
    *,
    network: Nodes,
    planned: Planned,
    bed: Bed,
    shown: Shown,
    form: Form,
) -> None:
    """Run plans over TCP on any network of shaped links, beside their simulation.

    For example: hocket testbed run -t mesh:3x3@1GB/s,1us ring greedy --size 16MB
    """
    from hocket_testbed import NetworkSpec, build_network, run_plans, what_is_missing
    from hocket_testbed.plan_runs import MAX_REPEATS, load_or_name, plans_for

    if shown.plot is not None:
        from hocket.plot.style import check_picture

        check_picture(Path(shown.plot))
    topology = build_topology(network.spec())
    try:
        given = [load_or_name(text) for text in plans]
        if not any(isinstance(each, str) for each in given):
            for name, value in vars(planned).items():
                if value is not None:
                    raise SpecError(f"--{name}", "plan files have their own", "leave it out")
        spec = NetworkSpec(
            topology=topology,
            rate=bed.rate,
            prefix=bed.prefix,
            latency=bed.link_latency,
            loopback=bed.loopback,
        )
        repeats = whole("repeats", bed.repeats, 1, MAX_REPEATS)
        with options.watching() as watch:
            made = plans_for(
                spec,
                given,
                collective=planned.collective or "all-reduce",
                size=planned.size or "16 MB",
                npus=planned.npus,
                chunks=planned.chunks,
            )
            missing = None if spec.loopback else what_is_missing()
            if missing is not None:
                spec = replace(spec, loopback=True)
                options.aside(f"{missing[0]}: ranks send over the loopback interface instead")
            with build_network(spec):
                study = run_plans(
                    spec, made, repeats=repeats, real_time=bed.real_time, progress=watch
                )
    except SpecError as error:
        raise error.but(field=_OPTIONS.get(error.field or "", error.field)) from None
    if shown.plot is not None:
        from hocket_testbed.pictures import draw_plans

        draw_plans(study, Path(shown.plot))
    if not form.prints("testbed-plans", study.to_dict, lambda: study):
        _print(study)


def _print(study: PlanStudy) -> None:
    spec = study.spec
    sizes = sorted({run.plan.collective.size for run in study.runs})
    size = " and ".join(format_size(each) for each in sizes)
    kinds = ", ".join(dict.fromkeys(run.plan.collective.name for run in study.runs))
    links = f"links of {8 * spec.rate_bytes / 1e6:g} Mb/s"
    if spec.latency_ps:
        links += f" and {format_time_ps(spec.latency_ps)}"
    title = f"{kinds} of {size} on {spec.topology.name}, {links}"
    if spec.loopback:
        title += " by pace over loopback"
    table = Table(title=title)
    table.add_column("plan")
    table.add_column("transfers", justify="right", leaves=3)
    table.add_column("simulated", units=TIMES, leaves=NEVER)
    table.add_column("measured", units=TIMES, leaves=NEVER)
    table.add_column("deviation", justify="right", leaves=NEVER, unit="%")
    table.add_column("of all runs", justify="right", leaves=2)
    table.add_column("place simulated, measured", justify="right", leaves=1)
    table.add_column("on the wire", justify="right", leaves=2)
    table.add_column("load", justify="right", leaves=4)
    for row, place, was in zip(
        study.runs, study.predicted_ranks, study.measured_ranks, strict=True
    ):
        least, most = (100 * (each(row.times) / row.predicted - 1) for each in (min, max))
        table.add_row(
            row.plan.algorithm,
            f"{len(row.plan):,}",
            picoseconds(row.predicted),
            picoseconds(row.time),
            f"{100 * row.deviation:+.2f}",
            f"{least:+.2f} to {most:+.2f}",
            f"{place}, {was}",
            f"{row.overhead:.4f}",
            f"{row.load:.1f}",
        )
    console = options.output()
    console.print(table)
    found = study.calibration
    besides = "its bytes and the latency" if spec.latency_ps else "its bytes"
    all_links = f", all at once {100 * (found.worst - 1):+.2f} % at worst" if found.together else ""
    console.note(
        f"a link alone carried {100 * (found.alone - 1):+.2f} % of what its rate leaves for data"
        f"{all_links}; a message takes {1e3 * found.delay:+.3f} ms besides {besides}"
    )
    if abs(found.worst - 1) > 4 * WIDE:
        console.note("this machine does not keep up with the links: give a lower --link-bandwidth")
    cores, load = os.cpu_count() or 1, max(row.load for row in study.runs)
    if load > cores:
        console.note(
            f"the machine was busy (load {load:.1f}, {cores} cores): measured times may be longer"
        )
