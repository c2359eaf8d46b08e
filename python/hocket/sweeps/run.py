"""Runs a sweep: parts to processes, their files into a folder, and on from where it was left."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hocket._checks import check_function, instance_of, path_of, whole
from hocket._core import __version__
from hocket._results import HIDDEN, Result, TableResult, figure, said, str_of
from hocket.collectives.collective import Progress, tell_step
from hocket.errors import SpecError
from hocket.files.atomic import replacing, write_text
from hocket.files.complaint import shown_path
from hocket.files.raw import check_json, read_bytes
from hocket.sweeps.pool import BatchOutcome, BatchTask, Executor, Local
from hocket.sweeps.sweep import Sweep

if TYPE_CHECKING:
    import pyarrow as pa


MANIFEST = "sweep.json"
"""What says which sweep a folder is of."""
ROWS = "rows"
"""The data set in it: a folder of its own, since readers of one take every file in it."""
_FORMAT = 1
_DEATHS = 2
_MOST_WORKERS = 1024


@dataclass(frozen=True)
class _Swept(Result):
    """The sweep that ran."""

    command: str
    points: int
    parts: int
    """Files."""


@dataclass(frozen=True)
class SweepRun(TableResult):
    """A sweep that has been run.

    Attributes
    ----------
    sweep
        What was run.
    folder
        Where its rows are, as one Parquet data set.
    failed
        Points that failed; their rows say why.
    resumed
        Points that were there already.
    """

    sweep: Sweep = field(metadata=HIDDEN)
    folder: Path = field(metadata=said(of=str_of))
    failed: int
    resumed: int

    @property
    @figure(inline=_Swept)
    def _swept(self) -> _Swept:
        return _Swept(self.sweep.command, self.sweep.count, self.sweep.parts)

    def to_frame(self) -> pa.Table:
        """Return all rows as an Arrow table."""
        return read_rows(self.folder)

    def _rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.to_frame().to_pylist()
        return rows


def load_sweep(path: str | PathLike[str]) -> Sweep:
    """Read a sweep file (docs/sweeps.md).

    Raises
    ------
    SpecError
        Naming file, line and key, what was wrong and what would be right.
    """
    from hocket.sweeps.yaml import from_file

    return from_file(path_of("path", path))


def run_sweep(
    sweep: Sweep | str | PathLike[str],
    folder: str | PathLike[str],
    *,
    workers: int | None = None,
    ray: str | None = None,
    progress: Progress | None = None,
) -> SweepRun:
    """Run all points of a sweep, and go on where an earlier run of it was stopped.

    Points are run in processes of their own, in parts; each part is a file that is written whole or not at
    all. The files are the same, byte by byte, whatever the number of processes, unless a limit of time ends
    searches.

    Parameters
    ----------
    sweep
        A sweep, or its file.
    folder
        Where to; a folder that is not there, is empty, or was begun by the same sweep and version.
    workers
        Processes; by default one for each core.
    ray
        Address of a Ray cluster to run on instead, as ``"auto"`` or ``"ray://host:10001"``; ``"local"``
        starts one on this machine.
    progress
        Called as ``progress(stage, done, total)`` with points.

    Raises
    ------
    SpecError
        If the folder has something else, or there is no such cluster.
    """
    if not isinstance(sweep, Sweep):
        sweep = load_sweep(sweep)
    check_function("progress", progress)
    if workers is not None:
        workers = whole("workers", workers, 1, _MOST_WORKERS)
    if ray is not None:
        instance_of(str, "ray", ray, "give an address, such as auto")
        if workers is not None:
            raise SpecError("workers", "a Ray cluster has its own", "leave it out")
    sweep.check_count()
    place = path_of("folder", folder)
    there = _prepared(sweep, place)
    left = [part for part in range(sweep.parts) if part not in there]
    resumed = sum(len(sweep.numbers(part)) for part in there)
    failed = sum(there.values())
    if left:
        executor: Executor
        if ray is None:
            executor = Local(sweep, min(workers or cores(), len(left)))
        else:
            from hocket.sweeps.on_ray import OnRay

            executor = OnRay(sweep, ray)
        try:
            failed += _run(sweep, place, left, executor, progress)
        finally:
            executor.close()
    return SweepRun(sweep, place, failed, resumed)


def cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # where there is no such thing
        return os.cpu_count() or 1


def _run(
    sweep: Sweep,
    place: Path,
    left: Iterable[int],
    executor: Executor,
    progress: Progress | None,
) -> int:
    """Distribute the batches, keep their results, and count the points that failed."""
    failed = 0
    waiting = deque(BatchTask("part", part) for part in left)
    judged = _Judge(sweep)
    missing = {task.number for task in waiting}
    done = sweep.count - sum(len(sweep.numbers(part)) for part in missing)
    tell_step(progress, "points", done, sweep.count)
    while missing:
        while waiting and executor.room > 0:
            executor.submit(waiting.popleft())
        for outcome in executor.wait():
            task = outcome.task
            if outcome.is_dead or task.kind == "point":
                waiting.extendleft(judged.next(outcome))
            elif outcome.answer is not None:
                with replacing(part_file(place, task.number)) as temporary:
                    temporary.write_bytes(outcome.answer[0])
                failed += outcome.answer[1]
                missing.discard(task.number)
                done += len(sweep.numbers(task.number))
                tell_step(progress, "points", done, sweep.count)
    return failed


class _Judge:
    """Finds points that end the process that runs them.

    A part whose process ended is run again; at the second time each of its points is run alone, and those
    that end their process twice are left out of it.
    """

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._deaths: dict[tuple[str, int], int] = {}
        self._open: dict[int, set[int]] = {}
        self._killers: dict[int, set[int]] = {}

    def next(self, outcome: BatchOutcome) -> list[BatchTask]:
        """Describe what is to be run now that a process has ended, or that a point has been tried."""
        task = outcome.task
        if outcome.is_dead:
            key = (task.kind, task.number)
            self._deaths[key] = self._deaths.get(key, 0) + 1
            if self._deaths[key] < _DEATHS:
                return [task]
            self._deaths[key] = 0
            if task.kind == "part":
                numbers = self._sweep.numbers(task.number)
                self._open[task.number] = set(numbers)
                self._killers[task.number] = set(task.killers)
                return [
                    BatchTask("point", number) for number in numbers if number not in task.killers
                ]
        part = task.number // self._sweep.part_size
        still = self._open[part]
        if outcome.is_dead:
            self._killers[part].add(task.number)
        still.discard(task.number)
        still -= self._killers[part]
        if still:
            return []
        return [BatchTask("part", part, frozenset(self._killers[part]))]


def part_file(place: Path, part: int) -> Path:
    """Return the file of a part."""
    return place / ROWS / f"part-{part:05d}.parquet"


def _prepared(sweep: Sweep, place: Path) -> dict[int, int]:
    """Make the folder, or see which parts it has, and how many points failed in each.

    Raises
    ------
    SpecError
        If it is no folder, or has something else.
    """
    where = shown_path(place)
    manifest = place / MANIFEST
    told = {
        "format": "hocket.sweep",
        "version": _FORMAT,
        "hocket": __version__,
        "hash": sweep.hash,
        "points": sweep.count,
        "parts": sweep.parts,
        "keys": list(sweep.keys),
        "sweep": sweep.to_dict(),
    }
    try:
        if place.exists() and not place.is_dir():
            raise SpecError(None, "is a file, not a folder", "name a folder", where)
        names = {each.name for each in place.iterdir()} if place.exists() else set()
        for each in place.rglob(".hocket-*.part"):  # of a run that was killed
            each.unlink()
        if manifest.name not in names:
            if names - {ROWS} or (ROWS in names and any((place / ROWS).iterdir())):
                right = "name a folder that is new or empty"
                raise SpecError(None, "has other files", right, where)
            (place / ROWS).mkdir(parents=True, exist_ok=True)
            write_text(manifest, json.dumps(told, indent=1) + "\n")
            return {}
    except OSError as error:
        why = f"cannot be written: {error.strerror or type(error).__name__}"
        raise SpecError(None, why, "name another folder", where) from None
    known = read_manifest(place)
    if known.get("hash") != sweep.hash:
        by = known.get("hocket")
        why = "has rows of another sweep"
        if by != __version__:
            why = f"was begun by hocket {by}, and this is {__version__}"
        raise SpecError(None, why, "name another folder, or remove this one", where)
    found = ((part, _failed_points(sweep, place, part)) for part in range(sweep.parts))
    return {part: failed for part, failed in found if failed is not None}


def _failed_points(sweep: Sweep, place: Path, part: int) -> int | None:
    """Count the points that failed of a part; None if it is not there, or not as it was written."""
    path = part_file(place, part)
    if path.is_dir():
        raise SpecError(None, "is a folder where a file goes", "remove it", shown_path(path))
    if not path.exists():
        return None
    import pyarrow as pa
    import pyarrow.compute as pc

    from hocket.files.parquet import read_tables
    from hocket.sweeps.batch import schema_of

    try:
        rows = read_tables([path])
    except (OSError, ValueError, pa.ArrowException):  # damaged: it is made anew
        return None
    if not rows.schema.equals(schema_of(sweep)):
        return None
    if pc.unique(rows.column("point")).to_pylist() != list(sweep.numbers(part)):
        return None
    return int(len(rows) - rows.column("error").null_count)


def read_manifest(place: Path) -> dict[str, Any]:
    """Read which sweep a folder is of.

    Raises
    ------
    SpecError
        If it is of none.
    """
    where = shown_path(place)
    right = "name a folder that hocket sweep wrote"
    manifest = place / MANIFEST
    try:
        there = manifest.is_file()
    except OSError:  # a name that no system takes
        there = False
    if not there:
        raise SpecError(None, "has no sweep", right, where)
    raw = read_bytes(manifest, "a folder that hocket sweep wrote")
    check_json(raw, where)
    try:
        found = json.loads(raw.decode("utf-8", errors="replace"))
    except (ValueError, RecursionError):
        found = None
    version = found.get("version") if isinstance(found, dict) else None
    if isinstance(version, int) and version != _FORMAT:
        when = "a later" if version > _FORMAT else "an earlier"
        raise SpecError(None, f"is of {when} version of hocket", "use that version", where)
    if not _is_manifest(found):
        why = f"its {MANIFEST} is damaged, or none of a sweep"
        raise SpecError(None, why, right, where)
    known: dict[str, Any] = found
    return known


def _is_manifest(found: Any) -> bool:
    """Return whether it says all that is read of it."""
    if not isinstance(found, dict) or found.get("format") != "hocket.sweep":
        return False
    keys, swept = found.get("keys"), found.get("sweep")
    return (
        found.get("version") == _FORMAT
        and all(type(found.get(name)) is int for name in ("points", "parts"))
        and all(isinstance(found.get(name), str) for name in ("hocket", "hash"))
        and isinstance(keys, list)
        and all(isinstance(key, str) for key in keys)
        and isinstance(swept, dict)
        and isinstance(swept.get("command"), str)
    )


def read_rows(place: Path, columns: list[str] | None = None) -> pa.Table:
    """Read the rows that a folder has, in the order of points.

    Raises
    ------
    SpecError
        If they cannot be read, or a file beside them is none of the sweep's.
    """
    files = sorted((place / ROWS).glob("part-*.parquet"))
    own = {part_file(place, part) for part in range(read_manifest(place)["parts"])}
    for strange in (each for each in files if each not in own):
        raise SpecError(None, "is no part of this sweep", "remove it", shown_path(strange))
    if not files:
        right = "run hocket sweep to its end"
        raise SpecError(None, "has no rows yet", right, shown_path(place))
    import pyarrow as pa

    from hocket.files.parquet import read_tables

    try:
        return read_tables(files, columns)
    except SpecError as error:
        raise error.within(shown_path(place)) from None
    except (OSError, KeyError, pa.ArrowException) as error:
        raise _damaged(files, place, error) from None


def _damaged(files: list[Path], place: Path, error: Exception) -> SpecError:
    """Return which file of a folder cannot be read: the first that cannot be alone, or unlike most."""
    import pyarrow as pa

    from hocket.files.parquet import read_tables

    right = "run the same sweep with the same folder again, which makes damaged files again"
    kinds: dict[str, list[Path]] = {}
    for each in files:
        try:
            kinds.setdefault(str(read_tables([each]).schema), []).append(each)
        except (OSError, ValueError, pa.ArrowException):
            return SpecError(None, "is damaged", right, shown_path(each))
    least = min(kinds.values(), key=len)
    if len(kinds) > 1:
        return SpecError(None, "has other columns than the rest", right, shown_path(least[0]))
    why = f"cannot be read: {' '.join(str(error).split())[:200]}"
    return SpecError(None, why, right, shown_path(place))
