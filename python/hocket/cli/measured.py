"""``hocket measured``: real runs beside what was to be expected, and what is slow."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import groupby
from pathlib import Path
from typing import Annotated, ClassVar

from hocket.cli import options
from hocket.cli.command import Argument, Option
from hocket.cli.groups import Nodes
from hocket.cli.numbers import RATES, TIMES
from hocket.cli.table import NEVER, Table
from hocket.errors import listed
from hocket.nccl.gpus import check_gpu
from hocket.plans.synthesis import PlanOptions
from hocket.profiles.profile import Profile, load_profile, profile_of
from hocket.telemetry.judge import Measured
from hocket.telemetry.judge import measured as judge
from hocket.telemetry.options import MeasuredOptions
from hocket.topology.build import build_topology
from hocket.topology.spec import TopologySpec
from hocket.units import format_size


@dataclass(frozen=True)
class Judging:
    """How what was measured is judged."""

    panel: ClassVar[str] = "Judging"

    profile: Annotated[
        str | None,
        Option(
            "--profile",
            metavar="PROFILE",
            help="A shipped profile, or a topology file with one. Default: the network's own.",
        ),
    ] = None
    launch: Annotated[
        str | None,
        Option(
            "--launch",
            help="How the program launched the collective: a launch kind of the profile. "
            "Default: inferred from the smallest sizes.",
        ),
    ] = None
    gpu: Annotated[
        str | None,
        Option(
            "--gpu", help="GPU for which picks are shown, as for `hocket predict --nccl --gpu`."
        ),
    ] = None
    in_place: Annotated[
        bool,
        Option("--in-place", help="Judge the in-place times instead of the out-of-place ones."),
    ] = False
    tolerance: Annotated[
        float | None,
        Option(
            "--tolerance",
            help="Share by which times may exceed predictions, such as 0.3. Default: depends on "
            "the size.",
        ),
    ] = None
    plans: Annotated[
        bool,
        Option("--plans/--no-plans", help="Search for the best plans as well. Slow."),
    ] = True

    def options(self, spec: TopologySpec) -> MeasuredOptions:
        """Return what is said as options, with the profile of the network where none is named."""
        if self.profile is not None:
            used: Profile | None = load_profile(self.profile)
        else:
            used = None if spec.profile is None else profile_of(spec)
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return MeasuredOptions(**{**own, "profile": used, "gpu": check_gpu(spec, self.gpu)})


def measured(
    files: Annotated[
        list[str],
        Argument(
            metavar="FILE...",
            help="Logs of nccl-tests or rccl-tests, tables (.csv), NCCL Inspector JSON, Flight "
            "Recorder dumps or PyTorch profiler traces; for a job, those of all ranks.",
        ),
    ],
    *,
    network: Nodes,
    judging: Judging,
    time_limit: options.TimeLimit = None,
    output: Annotated[
        str | None,
        Option("--output", "-o", help="Also draw a picture to this .png, .svg or .pdf file."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Compare measured times with the prediction, the bound and the best plan.

    For example: hocket measured nccl-tests.txt --topology dgx_a100_1box  ·  hocket measured
    trace-*.json.gz --topology dgx_a100_1box -o measured.png
    """
    if output is not None:
        from hocket.plot.style import check_picture

        check_picture(Path(output))
    spec = network.spec()
    how = judging.options(spec)
    planning = replace(PlanOptions(), time_limit=time_limit)
    with options.watching() as watch:
        found = judge(files, build_topology(spec), options=how, planning=planning, progress=watch)
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
        table.add_column("size", justify="right", leaves=NEVER)
        table.add_column("measured", justify="right", units=TIMES, leaves=NEVER)
        table.add_column("predicted", justify="right", units=TIMES, leaves=NEVER)
        if has_best:
            table.add_column("best plan", justify="right", units=TIMES)
        table.add_column("bound", justify="right", units=TIMES)
        table.add_column("algbw", justify="right", units=RATES)
        table.add_column("busbw", justify="right", units=RATES)
        table.add_column(f"{found.library or 'NCCL'} picks")
        table.add_column("slow", leaves=NEVER)
        for each in group:
            times = [each.seconds, each.predicted, *([each.best] if has_best else []), each.bound]
            pick = each.pick
            table.add_row(
                format_size(each.size),
                *(None if time is None else time * 1e12 for time in times),
                each.algbw,
                each.busbw,
                "–" if pick is None else f"{pick.algorithm}, {pick.protocol}",
                each.verdict,
            )
        console.print(table)
    below: dict[tuple[str, str], list[str]] = {}
    for each in found:
        if each.below_bound is not None:
            below.setdefault((each.kind, each.below_bound), []).append(format_size(each.size))
    for (kind, reason), which in below.items():
        console.print(f"predicted below the bound: {kind} of {listed(which)}: {reason}")
    for span in found.ranges:
        console.print(span.sentence)
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
