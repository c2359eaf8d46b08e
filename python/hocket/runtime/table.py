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
from hocket._checks import hint_of, list_of, one_of, path_of, whole
from hocket._core.runtime import Program
from hocket._options import names_of
from hocket._results import Result, said
from hocket.collectives.collective import KINDS, ROOTED
from hocket.errors import Error, SpecError
from hocket.files.atomic import write_text
from hocket.files.cache import cache_folder
from hocket.files.raw import read_bytes
from hocket.plans.algorithms import algorithms
from hocket.plans.plan import Plan
from hocket.plans.planner import plan as make_plan
from hocket.runtime.programs import TOPOLOGY, lower
from hocket.topology.sources import as_topology
from hocket.units import format_size, shown

FORMAT = "hocket.plan-table"
VERSION = 1
_MAX_FILE = 1 << 24
_LARGEST = (1 << 63) - 1
_CHUNKS = (1 << 32) - 1
_LONGEST = 1000
WINDOW = "shared-memory"
"""What a row names that runs no plan, but the collective through the window that ranks share."""
TUNED = "tuned"
"""The table that is kept for the user."""
VARIABLE = "HOCKET_TABLE"


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

    Raises
    ------
    SpecError
        Naming the field, for a value that makes no sense.
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

    def __post_init__(self) -> None:
        one_of("collective", self.collective, KINDS)
        one_of("transport", self.transport, ("tcp", "shared"))
        whole("ranks", self.ranks, 1, 4096)
        whole("from_bytes", self.from_bytes, 0, _LARGEST)
        whole("seed", self.seed, 0, (1 << 64) - 1)
        for name, most in (
            ("to_bytes", _LARGEST),
            ("planned_bytes", _LARGEST),
            ("chunks", _CHUNKS),
        ):
            if (number := getattr(self, name)) is not None:
                whole(name, number, 1, most)
        for name in ("algorithm", "topology", "plan"):
            text = getattr(self, name)
            if text is not None and not (isinstance(text, str) and 1 <= len(text) <= _LONGEST):
                right = f"give up to {_LONGEST:,} letters"
                raise SpecError(name, f"{shown(text)} is not text of this length", right)
        if (self.algorithm is None) == (self.plan is None):
            raise SpecError(None, "give algorithm or plan, and not both")
        if self.to_bytes is not None and self.to_bytes <= self.from_bytes:
            raise SpecError(None, "to_bytes is not above from_bytes")
        if self.plan is not None and (self.chunks or self.topology or self.planned_bytes):
            raise SpecError(None, "a plan file has its own chunks, topology and size")
        if self.algorithm == WINDOW and self.transport != "shared":
            why = f"{WINDOW} goes through shared memory"
            raise SpecError(None, why, "say transport shared")


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
        target = path_of("path", path)
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
        source = path_of("path", path)
        try:
            return cls(_read(source), source.parent)
        except Error as error:
            if isinstance(error, SpecError) and error.origin is None:
                raise error.but(origin=str(source)) from None
            raise

    def __repr__(self) -> str:
        kinds = ", ".join(sorted({row.collective for row in self.rows})) or "nothing"
        return f"<PlanTable: {len(self.rows)} rows for {kinds}>"

    def __len__(self) -> int:
        return len(self.rows)


def _read(path: Path) -> list[PlanRow]:
    """Return the rows of a file."""
    if not path.exists():
        raise SpecError(None, "there is no such file", "make one by `hocket compare --table`")
    raw = read_bytes(path, "a table of plans", most=_MAX_FILE)
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        raise SpecError(None, "is no JSON, and so no table of plans") from None
    if not isinstance(found, dict):
        raise SpecError(None, "is no table of plans", "make one by `hocket compare --table`")
    for key, right in (("format", FORMAT), ("version", VERSION)):
        if found.get(key) != right:
            why = f"is {shown(found[key])}" if key in found else "is missing"
            raise SpecError(key, why, f'this version reads format "{FORMAT}", version {VERSION}')
    _check_keys(found, ("format", "version", "made_by", "rows"))
    rows = list_of("rows", found.get("rows"))
    known = {each.name for each in algorithms()} | {None, WINDOW}
    made = []
    for number, values in enumerate(rows):
        try:
            if not isinstance(values, dict):
                raise SpecError(None, f"{shown(values)} is no row", "give its keys and values")
            _check_keys(values, names_of(PlanRow), "collective", "ranks")
            made.append(PlanRow(**values))
            if made[-1].algorithm not in known:
                raise SpecError("algorithm", f"there is no algorithm {shown(made[-1].algorithm)}")
        except SpecError as error:
            inner = f".{error.field}" if error.field else ""
            raise error.but(field=f"rows[{number}]{inner}") from None
    return made


def _check_keys(found: dict[str, Any], known: tuple[str, ...], *needed: str) -> None:
    for key in needed:
        if key not in found:
            raise SpecError(key, "is missing", "say what the row is for")
    for key in found:
        if key not in known:
            raise SpecError(key, "there is no such key", hint_of(key, known))


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
