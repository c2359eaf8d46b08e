"""``hocket trace run``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, cast

from hocket.cli import complete, options
from hocket.cli.command import Option, Panel
from hocket.cli.form import Form
from hocket.cli.groups import Network
from hocket.cli.numbers import SIZES, TIMES
from hocket.cli.table import Table
from hocket.cli.trace_options import Dependencies, GroupsFile, Prefix
from hocket.files.perfetto import check_trace
from hocket.traces.options import ReplayOptions
from hocket.units import format_time_ps

if TYPE_CHECKING:
    from hocket.cli.data import RankData, TraceCallData, TraceRunData
    from hocket.traces import TraceCall, TraceRun

_MAX_ROWS = 64
"""Of the table of ranks."""


@dataclass(frozen=True, kw_only=True)
class Replaying:
    """How the trace runs."""

    panel: ClassVar[str] = "Replay"

    groups: GroupsFile = None
    dependencies: Dependencies = "all"
    algorithm: Annotated[
        str | None,
        Option(
            "--algorithm",
            "-a",
            complete=complete.algorithms,
            help="Algorithm of the collectives (see `hocket algorithms`), ideal or none. "
            "Default: themis on networks with dimensions, otherwise auto.",
        ),
    ] = None
    given: Annotated[ReplayOptions, Panel("Replay", rare=["cache"])]


def run(
    prefix: Prefix,
    *,
    network: Network,
    how: Replaying,
    perfetto: options.Perfetto = None,
    form: Form,
) -> None:
    """Run a trace on a network, rank r on NPU r, in simulated time.

    For example: hocket trace run traces/llama --topology themis-3d-homo --algorithm themis
    """
    from hocket.traces import DEPENDENCIES, load, replay

    options.choice("--dependencies", how.dependencies, DEPENDENCIES)
    if perfetto is not None:
        check_trace("--perfetto", Path(perfetto))
    topology = network.build()
    made = load(prefix, how.groups, dependencies=cast(Literal["all", "data"], how.dependencies))
    with options.watching() as watch:
        ran = replay(
            made,
            topology,
            algorithm=how.algorithm,
            options=how.given,
            progress=watch,
        )
    if perfetto is not None:
        ran.write_perfetto(perfetto)
    if form.prints("trace-run", lambda: _as_json(ran), lambda: _rank_rows(ran)):
        return
    console = options.output()
    ranks = f"{made.ranks} rank{'s'[: made.ranks != 1]}"
    title = f"{ranks} on {topology.name} by {ran.algorithm}: {format_time_ps(ran.time_ps)}"
    console.print(title)
    if ran.kinds:
        console.print(_kinds(ran))
    console.print(_ranks(ran))
    for note in ran.notes:
        console.note(f"note: {note}")
    if len(ran.ranks) > _MAX_ROWS:
        console.print(f"note: {len(ran.ranks) - _MAX_ROWS} more ranks; --json has all")


def _kinds(ran: TraceRun) -> Table:
    table = Table()
    table.add_column("call")
    table.add_column("calls", justify="right")
    table.add_column("size, all", units=SIZES)
    table.add_column("time, all", units=TIMES)
    for kind, (count, size, time) in ran.kinds.items():
        table.add_row(kind, f"{count:,}", size, time)
    return table


def _ranks(ran: TraceRun) -> Table:
    table = Table()
    table.add_column("rank", justify="right")
    for name in ("compute", "exposed calls", "waiting", "rest", "end"):
        table.add_column(name, units=TIMES)
    for row in ran.ranks[:_MAX_ROWS]:
        times = (row.compute, row.exposed, row.waited, row.rest, row.end)
        table.add_row(str(row.rank), *times)
    return table


def _as_json(ran: TraceRun) -> TraceRunData:
    return {
        "topology": ran.topology.name,
        "algorithm": ran.algorithm,
        "npu": ran.npu.name,
        "time_ps": ran.time_ps,
        "ranks": _rank_rows(ran),
        "groups": {
            str(group): list(ranks) for _, _, group, ranks in ran.whats if group is not None
        },
        "calls": [_call_as_json(call) for call in ran.calls],
        "notes": list(ran.notes),
    }


def _rank_rows(ran: TraceRun) -> list[RankData]:
    return [
        {
            "rank": row.rank,
            "compute_ps": row.compute,
            "exposed_ps": row.exposed,
            "waited_ps": row.waited,
            "rest_ps": row.rest,
            "end_ps": row.end,
        }
        for row in ran.ranks
    ]


def _call_as_json(call: TraceCall) -> TraceCallData:
    value: TraceCallData = {
        "name": call.name,
        "kind": call.kind,
        "size": call.size,
        "start_ps": call.start_ps,
        "end_ps": call.end_ps,
    }
    if call.group is None:
        value["from"], value["to"] = call.ranks
    else:
        value["group"] = call.group
    return value
