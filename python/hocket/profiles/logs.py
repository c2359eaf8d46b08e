"""The output of nccl-tests and rccl-tests, whatever a launcher wrote before each of its lines.

References
----------
NVIDIA/nccl-tests (2.0.0 to 2.19.6), src/common.cu, src/util.cu and doc/PERFORMANCE.md; ROCm/rccl-tests:
what a line has, and how a program computes busbw.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hocket.errors import SpecError
from hocket.profiles.programs import (
    NONE,
    NUMBER,
    PROGRAMS,
    Row,
    Time,
    check_row,
    guessed,
    left_out,
    microseconds,
)
from hocket.units import printable

_MARK = re.compile(
    r"#[ \t]+(?:size\s+count\s+type\b|bytes\s+N\s+type\b|Rank\s+\d|nThread\s+\d|Using devices"
    r"|nccl-tests version|Collective test )|#[ \t]*[a-z_]+_perf\b"
)
_MARK_BYTES = re.compile(_MARK.pattern.encode())
_COLOUR = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CLOCK = re.compile(
    r"(?:\d{4}[-/.]\d\d[-/.]\d\d[T_ ]?|[A-Z][a-z]{2} +\d{1,2} )?"
    r"\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\d{4}-\d\d-\d\d|\b\d{10}(?:\.\d+)?\b|\[ *\d+\.\d+\]"
)
"""What differs from line to line in a prefix that has the time."""
_HEAD = re.compile(r"#?\s*\b(size\s+count\s+type\b.*)")
_OLD_HEAD = re.compile(r"#\s+bytes\s+N\s+type\b")
_UNITS = re.compile(r"#?\s*\(B\)\s+\(elements\)(.*)|#\s+\(B\)(.*)")
_IN_PLACE = re.compile(r"#\s+in-place\s*$")
_BANNER = re.compile(r"#\s+(?:nThread\s+\d|Using devices)|#\s+Collective test starting:")
_SAID = re.compile(r"Collective test (starting|concluded):\s*(\S+)")
_NAME = re.compile(r"(?<!\w)([a-z_]+)_perf(?:_\w+)?\b")
_TITLE = re.compile(r"#\s*[a-z_]+_perf")
_WORTH = re.compile(
    r"Rank\s|\bsize\s|\bbytes\s|\(B\)|_perf|Collective test|nThread|Using dev|in-place|Out of bounds"
)
"""What lines have that are read, but for rows."""
_RANK = re.compile(
    r"\bRank\s+(\d{1,9})\b(?:\s+Group\s+(\d+))?.*?\bon\s+(\S+)\s+device\s+"
    r"(?:(\d+\s+\[[^\]]*\])\s*(\S.{0,60})?)?"
)
_FAILED = re.compile(r"Out of bounds values\s*:\s*\d+\s+FAILED")
_ROW = re.compile(r"(?<![\w.,+-])(\d{1,15}\s+\d{1,15}\s+[A-Za-z]\w*\s+\S.*)")
_LIKE_ROW = re.compile(
    r"(?<![\w.,+-])(\S{1,99}\s+\S{1,99}\s+(?:u?int(?:8|16|32|64)|half|float|double|bfloat16)\s+\S+\s.*)"
)
"""What may be a row that is damaged."""
_BYTES = {"int8": 1, "uint8": 1, "char": 1, "half": 2, "float16": 2, "bfloat16": 2, "bf16": 2}
_BYTES |= dict.fromkeys(("int32", "uint32", "float"), 4) | dict.fromkeys(
    ("int64", "uint64", "double"), 8
)
"""Of an element of each type."""
_NUMBERED = re.compile(r"\s*(\d{1,9})(?:[:\t]|  )")
_TYPE = re.compile(
    r"u?int(?:8|16|32|64)?|u?char|half|float(?:16)?|double|bfloat16|bf16|f(?:p)?8\w*"
)
_ROOT = re.compile(r"-?\d{1,9}")
_OTHER_TIMES = ("(s)", "(ms)", "(ns)")
"""Units that nccl-tests does not print below its columns; it prints microseconds."""
_LIBRARY = re.compile(r"\bNCCL (?:INFO|WARN|TRACE|VERSION|CALL)\b")
_LONGEST = 4096
"""Characters of a line; those that are longer are none of nccl-tests."""


@dataclass(frozen=True)
class LogTime:
    """A time that a line states.

    Attributes
    ----------
    line
        Its number.
    kind, npus, nodes
        The collective, among how many NPUs on how many nodes.
    size, seconds
        As printed [bytes, s].
    in_place
        Whether the result replaced the input.
    wrong
        What the line says of wrong results, as ``"#wrong 5"``; empty if they were right.
    hosts
        Where the ranks ran.
    """

    line: int
    kind: str
    npus: int
    nodes: int
    size: int
    seconds: float
    in_place: bool
    wrong: str
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Rank:
    line: int
    source: str
    number: int
    group: int
    host: str
    device: str | None


@dataclass
class _Ranks:
    """The ranks of a run, as listed before its table."""

    listed: list[_Rank]
    _shape: tuple[int, int] | None = None

    @property
    def hosts(self) -> tuple[str, ...]:
        """Where they ran, each host once."""
        return tuple(dict.fromkeys(rank.host for rank in self.listed))

    def shape(self, origin: str, where: str) -> tuple[int, int]:
        """Return how many ranks took part, and on how many hosts."""
        if self._shape is None:
            self._check(origin, where)
            self._shape = self._spread(where)
        return self._shape

    def _check(self, origin: str, where: str) -> None:
        if not self.listed:
            right = "keep the lines that begin with '#  Rank'"
            raise SpecError(None, "no lines before say which ranks took part", right, where)
        seen: set[int] = set()
        for rank in self.listed:
            if rank.number in seen:
                why = f"rank {rank.number} is there twice: each process ran alone, or outputs are mixed"
                right = "build nccl-tests with MPI=1, or give each output as a file of its own"
                raise SpecError(None, why, right, f"{origin}, line {rank.line}")
            seen.add(rank.number)
        if max(seen) >= len(seen):
            missing = next(number for number in range(len(seen)) if number not in seen)
            why = f"there is no line of rank {missing}, though there is one of rank {max(seen)}"
            raise SpecError(None, why, "keep the lines of all ranks", where)
        devices: dict[str, Counter[str | None]] = {}
        for rank in self.listed:
            devices.setdefault(rank.host, Counter())[rank.device] += 1
        for host, own in devices.items():
            device, count = own.most_common(1)[0]
            if count > 1 < len(own):  # if all are alike, each process saw one GPU of its own
                why = f"{count} ranks are on device {device} of {host}: other hosts have its name"
                right = "give each host a name of its own"
                raise SpecError(None, why, right, where)
        if len(seen) == 1:
            right = "build nccl-tests with MPI=1, so that processes join, or run one with -g 8"
            raise SpecError(None, "one GPU ran alone, so nothing was exchanged", right, where)

    def _spread(self, where: str) -> tuple[int, int]:
        groups: dict[int, Counter[str]] = {}
        for rank in self.listed:
            groups.setdefault(rank.group, Counter())[rank.host] += 1
        shapes = {tuple(sorted(hosts.values())) for hosts in groups.values()}
        hosts = [host for each in groups.values() for host in each]
        if len(groups) > 1 and (len(shapes) > 1 or len(set(hosts)) < len(hosts)):
            why = f"{len(groups)} groups of ranks ran at once (NCCL_TESTS_SPLIT), on shared or unlike hosts"
            raise SpecError(None, why, "measure one group alone", where)
        each = shapes.pop()
        if len(set(each)) > 1:
            why = f"{sum(each)} ranks do not spread evenly over {len(each)} hosts"
            raise SpecError("nodes", why, "measure as many on each", where)
        return sum(each), len(each)


@dataclass
class _Run:
    """A table and what was said before and after it.

    The program, or a title, named it if ``is_told``; ``width`` is how many values a row has.
    """

    line: int
    columns: list[str]
    ranks: _Ranks
    name: str | None
    is_told: bool
    in_place_only: bool
    is_mixed: bool
    concluded: str | None = None
    is_failed: bool = False
    width: int = 0
    rows: list[Row] = field(default_factory=list)


def is_log(text: str | bytes) -> bool:
    """Return whether a text has lines that nccl-tests or rccl-tests prints."""
    found = _MARK.search(text) if isinstance(text, str) else _MARK_BYTES.search(text)
    return found is not None


def read_log(lines: Sequence[str], origin: str) -> tuple[list[LogTime], Counter[str], list[str]]:
    """Read what programs printed, one run or several.

    Parameters
    ----------
    origin
        The file, for messages.

    Returns
    -------
    tuple
        The times; how many others there are of programs without a model here, by the reason; and the names
        of the GPUs.

    Raises
    ------
    SpecError
        Naming line and remedy, if it does not say which collective ran or among which ranks, or if lines
        contradict one another.
    """
    reader = _Reader(origin)
    for number, line in enumerate(_unnumbered(lines), 1):
        if len(line) <= _LONGEST:
            reader.take(number, _bare(line))
    found: list[LogTime] = []
    others: Counter[str] = Counter()
    for run in reader.runs:
        if run.rows:
            found += _times(run, origin, others)
    empty = [row.line for run in reader.runs for row in run.rows if not row.size]
    for why, where in (("of 0 bytes", empty), ("in damaged lines", reader.damaged)):
        if where:
            others[f"{why}, the first is line {min(where)}"] += len(where)
    return found, others, list(reader.devices)


def _unnumbered(lines: Sequence[str]) -> Sequence[str]:
    """Take the numbers from lines that ``cat -n`` or ``grep -n`` numbered."""
    bare, last = [], -1
    for line in lines:
        found = _NUMBERED.match(line)
        if (found is None or int(found[1]) <= last) and line.strip():
            return lines
        last = last if found is None else int(found[1])
        bare.append(line if found is None else line[found.end() :])
    return bare if any(line.startswith("#") for line in bare) else lines


def _bare(line: str) -> str:
    """Take colours from a line, and the JSON around it: Docker's ``log`` or the journal's ``MESSAGE``."""
    if line.startswith('{"'):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return line
        for key in ("log", "MESSAGE"):
            if isinstance(value.get(key), str):
                line = value[key].rstrip("\r\n")
    return _COLOUR.sub("", line) if "\x1b" in line else line


class _Reader:
    """Collects runs line by line.

    What stands before a line tells outputs apart that are mixed in one file; where a line's prefix is new,
    as with numbered lines, it belongs to the table that began last.
    """

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.runs: list[_Run] = []
        self.devices: dict[str, None] = {}
        self.damaged: list[int] = []
        self._by_source: dict[str, _Run] = {}
        self._ranks: list[_Rank] = []
        self._names: dict[str, str] = {}
        self._mentioned: str | None = None
        self._is_in_place = False
        self._is_fresh = True

    def take(self, number: int, line: str) -> None:
        """Read a line."""
        where = f"{self.origin}, line {number}"
        if _LIBRARY.search(line) is not None:
            return
        row = _ROW.search(line)
        if row is not None and not line[: row.start()].rstrip().endswith("#"):
            self._take_row(number, row[1].split(), _source(line, row.start()), where)
            return
        if row is None and self.runs and _LIKE_ROW.search(line) is not None:
            self.damaged.append(number)
            return
        if _WORTH.search(line) is None:
            return
        rank = _RANK.search(line)
        if rank is not None:
            source = _source(line, line.find("#") if "#" in line else rank.start())
            group = int(rank[2] or 0)
            self._ranks.append(_Rank(number, source, int(rank[1]), group, rank[3], rank[4]))
            if rank[5]:
                self.devices[printable(rank[5].strip())] = None
            self._is_fresh = True
            return
        head = _HEAD.search(line)
        if head is not None:
            self._begin(number, head[1].split(), _source(line, head.start()))
        elif _OLD_HEAD.search(line) is not None:
            right = "measure with nccl-tests 2.0.0 or later, which states (us)"
            raise SpecError(None, "times are in ms, as the first versions print them", right, where)
        else:
            self._take_words(line, where)

    def _take_words(self, line: str, where: str) -> None:
        """Read what is said around tables."""
        units = _UNITS.search(line)
        other = [] if units is None else [word for word in _OTHER_TIMES if word in line]
        if other:
            right = "give what nccl-tests prints, in (us)"
            raise SpecError(None, f"times are in {other[0]}", right, where)
        run = self._run_of(_source(line, line.find("#")))
        if run is not None and _FAILED.search(line) is not None:
            run.is_failed = True
        banner = _BANNER.search(line)
        if banner is not None:
            source = _source(line, banner.start())
            self._ranks = [rank for rank in self._ranks if rank.source != source]
            self._is_fresh = True
        self._is_in_place = self._is_in_place or _IN_PLACE.search(line) is not None
        said = _SAID.search(line)
        if said is not None and said[1] == "concluded":
            self._conclude(_plain(said[2]), _source(line, line.find("#")))
            return
        names = {each[1] for each in _NAME.finditer(line)}
        known = {_plain(said[2])} if said is not None else names & PROGRAMS.keys()
        if len(known) == 1:
            if said is not None or _TITLE.search(line) is not None:
                source = _source(line, line.find("#"))
                self._names.pop(source, None)
                self._names[source] = known.pop()
            else:
                self._mentioned = known.pop()
            self._is_fresh = True

    def _conclude(self, name: str, source: str) -> None:
        run = self._run_of(source)
        if run is not None and run.concluded is None:
            run.concluded = name
        self._is_fresh = True

    def _run_of(self, source: str) -> _Run | None:
        """Return the run to which lines of a source belong."""
        run = self._by_source.get(source)
        if run is None or run.concluded is not None:
            return self.runs[-1] if self.runs else None
        return run

    def _begin(self, number: int, columns: list[str], source: str) -> None:
        """Begin a table, whose name and ranks were said before, by its own source if others said theirs."""
        own = self._ranks
        self._ranks = []
        if len({rank.number for rank in own}) < len(own):
            mine = [rank for rank in own if rank.source == source]
            self._ranks = [rank for rank in own if mine and rank.source != source]
            own = mine or own
        told = self._names.pop(source, None)
        if told is None and self._names:
            told = list(self._names.values())[-1]
            self._names.clear()
        name, self._mentioned = told or self._mentioned, None
        ranks = _Ranks(own) if own or not self.runs else self.runs[-1].ranks
        before = self._by_source.get(source)
        is_mixed = before is not None and not before.rows and not self._is_fresh
        run = _Run(number, columns, ranks, name, told is not None, self._is_in_place, is_mixed)
        self.runs.append(run)
        self._by_source[source] = run
        self._is_in_place = self._is_fresh = False

    def _take_row(self, number: int, words: list[str], source: str, where: str) -> None:
        run = self._run_of(source)
        is_usual = _TYPE.fullmatch(words[2]) is not None
        if run is None:
            if is_usual and sum(NUMBER.fullmatch(word) is not None for word in words) > 5:
                right = "keep the line that begins with '#       size         count'"
                raise SpecError(None, "no line before says what its columns are", right, where)
            return
        if is_usual and not _fits(words, len(run.ranks.listed)):
            self.damaged.append(number)
            return
        try:
            if len(words) < run.width:  # columns may be empty, but of all rows alike
                why = f"has {len(words)} values, and lines before it {run.width}"
                raise SpecError(None, why, "leave lines out that were cut off", where)
            run.rows.append(_row(number, words, run, where))
            run.width = len(words)
        except SpecError:
            if is_usual:
                raise


def _fits(words: list[str], ranks: int) -> bool:
    """Return whether the size of a row is that of its elements, or of as many for each rank."""
    size, count, each = int(words[0]), int(words[1]), _BYTES.get(words[2])
    if each is None or size == count * each:
        return True
    return count > 0 and size % (count * each) == 0 and ranks % (size // (count * each)) == 0


def _source(line: str, end: int) -> str:
    """Return what stands before a line, without the time of day: who printed it."""
    return _CLOCK.sub("", line[: max(end, 0)]).strip()


def _plain(program: str) -> str:
    """Return a program's name without path, ``_perf`` and what a build adds, as ``_mpi``."""
    found = _NAME.search(program.replace("\\", "/").rpartition("/")[2])
    return found[1] if found is not None and found[1] in PROGRAMS else program


def _row(number: int, words: list[str], run: _Run, where: str) -> Row:
    """Read a line of a table from its end: before the times, columns may be empty."""
    columns = list(run.columns)
    stamp = 2 if columns[-1] == "timestamp" else 0
    columns = columns[:-1] if stamp else columns
    if "cputime" in columns:
        raise SpecError(None, "times are those of the CPU (-C)", "measure without -C", where)
    first = columns.index("time") if "time" in columns else len(columns)
    names = columns[first:]
    before = words[3 : len(words) - stamp - len(names)]
    tail = words[len(words) - stamp - len(names) : len(words) - stamp]
    fits = len(words) >= 3 + len(names) + stamp and len(before) <= max(first - 3, 0)
    if not names or not fits:
        why = f"has {len(words)} values under {len(run.columns)} columns"
        raise SpecError(None, why, "leave lines out that were cut off", where)
    for word in tail:
        if NUMBER.fullmatch(word.rstrip("*")) is None and word not in NONE:
            raise SpecError(None, f"{word!r:.40} is no number", "give the line as printed", where)
    roots = [word for word in before if _ROOT.fullmatch(word) is not None]
    redops = [word for word in before if word not in roots]
    redop = "".join(redops) if "redop" in columns else None
    root = int(roots[0]) if roots else None
    places = [place for place, name in enumerate(names) if name == "time"]
    ends = [*places[1:], len(names)]
    times = tuple(
        _time(dict(zip(names[place:end], tail[place:end], strict=True)), is_in_place)
        for place, end, is_in_place in zip(
            places, ends, [run.in_place_only] if len(places) == 1 else [False, True], strict=False
        )
    )
    return Row(number, int(words[0]), redop, root, times)


def _time(cells: dict[str, str], in_place: bool) -> Time:
    count, error = cells.get("#wrong", "0"), cells.get("error", "0")
    wrong = ""
    if count not in ("N/A", "0") and not (NUMBER.fullmatch(count) and float(count) == 0):
        wrong = f"#wrong {count}"
    elif error.endswith("*") or error in ("nan", "-nan", "inf", "-inf"):
        wrong = f"error {error}"
    return Time(
        cells["time"], in_place, cells.get("algbw", "N/A"), cells.get("busbw", "N/A"), wrong
    )


def _times(run: _Run, origin: str, others: Counter[str]) -> Iterator[LogTime]:
    """Return the times of a run whose lines agree with one another; those without a model are counted."""
    where = f"{origin}, line {run.rows[0].line}"
    if run.is_told and run.concluded is not None and run.name != run.concluded:
        why = f"this run begins as {run.name}_perf and ends as {run.concluded}_perf"
        raise SpecError(None, why, "keep the lines of each run together", where)
    name = run.concluded or run.name
    if name is None or (name in PROGRAMS and left_out(name) is None):
        npus, nodes = run.ranks.shape(origin, where)
        if run.is_mixed:
            why = "a second table begins before the first has a row: outputs of several processes are mixed"
            right = "build nccl-tests with MPI=1, or give each output as a file of its own"
            raise SpecError(None, why, right, f"{origin}, line {run.line}")
        name = name or guessed(run.rows, npus, where)
    reason = left_out(name) if name in PROGRAMS else f"of {name}, which is not known here"
    if reason is not None:
        others[reason] += sum(len(row.times) for row in run.rows)
        return
    program = PROGRAMS[name]
    is_all_wrong = run.is_failed and not any(time.wrong for row in run.rows for time in row.times)
    for row in run.rows:
        at = f"{origin}, line {row.line}"
        check_row(row, program, (name, npus), at)
        for time in row.times if row.size else ():
            if time.text in NONE:
                if time.text != "N/A":
                    others["that are no numbers"] += 1
                continue
            wrong = time.wrong or ("out of bounds in this run" if is_all_wrong else "")
            seconds = microseconds(time.text, "time", at)
            what = program.kind, npus, nodes, row.size, seconds
            yield LogTime(row.line, *what, time.in_place, wrong, run.ranks.hosts)
