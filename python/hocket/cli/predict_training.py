"""``hocket predict --training``: what a training iteration takes on a real machine."""

from __future__ import annotations

from typing import Annotated

from hocket._results import picoseconds
from hocket.cli import complete, options
from hocket.cli.command import Argument, Option, Panel
from hocket.cli.numbers import percent
from hocket.cli.table import Table
from hocket.throughput.options import TrainingPredictionOptions
from hocket.throughput.prediction import TrainingPrediction
from hocket.throughput.prediction import predict_training as predict_iteration
from hocket.units import format_time_ps

_NAMES = {
    "products": "products of matrices",
    "attention": "attention",
    "memory": "norms, sums and activation functions",
    "launch": "launching",
    "head": "head",
    "tensor": "tensor-parallel sums",
    "context": "keys and values of context parallelism",
    "transfer": "transfers between stages",
    "bubble": "pipeline bubble",
    "data": "gradients and gathered weights",
    "update": "update of weights",
}


def predict_training(
    model: Annotated[
        str,
        Argument(
            metavar="MODEL",
            complete=complete.models,
            help="A shipped workload that is a transformer (see `hocket workload list`), or a file.",
        ),
    ],
    *,
    parallel: Annotated[
        str,
        Option(
            "--parallel",
            "-p",
            help="Parallelism of the model, such as dp=8,tp=8,pp=12,interleave=2; also cp and "
            "zero.",
        ),
    ],
    batch: Annotated[
        int, Option("--batch", help="Sequences of an iteration, of all replicas together.")
    ],
    topology: Annotated[
        str | None,
        options.topology_option(
            "A network whose nodes are like the used ones; it may have more of them. "
            "Default: DGX nodes of the accelerator."
        ),
    ] = None,
    given: Annotated[TrainingPredictionOptions, Panel("Training")],
    json: options.Json = False,
) -> None:
    """Predict the time of a training iteration on a real machine.

    For example: hocket predict --training gpt3-175b --npu a100 --stack megatron-2021 --parallel
    dp=8,tp=8,pp=12,interleave=2 --batch 1536
    """
    found = predict_iteration(model, topology, parallel=parallel, batch=batch, options=given)
    if json:
        options.print_result("training-prediction", found.to_dict())
        return
    _print(found, model)


def _print(found: TrainingPrediction, model: str) -> None:
    console = options.output()
    job = found.job
    nodes = -(-job.parallel.npus // found.machine.hardware.npus)
    title = f"{model} on {job.parallel.npus:,} {found.machine.accelerator.name}"
    title += f" in {nodes:,} nodes" if nodes > 1 else ""
    power = found.machine.power
    title += f" at {percent(power)} % of their power" if power < 1 else ""
    table = Table(title=f"{title} by {found.stack.name}: {job.parallel}")
    table.add_column("of an iteration")
    unit, factor = ("s", 1.0) if found.seconds >= 1 else ("ms", 1e3)
    table.add_column("time", justify="right", unit=unit)
    table.add_column("share", justify="right", unit="%")
    for name, seconds in found.parts.items():
        if seconds:
            share = percent(seconds / found.seconds)
            table.add_row(_NAMES[name], f"{seconds * factor:,.3f}", share)
    table.add_section()
    table.add_row("all", f"{found.seconds * factor:,.3f}", percent(1.0))
    console.print(table)
    console.print(
        f"{format_time_ps(picoseconds(found.seconds))} an iteration, "
        f"{found.tflops:.1f} TFLOP/s an NPU ({percent(found.share_of_peak)} % of its peak), "
        f"{found.tokens_per_s:,.0f} tokens/s an NPU",
    )
    if job.recompute != "none":
        console.print(f"{found.hardware_tflops:.1f} TFLOP/s with what is computed again")
    console.print(_expected(found))
    for line in found.assumed:
        console.note(f"assumed: {line}")


def _expected(found: TrainingPrediction) -> str:
    error = found.error
    if error is None:
        return "error to expect: not known, as the efficiency is stated"
    return (
        f"within {percent(error.within)} % for 9 of 10 ({error.of}, {error.sources} sources), "
        f"median {percent(error.median)} %"
    )
