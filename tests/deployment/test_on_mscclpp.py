"""Stages and MSCCL++'s executor, by a double that keeps its rules."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.deployment import fake_mscclpp
from tests.deployment.fake_mscclpp import FakeExecutor, FakePlan, Machine, StuckError, bindings
from tests.deployment.test_route import together

import hocket as hk
from hocket.deployment.manifest import Deployment, Entry, load_deployment
from hocket.deployment.on_mscclpp import MscclppEngine
from hocket.deployment.route import PlannedGroup, route, size_class
from hocket.deployment.staged import Stage

RANKS = 3
KINDS = ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "all-to-all")


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    made = tmp_path_factory.mktemp("deployed") / "deploy"
    hk.deploy("fc:3@10GB/s,1us", made, collectives=",".join(KINDS), sizes="64B:16K:x256")
    return load_deployment(made)


def scale(buffer: Any, dtype: str, factor: float) -> None:
    numbers = buffer.view(dtype)
    numbers *= factor


class Rank:
    """A rank with its stage and engine."""

    def __init__(self, machine: Machine, rank: int, deployment: Deployment, stage: int) -> None:
        self.executor = FakeExecutor(machine, rank)
        self.engine = MscclppEngine(
            bindings(),
            self.executor,
            deployment.folder,
            rank=rank,
            ranks=machine.ranks,
            stream=7,
            address=lambda buffer: int(buffer.ctypes.data),
            scale=scale,
        )
        self.group = PlannedGroup("world", machine.ranks, tuple(deployment.manifest.entries))
        self.group.stage = stage
        for each in self.group.entries:
            self.engine.prepare(each)
        self.stage = Stage(
            self.group, self.engine, machine.allocate(rank, stage), machine.allocate(rank, stage)
        )

    def call(self, kind: str, op: str, source: Any) -> Any:
        """Make a call as a backend does, with arrays at any address."""
        dtype = str(source.dtype)
        ways = RANKS if kind == "all-gather" else 1
        found = route(kind, op, dtype, source.nbytes * ways, 0, self.group, captured=False)
        assert isinstance(found, Entry), found
        count = {"all-gather": source.size * RANKS, "reduce-scatter": source.size // RANKS}
        result = np.zeros(count.get(kind, source.size), source.dtype)
        self.stage.run(found, source.view(np.uint8), result.view(np.uint8), op, dtype)
        return result


def on_all(work: Callable[[int], Any]) -> list[Any]:
    """Run a function at all ranks at once."""
    with ThreadPoolExecutor(RANKS) as pool:
        return list(pool.map(work, range(RANKS)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["int32", "float32", "float16"])
def test_calls_of_any_size_give_what_numpy_gives(
    deployment: Deployment, kind: str, dtype: str
) -> None:
    unit = max(each.unit_bytes for each in deployment.manifest.entries)
    machine = Machine(RANKS)
    ranks = [Rank(machine, rank, deployment, 2 * unit) for rank in range(RANKS)]
    for count in (17, 100, 999):
        given = [(np.arange(3 * count) % 50 + rank).astype(dtype) for rank in range(RANKS)]
        if kind == "all-gather":
            given = [each[:count] for each in given]
        found = on_all(lambda rank, given=given: ranks[rank].call(kind, "sum", given[rank]))
        wanted = together(kind, given, dtype)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other.view(dtype))


def test_an_average_is_a_scaled_sum(deployment: Deployment) -> None:
    machine = Machine(RANKS)
    ranks = [Rank(machine, rank, deployment, 1 << 16) for rank in range(RANKS)]
    for found in on_all(
        lambda r: ranks[r].call("all-reduce", "average", np.full(300, r + 1.0, "f"))
    ):
        np.testing.assert_allclose(found, np.full(300, 2.0), rtol=1e-6)


def _classes(deployment: Deployment, calls: int) -> None:
    """Make calls of random sizes at random addresses; count what is never freed."""
    machine = Machine(RANKS, seconds=60)
    ranks = [Rank(machine, rank, deployment, 1 << 14) for rank in range(RANKS)]
    entry = next(each for each in deployment.manifest.entries if each.collective == "all-reduce")
    seed = random.Random(3)
    counts = [seed.randrange(entry.from_bytes // 4 + 1, entry.to_bytes // 4) for _ in range(calls)]

    def work(rank: int) -> None:
        own = random.Random(rank)  # addresses differ by rank
        memory = np.zeros(1 << 14, np.float32)
        for count in counts:
            at = own.randrange(len(memory) - count)
            ranks[rank].call("all-reduce", "sum", memory[at : at + count])

    on_all(work)
    classes = {size_class(4 * count, entry.unit_bytes) for count in counts}
    for each in ranks:
        assert len(each.executor.device_plans) == len(classes)
        assert len(each.executor.contexts) == 1
    assert len(classes) <= 4 * (entry.to_bytes // entry.unit_bytes).bit_length()


def test_few_device_plans_are_made(deployment: Deployment) -> None:
    _classes(deployment, 300)


@pytest.mark.slow
def test_ten_thousand_calls_make_few_device_plans(deployment: Deployment) -> None:
    _classes(deployment, 10_000)


def test_a_rank_that_does_not_come_is_reported(deployment: Deployment) -> None:
    machine = Machine(RANKS, seconds=0.2)
    ranks = [Rank(machine, rank, deployment, 1 << 14) for rank in range(RANKS)]

    def work(rank: int) -> str:
        if rank == 1:
            return "left out"
        with pytest.raises(StuckError, match=r"waits: .'context'"):
            ranks[rank].call("all-reduce", "sum", np.ones(300, np.float32))
        return "stuck"

    assert on_all(work) == ["stuck", "left out", "stuck"]


def test_the_double_keeps_the_rules_of_the_executor(deployment: Deployment) -> None:
    machine = Machine(RANKS)
    entry = next(each for each in deployment.manifest.entries if each.collective == "all-reduce")
    plans = [FakePlan(str(deployment.folder / entry.program.file), r) for r in range(RANKS)]
    unit = entry.unit_bytes
    memory = [machine.allocate(rank, 4 * unit) for rank in range(RANKS)]
    executors = [FakeExecutor(machine, rank) for rank in range(RANKS)]

    def run(rank: int, size: int, offset: int = 0, dtype: str = "int32") -> None:
        place = memory[rank].ctypes.data + offset
        executors[rank].execute(rank, place, place, size, size, dtype, plans[rank], 7, "LL16")

    for size in (unit + 4, unit // 2):
        with pytest.raises(RuntimeError, match="multiple of nChunks"):
            run(0, size)
    most = plans[0].most
    with pytest.raises(RuntimeError, match="out of range"):
        run(0, most - most % unit + unit)
    place = memory[0].ctypes.data
    with pytest.raises(RuntimeError, match="differ in size"):
        executors[0].execute(0, place, place, unit, 2 * unit, "int32", plans[0], 7, "LL16")
    # Offsets that differ by rank: each takes its own for the others', and sums other bytes.
    for rank in range(RANKS):
        memory[rank][:] = 1
    memory[0][unit : 2 * unit] = 9
    on_all(lambda rank: run(rank, unit, unit if rank == 0 else 0))
    assert set(memory[1][:unit].tolist()) == {3}
    assert set(memory[0][unit : 2 * unit].tolist()) == {11}
    # A sum of FP8 is not done, and nothing says so.
    before = memory[1].copy()
    on_all(lambda rank: run(rank, unit, dtype="fp8"))
    np.testing.assert_array_equal(memory[1], before)
    small = FakeExecutor(machine, 0, processors=16, ctas=16)
    with pytest.raises(StuckError, match="processors"):
        small.execute(
            0, memory[0].ctypes.data, memory[0].ctypes.data, unit, unit, "int32", plans[0], 7, ""
        )


def test_the_double_keeps_the_rules_of_launches(deployment: Deployment) -> None:
    machine = Machine(RANKS)
    entry = next(each for each in deployment.manifest.entries if each.collective == "all-reduce")
    plans = [FakePlan(str(deployment.folder / entry.program.file), r) for r in range(RANKS)]
    executors = [FakeExecutor(machine, rank) for rank in range(RANKS)]
    unit = entry.unit_bytes
    memory = [machine.allocate(rank, unit) for rank in range(RANKS)]

    def launch(rank: int) -> None:
        place = memory[rank].ctypes.data
        executors[rank].execute(rank, place, place, unit, unit, "int32", plans[rank], 7, "LL16")

    # A replay of packets takes those of the replay before; of other plans, new data.
    for packets in (False, True):
        for rank in range(RANKS):
            plans[rank].packets = packets
            executors[rank].graph = []
        on_all(launch)
        for turn in (1, 2):
            for each in memory:
                each.view(np.int32)[:] = turn
            on_all(lambda rank: [kernel() for kernel in executors[rank].graph or []])
            assert memory[0].view(np.int32)[0] == RANKS * (1 if packets else turn)
    # Packets carry the number of launches of a process: one more of another group, and ranks wait.
    launches = [[turns] for turns in (0, 1, 0)]
    for rank in range(RANKS):
        executors[rank] = FakeExecutor(machine, rank, launches=launches[rank])

    def waits(rank: int) -> bool:
        try:
            launch(rank)
        except StuckError as error:
            return "packets of another call" in str(error)
        return False

    assert on_all(waits) == [True] * RANKS
    # Two kernels of a process at once.
    for rank in range(RANKS):
        plans[rank].packets = False
        memory[rank].view(np.int32)[:] = 1
    assert on_all(waits) == [False] * RANKS
    assert memory[0].view(np.int32)[0] == RANKS
    for each in memory:
        each.view(np.int32)[:] = 1
    FakeExecutor._running.update({(id(machine), rank): 1 for rank in range(RANKS)})
    on_all(launch)
    assert memory[0].view(np.int32)[0] != RANKS


def test_the_double_cuts_offsets_to_32_bits(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here to as many as a call has bytes: what is beyond is read from where the allocation starts."""
    entry = next(each for each in deployment.manifest.entries if each.collective == "all-reduce")
    plans = [FakePlan(str(deployment.folder / entry.program.file), r) for r in range(RANKS)]
    unit = entry.unit_bytes
    monkeypatch.setattr(fake_mscclpp, "OFFSETS", unit)
    machine = Machine(RANKS)
    memory = [machine.allocate(rank, 2 * unit) for rank in range(RANKS)]
    executors = [FakeExecutor(machine, rank) for rank in range(RANKS)]

    def run(rank: int) -> None:
        memory[rank][unit:] = 1
        place = memory[rank].ctypes.data + unit
        executors[rank].execute(rank, place, place, unit, unit, "int32", plans[rank], 7, "LL16")

    on_all(run)
    assert set(memory[0][:unit].tolist()) == {0}
    assert set(memory[0][unit:].tolist()) == {1}


def test_the_double_holds_64_operations(deployment: Deployment, tmp_path: Path) -> None:
    entry = next(each for each in deployment.manifest.entries if each.collective == "all-reduce")
    values = json.loads((deployment.folder / entry.program.file).read_text())
    block = values["gpus"][0]["threadblocks"][0]
    for count in (64, 65):
        block["ops"] = [{"name": "nop"}] * count
        (tmp_path / f"{count}.json").write_text(json.dumps(values))
    FakePlan(str(tmp_path / "64.json"), 0)
    with pytest.raises(RuntimeError, match="too many operations"):
        FakePlan(str(tmp_path / "65.json"), 0)


def test_the_double_keeps_the_rules_of_pipelines_and_ports(deployment: Deployment) -> None:
    entry = next(each for each in deployment.manifest.entries if each.collective == "all-reduce")
    plans = [FakePlan(str(deployment.folder / entry.program.file), r) for r in range(RANKS)]
    size, offset = 2 * entry.unit_bytes, entry.unit_bytes
    chunk = size // plans[0].chunks[0]

    def right(unit: int, chunks: int = 1, moved: int = 1) -> list[bool]:
        machine = Machine(RANKS)
        executors = [FakeExecutor(machine, rank) for rank in range(RANKS)]
        memory = [machine.allocate(rank, 2 * size) for rank in range(RANKS)]
        context = {"unit_size": unit, "num_chunks": chunks}
        body = [{"name": "put", "src_buff": [{"size": moved}]}]
        for rank in range(RANKS):
            memory[rank][offset:] = 1
            plans[rank].pipelines = [{"name": "pipeline", "iter_context": context, "ops": body}]

        def run(rank: int) -> None:
            place = memory[rank].ctypes.data + offset
            executors[rank].execute(rank, place, place, size, size, "uint8", plans[rank], 7, "LL16")

        on_all(run)
        return [set(each[offset : offset + size].tolist()) == {RANKS} for each in memory]

    assert right(16) == right(chunk) == right(2 * chunk) == [True] * RANKS
    # More or fewer chunks than its rounds are for; rounds that 16 bits do not count; sums of odd rounds.
    assert right(16, moved=2) == right(16, chunks=1 << 16, moved=1 << 16) == [False] * RANKS
    for rank in range(RANKS):
        plans[rank].tails = True
    assert (right(24), right(32)) == ([False] * RANKS, [True] * RANKS)
    # What goes over a port is read from where the allocation starts, not from where the call's buffer does.
    for rank in range(RANKS):
        plans[rank].ports = True
    assert right(16) == [False] * RANKS


def test_entries_with_one_program(deployment: Deployment) -> None:
    """The executor knows a context by its program's name, and fills only the plan that made it."""
    first = next(each for each in deployment.manifest.entries if each.collective == "all-reduce")
    other = first.model_copy(update={"id": "other", "from_bytes": first.to_bytes})
    machine = Machine(RANKS)
    ranks = [Rank(machine, each, deployment, 1 << 16) for each in range(RANKS)]
    unit = first.unit_bytes

    def calls(rank: int) -> list[int]:
        own = ranks[rank]
        own.engine.prepare(other)
        found = []
        for entry, units in ((first, 1), (other, 1), (other, 2), (first, 3), (other, 4)):
            source = np.full(unit * units // 4, rank + units, np.int32)
            result = np.zeros_like(source)
            given = source.view(np.uint8), result.view(np.uint8)
            own.stage.run(entry, *given, "sum", "int32")
            found.append(int(result[-1]))
        return found

    wanted = [sum(rank + units for rank in range(RANKS)) for units in (1, 1, 2, 3, 4)]
    assert on_all(calls) == [wanted] * RANKS
