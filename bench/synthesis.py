"""Whole-command figures of synthesis: each command in a process of its own, interpreter included.

``python bench/synthesis.py --repeat 3`` prints the table; ``--large`` adds
40,000 NPUs, which takes minutes and some 8 GiB; ``--plot FILE`` draws the growth with NPUs. Beside it
stand the CPU seconds and times of TACOS's own code on the same networks (version 1.3.0, commit 1811f1f),
all under its link model: a link is held during its latency.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

LINKS = ["--bandwidth", "100 GB/s", "--latency", "500 ns"]
MIXED = [
    "--bandwidth",
    "100 GB/s",
    "--bandwidth",
    "50 GB/s",
    "--latency",
    "500 ns",
]
NODES = ["--bandwidth", "200 GB/s", "--bandwidth", "100 GB/s", "--bandwidth", "50 GB/s"]


@dataclass(frozen=True)
class Case:
    """A command, the NPUs of its network, and TACOS's CPU seconds and microseconds there."""

    topology: str
    npus: int
    links: tuple[str, ...] = tuple(LINKS)
    kind: str = "all-gather"
    size: str = "64MB"
    more: tuple[str, ...] = ()
    tacos_s: float | None = None
    tacos_us: float | None = None


CASES = [
    Case("mesh:5x5", 25, tacos_s=0.00093, tacos_us=313.2),
    Case("mesh:8x8", 64, tacos_s=0.0124, tacos_us=336.0),
    Case("mesh:10x10", 100, tacos_s=0.0347, tacos_us=345.0),
    Case("mesh:16x16", 256, tacos_s=1.13, tacos_us=384.0),
    Case("mesh:24x24", 576, tacos_s=14.6, tacos_us=464.0),
    Case("mesh:32x32", 1024, tacos_s=88.0, tacos_us=576.0),
    Case("mesh:64x64", 4096),
    Case("mesh:64x64", 4096, more=("--timetable-only",)),
    Case("torus:10x10", 100, tacos_s=0.033, tacos_us=179.4),
    Case("torus:16x16", 256, tacos_s=0.825, tacos_us=195.0),
    Case("torus:32x32", 1024, tacos_s=70.6, tacos_us=290.25),
    Case("torus:4x4x4", 64, tacos_s=0.0070, tacos_us=115.5),
    Case("torus:8x8x8", 512, tacos_s=6.45, tacos_us=150.5),
    Case("mesh:8x8x8", 512, tacos_s=8.85, tacos_us=299.3),
    Case("Line_Line:10x10", 100, links=tuple(MIXED), tacos_s=0.197, tacos_us=452.2),
    Case("Line_Line:16x16", 256, links=tuple(MIXED), tacos_s=5.48, tacos_us=495.0),
    Case("Line_Line:24x24", 576, links=tuple(MIXED), tacos_s=279.0, tacos_us=582.6),
    Case("mesh:10x10", 100, size="256MB", more=("--chunks", "4"), tacos_s=0.72),
    Case("mesh:10x10", 100, size="1024MB", more=("--chunks", "16"), tacos_s=11.8),
    Case("mesh:10x10", 100, kind="all-reduce", size="1600MB", more=("--chunks", "64")),
    Case(
        "Ring_FC_SW:2x4x64",
        512,
        links=(*NODES, "--latency", "0 ns"),
        kind="all-reduce",
        size="512MB",
        more=("--unwind", "1"),
    ),
    Case("mesh:8x8", 64, kind="all-to-all"),
]
LARGE = [
    Case("mesh:100x100", 10_000, size="640MB", more=("--timetable-only",)),
    Case("mesh:200x200", 40_000, size="2560MB", more=("--timetable-only",)),
]


def command(case: Case) -> list[str]:
    """Give the command of a case."""
    program = "import sys; from hocket.cli import main; main(sys.argv[1:])"
    options = ["--topology", case.topology, *case.links, "--size", case.size, *case.more]
    model = ["--algorithm", "greedy", "--latency-model", "occupying", "--json"]
    chunks = [] if "--chunks" in case.more else ["--chunks", "1"]
    return [sys.executable, "-c", program, "plan", case.kind, *options, *model, *chunks]


@dataclass(frozen=True)
class Measured:
    """One run: wall seconds, seconds of the synthesis alone, when the timetable ends, peak memory."""

    wall: float
    synthesis: float
    end_us: float
    peak_mib: float


def measure(case: Case) -> Measured:
    """Run a case once."""
    start = time.perf_counter()
    process = subprocess.Popen(command(case), stdout=subprocess.PIPE)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status != 0:
        raise SystemExit(f"failed: {' '.join(command(case))}")
    facts = json.loads(printed)
    made = facts.get("synthesis", facts)
    ends_us, seconds = made["time_ps"] * 1e-6, made["elapsed_ps"] * 1e-12
    return Measured(wall, seconds, ends_us, usage.ru_maxrss / 1024)


def spread(values: list[float]) -> str:
    """Give minimum / median / maximum."""
    return " / ".join(
        f"{value:.3f}" for value in (min(values), statistics.median(values), max(values))
    )


def draw(curve: list[tuple[int, float]], path: Path) -> None:
    """Draw seconds of synthesis of all-gathers on square meshes, and TACOS's, against NPUs."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    squares = [case for case in CASES if is_square_mesh(case) and case.tacos_s is not None]
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    axes.loglog(*zip(*curve, strict=True), "o-", label="hocket greedy")
    theirs = [(case.npus, case.tacos_s) for case in squares]
    axes.loglog(*zip(*theirs, strict=True), "s--", label="TACOS 1.3.0 (CPU seconds)")
    axes.set(xlabel="NPUs", ylabel="seconds", title="all-gather on square meshes, one chunk an NPU")
    axes.grid(which="major", alpha=0.4)
    axes.legend()
    figure.savefig(path, dpi=110)


def is_square_mesh(case: Case) -> bool:
    """Tell whether a case is on the curve: a plain all-gather on a square mesh."""
    is_square = case.topology.startswith("mesh:") and case.topology.count("x") == 1
    is_plain = case.more in ((), ("--timetable-only",))
    return is_square and is_plain and case.kind == "all-gather"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="also 10,000 and 40,000 NPUs, once")
    parser.add_argument("--only-large", action="store_true")
    parser.add_argument("--plot", type=Path, help="draw the growth with NPUs here")
    options = parser.parse_args()
    print(
        "| network, chunks | collective | command s | synthesis s | ends us | TACOS CPU s | TACOS us |"
        " faster by | MiB |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    curve: list[tuple[int, float]] = []
    cases = [] if options.only_large else [(case, options.repeat) for case in CASES]
    large = LARGE if options.large or options.only_large else []
    for case, repeat in cases + [(case, 1) for case in large]:
        runs = [measure(case) for _ in range(repeat)]
        synthesis = statistics.median(run.synthesis for run in runs)
        faster = "" if case.tacos_s is None else f"{case.tacos_s / synthesis:,.0f}"
        cells = [
            " ".join((case.topology, *case.more)),
            case.kind,
            spread([run.wall for run in runs]),
            spread([run.synthesis for run in runs]),
            f"{runs[0].end_us:,.1f}",
            "" if case.tacos_s is None else f"{case.tacos_s:g}",
            "" if case.tacos_us is None else f"{case.tacos_us:g}",
            faster,
            f"{max(run.peak_mib for run in runs):.0f}",
        ]
        print("| " + " | ".join(cells) + " |", flush=True)
        if is_square_mesh(case):
            curve.append((case.npus, synthesis))
    for (few, short), (many, long) in itertools.pairwise(curve):
        if many > few:
            exponent = math.log(long / short) / math.log(many / few)
            print(f"from {few} to {many} NPUs: seconds grow as NPUs^{exponent:.2f}")
    if options.plot is not None:
        draw(curve, options.plot)


if __name__ == "__main__":
    main()
