"""Pages that show runs: ``page.html``, which is built of the sources in ``explorer``, and what fills it.

A page has a header in JSON and two streams of columns: what the first picture needs, and the transfers,
which the page reads beside it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hocket.errors import SpecError
from hocket.explorer.columns import pack, packed_size
from hocket.explorer.scene import network_of, scene_of, transfers_of
from hocket.files.atomic import write_text

if TYPE_CHECKING:
    from hocket.simulation.run import Run

MOST_RUNS = 4
"""Beside one another."""
MOST_MEMORY = 640_000_000
"""Bytes that the transfers of a page may take when it is open."""
MOST_BYTES = 15_000_000
"""Of a page."""
_LATE = ("wait", "group")
"""Columns that no view needs: a stream of their own behind the others', read when asked for."""


def encode_runs(
    runs: Sequence[Run], titles: Sequence[str] | None = None
) -> tuple[dict[str, Any], bytes, bytes]:
    """Return the header of a page of one run or several, and its two streams.

    The second is two of them, one behind the other: what views ask of transfers, and what they wait for.

    Raises
    ------
    SpecError
        If a run was made without ``keep_services``, or there are none or too many.
    """
    if not 1 <= len(runs) <= MOST_RUNS:
        raise SpecError(
            None, f"{len(runs)} runs do not fit next to each other", f"give 1 to {MOST_RUNS}"
        )
    networks: list[dict[str, Any]] = []
    scenes: list[dict[str, Any]] = []
    first: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    late: dict[str, Any] = {}
    known: list[Any] = []
    for i, run in enumerate(runs):
        number = next((n for n, each in enumerate(known) if each == run.topology), len(known))
        if number == len(known):
            known.append(run.topology)
            head, columns = network_of(run.topology)
            networks.append(head)
            first |= {f"n{number}.{name}": column for name, column in columns.items()}
        head, columns = scene_of(run)
        first |= {f"s{i}.{name}": column for name, column in columns.items()}
        more, moved = transfers_of(run)
        for name, column in moved.items():
            (late if name in _LATE else rest)[f"s{i}.{name}"] = column
        scenes.append({"title": _title(run, i, titles), "network": number, **head, **more})
    note = None
    rest_specs: list[list[Any]] = []
    late_specs: list[list[Any]] = []
    rest_blob = late_blob = b""
    transfers = sum(len(run.plan) for run in runs)
    first_specs, first_blob = pack(first)
    if packed_size(rest | late) <= MOST_MEMORY:
        rest_specs, rest_blob = pack(rest)
        late_specs, late_blob = pack(late)
    size = len(first_blob) + len(rest_blob) + len(late_blob)
    if not rest_specs or 4 * size > 3 * MOST_BYTES:
        note = (
            f"The {transfers:,} transfers are more than a page holds: it shows the use of links over time, "
            "and leaves the single transfers out."
        )
        rest_specs, rest_blob, late_specs, late_blob = [], b"", [], b""
    title = scenes[0]["title"] if len(scenes) == 1 else _common_title(runs)
    header = {
        "format": 1,
        "kind": "runs",
        "title": title,
        "note": note,
        "networks": networks,
        "scenes": scenes,
        "first": first_specs,
        "rest": rest_specs,
        "late": late_specs,
        "rest_bytes": len(rest_blob),
    }
    return header, first_blob, rest_blob + late_blob


def _title(run: Run, number: int, titles: Sequence[str] | None) -> str:
    if titles is not None:
        return titles[number]
    return f"{run.collective.name} by {run.plan.algorithm} on {run.topology.name}"


def _common_title(runs: Sequence[Run]) -> str:
    names = list(dict.fromkeys(run.collective.name for run in runs))
    networks = list(dict.fromkeys(run.topology.name for run in runs))
    return f"{' and '.join(names)} on {' and '.join(networks)}"


def fill(header: dict[str, Any], first: bytes = b"", rest: bytes = b"") -> str:
    """Return a page with its header and streams in it."""
    # Nothing in a name may end the script that the header is in.
    text = json.dumps(header, separators=(",", ":")).replace("<", "\\u003c")
    shell = (Path(__file__).parent / "page.html").read_text(encoding="utf-8")
    start, after_header = shell.split("@HEADER@")
    after_first, rest_of = after_header.split("@FIRST@")
    after_rest, end = rest_of.split("@REST@")
    blobs = [base64.b64encode(blob).decode() for blob in (first, rest)]
    return "".join([start, text, after_first, blobs[0], after_rest, blobs[1], end])


def write_page(
    runs: Run | Sequence[Run], path: Path, *, titles: Sequence[str] | None = None
) -> str | None:
    """Write a page that shows a run, or several on one clock; the same runs give the same bytes.

    Returns
    -------
    str or None
        What was left out, in a sentence.

    Raises
    ------
    SpecError
        If a run was made without ``keep_services``, there are too many, or the file cannot be written.
    """
    several = [runs] if not isinstance(runs, Sequence) else runs
    header, first, rest = encode_runs(several, titles)
    write_text(path, fill(header, first, rest))
    note: str | None = header["note"]
    return note
