"""Saved schedules: small JSON files, by name in the user's data folder or by path.

A file holds what made the schedule, the kind of collective, the dimensions (kind and size, those of one
NPU left out), the policy, the switching, and the lanes: bytes, and the dimensions, numbered from 1, in
the order of the reduce-scatter and of the all-gather. Times are not kept: they follow from these.
"""

from __future__ import annotations

import json
import os
import re
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from hocket import _core
from hocket._checks import path_of
from hocket.errors import SpecError
from hocket.files.atomic import check_target, replacing
from hocket.files.model import Strict
from hocket.files.raw import check_json, read_bytes
from hocket.plans.schedule import Schedule, check_fits, rail_shapes, rebuilt

_FORMAT = 1
_MAX_FILE = 1 << 28

Number = Annotated[int, Field(ge=1, le=32)]
Bytes = Annotated[int, Field(ge=1, lt=1 << 63)]


class LaneEntry(Strict):
    """One chunk."""

    bytes: Bytes
    reduce_scatter: list[Number] = Field(default=[])
    all_gather: list[Number] = Field(default=[])


class DimensionEntry(Strict):
    """One dimension of more than one NPU."""

    kind: Literal["Ring", "FullyConnected", "Switch", "Line"]
    size: Annotated[int, Field(ge=2, lt=1 << 32)]


class ScheduleFile(Strict):
    """A saved schedule."""

    format: Literal[1]
    algorithm: str
    collective: Literal["all-reduce", "reduce-scatter", "all-gather"]
    dimensions: list[DimensionEntry]
    policy: Literal["first-come", "smallest-first"]
    switching: Literal["store-and-forward", "cut-through"]
    lanes: Annotated[list[LaneEntry], Field(min_length=1, max_length=1 << 24)]


def schedule_folder() -> Path:
    """Return the folder of saved schedules: ``$HOCKET_DATA`` or the user's data folder."""
    own = os.environ.get("HOCKET_DATA")
    if own:
        return Path(own) / "schedules"
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "hocket" / "schedules"


def schedule_names() -> list[str]:
    """Names of the schedules that are kept."""
    folder = schedule_folder()
    return sorted(path.stem for path in folder.glob("*.json")) if folder.is_dir() else []


def check_name(name: str | PathLike[str]) -> None:
    """Refuse a name or file under which no schedule can be kept, before the work.

    Raises
    ------
    SpecError
        With what is wrong.
    """
    path = _path(name)
    if path.parent != schedule_folder():
        check_target(path)


def _path(name: str | PathLike[str]) -> Path:
    text = name if isinstance(name, str) else str(path_of("name", name))
    if text.endswith(".json") and "\0" not in text:
        return Path(text)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", text):
        raise SpecError(
            None,
            f"schedule {text!r}: is neither a name of letters, digits, '.', '_' and '-', "
            "nor a .json file",
        )
    return schedule_folder() / f"{text}.json"


def is_kept(name: str | PathLike[str]) -> bool:
    """Return whether there is a schedule of that name, or such a file."""
    return _path(name).is_file()


def schedule_to_json(schedule: Schedule) -> dict[str, Any]:
    """Return a schedule as JSON values."""
    shapes = rail_shapes(schedule.topology)
    return {
        "format": _FORMAT,
        "algorithm": schedule.algorithm,
        "collective": schedule.collective.kind,
        "dimensions": [{"kind": kind, "size": size} for kind, size in shapes],
        "policy": schedule.policy,
        "switching": schedule.switching,
        "lanes": [
            {
                "bytes": lane.bytes,
                "reduce_scatter": [1 + i for i in lane.reduce_scatter],
                "all_gather": [1 + i for i in lane.all_gather],
            }
            for lane in schedule.lanes
        ],
    }


def schedule_from_json(
    text: str,
    topology: _core.Topology,
    collective: _core.Collective,
    switching: str | None = None,
) -> Schedule:
    """Return the schedule that :func:`schedule_to_json` was given, for a collective of any size.

    ``switching`` is what it is run for; by default what it was made for.

    Raises
    ------
    SpecError
        If it is none, or for another collective or other dimensions.
    """
    try:
        file = ScheduleFile.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise SpecError(where or None, first["msg"]) from None
    shapes: list[tuple[str, int]] = [(each.kind, each.size) for each in file.dimensions]
    check_fits(file.collective, shapes, topology, collective)
    for number, lane in enumerate(file.lanes, 1):
        for name, order in (
            ("reduce_scatter", lane.reduce_scatter),
            ("all_gather", lane.all_gather),
        ):
            if order and sorted(order) != list(range(1, len(shapes) + 1)):
                raise SpecError(
                    None,
                    f"lane {number}: {name} is {order}",
                    f"name each dimension from 1 to {len(shapes)} once",
                )
    lanes = [
        (lane.bytes, [i - 1 for i in lane.reduce_scatter], [i - 1 for i in lane.all_gather])
        for lane in file.lanes
    ]
    switching = switching or file.switching
    return rebuilt(file.algorithm, file.policy, switching, lanes, topology, collective)


def save_schedule(schedule: Schedule, name: str | PathLike[str]) -> None:
    """Write a schedule under a name or to a file."""
    path = _path(name)
    if path.parent == schedule_folder():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SpecError(
                None, f"cannot be made: {error.strerror}", origin=str(path.parent)
            ) from None
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(schedule_to_json(schedule)) + "\n", encoding="utf-8")


def load_schedule(
    name: str | PathLike[str], topology: _core.Topology, collective: _core.Collective
) -> Schedule:
    """Read a schedule that :func:`save_schedule` wrote.

    Raises
    ------
    SpecError
        If there is none, or it does not fit.
    """
    path = _path(name)
    try:
        if not path.is_file():
            known = ", ".join(schedule_names()) or "none"
            raise SpecError(
                None,
                f"there is none; saved ones are {known}",
                "make one by `hocket plan --dimension-only ... --save NAME`",
            )
        raw = read_bytes(path, "a schedule", most=_MAX_FILE)
        check_json(raw, None)
        return schedule_from_json(raw.decode("utf-8"), topology, collective, topology.switching)
    except SpecError as error:
        raise error.within(f"schedule {os.fspath(name)!r}") from None
    except (OSError, ValueError) as error:
        raise SpecError(None, f"schedule {os.fspath(name)!r}: cannot be read: {error}") from None
