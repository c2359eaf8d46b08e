"""A run as one self-contained HTML file.

The page is ``page.html`` with a header in JSON and columns in base64. A column is the difference to the
value before it, zigzag-coded and split into byte planes; planes and heat are one raw deflate stream.
"""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hocket.files.atomic import write_text
from hocket.plot.network import layout
from hocket.simulation.run import Run

_BINS = 400
_MAX_CELLS = 8_000_000


def _planes(values: NDArray[Any]) -> list[bytes]:
    """Give the byte planes of a column's differences, lowest bytes first."""
    delta = values.astype(np.int64)
    delta[1:] -= delta[:-1].copy()
    zigzag = ((delta << 1) ^ (delta >> 63)).astype(np.uint64)
    highest = int(zigzag.max(initial=0))
    count = max(1, (highest.bit_length() + 7) // 8)
    return [
        ((zigzag >> np.uint64(8 * plane)) & np.uint64(255)).astype(np.uint8).tobytes()
        for plane in range(count)
    ]


def encode(run: Run) -> tuple[dict[str, Any], bytes]:
    """Give the page's header and its deflated columns; times are in the header's ``unit_ps``.

    Raises
    ------
    SpecError
        If the run was made without ``keep_services``.
    """
    topology, moved = run.topology, run.plan.transfers
    start, end = run.start_ps, run.end_ps
    unit = max(1, int(np.gcd.reduce(np.concatenate([start, end]), initial=0)))
    columns = {
        "start": start // np.uint64(unit),
        "length": (end - start) // np.uint64(unit),
        "src": moved.src,
        "dst": moved.dst,
        "chunk": moved.chunk,
        "count": moved.chunk_count,
        "op": moved.op,
        "wait": moved.wait,
    }
    bins = max(1, min(_BINS, _MAX_CELLS // max(topology.link_count, 1)))
    heat = np.ceil(np.clip(run.heat(bins), 0, 1) * 255).astype(np.uint8)
    planes = {name: _planes(values) for name, values in columns.items()}
    bound = run.lower_bound
    header = {
        "title": f"{run.collective.name} on {topology.name}",
        "algorithm": run.plan.algorithm,
        "time_ps": run.time_ps,
        "bound_ps": bound.time_ps,
        "witness": bound.witness,
        "unit_ps": unit,
        "rows": len(moved),
        "bins": bins,
        "columns": [[name, len(each)] for name, each in planes.items()],
        "npus": topology.npu_count,
        "names": list(topology.device_names),
        "places": np.round(layout(topology), 4).tolist(),
        "links": np.column_stack([topology.link_src, topology.link_dst]).tolist(),
    }
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    raw = b"".join(plane for each in planes.values() for plane in each) + heat.tobytes()
    return header, packer.compress(raw) + packer.flush()


def write_page(run: Run, path: Path) -> None:
    """Write a page that shows a run; the same run gives the same bytes.

    Raises
    ------
    SpecError
        If the run was made without ``keep_services``, or the file cannot be written.
    """
    header, blob = encode(run)
    text = json.dumps(header, separators=(",", ":")).replace("<", "\\u003c")
    shell = (Path(__file__).parent / "page.html").read_text(encoding="utf-8")
    before, after = shell.split("@HEADER@")
    between, last = after.split("@COLUMNS@")
    write_text(path, before + text + between + base64.b64encode(blob).decode() + last)
