"""``hocket advise``: what limits a network, and what its failures cost.

``dims`` says whether the bandwidth of a product is well split between its dimensions, ``failures`` what
each single failure costs a collective.
"""

from __future__ import annotations

from typing import Annotated, cast

import typer

from hocket.cli import options
from hocket.cli.groups import Network, grouped
from hocket.cli.table import Table
from hocket.comparison.failures import FailureAdvice, Part, advise_failures
from hocket.plans.advice import advise_dimensions
from hocket.topology.build import build_topology
from hocket.units import format_bandwidth, format_time_ps

_EXAMPLE = "For example: hocket advise dims --topology themis-3d-fc-ring-sw"

advise = typer.Typer(
    name="advise",
    help="Say what limits a network, and what failures cost.",
    no_args_is_help=True,
    epilog=_EXAMPLE,
)


@advise.command("dims", epilog=_EXAMPLE)
def dims(
    *,
    topology: options.TopologyText,
    bandwidth: options.Bandwidth = None,
    latency: options.LatencyText = None,
    json: options.Json = False,
) -> None:
    """Say which dimensions have just enough, too much or too little bandwidth for the others."""
    advice = advise_dimensions(options.read_topology(topology, bandwidth, latency, None))
    if json:
        options.print_result("advice", advice.to_dict())
        return
    console = options.output()
    table = Table(
        title=f"dimensions of {advice.topology.name}: all-reduce, latencies left out",
    )
    columns = ("dimension", "NPUs", "bandwidth", "busy, fixed order", "busy, best orders")
    for name in (*columns, "split that suits the best orders", "split that suits the fixed order"):
        table.add_column(name, justify="left" if name == "dimension" else "right")
    for each in advice.dimensions:
        table.add_row(
            f"{each.number} {each.kind}",
            str(each.size),
            format_bandwidth(each.bandwidth),
            f"{each.busy_fixed:.1%}",
            f"{each.busy_best:.1%}",
            format_bandwidth(round(each.suits_best)),
            format_bandwidth(round(each.suits_fixed)),
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
    network: Network,
    size: Annotated[
        str,
        typer.Option(
            "--size", "-s", help='Size in bytes, as nccl-tests defines it, such as "256 MB".'
        ),
    ],
    algorithm: options.Algorithms = None,
    chunks: options.Chunks = None,
    part: Annotated[
        list[str] | None,
        typer.Option(
            "--part",
            help="Kind of part that may fail: link, switch or npu; may be repeated; default: all.",
        ),
    ] = None,
    routing: options.Routing = "balanced",
    json: options.Json = False,
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
    if json:
        options.print_result("failure-advice", found.to_dict())
    else:
        _print_failures(found)


def _print_failures(found: FailureAdvice) -> None:
    console = options.output()
    title = options.title(found.collective, found.topology)
    table = Table(title=f"{title}: single failures, the dearest first")
    for name in ("failed", "alike", "time", "slower", "algorithm"):
        table.add_column(name, justify="right" if name in ("alike", "time", "slower") else "left")
    for each in found.failures:
        time = "cannot run" if each.time_ps is None else format_time_ps(each.time_ps)
        slower = "" if each.slowdown is None else f"{each.slowdown:.1%}"
        what = f"{each.part} {each.names[0]}"
        table.add_row(what, str(len(each.names)), time, slower, each.algorithm or "")
    console.print(table)
    for each in found.failures:
        if each.why is not None:
            console.print(f"{each.part} {each.names[0]}: {each.why}")
    whole = f"without failures: {format_time_ps(found.time_ps)} by {found.algorithm}"
    console.print(f"{whole}, {found.chunks} chunks")
