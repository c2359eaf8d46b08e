"""``hocket testbed``: run, run-clos, clos, steer, learn, calibrate, clean."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from hocket.cli import options
from hocket.cli.form import Form
from hocket.cli.groups import grouped
from hocket.cli.numbers import TIMES
from hocket.cli.table import NEVER, Table
from hocket.cli.testbed_clos import Fabric, Prefix, run_clos
from hocket.cli.testbed_run import run
from hocket.errors import SpecError
from hocket.units import format_size, format_time_ps

if TYPE_CHECKING:
    from hocket.steering import Calibration, Identified
    from hocket.testbed import Steered, Study

testbed = typer.Typer(
    help="Build networks of Linux namespaces on this machine, and measure on them.",
    no_args_is_help=True,
    epilog="For example: hocket testbed clos --seeds 3",
)


@testbed.callback()
def _group() -> None:
    """Take the command that follows."""


testbed.command(
    epilog="For example: hocket testbed run -t mesh:3x3@1GB/s,1us ring greedy --size 16MB"
)(run)
testbed.command("run-clos", epilog="For example: hocket testbed run-clos ring direct --hosts 2")(
    run_clos
)


@dataclass(frozen=True)
class Jobs:
    """What runs on it."""

    panel: ClassVar[str] = "Jobs"

    rate: Annotated[
        str, typer.Option("--rate", help="Bandwidth of each link, counted on the wire.")
    ] = "100 Mb/s"
    jobs: Annotated[
        int,
        typer.Option("--jobs", help="Number of jobs, which share the hosts of each ToR evenly."),
    ] = 2
    size: Annotated[
        str, typer.Option("--size", "-s", help="Size of what each host all-reduces.")
    ] = "8 MiB"
    seeds: Annotated[
        int, typer.Option("--seeds", help="Number of seeds by which source ports are drawn.")
    ] = 5
    repeats: Annotated[
        int, typer.Option("--repeats", help="Number of times each run is repeated, for its median.")
    ] = 1
    scheme: Annotated[
        str, typer.Option("--scheme", help="Scheme that assigns paths (see docs/routing.md).")
    ] = "edge-coloring"
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            help="How ports for assigned paths are found: model, route-get, probes, or controller, which "
            "runs hocket-controller and its agents; may be repeated; default: the first three.",
        ),
    ] = None


@dataclass(frozen=True)
class Shown(Form):
    """What is shown."""

    plot: options.Plot = None


@testbed.command(epilog="For example: hocket testbed clos --seeds 3 --plot testbed.png")
@grouped
def clos(*, fabric: Fabric, jobs: Jobs, shown: Shown) -> None:
    """Run ring all-reduces over TCP on a Clos, by assigned paths and by ECMP, beside the simulation."""
    from hocket.testbed import METHODS, build, run_study

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
        from hocket.plot.testbed import draw_study

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
            round(each.time * 1e12),
            round(max(each.predicted) * 1e12),
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
    console.note(f"without shared links: {format_time_ps(round(study.ideal * 1e12))} (simulated)")
    if study.gain is not None and study.predicted_gain is not None:
        console.note(
            f"ECMP takes {study.gain:.2f} times as long as assigned paths on average; simulated "
            f"{study.predicted_gain:.2f}"
        )


@testbed.command(epilog="For example: hocket testbed steer --links 2 --flows 100")
@grouped
def steer(
    *,
    fabric: Fabric,
    links: Annotated[
        int,
        typer.Option(
            "--links",
            help="Number of links between each ToR and each spine; above 1 spines choose too.",
        ),
    ] = 1,
    flows: Annotated[
        int, typer.Option("--flows", help="Number of flows of each kind that are sent.")
    ] = 50,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            help="How flows are steered: by ports that the model, route-get or probes find, or over IPv6 "
            "by ipv6-port, flow-label or segments; may be repeated; default: the first three.",
        ),
    ] = None,
    form: Form,
) -> None:
    """Send flows by ports for random paths, and compare with what the kernel counts on each link."""
    from hocket.testbed import METHODS, METHODS_IPV6, build, steer_flows

    spec = fabric.spec(rate=None, links=links)
    if set(methods or ()) & set(METHODS_IPV6):
        spec = replace(spec, ipv6=True)
    with options.watching() as watch, build(spec):
        steered = steer_flows(
            spec, flows=flows, methods=methods or METHODS, seed=fabric.seed, progress=watch
        )
    if not form.prints("testbed-steering", steered.to_dict, lambda: steered):
        _print_steered(steered)


def _print_steered(steered: Steered) -> None:
    table = Table(title=f"{steered.right:,} of {steered.flows:,} flows took the wanted path")
    table.add_column("steered by")
    table.add_column("protocol")
    table.add_column("switches that choose", justify="right")
    table.add_column("flows", justify="right")
    table.add_column("right", justify="right", leaves=NEVER)
    table.add_column("time to find a port", units=TIMES, leaves=1)
    for row in steered.rows:
        table.add_row(
            row.method,
            row.protocol,
            str(row.stages),
            f"{row.flows:,}",
            f"{row.right:,}",
            round(row.port_seconds * 1e12),
        )
    options.output().print(table)


@testbed.command(epilog="For example: hocket testbed learn --json > fabric.json")
@grouped
def learn(*, fabric: Fabric, form: Form) -> None:
    """Build a Clos, and learn its fabric from what its devices tell their neighbours."""
    from hocket.cli.topology import show_network
    from hocket.testbed import build
    from hocket.testbed.neighbours import fabric_spec

    spec = fabric.spec(rate=None)
    with build(spec):
        learned = fabric_spec(spec)
    show_network(learned, form)


@dataclass(frozen=True)
class Asked:
    """What is asked, and of whom."""

    panel: ClassVar[str] = "Probes"

    src: Annotated[
        str | None,
        typer.Option(
            "--src", help="An address of this host; without it, a Clos is built and asked."
        ),
    ] = None
    dst: Annotated[
        str | None, typer.Option("--dst", help="The address that flows go to, with --src.")
    ] = None
    dport: Annotated[int, typer.Option("--dport", help="The port that flows go to.")] = 4791
    hops: Annotated[
        int, typer.Option("--hops", help="Number of hops to the switches that are to answer.")
    ] = 2
    probes: Annotated[
        int, typer.Option("--probes", help="Number of source ports tried with each protocol.")
    ] = 64
    seeds: Annotated[
        str,
        typer.Option("--seeds", help="First and last seed that are tried to identify the hash."),
    ] = "1:65535"

    def candidates(self) -> range:
        """Give the seeds that are tried."""
        first, mark, last = self.seeds.partition(":")
        if not mark or not first.isdecimal() or not last.isdecimal() or int(first) > int(last):
            raise SpecError("--seeds", f"{self.seeds!r} is no range", "write 1:65535")
        return range(int(first), int(last) + 1)


@testbed.command(epilog="For example: hocket testbed calibrate --seed 7")
@grouped
def calibrate(*, fabric: Fabric, asked: Asked, form: Form) -> None:
    """Learn by probes which source ports lead to which switch, and identify the hash."""
    from hocket.errors import InfeasibleError
    from hocket.steering import calibrate as probe

    candidates = asked.candidates()
    if (asked.src is None) != (asked.dst is None):
        missing = "--src" if asked.src is None else "--dst"
        raise SpecError(missing, "is missing beside the other end", "give both ends or neither")
    with options.watching() as watch:
        if asked.src is not None and asked.dst is not None:
            watch.note("probing")
            learned = probe(asked.src, asked.dst, asked.dport, hops=asked.hops, probes=asked.probes)
        else:
            learned = _learned_on_testbed(fabric, asked)
        try:
            found = learned.identify(seeds=candidates, progress=watch)
        except InfeasibleError:
            found = []

    def document() -> dict[str, object]:
        return {**learned.to_dict(), "identified": [_identified(each) for each in found]}

    if not form.prints("calibration", document, lambda: learned):
        _print_calibration(learned, found, len(candidates))


def _learned_on_testbed(fabric: Fabric, asked: Asked) -> Calibration:
    """Probe a Clos whose switches' seeds are of 16 bits, so that they are found quickly."""
    from hocket.cluster.draw import Draw
    from hocket.steering import calibrate as probe
    from hocket.testbed import build
    from hocket.testbed.namespaces import inside

    drawn = Draw(fabric.seed)
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


def _identified(found: Identified) -> dict[str, object]:
    return {
        "algorithm": found.hash.algorithm,
        "fields": found.hash.fields,
        "seed": found.hash.seed,
        "switches": list(found.switches),
    }


def _print_calibration(learned: Calibration, found: list[Identified], tried: int) -> None:
    protocols = sorted({each.protocol for each in learned.headers})
    answered = len(learned.headers) - learned.unanswered
    table = Table(
        title=f"{answered} of {len(learned.headers)} probes answered after {learned.hops} hops"
    )
    table.add_column("switch")
    for protocol in protocols:
        table.add_column(f"{protocol} ports", justify="right", leaves=NEVER)
        table.add_column(f"first {protocol} port", justify="right", leaves=1)
    for switch in learned.switches:
        cells = []
        for protocol in protocols:
            ports = learned.ports.get((protocol, switch), ())
            cells += [str(len(ports)), str(ports[0]) if ports else "–"]
        table.add_row(switch, *cells)
    console = options.output()
    console.print(table)
    if not found:
        console.note(
            f"no hash of {tried:,} seeds explains this; ports that were probed can be used"
        )
    for each in found:
        order = ", ".join(switch or "–" for switch in each.switches)
        hash = each.hash
        console.note(
            f"hash: {hash.algorithm}, fields {hash.fields:#x}, seed {hash.seed}; next hops {order}"
        )


@testbed.command(epilog="For example: hocket testbed clean")
@grouped
def clean(*, prefix: Prefix = "hocket") -> None:
    """Remove what a testbed left whose process and guard were both killed."""
    from hocket.testbed import clean as removed

    count = removed(prefix)
    options.say(f"{count} namespace{'' if count == 1 else 's'} removed")
