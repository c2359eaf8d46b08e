"""``hocket workload from-torch``: a PyTorch module as a workload file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hocket.cli import options
from hocket.cli.command import Argument, Option
from hocket.cli.table import Table
from hocket.errors import SpecError

if TYPE_CHECKING:
    from hocket.cli.data import CountsData, TracedLayerData, TracedWorkloadData
    from hocket.workload.costs import Block, Work
    from hocket.workload.layers import Workload


_MAX_ROWS = 2000
_PASSES = ("forward", "input_gradient", "weight_gradient")


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
    output: Annotated[str | None, Option("--output", "-o", help="The .yml file to write.")] = None,
    json: options.Json = False,
) -> None:
    """Trace a PyTorch module, without memory for its numbers, and write it as a workload.

    For example: hocket workload from-torch mypkg.models:make_model --input 3x224x224 -o mine.yml
    """
    from hocket.files.atomic import check_target
    from hocket.workload.text import save
    from hocket.workload.torch import from_torch, need_torch
    from hocket.workload.torch.factory import make, own_code

    path = None if output is None else Path(output)
    if path is not None:
        if path.suffix not in (".yml", ".yaml"):
            raise SpecError("--output", f"{output!r} is not a workload file", "let it end in .yml")
        check_target(path)
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
    if json:
        options.print_result("traced-workload", _as_json(model))
    else:
        _print(model, path)


def _print(model: Workload, path: Path | None) -> None:
    console = options.output()
    if path is None:
        _print_table(model)
    for note in model.notes:
        console.print(f"note: {note}")
    if path is not None:
        console.print(
            f"{len(model.layers):,} layers, {model.parameters:,} parameters, "
            f"{_total(model, 'forward', 'flops'):,} FLOPs forward: written to {path}",
        )


def _print_table(model: Workload) -> None:
    table = Table(title=model.name)
    table.add_column("layer", prose=True)
    names = ("FLOPs", "bytes", "input gradient", "weight gradient")
    for column in ("parameters", *names, "inputs", "outputs", "kept"):
        table.add_column(column, justify="right")
    blocks: list[Any] = list(model.layers)
    for each in blocks[:_MAX_ROWS]:
        counts = (each.forward.flops, each.forward.bytes)
        gradients = (each.input_gradient.flops, each.weight_gradient.flops)
        sizes = (each.inputs, each.outputs, each.kept)
        row = (each.parameters, *counts, *gradients, *sizes)
        table.add_row(each.name, *(f"{count:,}" for count in row))
    if len(blocks) > _MAX_ROWS:
        table.caption = f"{len(blocks) - _MAX_ROWS:,} more: --json lists all"
    table.add_section()
    totals = [_total(model, "forward", "flops"), _total(model, "forward", "bytes")]
    totals += [_total(model, kind, "flops") for kind in _PASSES[1:]]
    kept = sum(each.kept for each in blocks)
    totals = [model.parameters, *totals]
    table.add_row("all", *(f"{count:,}" for count in totals), "", "", f"{kept:,}")
    options.output().print(table)


def _total(model: Workload, kind: str, what: str) -> int:
    blocks: list[Any] = list(model.layers)
    return sum(getattr(getattr(each, kind), what) for each in blocks)


def _as_json(model: Workload) -> TracedWorkloadData:
    blocks: list[Any] = list(model.layers)
    return {
        "name": model.name,
        "parameters": model.parameters,
        "forward": _totals(model, "forward"),
        "input_gradient": _totals(model, "input_gradient"),
        "weight_gradient": _totals(model, "weight_gradient"),
        "kept": sum(each.kept for each in blocks),
        "layers": [_layer_json(each) for each in blocks],
        "notes": list(model.notes),
    }


def _totals(model: Workload, kind: str) -> CountsData:
    return {"flops": _total(model, kind, "flops"), "bytes": _total(model, kind, "bytes")}


def _counts(work: Work) -> CountsData:
    return {"flops": work.flops, "bytes": work.bytes}


def _layer_json(block: Block) -> TracedLayerData:
    return {
        "name": block.name,
        "forward": _counts(block.forward),
        "input_gradient": _counts(block.input_gradient),
        "weight_gradient": _counts(block.weight_gradient),
        "parameters": block.parameters,
        "inputs": block.inputs,
        "outputs": block.outputs,
        "kept": block.kept,
    }
