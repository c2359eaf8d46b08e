"""Whole-process figures of packet fidelity: each case in a process of its own.

``python bench/packets.py --repeat 3`` prints the tables.

A flit-hop is a flit that crosses a link: the bytes over all links / 512 B. Seconds and CPU seconds are
those of the simulation; CPU seconds do not count what else the machine does. ``--commands`` measures
whole commands instead, interpreter included. Beside the all-reduces stand the cycles of BookSim2
(2017-06-27, with messages that wait for others added) for the same messages on the same routers.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hocket as hk

MIB = float(1 << 20)
FLIT = 512
SLICE = "98304 B"
LEAST_S = 0.2
BOOKSIM_RATE = (130e3, 180e3)
"""Flit-hops that BookSim2 moves in a CPU second on such work, least and most."""
LINK: dict[str, Any] = {"bandwidth": "25 GB/s", "latency": "21 ns"}


@dataclass(frozen=True)
class Case:
    """An all-reduce on a square mesh of chiplets, and the cycles of 1 ns that BookSim2 takes."""

    algorithm: str
    side: int
    size: str
    booksim: int | None = None
    slices: bool = True
    """Whether a trio of trees has slices of a fixed size, rather than the same number of any size."""

    @property
    def name(self) -> str:
        return f"{self.algorithm} {self.side}x{self.side}, {self.size}"

    @property
    def is_trio(self) -> bool:
        return self.algorithm.startswith("tto")

    @property
    def npus(self) -> list[int | str] | None:
        """All, but for a corner where links are few."""
        corner = self.side * (self.side - 1)
        return [npu for npu in range(self.side**2) if npu != corner] if self.is_trio else None

    def plan(self) -> hk.Plan:
        cut: dict[str, Any] = {"chunks": 1}
        if self.is_trio:
            cut = {"chunk_size": SLICE} if self.slices else {"chunks": 64}
        topology = hk.topology.mesh(self.side, self.side, **LINK)
        return hk.plan(
            "all-reduce",
            topology,
            size=self.size,
            algorithm=self.algorithm,
            npus=self.npus,
            **cut,
        )


def published() -> list[Case]:
    """Give the all-reduces that BookSim2 was run on."""
    cycles = {
        (4, "1 MiB"): (80_909, 40_592, 43_196, 42_237, 35_461),
        (5, "1 MiB"): (83_135, 43_583, 41_618, 47_650, 38_173),
        (8, "1 MiB"): (85_805, 43_472, 43_812, 63_893, 50_895),
        (4, "16 MiB"): (1_290_509, 645_392, 688_316, 472_317, 471_414),
        (5, "16 MiB"): (1_321_967, 688_703, 661_034, 477_731, 474_145),
    }
    cases = []
    for (side, size), row in cycles.items():
        both_ways = "ring-bi-odd" if side % 2 else "bidirectional-ring"
        names = ("ring", both_ways, "multitree", "tto", "tto-overlapped")
        cases += [Case(name, side, size, took) for name, took in zip(names, row, strict=True)]
    return cases


LARGE = [
    Case("tto", 9, "16 MB"),
    Case("tto", 9, "256 MB"),
    Case("tto", 9, "1 GB"),
    Case("double-binary-tree", 9, "64 MiB"),
    Case("ring-2d", 9, "64 MiB"),
]
GROWING = [
    Case(name, side, size, slices=False)
    for name, side in (("ring", 9), ("tto", 9), ("double-binary-tree", 4))
    for size in ("1 MiB", "64 MiB", "1 GiB")
]
COMMANDS = LARGE[:3]
CASES = {case.name: case for case in [*published(), *LARGE]}
MEMORY = {case.name: case for case in GROWING}


def cpu_seconds() -> float:
    """Give the CPU seconds of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_mib() -> float:
    """Give the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB


def measure(case: Case) -> dict[str, float]:
    """Run a case in this process, as often as it takes for CPU seconds to be told."""
    import numpy  # noqa: F401  (not to be counted as the simulation's memory)

    plan = case.plan().verify()
    order: Any = "plan" if case.algorithm == "multitree" else None
    before, wall, cpu = peak_mib(), time.perf_counter(), cpu_seconds()
    run = hk.simulate(plan, fidelity="packet:mcm", order=order)
    after, runs = peak_mib(), 1
    while cpu_seconds() - cpu < LEAST_S:
        hk.simulate(plan, fidelity="packet:mcm", order=order)
        runs += 1
    return {
        "transfers": len(plan),
        "flit_hops": int(run.link_bytes.sum()) / FLIT,
        "wall": (time.perf_counter() - wall) / runs,
        "cpu": (cpu_seconds() - cpu) / runs,
        "peak_mib": after,
        "grown_mib": after - before,
        "cycles": run.time_ps / 1000,
    }


def in_process_of_its_own(case: Case) -> dict[str, float]:
    """Run a case in a fresh process."""
    command = [sys.executable, __file__, "--measure", case.name]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def spread(values: list[float]) -> str:
    """Give minimum / median / maximum."""
    return " / ".join(
        f"{value:.{4 if value < 0.1 else 2}f}"
        for value in (min(values), statistics.median(values), max(values))
    )


def times(rate: float) -> str:
    """Say how many times BookSim2's rate a rate is, against its most and its least."""
    least, most = BOOKSIM_RATE
    return f"{rate / most:,.0f} to {rate / least:,.0f}"


def row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def head(text: str) -> None:
    names = text.split("; ")
    row(*names)
    row(*(["---"] * len(names)))


def show(cases: dict[str, Case], repeat: int) -> None:
    """Print how fast each case is, and how far from BookSim2."""
    head(
        "all-reduce; transfers; million flit-hops; s; CPU s; million a CPU s; times BookSim2;"
        " MiB; cycles; BookSim2's; off"
    )
    for name, case in cases.items():
        runs = [in_process_of_its_own(case) for _ in range(repeat)]
        first = runs[0]
        rate = first["flit_hops"] / statistics.median(run["cpu"] for run in runs)
        off = ""
        if case.booksim is not None:
            off = f"{first['cycles'] / case.booksim * 100 - 100:+.2f} %"
        row(
            name,
            f"{first['transfers']:,.0f}",
            f"{first['flit_hops'] / 1e6:.3f}",
            spread([run["wall"] for run in runs]),
            spread([run["cpu"] for run in runs]),
            f"{rate / 1e6:,.1f}",
            times(rate),
            f"{max(run['peak_mib'] for run in runs):.0f}",
            f"{first['cycles']:,.0f}",
            "" if case.booksim is None else f"{case.booksim:,}",
            off,
        )


def show_memory(cases: dict[str, Case]) -> None:
    """Print what the simulation adds to a process's peak, for the same transfers of more bytes."""
    head("all-reduce; transfers; million flit-hops; CPU s; MiB before; MiB added")
    for name, case in cases.items():
        run = in_process_of_its_own(case)
        row(
            name,
            f"{run['transfers']:,.0f}",
            f"{run['flit_hops'] / 1e6:,.2f}",
            f"{run['cpu']:.3f}",
            f"{run['peak_mib'] - run['grown_mib']:.1f}",
            f"{run['grown_mib']:.1f}",
        )


def command(case: Case, folder: str) -> tuple[float, float, float]:
    """Give seconds, CPU seconds and peak MiB of ``hocket simulate`` on a case's plan in a file."""
    path = str(Path(folder, "plan.parquet"))
    case.plan().save(path)
    program = "import sys; from hocket.cli import main; main(sys.argv[1:])"
    argv = ["simulate", path, "--fidelity", "packet", "--preset", "mcm", "--json"]
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", program, *argv], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status != 0:
        raise SystemExit(f"failed: hocket simulate of {case.name}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / MIB


def show_commands(repeat: int) -> None:
    """Print what whole commands take."""
    head("`hocket simulate --fidelity packet` of; s; CPU s; MiB")
    for case in COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            walls, cpus, peaks = zip(*(command(case, folder) for _ in range(repeat)), strict=True)
        row(case.name, spread(list(walls)), spread(list(cpus)), f"{max(peaks):.0f}")


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each case")
    parser.add_argument("--commands", action="store_true", help="whole commands instead")
    parser.add_argument("--memory", action="store_true", help="memory against bytes instead")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        cases = {**CASES, **MEMORY}
        print(json.dumps(measure(cases[options.measure])))
    elif options.commands:
        show_commands(options.repeat)
    elif options.memory:
        show_memory(MEMORY)
    else:
        show(CASES, options.repeat)


if __name__ == "__main__":
    main()
