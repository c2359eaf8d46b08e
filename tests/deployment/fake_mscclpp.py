"""A double of MSCCL++'s executor on NumPy arrays, with ranks as threads and its rules, read in its source.

It keeps to what a caller can get wrong. Contents of programs are judged elsewhere (``hocket check``).
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
TYPES = {
    name: name for name in ("int32", "uint32", "uint8", "float16", "float32", "bfloat16", "fp8")
}


OPERATIONS = 64
"""Of a thread block, at most; a pipeline counts as one more than what is in it."""
ROUNDS = 1 << 16
"""Rounds of a pipeline that 16 bits count."""
OFFSETS = 1 << 32
"""Offsets in an allocation that 32 bits hold."""


class StuckError(Exception):
    """A rank waits for others that do not come; the executor itself would wait without a limit."""


class Machine:
    """What ranks share: their memory, and a meeting for each launch."""

    def __init__(self, ranks: int, seconds: float = 5) -> None:
        self.ranks = ranks
        self.memory: list[dict[int, Bytes]] = [{} for _ in range(ranks)]
        self._barrier = threading.Barrier(ranks, timeout=seconds)
        self._given: list[Any] = [None] * ranks

    def allocate(self, rank: int, size: int) -> Bytes:
        """Return memory of a rank; its address is that of its allocation."""
        made = np.zeros(size, np.uint8)
        self.memory[rank][made.ctypes.data] = made
        return made

    def meet(self, rank: int, what: Any) -> list[Any]:
        """Wait for all ranks; what each brought."""
        self._given[rank] = what
        try:
            self._barrier.wait()
            found = list(self._given)
            self._barrier.wait()
        except threading.BrokenBarrierError:
            raise StuckError(f"rank {rank} waits: {what}") from None
        return found


class FakePlan:
    """A plan as the executor reads it."""

    def __init__(self, path: str, rank: int) -> None:
        values = json.loads(Path(path).read_text())
        self.name, self.rank = values["name"], rank
        self.collective = values["collective"]
        self.packets = values["protocol"] == "LL"
        gpu = values["gpus"][rank]
        self.chunks = (gpu["input_chunks"], gpu["output_chunks"])
        self.blocks = len(gpu["threadblocks"])
        self.most = values["max_message_size"]
        self.is_filled = False  # whether a context was made for this object
        self.ports = any(each["channel_type"] == "port" for each in gpu["channels"])
        self.pipelines = []
        self.tails = False  # whether what 16 bytes do not divide would be summed, or exchanged
        for block in gpu["threadblocks"]:
            inner = [each for op in block["ops"] for each in op.get("ops", [])]
            if len(block["ops"]) + len(inner) > OPERATIONS:
                raise RuntimeError("there are too many operations in a thread block")
            self.tails |= any(
                op["name"] in ("rre", "rres", "glres") for op in [*block["ops"], *inner]
            )
            self.pipelines += [op for op in block["ops"] if op["name"] == "pipeline"]

    def keeps_rounds(self, chunk: int) -> bool:
        """Return whether each byte of a chunk is moved once, by pipelines with rounds of a fixed size."""
        for each in self.pipelines:
            unit, chunks = each["iter_context"]["unit_size"], each["iter_context"]["num_chunks"]
            sizes = {
                b["size"]
                for op in each["ops"]
                for b in op.get("src_buff", []) + op.get("dst_buff", [])
            }
            if (
                -(-chunks * chunk // unit) >= ROUNDS
                or sizes - {chunks}
                or (self.tails and unit % 16)
            ):
                return False
        return True


class FakeExecutor:
    """The executor of a rank.

    Attributes
    ----------
    contexts
        What was connected: addresses and lengths of both allocations, and the plan's name.
    device_plans
        What was parsed and copied to the GPU, and is never freed: with the sizes and offsets of a call.
    sizes
        What each context was last launched with: for other sizes, its plan is read again.
    launches
        Number of launches of the process, which packets carry: a list of one that its executors share.
    graph
        Launches that a graph captures, with their flags; None while none does.
    """

    _running: ClassVar[Counter[tuple[int, int]]] = Counter()
    """Kernels of a rank that run: semaphores are of those that began last."""

    def __init__(
        self,
        machine: Machine,
        rank: int,
        *,
        processors: int = 132,
        ctas: int = 16,
        launches: list[int] | None = None,
    ) -> None:
        self._machine, self._rank = machine, rank
        self._room = processors - ctas
        self.contexts: dict[Any, None] = {}
        self.sizes: dict[Any, tuple[int, int]] = {}
        self.device_plans: set[Any] = set()
        self.launches = [0] if launches is None else launches
        self.graph: list[Callable[[], None]] | None = None
        self._scratch: dict[int, list[Bytes]] = {}

    def _found(self, address: int) -> tuple[int, int, Bytes]:
        for base, memory in self._machine.memory[self._rank].items():
            if base <= address < base + len(memory):
                return base, (address - base) % OFFSETS, memory
        raise AssertionError("an address of no allocation")

    def execute(
        self,
        rank: int,
        send: int,
        recv: int,
        send_bytes: int,
        recv_bytes: int,
        dtype: str,
        plan: FakePlan,
        _stream: int,
        _packets: str,
    ) -> None:
        assert rank == self._rank
        for size, chunks in zip((send_bytes, recv_bytes), plan.chunks, strict=True):
            if chunks and size % (16 * chunks):
                raise RuntimeError("Input size must be a multiple of nChunks")
        if all(plan.chunks) and send_bytes * plan.chunks[1] != recv_bytes * plan.chunks[0]:
            raise RuntimeError("chunks of input and output differ in size")
        if max(send_bytes, recv_bytes) > plan.most:
            raise RuntimeError("message size is out of range")
        if plan.blocks > self._room:
            raise StuckError("blocks wait for processors that NCCL has")
        (base, offset, memory), (base_out, offset_out, memory_out) = map(self._found, (send, recv))
        key = (base, base_out, len(memory), len(memory_out), plan.name)
        if key not in self.contexts:
            self._machine.meet(rank, ("context", plan.name))
            self.contexts[key] = None
            self.sizes[key] = (send_bytes, recv_bytes)
            plan.is_filled = True
        if (send_bytes, recv_bytes) != self.sizes[key] and not plan.is_filled:
            raise RuntimeError("the process dies: this plan has operations and no channels")
        self.sizes[key] = (send_bytes, recv_bytes)
        self.device_plans.add((key, send_bytes, recv_bytes, offset, offset_out))
        self.launches[0] += 1
        flag = self.launches[0] if plan.packets else None

        def kernel() -> None:
            self._running[id(self._machine), rank] += 1
            # What a rank writes to another goes to the other's base and its own offset.
            brought = (plan.name, flag, offset, send_bytes, memory.copy())
            every = self._machine.meet(rank, brought)
            alone = self._running[id(self._machine), rank] == 1
            alone &= plan.keeps_rounds(send_bytes // max(plan.chunks[0], 1))
            self._running[id(self._machine), rank] -= 1
            if len({each[0] for each in every}) > 1 or len({each[1] for each in every}) > 1:
                raise StuckError("ranks run other plans, or packets of another call")
            # Ports read what they send from where the allocation starts.
            starts = [0 if plan.ports and at != rank else offset for at in range(len(every))]
            pairs = zip(every, starts, strict=True)
            sources = [each[4][start : start + send_bytes] for each, start in pairs]
            if flag is not None:  # packets with this flag that came before are taken
                sources = self._scratch.setdefault(flag, sources)
            if dtype != "fp8":  # for which no kernel is launched, and success returned
                result = _result(plan.collective, sources, dtype, rank)
                memory_out[offset_out : offset_out + recv_bytes] = result if alone else ~result

        if self.graph is None:
            kernel()
        else:
            self.graph.append(kernel)


def _result(kind: str, sources: list[Bytes], dtype: str, rank: int) -> Bytes:
    """Return what a rank gets; every operation is a sum."""
    ranks = len(sources)
    if kind in ("allreduce", "reducescatter"):
        if dtype == "bfloat16":
            wide = [_wide(each) for each in sources]
            whole = _narrow(np.sum(wide, axis=0, dtype=np.float32))
        else:
            numbers = [each.view(dtype) for each in sources]
            whole = np.sum(numbers, axis=0, dtype=dtype).view(np.uint8)
        return whole if kind == "allreduce" else np.split(whole, ranks)[rank]
    if kind == "allgather":
        return np.concatenate(sources)
    if kind == "broadcast":
        return sources[0]
    return np.concatenate([np.split(each, ranks)[rank] for each in sources])


def _wide(numbers: Bytes) -> npt.NDArray[np.float32]:
    return (numbers.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def _narrow(numbers: npt.NDArray[np.float32]) -> Bytes:
    """Round to 16 bits, to even."""
    bits = numbers.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16).view(np.uint8)


def bindings() -> Any:
    """Return the module that the executor's extension would be."""
    return SimpleNamespace(
        CppDataType=SimpleNamespace(**TYPES),
        CppPacketType=SimpleNamespace(LL16="LL16"),
        CppExecutionPlan=FakePlan,
    )
