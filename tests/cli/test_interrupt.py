"""Ctrl-C and SIGTERM stop a long command cleanly: what is there, one line, its exit code, no half file."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import hocket as hk

MAIN = "from hocket.cli import main; main()"
# 17 million transfers: seconds of work.
LONG = [
    "plan",
    "all-reduce",
    "--topology",
    "ring:2900",
    "--size",
    "1GB",
    "--algorithm",
    "ring",
    "-o",
    "big.parquet",
]
LONG += ["--bandwidth", "1 GB/s", "--latency", "1 us"]


@contextmanager
def started(argv: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a program; it ends with the test, whatever comes."""
    process = subprocess.Popen(
        [sys.executable, *argv],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(hk.__file__).parent.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def interrupted(folder: Path, argv: list[str], after: float) -> subprocess.CompletedProcess[str]:
    """Run a command and interrupt it that long after it has begun to work."""
    begun = "import sys; sys.stderr.write('@'); sys.stderr.flush(); "
    with started(["-c", MAIN.replace("main()", begun + "main()"), *argv], folder) as process:
        assert process.stderr is not None
        assert process.stderr.read(1) == "@"
        time.sleep(after)
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        out, err = process.communicate(timeout=60)
        assert time.monotonic() - sent < 10.0
        return subprocess.CompletedProcess(argv, process.returncode, out, err)


@pytest.mark.parametrize("after", [0.2, 0.8])
@pytest.mark.parametrize("older", [False, True])
def test_an_interrupted_plan_leaves_no_half_file(tmp_path: Path, after: float, older: bool) -> None:
    if older:
        (tmp_path / "big.parquet").write_text("the file that was there")
    run = interrupted(tmp_path, LONG, after)
    assert (run.returncode, run.stdout) == (130, "")
    expected = "hocket: about 16,814,200 transfers: 4.204 GB of memory and 67 s"
    assert [each.split(";")[0] for each in run.stderr.splitlines()][-2:] in (
        [expected, "hocket: stopped"],
        ["hocket: stopped"],
    )
    assert [path.name for path in tmp_path.iterdir()] == (["big.parquet"] if older else [])
    if older:
        assert (tmp_path / "big.parquet").read_text() == "the file that was there"


def test_an_interrupt_while_writing_leaves_no_half_file(tmp_path: Path) -> None:
    """The writing itself, at a time that does not depend on the machine's speed."""
    script = """
import os, signal, sys
import hocket as hk
from hocket.plans import parquet as plan_file
topology = hk.topology.ring(600, bandwidth="1 GB/s", latency="1 us")
plan = hk.plan("all-reduce", topology, size="1 GB", algorithm="ring", chunks=4)
rows = plan_file.rows_of
def stop(*args):
    assert any(name.endswith(".part") for name in os.listdir())
    os.kill(os.getpid(), signal.SIGINT)
    return rows(*args)
plan_file.rows_of = stop
try:
    plan.save("big.parquet")
except KeyboardInterrupt:
    print(sorted(os.listdir()))
"""
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(hk.__file__).parent.parent)},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (run.stdout, run.stderr) == ("[]\n", "")


@pytest.mark.parametrize("older", [False, True])
def test_an_interrupt_leaves_no_half_folder(tmp_path: Path, older: bool) -> None:
    if older:
        (tmp_path / "made").mkdir()
    script = """
import os, signal, time
from pathlib import Path
from hocket.cli.interrupt import guard
from hocket.files.atomic import replacing_folder
guard(signal.getsignal(signal.SIGINT))
with replacing_folder(Path("made"), lambda name: True) as made:
    (made / "half.json").write_text("half")
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
"""
    with started(["-c", script], tmp_path) as process:
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "hocket: stopped\n")
    assert [path.name for path in tmp_path.iterdir()] == ["made"] * older


def test_an_interrupted_comparison_of_trainings_draws_nothing(tmp_path: Path) -> None:
    argv = ["train", "--compare", "transformer", "-t", "themis-3d-homo", "--search", "4", "-q"]
    run = interrupted(tmp_path, [*argv, "--plot", "x.png"], 2.0)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "hocket: stopped\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("after", [0.3, 1.5])
def test_an_interrupted_training_writes_nothing(tmp_path: Path, after: float) -> None:
    options = ["-t", "themis-2d", "--parallel", "dp=1024,micro-batches=32", "--iterations", "200"]
    files = ["--timeline", "run.png", "--perfetto", "run.json"]
    run = interrupted(tmp_path, ["train", "resnet152", *options, *files], after)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "hocket: stopped\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("older", [False, True])
def test_what_python_cannot_interrupt_is_ended_all_the_same(tmp_path: Path, older: bool) -> None:
    """One instruction that lasts for ever, in the midst of writing a file."""
    script = """
import collections, itertools, sys
from pathlib import Path
import hocket.cli
from hocket.files.atomic import replacing
def work(argv):
    with replacing(Path("big.parquet")) as temporary:
        temporary.write_text("half")
        sys.stderr.write("@"); sys.stderr.flush()
        collections.deque(itertools.count(), maxlen=0)
    return 0
hocket.cli.run = work
hocket.cli.main([])
"""
    if older:
        (tmp_path / "big.parquet").write_text("the file that was there")
    with started(["-c", script], tmp_path) as process:
        assert process.stderr is not None
        assert process.stderr.read(1) == "@"
        assert [path.suffix for path in tmp_path.iterdir()].count(".part") == 1
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (130, "hocket: stopped\n")
    assert [path.name for path in tmp_path.iterdir()] == ["big.parquet"] * older


@pytest.mark.slow
def test_a_second_ctrl_c_changes_nothing(tmp_path: Path) -> None:
    with started(["-m", "hocket", *LONG], tmp_path) as process:
        time.sleep(2.0)
        for _ in range(20):
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    # What it takes is said first, if it has come so far.
    assert re.fullmatch("(hocket: about .*\n)?hocket: stopped\n", errors)
    assert list(tmp_path.iterdir()) == []


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    """As below ``nohup``, or in the background of a script."""
    script = "import os, signal; signal.signal(signal.SIGINT, signal.SIG_IGN); os.write(2, b'@'); "
    with started(["-c", script + MAIN, "plan", "--list"], tmp_path) as process:
        assert process.stderr is not None
        assert process.stderr.read(1) == "@"
        for _ in range(5):
            time.sleep(0.05)
            process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert "halving-doubling" in out


def test_the_module_is_the_command() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "hocket", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"hocket {hk.__version__}\n"


# Stops itself as soon as it has noted something to print.
NOTED = """
import os, signal, sys
from hocket import _core
from hocket.cli import main
keep, noted, number = _core.interrupt.so_far, [], getattr(signal, sys.argv.pop(1))
def so_far(text):
    keep(text)
    noted.append(text)
    if len(noted) == 1:
        os.kill(os.getpid(), number)
_core.interrupt.so_far = so_far
main()
"""
RING = ["-t", "ring:4@25GB/s,1us"]
SWEEP = """
command: compare
grid:
  collective: [all-reduce]
  topology: ["ring:4"]
  bandwidth: [25 GB/s]
  latency: [1 us]
  size: [1 MB, 2 MB]
"""
PRICES = """
costs:
  link: {bandwidth: "2 per GB/s"}
  switch: {bandwidth: "1 per GB/s"}
"""
BOUGHT = ["--npus", "4", "-s", "1MB", "--costs", "prices.yml", "--budget", "2000", "--workers", "1"]
STOPPED = {
    "plan": (["plan", "all-reduce", *RING, "-s", "1MB", "--no-cache"], "best "),
    "plan, as JSON": (
        ["plan", "all-reduce", *RING, "-s", "1MB", "--no-cache", "-o", "plan.parquet", "--json"],
        '"cut": "signal"',
    ),
    "compare": (["compare", "all-reduce", *RING, "-s", "1MB"], "algorithm"),
    "compare, as JSON": (["compare", "all-reduce", *RING, "-s", "1MB", "--json"], '"algorithm"'),
    "compare, as CSV": (["compare", "all-reduce", *RING, "-s", "1MB", "--csv"], "algorithm,"),
    "compare --front": (["compare", "--front", "all-reduce", *RING], "algorithm"),
    "compare --table": (["compare", "--table", *RING, "-o", "table.json"], "1 KiB"),
    "train": (["train", "alexnet", *RING], ""),
    "train --compare": (["train", "--compare", "alexnet", *RING], "ring"),
    "sweep": (["sweep", "sweep.yml", "-o", "made", "-w", "1"], " points are in made/rows"),
    "sweep design": (["sweep", "design", *BOUGHT], "network"),
}


SIGNALS = [*((name, "SIGTERM", 143) for name in STOPPED), ("plan", "SIGINT", 130)]


@pytest.mark.parametrize(("name", "number", "code"), SIGNALS)
def test_what_is_there_is_printed(name: str, number: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "sweep.yml").write_text(SWEEP)
    (tmp_path / "prices.yml").write_text(PRICES)
    argv, begins = STOPPED[name]
    with started(["-c", NOTED, number, *argv], tmp_path) as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert err.endswith("hocket: stopped\n")
    assert "Traceback" not in err
    assert (begins in out) if begins else not out
    if argv[0] == "plan" and "--json" in argv:
        told, written = json.loads(out), hk.Plan.load(tmp_path / "plan.parquet").verify()
        assert (told["format"], told["file"]) == ("hocket.plan", "plan.parquet")
        assert (told["transfers"], told["time_ps"]) == (len(written), hk.simulate(written).time_ps)
    elif "--json" in argv and begins:
        assert json.loads(out)["format"] == "hocket.stopped"
    if name == "compare --table":
        assert not (tmp_path / "table.json").exists()
