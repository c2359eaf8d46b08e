"""The results of a sweep for a page: busbw over size for each network, and time against cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hocket.errors import SpecError
from hocket.explorer.page import fill
from hocket.files.atomic import write_text
from hocket.files.complaint import shown_path
from hocket.sweeps.report import CHOICES, report_sweep
from hocket.sweeps.run import read_manifest, read_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from hocket.sweeps.report import SweepReport

MOST_GROUPS = 400
"""Of a page: networks and tasks between which it switches."""
MOST_POINTS = 4000
"""Of the cloud of times and costs."""


def study_page(folder: Path) -> dict[str, Any]:
    """Return the header of a page of a sweep's results.

    Raises
    ------
    SpecError
        If the folder has no sweep, or one that has neither sizes and bus bandwidths nor costs.
    """
    found = report_sweep(folder)
    data = read_rows(folder)
    keys = [str(key) for key in read_manifest(folder)["keys"]]
    good = data.filter(data.column(found.measure).is_valid())
    groups, left_out = _groups(good, keys, found)
    front = _front(good, found)
    if not groups and front is None:
        raise SpecError(
            None,
            "the sweep has neither bus bandwidths of sizes nor costs to draw",
            "give costs: in it, or see `hocket sweep report`",
            origin=shown_path(folder),
        )
    notes = []
    if found.failed:
        notes.append(f"{found.failed:,} of {found.points:,} points failed and are not shown.")
    if found.missing:
        notes.append(f"{found.missing:,} of {found.points:,} points were not run yet.")
    if left_out:
        notes.append(f"{left_out:,} more networks and tasks are not in this page.")
    first = groups[0] if groups else {"factor": 1, "lines": [], "bound": [], "best": []}
    return {
        "format": 1,
        "kind": "sweep",
        "title": f"Sweep of {found.points:,} points: {found.command}",
        "note": " ".join(notes) or None,
        "nccl": [],
        **{name: first[name] for name in ("factor", "lines", "bound", "best")},
        "groups": groups,
        "front": front,
    }


def write_study(folder: Path, path: Path) -> None:
    """Write a page of a sweep's results; whole or not at all."""
    write_text(path, fill(study_page(folder)))


def _groups(
    good: pa.Table, keys: Sequence[str], found: SweepReport
) -> tuple[list[dict[str, Any]], int]:
    """Return the lines of each network and task, and how many of these there is no room for."""
    needed = ("size", "busbw_bytes_per_s", "time_ps", "bound_ps")
    if not set(needed) <= set(good.column_names) or not len(good):
        return [], 0
    line = "algorithm" if "algorithm" in found.by or "algorithm" in keys else "planned_by"
    if line not in good.column_names:
        line = "planned_by"
    apart = [key for key in found.by if key not in ("size", line) and key not in CHOICES]
    best = good.group_by([*apart, line, "size"], use_threads=False).aggregate(
        [("time_ps", "min"), ("busbw_bytes_per_s", "max"), ("bound_ps", "min")]
    )
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in best.to_pylist():
        groups.setdefault(tuple(row[key] for key in apart), []).append(row)
    made = [
        _group(", ".join(str(value) for value in name if value is not None) or "all", rows, line)
        for name, rows in list(groups.items())[:MOST_GROUPS]
    ]
    return made, max(0, len(groups) - MOST_GROUPS)


def _group(name: str, rows: list[dict[str, Any]], line: str) -> dict[str, Any]:
    lines: dict[str, list[list[float]]] = {}
    bound: dict[int, int] = {}
    least: dict[int, tuple[int, str]] = {}
    factor = 1.0
    for row in sorted(rows, key=lambda row: (row["size"], str(row[line]))):
        size, time, bus = row["size"], row["time_ps_min"], row["busbw_bytes_per_s_max"]
        # Busbw is a factor times size over time, which is the collective's own.
        factor = bus * time / 1e12 / max(size, 1)
        lines.setdefault(str(row[line]), []).append([size, time, bus])
        bound[size] = min(bound.get(size, row["bound_ps_min"]), row["bound_ps_min"])
        least[size] = min(least.get(size, (time, str(row[line]))), (time, str(row[line])))
    return {
        "name": name,
        "factor": factor,
        "lines": [{"name": each, "points": points} for each, points in lines.items()],
        "bound": [[size, ps, factor * size / max(ps, 1) * 1e12] for size, ps in bound.items()],
        "best": [name for _, name in least.values()],
    }


def _label(row: dict[str, Any], columns: Sequence[str]) -> str:
    """Return what a row is in words: texts as they are, numbers behind their keys."""
    given = [(key, row[key]) for key in columns if row.get(key) is not None]
    if row.get("planned_by") == row.get("algorithm"):
        given = [(key, value) for key, value in given if key != "planned_by"]
    return ", ".join(str(v) if isinstance(v, str) else f"{key} {v}" for key, v in given)


def _task(row: dict[str, Any], columns: Sequence[str]) -> str:
    return ", ".join(str(row[key]) for key in columns if row.get(key) is not None)


def _front(good: pa.Table, found: SweepReport) -> dict[str, Any] | None:
    """Return what costs how much and takes how long, and what nothing else beats in both."""
    if not found.pareto_front:
        return None
    scale = 1 if found.measure == "time_ps" else 1e12
    known = list(found.pareto_front[0])
    tasks = known[: known.index("cost")]
    names = [key for key in found.by if key not in tasks]

    priced = good.filter(good.column("cost").is_valid())
    cloud = priced.group_by([*tasks, *names, "cost"], use_threads=False).aggregate(
        [(found.measure, "min")]
    )
    step = -(-len(cloud) // MOST_POINTS)
    points = [
        [row["cost"], row[f"{found.measure}_min"] * scale, _task(row, tasks), _label(row, names)]
        for row in cloud.take(list(range(0, len(cloud), step))).to_pylist()
    ]
    rest = [name for name in known if name not in (*tasks, "cost", found.measure)]
    kept = [
        [row["cost"], row[found.measure] * scale, _task(row, tasks), _label(row, rest)]
        for row in found.pareto_front
    ]
    return {"points": points, "front": kept}
