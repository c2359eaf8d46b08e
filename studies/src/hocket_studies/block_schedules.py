"""Collectives as thread blocks carry them out: rings and all pairs, as published for MSCCL.

A thread block runs its steps in order. It sends to one NPU and receives from one, on a channel, or only
works on its own NPU. The data of an NPU is divided into chunks; a schedule may be there several times
(*instances*), each with its own part of the data and its own channels.

Source: the examples of MSCCL's language (``allgather_ring``, ``allgather_allpairs``,
``allreduce_allpairs`` of microsoft/msccl-tools, ``examples/mscclang``), from their public description.
Steps that receive and steps that send stay apart, as in the schedules that were measured.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

__all__ = [
    "BlockSchedule",
    "BlockStep",
    "Place",
    "ThreadBlock",
    "pairs_all_gather",
    "pairs_all_reduce",
    "ring_all_gather",
]

Place: TypeAlias = tuple[Literal["data", "scratch"], int]
"""A chunk of a buffer."""

_CoreStep: TypeAlias = tuple[bool, bool, int, int, list[tuple[int, int]]]
_CoreBlock: TypeAlias = tuple[int, int | None, int | None, int, list[_CoreStep]]


@dataclass(frozen=True)
class BlockStep:
    """A step of a thread block.

    Attributes
    ----------
    op
        ``"send"`` chunks from a place on, ``"receive"`` them there, or ``"sum"`` operands into it.
    place
        The first chunk.
    operands
        Of a sum: what is added to the chunk.
    chunks
        How many, from `place` on.
    waits
        Blocks, by their place in the schedule, with steps of theirs that must be done before.
    """

    op: Literal["send", "receive", "sum"]
    place: Place
    operands: tuple[Place, ...] = ()
    chunks: int = 1
    waits: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class ThreadBlock:
    """A thread block of an NPU: whom it sends to and receives from, its channel, and its steps in order."""

    npu: int
    send: int | None
    receive: int | None
    channel: int
    steps: tuple[BlockStep, ...]


@dataclass(frozen=True)
class BlockSchedule:
    """The work of all NPUs' thread blocks for one collective.

    Attributes
    ----------
    kind
        The collective; it is in place.
    npus
        Among how many.
    chunks
        Into how many the data of one instance is divided.
    instances
        How many times the blocks are there, side by side.
    blocks
        Of one instance.
    """

    kind: str
    npus: int
    chunks: int
    instances: int
    blocks: tuple[ThreadBlock, ...] = field(repr=False)

    @cached_property
    def core_blocks(self) -> list[_CoreBlock]:
        """The blocks as the core takes them."""
        return [
            (
                block.npu,
                block.send,
                block.receive,
                block.channel,
                [
                    (
                        step.op == "receive",
                        step.op == "send",
                        len(step.operands),
                        step.chunks,
                        list(step.waits),
                    )
                    for step in block.steps
                ],
            )
            for block in self.blocks
        ]

    def chunk_bytes(self, size: int) -> float:
        """Return the bytes of a chunk of so much data."""
        return size / (self.chunks * self.instances)

    def divides(self, size: int, element: int = 4) -> bool:
        """Return whether the data divides into whole elements; if not, the library runs something else."""
        return size % (self.chunks * self.instances * element) == 0


def ring_all_gather(npus: int, channels: int = 1, instances: int = 1) -> BlockSchedule:
    """Gather along a ring: in every step each NPU passes on the chunk that it received in the last one.

    Chunk k goes over channel k modulo `channels`, each of which has a thread block at every NPU.
    """
    blocks = []
    for npu in range(npus):
        after, before = (npu + 1) % npus, (npu - 1) % npus
        steps: list[list[BlockStep]] = [[] for _ in range(channels)]
        for step in range(npus - 1):
            sent, received = (npu - step) % npus, (npu - step - 1) % npus
            steps[sent % channels].append(BlockStep("send", ("data", sent)))
            steps[received % channels].append(BlockStep("receive", ("data", received)))
        blocks += [
            ThreadBlock(npu, after, before, channel, tuple(own))
            for channel, own in enumerate(steps)
        ]
    return BlockSchedule("all-gather", npus, npus, instances, tuple(blocks))


def pairs_all_gather(npus: int, instances: int = 1) -> BlockSchedule:
    """Gather by all pairs: a thread block for each pair of NPUs at either end sends and then receives."""
    blocks = [
        ThreadBlock(
            npu,
            peer,
            peer,
            0,
            (BlockStep("send", ("data", npu)), BlockStep("receive", ("data", peer))),
        )
        for npu in range(npus)
        for peer in range(npus)
        if peer != npu
    ]
    return BlockSchedule("all-gather", npus, npus, instances, tuple(blocks))


def pairs_all_reduce(npus: int, instances: int = 1) -> BlockSchedule:
    """All-reduce by all pairs, in two phases of one step: parts to their owners, and sums from them.

    Each NPU owns a part of as many chunks as there are NPUs. The others' versions come into scratch
    memory; then every thread block of the owner sums one chunk of the part, and sends the whole part when
    all have.
    """
    blocks: list[ThreadBlock] = []
    for npu in range(npus):
        peers = [peer for peer in range(npus) if peer != npu]
        block = {npu: len(blocks)} | {peer: len(blocks) + at for at, peer in enumerate(peers, 1)}
        waits = tuple((block[peer], 1) for peer in peers)
        blocks.append(ThreadBlock(npu, None, None, 0, (_sum(npu, npu, npus, waits),)))
        for at, peer in enumerate(peers):
            others = [other for other in peers if other != peer]
            waits = tuple((block[other], 1) for other in others)
            summed = ((block[npu], 0), *((block[other], 2) for other in others))
            steps = (
                BlockStep("send", ("data", peer * npus), chunks=npus),
                BlockStep("receive", ("scratch", at * npus), chunks=npus),
                _sum(npu, peer, npus, waits),
                BlockStep("send", ("data", npu * npus), chunks=npus, waits=summed),
                BlockStep("receive", ("data", peer * npus), chunks=npus),
            )
            blocks.append(ThreadBlock(npu, peer, peer, 0, steps))
    return BlockSchedule("all-reduce", npus, npus * npus, instances, tuple(blocks))


def _sum(npu: int, chunk: int, npus: int, waits: tuple[tuple[int, int], ...]) -> BlockStep:
    """Sum a chunk of the part that an NPU owns; what came from the others lies in scratch memory."""
    operands: tuple[Place, ...] = tuple(("scratch", at * npus + chunk) for at in range(npus - 1))
    return BlockStep("sum", ("data", npu * npus + chunk), operands, 1, waits)
