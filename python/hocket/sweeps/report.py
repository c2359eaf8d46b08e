"""The result of a sweep: the fastest of each group, the failed ones and why, and time against cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

from hocket._checks import did_you_mean, list_of, path_of
from hocket._moved import formerly
from hocket._results import HIDDEN, Result, TableResult, said
from hocket.errors import SpecError
from hocket.files.complaint import shown_path
from hocket.sweeps.run import MANIFEST, read_manifest, read_rows
from hocket.units import shown

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


CHOICES = (
    *("algorithm", "chunks", "chunk_size", "routing", "seed", "unwind", "trials", "window", "slot"),
    *("effort", "time_limit", "parallel", "scheme", "micro_batch", "recompute", "bucket"),
)
"""Keys whose best value a user is free to choose: a table has the best, unless it is asked for them.

The seed of ``route`` is none of them: it draws places and hashes, which nobody chooses.
"""
_NETWORKS = ("topology", "bandwidth", "latency", "groups", "fabric")
"""Keys of networks: they are alternatives if a table that names its keys leaves them out."""
_TASKS = ("collective", "size", "workload", "jobs", "batch", "samples", "sequence")
"""Keys that say what is to be done: a front is of one of each."""
_MEASURES = ("time_ps", "time_s")
_MOST_ERRORS = 20


Cell: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True)
class SweepError(Result):
    """The fault."""

    error: str
    points: int


def _told(errors: tuple[tuple[str, int], ...]) -> list[SweepError]:
    return [SweepError(*each) for each in errors]


def _cells(rows: tuple[dict[str, Any], ...]) -> list[dict[str, Cell]]:
    return list(rows)


@dataclass(frozen=True, repr=False)
class SweepReport(TableResult):
    """The result of a sweep.

    Attributes
    ----------
    command
        What was swept.
    points, rows, failed
        How many there are; of failed points the rows say why.
    missing
        Points that were not run yet.
    errors
        What went wrong, and at how many points; the most frequent first.
    measure
        The column of times: ``time_ps``, or ``time_s`` of predictions.
    by
        Keys of the table.
    table
        A row for each group: its keys, how many points ran and failed, the least, median and largest time,
        and what the fastest is.
    pareto_front
        What no other row beats in both time and cost, the cheapest first; empty where nothing says what
        networks cost.
    cloud
        Costs and times of all rows that have both, for pictures.
    """

    command: str
    points: int
    rows: int
    failed: int
    missing: int
    errors: tuple[tuple[str, int], ...] = field(metadata=said(of=_told))
    measure: str
    by: tuple[str, ...]
    table: tuple[dict[str, Any], ...] = field(metadata=said(of=_cells))
    pareto_front: tuple[dict[str, Any], ...] = field(metadata=said("front", of=_cells))
    cloud: tuple[NDArray[np.float64], NDArray[np.float64]] = field(metadata=HIDDEN)

    front = formerly("pareto_front")

    def _rows(self) -> list[dict[str, Any]]:
        return list(self.table)

    def __repr__(self) -> str:
        return (
            f"<SweepReport of {self.points} points: {len(self.table)} groups, {self.failed} failed>"
        )

    def plot(self, path: str | PathLike[str]) -> None:
        """Draw time against cost, and the front.

        Raises
        ------
        SpecError
            If nothing says what networks cost, or the file can be no picture.
        """
        from hocket.plot.sweep import draw_sweep

        if not self.pareto_front:
            right = "give costs: in the sweep or topology files"
            raise SpecError("plot", "nothing says what these networks cost", right)
        draw_sweep(self, path_of("path", path))


def report_sweep(folder: str | PathLike[str], *, by: Sequence[str] | None = None) -> SweepReport:
    """Summarize a sweep, finished or not.

    Parameters
    ----------
    folder
        What :func:`hocket.run_sweep` wrote.
    by
        Keys of the table. By default those that differ and are not choices: each row is then the best over
        algorithms, chunks, seeds of planning, ways to distribute a model and schemes. If keys are named,
        each row is the best over networks too. Sizes and whatever else differs are no alternatives to each
        other, so the table always has them.

    Raises
    ------
    SpecError
        If the folder has no sweep, or there is no such key.

    Complexity: O(rows log rows).
    """
    place = path_of("folder", folder)
    manifest = read_manifest(place)
    keys: list[str] = manifest["keys"]
    command, points = str(manifest["sweep"]["command"]), int(manifest["points"])
    data = read_rows(place)
    if not {"point", *keys, "error"} <= set(data.column_names):
        why = f"its rows are not those of its {MANIFEST}"
        raise SpecError(None, why, "run the sweep again into another folder", shown_path(place))
    varying = [key for key in keys if _differs(data, key)]
    grouped = _by(by, keys, varying, command)
    measure = next((name for name in _MEASURES if name in data.column_names), "bound_ps")
    failed = data.column("error").is_valid()
    errors = _errors(data)
    good = data.filter(data.column(measure).is_valid())
    chosen = [key for key in varying if key not in grouped]
    also = [name for name in ("planned_by", "protocol", "gap", "cost") if name in good.column_names]
    table = _table(data, good, measure, grouped, [*chosen, *also])
    tasks = [key for key in varying if key in _TASKS]
    front, cloud = _front(good, measure, tasks, [*varying, "planned_by"])
    import pyarrow.compute as pc

    return SweepReport(
        command=command,
        points=points,
        rows=len(data),
        failed=int(pc.sum(failed).as_py() or 0),
        missing=points - int(pc.count_distinct(data.column("point")).as_py()),
        errors=errors,
        measure=measure,
        by=tuple(grouped),
        table=tuple(table),
        pareto_front=tuple(front),
        cloud=cloud,
    )


def _differs(data: pa.Table, key: str) -> bool:
    import pyarrow.compute as pc

    return bool(pc.count_distinct(data.column(key), mode="all").as_py() > 1)


def _by(
    by: Sequence[str] | None, keys: Sequence[str], varying: Sequence[str], command: str
) -> list[str]:
    drawn = {"seed"} if command == "route" else set()
    apart = [key for key in varying if key in drawn or key not in CHOICES]
    if by is None:
        return apart
    found: list[str] = []
    for name in list_of("by", by):
        if name not in keys:
            hint = did_you_mean(str(name), keys, f"keys are {', '.join(keys)}")
            raise SpecError("by", f"the sweep has no key {shown(name)}", hint)
        if name not in found:
            found.append(str(name))
    return found + [key for key in apart if key not in found and key not in _NETWORKS]


def _errors(data: pa.Table) -> tuple[tuple[str, int], ...]:
    import pyarrow.compute as pc

    counted = pc.value_counts(data.column("error").drop_null()).to_pylist()
    found = [(str(each["values"]), int(each["counts"])) for each in counted]
    found.sort(key=lambda each: (-each[1], each[0]))
    return tuple(found[:_MOST_ERRORS])


def _groups(data: pa.Table, keys: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the group of each row, numbered in the order of their first rows, and those rows."""
    import numpy as np

    number = np.zeros(len(data), dtype=np.int64)
    for key in keys:
        column = data.column(key).combine_chunks().dictionary_encode(null_encoding="encode")
        codes = column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        number = number * (len(column.dictionary) + 1) + codes
        _, number = np.unique(number, return_inverse=True)  # so that products stay small
    _, first, number = np.unique(number, return_index=True, return_inverse=True)
    turn = np.argsort(first, kind="stable")
    place = np.empty_like(turn)
    place[turn] = np.arange(len(turn))
    return place[number].astype(np.int64), first[turn].astype(np.int64)


def _table(
    data: pa.Table, good: pa.Table, measure: str, by: Sequence[str], shown_too: Sequence[str]
) -> list[dict[str, Any]]:
    """Return a row for each group of all rows, with the fastest of those that ran."""
    import numpy as np

    if not len(data):
        return []
    group, first = _groups(data, by)
    ran = data.column(measure).is_valid().to_numpy(zero_copy_only=False)
    failed = data.column("error").is_valid().to_numpy(zero_copy_only=False)
    count = len(first)
    runs = np.bincount(group[ran], minlength=count)
    failures = np.bincount(group[failed], minlength=count)
    times = good.column(measure).to_numpy().astype(np.float64)
    own = group[ran]
    order = np.lexsort((times, own))
    starts = np.concatenate(([0], np.cumsum(runs)))
    heads = data.select(list(by)).take(first).to_pylist() if by else [{}]
    has = np.flatnonzero(runs)
    best = good.select([measure, *shown_too]).take(order[starts[has]]).to_pylist()
    quickest = dict(zip(has.tolist(), best, strict=True))
    rows = []
    for i, head in enumerate(heads):
        row = {**head, "ran": int(runs[i]), "failed": int(failures[i])}
        least = quickest.get(i)
        middle = most = None
        if least is not None:
            inner = times[order[starts[i] : starts[i + 1]]]
            middle, most = float(inner[(len(inner) - 1) // 2]), float(inner[-1])
        name, _, unit = measure.partition("_")
        row[f"least_{name}_{unit}"] = None if least is None else least[measure]
        row[f"median_{name}_{unit}"] = _alike(measure, middle)
        row[f"most_{name}_{unit}"] = _alike(measure, most)
        for key in shown_too:
            row[f"best_{key}" if key in by else key] = None if least is None else least[key]
        rows.append(row)
    return rows


def _alike(measure: str, value: float | None) -> float | int | None:
    return None if value is None else value if measure == "time_s" else round(value)


def _front(
    good: pa.Table, measure: str, tasks: Sequence[str], columns: Sequence[str]
) -> tuple[list[dict[str, Any]], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return the rows that no other of their task beats in both cost and time, and all costs and times."""
    import numpy as np

    nothing = np.empty(0)
    if "cost" not in good.column_names:
        return [], (nothing, nothing)
    priced = good.filter(good.column("cost").is_valid())
    if not len(priced):
        return [], (nothing, nothing)
    cost = priced.column("cost").to_numpy().astype(np.float64)
    time = priced.column(measure).to_numpy().astype(np.float64)
    group, _ = _groups(priced, tasks)
    order = np.lexsort((time, cost, group))
    kept = []
    last, least = -1, np.inf
    for i in order.tolist():
        if group[i] != last:
            last, least = int(group[i]), np.inf
        if time[i] < least:
            least = float(time[i])
            kept.append(i)
    names = dict.fromkeys((*tasks, "cost", measure, *columns))
    found = priced.select([name for name in names if name in priced.column_names])
    rows: list[dict[str, Any]] = found.take(np.array(kept, dtype=np.int64)).to_pylist()
    return rows, (cost, time)
