"""``hocket plan`` and ``hocket plan --list``."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar

from hocket import _core
from hocket.cli import options
from hocket.cli.certificate import print_certificates
from hocket.cli.command import Option
from hocket.cli.form import Form
from hocket.cli.groups import LinkPlanning, Nodes, Task
from hocket.cli.kept import chosen, plan_and_show, show
from hocket.cli.numbers import share_of
from hocket.cli.table import table_of
from hocket.cli.why import explain
from hocket.collectives.bounds import assumed
from hocket.collectives.collective import Progress
from hocket.errors import InfeasibleError, SimulationError, SpecError
from hocket.files.atomic import check_target
from hocket.plans.algorithms import BUILTIN, heeded
from hocket.plans.algorithms import algorithms as known_algorithms
from hocket.plans.choice import SHORTEST, ChunkChoice
from hocket.plans.groups import groups_of
from hocket.plans.plan import Plan
from hocket.plans.planner import choose
from hocket.plans.symmetric import NAME as SYMMETRIC
from hocket.plans.synthesis import CompactTimetable, PlanOptions, Synthesis, timetable
from hocket.plans.synthesis.compact import NAME as GREEDY
from hocket.plans.synthesis.options import ROUNDING
from hocket.topology.build import build_topology
from hocket.units import counted, format_time_ps

CUTS = {
    "time": "the time limit ended the search: another run may find another plan",
    "work": "the search ended with the work of its effort: --effort high gives more",
}
"""What is said of a search that was cut short."""

PLAIN = (".csv", ".html", ".json", ".pdf", ".png", ".svg", ".txt", ".xml", ".yaml", ".yml")
"""Endings of files that a plan is not."""


def _is_plan_file(option: str, file: str) -> None:
    """Refuse a file that cannot be written, or whose name says that it is none of Parquet."""
    check_target(Path(file))
    if Path(file).suffix in PLAIN:
        right = f"name {Path(file).stem}.parquet; hocket.Plan.to_frame() gives a table"
        raise SpecError(option, f"{file}: a plan is written as Parquet", right)


@dataclass(frozen=True)
class Making:
    """The options of one plan."""

    panel: ClassVar[str] = "Planning"

    options: LinkPlanning
    in_place: Annotated[bool, Option(help="Let the result overwrite the input.")] = True
    timetable_only: Annotated[
        bool,
        Option(
            "--timetable-only",
            help="For greedy on tens of thousands of NPUs: make and check a timetable slot by slot, "
            "without a plan.",
        ),
    ] = False


@dataclass(frozen=True)
class Shown:
    """Options for the output of the plan, and its file."""

    panel: ClassVar[str] = "Output"

    output: Annotated[
        str | None,
        options.output_file("Write the plan to this Parquet file.", check=_is_plan_file),
    ] = None
    json: options.Json = False
    verbose: Annotated[
        bool,
        Option(
            "--verbose",
            "-v",
            help="Also compare with the best plan of the same chunks.",
        ),
    ] = False
    why: Annotated[
        bool,
        Option(
            "--why",
            help="For auto: also list every algorithm that was tried with its time, and why "
            "others made no plan.",
        ),
    ] = False


def plan(
    kind: options.Kind,
    *,
    network: Nodes,
    task: Task,
    algorithm: Annotated[
        str,
        options.algorithm_option(
            "One of `hocket plan --list`, schedule:NAME (a saved schedule), or FILE.py:FUNCTION, "
            "called with topology, collective and options (docs/own-plans.md). Default: auto, "
            "the best plan of any."
        ),
    ] = "auto",
    making: Making,
    shown: Shown,
) -> None:
    """Plan a collective with one algorithm, prove the plan, and write it to a file.

    For example: hocket plan all-reduce --topology dgx1_v100 --size 64MB --algorithm
    bidirectional-ring -o plan.parquet
    """
    output, json = shown.output, shown.json
    is_timetable = making.timetable_only
    how = BUILTIN[algorithm].making if algorithm in BUILTIN else ""
    if shown.why and (how != "choice" or is_timetable):
        raise SpecError("--why", f"{algorithm} was named, not chosen", "leave it or -a out")
    planning = making.options
    spec = network.spec()
    if planning.chunk_size is None and algorithm != SYMMETRIC:
        names = None if is_timetable or how == "choice" else [algorithm]
        options.check_size(
            spec, kind, names, planning.chunks, npus=task.npus, is_timetable=is_timetable
        )
    topology = build_topology(spec)
    collective = task.collective(kind, topology, in_place=making.in_place)
    if is_timetable:
        _timetable(collective, topology, algorithm, planning, is_kept=output is not None, json=json)
        return
    if algorithm == SYMMETRIC:
        plan_and_show(collective, topology, planning, output, json)
        return
    relays = planning.relays

    @cache
    def pending() -> options.Meanwhile[_core.Bound]:
        return options.Meanwhile(lambda: _core.bound(topology, collective, relays=relays))

    if how == "choice" and task.process_groups is None:
        began = time.monotonic()
        kept = chosen(collective, topology, planning, output, pending)
        if kept is not None:
            show(kept, output, json)
            return
        if planning.seconds is not None:
            left = max(planning.seconds - (time.monotonic() - began), SHORTEST)
            planning = replace(planning, time_limit=min(left, planning.seconds))
    options.announce_plans(collective, topology, [algorithm], planning)
    meanwhile = pending()
    named = [] if task.process_groups is None else task.named(kind, topology)
    with options.watching() as watch:
        watch.keeps_best = not json

        def keep(best: ChunkChoice, bound_ps: int) -> None:
            if output is not None:
                best.plan.network = network.words()
                best.plan.save(output)
                watch.kept = f", written to {Path(output)}"
            if json:
                there = {**_document(best, bound_ps, output), "cut": "signal"}
                watch.so_far(options.result_text("plan", there))

        watch.found = keep
        began = time.monotonic()
        bounded = meanwhile.result if relays == "sum" else None
        made = choose(collective, topology, algorithm, planning, progress=watch, bound=bounded)
        greedy = None
        if how == "solver" and not json:
            spent = time.monotonic() - began
            greedy = _by_greedy(collective, topology, planning, spent, watch)
    bound = meanwhile.result()
    bound_ps = bound.time_ps
    if output is not None:
        made.plan.network = network.words()
        made.plan.save(output)
    if json:
        document = _document(made, bound_ps, output)
        if named:
            document["groups"] = [each.to_dict() for each in groups_of(made.plan, named)]
        options.print_result("plan", document)
        return
    options.say(f"{describe(made.plan)}, proved")
    options.say(f"{time_line(made, bound_ps)}{assumed(bound, collective, topology)}")
    if named:
        options.output().print(table_of(groups_of(made.plan, named)))
    if made.plan.fit is not None:
        options.say(str(made.plan.fit))
    if made.plan.selection is not None:
        explain(made.plan.selection, why=shown.why)
    if len(made.tried) > 1:
        options.note(f"the fastest of --chunks {', '.join(map(str, made.tried))}: {made.slices}")
    options.note_limit([algorithm], planning)
    if greedy is not None and greedy.time_ps is not None and greedy.time_ps < (made.time_ps or 0):
        options.say(
            f"greedy is faster: {format_time_ps(greedy.time_ps)} with --chunks {greedy.slices}"
        )
    synthesis = made.plan.synthesis
    is_least = synthesis is not None and synthesis.status == "optimal"
    if made.cut is not None and made.plan.selection is None and not is_least:
        options.note(CUTS[made.cut])
    if made.plan.trees is not None:
        print_certificates(made.plan.trees.packings)
    if shown.verbose and synthesis is not None:
        options.say(synthesis_line(made.plan, bound_ps))
    if output is not None:
        options.say(f"written to {Path(output)}")
        if named:
            options.note(f"to see it: hocket simulate {shlex.quote(output)} --page page.html")
    else:
        options.note("not kept: give -o plan.parquet to write it to a file")


def _document(made: ChunkChoice, bound_ps: int, output: str | None) -> dict[str, object]:
    """Return a plan as the values of JSON."""
    times = {"time_ps": made.time_ps, "bound_ps": bound_ps, "file": output}
    cut = {} if made.cut is None else {"cut": made.cut}
    fit = {} if made.plan.fit is None else {"fit": made.plan.fit.to_dict()}
    return {**made.plan.to_dict(), **times, **cut, **fit}


def _by_greedy(
    collective: _core.Collective,
    topology: _core.Topology,
    exact: PlanOptions,
    spent: float,
    progress: Progress,
) -> ChunkChoice | None:
    """Plan by greedy under the options of exact but its number of chunks, in what is left of the limit.

    Return None if greedy makes no plan: that of exact stands.
    """
    options = replace(heeded(GREEDY, exact), chunks=None, chunk_size=None)
    if options.seconds is not None:
        options = replace(options, time_limit=max(options.seconds - spent, SHORTEST))
    try:
        return choose(collective, topology, GREEDY, options, progress=progress)
    except (InfeasibleError, SimulationError, SpecError):
        return None


def _timetable(
    collective: _core.Collective,
    topology: _core.Topology,
    algorithm: str,
    planning: PlanOptions,
    *,
    is_kept: bool,
    json: bool,
) -> None:
    """Match and check slot by slot, without a plan."""
    heeded = PlanOptions(
        chunks=planning.slices(collective.size),
        seed=planning.seed,
        latency_model=planning.latency_model,
    )
    if (
        algorithm != GREEDY
        or is_kept
        or replace(planning, chunk_size=None, chunks=heeded.chunks) != heeded
    ):
        raise SpecError(
            None,
            "--timetable-only goes with --algorithm greedy, --chunks, --seed and --latency-model",
            "it makes no plan, in one trial: leave the other options out",
        )
    with options.watching() as watch:
        table = timetable(
            collective,
            topology,
            chunks=heeded.chunks,
            seed=heeded.seed,
            latency_model=heeded.latency_model,
            progress=watch,
        )
    show_timetable(table, options.title(collective, topology), json)


def show_timetable(table: CompactTimetable, title: str, json: bool) -> None:
    """Print what a timetable without a plan comes to."""
    if json:
        options.print_result("timetable", table.to_dict())
        return
    end, least = table.end_ps, table.least_ps
    options.say(
        f"greedy {title}: {table.sends:,} sends in {table.slots:,} slots, checked slot by slot"
    )
    is_least = end <= least * (1 + ROUNDING)
    best = "the least that it can be" if is_least else f"{end / least - 1:.2%} above the least"
    options.say(f"timetable: {format_time_ps(end)}, {best}; no plan is made of it")


def time_line(made: ChunkChoice, bound_ps: int) -> str:
    """Describe when a plan ends, and how far that is from the bound."""
    bound = format_time_ps(bound_ps)
    if made.time_ps is not None:
        above = f"{share_of(_core.gap(made.time_ps, bound_ps))} above " if bound_ps else "above "
        return f"time {format_time_ps(made.time_ps)}: {above}the bound, {bound}"
    synthesis = made.plan.synthesis
    if synthesis is None:
        return f"bound {bound}; hocket simulate says how long it takes"
    return f"time at most {format_time_ps(synthesis.time_ps)}, by its timetable; bound {bound}"


def synthesis_line(plan: Plan, bound_ps: int) -> str:
    """Describe how good a synthesized plan is among those of its chunks."""
    made = plan.synthesis
    assert made is not None, "asked of synthesized plans only"
    if made.method == "blind":
        return "ways chosen as if each chunk were alone on the network; links serve as chunks come"
    switches = plan.topology.npu_count < len(plan.topology.device_names)
    unwound = f" with switches unwound as {made.unwind}" if switches else ""
    found = _slots(made) if made.method == "exact" else ""
    if found and plan.algorithm != "exact":
        return f"{found} make a slower plan: this is greedy's, which needs no slots"
    if made.status == "optimal":
        if found and plan.collective.kind == "all-reduce":
            return f"{found}, optimal for a reduce-scatter and then an all-gather in these slots"
        slots = f"{found}, optimal: " if found else "optimal: "
        where = " in these slots" if found else ""
        return f"{slots}no timetable of these chunks{where}{unwound} is shorter"
    if found:
        if made.slots == made.least_slots:
            return f"{found}, the fewest that there can be; the plan takes longer than they do"
        return f"{found}, of at least {made.least_slots} that a timetable in such slots takes"
    least = max(made.least_ps, bound_ps)
    above = made.time_ps / least - 1
    return f"{share_of(above)} above the least that a timetable of these chunks{unwound} could take"


def _slots(made: Synthesis) -> str:
    """Return how many slots a timetable takes."""
    assert made.slots is not None
    assert made.slot_ps is not None
    plural = "" if made.slots == 1 else "s"
    return f"{made.slots} slot{plural} of {format_time_ps(made.slot_ps)}"


def describe(plan: Plan) -> str:
    """Describe in a few words what a plan is."""
    what = options.title(plan.collective, plan.topology)
    transfers, chunks = counted(len(plan), "transfer"), counted(plan.chunks, "chunk")
    return f"{plan.algorithm} {what}: {transfers} of {chunks}"


def algorithms(*, form: Form) -> None:
    """List the algorithms, what they do, and their collectives.

    For example: hocket plan --list --json
    """
    form.print_list("algorithms", known_algorithms())
