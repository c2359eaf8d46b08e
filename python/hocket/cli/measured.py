"""``hocket measured``: real runs beside what was to be expected, and what is slow."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Annotated

from hocket.cli import options
from hocket.cli.command import Argument, Panel
from hocket.cli.groups import Given, Nodes, TimedPlanning
from hocket.cli.numbers import BUSBW, TIMES
from hocket.cli.table import NEVER, Table
from hocket.errors import listed
from hocket.telemetry.judge import Measured, judged_on
from hocket.telemetry.options import MeasuredOptions
from hocket.units import format_size


def measured(
    files: Annotated[
        list[str],
        Argument(
            metavar="FILE",
            help="Logs of nccl-tests, rccl-tests and NCCL, tables (.csv; docs/machines.md), NCCL Inspector "
            "JSON, Flight Recorder dumps and PyTorch profiler traces; for a job, of all ranks.",
        ),
    ],
    *,
    network: Nodes,
    given: Annotated[Given, Panel("Judging", of=MeasuredOptions)],
    planning: TimedPlanning,
    output: Annotated[
        str | None,
        options.output_file(
            "Also draw a picture to this .png, .svg or .pdf file.", check=options.is_picture
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Compare measured times with the prediction, the bound and the best plan.

    For example: hocket measured nccl-tests.txt --topology dgx_a100_1box  ·  hocket measured
    trace-*.json.gz --topology dgx_a100_1box -o measured.png
    """
    how = MeasuredOptions(**given)
    with options.watching() as watch:
        found = judged_on(files, network.spec(), how, planning, watch)
    if output is not None:
        from hocket.plot.measured import draw_measured

        draw_measured(found, Path(output))
    if json:
        options.print_result("measured", found.to_dict())
        return
    _print(found, output)


def _print(found: Measured, output: str | None) -> None:
    console = options.output()
    has_best = any(each.best is not None for each in found)
    for (kind, timing), group in groupby(found, key=lambda each: (each.kind, each.timing)):
        alone = ", kernels alone" if timing == "kernel" else ""
        who = f"{found.topology.npu_count} NPUs of {found.topology.name}"
        table = Table(title=f"{kind} among {who}{alone}", by_row=True)
        rows, right = list(group), {"justify": "right"}
        table.add("size", [format_size(each.size) for each in rows], leaves=NEVER, **right)
        table.add("measured", [_ps(each.seconds) for each in rows], units=TIMES, leaves=NEVER)
        table.add("predicted", [_ps(each.predicted) for each in rows], units=TIMES, leaves=NEVER)
        if has_best:
            table.add("best plan", [_ps(each.best) for each in rows], units=TIMES)
        table.add("bound", [_ps(each.bound) for each in rows], units=TIMES)
        table.add("algbw", [each.algbw for each in rows], units=BUSBW)
        table.add("busbw", [each.busbw for each in rows], units=BUSBW)
        ways = [None if each.way is None else ", ".join(each.way) for each in rows]
        table.add("predicted with", ways)
        table.add("slow", [each.verdict for each in rows], leaves=NEVER)
        console.print(table)
    below: dict[tuple[str, str], list[str]] = {}
    for each in found:
        if each.below_bound is not None:
            below.setdefault((each.kind, each.below_bound), []).append(format_size(each.size))
    for (kind, reason), which in below.items():
        console.print(f"predicted below the bound: {kind} of {listed(which)}: {reason}")
    for span in found.ranges:
        console.print(span.sentence)
    for cause in found.causes:
        kind = "cause" if cause.is_sure else "possible cause"
        console.print(f"{kind}: {cause.name}: {cause.evidence}")
        console.print(f"try: {cause.action}")
    if len(found.causes) > 1:
        console.print(
            "several fit: change one at a time, in this order, and measure again after each"
        )
    if found.profile is not None:
        console.note(f"predicted by profile {found.profile.name}{_launches(found)}")
    for note in found.notes:
        console.note(note)
    if output is not None:
        console.print(f"picture in {output}")


def _launches(found: Measured) -> str:
    costs = sorted({f"{cost:.3g}" for cost in found.launch.values()}, key=float)
    return (
        "" if not costs else f", launched in {' to '.join(dict.fromkeys((costs[0], costs[-1])))} us"
    )


def _ps(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e12
