"""A double of a GPU and of MSCCL++'s executor, for processes: its tensors are on the CPU.

Works that are enqueued run later, in a thread, as those of a stream do. Ranks meet through a group of gloo
of their own. ``HOCKET_DOUBLE`` says what goes wrong: ``join:1`` fails to join at rank 1.
"""

from __future__ import annotations

import os
import pickle
import queue
import threading
import traceback
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from tests.deployment.fake_mscclpp import FakeExecutor, Machine, bindings

from hocket.deployment.on_mscclpp import MscclppEngine
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

    def facts(self) -> dict[str, Any]:
        if fails("facts"):
            raise RuntimeError("this GPU has no engine")
        return {
            "device": f"GPU-{os.environ['RANK']}",
            "engine": "mscclpp 0.9.0",
            "processors": 132,
            "capability": "9.0",
        }

    def fallback(self, opts: Any, options: Any, ctas: int | None) -> Any:
        if fails("fallback"):
            raise RuntimeError("gloo cannot start")
        return device_module.made_by_pytorch("gloo", opts, options)

    def join(
        self, group: Any, deployment: Any, rank: int, store: Any, timeout: Any
    ) -> tuple[Any, torch.Tensor, torch.Tensor]:
        machine = Together(store, rank, group.ranks)
        if fails("join"):
            raise RuntimeError("no route to host")
        executor = FakeExecutor(machine, rank)
        self.executors.append(executor)
        engine = MscclppEngine(
            bindings(),
            executor,
            deployment.folder,
            rank=rank,
            ranks=group.ranks,
            stream=7,
            address=lambda buffer: int(buffer.data_ptr()),
            scale=lambda buffer, dtype, factor: buffer.view(getattr(torch, dtype)).mul_(factor),
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


def device() -> Double:
    """Return the double of this process."""
    if not _made:
        _made.append(Double())
    return _made[0]


def install() -> Double:
    """Have it taken for the process's GPU."""
    creation.device = device
    return device()
