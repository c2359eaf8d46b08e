"""``hocket train``: training iterations of a model on a network, and where their time goes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hocket import _core
from hocket.cli import options
from hocket.errors import InfeasibleError, SpecError
from hocket.units import format_size, format_time_ps, shown

if TYPE_CHECKING:
    from rich.console import Console

    from hocket.compute import Chiplet
    from hocket.roofline import Accelerator
    from hocket.training import Breakdown, Parallel, TrainingRun
    from hocket.training.parallel import Group

_CHIPLET = "chiplet"
_ALL = "all"
_MOST_LAYERS = 10
"""Of the table of layers."""


def train(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="A shipped workload (`hocket workload list`), a file."
        ),
    ],
    *,
    topology: options.TopologyText,
    bandwidth: options.Bandwidth = None,
    latency: options.LatencyText = None,
    failed: options.Failed = None,
    parallel: Annotated[
        str | None,
        typer.Option(
            "--parallel",
            "-p",
            help="How the model is spread: dp=64,tp=16; also pp, ep, zero, micro-batches; default "
            "replicas on all NPUs.",
        ),
    ] = None,
    places: Annotated[
        str | None,
        typer.Option("--map", help="Dimensions of parallelism's own, from 1: tp=1,dp=2+3."),
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            "--algorithm",
            "-a",
            help="Of collectives: one of `hocket algorithms`, ideal, or none; default themis where "
            "there are dimensions, else greedy.",
        ),
    ] = None,
    chunks: options.Chunks = None,
    samples: Annotated[int, typer.Option("--samples", help="Of a replica in an iteration.")] = 32,
    iterations: Annotated[int, typer.Option("--iterations", help="How many.")] = 1,
    npu: Annotated[
        str, typer.Option("--npu", help="What computes: v100, a100, h100, ..., or chiplet.")
    ] = "a100",
    efficiency: Annotated[
        float | None,
        typer.Option("--efficiency", help="Share of its peak that is reached: 0.5; default 1."),
    ] = None,
    precision: Annotated[
        int, typer.Option("--precision", help="Bits of weights, gradients and activations.")
    ] = 16,
    bucket: Annotated[
        str,
        typer.Option("--bucket", help="Gradients that are reduced together: bytes, or all."),
    ] = "25 MiB",
    recompute: Annotated[
        bool, typer.Option("--recompute", help="Backward passes compute forward ones again.")
    ] = False,
    overlap_tensor: Annotated[
        bool,
        typer.Option(
            "--overlap-tensor/--no-overlap-tensor",
            help="Whether input gradients are summed while weight gradients are computed.",
        ),
    ] = True,
    update: Annotated[
        bool, typer.Option("--update/--no-update", help="Whether the weights' update takes time.")
    ] = True,
    order: Annotated[
        str, typer.Option("--order", help="Which collective a dimension serves first: fifo, lifo.")
    ] = "fifo",
    memory_check: Annotated[
        bool,
        typer.Option(
            "--memory-check/--no-memory-check", help="Whether to refuse what does not fit an NPU."
        ),
    ] = True,
    timeline: Annotated[
        str | None,
        typer.Option("--timeline", help="Draw what went on when: a .png, .svg or .pdf file."),
    ] = None,
    perfetto: Annotated[
        str | None,
        typer.Option("--perfetto", help="Write trace events, for ui.perfetto.dev: a .json file."),
    ] = None,
    layers: Annotated[
        bool, typer.Option("--layers", help="Also the layers with most exposed communication.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Simulate training iterations of a model on a network."""
    from hocket import training

    _check_targets(timeline, perfetto)
    computes = _npu(npu, efficiency)
    network = options.read_topology(topology, bandwidth, latency, failed)
    spread = _parallel(parallel, places, network)
    with options.watching() as watch:
        try:
            run = training.train(
                model,
                network,
                parallel=spread,
                algorithm=algorithm,
                chunks=chunks,
                samples=samples,
                iterations=iterations,
                npu=computes,
                efficiency=efficiency,
                precision_bits=precision,
                bucket=None if bucket == _ALL else _size(bucket),
                recompute=recompute,
                overlap_tensor=overlap_tensor,
                update=update,
                order=order,
                fits=memory_check,
                progress=watch,
            )
        except InfeasibleError as error:
            raise InfeasibleError(_with_option(str(error))) from None
        _write(run, timeline, perfetto, watch)
    if json:
        options.print_json({**_as_json(run), "chunks": chunks, "order": order})
    else:
        _print(run, algorithm, chunks, layers=layers)


def _check_targets(timeline: str | None, perfetto: str | None) -> None:
    if timeline is not None:
        from hocket.plot.style import check_picture

        check_picture(Path(timeline))
    if perfetto is not None:
        from hocket.files.atomic import check_target

        check_target(Path(perfetto))
        if timeline is not None and Path(timeline).resolve() == Path(perfetto).resolve():
            raise SpecError(f"--perfetto: {perfetto} is the time-line's file; name another")


def _write(
    run: TrainingRun, timeline: str | None, perfetto: str | None, watch: options.Watch
) -> None:
    if perfetto is not None:
        watch.note("writing")
        run.save_perfetto(perfetto)
    if timeline is not None:
        watch.note("drawing")
        run.plot(timeline)


def _npu(name: str, efficiency: float | None) -> Accelerator | Chiplet:
    from hocket.compute import Chiplet
    from hocket.files.complaint import did_you_mean
    from hocket.roofline import ACCELERATORS

    if name == _CHIPLET:
        if efficiency is not None:
            raise SpecError("--efficiency: a chiplet's cycles count as they are; leave it out")
        return Chiplet()
    if name not in ACCELERATORS:
        names = (*ACCELERATORS, _CHIPLET)
        hint = did_you_mean(name, names, f"use {', '.join(names)}")
        raise SpecError(f"--npu: there is no {shown(name)}; {hint}")
    return ACCELERATORS[name]


def _size(text: str) -> int:
    from hocket.units import parse_size

    try:
        return parse_size(text, field="--bucket")
    except SpecError as error:
        raise SpecError(f"{error}, or all") from None


def _parallel(text: str | None, places: str | None, topology: _core.Topology) -> Parallel:
    from hocket.training import Parallel

    spread = Parallel(dp=topology.npu_count) if text is None else Parallel.parse(text)
    return spread if places is None else replace(spread, dimensions=_read_map(places))


def _read_map(text: str) -> dict[str, list[int]]:
    """Read ``--map``: ``tp=1,dp=2+3``."""
    from hocket.training.parallel import AXES

    found: dict[str, list[int]] = {}
    for part in text.split(","):
        axis, equals, listed = (each.strip() for each in part.partition("="))
        numbers = [number.strip() for number in listed.split("+")]
        right = "write dimensions, from 1, as tp=1,dp=2+3"
        if not equals or axis not in AXES:
            raise SpecError(
                f"--map: {shown(part.strip())} will not do; {right}; axes are {', '.join(AXES)}"
            )
        if not all(each.isascii() and each.isdecimal() and len(each) < 10 for each in numbers):
            raise SpecError(f"--map: {axis}: {shown(listed)} is no dimension; {right}")
        if axis in found or len(set(numbers)) < len(numbers):
            raise SpecError(f"--map: {axis} is given twice what it has once; {right}")
        found[axis] = [int(number) for number in numbers]
    return found


def _with_option(message: str) -> str:
    return message.replace("leave the check out", "--no-memory-check")


# The report


def _print(run: TrainingRun, algorithm: str | None, chunks: int | None, *, layers: bool) -> None:
    console = options.output()
    _print_breakdown(console, run)
    for line in _facts(run, algorithm, chunks):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if len(run.stages) > 1:
        _print_stages(console, run)
    if layers:
        _print_layers(console, run)


def _print_breakdown(console: Console, run: TrainingRun) -> None:
    title = (
        f"{run.workload.name} on {run.topology.npu_count:,} NPUs of {run.topology.name}: "
        f"{run.parallel}, {_described(run)}"
    )
    console.print(title, highlight=False, markup=False, soft_wrap=True)
    table = options.new_table()
    table.add_column("of an iteration", no_wrap=True)
    table.add_column("time", justify="right")
    table.add_column("share", justify="right")
    mean = run.breakdown.over(run.options.iterations)
    for name, time in _parts(mean):
        share = time / run.time_ps if run.time_ps else 0.0
        table.add_row(name, _time(time), f"{share:.1%}")
    table.add_section()
    table.add_row("iteration", _time(run.time_ps), "")
    console.print(table)


def _parts(mean: Breakdown) -> list[tuple[str, float]]:
    rows = [("forward", mean.forward), ("backward", mean.backward), ("update", mean.update)]
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
    return f"{run.options.samples} {size} a replica{cut}, {name}"


def _facts(run: TrainingRun, algorithm: str | None, chunks: int | None) -> list[str]:
    count = run.options.iterations
    lines = [f"{_rate(run.samples_per_second)} samples/s"]
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
            f"{run.hidden:.1%} of it is hidden behind compute"
        )
    limit = run.npu.memory_bytes
    beside = f"; {run.npu.name} has {format_size(limit)}" if limit is not None else ""
    lines.append(f"memory: about {run.memory}{beside}")
    lines.append(f"algorithm: {_algorithm(run, algorithm, chunks)}")
    lines += [f"{name}: {_lies(run, group)}" for name, group in _used_groups(run).items()]
    return lines


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _algorithm(run: TrainingRun, given: str | None, chunks: int | None) -> str:
    from hocket.training.network import CHUNKS, IDEAL, NOTHING, is_on_dimensions

    if run.algorithm == NOTHING:
        return "none: collectives take no time"
    if run.algorithm == IDEAL:
        return "ideal: all bandwidth of a group's dimensions, all the time"
    on_dimensions = is_on_dimensions(run.topology, run.algorithm)
    count = CHUNKS if chunks is None and on_dimensions else chunks
    pieces = "" if count is None else f", {count:,} chunks"
    reason = ""
    if given is None:
        which = "with dimensions" if on_dimensions else "without whole dimensions"
        reason = f", the default on networks {which}"
    how = "" if on_dimensions else "; each collective takes what its plan takes alone"
    return f"{run.algorithm}{pieces}{reason}{how}"


def _used_groups(run: TrainingRun) -> dict[str, Group]:
    """Give the groups of more than one NPU, by the name of the axis."""
    names = ["tp", "dp", "pp"] + (["ep"] if run.parallel.ep > 1 else [])
    return {name: run.groups[name] for name in names if run.groups[name].size > 1}


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


def _print_stages(console: Console, run: TrainingRun) -> None:
    from rich.markup import escape

    count = run.options.iterations
    means = [each.over(count) for each in run.stage_breakdowns]
    causes = [name for name in means[0].exposed if any(mean.exposed[name] for mean in means)]
    console.print("stages, of an iteration", highlight=False)
    table = options.new_table()
    table.add_column("stage", justify="right")
    table.add_column("layers", overflow="fold")
    columns = ["forward", "backward", "update", *(f"exposed: {name}" for name in causes), "waiting"]
    for name in columns:
        table.add_column(name, justify="right")
    for s, (mean, blocks) in enumerate(zip(means, run.stages, strict=True)):
        names = f"{len(blocks):,}: {_names([block.name for block in blocks])}"
        exposed = [mean.exposed[name] for name in causes]
        times = [mean.forward, mean.backward, mean.update, *exposed, mean.waiting]
        table.add_row(str(s + 1), escape(names), *(_time(time) for time in times))
    console.print(table)


def _names(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def _print_layers(console: Console, run: TrainingRun) -> None:
    from rich.markup import escape

    count = run.options.iterations
    ranked = sorted(
        (layer for layer in run.layers if layer.communication),
        key=lambda layer: (-layer.exposed, -layer.communication),
    )
    if not ranked:
        console.print("no layer communicates", highlight=False)
        return
    console.print("layers with most exposed communication, of an iteration", highlight=False)
    table = options.new_table()
    table.add_column("layer", overflow="fold")
    for name in ("stage", "forward", "backward", "communication", "exposed"):
        table.add_column(name, justify="right")
    for layer in ranked[:_MOST_LAYERS]:
        times = (layer.forward, layer.backward, layer.communication, layer.exposed)
        table.add_row(
            escape(layer.name), str(layer.stage + 1), *(_time(time / count) for time in times)
        )
    console.print(table)
    rest = ranked[_MOST_LAYERS:]
    if rest:
        exposed = sum(layer.exposed for layer in rest) / count
        line = f"{_time(exposed)} exposed of {len(rest):,} others that communicate; --json has all"
        console.print(line, highlight=False)


def _time(time_ps: float) -> str:
    return format_time_ps(round(time_ps))


# JSON


def _as_json(run: TrainingRun) -> dict[str, Any]:
    parallel, count = run.parallel, run.options.iterations
    ends = run.iteration_ps
    return {
        "model": run.workload.name,
        "topology": run.topology.name,
        "npus": run.topology.npu_count,
        "parallel": {
            "dp": parallel.dp,
            "tp": parallel.tp,
            "pp": parallel.pp,
            "ep": parallel.ep,
            "zero": parallel.zero,
            "micro_batches": parallel.parts,
        },
        "algorithm": run.algorithm,
        "npu": {
            "name": run.npu.name,
            "peak": run.npu.peak,
            "efficiency": run.npu.efficiency,
            "memory_bytes": run.npu.memory_bytes,
        },
        "samples": run.options.samples,
        "iterations": count,
        "precision_bits": run.options.precision_bits,
        "bucket_bytes": run.options.bucket,
        "recompute": run.options.recompute,
        "overlap_tensor": run.options.overlap_tensor,
        "update": run.options.update,
        "time_ps": run.time_ps,
        "total_ps": run.total_ps,
        "iteration_ends_ps": ends,
        "samples_per_s": run.samples_per_second,
        "breakdown": _breakdown_json(run.breakdown.over(count)),
        "communication_alone_ps": run.communication_ps / count,
        "hidden_share": run.hidden,
        "memory": {
            "weights_bytes": run.memory.weights,
            "gradients_bytes": run.memory.gradients,
            "optimizer_bytes": run.memory.optimizer,
            "activations_bytes": run.memory.activations,
            "total_bytes": run.memory.total,
        },
        "groups": {name: _group_json(group) for name, group in _used_groups(run).items()},
        "stages": [
            {
                "layers": [block.name for block in blocks],
                "breakdown": _breakdown_json(mean.over(count)),
            }
            for blocks, mean in zip(run.stages, run.stage_breakdowns, strict=True)
        ],
        "layers": [
            {
                "name": layer.name,
                "stage": layer.stage + 1,
                "forward_ps": layer.forward / count,
                "backward_ps": layer.backward / count,
                "communication_ps": layer.communication / count,
                "exposed_ps": layer.exposed / count,
            }
            for layer in run.layers
        ],
    }


def _breakdown_json(mean: Breakdown) -> dict[str, Any]:
    return {
        "forward_ps": mean.forward,
        "backward_ps": mean.backward,
        "update_ps": mean.update,
        "exposed_ps": mean.exposed,
        "waiting_ps": mean.waiting,
    }


def _group_json(group: Group) -> dict[str, Any]:
    if group.portions is None:
        return {"npus": group.size, "count": len(group.members), "dimensions": None}
    places = [
        {"dimension": dimension + 1, "npus": size, "apart": stride}
        for dimension, size, stride in group.portions
    ]
    return {"npus": group.size, "dimensions": places}
