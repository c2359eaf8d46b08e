"""How near plans come to the bound on networks of 64 to 256 NPUs with one failure.

``python bench/damaged.py [CASES [SIZE ...]]``: each case draws a network of a family, a dead cable or NPU,
and a kind; ``--first`` is the first seed. ``auto`` plans, and so does each method by name, with as much
work as ``--work`` says. Prints a line per case with the gap of ``auto`` above the bound, its processor
time, and each method that is faster by more than 1 %.
"""

from __future__ import annotations

import argparse
import os
import random
import time

os.environ["HOCKET_CACHE"] = "off"
import hocket as hk
from hocket import _core
from hocket.plans.algorithms import quick
from hocket.plans.choice import fastest
from hocket.plans.planner import make

FAMILIES = (
    "rail:16x8",
    "rail:32x4",
    "torus:16x16",
    "torus:8x8",
    "torus:4x8x8",
    "mesh:12x12",
    "mesh:10x8",
    "clos:8x16x8",
    "fat-tree:8",
    "dragonfly:9x8",
    "dragonfly:17x15",
    "hypercube:7",
    "box:16x8x8",
    "dgx",
)
KINDS = ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "all-to-all")
LINKS = ("25GB/s,700ns", "50GB/s,1us", "100GB/s,500ns")
CLOSE = 1.01
"""What a method by name may take less, to be called equal."""


def damaged(draw: random.Random, family: str) -> tuple[str, str, _core.Topology]:
    """Return a network of a family as text, what failed, and what is left."""
    link = draw.choice(LINKS)
    text = f"{family}@{link}"
    if family.startswith("box"):
        text = f"{family}@300GB/s,700ns@{link}"
    elif family == "dgx":
        text = f"rail:{draw.choice((8, 16, 32))}x8@300GB/s,700ns@50GB/s,1us"
    whole = hk.topology.load(text)
    names = whole.device_names
    while True:
        if draw.random() < 0.3:
            failed = names[draw.randrange(whole.npu_count)]
        else:
            at = draw.randrange(len(whole.link_src))
            failed = f"{names[whole.link_src[at]]},{names[whole.link_dst[at]]}"
        try:
            left = hk.topology.load(text, failed=failed)
            _core.bound(left, hk.collective_on("all-gather", left, size="1MB"))
        except hk.errors.Error:
            continue
        return text, failed, left


def case(seed: int, size: str, work: int, kinds: list[str]) -> float:
    """Plan a case, print what came of it, and return the gap of ``auto``."""
    draw = random.Random(seed)
    family = FAMILIES[seed % len(FAMILIES)]
    text, failed, network = damaged(draw, family)
    kind = draw.choice(kinds)
    collective = hk.collective_on(kind, network, size=size)
    began = time.process_time()
    plan = hk.plan(collective, network)
    took = time.process_time() - began
    assert plan.selection is not None
    chosen = plan.selection
    gap = chosen.time_ps / chosen.bound_ps - 1
    print(
        f"{seed} {kind} of {size} on {text} without {failed}: {chosen.algorithm},"
        f" {chosen.time_ps / 1e6:.2f} us, {gap:.1%} above the bound, {took:.1f} s, ended by {chosen.ended}",
        flush=True,
    )
    for name in quick(kind):
        began = time.process_time()
        try:
            found = fastest(
                make, collective, network, name, hk.PlanOptions(), work=_core.Work(work)
            )
        except (hk.errors.InfeasibleError, hk.errors.SpecError):
            continue
        took = time.process_time() - began
        if found.time_ps is not None and found.time_ps * CLOSE < chosen.time_ps:
            more = chosen.time_ps / found.time_ps - 1
            print(f"  {name}: {more:.1%} faster, {took:.1f} s", flush=True)
    return gap


def main() -> None:
    """Plan all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="?", type=int, default=40)
    parser.add_argument("sizes", nargs="*", default=["8KB", "1MB", "64MB", "1GB"])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--work", type=int, default=400_000_000)
    given = parser.parse_args()
    for size in given.sizes:
        seeds = range(given.first, given.first + given.cases)
        gaps = sorted(case(seed, size, given.work, given.kind or list(KINDS)) for seed in seeds)
        within = sum(gap <= 0.05 for gap in gaps)
        print(f"{size}: {within} of {len(gaps)} within 5 %, the worst {gaps[-1]:.1%}", flush=True)


if __name__ == "__main__":
    main()
