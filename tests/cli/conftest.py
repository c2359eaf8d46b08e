"""Runs the command line in an empty folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hocket.cli import run


@dataclass(frozen=True)
class Result:
    """What a command gave back."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


Hocket = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    return tmp_path


@pytest.fixture
def hocket(folder: Path, capsys: pytest.CaptureFixture[str]) -> Hocket:
    """Run the command line with these arguments."""

    def call(*argv: str) -> Result:
        capsys.readouterr()
        code = run(argv)
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return call
