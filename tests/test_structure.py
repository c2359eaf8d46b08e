"""``docs/architecture.md`` shows the code as it is; ``make accept`` writes its tables and drawing anew."""

from __future__ import annotations

import re

from . import structure

PLANNERS = {"plan", "synth", "program", "train", "core"}
UNSAFE = {"runtime", "preload", "py", "nccl-tuner"}
"""Crates that map memory, that other programs load, or that Python calls."""


def test_the_page_shows_the_code(accept: bool) -> None:
    if accept:
        structure.PAGE.write_text(structure.page(), encoding="utf-8")
        structure.DRAWING.write_text(structure.drawing(), encoding="utf-8")
    page = structure.PAGE.read_text(encoding="utf-8")
    assert page == structure.page()
    assert structure.DRAWING.read_text(encoding="utf-8") == structure.drawing()
    links = re.findall(r"\[(\w[^\]]*)\]\(([^)#]+)\)", page)
    assert len(links) > 15
    for text, target in links:
        file = structure.PAGE.parent / target
        assert file.exists(), target
        if text.startswith("test_"):
            assert f"\ndef {text}(" in file.read_text(encoding="utf-8"), text


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
    crates = structure.ROOT / "crates"
    found = {
        name
        for name in structure.crates()
        if "#![forbid(unsafe_code)]"
        not in "".join(
            file.read_text() for file in (crates / f"hocket-{name}" / "src").glob("*.rs")
        )
    }
    assert found == UNSAFE
