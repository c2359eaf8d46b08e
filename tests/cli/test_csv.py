"""``--csv``: every command whose result is a table prints it so."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from .conftest import Hocket

ROOT = Path(__file__).parents[2]
TRACE = str(ROOT / "tests" / "data" / "chakra" / "all_gather")
JOBS = str(ROOT / "examples" / "jobs.yml")
RAILS = ("-t", "Ring_SW:2x4", "--bandwidth", "10 GB/s", "--latency", "100 ns")

COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "compare": (
        ("compare", "all-reduce", "-t", "dgx1_v100", "-s", "1MB"),
        ("algorithms",),
        "time_ps",
    ),
    "pareto": (
        (
            "compare",
            "--front",
            "all-reduce",
            "-t",
            "dgx1_v100",
            "-s",
            "1MB",
            "-a",
            "ring",
            "-a",
            "direct",
        ),
        ("ranges",),
        "from_time_ps",
    ),
    "failures": (
        (
            "topology",
            "advise",
            "--failures",
            "all-reduce",
            "-t",
            "dgx1_v100",
            "-s",
            "1MB",
            "-a",
            "ring",
        ),
        ("failures",),
        "time_ps",
    ),
    "dims": (("topology", "advise", *RAILS), ("dimensions",), "busy_fixed"),
    "train": (("train", "alexnet", *RAILS), ("layers",), "forward_ps"),
    "compare-training": (("train", "--compare", "alexnet", *RAILS), ("rows",), "time_ps"),
    "route": (("route", JOBS, "-f", "clos:32x64"), ("jobs",), "all_reduce_ps"),
    "algorithms": (("plan", "--list"), ("algorithms",), "name"),
    "machines": (("topology", "list"), ("machines",), "name"),
    "topology": (("topology", "show", "dgx1_v100"), ("links",), "bandwidth_bytes_per_s"),
    "workloads": (("workload", "list"), ("workloads",), "parameters"),
    "cycles": (("workload", "show", "alexnet"), ("layers",), "forward_cycles"),
    "costs": (("workload", "show", "alexnet", "--costs"), ("layers",), "parameters"),
    "replay": (("trace", "run", TRACE, "-t", "ring:4", *RAILS[2:]), ("ranks",), "end_ps"),
}


def rows_of(hocket: Hocket, *argv: str) -> list[dict[str, str]]:
    result = hocket(*argv, "--csv")
    assert (result.code, result.err) == (0, "")
    return list(csv.DictReader(io.StringIO(result.out)))


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n == "compare-training" else n for n in COMMANDS],
)
def test_csv_has_the_rows_of_json(hocket: Hocket, name: str) -> None:
    argv, keys, column = COMMANDS[name]
    rows = rows_of(hocket, *argv)
    values: Any = hocket(*argv, "--json").json()
    for key in keys:
        values = values[key]
    assert [row[column] for row in rows] == [
        "" if each[column] is None else str(each[column]) for each in values
    ]
    assert len({len(row) for row in rows}) == 1
    assert not any("{" in text or "[" in text for row in rows for text in row.values())


@pytest.mark.slow
def test_csv_of_calls_and_of_schemes(hocket: Hocket) -> None:
    (calls,) = rows_of(hocket, "trace", "show", TRACE)
    assert calls == {"collective": "all-gather", "calls": "1", "size_bytes": str(4 << 20)}
    rows = rows_of(hocket, "route", JOBS, "-f", "clos:32x64", "--compare")
    assert {"greedy", "ecmp"} <= {row["scheme"] for row in rows}


def test_csv_and_json_are_not_both_given(hocket: Hocket) -> None:
    result = hocket("plan", "--list", "--csv", "--json")
    assert result.code == 2
    assert result.err == "hocket: --csv: --json is another form; leave one of them out\n"
