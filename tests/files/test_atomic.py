"""Files are written whole or not at all, and what is not a file is never replaced."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import hocket as hk
from hocket.files.atomic import check_target, write_text


def test_a_failure_leaves_the_earlier_file(tmp_path: Path) -> None:
    path = tmp_path / "plan"
    write_text(path, "earlier")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "half \ud800")
    assert path.read_text(encoding="utf-8") == "earlier"
    assert list(tmp_path.iterdir()) == [path]


def test_a_pipe_is_written_to_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(path.read_text(encoding="utf-8")))
    reader.start()
    write_text(path, "all of it")
    reader.join(timeout=20)
    assert got == ["all of it"]
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    file, link = tmp_path / "folder" / "file", tmp_path / "link"
    link.symlink_to(file)
    write_text(link, "one")
    write_text(link, "two")
    assert link.is_symlink()
    assert file.read_text(encoding="utf-8") == "two"


def test_the_rights_of_a_file_stay(tmp_path: Path) -> None:
    path = tmp_path / "plan"
    write_text(path, "one")
    path.chmod(0o600)
    write_text(path, "two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    write_text(path, "text")
    assert path.read_text(encoding="utf-8") == "text"
    with pytest.raises(hk.SpecError, match="too long"):
        check_target(tmp_path / ("x" * 256))


def test_names_that_are_none_are_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path in (loop, tmp_path / os.fsdecode(b"\xff\xfe")):
        with pytest.raises(hk.SpecError) as caught:
            check_target(path)
        assert len(str(caught.value).splitlines()) == 1


def test_what_is_printed_is_not_mixed_with_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "printed"
    code = (
        "import sys; from hocket.cli import run; "
        "sys.exit(run(['plan', 'all-gather', '-t', 'ring:4', '--bandwidth', '1 GB/s', "
        "'--latency', '0 ns', '-s', '4kB', '-a', 'ring', '-o', sys.argv[1]]))"
    )
    for name in (str(path), "/dev/stdout"):
        with path.open("wb") as printed:
            done = subprocess.run(
                [sys.executable, "-c", code, name],
                stdout=printed,
                stderr=subprocess.PIPE,
                check=False,
                text=True,
            )
        assert done.returncode == 2
        assert "is where the report is printed" in done.stderr
        assert path.read_bytes() == b""


def test_folders_are_refused(tmp_path: Path) -> None:
    for path, said in ((tmp_path, "is a folder"), (tmp_path / "no" / "x", "there is no folder")):
        with pytest.raises(hk.SpecError, match=said):
            check_target(path)
