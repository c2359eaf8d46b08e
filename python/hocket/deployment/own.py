"""Deployed plans by hocket's own interpreter on GPUs, ``interpreter.cu``, which needs no other runtime.

It has no limit of operations, its waits end, and it sums and multicasts by NVSwitches where memory has a
multicast address. The tests run it on CPUs, and NVRTC compiles it; no GPU has run it to its end yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import lcm
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hocket._core.formats import DeviceProgram, device_program
from hocket.deployment.manifest import Entry
from hocket.deployment.route import MOVES, PlannedGroup
from hocket.errors import SpecError, TransportError
from hocket.plans.plan import Plan

Words = npt.NDArray[np.uint64]

KERNEL = "hocket_interpret"
"""Name of the function in the source."""
THREADS = 512
"""Threads of a block."""
_TYPES = {
    "float32": 0,
    "float16": 1,
    "bfloat16": 2,
    "int32": 3,
    "uint32": 3,
    "int64": 4,
    "uint8": 5,
}
"""Numbers that are added, as the source numbers them."""
_VECTOR = 16
"""Bytes that a thread moves at once."""
_SLOT = 8
_PAGE = 4096
"""Parts of a rank's memory begin at multiples of this."""


def source() -> str:
    """Return the interpreter in CUDA C++, which needs no header of CUDA's."""
    return Path(__file__).with_name("interpreter.cu").read_text("utf-8")


@dataclass(frozen=True)
class Symmetric:
    """Memory that all ranks of a group reach, zeroed at all of them.

    Attributes
    ----------
    own
        This rank's bytes.
    addresses
        Where each rank's begins, as this rank sees it.
    multicast
        Where all of them begin at once; 0 if switches cannot do that.
    """

    own: Any
    addresses: list[int]
    multicast: int = 0


class Gpu(Protocol):
    """What a rank's GPU does for the engine."""

    def symmetric(self, size: int) -> Symmetric:
        """Allocate so many bytes at all ranks, which come here together."""
        ...

    def upload(self, words: Words) -> Any:
        """Copy words to the GPU."""
        ...

    def address(self, of: Any) -> int:
        """Return where words that were uploaded, or the report, begin."""
        ...

    @property
    def report(self) -> Any:
        """Four words that both the GPU and this process see, zeroed."""
        ...

    def launch(self, call: Any, blocks: int, vectors: int, dtype: int) -> None:
        """Launch the interpreter in blocks of :data:`THREADS` threads, in stream order."""
        ...


def programs_of(group: PlannedGroup, folder: Path, blocks: int) -> dict[str, DeviceProgram]:
    """Return the programs of a group's plans, by the ids of their entries.

    A program may cut its data more finely than MSCCL++'s, which has pipelines. The group's calls are then
    padded for it.

    Parameters
    ----------
    group, folder
        Whose plans, and the deployed folder.
    blocks
        Most thread blocks, which must all run at once: each takes a processor of its own.

    Raises
    ------
    InfeasibleError
        If a plan needs more blocks.
    """
    made, entries = {}, []
    for entry in group.entries:
        program = device_program(Plan.load(folder / entry.plan.file).core, blocks)
        unit = lcm(entry.unit_bytes, _VECTOR * max(program.sizes[:2]))
        most = max(entry.max_bytes, unit)
        entries.append(entry.model_copy(update={"unit_bytes": unit, "max_bytes": most}))
        made[entry.id] = program
    group.entries = tuple(entries)
    return made


class OwnEngine:
    """Runs plans by hocket's own interpreter.

    Making it is collective: all ranks of the group make theirs with the same programs.

    Parameters
    ----------
    gpu
        This rank's.
    programs
        By the ids of entries, as of :func:`programs_of`.
    rank, ranks
        Of this process in its group, and how many there are.
    stage
        Bytes of each buffer of the stage.
    seconds
        How long an operation waits for others at most.
    scale
        Multiplies the numbers of a buffer: ``scale(buffer, dtype, factor)``, in stream order.

    Attributes
    ----------
    send, recv
        The buffers of the stage: bytes that all ranks reach.
    """

    def __init__(
        self,
        gpu: Gpu,
        programs: Mapping[str, DeviceProgram],
        *,
        rank: int,
        ranks: int,
        stage: int,
        seconds: float,
        scale: Callable[[Any, str, float], None],
    ) -> None:
        self._gpu, self._programs, self._scale = gpu, dict(programs), scale
        self._rank, self._ranks = rank, ranks
        self._limit = int(seconds * 1e9)
        stage = _pages(stage)
        scratch = max((_scratch(each, stage) for each in self._programs.values()), default=0)
        self._slots: dict[str, int] = {}
        end = 2 * stage + scratch
        for name, program in self._programs.items():
            self._slots[name] = end
            end += _pages(program.slots * _SLOT)
        self._memory = gpu.symmetric(end)
        self._parts = (0, stage, 2 * stage)
        self.send, self.recv = self._memory.own[:stage], self._memory.own[stage : 2 * stage]
        self._calls: dict[str, tuple[Any, Any, int]] = {}

    def prepare(self, entry: Entry) -> None:
        """Copy a program to the GPU."""
        program = self._programs[entry.id]
        words = program.words(self._rank)
        state = self._gpu.upload(np.zeros(program.blocks + 1, np.uint64))
        multicast = self._memory.multicast
        head = [self._rank, self._ranks, self._limit, self._gpu.address(self._gpu.report)]
        head += [self._gpu.address(state)]
        head += [multicast + each if multicast else 0 for each in self._parts]
        for base in self._memory.addresses:
            head += [base + each for each in (*self._parts, self._slots[entry.id])]
        call = self._gpu.upload(np.concatenate([np.array(head, np.uint64), words]))
        self._calls[entry.id] = (call, state, int(words[0]))

    def launch(self, entry: Entry, send: Any, recv: Any, op: str, dtype: str) -> None:
        """Run a plan that was prepared, as of :meth:`hocket.deployment.staged.Engine.launch`.

        Raises
        ------
        SpecError
            If the bytes are not whole vectors of 16 bytes in each chunk, or more than the stage has.
        TransportError
            If an operation of an earlier launch has waited too long.
        """
        self.check()
        program = self._programs[entry.id]
        chunk = len(send) // program.sizes[0]
        for what, given, chunks in (
            ("send", send, program.sizes[0]),
            ("recv", recv, program.sizes[1]),
        ):
            if len(given) != chunk * chunks or chunk % _VECTOR or len(given) > len(self.send):
                why = f"has {len(given)} bytes for {chunks} chunks"
                most = len(self.send)
                right = f"give multiples of {_VECTOR * chunks}, {most} at most"
                raise SpecError(what, why, right)
        moves = entry.collective in MOVES
        call, _, blocks = self._calls[entry.id]
        self._gpu.launch(call, blocks, chunk // _VECTOR, _TYPES["uint32" if moves else dtype])
        if op == "average" and not moves:
            self._scale(recv, dtype, 1 / self._ranks)

    def check(self) -> None:
        """Raise if an operation has waited too long; the group is out of step from then on.

        Raises
        ------
        TransportError
            With the rank, the block and the operation.
        """
        stuck, rank, block, operation = (int(each) for each in self._gpu.report)
        if stuck:
            why = f"operation {operation} of block {block} of rank {rank} waited too long"
            raise TransportError(f"{why} ({self._limit / 1e9:g} s) for another rank", "timeout")


def _pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


def _scratch(program: DeviceProgram, stage: int) -> int:
    """Return the bytes of scratch for the longest call that a stage holds."""
    return _pages(program.sizes[2] * (stage // max(program.sizes[:2])))
