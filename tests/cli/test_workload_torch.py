"""``hocket workload from-torch``: tables, JSON, files, and what is refused."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hocket.cli import run

REASON = "PyTorch is not installed: make torch installs it"

MODELS = """
import sys
import torch
from torch import nn

def make():
    print("made")
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 4))

def with_inputs():
    return nn.Linear(4, 6), torch.zeros(3, 4)

def with_numbers():
    return nn.Linear(4, int(torch.linspace(0, 6, 2)[1].item()))

def fails():
    raise ValueError("two\\nlines")

def leaves():
    sys.exit("no")

def wrong():
    return 3

def lazy():
    return nn.LazyLinear(4)

def needs(width):
    return nn.Linear(4, width)

class Picks(nn.Linear):
    def forward(self, x):
        return super().forward(x[x[:, 0] > 0])

class Asks(nn.Linear):
    def forward(self, x):
        return super().forward(x) if x.sum().item() > 0 else x

class Stops(nn.Linear):
    def forward(self, x):
        return super().forward(x).detach()

def picks(): return Picks(4, 4)
def asks(): return Asks(4, 4)
def stops(): return Stops(4, 4)
def nothing(): return nn.Identity()
value = 5
"""


@pytest.fixture(autouse=True)
def models(folder: Path) -> Iterator[None]:
    (folder / "torch_models.py").write_text(MODELS)
    (folder / "torch_broken.py").write_text("import nowhere_at_all\n")
    (folder / "torch_wrong.py").write_text("1 +\n")
    yield
    for name in ("torch_models", "torch_broken", "torch_wrong"):
        sys.modules.pop(name, None)


def test_a_table(hocket: Any) -> None:
    pytest.importorskip("torch", reason=REASON)
    result = hocket("workload", "from-torch", "torch_models:make", "--input", "3x8x8")
    assert (result.code, result.err) == (0, "made\n")
    lines = result.out.splitlines()
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    flops = [2 * 27 * 8 * 36, 2 * 288 * 4]
    sizes = [["224", f"{flops[0]:,}"], ["1,156", f"{flops[1]:,}"], ["1,380", f"{sum(flops):,}"]]
    found = {row[0]: row[1:3] for row in cells if len(row) > 3}
    assert [found[name] for name in ("0", "3", "all")] == sizes
    assert lines[-1] == "note: Traced with inputs 3x8x8 in a batch of 2."


def test_a_file(hocket: Any, folder: Path) -> None:
    pytest.importorskip("torch", reason=REASON)
    line = "workload from-torch torch_models:make -i 3x8x8 --name mine -o mine.yml --json"
    values = hocket(*line.split()).json()
    written = yaml.safe_load((folder / "mine.yml").read_text())
    assert written["name"] == values["name"] == "mine"
    assert written["layers"] == values["layers"]
    assert written["notes"] == values["notes"]
    assert (
        sum(layer["forward"]["flops"] for layer in values["layers"]) == values["forward"]["flops"]
    )
    assert "written to mine.yml" in hocket(*line.split()[:-1]).out


def test_inputs_of_the_factory(hocket: Any) -> None:
    pytest.importorskip("torch", reason=REASON)
    values = hocket("workload", "from-torch", "torch_models:with_inputs", "--json").json()
    assert values["forward"]["flops"] == 2 * 4 * 6
    assert values["notes"] == ["Traced with inputs 4 in a batch of 3."]


def test_a_factory_that_needs_numbers(hocket: Any) -> None:
    pytest.importorskip("torch", reason=REASON)
    line = "workload from-torch torch_models:with_numbers -i 4 --json"
    assert hocket(*line.split()).json()["parameters"] == 4 * 6 + 6


BAD = {
    "make": ["--input", "is missing", "3x224x224"],
    "make -i 3x8x9x1": [
        "module Sequential",
        "forward pass stops in 0",
        "check that it takes 3x8x9x1",
    ],
    "make -i 3x9x9": ["forward pass stops in 3", "check that it takes 3x9x9"],
    "make -i 3,8": ["'3,8' is not a shape", "3x224x224"],
    "make -i 3x0": ["'3x0'", "out of range"],
    "make -i 3:int99": ["'int99'", "128:int64"],
    "make -i 3:nn": ["'nn'", "128:int64"],
    "make -i 1-2=3": ["'1-2' is not a name"],
    "make -i a=3 -i a=4": ["'a=4'", "two of that name"],
    "make -i 3x8x8 --batch 0": ["batch", "0 "],
    "make -i 3x8x8 --batch x": ["--batch", "'x' is not a whole number"],
    "make -i 3x8x8 -o mine.txt": ["--output", "'mine.txt'", ".yml"],
    "make -i 3x8x8 -o no/mine.yml": ["no/mine.yml", "there is no folder 'no'"],
    "with_inputs --batch 2": ["batch", "have 3 samples, not 2"],
    "fails -i 4": ["torch_models:fails", "ValueError: two lines", "without arguments"],
    "leaves -i 4": ["torch_models:leaves", "SystemExit: no"],
    "wrong -i 4": ["gives 3, no torch.nn.Module"],
    "value -i 4": ["5 cannot be called"],
    "needs -i 4": ["TypeError", "without arguments"],
    "mak -i 4": ["there is no 'mak'", "did you mean 'make'?"],
    "make -i 3x8x8 --name 'a b'": ["name: 'a b'", "spaces"],
    "lazy -i 4": ["lazy layer", "run it once first"],
    "picks -i 4": ["module Picks", "needs the values of its input"],
    "asks -i 4": ["module Asks", "needs the values of its input"],
    "stops -i 4": ["module Stops", "nothing that it gives depends on its parameters"],
    "nothing -i 4": ["module Identity", "does nothing"],
}
BAD = {f"torch_models:{line}": parts for line, parts in BAD.items()} | {
    "torch_models -i 4": ["'torch_models': names no factory", "mypkg.models:make_model"],
    "torch_models: -i 4": ["names no factory"],
    "torch_missing:make -i 4": ["no module 'torch_missing'", "run from the folder"],
    "torch_broken:make -i 4": ["no module 'nowhere_at_all'", "install it first"],
    "torch_wrong:make -i 4": ["torch_wrong cannot be imported: SyntaxError"],
}


@pytest.mark.parametrize("line", BAD)
def test_refusal(hocket: Any, folder: Path, line: str) -> None:
    pytest.importorskip("torch", reason=REASON)
    before = {each.name for each in folder.iterdir()}
    result = hocket("workload", "from-torch", *shlex.split(line))
    assert (result.code, result.out) == (2, "")
    errors = [each for each in result.err.splitlines() if each != "made"]
    assert len(errors) == 1
    assert [part for part in BAD[line] if part not in errors[0]] == []
    assert {each.name for each in folder.iterdir()} - before <= {"__pycache__"}


def test_without_pytorch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [each for each in sys.modules if each.startswith("torch.") or each == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert run(["workload", "from-torch", "torch_models:make", "-i", "4"]) == 2
    error = capsys.readouterr().err
    assert error == "hocket: a workload from PyTorch needs it: pip install 'hocket[torch]'\n"
