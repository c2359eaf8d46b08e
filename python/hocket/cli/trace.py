"""``hocket trace``: show, run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from hocket.cli import options
from hocket.cli.form import Form
from hocket.cli.table import Table
from hocket.cli.trace_options import Dependencies, GroupsFile, Prefix
from hocket.units import format_size, format_time_ps

if TYPE_CHECKING:
    from hocket.traces import Summary


def show(
    prefix: Prefix,
    *,
    groups: GroupsFile = None,
    dependencies: Dependencies = "all",
    form: Form,
) -> None:
    """Show the nodes of a trace: their kinds, computation and communication.

    For example: hocket trace show traces/llama --groups groups.json --json
    """
    from hocket.traces import DEPENDENCIES, load, summarize

    options.choice("--dependencies", dependencies, DEPENDENCIES)
    made = load(prefix, groups, dependencies=cast(Literal["all", "data"], dependencies))
    summary = summarize(made)
    calls = [
        {"collective": name, "calls": each.count, "size_bytes": each.size}
        for name, each in summary.calls.items()
    ]
    if form.prints("trace", summary.to_dict, lambda: calls):
        return
    console = options.output()
    table = Table(show_header=False)
    for name, value in _facts(summary):
        table.add_row(name, value)
    console.print(table)
    if summary.calls:
        console.print(_calls(summary))
    if summary.unspecified:
        console.print(
            f"note: {summary.unspecified:,} collective nodes do not say what they do, and belong to no "
            "call",
        )


def _facts(summary: Summary) -> list[tuple[str, str]]:
    facts = [("ranks", f"{summary.ranks:,}"), ("nodes", f"{sum(summary.nodes.values()):,}")]
    facts += [(f"  {name}", f"{count:,}") for name, count in summary.nodes.items()]
    facts.append(("compute time, all ranks", format_time_ps(summary.compute_ps)))
    if summary.cpu_compute_ps:
        facts.append(("  of CPUs", format_time_ps(summary.cpu_compute_ps)))
    if summary.messages:
        facts.append(("bytes sent rank to rank", format_size(summary.message_bytes)))
    if summary.groups > 1:
        facts.append(("groups of ranks", f"{summary.groups - 1:,}, and all"))
    return facts


def _calls(summary: Summary) -> Table:
    table = Table()
    table.add("collective", summary.calls)
    table.add_rows(summary.calls.values())
    return table
