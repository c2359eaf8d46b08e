"""Ctrl-C at random moments of every command: it ends at once, in one line, with nothing half-written.

The delays are printed; what is asserted of them is generous, since a machine may be busy. To measure:
``HOCKET_INTERRUPTS=50 python -m pytest -s -m "slow or long" tests/test_interrupt_anywhere.py`` takes 50
moments of each command, and ``HOCKET_INTERRUPTS_WITHIN=30`` takes them from its first 30 seconds.
"""

from __future__ import annotations

import os
import random
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hocket as hk

from .traces import chakra_files as chakra

MOMENTS = int(os.environ.get("HOCKET_INTERRUPTS", "3"))
WITHIN_S = float(os.environ.get("HOCKET_INTERRUPTS_WITHIN", "4"))
AT_MOST_S = 10.0
"""However busy the machine is."""

# It tells when it is there: what happens before (10 to 20 ms of Python's own start) is not ours.
PROGRAM = "import os; from hocket.cli import main; os.write(2, b'@'); main()"
TOO_EARLY = (
    'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n'
    "KeyboardInterrupt\n"
)
"""Where a busy machine lets nothing happen between that and ``main``."""
ON = '--bandwidth "1 GB/s" --latency "1 us"'
TEN = f"-t mesh:10x10 {ON} -s 64MB"
COMMANDS = [
    "--help",
    f"plan all-reduce -t ring:2900 {ON} -s 1GB -a ring -o p.parquet",
    f"plan all-reduce -t mesh:40x40 {ON} -s 1GB -a greedy -o p.parquet",
    f"plan all-reduce -t mesh:32x32 {ON} -s 1GB -a multitree -o p.parquet",
    f"plan all-gather -t mesh:4x3 {ON} -s 64MB -a exact -c 2 -o p.parquet",
    f"plan all-to-all {TEN} -a blind -o p.parquet",
    f"plan all-reduce {TEN} -a auto -o p.parquet",
    f"plan all-gather -t torus:50x50 {ON} -s 64MB -a greedy --timetable-only",
    f"plan all-reduce -t Ring_FC_SW:8x8x8 {ON} -s 1GB -a multirail-optimal -o p.parquet",
    f"compare all-reduce {TEN} --plot p.png",
    f"compare all-reduce -t mesh:1500x1500 {ON} -s 1GB",
    f"compare all-to-all -t fat_tree:8 {ON} -s 1GB -a direct -a greedy",
    f"plan --dimension-only all-reduce -t Ring_FC_SW:8x8x8 {ON} -s 1GB --plot p.png",
    "check long.parquet",
    "simulate long.parquet -o r.parquet --plot p.png",
    "simulate long.parquet --fidelity flow -o r.parquet",
    "simulate long.parquet --fidelity packet -o r.parquet",
    "show mesh.parquet -o p.png",
    "show mesh.parquet --heat -o p.pdf",
    "show mesh.parquet --ten -o p.svg",
    f"topology show torus:60x60x60 {ON}",
    f"topology show clos:100x3000x200 {ON} --json",
    f"topology show fc:7000 {ON}",
    f"topology draw mesh:40x40 {ON} --full -o p.svg",
    "route jobs.yml --fabric clos:32x64 --compare",
    "route jobs.yml --fabric clos:32x64 --scheme ilp",
    "train resnet152 -t themis-2d --parallel dp=1024,micro-batches=32 --iterations 200 --perfetto p.json",
    "train transformer-1t -t themis-3d-homo --timeline p.png",
    "train --compare transformer -t themis-3d-homo --search 4 -q --plot p.png",
    "trace show long",
    f"trace run long -t ring:4 {ON} --perfetto p.json",
    "workload show transformer-1t --json",
    f"topology advise -t Ring_FC_SW:8x8x8 {ON}",
    "reproduce themis",
    "reproduce tacos",
    "reproduce mesh",
    "reproduce mesh --figure 12",
    "reproduce routing",
    "topology show long.yml",
]
SAMPLE = {
    f"plan all-reduce {TEN} -a auto -o p.parquet",  # many algorithms, each in the core
    f"plan all-gather -t mesh:4x3 {ON} -s 64MB -a exact -c 2 -o p.parquet",  # a solver of others
    f"compare all-reduce {TEN} --plot p.png",  # a picture
    "simulate long.parquet --fidelity packet -o r.parquet",  # a file read, and one written
    "route jobs.yml --fabric clos:32x64 --scheme ilp",
    "train resnet152 -t themis-2d --parallel dp=1024,micro-batches=32 --iterations 200 --perfetto p.json",
    f"trace run long -t ring:4 {ON} --perfetto p.json",  # a folder read
    "reproduce tacos",
}
"""A command for each way to work; the others are long tests."""


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that commands read."""
    folder = tmp_path_factory.mktemp("given")
    ring = hk.topology.ring(700, bandwidth="1 GB/s", latency="1 us")
    hk.plan("all-reduce", ring, size="1 GB", algorithm="ring", chunks=1).save(
        folder / "long.parquet"
    )
    mesh = hk.topology.mesh(6, 6, bandwidth="1 GB/s", latency="1 us")
    hk.plan("all-reduce", mesh, size="1 GB", algorithm="multitree", chunks=1).save(
        folder / "mesh.parquet"
    )
    jobs = Path(__file__).parent.parent / "examples" / "jobs.yml"
    (folder / "jobs.yml").write_text(jobs.read_text())
    nodes = [
        chakra.collective(i, chakra.ALL_REDUCE, 1 << 20, data=[i - 1] if i else [])
        for i in range(20_000)
    ]
    chakra.write(folder / "long", [nodes] * 4)
    links = "\n".join(f"  - [n{i}, n{i + 1}, 1 GB/s, 1 us]" for i in range(40_000))
    npus = ", ".join(f"n{i}" for i in range(40_001))
    (folder / "long.yml").write_text(f"name: long\nnpus: [{npus}]\nlinks:\n{links}\n")
    return folder


def interrupt(folder: Path, argv: list[str], after: float) -> tuple[float, int, str]:
    """Run a command and interrupt it then; give how long it goes on [s], its code and its errors."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *argv],
        cwd=folder,
        env={**os.environ, "HOCKET_DATA": str(folder / "data")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stderr is not None
    assert process.stderr.read(1) == "@"
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    began = time.monotonic()
    try:
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        with process:
            pass
    if errors == TOO_EARLY:
        return interrupt(folder, argv, 2 * after)
    return time.monotonic() - began, process.returncode, errors


def test_before_main_there_is_next_to_nothing_to_import() -> None:
    code = (
        "import sys; old = {*sys.modules}; import hocket.cli; print(*sorted({*sys.modules} - old))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # errors are a few classes, which import nothing.
    few = {"__future__", "hocket", "hocket.cli", "hocket.errors"}
    assert set(run.stdout.split()) <= few


@pytest.mark.parametrize("after", [0.005, 0.03, 0.08, 0.15])
def test_ctrl_c_while_python_imports(after: float, tmp_path: Path) -> None:
    delay, code, errors = interrupt(tmp_path, ["plan", "--list"], after)
    assert (code, errors) in [(130, "hocket: stopped\n"), (0, "")]  # a fast machine is done
    assert delay < AT_MOST_S


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(each, marks=pytest.mark.slow if each in SAMPLE else pytest.mark.long)
        for each in COMMANDS
    ],
)
def test_ctrl_c_at_any_moment(
    command: str, given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(command)
    names = {path.name for path in given.iterdir()}
    for path in given.iterdir():
        (tmp_path / path.name).symlink_to(path)
    delays, longest = [], WITHIN_S
    for moment in range(MOMENTS):
        # A third of the moments are while Python imports what the command needs.
        after = draw.uniform(0.0, 0.5 if moment % 3 == 0 else longest)
        delay, code, errors = interrupt(tmp_path, shlex.split(command), after)
        if re.findall('File "([^"]*)"', errors) == ["<string>"]:
            continue  # it had not come to main
        if code == 0:  # it was done before
            longest = min(longest, after)
            for path in tmp_path.iterdir():
                if path.name not in names and path.is_file():
                    path.unlink()
            continue
        assert "Traceback" not in errors, f"{command} after {after:.3f} s: {errors}"
        if code not in (2, -signal.SIGINT):  # refused before, or done: Python goes down
            # What it takes, and how far it is, may have been said before.
            *before, last = errors.splitlines() or [""]
            assert (code, last) == (130, "hocket: stopped"), f"{command} after {after:.3f} s"
            assert all(line.startswith("hocket: ") for line in before), errors
        assert not [path.name for path in tmp_path.rglob("*.part")], f"after {after:.3f} s"
        assert delay < AT_MOST_S, f"{command} after {after:.3f} s"
        delays.append(delay)
    if delays:
        with capsys.disabled():
            middle, most = statistics.median(delays), max(delays)
            print(f"\n{len(delays):3} x median {middle:.3f} s, most {most:.3f} s: {command}")
