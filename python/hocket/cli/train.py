"""``hocket train``: training iterations of a model on a network, and where their time goes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hocket import _core
from hocket.cli import options
from hocket.cli.train_report import print_run, run_json
from hocket.errors import InfeasibleError, SpecError
from hocket.units import shown

if TYPE_CHECKING:
    from hocket.training import Parallel, TrainingRun
    from hocket.workload.accelerators import Accelerator
    from hocket.workload.systolic import Chiplet

_CHIPLET = "chiplet"
_ALL = "all"


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
            if error.field == "memory" and error.remedy is not None:
                remedy = error.remedy.replace("leave the check out", "--no-memory-check")
                raise error.but(remedy=remedy) from None
            raise
        _write(run, timeline, perfetto, watch)
    if json:
        options.print_json({**run_json(run), "chunks": chunks, "order": order})
    else:
        print_run(run, algorithm, chunks, layers=layers)


def _check_targets(timeline: str | None, perfetto: str | None) -> None:
    if timeline is not None:
        from hocket.plot.style import check_picture

        check_picture(Path(timeline))
    if perfetto is not None:
        from hocket.files.perfetto import check_trace

        check_trace("--perfetto", Path(perfetto))


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
    from hocket.files.complaint import did_you_mean
    from hocket.workload.accelerators import ACCELERATORS
    from hocket.workload.systolic import Chiplet

    if name == _CHIPLET:
        if efficiency is not None:
            raise SpecError("--efficiency", "a chiplet's cycles count as they are", "leave it out")
        return Chiplet()
    if name not in ACCELERATORS:
        names = (*ACCELERATORS, _CHIPLET)
        hint = did_you_mean(name, names, f"use {', '.join(names)}")
        raise SpecError("--npu", f"there is no {shown(name)}", hint)
    return ACCELERATORS[name]


def _size(text: str) -> int:
    from hocket.units import parse_size

    try:
        return parse_size(text, field="--bucket")
    except SpecError as error:
        raise error.but(remedy=f"{error.remedy}, or all") from None


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
                "--map",
                f"{shown(part.strip())} will not do; {right}",
                f"axes are {', '.join(AXES)}",
            )
        if not all(each.isascii() and each.isdecimal() and len(each) < 10 for each in numbers):
            raise SpecError("--map", f"{axis}: {shown(listed)} is no dimension", right)
        if axis in found or len(set(numbers)) < len(numbers):
            raise SpecError("--map", f"{axis} is given twice what it has once", right)
        found[axis] = [int(number) for number in numbers]
    return found
