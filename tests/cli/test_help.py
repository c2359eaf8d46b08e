"""The help of every command, and the page that is made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hocket.cli.command import Call, Option
from hocket.cli.commands import COMMANDS, GONE, GROUPS
from hocket.cli.manual import BEGIN, END, leaves, reference
from hocket.comparison.size_table import ParetoOptions

from .conftest import Hocket

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
LEAVES = list(leaves(COMMANDS, ""))


@pytest.mark.parametrize("path", ["", *(path for path, _ in LEAVES)])
def test_help_is_a_page(hocket: Hocket, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command = dict(LEAVES).get(path)
    if command is not None and command.is_program:
        return
    for mode in ["", *(command.modes if command else ())]:
        words = [*path.split(), *mode.replace("FILE", "a").split()]
        lines = hocket(*words, "--help").out.splitlines()
        assert len(lines) <= 70
        assert max(map(len, lines)) <= 80
        assert "...." not in lines[0]
        more = hocket(*words, "--help-all").out.splitlines()
        assert len(more) >= len(lines) - 2


def test_the_command_line_can_be_learnt() -> None:
    own = [path for path, _ in LEAVES if path.split()[0] not in ("reproduce", "testbed")]
    assert len(own) <= 36
    assert len(GROUPS) <= 6
    assert len(COMMANDS) <= 24


def test_the_page_is_what_the_commands_say() -> None:
    text = PAGE.read_text(encoding="utf-8")
    written = text.partition(BEGIN)[2].partition(END)[0]
    assert written == f"\n{reference()}\n", "write it anew with `make accept`"


@pytest.mark.parametrize("old", GONE)
def test_an_old_name_says_the_new_one(hocket: Hocket, old: str) -> None:
    result = hocket(*old.split(), "--help")
    said = f"hocket: there is no `hocket {old}` any more; use `hocket {GONE[old]}`\n"
    assert (result.code, result.out, result.err) == (2, "", said)
    words = GONE[old].partition("`")[0].replace("FILE", "a").split()
    assert hocket(*words, "--help").out.startswith("Usage: hocket ")


def test_a_class_of_options_says_all_that_help_says() -> None:
    call = Call("hocket compare", "hocket.cli.pareto:pareto")
    found = call.options["--within"]
    assert isinstance(found.told, Option)
    assert found.told.help.startswith('Time limit of all the work, such as "60 s"; the result')
    assert (found.kind, found.default, found.told.rare) == (str, None, True)
    assert call.options["--tolerance"].default == ParetoOptions.tolerance
