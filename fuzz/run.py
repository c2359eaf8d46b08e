"""Fuzzes the doors: builds what there is to build, runs every target for a while, and says how often.

``python fuzz/run.py [--seconds N] [--keep] [TARGET ...]``; ``make fuzz`` runs all. What is found lies in
``fuzz/work``, an input that fails in ``fuzz/faults``. ``--keep`` writes the archives of the corpus anew:
the smallest inputs that reach what all reach, and those of faults that were mended (``fault-*``), which
``--fault TARGET FILE`` adds.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

FUZZ = Path(__file__).parent
sys.path.append(str(FUZZ / "python"))

import kept  # noqa: E402

WORK, FAULTS = FUZZ / "work", FUZZ / "faults"
IN_RUST = sorted(path.stem for path in (FUZZ / "fuzz_targets").glob("*.rs"))
TARGETS = sorted({*kept.ARCHIVES, *IN_RUST})

# libFuzzer sees edges by these passes of LLVM, which the stable compiler has too.
COVERAGE = (
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=3",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
)
# For one input: seconds, and MiB of memory.
LIMITS = ("-timeout=60", "-rss_limit_mb=3000")
LONGEST = {"rust": 400, "python": 4000}


def main() -> int:
    """Run what the arguments name; 1 if an input failed."""
    parser = argparse.ArgumentParser(description="Fuzz the doors of hocket.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=60, help="for each target; 60 by default")
    parser.add_argument("--keep", action="store_true", help="make the corpus of the targets anew")
    parser.add_argument(
        "--fault", nargs=2, metavar=("TARGET", "FILE"), help="keep the input of a mended fault"
    )
    given = parser.parse_args()
    if given.fault:
        target, file = given.fault[0], Path(given.fault[1])
        kept.write(target, {**kept.read(target), f"fault-{file.stem}": file.read_bytes()})
        return 0
    unknown = sorted(set(given.targets) - set(TARGETS))
    if unknown:
        parser.error(f"there is no target {unknown[0]!r}; targets are {', '.join(TARGETS)}")
    chosen = given.targets or TARGETS
    programs = built() if set(chosen) & set(IN_RUST) else FUZZ
    failed = []
    for target in chosen:
        command = command_of(target, programs)
        if given.seconds and not fuzz(target, command, given.seconds):
            failed.append(target)
        if given.keep:
            keep(target, command)
    for target in failed:
        print(f"{target}: an input failed; see {FAULTS.relative_to(FUZZ.parent)}", file=sys.stderr)
    return 1 if failed else 0


def built() -> Path:
    """Build the targets in Rust and give their folder."""
    told = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    host = told.partition("host: ")[2].split()[0]
    # With a target named, the flags are not those of build scripts.
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--bins", "--target", host]
    flags = " ".join(COVERAGE)
    subprocess.run(command, cwd=FUZZ, env={**os.environ, "RUSTFLAGS": flags}, check=True)
    return FUZZ / "target" / host / "release"


def command_of(target: str, programs: Path) -> list[str]:
    """Give the program of a target, and its limits."""
    if target in IN_RUST:
        return [str(programs / target), *LIMITS, f"-max_len={LONGEST['rust']}"]
    engine = str(FUZZ / "python" / "engine.py")
    return [sys.executable, engine, target, *LIMITS, f"-max_len={LONGEST['python']}"]


def fuzz(target: str, command: list[str], seconds: int) -> bool:
    """Run a target for a while and print how often it ran; False if an input failed."""
    for folder in (WORK / target, FAULTS):
        folder.mkdir(parents=True, exist_ok=True)
    options = [f"-max_total_time={seconds}", "-print_final_stats=1"]
    options.append(f"-artifact_prefix={FAULTS}/{target}-")
    folders = [str(WORK / target), str(unpacked(target))]
    done = subprocess.run(
        [*command, *options, *folders],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    told = done.stdout.decode(errors="replace")
    count = re.search(r"number_of_executed_units: (\d+)", told)
    edges = re.findall(r"cov: (\d+)", told)
    print(
        f"{target}: {count[1] if count else 0} executions, {edges[-1] if edges else 0} edges",
        flush=True,
    )
    if done.returncode != 0:
        print(told[-4000:], file=sys.stderr)
    return done.returncode == 0


def unpacked(target: str) -> Path:
    """Write the inputs of a target's archive into a folder, for engines that read folders."""
    folder = WORK / f"{target}.kept"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, data in kept.read(target).items():
        (folder / name).write_bytes(data)
    return folder


def keep(target: str, command: list[str]) -> None:
    """Write a target's archive anew."""
    merged = WORK / f"{target}.merged"
    shutil.rmtree(merged, ignore_errors=True)
    merged.mkdir(parents=True)
    given = [str(each) for each in (unpacked(target), WORK / target) if each.is_dir()]
    if target in IN_RUST:
        # By edges alone: counters would keep ten times as many.
        merge = [*command, "-merge=1", "-use_counters=0", str(merged), *given]
    else:
        merge = [sys.executable, str(FUZZ / "python" / "smallest.py"), target, str(merged), *given]
    subprocess.run(merge, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    faults = {name: data for name, data in kept.read(target).items() if name.startswith("fault-")}
    smallest = {path.name: path.read_bytes() for path in merged.iterdir()}
    kept.write(target, {**smallest, **faults})
    print(f"{target}: {len({**smallest, **faults})} inputs kept")


if __name__ == "__main__":
    sys.exit(main())
