"""Workloads as text: the files that :mod:`hocket.workload.yaml` reads."""

from __future__ import annotations

from os import PathLike
from typing import Any

from hocket._checks import path_of
from hocket.files.atomic import write_text
from hocket.files.yaml_tree import dump_yaml
from hocket.workload.costs import Block, Work
from hocket.workload.layers import Layer, Workload, check_workload

_WIDEST = 1 << 30
"""A layer stays on one line."""


def save(workload: Workload, path: str | PathLike[str]) -> None:
    """Write a workload file, whole or not at all.

    Raises
    ------
    SpecError
        If it cannot be written.
    """
    write_text(path_of("path", path), to_text(workload))


def to_text(workload: Workload) -> str:
    """Return a workload as YAML, with a line for each layer.

    Layers that are repeated stand there as often; what is left out is the default.
    """
    check_workload(workload)

    def line(value: Any) -> str:
        text = dump_yaml(value, width=_WIDEST, is_flow=True)
        return text.removesuffix("\n").removesuffix("\n...")

    lines = [f"name: {line(workload.name)}"]
    if workload.source:
        lines += ["source:", *(f"  - {line({'paper': each})}" for each in workload.source)]
    if workload.notes:
        lines += ["notes:", *(f"  - {line(each)}" for each in workload.notes)]
    if any(isinstance(layer, Block) and layer.is_measured for layer in workload.layers):
        lines.append("measured_samples: 1")
    lines += ["layers:", *(f"  - {line(_entry(each))}" for each in workload.layers)]
    return "\n".join(lines) + "\n"


def _entry(layer: Layer | Block) -> dict[str, Any]:
    return _of_costs(layer) if isinstance(layer, Block) else _of_dimensions(layer)


def _of_dimensions(layer: Layer) -> dict[str, Any]:
    return {
        "name": layer.name,
        "input": [layer.input_height, layer.input_width],
        "filter": [layer.filter_height, layer.filter_width],
        "channels": layer.channels,
        "filters": layer.filters,
        "stride": layer.stride,
        "times": layer.times,
        **({} if layer.own_parameters is None else {"parameters": layer.own_parameters}),
        **({"biases": True} if layer.biases else {}),
        **({"normalized": True} if layer.normalized else {}),
        **({"reads_data": True} if layer.reads_data else {}),
    }


def _of_costs(block: Block) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": block.name,
        "forward": _work(block.forward),
        "input_gradient": _work(block.input_gradient),
        "weight_gradient": _work(block.weight_gradient),
        "parameters": block.parameters,
        "inputs": block.inputs,
        "outputs": block.outputs,
    }
    if block.kept is not None:
        entry["kept"] = block.kept
    if block.split != "copied":
        entry["split"] = block.split
    if block.experts:
        entry |= {"experts": block.experts, "routed": block.routed}
    if block.top > 1:
        entry["top"] = block.top
    if block.is_table:
        entry["table"] = True
    if block.joins is not None:
        entry["joins"] = block.joins
    return entry


def _work(work: Work) -> dict[str, Any] | str:
    if work.time_ps is not None:
        return f"{work.time_ps} ps"
    return {"flops": work.flops, "bytes": work.bytes}
