"""What long work says of itself where standard error is no terminal."""

from __future__ import annotations

import re
import time

import pytest

from hocket.cli import console, options


def test_lines_come_by_the_clock_and_never_go_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(options, "_EVERY_S", 0.01)
    said = ""
    with options.watching() as watch:
        for done in (3, 1, 5, 2, 7):
            watch.step("plan", done, 8)
            before = len(re.findall("\n", said))
            while len(re.findall("\n", said)) < before + 2:  # one may have been on its way
                time.sleep(0.01)
                said += capsys.readouterr().err
    lines = said.splitlines()
    assert all(re.fullmatch(r"hocket: plan, step [1-8] of 8, 0:\d\d", line) for line in lines)
    steps = [int(line.split("step ")[1].split(" of")[0]) for line in lines]
    assert steps == sorted(steps)
    assert set(steps) >= {4, 6, 8}


def test_a_quiet_command_and_a_short_one_say_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with options.watching() as watch:
        watch.note("short")
    monkeypatch.setattr(options, "_EVERY_S", 0.01)
    token = console.QUIET.set(True)
    try:
        with options.watching() as watch:
            watch.note("quiet")
            time.sleep(0.1)
    finally:
        console.QUIET.reset(token)
    assert capsys.readouterr().err == ""
