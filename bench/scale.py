"""What planning takes from 64 to 65,536 NPUs: ``python bench/scale.py`` writes the tables of docs/scale.md.

Each case is a process of its own: processor time and memory are those of the whole command. A slope is that
of the logarithm of time over that of NPUs, by least squares over the last three sizes.
"""

from __future__ import annotations

import json
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hocket as hk
from hocket.units import format_size

PAGE = Path(__file__).parent.parent / "docs/scale.md"
SIDES = {64: (8, 8), 256: (16, 16), 1024: (32, 32), 4096: (64, 64), 16384: (128, 128)}
SIDES[65536] = (256, 256)
LINKS = {"bandwidth": "50 GB/s", "latency": "1 us"}
WAYS = {
    "symmetric": ("all-reduce", 65536),
    "auto": ("all-reduce", 65536),
    "auto, an NPU dead": ("all-gather", 4096),
    "trees": ("all-gather", 4096),
    "hierarchical": ("all-reduce", 16384),
    "greedy": ("all-gather", 1024),
}
"""By way of planning: the collective, and the most NPUs that are tried."""
MOST_BOUND = 4096
"""The most NPUs whose bounds are tried."""
STAGES = ("plan", "proof", "simulation", "file")


def torus(npus: int) -> hk.Topology:
    """Return the network of so many NPUs."""
    return hk.topology.torus(*SIDES[npus], **LINKS)


def whole(way: str, kind: str, npus: int) -> dict[str, Any]:
    """Plan by a way as the command does; give the transfers and the gap."""
    name = way.partition(",")[0]
    dead = ["--failed", "npu5"] if "dead" in way else []
    words = [sys.executable, "-m", "hocket", "plan", kind, "-s", "1GB", "-a", name, "--json", "-t"]
    network = f"torus:{'x'.join(map(str, SIDES[npus]))}@50GB/s,1us"
    done = subprocess.run([*words, network, *dead], capture_output=True, text=True, check=True)
    made = json.loads(done.stdout)
    took = made["time_ps"]
    return {"transfers": made["transfers"], "gap": took and took / made["bound_ps"] - 1}


def stages(npus: int) -> dict[str, Any]:
    """Give what each stage of a hierarchical all-reduce in one slice takes [s], and its transfers."""
    network, took = torus(npus), {}
    given = {"size": "1 GB", "algorithm": "hierarchical", "chunks": 1}

    def timed(stage: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        made = work()
        took[stage] = time.process_time() - start
        return made

    with tempfile.TemporaryDirectory() as folder:
        hk.plan("all-reduce", torus(64), **given).save(Path(folder) / "imports.parquet")
        plan = timed("plan", lambda: hk.plan("all-reduce", network, **given))
        timed("proof", plan.verify)
        timed("simulation", lambda: hk.simulate(plan))
        timed("file", lambda: plan.save(Path(folder) / "plan.parquet"))
    return {"transfers": len(plan), **took}


def bounds(npus: int) -> dict[str, Any]:
    """Give what the bounds of three collectives take [s]."""
    network, took = torus(npus), {}
    for kind in ("all-reduce", "all-gather", "all-to-all"):
        collective = hk.collective_on(kind, network, size="1 GB")
        start = time.process_time()
        hk.bound(network, collective)
        took[kind] = time.process_time() - start
    return took


def measured(*case: str) -> dict[str, Any]:
    """Run a case in a process of its own; add its processor time [s] and its memory [bytes]."""
    words = [sys.executable, __file__, *case]
    environment = os.environ | {"HOCKET_CACHE": "off"}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout)
    print(*case, found, file=sys.stderr, flush=True)
    return found


def one(what: str, *rest: str) -> None:
    """Measure one case, and print it."""
    if what == "whole":
        found = whole(rest[0], rest[1], int(rest[2]))
    else:
        found = (stages if what == "stages" else bounds)(int(rest[0]))
    who = resource.RUSAGE_CHILDREN if what == "whole" else resource.RUSAGE_SELF
    used = resource.getrusage(who)
    found |= {"seconds": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss * 1024}
    print(json.dumps(found))


def slope(points: dict[int, float]) -> str:
    """Return the slope of time over NPUs, both as logarithms, of the last three."""
    last = sorted(points.items())[-3:]
    xs, ys = zip(*[(math.log(npus), math.log(max(took, 1e-6))) for npus, took in last], strict=True)
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    rise = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return f"{rise / sum((x - mean_x) ** 2 for x in xs):.1f}"


def row(*cells: object) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def seconds(took: float) -> str:
    """Return a time as it is shown."""
    return f"{took:.2g} s" if took < 10 else f"{took:.0f} s"


def short(count: int) -> str:
    """Return a number of transfers as it is shown."""
    if count < 10**6:
        return f"{count:,}"
    return f"{count / 1e6:.3g} M" if count < 10**9 else f"{count / 1e9:.3g} G"


def planning() -> list[str]:
    """Return the table of whole commands."""
    lines = [
        row("`-a`", "collective", *(f"{npus:,}" for npus in SIDES), "slope"),
        row("---", "---", *["---:"] * (len(SIDES) + 1)),
    ]
    for way, (kind, most) in WAYS.items():
        cells, times = [], {}
        for npus in SIDES:
            if npus > most:
                cells.append("")
                continue
            found = measured("whole", way, kind, str(npus))
            times[npus] = found["seconds"]
            memory = format_size(2 ** round(math.log2(found["memory"])))
            gap = "" if found["gap"] is None else f", {found['gap']:.1%}"
            cells.append(f"{seconds(times[npus])}, {memory}, {short(found['transfers'])}{gap}")
        lines.append(row(way, kind, *cells, slope(times)))
    return lines


def by_stage() -> list[str]:
    """Return the tables of stages and bounds."""
    lines = [
        row("stage", *(f"{npus:,}" for npus in SIDES), "slope"),
        row("---", *["---:"] * (len(SIDES) + 1)),
    ]
    sizes = [npus for npus in SIDES if npus <= WAYS["hierarchical"][1]]
    found = {npus: measured("stages", str(npus)) for npus in sizes}
    counts = [f"{each['transfers']:,}" for each in found.values()]
    lines.append(row("transfers", *counts, "", ""))
    for stage in STAGES:
        took = {npus: each[stage] for npus, each in found.items()}
        lines.append(row(stage, *map(seconds, took.values()), "", slope(took)))
    limits = {npus: measured("bounds", str(npus)) for npus in SIDES if npus <= MOST_BOUND}
    for kind in ("all-reduce", "all-gather", "all-to-all"):
        took = {npus: each[kind] for npus, each in limits.items()}
        lines.append(row(f"bound, {kind}", *map(seconds, took.values()), "", "", slope(took)))
    return lines


def main() -> None:
    """Measure all, and write the tables."""
    tables = {"planning": planning(), "stages": by_stage()}
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in tables.items():
        mark = f"<!-- {name}, by bench/scale.py -->"
        text = re.sub(
            f"{mark}.*?<!-- end -->", "\n".join([mark, *lines, "<!-- end -->"]), text, flags=re.S
        )
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    one(*sys.argv[1:]) if len(sys.argv) > 1 else main()
