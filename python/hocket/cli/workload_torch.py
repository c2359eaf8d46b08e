"""``hocket workload from-torch``: a PyTorch module as a workload file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from hocket.cli import options
from hocket.cli.command import Argument, Option
from hocket.cli.table import Table
from hocket.errors import SpecError
from hocket.workload.figures import TracedFigures

_MAX_ROWS = 2000


def from_torch(
    factory: Annotated[
        str,
        Argument(
            metavar="MODULE:FACTORY",
            help="A function in the current folder that returns a torch.nn.Module or (module, inputs).",
        ),
    ],
    *,
    inputs: Annotated[
        list[str] | None,
        Option(
            "--input",
            "-i",
            help="Shape of one sample, such as 3x224x224, 128:int64, scalar, or by name "
            "tokens=128:int64; one per input.",
        ),
    ] = None,
    batch: Annotated[
        int | None, Option("--batch", help="Number of samples to trace with. Default: 2.")
    ] = None,
    name: Annotated[
        str | None,
        Option("--name", help="Name of the workload. Default: the class of the module."),
    ] = None,
    output: Annotated[
        str | None,
        options.output_file("The .yml file to write.", ".yml", ".yaml"),
    ] = None,
    json: options.Json = False,
) -> None:
    """Trace a PyTorch module, without memory for its numbers, and write it as a workload.

    For example: hocket workload from-torch mypkg.models:make_model --input 3x224x224 -o mine.yml
    """
    from hocket.workload.text import save
    from hocket.workload.torch import from_torch, need_torch
    from hocket.workload.torch.factory import make, own_code

    path = None if output is None else Path(output)
    need_torch()
    with own_code():
        module, own = make(factory)
        if own is None and not inputs:
            raise SpecError(
                "--input", "is missing", "give the shape of each input, as --input 3x224x224"
            )
        model = from_torch(module, inputs or own, batch=batch, name=name)
    if path is not None:
        save(model, path)
    figures = TracedFigures.of(model)
    if json:
        options.print_result("traced-workload", figures.to_dict())
    else:
        _print(figures, path)


def _print(model: TracedFigures, path: Path | None) -> None:
    console = options.output()
    if path is None:
        _print_table(model)
    for note in model.notes:
        console.print(f"note: {note}")
    if path is not None:
        console.print(
            f"{len(model.layers):,} layers, {model.parameters:,} parameters, "
            f"{model.forward.flops:,} FLOPs forward: written to {path}",
        )


def _print_table(model: TracedFigures) -> None:
    table = Table(title=model.name)
    table.add_column("layer", prose=True)
    names = ("FLOPs", "bytes", "input gradient", "weight gradient")
    for column in ("parameters", *names, "inputs", "outputs", "kept"):
        table.add_column(column, justify="right")
    for each in [*model.layers[:_MAX_ROWS], None]:
        of = model if each is None else each
        if each is None:
            table.add_section()
        gradients = (of.input_gradient.flops, of.weight_gradient.flops)
        sizes = ("", "") if each is None else (f"{each.inputs:,}", f"{each.outputs:,}")
        counts = (of.parameters, of.forward.flops, of.forward.bytes, *gradients)
        name = "all" if each is None else each.name
        table.add_row(name, *(f"{count:,}" for count in counts), *sizes, f"{of.kept:,}")
    if len(model.layers) > _MAX_ROWS:
        table.caption = f"{len(model.layers) - _MAX_ROWS:,} more: --json lists all"
    options.output().print(table)
