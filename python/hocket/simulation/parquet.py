"""Runs as Parquet files: a transfer a row, the figures in the schema's metadata."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from hocket.files.atomic import replacing
from hocket.plans.parquet import collective_to_json

if TYPE_CHECKING:
    from hocket.simulation.run import Run


def save_run(run: Run, path: Path) -> None:
    """Write a run: columns ``chunk``, ``chunk_count``, ``src``, ``dst``, ``start_ps``, ``end_ps``.

    The metadata key ``hocket.run`` holds the figures, as JSON.

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
        "time_ps": run.time_ps,
        "bound_ps": run.lower_bound.time_ps,
        "algbw_bytes_per_s": run.algbw,
        "busbw_bytes_per_s": run.busbw,
        "utilization": run.utilization,
    }
    table = pa.table(
        {
            "chunk": core.chunk,
            "chunk_count": core.chunk_count,
            "src": core.src,
            "dst": core.dst,
            "start_ps": run.start_ps,
            "end_ps": run.end_ps,
        }
    )
    table = table.replace_schema_metadata({"hocket.run": json.dumps(head)})
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")
