"""Measured series of collectives over sizes, from tables and from the logs of nccl-tests."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from statistics import median

from hocket._checks import did_you_mean, path_of
from hocket.errors import SpecError
from hocket.files.complaint import shown_path
from hocket.files.foreign import check_foreign
from hocket.files.raw import read_bytes, unzipped
from hocket.profiles.logs import is_log, read_log
from hocket.profiles.programs import COLLECTIVES, left_out, microseconds
from hocket.units import shown

__all__ = [
    "COLLECTIVES",
    "MeasuredSeries",
    "Measurement",
    "measurements_in",
    "oddities",
    "read_measurements",
]

COLUMNS = ("collective", "gpus", "nodes", "bytes", "time_us")
"""Columns that a table must have; ``algo``, ``proto`` and ``inplace`` may be there too."""

_LARGEST = 64 << 20
"""Bytes of a file."""
_DIGEST = 16
"""Hexadecimal digits that identify a file."""
_WHAT = "a table of measurements (.csv), or what nccl-tests printed"
_WHOLE = re.compile(r"[0-9]{1,15}")
_WHOLE_COPIES = 16
"""An all-to-all whose parts are no multiple of this many bytes takes another, much slower way."""
_TOLD = re.compile(r"ring|tree|nvls|nvls-?tree|collnet\w*|pat|msccl.*")
_CHOSEN = ("nccl_default", "rccl_default")
"""Names of algorithms that say the library chose by itself."""
_ODD = 2.0
"""How many times as long as both its neighbours a size takes that stands out."""


@dataclass(frozen=True)
class Measurement:
    """One time that was measured.

    Attributes
    ----------
    kind
        The collective, as ``"all-reduce"``; ``"send-receive"`` is a shift by one NPU.
    npus, nodes
        How many took part, and on how many nodes.
    size
        The size that nccl-tests prints [bytes]: of an all-gather what every NPU has in the end, of a
        reduce-scatter what it has at first, of an all-to-all what it sends.
    seconds
        How long it took.
    algorithm, protocol
        What ran, in small letters, where that is known: the library's choice is ``"auto"``.
    in_place
        Whether the result replaced the input.
    hosts
        Where it ran, where a log says so.
    line
        Which line of a log says so; 0 in a table.
    """

    kind: str
    npus: int
    nodes: int
    size: int
    seconds: float
    algorithm: str = "auto"
    protocol: str = "auto"
    in_place: bool = False
    hosts: tuple[str, ...] = ()
    line: int = field(default=0, compare=False)

    @property
    def sweep(self) -> tuple[str, int, int, str, str, bool]:
        """The facts that it shares with the other sizes of its measured series."""
        return (
            self.kind,
            self.npus,
            self.nodes,
            self.algorithm,
            self.protocol,
            self.in_place,
        )

    @property
    def is_aligned(self) -> bool:
        """Whether its parts are multiples of 16 bytes; libraries copy others byte by byte."""
        return self.kind != "all-to-all" or self.size // self.npus % _WHOLE_COPIES == 0


@dataclass(frozen=True)
class MeasuredSeries:
    """All that a file says.

    Attributes
    ----------
    name
        Of the file, without its ending.
    rows
        The measurements, in the order of the file.
    facts
        What its first lines say: hardware, library, source; or the GPU of a log, ``"device"``.
    wrong
        Times that are left out, as their results were wrong: a line each.
    others
        How many times are left out of programs without a model here, by the reason.
    digest
        What identifies the contents of the file: the start of its SHA-256.
    """

    name: str
    rows: tuple[Measurement, ...]
    facts: dict[str, str] = field(default_factory=dict)
    wrong: tuple[str, ...] = ()
    others: Mapping[str, int] = field(default_factory=dict)
    digest: str = ""

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def only(
        self, kinds: Iterable[str] | None = None, *, in_place: bool | None = None
    ) -> MeasuredSeries:
        """Return the rows of some collectives, in place or out of place."""
        wanted = None if kinds is None else set(kinds)
        rows = tuple(
            row
            for row in self.rows
            if (wanted is None or row.kind in wanted)
            and (in_place is None or row.in_place == in_place)
        )
        return replace(self, rows=rows)

    def once(self) -> MeasuredSeries:
        """Return each size of a sweep once: what was measured several times, by its median."""
        times: dict[tuple[object, ...], list[Measurement]] = {}
        for row in self.rows:
            times.setdefault((row.sweep, row.size), []).append(row)
        rows = (
            replace(same[0], seconds=median(row.seconds for row in same)) for same in times.values()
        )
        return replace(self, rows=tuple(rows))

    def only_chosen(self) -> MeasuredSeries:
        """Return the rows of what the library chose by itself, not told which algorithm to use."""
        rows = tuple(row for row in self.rows if _TOLD.fullmatch(row.algorithm) is None)
        return replace(self, rows=rows)


def read_measurements(path: str | PathLike[str]) -> MeasuredSeries:
    """Read a table (.csv) of measurements, or what nccl-tests or rccl-tests printed.

    The file may be compressed by gzip.

    A table has the columns ``collective`` (as nccl-tests names it, or as hocket does), ``gpus``,
    ``nodes``, ``bytes`` and ``time_us``, and may have ``algo``, ``proto`` and ``inplace`` (0 or 1).
    Lines that begin with ``#`` state facts, as ``# hardware: ...``. Times whose results were wrong, by the
    column ``#wrong`` of a log, are left out, and named in :attr:`MeasuredSeries.wrong`.

    Raises
    ------
    SpecError
        Naming file, line and remedy: for columns that are missing, for times and sizes that are not
        above zero, for logs without the collective or without ranks.
    """
    file = path_of("path", path)
    name = shown_path(file)
    raw = read_bytes(file, _WHAT, most=_LARGEST)
    data = unzipped(raw, name, most=_LARGEST, shorter=f"give {_WHAT}")
    return measurements_in(data, name, file.stem if data is raw else Path(file.stem).stem)


def measurements_in(data: bytes, origin: str, name: str) -> MeasuredSeries:
    """Read what :func:`read_measurements` does from the bytes of a file that is read.

    Parameters
    ----------
    origin
        The file, for messages.
    name
        Of the sweeps.

    Raises
    ------
    SpecError
        As :func:`read_measurements`.
    """
    if len(data) > _LARGEST:
        why = f"is larger than {_LARGEST >> 20} MiB"
        raise SpecError(None, why, f"give {_WHAT}", origin)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SpecError(None, "is not text in UTF-8", "give a .csv file or a log", origin) from None
    lines = text.splitlines()
    _check_separator(lines, origin)
    facts = dict(_facts(lines))
    wrong: list[str] = []
    others: Counter[str] = Counter()
    plain = [line for line in lines[:200] if not line.startswith("#")]
    is_table = any(len({*COLUMNS} & _cells(line)) > 1 for line in plain)
    if is_table or (not is_log(text) and any("," in line for line in plain)):
        rows = tuple(_table(lines, origin, others))
    else:
        rows = tuple(_log(lines, origin, wrong, others, facts))
    if wrong and not rows:
        why = f"results were wrong at all {len(wrong)} times"
        raise SpecError(None, why, "mend what was measured, and measure again", origin)
    if others and not rows:
        why = f"has only times {'; '.join(others)}"
        known = ", ".join(f"{name}_perf" for name in COLLECTIVES)
        raise SpecError(None, why, f"give what one of these printed: {known}", origin)
    if not rows:
        check_foreign(text, origin)
        raise SpecError(
            None,
            "has no measurements",
            f"give a table with the columns {', '.join(COLUMNS)}, or what nccl-tests printed",
            origin,
        )
    from hashlib import sha256

    digest = sha256(data).hexdigest()[:_DIGEST]
    return MeasuredSeries(name, rows, facts, tuple(wrong), others, digest)


def _cells(line: str) -> set[str]:
    return {cell.strip().strip('"') for cell in line.split(",")}


def _check_separator(lines: Sequence[str], origin: str) -> None:
    """Refuse a table whose columns are separated by something else than commas."""
    for number, line in enumerate(lines[:200], 1):
        for mark, name in ((";", "semicolons"), ("\t", "tabs")):
            if len({*COLUMNS} & {each.strip().strip('"') for each in line.split(mark)}) > 1:
                right = "separate them by commas, and write decimals with a point"
                raise SpecError(
                    None, f"columns are separated by {name}", right, f"{origin}, line {number}"
                )


def oddities(sweep: MeasuredSeries) -> Iterator[str]:
    """Return which times stand out: twice those of both neighbours in size."""
    by_sweep: dict[tuple[object, ...], list[Measurement]] = {}
    for row in sweep:
        by_sweep.setdefault(row.sweep, []).append(row)
    for rows in by_sweep.values():
        rows.sort(key=lambda row: row.size)
        for before, row, after in zip(rows, rows[1:], rows[2:], strict=False):
            if row.seconds > _ODD * max(before.seconds, after.seconds):
                yield (
                    f"{sweep.name}: {row.kind} of {row.size} bytes takes {row.seconds * 1e6:.0f} us, "
                    "more than twice as long as the sizes next to it"
                )


def _facts(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        found = re.match(r"#\s*([a-z][a-z ]*):\s+(\S.*)", line)
        if found is not None:
            yield found[1], found[2].strip()


def _table(lines: Sequence[str], name: str, others: Counter[str]) -> Iterator[Measurement]:
    """Read a table; rows of programs without a model are counted in `others`."""
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    numbered = [(number, line) for number, line in numbered if not line.startswith("#")]
    if not numbered:
        return
    (first, head), *rest = numbered
    columns = [each.strip() for each in next(csv.reader([head]))]
    for column, count in Counter(columns).items():
        if count > 1:
            why = f"there are {count} columns {shown(column)}"
            raise SpecError(None, why, "keep one", f"{name}, line {first}")
    for wanted in COLUMNS:
        if wanted not in columns:
            right = did_you_mean(wanted, columns, f"it needs {', '.join(COLUMNS)}")
            if wanted == "time_us":  # a column of a like name may be in another unit
                right = "give times in microseconds, in a column of this name"
            raise SpecError(None, f"there is no column {wanted!r}", right, f"{name}, line {first}")
    reader = csv.reader(io.StringIO("\n".join(line for _, line in rest)))
    for (number, _), cells in zip(rest, reader, strict=False):
        where = f"{name}, line {number}"
        if len(cells) != len(columns):
            cells_here = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
            why = f"has {cells_here}, not {len(columns)} as its head"
            raise SpecError(None, why, "give one of each column", where)
        row = dict(zip(columns, map(str.strip, cells), strict=True))
        reason = left_out(row["collective"].removesuffix("_perf"))
        if reason is None:
            yield _row(row, where)
        else:
            others[reason] += 1


def _algorithm(text: str | None) -> str:
    """Return what ran; a library's own choice has more than one name."""
    name = (text or "auto").lower()
    return "auto" if name in _CHOSEN else name


def _row(row: dict[str, str], where: str) -> Measurement:
    kind = _kind(row["collective"], where)
    npus, nodes = _whole(row["gpus"], "gpus", where), _whole(row["nodes"], "nodes", where)
    _check_nodes(npus, nodes, where)
    in_place = row.get("inplace", "0") or "0"
    if in_place not in ("0", "1"):
        raise SpecError("inplace", f"{shown(in_place)} is not valid", "give 0 or 1", where)
    return Measurement(
        kind,
        npus,
        nodes,
        _whole(row["bytes"], "bytes", where),
        microseconds(row["time_us"], "time_us", where),
        _algorithm(row.get("algo")),
        (row.get("proto") or "auto").lower(),
        in_place == "1",
    )


def _check_nodes(npus: int, nodes: int, where: str) -> None:
    if npus < 2:
        raise SpecError("gpus", f"{npus} is too few", "a collective has at least 2", where)
    if npus % nodes:
        raise SpecError(
            "nodes", f"{npus} NPUs do not spread evenly over {nodes}", "give as many on each", where
        )


def _kind(text: str, where: str) -> str:
    word = text.removesuffix("_perf")
    found = COLLECTIVES.get(word, word)
    if found not in COLLECTIVES.values():
        right = did_you_mean(word, COLLECTIVES, f"collectives are {', '.join(COLLECTIVES)}")
        raise SpecError("collective", f"there is no {shown(text)}", right, where)
    return found


def _whole(text: str, column: str, where: str) -> int:
    if _WHOLE.fullmatch(text) is None or int(text) == 0:
        raise SpecError(column, f"{shown(text)} is not a whole number above 0", "give one", where)
    return int(text)


def _log(
    lines: Sequence[str],
    name: str,
    wrong: list[str],
    others: Counter[str],
    facts: dict[str, str],
) -> Iterator[Measurement]:
    """Read what nccl-tests printed; times with wrong results go to `wrong`, a line each."""
    times, without_model, devices = read_log(lines, name)
    if devices:
        facts["device"] = ", ".join(devices)
    others.update(without_model)
    for time in times:
        if time.wrong:
            how = "in place" if time.in_place else "out of place"
            said = f"{time.kind} of {time.size} bytes {how}, {time.wrong}"
            wrong.append(f"{name}, line {time.line}: {said}")
        else:
            what = time.kind, time.npus, time.nodes, time.size, time.seconds
            yield Measurement(*what, in_place=time.in_place, hosts=time.hosts, line=time.line)
