"""Files are written whole or not at all, and what is no file is never replaced."""

from __future__ import annotations

import os
import stat
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


def test_folders_are_refused(tmp_path: Path) -> None:
    for path, said in ((tmp_path, "is a folder"), (tmp_path / "no" / "x", "there is no folder")):
        with pytest.raises(hk.SpecError, match=said):
            check_target(path)
