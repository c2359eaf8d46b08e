"""Whole-process figures: each case runs in a process of its own.

``python bench/run.py --all`` prints, for each case, seconds of each stage, transfers per second and the
process's peak memory; ``--repeat N`` gives minimum, median and maximum.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from functools import partial

import hocket as hk

GIB = float(1 << 30)


def three_switches() -> hk.Topology:
    """16 x 8 x 8 NPUs, a switch along each dimension."""
    return hk.topology.product(
        "SW_SW_SW",
        [16, 8, 8],
        bandwidth=["100 GB/s"] * 3,
        latency=["700 ns", "700 ns", "1700 ns"],
    )


def ring(npus: int) -> hk.Topology:
    """Give a two-way ring as ASTRA-sim's reference runs have it."""
    return hk.topology.ring(npus, bandwidth="50 GiB/s", latency="500 ns")


# Name: topology, algorithm, size, chunks.
CASES = {
    "hierarchical-16x8x8-64": (three_switches, "hierarchical", "1 GB", 64),
    "ring-4096": (partial(ring, 4096), "ring", "1 GB", 1),
    "direct-1024-on-ring": (partial(ring, 1024), "direct", "64 MiB", 1),
    "themis-16x8x8-64": (three_switches, "themis", "1 GB", 64),
    "optimal-16x8x8-64": (three_switches, "multirail-optimal", "1 GB", 64),
}
# The cost curve: twice as many NPUs are four times as many transfers; slices are a factor.
CURVE = {
    **{
        f"curve-ring-{n}": (partial(ring, n), "ring", "1 GB", 1)
        for n in (128, 256, 512, 1024, 2048)
    },
    **{f"curve-grid-{k}": (three_switches, "hierarchical", "1 GB", k) for k in (1, 4, 16, 64, 256)},
}


def measure(name: str) -> dict[str, float]:
    """Run one case in this process."""
    topology, algorithm, size, chunks = {**CASES, **CURVE}[name]
    network = topology()
    clock = [time.perf_counter()]
    plan = hk.plan("all-reduce", network, size=size, algorithm=algorithm, chunks=chunks)
    clock.append(time.perf_counter())
    plan.verify()
    clock.append(time.perf_counter())
    run = hk.simulate(plan)
    clock.append(time.perf_counter())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "transfers": len(plan),
        "plan_s": clock[1] - clock[0],
        "verify_s": clock[2] - clock[1],
        "simulate_s": clock[3] - clock[2],
        "total_s": clock[3] - clock[0],
        "peak_gib": peak / GIB,
        "simulated_ns": run.time_ps / 1000,
    }


def in_process_of_its_own(name: str) -> dict[str, float]:
    """Run one case in a fresh process."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure", name], check=True, capture_output=True, text=True
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def demo() -> float:
    """Give the seconds that the two commands of ``make demo`` take."""
    start = time.perf_counter()
    base = ["compare", "all-reduce", "--topology", "dgx1_v100", "--size", "256MB"]
    for more in ([], ["--failed", "gpu0,gpu1"]):
        command = [sys.executable, "-c", "from hocket.cli import main; main()", *base, *more]
        subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def show(name: str, runs: list[dict[str, float]]) -> None:
    """Print a row of Markdown; minimum / median / maximum where there are several runs."""

    def seconds(key: str) -> str:
        values = sorted(run[key] for run in runs)
        if len(values) == 1:
            return f"{values[0]:.3f}"
        return f"{values[0]:.3f} / {statistics.median(values):.3f} / {values[-1]:.3f}"

    def rate(key: str) -> str:
        return f"{runs[0]['transfers'] / statistics.median(run[key] for run in runs) / 1e6:.1f}"

    cells = [
        name,
        f"{runs[0]['transfers']:,.0f}",
        *(seconds(key) for key in ("plan_s", "verify_s", "simulate_s", "total_s")),
        rate("verify_s"),
        rate("simulate_s"),
        f"{max(run['peak_gib'] for run in runs):.2f}",
        f"{runs[0]['simulated_ns']:,.0f}",
    ]
    print(f"| {' | '.join(cells)} |", flush=True)


def plot(medians: dict[str, dict[str, float]], path: str) -> None:
    """Draw seconds against transfers, on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    axes = figure.add_subplot()
    for family, mark in (("ring", "o"), ("grid", "s")):
        runs = [run for name, run in medians.items() if name.startswith(f"curve-{family}")]
        if family == "ring" and "ring-4096" in medians:
            runs.append(medians["ring-4096"])
        transfers = [run["transfers"] for run in runs]
        for stage in ("plan", "verify", "simulate"):
            seconds = [run[f"{stage}_s"] for run in runs]
            axes.loglog(transfers, seconds, marker=mark, label=f"{stage}, {family}")
    axes.loglog([2e4, 4e7], [2e4 / 8e6, 4e7 / 8e6], "k:", label="8 million transfers/s")
    axes.set_xlabel("transfers")
    axes.set_ylabel("seconds, one core")
    axes.legend(frameon=False, fontsize=7)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description="Whole-process figures.")
    parser.add_argument("cases", nargs="*", help=f"any of {', '.join([*CASES, *CURVE])}")
    parser.add_argument("--all", action="store_true", help="every case, the curve and the demo")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each case")
    parser.add_argument("--plot", help="also draw seconds against transfers to this file")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    heads = "case, transfers, plan s, verify s, simulate s, total s, verify M/s, simulate M/s"
    heads = [*heads.split(", "), "peak GiB", "simulated ns"]
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    medians = {}
    for name in [*CASES, *CURVE] if options.all else options.cases:
        runs = [in_process_of_its_own(name) for _ in range(options.repeat)]
        show(name, runs)
        medians[name] = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    if options.plot:
        plot(medians, options.plot)
    if options.all:
        times = sorted(demo() for _ in range(options.repeat))
        print(f"\nboth commands of `make demo`: {times[0]:.2f} to {times[-1]:.2f} s")


if __name__ == "__main__":
    main()
