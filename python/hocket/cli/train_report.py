"""The output of ``hocket train``: tables, and the same as JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hocket._results import listed
from hocket.cli import options
from hocket.cli.console import Printer
from hocket.cli.numbers import TIMES, percent, share_of, significant
from hocket.cli.table import NEVER, Table, table_of
from hocket.training.stages import spoken
from hocket.units import counted, format_flops, format_size, format_time_ps

if TYPE_CHECKING:
    from hocket.training import Breakdown, TrainingRun
    from hocket.training.parallel import Group

_MAX_LAYERS = 10
"""Of the table of layers."""
_MAX_CHOICES = 10
"""Of the table of collectives."""


def print_run(run: TrainingRun, algorithm: str | None, chunks: int | None, *, layers: bool) -> None:
    """Print tables of where the time went, and what was chosen.

    Parameters
    ----------
    algorithm, chunks
        As they were given; None where the default was taken.
    layers
        Whether to print those with most exposed communication.
    """
    console = options.output()
    _print_breakdown(console, run)
    for line in _facts(run, algorithm, chunks):
        console.note(line)
    if run.choices:
        _print_choices(console, run)
    if len(run.stages) > 1:
        _print_stages(console, run)
    if layers:
        _print_layers(console, run)


def _print_breakdown(console: Printer, run: TrainingRun) -> None:
    title = (
        f"{run.workload.name} on {run.topology.npu_count:,} NPUs of {run.topology.name}: "
        f"{run.parallel}, {_described(run)}"
    )
    console.print(title)
    table = Table()
    table.add_column("of an iteration")
    table.add_column("time", units=TIMES)
    table.add_column("share", justify="right", unit="%")
    mean = run.breakdown.over(run.options.iterations)
    forward = "forward, twice" if run.options.recompute else "forward"
    for name, time in _parts(mean, forward):
        share = time / run.time_ps if run.time_ps else 0.0
        table.add_row(name, time, percent(share))
    table.add_section()
    table.add_row("iteration", run.time_ps, "")
    console.print(table)


def _parts(mean: Breakdown, forward: str) -> list[tuple[str, float]]:
    rows = [(forward, mean.forward), ("backward", mean.backward), ("update", mean.update)]
    rows += [(f"exposed: {name}", time) for name, time in mean.exposed.items() if time]
    if mean.waiting:
        rows.append(("waiting", mean.waiting))
    return rows


def _described(run: TrainingRun) -> str:
    size = "sample" if run.options.samples == 1 else "samples"
    name = run.npu.name
    if run.npu.efficiency != 1:
        name += f" at {run.npu.efficiency:.3g} of its peak"
    parts = run.parallel.parts
    cut = f" in {parts} micro-batches" if parts > 1 else ""
    return f"{run.options.samples} {size} per replica{cut}, {name}"


def _facts(run: TrainingRun, algorithm: str | None, chunks: int | None) -> list[str]:
    count = run.options.iterations
    lines = [f"{significant(run.samples_per_second)} samples/s{_operations(run)}"]
    if count > 1:
        ends = [0, *run.iteration_ps]
        first, last = ends[1], ends[-1] - ends[-2]
        lines.append(
            f"{count:,} iterations in {_time(run.total_ps)}: the first ends after {_time(first)}, "
            f"the last {_time(last)} after the one before"
        )
    alone = run.communication_ps / count
    if alone:
        lines.append(
            f"communication: {_time(alone)} if each collective ran alone, one after the other; "
            f"{share_of(run.hidden)} of it is hidden behind compute"
        )
    limit = run.npu.memory_bytes
    beside = f"; {run.npu.name} has {format_size(limit)}" if limit is not None else ""
    lines.append(f"memory: about {run.memory}{beside}")
    lines.append(f"algorithm: {_algorithm(run, algorithm, chunks)}")
    lines += [f"{name}: {_lies(run, group)}" for name, group in run.used_groups.items()]
    return lines


def _operations(run: TrainingRun) -> str:
    done, share = run.operations_per_second, run.utilization
    if done is None or share is None:
        return ""
    rate = f"; {format_flops(round(done))}/s an NPU, {share_of(share)} of {run.npu.name}'s peak"
    return f"{rate}, without what is recomputed" if run.options.recompute else rate


def _algorithm(run: TrainingRun, given: str | None, chunks: int | None) -> str:
    from hocket.training.network import CHUNKS, IDEAL, NOTHING, is_on_dimensions

    if run.algorithm == NOTHING:
        return "none: collectives take no time"
    if run.algorithm == IDEAL:
        return "ideal: all bandwidth of a group's dimensions, all the time"
    on_dimensions = is_on_dimensions(run.topology, run.algorithm)
    count = CHUNKS if chunks is None and on_dimensions else chunks
    pieces = "" if count is None else f", {counted(count, 'chunk')}"
    reason = ""
    if given is None:
        which = "with dimensions" if on_dimensions else "without whole dimensions"
        reason = f", the default on networks {which}"
    how = "" if on_dimensions else "; each collective takes what its axis' groups take together"
    if run.chosen:
        kinds = len(run.makers)
        took = ", ".join(f"{name} for {count:,}" for name, count in run.chosen.items())
        reason += f": of {kinds:,} collective{'s'[: kinds != 1]} {took}"
    return f"{run.algorithm}{pieces}{reason}{how}"


def _lies(run: TrainingRun, group: Group) -> str:
    if group.portions is None:
        first = ", ".join(str(npu) for npu in group.members[0][:4])
        more = ", ..." if group.size > 4 else ""
        return f"groups of {group.size:,} NPUs, the first of them {first}{more}"
    places = []
    for dimension, size, stride in group.portions:
        kind, whole, *_ = run.topology.dimensions[dimension]
        part = f"{size:,} of {whole:,}" if size < whole else f"all {size:,}"
        apart = f", {stride:,} apart" if stride > 1 else ""
        places.append(f"dimension {dimension + 1} ({kind}: {part}{apart})")
    return f"groups of {group.size:,} NPUs on {', '.join(places)}"


def _print_choices(console: Printer, run: TrainingRun) -> None:
    console.print("what auto chose for the collectives of an iteration")
    console.print(table_of(run.choices[:_MAX_CHOICES], by_section=True))
    rest = len(run.choices) - _MAX_CHOICES
    if rest > 0:
        console.print(f"and {rest:,} more, which take less time in all; --json has all")


def _print_stages(console: Printer, run: TrainingRun) -> None:
    count = run.options.iterations
    means = [each.over(count) for each in run.stage_breakdowns]
    causes = [name for name in means[0].exposed if any(mean.exposed[name] for mean in means)]
    console.print("stages, of an iteration")
    table = Table()
    table.add_column("stage", justify="right")
    table.add_column("layers", prose=True)
    for k, name in enumerate(("forward", "backward", "update")):
        table.add_column(name, units=TIMES, leaves=3 - k)
    for name in (*(f"exposed: {name}" for name in causes), "waiting"):
        table.add_column(name, units=TIMES, leaves=NEVER)
    for s, (mean, blocks) in enumerate(zip(means, run.stages, strict=True)):
        names = f"{len(blocks):,}: {spoken(run.pieces[s])}"
        exposed = [mean.exposed[name] for name in causes]
        times = [mean.forward, mean.backward, mean.update, *exposed, mean.waiting]
        table.add_row(str(s + 1), names, *times)
    console.print(table)


def _print_layers(console: Printer, run: TrainingRun) -> None:
    ranked = sorted(
        (layer for layer in listed(run) if layer.communication_ps),
        key=lambda layer: (-layer.exposed_ps, -layer.communication_ps),
    )
    if not ranked:
        console.print("no layer communicates")
        return
    console.print("layers with most exposed communication, of an iteration")
    console.print(table_of(ranked[:_MAX_LAYERS]))
    rest = ranked[_MAX_LAYERS:]
    if rest:
        exposed = sum(layer.exposed_ps for layer in rest)
        line = f"{_time(exposed)} exposed of {len(rest):,} others that communicate; --json has all"
        console.print(line)


def _time(time_ps: float) -> str:
    return format_time_ps(round(time_ps))
