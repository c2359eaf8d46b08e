"""``hocket route``: jobs on a fabric, their flows on the paths that a scheme gives them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, ClassVar

from hocket._results import picoseconds
from hocket.cli import options
from hocket.cli.command import Argument, Option, Panel
from hocket.cli.console import Printer
from hocket.cli.form import Form
from hocket.cli.groups import Given
from hocket.cli.numbers import TIMES
from hocket.cli.table import Table, shown_of, table_of
from hocket.cluster.hosts import HostOptions
from hocket.errors import SpecError
from hocket.routing.options import ClusterOptions
from hocket.units import format_time_ps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hocket.routing import Cluster, ClusterRun, JobList

_LIMIT, _LIMIT_OF_COMPARISON = 10.0, 1.0
"""Seconds for each assignment of the solver, where --time-limit says nothing."""
_MAX_COLUMNS = 6
"""Jobs that have a column each in a comparison."""
_MAX_TIMES = 3
"""Jobs of which that column has the time as well."""

_OF_PYTHON = ("headers", "switch_seeds", "workers", "host_rate", "keep_rates")
"""Options that only calls in Python have."""

Jobs = Annotated[
    str, Argument(metavar="JOBS", help="A .yml file with jobs: and defaults: (docs/jobs.md).")
]
Fabric = Annotated[
    str,
    Option(
        "--fabric",
        "-f",
        help="clos:SPINESxTORS, clos:SPINESxTORSxPORTS, fat-tree:PORTS, or a topology file.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """The fabric and its hosts."""

    panel: ClassVar[str] = "Fabric and hosts"

    fabric: Fabric
    shape: Annotated[HostOptions, Panel("Fabric and hosts")]
    failed: options.Failed = None
    failed_spines: Annotated[
        int,
        Option(
            "--failed-spines",
            help="Number of further failed spines, those with the highest numbers.",
        ),
    ] = 0
    slow: options.SlowParts = None

    def cluster(self) -> Cluster:
        """Make the cluster."""
        from hocket import routing

        return routing.cluster(
            self.fabric,
            options=self.shape,
            failed=self.failed or [],
            failed_spines=self.failed_spines,
            slow=self.slow or [],
        )


@dataclass(frozen=True, kw_only=True)
class Paths:
    """The options of paths and of jobs."""

    panel: ClassVar[str] = "Routing"

    scheme: Annotated[
        str,
        Option("--scheme", help="Scheme that chooses paths for flows. See docs/routing.md."),
    ] = "greedy"
    compare: Annotated[
        bool, Option("--compare", help="Run all schemes, each with the same jobs and GPUs.")
    ] = False
    given: Annotated[
        Given, Panel("Routing", rare=["salt", "steps"], but=_OF_PYTHON, of=ClusterOptions)
    ]

    def asked(self, *, keep_rates: bool) -> ClusterOptions:
        """Return the options as one value."""
        limit = _LIMIT_OF_COMPARISON if self.compare else _LIMIT
        return ClusterOptions(**{"time_limit": limit, **self.given}, keep_rates=keep_rates)


@dataclass(frozen=True)
class Shown(Form):
    """Options for the output."""

    timeline: Annotated[
        str | None,
        Option(
            "--timeline",
            help="Draw phases and rates over time to this .png, .svg or .pdf file.",
            check=options.is_picture,
        ),
    ] = None
    heat: Annotated[
        str | None,
        Option(
            "--heat",
            help="Draw what each link carried to this .png, .svg or .pdf file.",
            check=options.is_picture,
        ),
    ] = None
    perfetto: options.Perfetto = None
    page: options.Page = None


def route(jobs: Jobs, *, hosts: Hosts, paths: Paths, shown: Shown) -> None:
    """Place jobs on a fabric, route their flows, and simulate them.

    For example: hocket route examples/jobs.yml --fabric clos:32x64 --compare
    """
    from hocket import routing

    timeline, heat, perfetto = shown.timeline, shown.heat, shown.perfetto
    for option, file in (("--timeline", timeline), ("--heat", heat), ("--perfetto", perfetto)):
        if paths.compare and file is not None:
            raise SpecError(option, "is of one scheme", "leave it out, or --compare")
    if timeline is not None and heat is not None and Path(timeline) == Path(heat):
        raise SpecError("--heat", f"{heat} is the time-line's file", "name another")
    if not paths.compare:
        options.choice("--scheme", paths.scheme, routing.CLUSTER_SCHEMES)
    given = routing.load_jobs(jobs)
    cluster = hosts.cluster()
    how = paths.asked(keep_rates=timeline is not None or shown.page is not None)
    if paths.compare:
        _compare(cluster, given, how, shown)
        return
    with options.watching() as watch:
        run = routing.simulate(cluster, given, scheme=paths.scheme, options=how, progress=watch)
        watch.note("drawing")
        _draw(run, timeline, heat)
    if perfetto is not None:
        run.save_perfetto(perfetto)
    if shown.page is not None:
        _write_page([run], shown.page)
    if not shown.prints("cluster-run", run.to_dict, lambda: run):
        _print(run, has_outages="outages" in paths.given)


def _write_page(runs: Sequence[ClusterRun], page: str) -> None:
    """Write a page of runs; of many, those of the fastest schemes and the slowest."""
    from hocket.explorer.page import MOST_RUNS
    from hocket.explorer.tracks import write_cluster

    ranked = sorted(runs, key=lambda run: run.time_ps)
    if len(ranked) > MOST_RUNS:
        ranked = [*ranked[: MOST_RUNS - 1], ranked[-1]]
        options.note(f"{page} has the fastest {MOST_RUNS - 1} schemes and the slowest")
    write_cluster(ranked, Path(page))


def _draw(run: ClusterRun, timeline: str | None, heat: str | None) -> None:
    if timeline is not None:
        from hocket.plot.cluster import draw_timeline

        draw_timeline(run, Path(timeline))
    if heat is not None:
        from hocket.plot.cluster import draw_links

        draw_links(run, Path(heat))


def _print(run: ClusterRun, *, has_outages: bool) -> None:
    console = options.output()
    console.print(table_of(run, title=f"{run.scheme} on {_described(run.cluster)}"))
    for line in _facts(run, has_outages=has_outages):
        console.note(line)


def _facts(run: ClusterRun, *, has_outages: bool) -> list[str]:
    worst = max(run.decisions, key=lambda each: each.max_link_load, default=None)
    lines = [f"all jobs end after {format_time_ps(run.time_ps)}"]
    if worst is not None:
        load = (
            f"largest load of a link: {worst.max_link_load}; no paths have less than {worst.bound}"
        )
        lines.append(f"{load}: {worst.witness}")
    online = run.routing_seconds
    if online:
        plural = "s" if len(online) > 1 else ""
        lines.append(
            f"{len(online):,} assignment{plural} computed when asked for, on this machine in "
            f"{_spread(online)}"
        )
    repairs = sum(each.is_repair for each in run.decisions)
    if repairs:
        lines.append(f"{repairs} failure{'s were' if repairs > 1 else ' was'} answered")
    elif has_outages and run.decisions:
        lines.append("no failure had to be answered: no flow lost its path to one")
    if run.hit_rate is not None and run.core.computed_ahead:
        foreseen = sum(each.foreseen for each in run.decisions)
        lines.append(
            f"computed ahead: {run.core.computed_ahead:,} assignments; {foreseen} of "
            f"{len(run.decisions)} events were foreseen ({run.hit_rate:.0%}), which spared "
            f"{_time(run.time_saved)} of waiting"
        )
    return lines


def _compare(cluster: Cluster, jobs: JobList, how: ClusterOptions, form: Shown) -> None:
    from importlib.util import find_spec

    from hocket import routing

    placed = routing.place(cluster, jobs, how.seed)
    how = replace(how, seed=jobs.seed if how.seed is None else how.seed)
    has_solver = find_spec("ortools") is not None
    left_out = {"ilp": not has_solver, "controller": how.weights != "flows"}
    schemes = [name for name in routing.CLUSTER_SCHEMES if not left_out.get(name)]
    with options.watching() as watch:
        runs = [
            routing.simulate(cluster, placed, scheme=name, options=how, progress=watch)
            for name in schemes
        ]
    if form.page is not None:
        _write_page(runs, form.page)
    if form.prints(
        "cluster-runs",
        lambda: {"schemes": [run.to_dict() for run in runs]},
        lambda: [
            {"scheme": run.scheme, **row} for run in runs for row in run.to_frame().to_pylist()
        ],
    ):
        return
    console = options.output()
    _print_comparison(console, cluster, runs)
    if not has_solver:
        from hocket.plans.slots.model import MISSING

        console.print(f"ilp is left out: it {MISSING}")


def _print_comparison(console: Printer, cluster: Cluster, runs: Sequence[ClusterRun]) -> None:
    has_times = len(runs[0].jobs) <= _MAX_TIMES
    what = "all-reduce times, x the ideal" if has_times else "all-reduce times over the ideal"
    table = Table(title=f"{what}, {_described(cluster)}")
    ranked = sorted(runs, key=lambda run: run.mean_slowdown)
    scheme, *shown = shown_of(type(runs[0]))
    table.add_columns([scheme], results=ranked)
    for i, job in enumerate(runs[0].jobs if len(runs[0].jobs) <= _MAX_COLUMNS else ()):
        if has_times:
            reduced = [picoseconds(run.jobs[i].all_reduce) for run in ranked]
            table.add(job.job.name, reduced, units=TIMES, leaves=2)
        slower = [f"x{run.jobs[i].slowdown:.2f}" for run in ranked]
        name = "x ideal" if has_times else job.job.name
        table.add(name, slower, leaves=2, justify="right")
    table.add_columns(shown, results=ranked)
    console.print(table)
    times = [
        f"{run.scheme} {_spread(run.routing_seconds)}" for run in ranked if run.routing_seconds
    ]
    console.print("load: flows on the fullest link; no paths have less than the bound")
    console.print("moves: how often a flow under way took another path")
    console.print(f"an assignment takes on this machine: {'; '.join(times)}")


def _described(cluster: Cluster) -> str:
    return (
        f"{cluster.topology.name}: {len(cluster.hosts):,} hosts of {cluster.gpus_per_host} GPUs and "
        f"{cluster.nics_per_host} NICs"
    )


def _time(seconds: float) -> str:
    return format_time_ps(picoseconds(seconds))


def _spread(seconds: Sequence[float]) -> str:
    """Write the median and, where it is ten times that, the longest: the solver's differ so."""
    middle, longest = median(seconds), max(seconds)
    more = f", at most {_time(longest)}" if longest >= 10 * middle else ""
    return f"{_time(middle)} (median{more})"
