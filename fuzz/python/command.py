"""The command line in this process: arguments, a line each, in a folder with a few files.

Whatever the arguments: exit code 0, 1 for a plan that is wrong or 2, the last with one line on standard
error; the folder as it was unless the code is 0, and nothing half-written ever.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import warnings
from pathlib import Path

import checks

import hocket as hk
from hocket.cli import run
from hocket.topology import machines

_FOLDER = checks.folder() / "here"
_RING = {"bandwidth": "1 GB/s", "latency": "1 us"}

JOBS = """jobs:
  - {name: a, parameters: 1e6, compute: 1 s, data: 4, iterations: 2}
  - {name: b, parameters: 1e6, compute: 1 s, data: 4, iterations: 2, arrival: 1 s}
"""
NET = """npus: 4
kinds: {fast: {bandwidth: 25 GB/s, latency: 1 us}}
links: [[0, 1, fast], [1, 2, fast], [2, 3, fast], [3, 0, fast]]
"""
MODEL = """layers:
  - {name: conv, input: [8, 8], filter: [3, 3], channels: 3, filters: 4}
  - {name: fc, channels: 64, filters: 10}
"""

_WORDS = """compare plan check simulate show route train algorithms advise run predict import export
    --front --table --tune --live --training --nccl --failures --dimension-only --ten --help-all
    reproduce themis tacos mesh routing topology list show draw trace run workload
    --help -h --version --json --quiet --topology -t --size -s --algorithm -a --chunks -c --npus --root
    --failed --bandwidth --latency --output -o --order --switching --latency-model --fidelity --seed
    --trials --save --list --time-limit --plot --heat --ten --phase --chunk --fabric --scheme --compare
    --timeline --hash --upstream --steps --reroute --parallel -p --npu --batch --precision --iterations
    --perfetto --groups --dependencies --search --out-of-place --slot --unwinding --packets --rank
    all-reduce reduce-scatter all-gather broadcast reduce gather scatter all-to-all custom
    ring direct halving-doubling hierarchical themis-fifo multirail-optimal greedy exact auto blind tto
    double-binary-tree binomial chain pairwise multitree ring-2d bidirectional-ring schedule:s schedule:
    ring:4 line:3 switch:4 fc:4 mesh:3x3 torus:3x3 hypercube:2 clos:2x2 clos:2x2x2 fat_tree:2 fat_tree:4
    dragonfly:2x2 bigraph:2x2 Ring_SW:2x2 Ring_FC_SW:2x2x2 dgx1_v100 mesh:0x4 ring:1 ring:x mesh: x
    plan.parquet text.parquet jobs.yml net.yml model.yml trace trace.0.et groups.json out.parquet out.json
    out.png out.svg nowhere/out.parquet here.yml missing.yml
    1GB/s 1us 1MB 64KB 1B 0B 8000TB -1MB 1 0 2 3 4 -1 1.5 999999999999 1e9 x 0-3 0,1 npu0 npu0,npu1 npu9
    ready plan store-and-forward cut-through overlapped occupying link flow packet dimension copy reduce
    dp=2 dp=2,tp=2 pp=2 a100 h100 themis fifo lifo resnet50 crc32 toeplitz ecmp edge-coloring always never
    spray data all paper table-ii
"""
WORDS: tuple[str, ...] = (
    *_WORDS.split(),
    *(
        "",
        " ",
        "é",
        "\udce9",
        "\x1b[31m",
        "a\tb",
        "1 GB/s",
        "1 us",
        "1 MB",
        "--",
        "-",
        "=",
        "--size=1MB",
    ),
)
"""What arguments may be."""

_OUTSIDE = re.compile(r"(?:^|[=,:]|^-\w)[/~]|\.\.|^file:")
"""A path out of the folder."""
_LONG = {"reproduce", "from-torch", "gpt3-175b", "transformer-1t", "exact", "--watch"}
_NUMBER = re.compile(r"\d+")
_SIZE = re.compile(r"(?:--\w+=)?(\d+)(?:\.\d*)?(?:[eE]\d+)? ?[a-zA-Zµ]+(?:/s)?")
_MAX_NUMBER, _REFUSED = 16, 10**12
_MACHINE = "dgx1_v100"
"""The one that is tried."""


def _make_folder() -> dict[str, tuple[int, int]]:
    shutil.rmtree(_FOLDER, ignore_errors=True)
    _FOLDER.mkdir(parents=True)
    plan = hk.plan("all-reduce", hk.topology.ring(4, **_RING), size="1 MB", algorithm="ring")
    plan.save(_FOLDER / "plan.parquet")
    for name, text in (
        ("jobs.yml", JOBS),
        ("net.yml", NET),
        ("model.yml", MODEL),
        ("text.parquet", "no parquet"),
        ("groups.json", '{"1": [0, 1]}'),
    ):
        (_FOLDER / name).write_text(text)
    traces = Path(__file__).parents[2] / "tests" / "data" / "chakra"
    for rank in range(4):
        shutil.copy(traces / f"all_reduce.{rank}.et", _FOLDER / f"trace.{rank}.et")
    os.environ.update(HOCKET_DATA=str(_FOLDER / "data"), COLUMNS="140", NO_COLOR="1")
    return _listing()


def _listing() -> dict[str, tuple[int, int]]:
    found = sorted(_FOLDER.rglob("*"))
    status = {str(path.relative_to(_FOLDER)): path.stat() for path in found if path.is_file()}
    return {name: (each.st_size, each.st_mtime_ns) for name, each in status.items()}


_files: dict[str, tuple[int, int]] = {}


def is_tried(argv: list[str]) -> bool:
    """Whether a command stays in its folder, and is short or must be refused at once."""
    if len(argv) > 24 or _LONG & set(argv) or any("\0" in each for each in argv):
        return False
    if any(_OUTSIDE.search(each) for each in argv):
        return False
    sizes = [match for match in map(_SIZE.fullmatch, argv) if match]
    if "packet" in argv and any(int(size[1][:400]) > 1 for size in sizes):
        return False
    if any(machines.known(word) for word in argv if word != _MACHINE):
        return False
    others = [word for word in argv if not _SIZE.fullmatch(word) and word != _MACHINE]
    numbers = [int(each[:400]) for word in others for each in _NUMBER.findall(word)]
    return not any(_MAX_NUMBER < number < _REFUSED for number in numbers)


def command(data: bytes) -> None:
    """Run a command."""
    argv = data.decode("utf-8", "surrogateescape").split("\n")
    if is_tried(argv):
        check(argv)


def check(argv: list[str]) -> None:
    """Run these arguments and look at what is printed and written."""
    before = _files or _files.update(_make_folder()) or _files
    out, err = io.StringIO(), io.StringIO()
    here = Path.cwd()
    os.chdir(_FOLDER)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("error")
            code = run(argv)
    finally:
        os.chdir(here)
    after = _listing()
    if after != before:
        _files.clear()
    told = err.getvalue()
    assert code in (0, 1, 2), f"exit code {code}"
    assert "Traceback" not in told, told
    assert not any(name.endswith(".part") for name in after), after
    if code == 0:
        return
    assert after == before, f"code {code}, and it wrote {set(after) ^ set(before)}"
    is_help = code == 2 and not told and "Usage:" in out.getvalue()
    assert is_help or checks.is_one_line(told), repr(told)
    assert is_help or told.startswith("hocket: "), repr(told)
