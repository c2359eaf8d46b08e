"""What a file takes in memory is bounded before it is taken, whatever the file is and whoever reads it."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import random
import threading
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hocket as hk
from hocket import _memory
from hocket.cli import run
from hocket.errors import SpecError
from hocket.files import blob, parquet, raw
from hocket.plans.parquet import load_plan
from hocket.simulation.parquet import is_run
from hocket.sweeps.run import read_manifest
from hocket.telemetry.files import read_recording
from hocket.telemetry.pickles import load_plain
from hocket.units import shown

DOORS = (
    "check F",
    "import F -t dgx1_v100 -o out.parquet",
    "check F",
    "show F -o out.html",
    "measured F -t dgx_a100_1box",
    "nccl audit F F",
    "nccl tuner write -t dgx_a100_1box --measured F -o out.csv",
    "nccl tuner show F -t dgx_a100_1box",
    "calibrate -t dgx_a100_1box F -o out.yml",
    "sweep F -o out",
    "workload show F",
    "topology show ring:4@1GB/s,1us --costs F",
    "compare F -t ring:4@1GB/s,1us",
    "train F -t ring:4@1GB/s,1us",
    "run F",
)
"""Commands that read a file."""


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
def test_what_never_ends_is_refused_unread(
    door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("endless.yml").symlink_to("/dev/zero")
    Path("folder").mkdir()
    for place in ("endless.yml", "folder"):
        tracemalloc.start()
        code = run(door.replace("F", place).split())
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        said = capsys.readouterr().err.splitlines()
        assert (code, len(said)) == (2, 1), said
        assert place in said[0]
        assert most < 64 << 20
    assert sorted(each.name for each in tmp_path.iterdir()) == ["endless.yml", "folder"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_read_to_its_end_or_to_the_limit(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write(count: int) -> threading.Thread:
        def work() -> None:
            with pipe.open("wb", buffering=0) as file, suppress(BrokenPipeError):
                file.write(b"x" * count)

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    writer = write(1000)
    assert raw.read_bytes(pipe, "a log") == b"x" * 1000
    writer.join()
    writer = write(4 << 20)
    with pytest.raises(SpecError, match="is larger than 1 MiB; give a log"):
        raw.read_bytes(pipe, "a log", most=1 << 20)
    writer.join()


def value(draw: random.Random, depth: int) -> Any:
    """Some value of JSON; what files of one kind have is alike, so that one shape is often repeated."""
    kind = draw.randrange(9 if depth else 5)
    if kind < 5:
        some = (draw.randrange(1 << 40), draw.random(), None, "x" * draw.randrange(40), "")
        return some[kind]
    count = draw.choice((0, 1, 2, 7, 60))
    if kind < 7:
        return [value(draw, depth - 1) for _ in range(count)]
    return {f"{draw.choice('ab')}{at}": value(draw, depth - 1) for at in range(count)}


def test_what_json_takes_is_known_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    monkeypatch.setattr(raw, "check_fits", lambda size, *_, **__: found.append(size))
    draw = random.Random(5)
    shapes: list[Any] = [
        {},
        [],
        [[]],
        {"a": {}},
        {"a": 1},
        1,
        1.5,
        "a",
        "abc",
        [1],
        {"name": [1, 2]},
    ]
    shapes += [value(draw, 3) for _ in range(20)]
    for shape in shapes:
        text = json.dumps(shape, separators=(",", ":"))
        many = f"[{','.join([text] * (200_000 // len(text) + 1))}]"
        raw.check_json(many.encode(), "x")
        tracemalloc.start()
        kept = json.loads(many)
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert kept
        assert taken < 1.3 * found[-1], shape
        assert found[-1] < 20 * taken + 4 * len(many), shape


def gzipped(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_bombs_are_refused_by_what_they_would_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw, "_VALUES", 10_000_000)
    says = r"would take [\d.]+ MB in memory; the limit is 10 MB$"
    events = '{"traceEvents": [' + ",".join(["{}"] * 100_000) + "]}"
    trace = gzipped(tmp_path / "trace.json.gz", events)
    assert trace.stat().st_size < 2_000
    document = tmp_path / "run.json"
    document.write_text('{"format": "hocket.train", "x": [' + "[]," * 99_999 + "[]]}")
    groups = tmp_path / "groups.json"
    groups.write_text(events)
    (tmp_path / "sweep.json").write_text(events)
    from hocket.cli.explore import _document
    from hocket.traces.files import _read_groups

    plan = tmp_path / "plan.parquet"
    head = {"hocket.plan": "[" + "[]," * 99_999 + "[]]"}
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata(head), plan)
    doors: list[Callable[[], object]] = [
        lambda: load_plan(plan),
        lambda: read_recording(trace),
        lambda: _document(document),
        lambda: _read_groups(groups),
        lambda: read_manifest(tmp_path),
    ]
    for door in doors:
        with pytest.raises(SpecError, match=says):
            door()


def test_logs_are_bounded_when_they_are_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hocket.profiles.measurement._LARGEST", 1 << 20)
    log = gzipped(tmp_path / "log.gz", "ab\n" * 400_000)
    with pytest.raises(SpecError, match="is larger than 1 MiB; give a table"):
        read_recording(log)


def test_pickles_are_bounded_by_their_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hocket.telemetry.pickles._MOST", 10_000_000)
    data = b"\x80\x04](" + b"]" * 200_000 + b"e."
    with pytest.raises(SpecError, match=r"would take 10.49 MB in memory; the limit is 10 MB"):
        load_plain(data, "dump")


def test_what_holds_itself_many_times_over_is_shown_in_a_line() -> None:
    deep: Any = "x"
    for _ in range(60):
        deep = [deep] * 60
    assert len(load_plain(pickle.dumps(deep, 4), "dump")) == 60  # type: ignore[arg-type]
    for wrong in (deep, tuple(deep), {"a": deep}, {1: {2: deep}}):
        assert len(shown(wrong)) == 67
        assert shown(wrong).endswith("...")
    some = (
        "x",
        [],
        (),
        {},
        (1,),
        (1, 2),
        [1, "a", None],
        {"a": [1.5, {}], 2: ("b",)},
        "it's",
        b"y",
        {3},
    )
    for right in some:
        assert shown(right) == repr(right)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small plan."""
    path = tmp_path_factory.mktemp("plans") / "plan.parquet"
    hk.plan("all-reduce", "ring:4@1GB/s,1us", size="1MB", algorithm="ring").save(path)
    return path


def written(path: Path, like: Path, rows: int, **texts: str) -> Path:
    """A file with a plan's metadata, of so many rows that are all the same."""
    made: dict[str, pa.Array] = {
        name: pa.array(np.full(rows, number, np.uint32))
        for name, number in (("chunk", 0), ("src", 0), ("dst", 1), ("wait", 0))
    }
    for name, text in ({"op": "copy"} | texts).items():
        made[name] = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), [text])
    kept, table = pq.read_schema(like).metadata, pa.table(made)
    pq.write_table(table.replace_schema_metadata(kept), path, compression="zstd")
    return path


def test_plans_are_bounded_by_their_rows(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    large = written(tmp_path / "large.parquet", plan, 2_000_000)
    assert large.stat().st_size < 200_000
    monkeypatch.setattr(_memory, "memory_limit", lambda: 100_000_000)
    before = pa.default_memory_pool().bytes_allocated()
    for command in ("check", "simulate"):
        assert run([command, str(large)]) == 2
        said = capsys.readouterr().err
        assert "its 2,000,000 transfers would take" in said
        assert said.strip().endswith("in memory; the limit is 100 MB")
    assert pa.default_memory_pool().bytes_allocated() == before


@pytest.mark.parametrize("name", ["op", "src", "chunk", "chunk_sizes"])
def test_a_long_text_in_every_row_is_read_once(plan: Path, tmp_path: Path, name: str) -> None:
    bomb = written(tmp_path / "bomb.parquet", plan, 20_000, **{name: "x" * 100_000})
    assert bomb.stat().st_size < 1_000_000
    usual = pa.default_memory_pool()
    pool = pa.system_memory_pool()  # used by nothing else
    pa.set_memory_pool(pool)
    try:
        with pytest.raises(SpecError, match="is not a plan"):
            load_plan(bomb)
    finally:
        pa.set_memory_pool(usual)
    assert pool.max_memory() < 100_000_000


def test_tables_of_sweeps_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10_000, np.int32)), ["x" * 50_000])
    files = []
    for at, made in enumerate((pa.array(np.zeros(3_000_000)), same)):
        files.append(tmp_path / f"{at}.parquet")
        pq.write_table(pa.table({"a": made}), files[at], compression="zstd")
        assert files[at].stat().st_size < 100_000
    # As a writer that keeps no lists would have it.
    schema = pa.schema([("a", pa.string())])
    with pq.ParquetWriter(files[1], schema, compression="zstd") as writer:
        for _ in range(100):
            writer.write_table(pa.table({"a": ["x" * 50_000] * 100}))
    monkeypatch.setattr(_memory, "memory_limit", lambda: 20_000_000)
    with pytest.raises(
        SpecError, match="3,000,000 rows would take 24 MB in memory; the limit is 20 MB"
    ):
        parquet.read_tables(files[:1])
    with pytest.raises(SpecError, match="the texts of its 10,000 rows would take 500 MB in memory"):
        parquet.read_tables(files[1:])
    monkeypatch.undo()
    assert parquet.read_tables(files[1:]).schema.field("a").type == pa.string()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_among_the_parts_of_a_sweep_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "part-0.parquet"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="is no file"):
        parquet.read_tables([pipe])


def test_programs_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.xml"
    program.write_text("<algo>" + " " * 10_000 + "</algo>")
    monkeypatch.setattr(_memory, "memory_limit", lambda: 100_000)
    assert run(["check", str(program)]) == 2
    assert "would take 160.2 kB in memory; the limit is 100 kB" in capsys.readouterr().err


def test_spaces_between_values_take_no_time() -> None:
    from hocket.telemetry.files import _values

    found = list(_values(b"1" + b" \n" * 10_000_000 + b"2", "log"))
    assert found == [("log, line 1", 1), ("log, line 10000001", 2)]


def test_packed_columns_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = blob.pack(np.zeros(4_000_000, np.uint64))
    assert len(packed) < 50_000
    monkeypatch.setattr(_memory, "memory_limit", lambda: 50_000_000)
    with pytest.raises(SpecError, match="4,000,000 numbers would take 64 MB in memory"):
        blob.unpack(packed, "uint64")


def test_a_container_has_what_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _memory.memory_limit()
    given = tmp_path / "memory.max"
    monkeypatch.setattr(_memory, "_GROUPS", (tmp_path / "none", given))
    for text, limit in (("1000000\n", 800_000), ("max\n", whole), (str(1 << 63), whole)):
        given.write_text(text)
        assert _memory.memory_limit() == limit


def test_a_device_is_no_run() -> None:
    assert not is_run(Path("/dev/zero"))
