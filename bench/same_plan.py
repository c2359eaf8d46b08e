"""Whether a command makes the same plan however busy the machine is: ``python bench/same_plan.py [RUNS]``.

Each case runs so many times alone and as often beside four spinning processes, on one core and on two.
A run's hash is that of the JSON that it prints, without times that were measured, and of the file that it
writes. Prints a line per case with its hashes; ends with code 1 if a case has several.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

JOBS = Path(__file__).parent.parent / "examples/jobs.yml"
CASES = (
    "plan all-reduce -t mesh:2x2@25GB/s,700ns -s 1MB",
    "plan all-gather -t torus:6x6@50GB/s,1us -s 64MB --failed npu5",
    "plan reduce-scatter -t rail:3x4@50GB/s,1us -s 64MB --failed npu0,rail0 --effort low -o out.parquet",
    "plan all-gather -a trees -t clos:4x4x2@50GB/s,1us -s 64MB --failed spine0,tor1 -o out.parquet",
    "plan all-reduce -t rail:2x2@50GB/s,1us -s 16MB --process-groups dp=2,tp=2 --effort low -o out.parquet",
    "plan all-to-all -t dragonfly:9x8@25GB/s,700ns -s 16MB --effort low",
    "plan all-reduce -t torus:16x32@50GB/s,1us -s 1GB --failed npu0,npu1",
    "plan all-reduce -t torus:64x64@50GB/s,1us -s 1GB",
    "compare all-reduce -t rail:3x4@50GB/s,1us -s 16MB --failed npu3",
    f"route {JOBS} -f clos:32x64 --seed 3",
)
SPINNING = 4
MEASURED = ("elapsed_ps", "routing_elapsed_ps")
"""Keys of times that were measured."""


@contextmanager
def beside(spinning: int, cores: set[int]) -> Iterator[None]:
    """Stay on some cores, beside processes there that never pause."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    spin = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(spin) for _ in range(spinning)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()
        os.sched_setaffinity(0, before)


def told(value: Any) -> Any:
    """Return values of JSON without times that were measured."""
    if isinstance(value, list):
        return [told(each) for each in value]
    if isinstance(value, dict):
        return {key: told(each) for key, each in value.items() if key not in MEASURED}
    return value


def digest(case: str) -> str:
    """Run a command in a folder of its own, and hash what it prints and writes."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "hocket", *shlex.split(case), "--json"]
        environment = os.environ | {"HOCKET_CACHE": "off"}
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, check=True)
        hashed = hashlib.sha256(json.dumps(told(json.loads(done.stdout))).encode())
        written = Path(folder) / "out.parquet"
        if written.exists():
            hashed.update(written.read_bytes())
        return hashed.hexdigest()[:12]


def main() -> int:
    """Run all cases, and return whether one has several hashes."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    cores = sorted(os.sched_getaffinity(0))
    has_others = False
    for case in CASES:
        found: list[Counter[str]] = []
        for some in (cores[:1], cores[:2]):
            for spinning in (0, SPINNING):
                with beside(spinning, set(some)):
                    found.append(Counter(digest(case) for _ in range(runs)))
        is_same = len(set().union(*found)) == 1
        has_others |= not is_same
        print("same" if is_same else "OTHER", case, *map(dict, found), flush=True)
    return has_others


if __name__ == "__main__":
    sys.exit(main())
