"""What a shell completes after TAB."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hocket.cli import complete
from hocket.cli.command import Call
from hocket.cli.commands import COMMANDS
from hocket.cli.manual import leaves

from .conftest import Hocket


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mynet.yml").write_text("")


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("hocket comp", {"compare"}),
        ("hocket topology sh", {"show"}),
        ("hocket --ver", {"--version"}),
        ("hocket compare --fi", {"--fidelity"}),
        ("hocket compare all-r", {"all-reduce"}),
        ("hocket compare all-reduce -t dgx1", {"dgx1_v100"}),
        ("hocket compare all-reduce -t my", {"mynet.yml"}),
        ("hocket compare all-reduce -a gre", {"greedy"}),
        ("hocket compare all-reduce --fidelity f", {"flow"}),
        ("hocket simulate plan.parquet --fidelity d", {"dimension"}),
        ("hocket train resnet5", {"resnet50"}),
        ("hocket train resnet50 --npu a1", {"a100"}),
        ("hocket topology show dgx1", {"dgx1_v100"}),
        ("hocket export plan.parquet --to ms", set()),
        ("hocket agent --con", set()),
    ],
)
def test_names_are_completed(line: str, names: set[str]) -> None:
    *words, last = line.split()[1:]
    assert names <= set(complete.completed(words, last))


def test_every_value_can_be_completed() -> None:
    for path, command in leaves(COMMANDS, ""):
        words = path.split()
        if command.is_program:
            continue
        for param in Call(path, command.place).params:
            if param.told.complete is not None:
                before = [*words, *list(param.words)[:1]]
                assert complete.completed(before, "") == param.told.complete("")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how(hocket: Hocket, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    home = Path("home")
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    script = hocket("--show-completion").out
    assert "_HOCKET_COMPLETE" in script
    for _ in range(2):
        assert hocket("--install-completion").code == 0
    (file,) = (each for each in home.rglob("*") if each.is_file())
    assert file.read_text().count("--show-completion") == 1
    monkeypatch.setenv("SHELL", "/bin/ksh")
    assert hocket("--show-completion").code == 2


def test_bash_asks_and_is_answered(tmp_path: Path) -> None:
    (tmp_path / "hocket").write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'from hocket.cli import main; main()' \"$@\"\n"
    )
    (tmp_path / "hocket").chmod(0o755)
    script = complete.script("bash") + (
        "\nCOMP_WORDS=(hocket compare all-reduce -t dgx1); COMP_CWORD=4"
        "\n_hocket_completion hocket; echo ${COMPREPLY[*]}"
    )
    path = f"{tmp_path}:{os.environ['PATH']}"
    argv, env = ["bash", "-c", script], {**os.environ, "PATH": path}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["dgx1_v100"]
