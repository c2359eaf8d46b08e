"""``hocket trace``: tables, JSON, and what is refused."""

from __future__ import annotations

import gzip
import json
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
        ["all-gather", "1", "4.194"],
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
        "format": "hocket.trace",
        "version": 1,
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
        ([""], "PREFIX: '' is empty; give a value"),
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


RING = ["--topology", "ring:8", "--bandwidth", "50 GB/s", "--latency", "500 ns"]


def test_run(hocket: Hocket, folder: Path) -> None:
    result = hocket("trace", "run", str(REAL / "custom_allreduce"), *RING, "--perfetto", "t.json")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[0] == "8 ranks on ring 8 by themis: 92.7 us"
    assert rows(result.out) == [
        ["message", "112", "14.68", "349.6"],
        *([str(rank), "49", "43.7", "0", "0", "92.7"] for rank in range(8)),
    ]
    events = json.loads((folder / "t.json").read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == 56 + 224


def test_run_as_json(hocket: Hocket, folder: Path) -> None:
    (folder / "groups.json").write_text('{"7": [0, 1]}')
    argv = ["trace", "run", str(REAL / "all_reduce"), *RING, "--groups", "groups.json"]
    values = hocket(*argv, "--algorithm", "ring", "--chunks", "1", "--json").json()
    time = 6 * (500_000 + (1 << 18) * 20)
    assert values["topology"] == "ring 8"
    assert values["algorithm"] == "ring"
    assert values["npu"] == "a100"
    assert values["notes"] == []
    assert values["groups"] == {"0": [0, 1, 2, 3]}
    assert values["calls"] == [
        {
            "name": "all_reduce_4npus_1MB",
            "kind": "all-reduce",
            "size": 1 << 20,
            "group": 0,
            "start_ps": 0,
            "end_ps": values["time_ps"],
        }
    ]
    assert values["time_ps"] >= time
    assert [row["exposed_ps"] for row in values["ranks"]] == [values["time_ps"]] * 4
    ring = hocket("trace", "run", str(REAL / "custom_allreduce"), *RING, "--json").json()
    first = ring["calls"][0]
    assert (first["from"], first["to"], first["kind"]) == (0, 1, "message")
    assert "group" not in first


def test_run_says_what_is_planned_otherwise(hocket: Hocket) -> None:
    result = hocket("trace", "run", str(REAL / "all_to_all"), *RING, "--algorithm", "ring")
    assert "note: all-to-all: ring does no all-to-all" in result.out


def test_runs_that_are_refused(hocket: Hocket, folder: Path) -> None:
    trace = str(REAL / "custom_allreduce")
    small = ["--topology", "ring:4", *RING[2:]]
    for argv, words in [
        ([trace, *small], "the trace has 8 ranks; topology 'ring 4' has 4 NPUs"),
        ([trace, *RING, "--algorithm", "themsi"], "themsi"),
        ([trace, *RING, "--order", "random"], "--order: there is no 'random'"),
        ([trace, *RING, "--npu", "a10"], "there is no 'a10'"),
        ([trace, *RING, "--efficiency", "0"], "efficiency: 0.0 is not valid"),
        ([trace, *RING, "--perfetto", "none/t.json"], "there is no folder"),
        (
            [trace, *RING, "--perfetto", "t.png"],
            "--perfetto: 't.png' has no ending that fits; use .pftrace or .json",
        ),
        ([trace, *RING, "--dependencies", "some"], "--dependencies: there is no 'some'"),
        (["nothing", *RING], "there is no nothing.0.et"),
    ]:
        result = hocket("trace", "run", *argv)
        assert result.code == 2
        assert words in result.err
        assert len(result.err.splitlines()) == 1
    assert not list(folder.iterdir())
