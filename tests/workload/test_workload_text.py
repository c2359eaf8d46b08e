"""Workloads as text: what is written is read again."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import hocket as hk
from hocket.errors import SpecError
from hocket.workload import Layer, Workload
from hocket.workload.costs import Block, Work
from hocket.workload.text import save, to_text


@pytest.mark.parametrize("name", hk.workload.names())
def test_shipped_workloads_are_read_again(name: str, tmp_path: Path) -> None:
    shipped = hk.workload.load(name)
    path = tmp_path / "again.yml"
    save(shipped, path)
    again = hk.workload.load(path)
    assert (again.name, again.layers, again.notes, again.source) == (
        shipped.name,
        shipped.layers,
        shipped.notes,
        shipped.source,
    )


@pytest.mark.parametrize(
    "name", ["no", "1", "a:", "-", "#b", "a#2", "[x]", "ü", "'", '"', "null", "1e3", "~"]
)
def test_names_stay_text(name: str, tmp_path: Path) -> None:
    path = tmp_path / "again.yml"
    save(Workload(name, (Layer(name, channels=2, filters=3),)), path)
    again = hk.workload.load(path)
    assert (again.name, again.layers[0].name) == (name, name)


def test_layers_by_their_costs() -> None:
    plain = Block(
        "a", Work(10, 4), Work(5, 2), Work(5, 2), parameters=3, inputs=1, outputs=2, kept=7
    )
    full = Block(
        "b",
        Work(time_ps=9),
        parameters=8,
        split="columns",
        experts=4,
        routed=6,
    )
    text = to_text(Workload("mine", (plain, full), notes=("so",)))  # type: ignore[arg-type,unused-ignore]
    nothing = {"flops": 0, "bytes": 0}
    assert yaml.safe_load(text) == {
        "name": "mine",
        "notes": ["so"],
        "measured_samples": 1,
        "layers": [
            {
                "name": "a",
                "forward": {"flops": 10, "bytes": 4},
                "input_gradient": {"flops": 5, "bytes": 2},
                "weight_gradient": {"flops": 5, "bytes": 2},
                "parameters": 3,
                "inputs": 1,
                "outputs": 2,
                "kept": 7,
            },
            {
                "name": "b",
                "forward": "9 ps",
                "input_gradient": nothing,
                "weight_gradient": nothing,
                "parameters": 8,
                "inputs": 0,
                "outputs": 0,
                "split": "columns",
                "experts": 4,
                "routed": 6,
            },
        ],
    }
    assert len(text.splitlines()) == 7


@pytest.mark.parametrize(
    "layers",
    [
        [
            Block("a", Work(10, 4), parameters=4, split="rows", experts=2, routed=8, kept=9),
            Block("b", Work()),
        ],
        [Block("a", Work(time_ps=9), Work(), Work(7, 8)), Layer("c", biases=True, normalized=True)],
        [
            Block("t", Work(1), parameters=6, is_table=True, outputs=5, joins="z"),
            Layer("y"),
            Block("z", Work(2)),
        ],
    ],
)
def test_costs_are_read_again(layers: list[Layer | Block], tmp_path: Path) -> None:
    workload = Workload("mine", layers)  # type: ignore[arg-type]
    path = tmp_path / "again.yml"
    save(workload, path)
    assert hk.workload.load(path).layers == workload.layers


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="there is no folder"):
        save(hk.workload.load("alexnet"), tmp_path / "no" / "again.yml")
