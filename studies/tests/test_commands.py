"""Every study is a command with the folder, the files and the forms that all have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hocket.cli import run
from hocket.cli.command import Call
from hocket_studies.commands import REPRODUCE
from hocket_studies.harness import markdown, wanted


@pytest.mark.parametrize("name", REPRODUCE.commands)
def test_a_study_has_what_all_have(name: str) -> None:
    call = Call("hocket reproduce", REPRODUCE.commands[name].place)
    assert {"--output", "--json"} < set(call.options)
    assert call.summary == REPRODUCE.commands[name].summary
    assert call.example.startswith(f"For example: hocket reproduce {name} ")


def test_a_study_writes_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["reproduce", "themis", "--figure", "9", "--no-optimal", "-o", str(tmp_path / "out")]
    assert run([*argv, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    written = json.loads((tmp_path / "out" / "themis.json").read_text())
    assert {"format": "hocket.reproduction", "version": 1, **written} == printed
    assert written["pictures"] == [str(tmp_path / "out" / "fig9.png")]
    assert run(argv) == 0
    assert capsys.readouterr().out.endswith(f"files in {tmp_path}/out: fig9.png, themis.json\n")


def test_what_is_wanted_is_in_its_order() -> None:
    names = ["table 1", "figure 4", "figure 12", "choices"]
    assert wanted(names, figure=["12,4"]) == ["figure 4", "figure 12"]
    assert wanted(names, "choices", False, table=["1"]) == ["table 1", "choices"]
    assert wanted(names, False, figure=None) == names


def test_a_table_in_markdown() -> None:
    assert markdown(["a"], ["b"], [("x", "1")]) == ["| a | b |", "| --- | ---: |", "| x | 1 |"]
