"""The site builds of all pages without a warning, and has each page and each public name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import hocket as hk

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    built = tmp_path / "site"
    options = ["--quiet", "--fail-on-warning", "--keep-going", "-d", str(tmp_path / "doctrees")]
    places = ["-c", str(ROOT / "docs" / "site"), str(ROOT / "docs"), str(built)]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, *places],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").glob("**/*.md")]
    assert len(pages) > 40
    missing = [page for page in pages if not (built / page).with_suffix(".html").exists()]
    assert not missing
    names = [name for name in hk.__all__ if not name.startswith("_")]
    reference = built / "reference"
    unnamed = [name for name in names if not list(reference.glob(f"hocket.{name}.html"))]
    assert not unnamed
    assert "all-reduce" in (built / "index.html").read_text(encoding="utf-8")


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").splitlines()
    for page in (ROOT / "docs").glob("**/*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix("").as_posix()
        if name != "index" and not name.startswith("reference/"):
            assert index.count(name) == 1, f"docs/index.md does not list {name} once"
