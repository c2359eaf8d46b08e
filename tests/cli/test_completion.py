"""What a shell completes after TAB."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hocket.cli import complete
from hocket.cli.commands import COMMANDS
from hocket.cli.lazy import _made


def completed(line: str, folder: Path) -> set[str]:
    code = "from hocket.cli import main; main()"
    words = {"_HOCKET_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": ""}
    words["COMP_CWORD"] = str(len(line.split(" ")) - 1)
    words["_TYPER_COMPLETE_ARGS"] = line
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **words},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("hocket compare all-r", {"all-reduce"}),
        ("hocket compare all-reduce -t dgx1", {"dgx1_v100"}),
        ("hocket compare all-reduce -t my", {"mynet.yml"}),
        ("hocket compare all-reduce -a gre", {"greedy"}),
        ("hocket compare all-reduce --fidelity f", {"flow"}),
        ("hocket simulate plan.parquet --fidelity d", {"dimension"}),
        ("hocket train resnet5", {"resnet50"}),
        ("hocket train resnet50 --npu a1", {"a100"}),
        ("hocket topology show dgx1", {"dgx1_v100"}),
    ],
)
def test_names_are_completed(line: str, names: set[str], tmp_path: Path) -> None:
    (tmp_path / "mynet.yml").write_text("")
    assert names <= completed(line, tmp_path)


def leaves() -> list[tuple[str, Any]]:
    found = []
    for each in COMMANDS:
        made = _made(each)
        under = getattr(made, "commands", None)
        if under is None:
            found.append((each.name, made))
        for name, one in (under or {}).items():
            found.append((f"{each.name} {name}", getattr(one, "real", one)))
    return found


@pytest.mark.parametrize(("command", "made"), leaves(), ids=lambda each: str(each)[:20])
def test_bash_is_answered_as_typer_would(
    command: str, made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yml").write_text("")
    words = command.split()
    arguments = [each for each in made.params if each.param_type_name == "argument"]
    for param in made.params:
        asked = [each.value for each in param.shell_complete(None, "")]
        if param.param_type_name == "argument":
            if param is arguments[0]:
                assert (complete.completed(words, "") or []) == asked
            continue
        for name in param.opts:
            assert (complete.completed([*words, "x", name], "") or []) == asked, name
    assert complete.completed(words, "-") is None


def test_bash_needs_no_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys; from hocket.cli import run; run([]); print('typer' in sys.modules)"
    for line, loads in (
        ("hocket compare all-reduce -t dgx1", False),
        ("hocket compare --fi", True),
    ):
        env = {
            **os.environ,
            "_HOCKET_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(line.count(" ")),
        }
        argv = [sys.executable, "-c", code]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        assert done.stdout.split()[0] == ("--fidelity" if loads else "dgx1_v100")
        assert loads or done.stdout.split()[-1] == "False"
