"""Tables at 80, 100 and 120 columns: every line fits, nothing is cut, and a column has one unit."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hocket.cli.numbers import RATES, TIMES, common, percent
from hocket.cli.table import Table, cell_width

from .conftest import Hocket

ROOT = Path(__file__).parents[2]
TRACE = str(ROOT / "tests" / "data" / "chakra" / "all_gather")
JOBS = str(ROOT / "examples" / "jobs.yml")
RING = ("-t", "ring:4", "--bandwidth", "10 GB/s", "--latency", "100 ns")

COMMANDS: dict[str, tuple[str, ...]] = {
    "compare": ("compare", "all-reduce", "-t", "dgx1_v100", "-s", "1MB"),
    "sizes": ("compare", "all-reduce", *RING, "-s", "8B,1GB", "-a", "ring", "-a", "direct"),
    "failures": (
        "topology",
        "advise",
        "--failures",
        "all-reduce",
        *RING,
        "-s",
        "1MB",
        "-a",
        "ring",
    ),
    "dims": ("topology", "advise", "-t", "themis-2d"),
    "train": ("train", "alexnet", "-t", "dgx1_v100", "-p", "dp=4,pp=2", "-a", "ring", "--layers"),
    "pareto": (
        "compare",
        "--front",
        "all-reduce",
        *RING,
        "-s",
        "8B,1GB",
        "-a",
        "ring",
        "-a",
        "direct",
    ),
    "compare-training": ("train", "--compare", "alexnet", "-t", "dgx1_v100", "--all-algorithms"),
    "route": ("route", JOBS, "-f", "clos:32x64"),
    "schemes": ("route", JOBS, "-f", "clos:32x64", "--compare"),
    "algorithms": ("plan", "--list"),
    "machines": ("topology", "list"),
    "links": ("topology", "show", "dgx1_v100", "--links"),
    "workloads": ("workload", "list"),
    "cycles": ("workload", "show", "alexnet"),
    "costs": ("workload", "show", "gpt3-175b"),
    "trace": ("trace", "show", TRACE),
    "replay": ("trace", "run", TRACE, *RING),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == "schemes" else n for n in COMMANDS]
)
def test_every_line_fits(hocket: Hocket, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    argv = COMMANDS[name]
    whole = hocket(*argv).out
    assert whole
    cells = _cells(whole)
    for width in (80, 100, 120):
        size = os.terminal_size((width, 24))
        monkeypatch.setattr("hocket.cli.console.get_terminal_size", lambda size=size: size)
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        told = hocket(*argv).out
        assert max(map(cell_width, told.splitlines())) <= width
        assert "…" not in told
        numbers = {cell for cell in _cells(told) if re.fullmatch(r"[\d,]*\.\d+", cell)}
        assert numbers <= cells


def _cells(out: str) -> set[str]:
    lines = [line for line in out.splitlines() if line.startswith("│")]
    return {cell.strip() for line in lines for cell in line.strip("│").split("│")}


def test_a_terminal_is_asked_for_its_width() -> None:
    main, side = pty.openpty()
    code = "from hocket.cli import main; main()"
    argv = [sys.executable, "-c", code, *COMMANDS["compare"]]
    env = {**os.environ, "COLUMNS": "80"}
    with subprocess.Popen(argv, stdout=side, stderr=subprocess.DEVNULL, env=env) as process:
        os.close(side)
        told = b""
        while chunk := _read(main):
            told += chunk
        assert process.wait() == 0
    os.close(main)
    lines = told.decode().splitlines()
    assert max(map(cell_width, lines)) <= 80
    assert any("left out for want of room" in line for line in lines)


def _read(file: int) -> bytes:
    try:
        return os.read(file, 1 << 16)
    except OSError:  # the other side is closed
        return b""


def test_a_column_has_one_unit() -> None:
    table = Table()
    table.add_column("what")
    table.add_column("time", units=TIMES)
    for what, time in (("a", 1_500), ("b", 25_000_000), ("c", None), ("d", "never")):
        table.add_row(what, time)
    lines = table.lines()
    assert "ns" in lines[2]
    assert [line.split("│")[2].strip() for line in lines[4:8]] == ["1.5", "25,000.0", "–", "never"]


def test_far_numbers_have_a_unit_a_section() -> None:
    table = Table(by_section=True)
    table.add_column("size")
    table.add_column("time", units=TIMES)
    for size, time in (("8 B", 1_500), ("1 GB", 90_000_000_000)):
        table.add_row(size, time, end_section=True)
    told = "\n".join(table.lines())
    assert "│ 8 B  │ 1.5 ns │" in told
    assert "│ 1 GB │  90 ms │" in told


def test_columns_share_a_unit_unless_far_apart() -> None:
    assert common([2e6, 3e9], RATES) == (("MB/s", 10**6),)
    assert common([2e3, 3e12], RATES) == RATES


def test_nothing_is_minus_zero() -> None:
    assert [percent(share) for share in (-0.0, -0.0004, 0.0004, -0.0006, 12.5)] == [
        "0.0",
        "0.0",
        "0.0",
        "-0.1",
        "1,250.0",
    ]
