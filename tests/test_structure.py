"""``docs/architecture.md`` shows the code as it is; ``make accept`` writes its tables and drawing anew."""

from __future__ import annotations

import re
from fnmatch import fnmatch

import pytest

from . import structure
from .structure import PAGE, ROOT
from .test_project_rules import text_of, tracked

PLANNERS = {"plan", "synth", "program", "train", "core"}
UNSAFE = {"runtime", "preload", "py", "nccl-tuner"}
"""Crates that map memory, that other programs load, or that Python calls."""


def test_the_page_shows_the_code(accept: bool) -> None:
    if accept:
        PAGE.write_text(structure.page(), encoding="utf-8")
        structure.DRAWING.write_text(structure.drawing(), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    assert page == structure.page()
    assert structure.DRAWING.read_text(encoding="utf-8") == structure.drawing()
    links = re.findall(r"\[(\w[^\]]*)\]\(([^)#]+)\)", page)
    assert len(links) > 15
    for text, target in links:
        file = PAGE.parent / target
        assert file.exists(), target
        if text.startswith("test_"):
            assert f"\ndef {text}(" in file.read_text(encoding="utf-8"), text


def test_files_that_follow_from_the_code_are_where_the_page_says() -> None:
    kept = [file.relative_to(ROOT).as_posix() for file in tracked()]
    rows = re.findall(
        r"^\| (.+) \| (.*`make .*) \| (yes|no): .* \|$", PAGE.read_text(), re.MULTILINE
    )
    assert len(rows) > 5
    for names, _, is_kept in rows:
        named = [
            (PAGE.parent / each).resolve().relative_to(ROOT).as_posix()
            for each in re.findall(r"\]\((.+?)\)", names)
        ]
        for name in named or re.findall(r"`(.+?)`", names):
            assert any(fnmatch(file, f"{name}*") for file in kept) == (is_kept == "yes"), name


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_what_a_page_names_exists(page: str) -> None:
    """Targets of make, files, variables of tests and crates."""
    text = (ROOT / page).read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:`| {4})make ([a-z-]+)", text):
        assert re.search(rf"^(?:.* )?{target}\b.*:", makefile, re.MULTILINE), target
    files = [file.relative_to(ROOT).as_posix() for file in tracked()]
    sources = "".join(text_of(ROOT / file) for file in files if file.endswith((".py", ".rs")))
    for variable in re.findall(r"\bHOCKET_[A-Z_]+", text):
        assert variable in sources, variable
    for crate in re.findall(r"`(hocket-[a-z-]+)`|-p (hocket-[a-z-]+)", text):
        assert (ROOT / "crates" / "".join(crate)).is_dir() or "".join(crate) in sources, crate
    for name in re.findall(r"`?((?:[\w.*-]+/)*[\w*-]+\.(?:py|rs|toml|md|txt|npz|svg))\b", text):
        assert any(fnmatch(file, f"*{name.removeprefix('../')}") for file in files), name


def test_lines_that_follow_from_others_are_left_out() -> None:
    needs = {
        "a": frozenset("bcd"),
        "b": frozenset("cd"),
        "c": frozenset("d"),
        "d": frozenset[str](),
    }
    assert structure.levels(needs) == {"a": 3, "b": 2, "c": 1, "d": 0}
    assert structure.reduced(needs) == {"a": ["b"], "b": ["c"], "c": ["d"], "d": []}


def test_the_controller_is_built_without_a_planner() -> None:
    needs = structure.crates()

    def below(name: str) -> frozenset[str]:
        return needs[name].union(*(below(each) for each in needs[name]))

    for name in ("agent", "controller"):
        assert {"fabric", "control", "wire"} <= below(name)
        assert not below(name) & PLANNERS


def test_unsafe_code_is_where_it_is_needed() -> None:
    crates = ROOT / "crates"
    found = {
        name
        for name in structure.crates()
        if "#![forbid(unsafe_code)]"
        not in "".join(
            file.read_text() for file in (crates / f"hocket-{name}" / "src").glob("*.rs")
        )
    }
    assert found == UNSAFE
