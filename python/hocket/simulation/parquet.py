"""Runs as Parquet files: a plan's table with times, and the figures in the schema's metadata."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hocket.errors import Error, SpecError
from hocket.files.atomic import replacing
from hocket.files.parquet import read_tables
from hocket.files.raw import check_json
from hocket.plans.parquet import collective_to_json, load_plan, to_table
from hocket.simulation.options import TransferOptions, fidelity_options

if TYPE_CHECKING:
    from hocket.simulation.run import Run

_KEY = b"hocket.run"
_TIMES = ("start_ps", "end_ps")


def save_run(run: Run, path: Path) -> None:
    """Write a run: the columns of its plan, and ``start_ps`` and ``end_ps``.

    The metadata key ``hocket.run`` holds the figures and how it was simulated, as JSON; the others are the
    plan's, so that the file is a plan as well.

    Raises
    ------
    SpecError
        If the file cannot be written.
    """
    core = run.plan.core
    head = {
        "algorithm": core.algorithm,
        "collective": collective_to_json(core.collective),
        "topology": core.topology.name,
        "fidelity": run.fidelity,
        "options": asdict(run.options),
        "time_ps": run.time_ps,
        "bound_ps": run.lower_bound.time_ps,
        "algbw_bytes_per_s": run.algbw,
        "busbw_bytes_per_s": run.busbw,
        "utilization": run.utilization,
    }
    table = to_table(run.plan)
    for name, times in zip(_TIMES, (run.start_ps, run.end_ps), strict=True):
        table = table.append_column(name, pa.array(times))
    kept = table.schema.metadata or {}
    table = table.replace_schema_metadata({**kept, _KEY: json.dumps(head)})
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def is_run(path: Path) -> bool:
    """Return whether a file is a run, and no plan; False of what cannot be read."""
    try:
        return path.is_file() and _KEY in (pq.read_schema(path).metadata or {})
    except (OSError, pa.ArrowException):
        return False


def load_run(path: Path) -> Run:
    """Read a run that :func:`save_run` wrote: its plan is simulated again, as it was then.

    Raises
    ------
    SpecError
        If the file is no run, has no plan, or its times are not those of its plan.
    """
    from hocket.simulation.run import simulate

    if path.is_file() and not is_run(path):
        right = "runs are what `hocket simulate -o` and run.save write"
        raise SpecError(None, "is not a run, or not a whole one", right, origin=str(path))
    if path.is_file() and b"hocket.plan" not in (pq.read_schema(path).metadata or {}):
        right = "simulate its plan again with -o"
        raise SpecError(None, "is a run of an older version, without its plan", right, str(path))
    plan = load_plan(path)
    try:
        table = read_tables([path], _TIMES)
        check_json(table.schema.metadata[_KEY], None)
        head = json.loads(table.schema.metadata[_KEY])
        options = fidelity_options(str(head["fidelity"]), _keywords(head["options"]))
        times = [table.column(name).to_numpy() for name in _TIMES]
    except Error as error:
        raise error.within(str(path)) from None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, pa.ArrowException):
        right = "write it again with `hocket simulate -o`"
        raise SpecError(None, "is not a whole run", right, origin=str(path)) from None
    run = simulate(plan, fidelity=cast(TransferOptions, options), keep_services=True)
    if not all(map(np.array_equal, times, (run.start_ps, run.end_ps))):
        why = "its times are not those that its plan takes"
        right = "simulate the plan again: another version wrote it, or it was changed"
        raise SpecError(None, why, right, origin=str(path))
    return run


def _keywords(given: dict[str, Any]) -> dict[str, Any]:
    return {str(name): value for name, value in given.items()}
