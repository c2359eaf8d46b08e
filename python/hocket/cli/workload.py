"""``hocket workload``: list, show (by dimensions, with cycles, or by costs), from-torch."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Annotated

from hocket.cli import complete, options
from hocket.cli.command import Argument, Option, Panel
from hocket.cli.form import Form
from hocket.cli.numbers import FLOPS, SIZES, TIMES, Units
from hocket.cli.table import Cell, Table, table_of
from hocket.units import format_flops, format_time_ps
from hocket.workload import load, models
from hocket.workload.costs import Block, Work
from hocket.workload.figures import CostFigures, CycleFigures, ListedWorkload
from hocket.workload.layers import Layer, Workload, blocks_of
from hocket.workload.systolic import Chiplet

_MAX_ROWS = 2000
"""Of the table of layers; a hundred thousand would take minutes."""
_NUMBER = re.compile(r"\.[0-9]+(?=/|$)")
"""Which of several layers one is, in its name."""

Text = Annotated[
    str,
    Argument(
        metavar="WORKLOAD",
        complete=complete.models,
        help="A shipped workload, or a .yml file with layers: (docs/workloads.md).",
    ),
]


def list_workloads(*, form: Form) -> None:
    """List the shipped workloads.

    For example: hocket workload list --json
    """
    loaded = [load(name) for name in models.names()]
    form.print_list(
        "workloads",
        [
            ListedWorkload(each.name, models.describe(each.name), len(each.layers), each.parameters)
            for each in loaded
        ],
    )


def show(
    workload: Text,
    *,
    chiplet: Annotated[Chiplet, Panel("Chiplet")],
    samples: Annotated[
        int, Option("--samples", help="Number of samples in an iteration.", panel="Chiplet")
    ] = 16,
    costs: Annotated[
        bool,
        Option(
            "--costs",
            help="Show operations and bytes per sample instead of cycles, as for a workload "
            "given by its costs.",
        ),
    ] = False,
    form: Form,
) -> None:
    """Show a workload's layers, their gradients, and the cycles to train them on a chiplet.

    For example: hocket workload show resnet152 --array 32x32 --samples 16
    """
    model = load(workload)
    if costs or not all(isinstance(layer, Layer) for layer in model.layers):
        _show_costs(model, form)
        return
    cycles = chiplet.workload(model, samples)
    found = CycleFigures.of(model, chiplet, cycles, samples)
    if form.prints("workload-cycles", found.to_dict, lambda: found.to_dict()["layers"]):
        return
    console = options.output()
    console.print(_table(found))
    console.print(
        f"{cycles.total:,} cycles for {samples} samples, {cycles.forward:,} forward and "
        f"{cycles.backward:,} backward: {format_time_ps(chiplet.time_ps(cycles.total))} at {chiplet.clock}",
    )
    _print_remarks(model)


def _print_remarks(model: Workload) -> None:
    console = options.output()
    for note in model.notes:
        console.note(f"note: {note}")
    for line in model.source:
        console.note(f"source: {line}")


def _table(found: CycleFigures) -> Table:
    table = table_of(found.layers[:_MAX_ROWS], title=found.name)
    if len(found.layers) > _MAX_ROWS:
        table.caption = f"{len(found.layers) - _MAX_ROWS:,} more: --json lists all"
    table.add_section()
    totals = (found.parameters, found.gradient_bytes, found.forward_cycles, found.backward_cycles)
    table.add_row("all", *[""] * 6, *(f"{total:,}" for total in totals))
    return table


def _show_costs(model: Workload, form: Form) -> None:
    """Show layers by their costs; those that cost the same share a row."""
    blocks = blocks_of(model)
    found = CostFigures.of(model)
    if form.prints("workload", found.to_dict, lambda: found.to_dict()["layers"]):
        return
    console = options.output()
    console.print(_costs_table(model, blocks))
    backward = [work for each in blocks for work in (each.input_gradient, each.weight_gradient)]
    console.print(
        f"{model.parameters:,} parameters; a sample takes "
        f"{_amount(*(each.forward for each in blocks))} forward and {_amount(*backward)} backward",
    )
    _print_remarks(model)


def _costs_table(model: Workload, blocks: list[Block]) -> Table:
    table = Table(title=model.name)
    table.add_column("layer", prose=True)
    table.add_column("many", justify="right")
    table.add_column("parameters", justify="right")
    units = TIMES if any(block.is_measured for block in blocks) else FLOPS
    for name in ("forward", "backward"):
        table.add_column(name, units=units)
    for name in ("bytes", "kept", "outputs"):
        table.add_column(name, units=SIZES)
    table.add_column("split")
    rows = _alike(blocks)
    for block, many in rows[:_MAX_ROWS]:
        table.add_row(
            block.name,
            f"{many:,}",
            f"{block.parameters:,}",
            _number(units, block.forward),
            _number(units, block.input_gradient, block.weight_gradient),
            block.forward.bytes,
            2 * block.kept_numbers,
            2 * block.outputs,
            _split(block),
        )
    more = f"; {len(rows) - _MAX_ROWS:,} more: --json lists all" if len(rows) > _MAX_ROWS else ""
    table.caption = f"of one layer and for one sample, in numbers of 16 bits{more}"
    return table


def _alike(blocks: list[Block]) -> list[tuple[Block, int]]:
    """Return the first of all layers with equal costs, and names but for numbers, and how many."""
    found: dict[Block, tuple[Block, int]] = {}
    for block in blocks:
        key = replace(block, name=_NUMBER.sub("", block.name) or block.name)
        first, many = found.get(key, (block, 0))
        found[key] = (first, many + 1)
    return list(found.values())


def _amount(*passes: Work) -> str:
    """Operations, or times where they are measured."""
    times = [work.time_ps for work in passes if work.time_ps is not None]
    flops = sum(work.flops for work in passes if work.time_ps is None)
    parts = [format_time_ps(ceil(sum(times, Fraction(0))))] if times else []
    return " + ".join([*parts, format_flops(flops)] if flops or not times else parts)


def _number(units: Units, *passes: Work) -> Cell:
    """Return operations or times as a number in their column; if both occur, or elsewhere, as text."""
    is_time = {work.time_ps is not None for work in passes}
    if is_time == {units is TIMES}:
        return sum(work.time_ps or 0 if units is TIMES else work.flops for work in passes)
    return _amount(*passes)


def _split(block: Block) -> str:
    if block.is_table:
        return "table"
    return f"{block.split}, {block.experts} experts" if block.experts else block.split
