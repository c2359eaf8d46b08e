"""``hocket trace run``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, cast

from hocket.cli import options
from hocket.cli.command import Panel
from hocket.cli.form import Form
from hocket.cli.groups import Network
from hocket.cli.table import table_of
from hocket.cli.trace_options import Dependencies, GroupsFile, Prefix
from hocket.traces.options import ReplayOptions
from hocket.units import format_time_ps

_MAX_ROWS = 64
"""Of the table of ranks."""


@dataclass(frozen=True, kw_only=True)
class Replaying:
    """The options of the replay."""

    panel: ClassVar[str] = "Replay"

    groups: GroupsFile = None
    dependencies: Dependencies = "all"
    algorithm: options.AlgorithmOfCollectives = None
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
    if form.prints("trace-run", ran.to_dict, lambda: ran):
        return
    console = options.output()
    ranks = f"{made.ranks} rank{'s'[: made.ranks != 1]}"
    title = f"{ranks} on {topology.name} by {ran.algorithm}: {format_time_ps(ran.time_ps)}"
    console.print(title)
    if ran.kinds:
        console.print(table_of(ran.kinds.values()))
    console.print(table_of(ran.ranks[:_MAX_ROWS]))
    for note in ran.notes:
        console.note(f"note: {note}")
    if len(ran.ranks) > _MAX_ROWS:
        console.print(f"note: {len(ran.ranks) - _MAX_ROWS} more ranks; --json has all")
