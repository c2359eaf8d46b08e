"""The plans of calls that name none: a table by kind, number of ranks and size, kept in a file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from hocket import _core
from hocket._core.runtime import Program
from hocket._results import Result, said
from hocket.errors import Error, SpecError
from hocket.files.atomic import write_text
from hocket.files.cache import cache_folder
from hocket.plans.plan import Plan
from hocket.plans.planner import plan as make_plan
from hocket.runtime.programs import TOPOLOGY, lower
from hocket.topology.sources import as_topology
from hocket.units import format_size

FORMAT = "hocket.plan-table"
VERSION = 1
WINDOW = "shared-memory"
"""What a row names that runs no plan, but the collective through the window that ranks share."""
TUNED = "tuned"
"""The table that is kept for the user."""
VARIABLE = "HOCKET_TABLE"

ROOTED = ("broadcast", "reduce", "gather", "scatter")


_OPTIONAL = said(is_optional=True)


def _unless_zero(seed: int) -> int | None:
    return seed or None


@dataclass(frozen=True, kw_only=True)
class PlanRow(Result):
    """The choice for one kind, number of ranks and range of sizes.

    Attributes
    ----------
    collective, ranks
        What it is for.
    from_bytes, to_bytes
        From which size of the whole vector on, and below which; None for no end.
    algorithm
        What plans it, or ``shared-memory`` where no plan is run; with a `plan`, None.
    chunks, seed, planned_bytes, topology
        What it is planned with, and where.
    plan
        A plan file, beside the table.
    transport
        ``tcp`` or ``shared``: what messages go through, if ranks share memory.
    """

    collective: str
    ranks: int
    from_bytes: int = 0
    to_bytes: int | None = field(default=None, metadata=_OPTIONAL)
    algorithm: str | None = field(default=None, metadata=_OPTIONAL)
    chunks: int | None = field(default=None, metadata=_OPTIONAL)
    seed: int = field(default=0, metadata=said(of=_unless_zero, is_optional=True))
    planned_bytes: int | None = field(default=None, metadata=_OPTIONAL)
    topology: str | None = field(default=None, metadata=_OPTIONAL)
    plan: str | None = field(default=None, metadata=_OPTIONAL)
    transport: str = "tcp"


@dataclass(frozen=True)
class PlanChoice:
    """The choice for a call: a program, or an exchange through the window if there is none."""

    program: Program | None
    transport: str


class PlanTable:
    """The choice for each kind, number of ranks and size; other calls choose for themselves.

    Parameters
    ----------
    rows
        In any order; those of one kind and number of ranks may not overlap.
    folder
        Where plan files are.

    Raises
    ------
    SpecError
        If rows overlap, or a plan file cannot be read or is for something else.
    """

    def __init__(self, rows: Iterable[PlanRow], folder: str | PathLike[str] = ".") -> None:
        self.rows = tuple(sorted(rows, key=lambda row: (row.collective, row.ranks, row.from_bytes)))
        self.folder = Path(folder)
        self._plans: dict[str, Plan] = {}
        self._made: dict[tuple[PlanRow, int], Program | None] = {}
        for before, after in zip(self.rows, self.rows[1:], strict=False):
            same = (before.collective, before.ranks) == (after.collective, after.ranks)
            if same and (before.to_bytes is None or before.to_bytes > after.from_bytes):
                raise SpecError(
                    "rows",
                    f"two of {before.collective} among {before.ranks} hold "
                    f"for {format_size(after.from_bytes)}",
                    "end one where the other begins",
                )
        for row in self.rows:
            if row.plan is not None:
                self._load(row)

    def _load(self, row: PlanRow) -> None:
        plan = Plan.load(self.folder / str(row.plan))
        has = (plan.collective.kind, len(plan.collective.npus))
        if has != (row.collective, row.ranks):
            raise SpecError(
                "plan",
                f"{row.plan} is of {has[0]} among {has[1]}, the row of "
                f"{row.collective} among {row.ranks}",
            )
        self._plans[str(row.plan)] = plan

    @property
    def hash(self) -> int:
        """Equal for equal tables of one version of hocket; never 0."""
        rows = [row.to_dict() for row in self.rows]
        digest = hashlib.sha256(json.dumps([_core.__version__, rows], sort_keys=True).encode())
        for name in sorted(self._plans):
            digest.update((self.folder / name).read_bytes())
        return int.from_bytes(digest.digest()[:8], "little") or 1

    def row(self, kind: str, ranks: int, size: int) -> PlanRow | None:
        """Return the row for a call, or None if the table has none."""
        for row in self.rows:
            is_in = row.from_bytes <= size and (row.to_bytes is None or size < row.to_bytes)
            if (row.collective, row.ranks) == (kind, ranks) and is_in:
                return row
        return None

    def choice(self, kind: str, ranks: int, root: int, size: int) -> PlanChoice | None:
        """Return what a call runs, or None if the table says nothing, or its plan has another root.

        Raises
        ------
        SpecError, InfeasibleError, VerificationError
            If the row's plan cannot be made or run.
        """
        row = self.row(kind, ranks, size)
        if row is None:
            return None
        if row.algorithm == WINDOW:
            return PlanChoice(None, "shared")
        key = (row, root)
        if key not in self._made:
            self._made[key] = self._program(row, root)
        program = self._made[key]
        return None if program is None else PlanChoice(program, row.transport)

    def _program(self, row: PlanRow, root: int) -> Program | None:
        if row.plan is not None:
            plan = self._plans[row.plan]
            return lower(plan) if (plan.collective.root or 0) == root else None
        return lower(self.plan_of(row, root))

    def plan_of(self, row: PlanRow, root: int = 0) -> Plan:
        """Make the plan of a row that names an algorithm.

        Raises
        ------
        SpecError, InfeasibleError
            If there is no such algorithm or network, or it does not apply.
        """
        return make_plan(
            row.collective,
            as_topology(row.topology or TOPOLOGY.format(row.ranks)),
            size=row.planned_bytes or max(row.from_bytes, row.ranks << 10),
            algorithm=str(row.algorithm),
            chunks=row.chunks,
            seed=row.seed,
            root=root if row.collective in ROOTED else None,
        )

    def with_rows(self, rows: Iterable[PlanRow]) -> PlanTable:
        """Return a table with other rows for the kinds and numbers of ranks that they are for."""
        new = list(rows)
        told = {(row.collective, row.ranks) for row in new}
        old = [row for row in self.rows if (row.collective, row.ranks) not in told]
        return PlanTable([*old, *new], self.folder)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "made_by": f"hocket {_core.__version__}",
            "rows": [row.to_dict() for row in self.rows],
        }

    def save(self, path: str | PathLike[str]) -> None:
        """Write it to a file, whole or not at all.

        Raises
        ------
        SpecError
            If that cannot be done, or plan files would no longer be beside it.
        """
        target = Path(path)
        if self._plans and target.resolve().parent != self.folder.resolve():
            raise SpecError(
                None, "its plan files are elsewhere", f"write it to {self.folder}", str(target)
            )
        write_text(target, json.dumps(self.to_dict(), indent=1) + "\n")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> PlanTable:
        """Read a file.

        Raises
        ------
        SpecError
            Naming file and place, if it is none, or of another version.
        """
        from hocket.runtime.table_file import read_rows

        source = Path(path)
        try:
            return cls(read_rows(source), source.parent)
        except Error as error:
            if isinstance(error, SpecError) and error.origin is None:
                raise error.but(origin=str(source)) from None
            raise

    def __repr__(self) -> str:
        kinds = ", ".join(sorted({row.collective for row in self.rows})) or "nothing"
        return f"<PlanTable: {len(self.rows)} rows for {kinds}>"

    def __len__(self) -> int:
        return len(self.rows)


def tuned_path() -> Path:
    """Return the file of the table that is kept for the user.

    Raises
    ------
    SpecError
        Where nothing is kept.
    """
    folder = cache_folder()
    if folder is None:
        raise SpecError("table", "there is no cache folder", "name a file")
    return folder / "tables" / "tuned.json"


def table_of(given: PlanTable | str | PathLike[str] | None) -> PlanTable | None:
    """Read what names a table: itself, a file, or ``tuned``; None means ``$HOCKET_TABLE``, if it says one.

    Raises
    ------
    SpecError
        If there is no such table.
    """
    chosen = given if given is not None else os.environ.get(VARIABLE) or None
    if chosen is None or isinstance(chosen, PlanTable):
        return chosen
    if not isinstance(chosen, str | PathLike):
        raise SpecError("table", f"{type(chosen).__name__} is no table", "give a file, or tuned")
    if chosen != TUNED:
        return PlanTable.load(chosen)
    path = tuned_path()
    if not path.exists():
        raise SpecError("table", "none is kept yet", "make one by `hocket compare --table`")
    return PlanTable.load(path)


def merged(path: Path, rows: Iterable[PlanRow]) -> PlanTable:
    """Return what a file is to hold after rows were added in place of those for the same.

    Raises
    ------
    SpecError
        If there is a file that is no table.
    """
    before = PlanTable.load(path) if path.exists() else PlanTable([], path.parent)
    return before.with_rows(replace(row) for row in rows)
