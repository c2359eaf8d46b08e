"""``bench/RESULTS.md`` is made of the records; ``make accept`` writes it anew."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
spec = importlib.util.spec_from_file_location("record", BENCH / "record.py")
assert spec is not None
assert spec.loader is not None
record = importlib.util.module_from_spec(spec)
spec.loader.exec_module(record)


def test_the_page_is_that_of_the_records(accept: bool) -> None:
    if accept:
        record.PAGE.write_text(record.page(), encoding="utf-8")
    assert record.PAGE.read_text(encoding="utf-8") == record.page()


@pytest.mark.parametrize(
    "topic", sorted((BENCH / "records").glob("*.csv")), ids=lambda path: path.stem
)
def test_each_record_says_when_and_what_of(topic: Path) -> None:
    for each in record.records(topic):
        assert tuple(each) == record.COLUMNS
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", each["date"]), each
        assert re.fullmatch(r"[0-9a-f]{8}", each["commit"]), each
        assert all(each[name] for name in ("machine", "what", "measured")), each


def test_the_last_record_of_a_figure_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "records").mkdir()
    monkeypatch.setattr(record, "HERE", tmp_path)
    each = {"date": "2026-01-02", "commit": "12345678", "machine": "2 cores", "asked": "1 s"}
    for measured in ("3 s", "2 s"):
        record.add("A topic", {**each, "what": "a, b", "measured": measured})
    assert record.page().endswith("| a, b | 1 s | 2 s | 2026-01-02, 2 cores |\n")
