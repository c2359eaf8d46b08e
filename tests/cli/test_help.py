"""The help of every command, and the page that is made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hocket.cli.commands import COMMANDS, GROUPS
from hocket.cli.manual import BEGIN, END, leaves, reference

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
        words = [*path.split(), *([mode] if mode.startswith("-") else [])]
        lines = hocket(*words, "--help").out.splitlines()
        assert len(lines) <= 88
        assert max(map(len, lines)) <= 80
        more = hocket(*words, "--help-all").out.splitlines()
        assert len(more) >= len(lines) - 2


def test_the_command_line_can_be_learnt() -> None:
    own = [path for path, _ in LEAVES if path.split()[0] not in ("reproduce", "testbed")]
    assert len(own) <= 61
    assert len(GROUPS) <= 6
    assert len(COMMANDS) <= 35


def test_the_page_is_what_the_commands_say() -> None:
    text = PAGE.read_text(encoding="utf-8")
    written = text.partition(BEGIN)[2].partition(END)[0]
    assert written == f"\n{reference()}\n", "write it anew with `make accept`"
