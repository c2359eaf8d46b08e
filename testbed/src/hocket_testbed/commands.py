"""``hocket testbed``: run, run-clos, clos, steer, learn, calibrate, clean."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from hocket._results import picoseconds
from hocket.cli import options
from hocket.cli.command import Command, Option
from hocket.cli.form import Form
from hocket.cli.numbers import TIMES
from hocket.cli.probes import Asked, show_calibration
from hocket.cli.table import NEVER, Table, table_of
from hocket.units import format_size, format_time_ps
from hocket_testbed.commands_clos import Fabric, Prefix

if TYPE_CHECKING:
    from hocket.steering import Calibration
    from hocket_testbed import Study


@dataclass(frozen=True)
class Jobs:
    """The jobs that run on it."""

    panel: ClassVar[str] = "Jobs"

    rate: Annotated[str, Option("--rate", help="Bandwidth of each link, counted on the wire.")] = (
        "100 Mb/s"
    )
    jobs: Annotated[
        int,
        Option("--jobs", help="Number of jobs, which share the hosts of each ToR evenly."),
    ] = 2
    size: Annotated[str, Option("--size", "-s", help="Size of what each host all-reduces.")] = (
        "8 MiB"
    )
    seeds: Annotated[
        int, Option("--seeds", help="Number of seeds by which source ports are drawn.")
    ] = 5
    repeats: Annotated[
        int, Option("--repeats", help="Number of times each run is repeated, for its median.")
    ] = 1
    scheme: Annotated[
        str, Option("--scheme", help="Scheme that assigns paths (see docs/routing.md).")
    ] = "edge-coloring"
    methods: Annotated[
        list[str] | None,
        Option(
            "--method",
            help="Method that finds ports for assigned paths: model, route-get, probes, or "
            "controller (runs hocket-controller and its agents). Can be repeated. Default: "
            "the first three.",
        ),
    ] = None


@dataclass(frozen=True)
class Shown(Form):
    """The parts of the output."""

    plot: options.Plot = None


def clos(*, fabric: Fabric, jobs: Jobs, shown: Shown) -> None:
    """Run ring all-reduces over TCP on a Clos, by assigned paths and by ECMP, beside the simulation.

    For example: hocket testbed clos --seeds 3 --plot testbed.png
    """
    from hocket_testbed import METHODS, build, run_study

    if shown.plot is not None:
        from hocket.plot.style import check_picture

        check_picture(Path(shown.plot))
    spec = fabric.spec(rate=jobs.rate)
    with options.watching() as watch, build(spec):
        study = run_study(
            spec,
            jobs=jobs.jobs,
            size=jobs.size,
            seeds=jobs.seeds,
            repeats=jobs.repeats,
            scheme=jobs.scheme,
            methods=jobs.methods or METHODS,
            progress=watch,
        )
    if shown.plot is not None:
        from hocket_testbed.pictures import draw_study

        draw_study(study, Path(shown.plot))
    if not shown.prints("testbed-study", study.to_dict, lambda: study):
        _print_study(study)


def _print_study(study: Study) -> None:
    spec = study.spec
    hosts = spec.host_count // study.jobs
    table = Table(
        title=f"{study.jobs} jobs of {hosts} hosts, all-reduce of {format_size(study.size)}, "
        f"{spec.spines} spines, {spec.tors} ToRs"
    )
    table.add_column("paths")
    table.add_column("ports by")
    table.add_column("flows on the fullest link", justify="right", leaves=2)
    table.add_column("measured", units=TIMES, leaves=NEVER)
    table.add_column("simulated", units=TIMES, leaves=NEVER)
    table.add_column("deviation", justify="right", leaves=NEVER, unit="%")
    table.add_column("counters", leaves=1)
    table.add_column("load", justify="right", leaves=3)
    for each in study.runs:
        table.add_row(
            each.paths,
            each.how if each.paths == "assigned" else f"seed {each.how}",
            str(each.fullest),
            picoseconds(each.time),
            picoseconds(max(each.predicted)),
            f"{100 * each.deviation:+.2f}",
            "agree" if each.counted else "differ",
            f"{each.load:.1f}",
        )
    console = options.output()
    console.print(table)
    cores, load = os.cpu_count() or 1, max(run.load for run in study.runs)
    if load > cores:
        console.note(
            f"the machine was busy (load {load:.1f}, {cores} cores): measured times may be longer"
        )
    console.note(f"without shared links: {format_time_ps(picoseconds(study.ideal))} (simulated)")
    if study.gain is not None and study.predicted_gain is not None:
        console.note(
            f"ECMP takes {study.gain:.2f} times as long as assigned paths on average; simulated "
            f"{study.predicted_gain:.2f}"
        )


def steer(
    *,
    fabric: Fabric,
    links: Annotated[
        int,
        Option(
            "--links",
            help="Number of links between each ToR and each spine; above 1 spines choose too.",
        ),
    ] = 1,
    flows: Annotated[
        int, Option("--flows", help="Number of flows of each kind that are sent.")
    ] = 50,
    methods: Annotated[
        list[str] | None,
        Option(
            "--method",
            help="Method that steers flows: model, route-get or probes (ports), or ipv6-port, "
            "flow-label or segments (IPv6). Can be repeated. Default: the first three.",
        ),
    ] = None,
    form: Form,
) -> None:
    """Send flows by ports for random paths, and compare with what the kernel counts on each link.

    For example: hocket testbed steer --links 2 --flows 100
    """
    from hocket_testbed import METHODS, METHODS_IPV6, build, steer_flows

    spec = fabric.spec(rate=None, links=links)
    if set(methods or ()) & set(METHODS_IPV6):
        spec = replace(spec, ipv6=True)
    with options.watching() as watch, build(spec):
        steered = steer_flows(
            spec, flows=flows, methods=methods or METHODS, seed=fabric.seed, progress=watch
        )
    if not form.prints("testbed-steering", steered.to_dict, lambda: steered):
        title = f"{steered.right:,} of {steered.flows:,} flows took the wanted path"
        options.output().print(table_of(steered, title=title))


def learn(*, fabric: Fabric, form: Form) -> None:
    """Build a Clos, and learn its fabric from what its devices tell their neighbours.

    For example: hocket testbed learn --json > fabric.json
    """
    from hocket.cli.topology import show_network
    from hocket_testbed import build
    from hocket_testbed.neighbours import fabric_spec

    spec = fabric.spec(rate=None)
    with build(spec):
        learned = fabric_spec(spec)
    show_network(learned, form)


def calibrate(*, fabric: Fabric, asked: Asked, form: Form) -> None:
    """Learn by probes which source ports lead to which switch, and identify the hash.

    For example: hocket testbed calibrate --seed 7
    """
    if asked.src is None and asked.dst is None:
        show_calibration(lambda: _learned_on_testbed(fabric, asked), asked, form)
    else:
        show_calibration(asked.learned, asked, form)


def _learned_on_testbed(fabric: Fabric, asked: Asked) -> Calibration:
    """Probe a Clos whose switches' seeds are of 16 bits, so that they are found quickly."""
    from hocket.cluster.seeded_random import SeededRandom
    from hocket.steering import calibrate as probe
    from hocket_testbed import build
    from hocket_testbed.namespaces import inside

    drawn = SeededRandom(fabric.seed)
    spec = fabric.spec(rate=None)
    seeds = tuple(1 + drawn.below(65535) for _ in range(spec.tors + spec.spines))
    spec = replace(spec, switch_seeds=seeds)
    with build(spec), inside(spec.namespace("host0")):
        return probe(
            spec.address(0),
            spec.address(spec.host_count - 1),
            asked.dport,
            hops=asked.hops,
            probes=asked.probes,
        )


def clean(*, prefix: Prefix = "hocket") -> None:
    """Remove what a testbed left whose process and guard were both killed.

    For example: hocket testbed clean
    """
    from hocket_testbed import clean as removed

    count = removed(prefix)
    options.say(f"{count} namespace{'' if count == 1 else 's'} removed")


testbed = Command(
    about="Build networks of Linux namespaces on this machine, and measure on them.",
    example="For example: hocket testbed clos --seeds 3",
    commands={
        "run": Command("hocket_testbed.commands_run:run"),
        "run-clos": Command("hocket_testbed.commands_clos:run_clos"),
        "clos": Command("hocket_testbed.commands:clos"),
        "steer": Command("hocket_testbed.commands:steer"),
        "learn": Command("hocket_testbed.commands:learn"),
        "calibrate": Command("hocket_testbed.commands:calibrate"),
        "clean": Command("hocket_testbed.commands:clean"),
    },
)
