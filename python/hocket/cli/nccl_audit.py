"""``hocket nccl audit``: what NCCL runs on a machine, by its own dumps, beside the best plan."""

from __future__ import annotations

from typing import Annotated

from hocket.cli import options
from hocket.cli.command import Argument, Option
from hocket.cli.groups import TimedPlanning
from hocket.cli.numbers import percent
from hocket.cli.table import table_of
from hocket.errors import SpecError
from hocket.nccl.report import Audit, audit
from hocket.units import counted, format_size, format_time_ps

Files = Annotated[
    list[str],
    Argument(
        metavar="TOPOLOGY GRAPH",
        help="Files from NCCL_TOPO_DUMP_FILE and NCCL_GRAPH_DUMP_FILE. If nodes differ: both "
        "files of each, in the order of nodes.",
    ),
]
LikeNodes = Annotated[int, Option("--nodes", help="Number of nodes like the given one.")]


def audit_files(
    files: Files,
    *,
    kind: Annotated[
        str,
        Option("--collective", help="Collective among all GPUs, such as all-reduce or all-gather."),
    ] = "all-reduce",
    size: Annotated[str, Option("--size", help="Size of the data.")] = "256MiB",
    nodes: LikeNodes = 1,
    planning: TimedPlanning,
    json: options.Json = False,
) -> None:
    """Compare what NCCL runs, by its dumps, with the best plan.

    For example: hocket nccl audit topo.xml graph.xml
    """
    topologies, graphs = pairs(files)
    with options.watching() as watch:
        found = audit(
            topologies,
            graphs,
            kind=kind,
            size=size,
            nodes=nodes,
            options=planning,
            progress=watch,
        )
    if json:
        options.print_result("nccl-audit", found.to_dict())
        return
    _print(found, max(len(topologies), nodes))


def pairs(files: list[str]) -> tuple[list[str], list[str]]:
    """Return the topologies and the graphs of files that alternate.

    Raises
    ------
    SpecError
        If there is one of them too few.
    """
    if len(files) % 2:
        right = "give TOPOLOGY GRAPH, and of several nodes both of each"
        raise SpecError(
            None, f"{counted(len(files), 'file')} cannot be topologies and graphs in pairs", right
        )
    return files[::2], files[1::2]


def _print(found: Audit, nodes: int) -> None:
    console = options.output()
    on = "" if nodes == 1 else f" on {nodes} nodes"
    what = f"{found.collective.kind} of {format_size(found.collective.size)}"
    title = f"{what} among {found.topology.npu_count} GPUs{on}, as {found.library} runs it"
    table = table_of(found, title=title)
    runs = [each.run for each in found]
    over = [None if run is None else percent(run.time_ps / found.best.time_ps - 1) for run in runs]
    table.add("over best", over, justify="right", unit="%")
    console.print(table)
    best = found.best
    above = percent(best.time_ps / max(found.bound.time_ps, 1) - 1)
    console.print(
        f"best plan: {best.plan.algorithm}, {format_time_ps(best.time_ps)}, {above}% above the lower bound"
    )
    pick, gap = found.pick, found.gap
    if pick is not None:
        what = f"{found.library} picks {pick.algorithm}"
        if gap is None:
            console.print(f"{what}: {pick.why}")
        elif gap < 0.0005:
            console.print(f"{what}, which nothing beats here")
        else:
            console.print(f"{what}, which takes {percent(gap)}% longer than the best plan")
    for each in found.entries:
        if each.why is not None and each is not pick:
            console.print(f"{each.algorithm}: {each.why}")
    for finding in found.findings:
        console.print(f"found: {finding}")
    for note in found.notes:
        console.note(note)
