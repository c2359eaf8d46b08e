"""A double of a GPU and of its engine, for processes: its tensors are on the CPU.

Works that are enqueued run later, in a thread, as those of a stream do. Ranks meet through a group of gloo
of their own. The engine is a double of MSCCL++'s executor, or with ``HOCKET_ENGINE=hocket`` hocket's
interpreter, compiled for the CPU, in memory that the processes share. ``HOCKET_DOUBLE`` says what goes
wrong: ``join:1`` fails to join at rank 1, ``hang:1`` does not come back there.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import queue
import threading
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from tests.deployment.fake_gpu import library
from tests.deployment.fake_mscclpp import FakeExecutor, Machine, bindings

from hocket.deployment.on_mscclpp import MscclppEngine
from hocket.deployment.own import OwnEngine, Symmetric, Words, programs_of
from hocket.distributed import creation
from hocket.distributed import device as device_module

HOUR = timedelta(hours=1)


def fails(step: str) -> bool:
    """Return whether this process is to fail at a step."""
    what, _, rank = os.environ.get("HOCKET_DOUBLE", "").partition(":")
    return what == step and rank == os.environ["RANK"]


class Together(Machine):
    """Ranks that are processes; one that does not come is waited for without an end."""

    def __init__(self, store: Any, rank: int, ranks: int) -> None:
        super().__init__(ranks)
        self._gloo = dist.ProcessGroupGloo(dist.PrefixStore("double", store), rank, ranks, HOUR)

    def meet(self, rank: int, what: Any) -> list[Any]:
        try:
            sent = torch.frombuffer(bytearray(pickle.dumps(what)), dtype=torch.uint8)
            lengths = [int(each) for each in self._every(torch.tensor([len(sent)]))]
            most = torch.zeros(max(lengths), dtype=torch.uint8)
            most[: len(sent)] = sent
            pairs = zip(self._every(most), lengths, strict=True)
            return [pickle.loads(each[:length].numpy().tobytes()) for each, length in pairs]
        except RuntimeError:  # a process has ended, and a kernel would wait for it
            threading.Event().wait()
            raise

    def _every(self, own: torch.Tensor) -> list[torch.Tensor]:
        found = [torch.zeros_like(own) for _ in range(self.ranks)]
        self._gloo.allgather([found], [own]).wait(HOUR)
        return found


class SharedGpu:
    """A GPU whose memory is shared with other processes; its kernels run when they are launched."""

    def __init__(self, machine: Together, rank: int) -> None:
        self._machine, self._rank = machine, rank
        self.report = np.zeros(4, np.uint64)

    def symmetric(self, size: int) -> Symmetric:
        path = Path(f"/dev/shm/hocket-test-{os.getpid()}-{id(self)}")
        path.write_bytes(bytes(size))
        paths = self._machine.meet(self._rank, path)
        maps = [np.memmap(each, np.uint8, "r+") for each in paths]
        self._machine.meet(self._rank, None)  # all have mapped all
        path.unlink()
        self._maps = maps
        own = torch.from_numpy(maps[self._rank])
        return Symmetric(own, [int(each.ctypes.data) for each in maps])

    def upload(self, words: Words) -> Words:
        return words.copy()

    def address(self, of: Words) -> int:
        return int(of.ctypes.data)

    def launch(self, call: Words, blocks: int, vectors: int, dtype: int) -> None:
        calls, counts = np.array([call.ctypes.data], np.uint64), np.array([blocks], np.int32)
        caller = np.zeros(6, np.uint64)
        of = [each.ctypes.data_as(ctypes.c_void_p) for each in (calls, counts, caller)]
        library().launch(1, *of, 1, 1, vectors, dtype, ctypes.c_uint64(0))


def scale(buffer: torch.Tensor, dtype: str, factor: float) -> None:
    buffer.view(getattr(torch, dtype)).mul_(factor)


class Event:
    def __init__(self) -> None:
        self.event = threading.Event()

    def done(self) -> bool:
        return self.event.is_set()

    def wait(self) -> None:
        self.event.wait()


class Double:
    """The device of this process.

    Attributes
    ----------
    steps
        What was asked of it, in order.
    executors, buffers
        Those of its groups, and all stages.
    """

    kind = torch.device("cpu")

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.executors: list[FakeExecutor] = []
        self._launches = [0]
        self.capturing = False
        self.graph: list[Callable[[], None]] = []
        self.buffers: list[torch.Tensor] = []
        self._queue: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            try:
                self._queue.get()()
            except BaseException:
                traceback.print_exc()
                os._exit(3)

    def facts(self, _deployment: Any) -> dict[str, Any]:
        self.is_own = os.environ.get("HOCKET_ENGINE") == "hocket"
        if fails("facts"):
            raise RuntimeError("this GPU has no engine")
        return {
            "device": f"GPU-{os.environ['RANK']}",
            "engine": "hocket 0.1.0" if self.is_own else "mscclpp 0.9.0",
            "processors": 132,
            "capability": "9.0",
        }

    def fallback(self, opts: Any, options: Any, ctas: int | None) -> Any:
        made = device_module.made_by_pytorch("gloo", opts, options)  # which meets the others
        if fails("fallback"):
            raise RuntimeError("gloo cannot start")
        return made

    def join(
        self, group: Any, deployment: Any, rank: int, store: Any, timeout: Any
    ) -> tuple[Any, torch.Tensor, torch.Tensor]:
        machine = Together(store, rank, group.ranks)
        if fails("join"):
            raise RuntimeError("no route to host")
        if fails("hang"):
            threading.Event().wait()
        if self.is_own:
            own = OwnEngine(
                SharedGpu(machine, rank),
                programs_of(group, deployment.folder, 64),
                rank=rank,
                ranks=group.ranks,
                stage=group.stage,
                seconds=0.9 * timeout.total_seconds(),
                scale=scale,
            )
            return own, own.send, own.recv
        executor = FakeExecutor(machine, rank, launches=self._launches)
        self.executors.append(executor)
        engine = MscclppEngine(
            bindings(),
            executor,
            deployment.folder,
            rank=rank,
            ranks=group.ranks,
            stream=7,
            address=lambda buffer: int(buffer.data_ptr()),
            scale=scale,
        )
        if fails("prepare"):
            engine.prepare = self._fail  # type: ignore[method-assign]
        if fails("numbers"):
            launch = engine.launch
            engine.launch = lambda *given: (launch(*given), given[2].add_(1))  # type: ignore
        made = [torch.from_numpy(machine.allocate(rank, group.stage)) for _ in range(2)]
        self.buffers += made
        return engine, made[0], made[1]

    def _fail(self, _: Any) -> None:
        raise RuntimeError("no such file")

    def is_captured(self) -> bool:
        return self.capturing

    def follow(self) -> None:
        self.steps.append("follow")

    def enqueue(self, work: Callable[[], None]) -> None:
        if fails("launch"):
            raise RuntimeError("no such kernel")
        self.steps.append("enqueue")
        if self.capturing:
            self.graph.append(work)
        else:
            self._queue.put(work)

    def replay(self) -> None:
        for work in self.graph:
            self._queue.put(work)
        self.record().wait()

    def record(self) -> Event:
        self.steps.append("record")
        made = Event()
        self._queue.put(made.event.set)
        return made

    def future(self, value: Any) -> Any:
        made: Any = torch.futures.Future()
        self._queue.put(lambda: made.set_result(value))
        return made

    def keep(self, tensor: torch.Tensor) -> None:
        self.steps.append("keep")

    def relax(self) -> None:
        pass


_made: list[Double] = []


def device(_opts: Any = None) -> Double:
    """Return the double of this process."""
    if not _made:
        _made.append(Double())
    return _made[0]


def install() -> Double:
    """Have it taken for the process's GPU."""
    if os.environ.get("HOCKET_ENGINE") == "hocket":
        library()  # compiles it now, and not in the time that a group has to start
    creation.device = device
    return device()
