"""Sweeps: points, rows, the same bytes however they are run, and going on after a kill."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import termios
import time
from itertools import product
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket as hk
from hocket.sweeps import run, worker
from hocket.sweeps.batch import KILLED, run_batch, schema_of
from hocket.sweeps.inputs import SweepInputs
from hocket.sweeps.pool import BatchOutcome, BatchTask, Local
from hocket.sweeps.sweep import Axis, Sweep
from hocket.sweeps.yaml import from_text

PLAIN = """
command: simulate
set: {collective: all-reduce}
grid:
  topology: ["ring:4@25GB/s,1us", "mesh:2x3@25GB/s,1us"]
  algorithm: [ring, direct, hdrm]
  size: [64 KB, 1 MB]
  chunks: 1:4:x2
"""


def read(text: str, folder: Path = Path()) -> Sweep:
    return from_text(text, "sweep.yml", folder)


def files_of(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in (folder / "rows").iterdir()}


def test_points_are_the_product_with_the_last_key_fastest() -> None:
    sweep = read(PLAIN)
    assert sweep.count == 2 * 3 * 2 * 3
    networks = ("ring:4@25GB/s,1us", "mesh:2x3@25GB/s,1us")
    wanted = product(networks, ("ring", "direct", "hdrm"), (64_000, 10**6), (1, 2, 4))
    for number, values in enumerate(wanted):
        names = ("topology", "algorithm", "size", "chunks")
        assert sweep.point(number) == {
            "collective": "all-reduce",
            **dict(zip(names, values, strict=True)),
        }
    assert sweep.shape() == "36 points: topology 2 x algorithm 3 x size 2 x chunks 3"


def test_a_list_is_combined_with_the_grid() -> None:
    sweep = read(
        "command: simulate\n"
        "set: {topology: 'ring:4@25GB/s,1us'}\n"
        "list: [{algorithm: ring, chunks: 2}, {algorithm: direct}]\n"
        "grid: {size: [1 KB, 2 KB]}\n"
    )
    assert [
        (point.get("algorithm"), point.get("chunks"), point["size"])
        for point in map(sweep.point, range(sweep.count))
    ] == [
        ("ring", 2, 1000),
        ("ring", 2, 2000),
        ("direct", None, 1000),
        ("direct", None, 2000),
    ]
    assert sweep.keys == ("topology", "algorithm", "chunks", "size")


@given(st.lists(st.integers(1, 7), max_size=4), st.integers(1, 5), st.data())
def test_points_and_parts_are_numbered_without_gaps(
    lengths: list[int], entries: int, data: st.DataObject
) -> None:
    axes = tuple(Axis(f"k{i}", tuple(range(length))) for i, length in enumerate(lengths))
    listed = tuple({"entry": i} for i in range(entries))
    per_part = data.draw(st.one_of(st.none(), st.integers(1, 9)))
    sweep = Sweep("simulate", {}, listed, axes, per_part=per_part)
    points = [tuple(sweep.point(i).values()) for i in range(sweep.count)]
    assert len(set(points)) == sweep.count
    assert points == sorted(points)
    numbers = [number for part in range(sweep.parts) for number in sweep.numbers(part)]
    assert numbers == list(range(sweep.count))


def test_rows_are_what_the_library_gives(tmp_path: Path) -> None:
    found = hk.run_sweep(read(PLAIN), tmp_path / "rows", workers=2)
    rows = found.to_frame().to_pylist()
    assert [row["point"] for row in rows] == list(range(36))
    for row in rows:
        network = hk.topology.load(row["topology"])
        if row["algorithm"] == "hdrm":
            assert row["error_kind"] in ("InfeasibleError", "SpecError")
            assert row["time_ps"] is None
            continue
        made = hk.plan(
            "all-reduce",
            network,
            size=row["size"],
            algorithm=row["algorithm"],
            chunks=row["chunks"],
        )
        result = hk.simulate(made)
        assert (row["time_ps"], row["transfers"]) == (result.time_ps, len(made))
        assert (row["bound_ps"], row["gap"]) == (result.lower_bound.time_ps, result.gap)
        assert (row["busbw_bytes_per_s"], row["npu_count"]) == (result.busbw, network.npu_count)
        assert row["verified"]
        assert row["error"] is None
        assert row["cost"] is None
    assert found.failed == 12


def test_the_number_of_processes_does_not_change_a_byte(tmp_path: Path) -> None:
    sweep = read(PLAIN)
    for workers in (1, 3):
        hk.run_sweep(sweep, tmp_path / str(workers), workers=workers)
    tools = SweepInputs(sweep.loaded)
    serial = {f"part-{i:05d}.parquet": run_batch(sweep, i, tools)[0] for i in range(sweep.parts)}
    assert files_of(tmp_path / "1") == files_of(tmp_path / "3") == serial


def test_columns_depend_on_the_sweep_alone(tmp_path: Path) -> None:
    sweep = read(PLAIN)
    hk.run_sweep(sweep, tmp_path / "a", workers=1)
    names = schema_of(sweep).names
    assert names[:6] == ["point", "collective", "topology", "algorithm", "size", "chunks"]
    assert names[-2:] == ["error_kind", "error"]
    for file in (tmp_path / "a" / "rows").iterdir():
        assert pq.read_schema(file).equals(schema_of(sweep))


def test_polars_reads_the_folder(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    hk.run_sweep(read(PLAIN), tmp_path / "a", workers=1)
    frame = polars.read_parquet(tmp_path / "a" / "rows")
    assert frame["point"].to_list() == list(range(36))
    assert frame["error"].null_count() == 24


def test_duckdb_reads_the_folder(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    hk.run_sweep(read(PLAIN), tmp_path / "a", workers=1)
    files = str(tmp_path / "a" / "rows" / "*.parquet")
    count = duckdb.sql(f"select count(*), count(error) from '{files}'").fetchall()[0]
    assert count == (36, 12)


KILLED_RUN = """
import os, signal, sys
import hocket as hk

def progress(stage, done, total):
    if done >= int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

hk.run_sweep(sys.argv[1], sys.argv[2], workers=2, progress=progress)
"""


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on(tmp_path: Path) -> None:
    """Killed after some random number of points, three times, and with a file that a crash left short."""
    file = tmp_path / "sweep.yml"
    file.write_text(PLAIN.replace("1:4:x2", "1:24"))  # 288 points, 144 parts
    sweep = hk.load_sweep(file)
    hk.run_sweep(sweep, tmp_path / "whole", workers=2)
    wanted = files_of(tmp_path / "whole")
    draw = random.Random(7)
    folder = tmp_path / "killed"
    rows = folder / "rows"
    seen = 0
    for _ in range(3):
        most = seen + draw.randrange(1, 90)
        made = subprocess.run(
            [sys.executable, "-c", KILLED_RUN, str(file), str(folder), str(most)],
            env={**os.environ, "PYTHONPATH": str(Path(hk.__file__).parent.parent)},
            check=False,
        )
        assert made.returncode == -signal.SIGKILL
        there = {each.name for each in rows.glob("part-*")}
        seen = 2 * len(there)
        assert most <= seen < sweep.count
        for name in there:
            assert (rows / name).read_bytes() == wanted[name]
    (rows / "part-00000.parquet").write_bytes(wanted["part-00000.parquet"][:-1])  # as after a crash
    found = hk.run_sweep(sweep, folder, workers=1)
    assert files_of(folder) == wanted
    assert 0 < found.resumed < sweep.count
    assert not list(folder.rglob(".hocket-*"))
    assert hk.run_sweep(sweep, folder).resumed == sweep.count


def test_processes_end_with_whoever_started_them(tmp_path: Path) -> None:
    executor = Local(read(PLAIN), 2)
    pids = executor.pids
    executor.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_process_may_be_started_early(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    new = worker._new_process

    def kept() -> worker.Child:
        made.append(new())
        return made[-1]

    monkeypatch.setattr(worker, "_new_process", kept)
    with worker.early_process():
        executor = Local(read(PLAIN), 2)
        assert len(made) == 2
        assert set(executor.pids) == {each.process.pid for each in made}
        executor.submit(BatchTask("point", 0))
        executor.submit(BatchTask("point", 1))
        assert not any(outcome.is_dead for outcome in executor.wait())
        executor.close()
    with pytest.raises(ZeroDivisionError), worker.early_process():
        raise ZeroDivisionError
    assert len(made) == 3
    assert made[2].process.returncode == -signal.SIGKILL
    with worker.early_process():  # asked for after the block, it is another
        pass
    executor = Local(read(PLAIN), 1)
    assert made[4].process.pid in executor.pids
    executor.close()


def late(number: int, frame: object) -> None:
    raise TimeoutError


def test_answers_that_come_together_are_all_heard() -> None:
    executor = Local(read(PLAIN.replace("1:4:x2", "1")), 1)
    try:
        for point in range(2):
            executor.submit(BatchTask("point", point))
        for _ in range(200):  # until both lie in the connection
            sizes = fcntl.ioctl(executor._workers[0].child.connection, termios.FIONREAD, b"\0" * 4)
            if int.from_bytes(sizes, sys.byteorder) >= 2 * 8:
                break
            time.sleep(0.05)
        previous = signal.signal(signal.SIGALRM, late)
        signal.alarm(20)
        heard = [outcome for _ in range(2) for outcome in executor.wait()]
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    finally:
        executor.close()
    assert [each.task.number for each in heard] == [0, 1]


def test_a_part_too_many_is_named(tmp_path: Path) -> None:
    made = hk.run_sweep(read(PLAIN), tmp_path / "a", workers=1)
    rows = tmp_path / "a" / "rows"
    (rows / "part-99999.parquet").write_bytes((rows / "part-00000.parquet").read_bytes())
    for ask in (made.to_frame, lambda: hk.report_sweep(tmp_path / "a")):
        with pytest.raises(hk.SpecError, match=r"part-99999\.parquet: is no part of this sweep"):
            ask()


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["flipped", "short", "garbage", "other rows", "other columns"])
def test_a_damaged_part_is_named_and_made_anew(tmp_path: Path, damage: str) -> None:
    sweep = read(PLAIN)
    hk.run_sweep(sweep, tmp_path / "a", workers=1)
    wanted = files_of(tmp_path / "a")
    part = tmp_path / "a" / "rows" / "part-00003.parquet"
    whole = part.read_bytes()
    if damage == "flipped":
        part.write_bytes(whole[:100] + bytes(byte ^ 0x5A for byte in whole[100:400]) + whole[400:])
    elif damage == "short":
        part.write_bytes(whole[:300])
    elif damage == "garbage":
        part.write_bytes(b"PAR1" + bytes(range(256)) * 8 + b"PAR1")
    elif damage == "other rows":
        part.write_bytes(wanted["part-00004.parquet"])
    else:
        pq.write_table(pq.read_table(part).drop_columns(["time_ps"]), part)
    if damage in ("flipped", "short", "garbage"):
        with pytest.raises(hk.SpecError, match=r"part-00003\.parquet: is damaged; run the same"):
            hk.report_sweep(tmp_path / "a")
    found = hk.run_sweep(sweep, tmp_path / "a", workers=1)
    assert found.resumed == sweep.count - len(sweep.numbers(3))
    assert files_of(tmp_path / "a") == wanted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 0}, "is of an earlier version of hocket"),
        ({"version": 2}, "is of a later version of hocket"),
        ({"version": None}, "is damaged, or none of a sweep"),
        ({"keys": "abc"}, "is damaged, or none of a sweep"),
        ({"sweep": []}, "is damaged, or none of a sweep"),
        ({"keys": ["nope"]}, "its rows are not those of its sweep.json"),
    ],
)
def test_a_manifest_that_is_none_is_refused(
    tmp_path: Path, change: dict[str, object], says: str
) -> None:
    place = tmp_path / "a"
    hk.run_sweep(read(PLAIN.replace("1:4:x2", "1")), place, workers=1)
    told = json.loads((place / run.MANIFEST).read_text())
    (place / run.MANIFEST).write_text(json.dumps({**told, **change}))
    with pytest.raises(hk.SpecError, match=says):
        hk.report_sweep(place)


def test_what_is_refused_has_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from hocket.cli import run as command

    (tmp_path / "s.yml").write_text(PLAIN)
    (tmp_path / "file").write_text("x")
    assert command(["sweep", str(tmp_path / "s.yml"), "-o", str(tmp_path / "file")]) == 2
    assert len(capfd.readouterr().err.splitlines()) == 1


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_no_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = read(PLAIN.replace("1:4:x2", "1:12"))
    hk.run_sweep(sweep, tmp_path / "whole", workers=1)
    draw = random.Random(3)
    killed = []
    waits = itertools.count(1)

    class Killing(Local):
        def wait(self) -> list[BatchOutcome]:
            # So far apart that no point is at work in two that are killed: such a point would be given up.
            if len(killed) < 4 and next(waits) % 12 == 0:
                pid = draw.choice(self.pids)
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            return super().wait()

    monkeypatch.setattr(run, "Local", Killing)
    hk.run_sweep(sweep, tmp_path / "killed", workers=2)
    assert len(killed) == 4
    assert files_of(tmp_path / "killed") == files_of(tmp_path / "whole")


class Scripted:
    """An executor in this process, in which some points end whatever process runs them."""

    def __init__(self, sweep: Sweep, killers: set[int]) -> None:
        self.sweep = sweep
        self.killers = killers
        self.tasks: list[BatchTask] = []
        self.done: list[BatchTask] = []
        self.tools = SweepInputs(sweep.loaded)

    @property
    def room(self) -> int:
        return 3 - len(self.tasks)

    def submit(self, task: BatchTask) -> None:
        self.tasks.append(task)

    def wait(self) -> list[BatchOutcome]:
        task = self.tasks.pop(0)
        self.done.append(task)
        numbers = (
            set(self.sweep.numbers(task.number)) - task.killers
            if task.kind == "part"
            else {task.number}
        )
        if numbers & self.killers:
            return [BatchOutcome(task, None, is_dead=True)]
        if task.kind == "point":
            return [BatchOutcome(task, None)]
        return [BatchOutcome(task, run_batch(self.sweep, task.number, self.tools, task.killers))]

    def close(self) -> None:
        self.tasks.clear()


@settings(max_examples=25)
@given(st.sets(st.integers(0, 7)))
def test_points_that_end_their_process_are_rows_and_no_others(
    tmp_path_factory: pytest.TempPathFactory, killers: set[int]
) -> None:
    sweep = Sweep(
        "simulate",
        {"topology": "ring:3@1GB/s,1us", "algorithm": "ring", "chunks": 1},
        ({},),
        (Axis("size", tuple(range(1000, 1008))),),
        per_part=3,
    )
    folder = tmp_path_factory.mktemp("sweep")
    run._prepared(sweep, folder)
    executor = Scripted(sweep, killers)
    run._run(sweep, folder, range(sweep.parts), executor, None)
    rows = run.read_rows(folder).to_pylist()
    assert [row["point"] for row in rows] == list(range(8))
    assert {row["point"] for row in rows if row["error"] == KILLED} == killers
    assert all((row["time_ps"] is None) == (row["point"] in killers) for row in rows)
    probed = [task.number for task in executor.done if task.kind == "point"]
    assert all(probed.count(number) == 2 for number in killers)


def test_a_process_that_cannot_begin_is_no_endless_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker.sys, "executable", "/bin/false")
    with pytest.raises(hk.SimulationError, match="end as soon as they begin"):
        hk.run_sweep(read(PLAIN), tmp_path / "a", workers=1)


def test_other_folders_are_refused(tmp_path: Path) -> None:
    sweep = read(PLAIN)
    (tmp_path / "file").write_text("x")
    with pytest.raises(hk.SpecError, match="is a file, not a folder"):
        hk.run_sweep(sweep, tmp_path / "file")
    with pytest.raises(hk.SpecError, match="has other files"):
        hk.run_sweep(sweep, tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    place = tmp_path / "made"
    hk.run_sweep(sweep, place, workers=1)
    other = read(PLAIN.replace("64 KB", "65 KB"))
    with pytest.raises(hk.SpecError, match="another sweep"):
        hk.run_sweep(other, place)
    told = json.loads((place / run.MANIFEST).read_text())
    (place / run.MANIFEST).write_text(json.dumps({**told, "hocket": "0.0.1", "hash": "x"}))
    with pytest.raises(hk.SpecError, match=r"begun by hocket 0\.0\.1"):
        hk.run_sweep(sweep, place)


def test_files_that_points_name_count_too(tmp_path: Path) -> None:
    net = tmp_path / "net.yml"
    net.write_text("builder: ring\nnpus: 4\nbandwidth: 25 GB/s\nlatency: 1 us\n")
    text = "command: simulate\nset: {size: 1 MB, algorithm: ring}\ngrid: {topology: [net.yml]}\n"
    first = read(text, tmp_path)
    assert read(text, tmp_path).hash == first.hash
    net.write_text("builder: ring\nnpus: 5\nbandwidth: 25 GB/s\nlatency: 1 us\n")
    assert read(text, tmp_path).hash != first.hash


EVERY = [
    ("plan", "set: {topology: 'ring:4@25GB/s,1us', size: 1 MB, algorithm: ring}"),
    ("bound", "set: {topology: 'ring:4@25GB/s,1us', size: 1 MB}"),
    ("compare", "set: {topology: 'ring:4@25GB/s,1us', size: 1 MB, chunks: 2}"),
    (
        "train",
        "set: {workload: resnet50, topology: 'Ring_SW:2x2@50GB/s,1us@25GB/s', parallel: 'dp=4'}",
    ),
    ("predict", "set: {topology: hgx_h200_8gpu, size: 1 GiB, collective: all-reduce}"),
    (
        "predict --training",
        "set: {workload: gpt3-175b, parallel: 'dp=4,tp=8,pp=12', batch: 1536, npu: a100}",
    ),
    ("route", "set: {jobs: jobs.yml, fabric: 'clos:4x4', nics_per_host: 4, gpus_per_host: 4}"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "text"), EVERY, ids=[name for name, _ in EVERY])
def test_every_command_runs(command: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "jobs.yml").write_text(
        "jobs:\n  - {name: one, parameters: 1e9, tensor: 4, pipeline: 1, data: 4, compute: 1 s}\n"
    )
    sweep = read(f"command: {command}\n{text}\n", tmp_path)
    hk.run_sweep(sweep, tmp_path / "out", workers=1)
    found = run.read_rows(tmp_path / "out").to_pylist()
    assert [row["error"] for row in found] == [None] * len(found)
    figure = {"plan": "bound_ps", "bound": "bound_ps"}.get(command, "time_ps")
    figure = "time_s" if command.startswith("predict") else figure
    assert all(row[figure] > 0 for row in found)
    if command == "predict --training":
        given = {"parallel": "dp=4,tp=8,pp=12", "batch": 1536, "npu": "a100"}
        stated = hk.predict_training("gpt3-175b", **given).error
        assert stated is not None
        assert [row["expected_error"] for row in found] == [stated.within]
    if command == "compare":
        assert [row["rank"] for row in found] == list(range(1, len(found) + 1))
        wanted = hk.compare("all-reduce", "ring:4@25GB/s,1us", size="1 MB", chunks=2)
        assert [row["planned_by"] for row in found] == [each.algorithm for each in wanted]
        assert [row["time_ps"] for row in found] == [each.run.time_ps for each in wanted]
    if command == "train":
        wanted = hk.train("resnet50", "Ring_SW:2x2@50GB/s,1us@25GB/s", parallel="dp=4")
        assert found[0]["time_ps"] == wanted.time_ps
    if command == "predict":
        wanted = hk.predict("all-reduce", "hgx_h200_8gpu", sizes="1 GiB")
        assert found[0]["time_s"] == wanted.times[0].seconds
