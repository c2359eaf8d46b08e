"""``hocket workload``: tables, JSON, and what is refused."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

import hocket as hk


def test_list(hocket: Any) -> None:
    result = hocket("workload", "list")
    assert (result.code, result.err) == (0, "")
    assert all(name in result.out for name in hk.workload.names())
    values = hocket("workload", "list", "--json").json()["workloads"]
    assert [each["name"] for each in values] == hk.workload.names()
    sizes = {each["name"]: (each["layers"], each["parameters"]) for each in values}
    assert sizes["resnet152"] == (156, 60_192_808)


def test_show(hocket: Any) -> None:
    result = hocket("workload", "show", "alphagozero")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    size = ["19x19", "3x3", "17", "256", "1", "1"]
    assert ["conv", *size, "39,168", "156,672", "1,325", "798"] in cells
    assert ["all", *[""] * 6, "1,573,620", "6,294,480", "19,739", "39,468"] in cells
    assert any(line.startswith("59,207 cycles for 16 samples") for line in lines)
    assert any("59.207 us at 1 GHz" in line for line in lines)
    assert any(line.startswith("note: ") for line in lines)
    assert any(line.startswith("source: ") for line in lines)


BY_COSTS = [
    name
    for name in hk.workload.names()
    if not all(isinstance(layer, hk.Layer) for layer in hk.workload.load(name).layers)
]


def test_show_costs(hocket: Any) -> None:
    result = hocket("workload", "show", "gpt3-175b")
    assert (result.code, result.err) == (0, "")
    cells = [
        [cell.strip() for cell in line.strip("│").split("│")] for line in result.out.splitlines()
    ]
    gradients = ["1,855,425.87", "3,710,851.74", "201.3", "50,331.648", "150.99"]
    assert ["layer.1/qkv", "96", "453,021,696", *gradients, "columns"] in cells
    assert not any("layer.2/" in line for line in result.out.splitlines())
    total = (
        "174,604,259,328 parameters; a sample takes 734.838 TFLOP forward and 1.47 PFLOP backward"
    )
    assert total in result.out.splitlines()
    assert any(line.startswith("source: Brown") for line in result.out.splitlines())
    assert "columns, 8 experts" in hocket("workload", "show", "mixtral-8x7b").out
    assert "│ table " in hocket("workload", "show", "dlrm").out


def test_show_costs_of_dimensions(hocket: Any) -> None:
    result = hocket("workload", "show", "resnet50", "--costs")
    assert "25,557,032 parameters; a sample takes 8.178 GFLOP forward" in result.out
    cells = [
        [cell.strip() for cell in line.strip("│").split("│")] for line in result.out.splitlines()
    ]
    assert ["conv2.more.1/b", "2"] in [each[:2] for each in cells]
    values = hocket("workload", "show", "resnet50", "--costs", "--json").json()
    assert values["forward_flops"] == 8_178_368_512


@pytest.mark.parametrize("name", BY_COSTS)
def test_show_costs_as_json(hocket: Any, name: str) -> None:
    values = hocket("workload", "show", name, "--json").json()
    workload = hk.workload.load(name)
    blocks = hk.workload.blocks_of(workload)
    assert (values["name"], values["parameters"]) == (name, workload.parameters)
    assert [each["name"] for each in values["layers"]] == [block.name for block in blocks]
    passes = ("forward", "input_gradient", "weight_gradient")
    for each, block in zip(values["layers"], blocks, strict=True):
        assert [each[key]["flops"] for key in passes] == [
            getattr(block, key).flops for key in passes
        ]
        assert (each["split"], each["table"], each["joins"]) == (
            block.split,
            block.is_table,
            block.joins,
        )
    everything = values["forward_flops"] + values["backward_flops"]
    assert everything == sum(block.flops for block in blocks)


def test_measured_times_are_shown(hocket: Any, folder: Path) -> None:
    text = "measured_samples: 2\nlayers: [{name: b, forward: 3 ms, weight_gradient: {flops: 2000}}]"
    (folder / "timed.yml").write_text(text)
    result = hocket("workload", "show", "timed.yml")
    cells = [[cell.strip() for cell in line.split("│")[1:5]] for line in result.out.splitlines()]
    assert ["b", "1", "0", "1.5"] in cells
    assert "a sample takes 1.5 ms forward and 2 kFLOP backward" in result.out


@pytest.mark.parametrize("name", sorted(set(hk.workload.names()) - set(BY_COSTS)))
def test_show_as_json(hocket: Any, name: str) -> None:
    values = hocket("workload", "show", name, "--json").json()
    workload = hk.workload.load(name)
    chiplet = hk.Chiplet()
    cycles = chiplet.workload(workload)
    assert values["name"] == name
    assert values["samples"] == 16
    assert values["parameters"] == workload.parameters
    assert values["row_parameters"] == workload.row_parameters
    assert values["gradient_bytes"] == workload.gradient_bytes()
    assert (values["forward_cycles"], values["backward_cycles"]) == (
        cycles.forward,
        cycles.backward,
    )
    assert (values["cycles"], values["time_ps"]) == (cycles.total, chiplet.time_ps(cycles.total))
    assert len(values["layers"]) == len(workload.layers)
    assert values["layers"][-1]["name"] == workload.layers[-1].name
    assert sum(each["gradient_bytes"] for each in values["layers"]) == values["gradient_bytes"]
    keys = ("forward_cycles", "input_gradient_cycles", "weight_gradient_cycles")
    assert sum(each[key] for each in values["layers"] for key in keys) == cycles.total


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ("--array 32x16", {"array": (32, 16)}),
        ("--processing-elements 2x4 --samples 64", {"processing_elements": (2, 4)}),
        ("--clock '800 MHz'", {"clock": "800 MHz"}),
        ("--precision-bits 16", {"precision_bits": 16}),
        ("--folds overlapped --data-gradient", {"folds": "overlapped", "data_gradient": True}),
        ("--distribution folds", {"distribution": "folds"}),
        ("--input-gradient columns", {"input_gradient": "columns"}),
    ],
)
def test_options_are_heeded(hocket: Any, options: str, keys: dict[str, Any]) -> None:
    values = hocket("workload", "show", "googlenet", *shlex.split(options), "--json").json()
    samples = 64 if "--samples" in options else 16
    workload = hk.workload.load("googlenet")
    chiplet = hk.Chiplet(**keys)
    cycles = chiplet.workload(workload, samples)
    assert values["cycles"] == cycles.total
    assert values["time_ps"] == chiplet.time_ps(cycles.total)
    assert values["gradient_bytes"] == workload.gradient_bytes(chiplet.precision_bits)


def test_a_file(hocket: Any, folder: Path) -> None:
    (folder / "mine.yml").write_text("layers:\n  - {name: fc, channels: 3, filters: 4}\n")
    assert "mine" in hocket("workload", "show", "mine.yml").out


def test_names_are_shown_as_they_are(hocket: Any, folder: Path) -> None:
    text = 'name: "[/red]"\nlayers:\n  - {name: "[bold]x[/b]", channels: 3, filters: 4}\n'
    (folder / "mine.yml").write_text(text)
    result = hocket("workload", "show", "mine.yml")
    assert result.code == 0
    assert "[/red]" in result.out
    assert "[bold]x[/b]" in result.out


BAD = {
    "workload show": ["WORKLOAD"],
    "workload frob": ["'frob'", "--help"],
    "workload show resnet125": ["'resnet125'", "did you mean 'resnet152'?"],
    "workload show frob": ["'frob'", "`hocket workload list`", ".yml file"],
    "workload show nowhere.yml": ["nowhere.yml", "No such file"],
    "workload show bad.yml": ["bad.yml, line 2", "layers[0].filters", "-4 "],
    "workload show alexnet --array 256": ["--array", "'256' ", "4x4"],
    "workload show alexnet --array 0x4": ["--array", "'0x4'"],
    "workload show alexnet --array 4x4x4": ["--array", "'4x4x4'"],
    "workload show alexnet --array 9999999x1": ["array", "9999999 "],
    "workload show alexnet --array 99999999999999999999x1": ["--array", "is not a size"],
    "workload show alexnet --processing-elements 4,4": ["--processing-elements", "'4,4'", "4x4"],
    "workload show alexnet --processing-elements 2000x1": [
        "--processing-elements",
        "2000 ",
    ],
    "workload show alexnet --samples 0": ["samples", "0 "],
    "workload show alexnet --samples x": ["--samples", "whole number"],
    "workload show alexnet --samples 99999999999999999999": ["samples", "is too large"],
    "workload show alexnet --clock 1": ["clock", "'1' ", '"1 GHz"'],
    "workload show alexnet --clock '1 GB'": ["clock", "'GB' "],
    "workload show alexnet --precision-bits 0": ["--precision-bits", "0 "],
    "workload show alexnet --folds x": ["--folds", "'x'", "drained or overlapped"],
    "workload show alexnet --distribution x": ["--distribution", "samples or folds"],
    "workload show alexnet --input-gradient x": ["--input-gradient", "convolution or columns"],
}


@pytest.mark.parametrize("line", BAD)
def test_refusal(hocket: Any, folder: Path, line: str) -> None:
    (folder / "bad.yml").write_text("layers:\n  - {name: fc, channels: 3, filters: -4}\n")
    result = hocket(*shlex.split(line))
    assert (result.code, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
    assert [part for part in BAD[line] if part not in result.err] == []


def test_refusal_as_json(hocket: Any) -> None:
    result = hocket("workload", "show", "frob", "--json")
    assert result.code == 2
    assert result.json()["error"] == "SpecError"


def test_a_long_table_ends_early(hocket: Any, folder: Path) -> None:
    text = "layers: [{name: a, channels: 2, filters: 3, repeat: 3000}]"
    (folder / "long.yml").write_text(text)
    result = hocket("workload", "show", "long.yml")
    assert (result.code, result.err) == (0, "")
    assert "a.2000 " in result.out
    assert "a.2001 " not in result.out
    assert "1,000 more: --json lists all" in result.out
    assert "18,000" in result.out
