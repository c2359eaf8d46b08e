"""hocket's own interpreter on GPUs that are threads of a CPU, and compiled by NVRTC."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.deployment.fake_gpu import Cluster
from tests.deployment.folders import entry
from tests.deployment.nvrtc import compiled
from tests.deployment.test_route import together

import hocket as hk
from hocket._core import formats as core
from hocket._core.formats import DeviceProgram, device_program
from hocket.deployment.manifest import Entry
from hocket.deployment.own import programs_of, source
from hocket.deployment.route import PlannedGroup
from hocket.errors import InfeasibleError, SpecError, TransportError

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "all-to-all")


def program(kind: str, ranks: int, algorithm: str = "direct", blocks: int = 16, **more: Any) -> Any:
    network = more.pop("network", f"fc:{ranks}@25GB/s,1us")
    made = hk.plan(kind, network, size=1 << 20, algorithm=algorithm, **more)
    return device_program(made.core, blocks)


class Job:
    """Ranks that call one entry again and again."""

    def __init__(self, kind: str, made: DeviceProgram, cluster: Cluster, **more: Any) -> None:
        self.cluster, self.made = cluster, made
        self.entry: Entry = entry(kind, cluster.ranks, 1, 2, id="entry")
        stage = max(1 << 16, 16 * max(made.sizes))
        self.engines = cluster.engines({"entry": made}, stage, **more)
        for each in self.engines:
            each.prepare(self.entry)

    def call(self, dtype: str = "int32", op: str = "sum", vectors: int = 1, seed: int = 0) -> None:
        """Make a call with random numbers, and compare it with what NumPy does."""
        width = np.dtype(dtype).itemsize
        count = vectors * 16 // width
        random = np.random.default_rng(seed)
        sends = [
            random.integers(0, 100, count * self.made.sizes[0]).astype(dtype)
            for _ in range(self.cluster.ranks)
        ]
        found = self.run(sends, op)
        for one, other in zip(found, together(self.entry.collective, sends, dtype), strict=True):
            right = other if op == "sum" else other / self.cluster.ranks
            np.testing.assert_allclose(one, right, rtol=0 if op == "sum" else 1e-6)

    def calls(self, count: int, seed: int = 0) -> None:
        """Make calls in one launch: a rank begins one when it has ended the one before."""
        cluster, (ways_in, ways_out, _) = self.cluster, self.made.sizes
        random = np.random.default_rng(seed)
        given = random.integers(0, 99, (cluster.ranks, count, 4 * ways_in)).astype(np.int32)
        found = np.full((cluster.ranks, count, 4 * ways_out), -1, np.int32)
        for rank, engine in enumerate(self.engines):
            buffers = (int(each.ctypes.data) for each in (engine.send, engine.recv))
            arrays = (int(each[rank].ctypes.data) for each in (given, found))
            cluster.callers[rank] = (*buffers, 16 * ways_in, 16 * ways_out, *arrays)
        cluster.calls = count

        def work(rank: int) -> None:
            engine = self.engines[rank]
            parts = engine.send[: 16 * ways_in], engine.recv[: 16 * ways_out]
            engine.launch(self.entry, *parts, "sum", "int32")

        cluster.on_all(work)
        for engine in self.engines:
            engine.check()
        for call in range(count):
            sends = [given[rank, call] for rank in range(cluster.ranks)]
            right = together(self.entry.collective, sends, "int32")
            np.testing.assert_array_equal(found[:, call], np.stack(right))

    def run(self, sends: list[Any], op: str = "sum") -> list[Any]:
        self.cluster.calls, self.cluster.callers[:] = 1, 0
        dtype = str(sends[0].dtype)
        length = sends[0].nbytes // self.made.sizes[0] * self.made.sizes[1]

        def work(rank: int) -> Any:
            engine, data = self.engines[rank], sends[rank].view(np.uint8)
            engine.send[: len(data)] = data
            engine.recv[:length] = 0xFF
            engine.launch(self.entry, engine.send[: len(data)], engine.recv[:length], op, dtype)
            return engine.recv[:length].copy().view(dtype)

        return self.cluster.on_all(work)


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_plans_give_what_numpy_gives(kind: str, ranks: int) -> None:
    job = Job(kind, program(kind, ranks), Cluster(ranks, seed=ranks))
    for seed in range(3):
        job.call(seed=seed)


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [
        ("all-reduce", "greedy"),
        ("all-reduce", "trees"),
        ("all-gather", "ring"),
        ("reduce-scatter", "direct"),
        ("reduce-scatter", "halving-doubling"),
    ],
)
def test_algorithms_on_a_machine(kind: str, algorithm: str) -> None:
    made = program(kind, 8, algorithm, 40, network="dgx1_v100")
    assert made.blocks > 8
    job = Job(kind, made, Cluster(8))
    job.call()
    job.call(seed=1)


def test_more_operations_than_other_executors_hold() -> None:
    made = program("all-reduce", 4, "ring", chunks=64)
    assert max(len(made.words(rank)) for rank in range(4)) > 3000
    Job("all-reduce", made, Cluster(4)).call()


@pytest.mark.parametrize("has_multicast", [False, True])
@pytest.mark.parametrize("ranks", [3, 8])
@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "broadcast"])
def test_switches_sum_and_multicast(kind: str, ranks: int, has_multicast: bool) -> None:
    algorithm = "multimem" if kind == "all-reduce" else "in-network"
    box = hk.topology.offloaded(hk.topology.switch(ranks, bandwidth="25 GB/s", latency="1 us"))
    made = program(kind, ranks, algorithm, 2, network=box)
    assert any(int(word) >> 40 & 0xFFFFF == 0xFFFFF for word in made.words(0))  # of every rank
    job = Job(kind, made, Cluster(ranks, has_multicast=has_multicast))
    for dtype in ("int32", "float16"):
        job.call(dtype)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("seed", [0, 7])
def test_types_and_threads(seed: int, threads: int) -> None:
    job = Job(
        "all-reduce", program("all-reduce", 3), Cluster(3, threads=threads, seed=seed), seconds=9
    )
    for dtype in ("float32", "float16", "int32", "uint32", "int64"):
        job.call(dtype, vectors=5)
    job.call("uint8")
    job.call("float32", "average", seed=2)


def test_bfloat16_is_rounded_once_to_even() -> None:
    job = Job("all-reduce", program("all-reduce", 2, "ring"), Cluster(2))
    chunk = [0x3F80, 0x4380, 0x3F81, 0xBF80, 0x7F80, 0, 0x8000, 0x4000]  # 1, 256, 1.0078125, -1 ...
    other = [0x3B80, 0x3F80, 0x3B80, 0x3F80, 0x3F80, 0, 0x8000, 0x4040]  # 2^-8, 1, 2^-8, 1 ...
    right = [0x3F80, 0x4380, 0x3F82, 0, 0x7F80, 0, 0x8000, 0x40A0]
    count = job.made.sizes[0]
    sends = [np.array(each * count, np.uint16) for each in (chunk, other)]

    def work(rank: int) -> Any:
        engine, data = job.engines[rank], sends[rank].view(np.uint8)
        engine.send[: len(data)] = data
        parts = engine.send[: len(data)], engine.recv[: len(data)]
        engine.launch(job.entry, *parts, "sum", "bfloat16")
        return parts[1].view(np.uint16)

    for found in job.cluster.on_all(work):
        np.testing.assert_array_equal(found, np.array(right * count, np.uint16))


@pytest.mark.parametrize("kind", KINDS)
def test_calls_follow_each_other_on_the_same_buffers(kind: str) -> None:
    job = Job(kind, program(kind, 4), Cluster(4))
    job.calls(20)
    job.calls(20, seed=1)


def test_entries_take_turns() -> None:
    cluster = Cluster(4)
    kinds = {kind: program(kind, 4) for kind in KINDS}
    rows = {kind: entry(kind, 4, 1, 2, id=kind) for kind in KINDS}
    engines = cluster.engines(kinds, 1 << 16)
    for engine in engines:
        for row in rows.values():
            engine.prepare(row)
    random = np.random.default_rng(3)
    for _ in range(40):
        kind = KINDS[random.integers(len(KINDS))]
        sizes = kinds[kind].sizes
        sends = [random.integers(0, 99, 4 * sizes[0]).astype(np.int32) for _ in range(4)]

        def work(rank: int, kind: str = kind, sends: list[Any] = sends, sizes: Any = sizes) -> Any:
            engine, data = engines[rank], sends[rank].view(np.uint8)
            engine.send[: len(data)] = data
            parts = engine.send[: len(data)], engine.recv[: 16 * sizes[1]]
            engine.launch(rows[kind], *parts, "sum", "int32")
            return parts[1].view(np.int32).copy()

        for one, other in zip(cluster.on_all(work), together(kind, sends, "int32"), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_wait_that_nobody_ends_is_reported() -> None:
    job = Job("all-reduce", program("all-reduce", 4, "ring"), Cluster(4), seconds=1e-4)
    job.call()
    job.cluster.absent = {2}
    sends = [np.ones(4 * job.made.sizes[0], np.int32)] * 4
    job.run(sends)
    for rank in (0, 1, 3):
        with pytest.raises(
            TransportError, match=rf"block \d+ of rank {rank} waited too long"
        ) as told:
            job.engines[rank].check()
        operation = int(str(told.value).split("operation ")[1].split()[0])
        words = job.made.words(rank)
        assert 0 <= operation < len(words)
    # No launch does anything from then on.
    before = [each.recv.copy() for each in job.engines]
    with pytest.raises(TransportError, match="waited too long"):
        job.engines[0].launch(
            job.entry, job.engines[0].send[:0], job.engines[0].recv[:0], "sum", "int32"
        )
    np.testing.assert_array_equal(before[0], job.engines[0].recv)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InfeasibleError, match="a rank needs 14 thread blocks, and the most is 8"):
        program("all-reduce", 8, blocks=8)
    job = Job("all-reduce", program("all-reduce", 2), Cluster(2))
    engine, size = job.engines[0], 16 * job.made.sizes[0]
    for length in (size + 4, size // 2, 1 << 17):
        with pytest.raises(SpecError, match=f"give multiples of {size}, 65536 at most"):
            engine.launch(
                job.entry, engine._memory.own[:length], engine.recv[:length], "sum", "int32"
            )


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(KINDS),
    st.integers(2, 5),
    st.sampled_from(["greedy", "direct", "ring"]),
    st.integers(1, 3),
    st.integers(1, 2**60),
    st.data(),
)
def test_random_plans(
    kind: str, ranks: int, algorithm: str, chunks: int, seed: int, data: st.DataObject
) -> None:
    if kind in ("broadcast", "all-to-all"):
        algorithm = "direct"
    made = program(kind, ranks, algorithm, 20, chunks=chunks)
    threads = data.draw(st.integers(1, 2))
    has_multicast = data.draw(st.booleans())
    job = Job(kind, made, Cluster(ranks, threads=threads, seed=seed, has_multicast=has_multicast))
    job.call(vectors=data.draw(st.integers(1, 5)))
    job.calls(3)


MEET, SIGNAL, WAIT, SUM = 1, 2, 3, 4


class Operation(NamedTuple):
    """A signal or a wait: where it is, and its slots with their ranks."""

    code: int
    begin: int
    end: int
    slots: frozenset[int]


def signals_and_waits(words: Any) -> Iterator[Operation]:
    for begin in words[1 : 1 + int(words[0])].tolist():
        while words[begin]:
            head = int(words[begin])
            code, many, targets = head & 0xFF, head >> 8 & 0xFFFFFF, head >> 32
            end = begin + {MEET: 1, SUM: 1 + many + targets}.get(code, 1 + 2 * many)
            if code in (SIGNAL, WAIT):
                yield Operation(code, begin, end, frozenset(words[begin + 1 : end : 2].tolist()))
            begin = end


class Altered:
    """A program in which rank 0 lacks an operation: meetings are in its place."""

    def __init__(self, made: DeviceProgram, lacks: Operation) -> None:
        self.sizes, self.blocks, self.slots = made.sizes, made.blocks, made.slots
        self._made, self._own = made, made.words(0).copy()
        self._own[lacks.begin : lacks.end] = MEET

    def words(self, rank: int) -> Any:
        return self._own if rank == 0 else self._made.words(rank)


def is_noticed(kind: str, made: Any, cluster: Cluster) -> bool:
    """Return whether calls give something wrong, or a wait is reported."""
    try:
        Job(kind, made, cluster, seconds=2e-5).calls(5)
    except (AssertionError, TransportError):
        return True
    return False


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [
        ("all-gather", "direct"),
        ("broadcast", "direct"),
        pytest.param("all-reduce", "multimem", marks=pytest.mark.slow),
    ],
)
def test_each_signal_and_wait_is_needed(kind: str, algorithm: str) -> None:
    box = hk.topology.offloaded(hk.topology.switch(3, bandwidth="25 GB/s", latency="1 us"))
    made = program(kind, 3, algorithm, 6, network=box, chunks=1)
    operations = list(signals_and_waits(made.words(0)))
    assert len(operations) > 3
    for i, each in enumerate(operations):
        altered = Altered(made, each)
        seeds = range(1, 400, 8)
        if not any(is_noticed(kind, altered, Cluster(3, seed=seed)) for seed in seeds):
            # A later signal, whose number is higher, stands for it.
            later = [other.slots for other in operations[i + 1 :] if other.code == SIGNAL]
            assert each.code == SIGNAL, each
            assert each.slots <= frozenset().union(*later), each


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [("all-reduce", "ring"), ("reduce-scatter", "ring"), ("all-reduce", "direct")],
)
def test_programs_that_lack_an_operation_are_never_run(kind: str, algorithm: str) -> None:
    """Runs seldom show that a ring lacks a wait, so the check before them must find it each time."""
    plan = hk.plan(kind, "fc:3@25GB/s,1us", size=9216, algorithm=algorithm, chunks=1)
    parts: list[str] = []
    core.export_mscclpp(plan.core, parts.append, in_place=False)
    assert not core.check_mscclpp("".join(parts)).count
    made = json.loads("".join(parts))
    for block in made["gpus"][0]["threadblocks"]:
        for place, lacks in enumerate(block["ops"]):
            if lacks["name"] != "nop":
                del block["ops"][place]
                assert core.check_mscclpp(json.dumps(made)).count, lacks
                block["ops"].insert(place, lacks)


@pytest.mark.parametrize("capability", [80, 90, 100])
def test_the_source_compiles_for_gpus(capability: int) -> None:
    ptx, log = compiled(source(), f"sm_{capability}")
    assert "0 bytes spill stores, 0 bytes spill loads" in log
    for each in ("ld.acquire.sys.global.u64", "st.release.sys.global.u64"):
        assert each in ptx
    by_switches = {
        "fence.proxy.alias",
        "multimem.st.relaxed.sys.global.v4.f32",
        "multimem.ld_reduce.relaxed.sys.global.add.v4.f32",
        "multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.f16x2",
        "multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2",
        "multimem.ld_reduce.relaxed.sys.global.add.u32",
        "multimem.ld_reduce.relaxed.sys.global.add.u64",
    }
    assert {each for each in by_switches if each in ptx} == (
        by_switches if capability >= 90 else set()
    )


def test_small_calls_are_not_cut_in_slices_of_bytes() -> None:
    """Short slices are merged: a chunk has what a thread block moves at once, if slices allow it."""
    for size, chunks in ((1 << 10, 4), (1 << 16, 8), (1 << 20, 128)):
        made = hk.plan("all-reduce", "fc:4@25GB/s,1us", size=size, algorithm="trees", chunks=256)
        assert device_program(made.core, 32).sizes[:2] == [chunks, chunks], size


def test_a_program_that_cuts_more_finely_than_its_row(tmp_path: Path) -> None:
    made = hk.plan("all-reduce", "fc:4@25GB/s,1us", size=1 << 20, algorithm="ring", chunks=64)
    row = entry("all-reduce", 4, 1, 2, unit_bytes=48, max_bytes=480)
    made.save(tmp_path / row.plan.file)
    group = PlannedGroup("world", 4, (row,))
    unit = 16 * programs_of(group, tmp_path, 32)[row.id].sizes[0]
    assert [each.unit_bytes % unit for each in group.entries] == [0]
    assert [each.unit_bytes % 48 for each in group.entries] == [0]
    assert group.entries[0].max_bytes >= group.entries[0].unit_bytes
