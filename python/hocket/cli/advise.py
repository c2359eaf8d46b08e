"""``hocket advise dims``: whether the bandwidth of a product is well split between its dimensions."""

from __future__ import annotations

import typer

from hocket.cli import options
from hocket.cli.table import Table
from hocket.plans.advice import advise_dimensions
from hocket.units import format_bandwidth

_EXAMPLE = "For example: hocket advise dims --topology themis-3d-fc-ring-sw"

advise = typer.Typer(
    name="advise",
    help="Say what limits a network, and what would not.",
    no_args_is_help=True,
    epilog=_EXAMPLE,
)


@advise.callback()
def _group() -> None:
    """Keep ``dims`` a command of its own."""


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
        console.print(line, highlight=False)
    console.print(advice.verdict, highlight=False)
