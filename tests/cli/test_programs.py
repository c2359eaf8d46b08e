"""``hocket controller`` and ``hocket agent`` become the programs of that name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hocket.cli.app import run

BOTH = pytest.mark.parametrize("name", ["controller", "agent"])


def command(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hocket", *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@BOTH
def test_all_that_is_typed_is_for_the_program(name: str) -> None:
    done = command(
        name, "serve", "--help", "-q", "--x=1", **{f"HOCKET_{name.upper()}": "/bin/echo"}
    )
    assert (done.returncode, done.stdout) == (0, "serve --help -q --x=1\n")


@BOTH
def test_a_program_that_is_not_there(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv(f"HOCKET_{name.upper()}", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert run([name, "--version"]) == 2
    variable = f"HOCKET_{name.upper()}"
    remedy = f"build it with `make controller` in a checkout of hocket, or name it in {variable}"
    assert capsys.readouterr().err == f"hocket: there is no program hocket-{name}; {remedy}\n"
    assert run([name, "--help"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"Usage: hocket {name} COMMAND ...")
    assert remedy in told
    monkeypatch.setenv(variable, str(tmp_path))
    assert run([name]) == 2
    assert f"{tmp_path} cannot be run: permission denied" in capsys.readouterr().err


def test_calibrating_needs_no_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOCKET_CONTROLLER", "/nowhere")
    assert run(["controller", "calibrate", "--src", "10.0.0.1"]) == 2
    said = "hocket: --dst: is missing beside the other end; give both ends\n"
    assert capsys.readouterr().err == said
    assert run(["controller", "calibrate", "--hops", "many"]) == 2
    assert "--hops" in capsys.readouterr().err


def test_ctrl_c_is_the_programs() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "hocket", "controller", "-c", "echo up; exec sleep 60"],
        env={**os.environ, "HOCKET_CONTROLLER": "/bin/sh"},
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(3) == b"up\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == -signal.SIGINT
