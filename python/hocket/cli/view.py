"""``hocket view``: look at a plan from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hocket.cli import options
from hocket.cli.plan import describe, plan_facts
from hocket.cli.verify import PlanFile
from hocket.errors import SpecError
from hocket.outcome import Latency
from hocket.planning import Plan
from hocket.running import Run, simulate
from hocket.units import format_time_ps

if TYPE_CHECKING:
    from hocket.plot.ten import Expanded


def view(
    plan: PlanFile,
    *,
    ten: Annotated[
        bool,
        typer.Option("--ten", help="On the time-expanded network: each transfer an arrow in time."),
    ] = False,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Draw to this .png, .svg or .pdf file."),
    ] = None,
    latency_model: options.LatencyModel = "overlapped",
    json: options.Json = False,
) -> None:
    """Draw a plan's transfers in simulated time."""
    options.check_model(None, None, latency_model)
    if not ten:
        raise SpecError("view: what it can draw so far is the time-expanded network; add --ten")
    if output is None and not json:
        raise SpecError("--output: nowhere to draw; give -o ten.png, or --json for the arrows")
    from hocket.plot.style import check_picture
    from hocket.plot.ten import check_readable, draw_ten, expand

    if output is not None:
        check_picture(Path(output))
    made = Plan.load(plan)
    check_readable(made)
    with options.watching() as watch:
        run = simulate(
            made,
            latency=cast(Latency, latency_model),
            keep_services=output is not None,
            progress=watch,
        )
        arrows = expand(run) if output is None else draw_ten(run, Path(output))
    if json:
        options.print_json(_as_json(run, arrows, latency_model, output))
        return
    slots = ""
    if arrows.slot_ps is not None:
        plural = "s"[: arrows.slots != 1]
        slots = f", {arrows.slots} slot{plural} of {format_time_ps(arrows.slot_ps)}"
    console = options.output()
    console.print(f"{describe(made)} in {format_time_ps(run.time_ps)}{slots}", highlight=False)
    console.print(f"drawn to {output}", highlight=False, soft_wrap=True)


def _as_json(run: Run, arrows: Expanded, latency_model: str, output: str | None) -> dict[str, Any]:
    """Give the arrows in order of start, times in picoseconds."""
    columns = {
        "transfer": arrows.transfer,
        "chunk": arrows.chunk,
        "chunks": arrows.chunk_count,
        "src": arrows.src,
        "dst": arrows.dst,
        "start_ps": arrows.start_ps,
        "end_ps": arrows.end_ps,
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return {
        **plan_facts(run.plan),
        "latency_model": latency_model,
        "time_ps": run.time_ps,
        "slot_ps": arrows.slot_ps,
        "slots": arrows.slots if arrows.slot_ps is not None else None,
        "arrows": [dict(zip(columns, row, strict=True)) for row in rows],
        "file": output,
    }
