"""Published training runs: the machines and programs that they ran on, and tables of runs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hocket.errors import SpecError
from hocket.files.complaint import shown_path
from hocket.files.raw import read_bytes, read_text
from hocket.profiles.hardware import Hardware
from hocket.throughput.job import Job
from hocket.throughput.machine import Machine
from hocket.throughput.stack import STACKS, Stack
from hocket.training.parallel import Parallel
from hocket.units import shown
from hocket.workload.accelerators import accelerator
from hocket.workload.transformers import Transformer

__all__ = ["COLUMNS", "MACHINES", "PublishedRun", "load_runs", "read_runs", "run_of"]

_SHIPPED = Path(__file__).parent / "training_measured" / "runs.csv"
_G = 1e9
_MESH = {2: 25 * _G, 4: 100 * _G}
"""Of the first two and the first four V100 of a hybrid cube mesh: one NVLink, and four."""

MACHINES = {
    "dlperf": Machine(accelerator("v100"), Hardware(150 * _G, 12.5 * _G), 0.78, 0.64, groups=_MESH),
    "mosaic-a100-40gb": Machine(accelerator("a100-40gb"), Hardware(300 * _G, 200 * _G)),
    "mosaic-a100-80gb": Machine(accelerator("a100"), Hardware(300 * _G, 200 * _G)),
    "mosaic-h100": Machine(accelerator("h100"), Hardware(450 * _G, 400 * _G)),
    "selene": Machine(accelerator("a100"), Hardware(300 * _G, 200 * _G)),
    "jean-zay-a100": Machine(accelerator("a100"), Hardware(300 * _G, 50 * _G)),
    "jean-zay-v100": Machine(accelerator("v100"), Hardware(150 * _G, 50 * _G, npus=4), 0.78),
    "h100": Machine(accelerator("h100"), Hardware(450 * _G, 400 * _G)),
    "h100-500w": Machine(accelerator("h100"), Hardware(450 * _G, 400 * _G), power=500 / 700),
    "h200": Machine(accelerator("h200"), Hardware(450 * _G, 400 * _G)),
    "b200": Machine(accelerator("b200"), Hardware(900 * _G, 400 * _G)),
    "gb200": Machine(accelerator("gb200"), Hardware(900 * _G, 3600 * _G, npus=72)),
    "gb300": Machine(accelerator("gb300"), Hardware(900 * _G, 7200 * _G, npus=72)),
    "vela-a100": Machine(accelerator("a100"), Hardware(300 * _G, 50 * _G)),
    "vela-h100": Machine(accelerator("h100"), Hardware(450 * _G, 100 * _G)),
    "a3-mega": Machine(accelerator("h100"), Hardware(450 * _G, 200 * _G)),
}
"""By name; bandwidths by the sources and by public specifications, shares of links by
docs/machines-accuracy.md."""

COLUMNS = (
    "set",
    "model",
    "machine",
    "stack",
    "layers",
    "hidden",
    "heads",
    "kv_heads",
    "feed_forward",
    "gated",
    "vocabulary",
    "sequence",
    "dp",
    "tp",
    "pp",
    "cp",
    "interleave",
    "zero",
    "batch",
    "micro_batch",
    "recompute",
    "sequence_parallel",
    "precision",
    "iteration_s",
    "source",
)
"""Of a table of runs. ``kv_heads`` and ``feed_forward`` may be empty; so may ``interleave`` and
``micro_batch``, where the source does not state them."""
_TRUE = ("1", "true", "yes")
_PUBLISHERS = {
    "mpt": "llm-foundry",
    "dlperf": "DLPerf",
    "megatron-bridge": "Megatron-Bridge",
    "dgxc": "DGX Cloud",
    "fms-fsdp": "fms-fsdp",
    "gpu-recipes": "gpu-recipes",
    "narayanan": "Narayanan et al.",
    "bloom": "BigScience",
    "jean-zay": "BigScience",
}
"""By how names of sets begin; another set is its own."""


@dataclass(frozen=True)
class PublishedRun:
    """A run that somebody measured.

    Attributes
    ----------
    set
        Which runs belong together: one program on one machine.
    name
        Of the model.
    job
        What was trained; what is not stated is assumed.
    machine
        On what.
    stack
        By which program.
    seconds
        Of an iteration, measured.
    unstated
        Which of ``"micro_batch"`` and ``"interleave"`` the source does not state.
    source
        Where it was published.
    """

    set: str
    name: str
    job: Job
    machine: Machine
    stack: Stack
    seconds: float
    unstated: tuple[str, ...] = ()
    source: str = ""

    @property
    def jobs(self) -> list[Job]:
        """Return the job, or where micro-batches are not stated one with each usual size."""
        if "micro_batch" not in self.unstated:
            return [self.job]
        return list(self.job.with_usual_parts()) or [self.job]

    @property
    def publisher(self) -> str:
        """Who published it: sources that are left out together."""
        return next((who for key, who in _PUBLISHERS.items() if self.set.startswith(key)), self.set)

    @property
    def npus(self) -> int:
        """NPUs that took part."""
        return self.job.parallel.npus

    @property
    def tflops(self) -> float:
        """Teraflops an NPU reached, recomputation not counted."""
        return self.job.flops / (self.seconds * self.npus) * 1e-12


def load_runs(data: Path | None = None) -> tuple[list[PublishedRun], list[str]]:
    """Read the runs that are shipped, and those of a folder; and what of it could not be read, and why.

    A folder's tables (``.csv``) have the columns of :data:`COLUMNS`; surveys of what sources print, with a
    column ``tflops_per_gpu``, are read as well (:mod:`hocket_studies.training_surveys`).

    Raises
    ------
    SpecError
        If the folder has no table, or one that cannot be read.
    """
    runs = read_runs(_SHIPPED)
    if data is None:
        return runs, []
    if not data.is_dir():
        raise SpecError("--data", f"{shown_path(data)} is not a folder", "name one with tables")
    from hocket_studies.training_surveys import is_survey, read_survey

    refused: list[str] = []
    found = False
    known = {_key(run) for run in runs}
    for path in sorted(data.glob("*.csv")):
        if is_survey(path):
            more, why = read_survey(path)
            refused += why
        elif _is_table(path):
            more = read_runs(path)
        else:
            continue
        found = True
        runs += [run for run in more if _key(run) not in known]
    if not found:
        wrong = f"{shown_path(data)} has no table of training runs"
        raise SpecError("--data", wrong, f"give one with the columns {', '.join(COLUMNS[:4])}, ...")
    return runs, refused


def _key(run: PublishedRun) -> tuple[object, ...]:
    return run.set, repr(run.job), f"{run.seconds:.4g}"


def _is_table(path: Path) -> bool:
    lines = read_bytes(path, "a table of training runs").decode("utf-8", errors="replace")
    head = next(_content(io.StringIO(lines)), "")
    return {"set", "layers", "iteration_s"} <= set(head.strip().split(","))


def _content(lines: Iterable[str]) -> Iterator[str]:
    return (line for line in lines if line.strip() and not line.startswith("#"))


def read_runs(path: Path) -> list[PublishedRun]:
    """Read a table of runs.

    Raises
    ------
    SpecError
        Naming file, line and column of what is wrong.
    """
    text = read_text(path, "a table of training runs")
    numbered = [
        (number, line)
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.startswith("#")
    ]
    rows = csv.DictReader(line for _, line in numbered)
    missing = [name for name in COLUMNS[:-1] if name not in (rows.fieldnames or ())]
    if missing:
        raise SpecError(
            missing[0], "there is no such column", "add it", f"{shown_path(path)}: line 1"
        )
    found = []
    for row, (number, _) in zip(rows, numbered[1:], strict=False):
        try:
            found.append(run_of({key: value or "" for key, value in row.items() if key}))
        except SpecError as error:
            where = f"{shown_path(path)}: line {number}"
            raise SpecError(None, str(error), None, where) from None
    return found


def run_of(row: dict[str, str]) -> PublishedRun:
    """Make a run of the cells of its row.

    Raises
    ------
    SpecError
        Naming the column that is wrong.
    """
    if row["machine"] not in MACHINES:
        raise SpecError(
            "machine", f"there is no {shown(row['machine'])}", f"use {', '.join(MACHINES)}"
        )
    if row["stack"] not in STACKS:
        raise SpecError("stack", f"there is no {shown(row['stack'])}", f"use {', '.join(STACKS)}")
    unstated = tuple(name for name in ("micro_batch", "interleave") if not row[name])
    model = Transformer(
        layers=_whole(row, "layers"),
        hidden=_whole(row, "hidden"),
        heads=_whole(row, "heads"),
        sequence=_whole(row, "sequence"),
        vocabulary=_whole(row, "vocabulary"),
        kv_heads=_whole(row, "kv_heads") if row["kv_heads"] else None,
        feed_forward=_whole(row, "feed_forward") if row["feed_forward"] else None,
        gated=row["gated"].lower() in _TRUE,
    )
    spread = Parallel(
        dp=_whole(row, "dp"),
        tp=_whole(row, "tp"),
        pp=_whole(row, "pp"),
        cp=_whole(row, "cp"),
        zero=_whole(row, "zero"),
    )
    if row["interleave"]:
        spread = replace(spread, interleave=_whole(row, "interleave"))
    elif spread.pp > 1:
        spread = replace(spread, interleave=_least_interleaved(model.layers // spread.pp))
    job = Job(
        model=model,
        parallel=spread,
        batch=_whole(row, "batch"),
        micro_batch=_whole(row, "micro_batch") if row["micro_batch"] else 1,
        recompute=row["recompute"],
        sequence_parallel=row["sequence_parallel"].lower() in _TRUE,
        precision=row["precision"],
    )
    return PublishedRun(
        row["set"],
        row["model"],
        job,
        MACHINES[row["machine"]],
        STACKS[row["stack"]],
        _seconds(row["iteration_s"]),
        unstated,
        row.get("source", ""),
    )


def _least_interleaved(layers: int) -> int:
    """Return into how few groups a stage's layers can be cut, assumed if the source does not say."""
    return next((groups for groups in range(2, layers + 1) if layers % groups == 0), 1)


def _whole(row: dict[str, str], name: str) -> int:
    text = row[name].strip()
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise SpecError(name, f"{shown(text)} is not a whole number", "give one")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise SpecError("iteration_s", f"{shown(text)} is not a number", "give seconds") from None
    if not 0 < value < 1e9:
        raise SpecError("iteration_s", f"{shown(text)} is no time", "give seconds above 0")
    return value
