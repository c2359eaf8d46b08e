"""What a killed process leaves unfinished is removed by the next that writes beside it, nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fcntl")

_IMPORTS = "import os, signal, sys; from pathlib import Path; from hocket.files import atomic\n"
_HOLDS = {
    "file": "with atomic.replacing(Path(sys.argv[1])) as made:\n",
    "folder": "with atomic.replacing_folder(Path(sys.argv[1]), lambda name: True) as made:\n",
}
_WAITS = "    print(made, flush=True); sys.stdin.readline()\n"
_WRITES = _IMPORTS + "atomic.write_text(Path(sys.argv[1]), 'whole')\n"


@contextmanager
def _writer(kind: str, target: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Give a process that is writing, and what it has not finished."""
    code = _IMPORTS + _HOLDS[kind] + _WAITS
    with subprocess.Popen(
        [sys.executable, "-c", code, str(target)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process, Path(process.stdout.readline().rstrip())
        finally:
            process.kill()


def _write_beside(target: Path) -> None:
    subprocess.run([sys.executable, "-c", _WRITES, str(target)], check=True)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_writer_left_is_removed(kind: str, tmp_path: Path) -> None:
    with _writer(kind, tmp_path / "killed") as (process, unfinished):
        if kind == "folder":
            (unfinished / "part").write_text("half", encoding="utf-8")
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert unfinished.exists()
    _write_beside(tmp_path / "other")
    assert [each.name for each in tmp_path.iterdir()] == ["other"]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_living_writer_has_not_finished_stays(kind: str, tmp_path: Path) -> None:
    with _writer(kind, tmp_path / "slow") as (process, unfinished):
        _write_beside(tmp_path / "quick")
        assert unfinished.exists()
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.wait() == 0
    assert sorted(each.name for each in tmp_path.iterdir()) == ["quick", "slow"]


def test_an_earlier_folder_that_was_moved_away_is_kept(tmp_path: Path) -> None:
    mine = tmp_path / f".hocket-{os.urandom(8).hex()}.part"
    for path in (mine, mine.with_suffix(".old")):
        path.mkdir()
    done = tmp_path / f".hocket-{os.urandom(8).hex()}.old"
    done.mkdir()
    _write_beside(tmp_path / "other")
    assert mine.is_dir()
    assert mine.with_suffix(".old").is_dir()
    assert not done.exists()


def test_files_of_others_and_links_stay(tmp_path: Path) -> None:
    others = [tmp_path / ".hocket-notes.part", tmp_path / ".hocket-0123456789abcdef.partial"]
    for path in others:
        path.write_text("mine", encoding="utf-8")
    kept = tmp_path / "kept"
    kept.mkdir()
    link = tmp_path / ".hocket-0123456789abcdef.part"
    link.symlink_to(kept)
    _write_beside(tmp_path / "other")
    assert all(path.exists() for path in (*others, kept, link))
