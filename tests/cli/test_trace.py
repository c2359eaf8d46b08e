"""``hocket trace``: tables, JSON, and what is refused."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

from .conftest import Hocket

REAL = Path(__file__).parents[1] / "data" / "chakra"


def rows(out: str) -> list[list[str]]:
    lines = [line for line in out.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def test_show(hocket: Hocket) -> None:
    result = hocket("trace", "show", str(REAL / "all_gather"))
    assert (result.code, result.err) == (0, "")
    assert rows(result.out) == [
        ["ranks", "4"],
        ["nodes", "4"],
        ["collective", "4"],
        ["compute time, all ranks", "0 ps"],
        ["all-gather", "1", "4 MiB"],
    ]


def test_show_messages(hocket: Hocket) -> None:
    result = hocket("trace", "show", str(REAL / "custom_allreduce.3.et"))
    assert ["bytes sent rank to rank", "14 MiB"] in rows(result.out)
    assert ["compute time, all ranks", "392 us"] in rows(result.out)


def test_show_as_json(hocket: Hocket, folder: Path) -> None:
    packed = (REAL / "pytorch_chakra.0.et.gz").read_bytes()
    (folder / "pytorch.0.et").write_bytes(gzip.decompress(packed))
    values = hocket("trace", "show", "pytorch", "--dependencies", "data", "--json").json()
    assert values == {
        "ranks": 1,
        "nodes": {"compute": 3643, "collective": 21},
        "compute_ps": 343_769_000_000,
        "cpu_compute_ps": 50_941_000_000,
        "messages": 0,
        "message_bytes": 0,
        "groups": 1,
        "calls": {
            "all-reduce": {"count": 5, "size": 102_228_128},
            "broadcast": {"count": 2, "size": 212_904},
        },
        "unspecified": 14,
    }
    table = hocket("trace", "show", ".", "--dependencies", "data").out
    assert "note: 14 collective nodes do not say what they do" in table


def test_groups_are_heeded(hocket: Hocket, folder: Path) -> None:
    (folder / "groups.json").write_text('{"1": [0, 1]}')
    values = hocket("trace", "show", str(REAL / "all_reduce"), "--groups", "groups.json", "--json")
    assert values.json()["groups"] == 2
    shown = hocket("trace", "show", str(REAL / "all_reduce"), "--groups", "groups.json")
    assert ["groups of ranks", "1, and all"] in rows(shown.out)


def test_what_is_refused(hocket: Hocket, folder: Path) -> None:
    for rank in (0, 2):
        shutil.copy(REAL / f"all_reduce.{rank}.et", folder)
    (folder / "notes.0.et").write_text("not a trace at all")
    for argv, words in [
        (["all_reduce"], "no file of rank 1; there are all_reduce.0.et, all_reduce.2.et"),
        (["notes"], "notes.0.et: "),
        (["nothing"], "nothing: there is no nothing.0.et"),
        ([""], "is no path"),
        ([str(REAL / "all_reduce"), "--groups", "none.json"], "none.json: cannot be read"),
        (
            [str(REAL / "all_reduce"), "--dependencies", "some"],
            "--dependencies: there is no 'some'",
        ),
        ([str(REAL / "small_chakra.0.json")], "the JSON form of traces is not read"),
    ]:
        result = hocket("trace", "show", *argv)
        assert result.code == 2
        assert words in result.err
        assert len(result.err.splitlines()) == 1
