"""``hocket advise``: what limits a network, and what its failures cost.

``dims`` says whether the bandwidth of a product is well split between its dimensions, ``failures`` what
each single failure costs a collective.
"""

from __future__ import annotations

from typing import Annotated, cast

import typer

from hocket.cli import options
from hocket.cli.form import Form
from hocket.cli.groups import Nodes, grouped
from hocket.cli.numbers import RATES, TIMES, percent
from hocket.cli.table import NEVER, Table
from hocket.comparison.failures import FailureAdvice, Part, advise_failures
from hocket.plans.advice import advise_dimensions
from hocket.topology.build import build_topology
from hocket.units import format_time_ps

_EXAMPLE = "For example: hocket advise dims --topology themis-3d-fc-ring-sw"

advise = typer.Typer(
    name="advise",
    help="Say what limits a network, and what would not.",
    no_args_is_help=True,
    epilog=_EXAMPLE,
)


@advise.command("dims", epilog=_EXAMPLE)
@grouped
def dims(
    *,
    topology: options.TopologyText,
    bandwidth: options.Bandwidth = None,
    latency: options.LatencyText = None,
    form: Form,
) -> None:
    """Say which dimensions have just enough, too much or too little bandwidth for the others."""
    advice = advise_dimensions(options.read_topology(topology, bandwidth, latency, None))
    if form.prints("advice", advice.to_dict, lambda: advice):
        return
    console = options.output()
    table = Table(
        title=f"dimensions of {advice.topology.name}: all-reduce, latencies left out",
    )
    table.add_column("dimension")
    table.add_column("NPUs", justify="right")
    table.add_column("bandwidth", units=RATES)
    table.add_column("busy, fixed order", justify="right", unit="%")
    table.add_column("busy, best orders", justify="right", unit="%")
    table.add_column("split that suits the best orders", units=RATES)
    table.add_column("split that suits the fixed order", units=RATES)
    for each in advice.dimensions:
        table.add_row(
            f"{each.number} {each.kind}",
            str(each.size),
            each.bandwidth,
            percent(each.busy_fixed),
            percent(each.busy_best),
            each.suits_best,
            each.suits_fixed,
        )
    console.print(table)
    for line in advice.pairs:
        console.print(line)
    console.print(advice.verdict)


@advise.command(
    "failures",
    epilog="For example: hocket advise failures all-reduce -t dgx1_v100 -s 256MB -a greedy",
)
@grouped
def failures(
    kind: options.Kind,
    *,
    network: Nodes,
    size: Annotated[
        str, typer.Option("--size", "-s", help='Bytes, as nccl-tests counts them: "256 MB".')
    ],
    algorithm: options.Algorithms = None,
    chunks: options.Chunks = None,
    part: Annotated[
        list[str] | None,
        typer.Option(
            "--part", help="Kind of part that may fail: link, switch or npu; may be repeated."
        ),
    ] = None,
    routing: options.Routing = "balanced",
    form: Form,
) -> None:
    """Rank every single failure, of links, switches and NPUs, by what it costs a collective."""
    spec = network.spec()
    options.check_size(spec, kind, algorithm or None, chunks, npus=None)
    parts = [options.choice("--part", each, ("link", "switch", "npu")) for each in part or []]
    with options.watching() as watch:
        found = advise_failures(
            kind,
            build_topology(spec),
            size=size,
            algorithms=algorithm or None,
            chunks=chunks,
            parts=cast("list[Part]", parts or ["link", "switch", "npu"]),
            routing=routing,
            progress=watch,
        )
    if not form.prints("failure-advice", found.to_dict, lambda: found):
        _print_failures(found)


def _print_failures(found: FailureAdvice) -> None:
    console = options.output()
    title = options.title(found.collective, found.topology)
    table = Table(title=f"{title}: single failures, the dearest first")
    table.add_column("failed")
    table.add_column("alike", justify="right")
    table.add_column("time", leaves=NEVER, units=TIMES)
    table.add_column("slower", justify="right", leaves=NEVER, unit="%")
    table.add_column("algorithm")
    for each in found.failures:
        time = "cannot run" if each.time_ps is None else each.time_ps
        slower = "" if each.slowdown is None else percent(each.slowdown)
        what = f"{each.part} {each.names[0]}"
        table.add_row(what, str(len(each.names)), time, slower, each.algorithm or "")
    console.print(table)
    for each in found.failures:
        if each.why is not None:
            console.print(f"{each.part} {each.names[0]}: {each.why}")
    whole = f"without failures: {format_time_ps(found.time_ps)} by {found.algorithm}"
    console.print(f"{whole}, {found.chunks} chunks")
