"""Files of plan tables (JSON): what they may hold, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from hocket.errors import SpecError
from hocket.files.model import Strict
from hocket.plans.algorithms import algorithms
from hocket.runtime.table import FORMAT, VERSION, WINDOW, PlanRow

_MAX_FILE = 1 << 24

Kind = Literal[
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "broadcast",
    "reduce",
    "all-to-all",
    "gather",
    "scatter",
]
Bytes = Annotated[int, Field(ge=0, lt=1 << 63)]
Text = Annotated[str, Field(min_length=1, max_length=1000)]


class RowEntry(Strict):
    """One row."""

    collective: Kind
    ranks: Annotated[int, Field(ge=1, le=4096)]
    from_bytes: Bytes = 0
    to_bytes: Annotated[int, Field(ge=1, lt=1 << 63)] | None = None
    algorithm: Text | None = None
    chunks: Annotated[int, Field(ge=1, lt=1 << 32)] | None = None
    seed: Annotated[int, Field(ge=0, lt=1 << 64)] = 0
    planned_bytes: Annotated[int, Field(ge=1, lt=1 << 63)] | None = None
    topology: Text | None = None
    plan: Text | None = None
    transport: Literal["tcp", "shared"] = "tcp"

    @model_validator(mode="after")
    def _makes_sense(self) -> RowEntry:
        if (self.algorithm is None) == (self.plan is None):
            raise ValueError("give algorithm or plan, and not both")
        if self.to_bytes is not None and self.to_bytes <= self.from_bytes:
            raise ValueError("to_bytes is not above from_bytes")
        if self.plan is not None and (self.chunks or self.topology or self.planned_bytes):
            raise ValueError("a plan file has its own chunks, topology and size")
        if self.algorithm == WINDOW and self.transport != "shared":
            raise ValueError(f"{WINDOW} goes through shared memory; say transport shared")
        return self


class TableFile(Strict):
    """A table."""

    format: Literal["hocket.plan-table"]
    version: Literal[1]
    made_by: Text | None = None
    rows: Annotated[list[RowEntry], Field(max_length=100_000)]


def read_rows(path: Path) -> list[PlanRow]:
    """Read the rows of a file.

    Raises
    ------
    SpecError
        Naming the place, if it is no table.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_FILE + 1)
    except FileNotFoundError:
        why = "there is no such file"
        raise SpecError(None, why, "make one by `hocket compare --table`", str(path)) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "is not a name of a file"
        raise SpecError(None, f"cannot be read: {why}", origin=str(path)) from None
    if len(text) > _MAX_FILE:
        raise SpecError(None, "is too long for a table of plans", origin=str(path))
    try:
        file_ = TableFile.model_validate_json(text)
    except ValidationError as error:
        raise _wrong(error, path) from None
    known = {each.name for each in algorithms()} | {WINDOW}
    for number, row in enumerate(file_.rows):
        if row.algorithm is not None and row.algorithm not in known:
            raise SpecError(
                f"rows[{number}].algorithm",
                f"there is no algorithm {row.algorithm!r}",
                None,
                str(path),
            )
    return [PlanRow(**row.model_dump()) for row in file_.rows]


def _wrong(error: ValidationError, path: Path) -> SpecError:
    first = error.errors()[0]
    place = ""
    for part in first["loc"]:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else str(part)
    if first["type"] == "json_invalid":
        return SpecError(None, "is no JSON, and so no table of plans", origin=str(path))
    if place in ("format", "version"):
        found = first.get("input")
        why = f"is {found!r}" if first["type"] != "missing" else "is missing"
        right = f'this version reads format "{FORMAT}", version {VERSION}'
        return SpecError(place, why, right, str(path))
    message = first["msg"].removeprefix("Value error, ")
    return SpecError(place or None, message[:1].lower() + message[1:], origin=str(path))
