"""``hocket topology advise``: what limits a network, and what its failures cost.

``dims`` says whether the bandwidth of a product is well split between its dimensions, ``failures`` what
each single failure costs a collective.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

from hocket.cli import options
from hocket.cli.command import Option, Panel
from hocket.cli.form import Form, Rows
from hocket.cli.groups import Nodes, Sizes
from hocket.cli.table import NEVER, Table, row_of, shown_of, table_of
from hocket.comparison.failures import Failure, FailureAdvice, Part, advise_failures
from hocket.plans.advice import advise_dimensions
from hocket.plans.synthesis import PlanOptions
from hocket.topology.build import build_topology
from hocket.units import counted, format_size, format_time_ps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_EXAMPLE = "For example: hocket topology advise --topology themis-3d-fc-ring-sw"


def dims(
    *,
    topology: options.TopologyText,
    bandwidth: options.Bandwidth = None,
    latency: options.LatencyText = None,
    form: Form,
) -> None:
    """Show which dimensions have just enough, too much or too little bandwidth.

    For example: hocket topology advise --topology themis-3d-fc-ring-sw
    """
    advice = advise_dimensions(options.read_topology(topology, bandwidth, latency, None))
    if form.prints("advice", advice.to_dict, lambda: advice):
        return
    console = options.output()
    title = f"dimensions of {advice.topology.name}: all-reduce, latencies left out"
    console.print(table_of(advice, title=title))
    for line in advice.pairs:
        console.print(line)
    console.print(advice.verdict)


def failures(
    kind: options.Kind,
    *,
    network: Nodes,
    task: Sizes,
    algorithms: options.Algorithms = None,
    planning: Annotated[
        PlanOptions, Panel("Planning", rare=["cache"], only=["chunks", "routing", "cache"])
    ],
    part: Annotated[
        list[str] | None,
        Option(
            "--part",
            help="Kind of part that may fail: link, switch or npu. Can be repeated. Default: all.",
        ),
    ] = None,
    form: Form,
) -> None:
    """Rank every single failure, of links, switches and NPUs, by what it costs a collective.

    For example: hocket topology advise --failures all-reduce -t dgx1_v100 -s 256MB -a greedy
    """
    spec = network.spec()
    options.check_size(spec, kind, algorithms or None, planning.chunks, npus=None)
    parts = [options.choice("--part", each, ("link", "switch", "npu")) for each in part or []]
    topology = build_topology(spec)
    with options.watching() as watch:
        found = [
            advise_failures(
                kind,
                topology,
                size=each,
                algorithms=algorithms or None,
                parts=cast("list[Part]", parts or ["link", "switch", "npu"]),
                options=planning,
                progress=watch,
            )
            for each in task.read()
        ]
    if not form.prints(*_data(found)):
        _print_failures(found)


def _data(
    found: list[FailureAdvice],
) -> tuple[str, Callable[[], Mapping[str, Any]], Callable[[], Rows]]:
    """Return the results as data: the format and the document of JSON, and the rows of a table."""
    if len(found) == 1:
        return "failure-advice", found[0].to_dict, lambda: found[0]

    def rows() -> Rows:
        return [
            {"size_bytes": each.collective.size, **row}
            for each in found
            for row in each.to_frame().to_pylist()
        ]

    return "failure-advices", lambda: {"sizes": [each.to_dict() for each in found]}, rows


def _print_failures(found: list[FailureAdvice]) -> None:
    console = options.output()
    first = found[0]
    several = len(found) > 1
    size = f"{len(found)} sizes" if several else None
    title = options.title(first.collective, first.topology, size=size)
    table = Table(title=f"{title}: single failures, worst first", by_section=True)
    if several:
        table.add_column("size", justify="right", leaves=NEVER)
    shown = shown_of(Failure)
    table.add_columns(shown)
    for advice in found:
        head = [format_size(advice.collective.size)] * several
        for each in advice.failures:
            table.add_row(*head, *row_of(shown, each))
        table.add_section()
    console.print(table)
    for each in first.failures:
        if each.why is not None:
            console.note(f"{each.part} {each.names[0]}: {each.why}")
    for advice in found:
        about = f"{format_size(advice.collective.size)}, " if several else ""
        whole = f"{about}without failures: {format_time_ps(advice.time_ps)} by {advice.algorithm}"
        console.print(f"{whole}, {counted(advice.chunks, 'chunk')}")
