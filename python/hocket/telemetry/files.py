"""Finds out what recorded a file, by what is in it, and has it read."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import itemgetter
from os import PathLike

from hocket._checks import path_of
from hocket.errors import SpecError
from hocket.files.complaint import shown_path
from hocket.files.foreign import check_foreign
from hocket.files.raw import check_json, read_bytes, unzipped
from hocket.profiles.logs import is_log
from hocket.profiles.measurement import Measurement, measurements_in
from hocket.telemetry.calls import RUN, Call, Recording
from hocket.telemetry.flight import is_flight, read_flight
from hocket.telemetry.inspector import is_inspector, read_inspector
from hocket.telemetry.kineto import is_kineto, read_kineto
from hocket.telemetry.library_log import LibraryLog, merged, read_library_logs
from hocket.telemetry.pickles import is_pickle, load_plain

_LARGEST = 512 << 20
"""Bytes of a file, also of one that was compressed: a trace is read whole."""
_SPACES = re.compile(r"[ \t\r\n]*")
_HEAD = 1 << 16
"""Bytes among which the first is that is not a space."""
_WHAT = (
    "a log of nccl-tests or rccl-tests, a table (.csv), JSON of NCCL Inspector, a dump of Flight Recorder "
    "or a trace of PyTorch's profiler"
)


def read_recording(path: str | PathLike[str], *, in_place: bool = False) -> Recording:
    """Read a file of any of the kinds that are known, compressed by gzip or not.

    A log of NCCL alone (``NCCL_DEBUG=INFO``) has no times, and says how NCCL worked.

    Parameters
    ----------
    in_place
        Whether times in place count; by default those out of place. Only sweeps tell them apart.

    Raises
    ------
    SpecError
        Naming file, line or place, and what would be right: for a file that cannot be read, is too large,
        of no kind that is known, or wrong; for one that has no times.
    """
    file = path_of("files", path)
    name = shown_path(file)
    data = read_bytes(file, _WHAT, most=_LARGEST)
    data = unzipped(data, name, most=_LARGEST, shorter="record fewer steps")
    if is_pickle(data):
        value = load_plain(data, name)
        if not is_flight(value):
            raise SpecError(None, "is a pickle, but not of Flight Recorder", f"give {_WHAT}", name)
        found = read_flight(value, name)
    elif data[:_HEAD].lstrip()[:1] in (b"{", b"[") and not is_log(data):
        check_json(data, name)
        found = _of_json(data, name)
    else:
        found = _of_sweeps(data, name, file.stem, in_place=in_place)
    if not found.calls and (found.left_out or not found.library):
        reasons = ", ".join(f"{count:,} {why}" for why, count in found.left_out.items())
        why = f"has no times of collectives{': ' + reasons if reasons else ''}"
        right = "give --in-place" if set(found.left_out) == {"in place"} else f"give {_WHAT}"
        raise SpecError(None, why, right, name)
    return found


def _of_json(data: bytes, name: str) -> Recording:
    values = _values(data, name)
    origin, first = next(values)
    if is_kineto(first):
        return read_kineto(_alone(first, values), name)
    if is_flight(first):
        return read_flight(_alone(first, values), name)
    if is_inspector(first):
        return read_inspector(_all_alike(origin, first, values), name)
    check_foreign(data, name)
    raise SpecError(None, "is JSON of no kind that is known", f"give {_WHAT}", origin)


def _alone(value: object, rest: Iterator[tuple[str, object]]) -> object:
    """Return the only value of a file."""
    for origin, _ in rest:
        raise SpecError(None, "there is a second JSON value", "give one a file", origin)
    return value


def _all_alike(
    origin: str, first: object, rest: Iterator[tuple[str, object]]
) -> Iterator[tuple[str, object]]:
    """Return the values of a file of Inspector."""
    yield origin, first
    for place, value in rest:
        if not is_inspector(value):
            right = "each is an object with header and coll_perf or p2p_perf"
            raise SpecError(None, "is no call that NCCL Inspector recorded", right, place)
        yield place, value


def _values(data: bytes, name: str) -> Iterator[tuple[str, object]]:
    """Return the JSON values of a file, one after another, each with the file and its line."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise SpecError(None, "is not text in UTF-8", f"give {_WHAT}", name) from None
    decoder = json.JSONDecoder()
    end, line, counted = 0, 1, 0
    while True:
        start = _SPACES.match(text, end).end()  # type: ignore[union-attr]
        if start >= len(text):
            return
        line += text.count("\n", counted, start)
        counted = start
        try:
            value, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            where = f"{name}, line {error.lineno}"
            right = "give it as written" if end else f"give {_WHAT}"
            raise SpecError(None, f"is no JSON: {error.msg}", right, where) from None
        except RecursionError:
            where = f"{name}, line {line}"
            raise SpecError(None, "is nested too deeply", "give it as written", where) from None
        except ValueError:
            where = f"{name}, line {line}"
            raise SpecError(None, "has a number too long", "give it as written", where) from None
        yield f"{name}, line {line}", value


def _of_sweeps(data: bytes, name: str, stem: str, *, in_place: bool) -> Recording:
    runs = read_library_logs(data.decode("utf-8", "replace"))
    if not is_log(data) and (library := merged(log for _, log in runs)):
        return Recording(name, "nccl", RUN, (), library=library)
    rows = measurements_in(data, name, stem)
    usual = rows.only_chosen()
    left_out = {
        "with wrong results": len(rows.wrong),
        **rows.others,
        "whose algorithm was told": len(rows) - len(usual),
    }
    wanted = usual.only(in_place=in_place)
    left_out["in place" if not in_place else "out of place"] = len(usual) - len(wanted)
    kept = [row for row in wanted if row.is_aligned]
    left_out["whose parts are no multiples of 16 bytes"] = len(wanted) - len(kept)
    said = {why: count for why, count in left_out.items() if count}
    calls = tuple(_call(row, _of_run(row, runs)) for row in kept)
    device = rows.facts.get("device")
    return Recording(name, "nccl-tests", RUN, calls, said, device, rows.digest)


def _of_run(row: Measurement, runs: Sequence[tuple[int, LibraryLog]]) -> LibraryLog:
    """Return what NCCL says of itself in the run of a time; a table has one run."""
    place = bisect_left(runs, row.line, key=itemgetter(0))
    return runs[min(place, len(runs) - 1)][1]


def _call(row: Measurement, library: LibraryLog) -> Call:
    what = row.kind, row.size, row.seconds, row.npus, row.nodes
    return Call(*what, hosts=row.hosts, library=library)
