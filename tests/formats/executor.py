"""MSCCL++'s executor on NumPy arrays: the operations of a plan byte by byte, its blocks in random turns.

It runs what files without packets and switches have. Threads of a block are one: races are judged
elsewhere (``hocket check``). Addresses, sizes and rounds are those of ``execution_plan.cc`` and
``execution_kernel.hpp`` of 0.9.0.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

_ALL = 0xFFFFFFFF
"""The bytes of a round outside pipelines."""


class Executor:
    """All ranks of a plan, in memory of one call after the other."""

    def __init__(self, plan: dict[str, Any], inputs: list[Any], outputs: list[Any]) -> None:
        self.plan, first = plan, plan["gpus"][0]
        self.chunk = inputs[0].nbytes // first["input_chunks"]
        scratch = [np.zeros(gpu["scratch_chunks"] * self.chunk, np.uint8) for gpu in plan["gpus"]]
        columns = zip(inputs, outputs, scratch, strict=True)
        self.memory = [dict(zip("ios", of_rank, strict=True)) for of_rank in columns]
        self.counts: Counter[Any] = Counter()

    def call(self, seed: int) -> None:
        """Run one call to its end.

        Raises
        ------
        RuntimeError
            If blocks wait for what does not come.
        """
        seeded = random.Random(seed)
        left = [
            self._block(rank, block)
            for rank, gpu in enumerate(self.plan["gpus"])
            for block in gpu["threadblocks"]
        ]
        while left:
            seeded.shuffle(left)
            steps = [seeded.randrange(1, 20) for _ in left]
            went = [list(islice(block, most)) for block, most in zip(left, steps, strict=True)]
            ended = [len(own) < most for own, most in zip(went, steps, strict=True)]
            if not any(ended) and not any(map(any, went)):
                raise RuntimeError("blocks wait for what does not come")
            left = [block for block, is_done in zip(left, ended, strict=True) if not is_done]

    def _block(self, rank: int, block: dict[str, Any]) -> Iterator[bool]:
        """Run a block; yields whether it went on."""
        for op in block["ops"]:
            if op["name"] != "pipeline":
                yield from self._op(rank, block, op, 0, _ALL)
                continue
            unit, chunks = op["iter_context"]["unit_size"], op["iter_context"]["num_chunks"]
            rounds = -(-chunks * self.chunk // unit)
            for turn in range(rounds & 0xFFFF):
                for inner in op["ops"]:
                    yield from self._op(rank, block, inner, turn * unit, unit)

    def _op(
        self, rank: int, block: dict[str, Any], op: dict[str, Any], offset: int, unit: int
    ) -> Iterator[bool]:
        name = op["name"]
        if name in ("signal", "wait", "sem_acquire", "sem_release"):
            keys = [("sem", rank, each) for each in op.get("semaphore_ids", [])]
            ids = op.get("channel_ids", [])
            keys += [self._line(rank, block, op, each, name == "signal") for each in ids]
            takes = name in ("wait", "sem_acquire")
            while takes and not all(self.counts[key] > 0 for key in keys):
                yield False
            for key in keys:
                self.counts[key] += -1 if takes else 1
        elif name != "nop":
            sources = [self._bytes(rank, block, op, each, offset, unit) for each in op["src_buff"]]
            targets = [self._bytes(rank, block, op, each, offset, unit) for each in op["dst_buff"]]
            if name == "re":
                numbers = [each.view(np.int32) for each in sources]
                targets[0].view(np.int32)[:] = np.sum(numbers, axis=0, dtype=np.int32)
            else:
                assert name in ("put", "copy", "pwsf"), name
                kinds = {each.get("type") for each in op["src_buff"]}
                assert len(kinds) == 1, "all parts are taken from the buffer of the first"
                is_port = op.get("channel_type") == "port"
                assert not is_port or len(op["channel_ids"]) == len(targets), "a channel each"
                for own, target in zip(sources, targets, strict=True):
                    target[:] = own
            if name == "pwsf":
                self.counts[self._line(rank, block, op, op["channel_ids"][0], True)] += 1
        yield True

    def _bytes(
        self,
        rank: int,
        block: dict[str, Any],
        op: dict[str, Any],
        buffer: dict[str, Any],
        offset: int,
        unit: int,
    ) -> Any:
        kind = buffer.get("type")
        if kind is None:
            refs = _of(block["remote_buffer_refs"], "access_channel_type", op["channel_type"])
            remote = refs["remote_buffer_ids"][buffer["buffer_id"]]
            remote = self.plan["gpus"][rank]["remote_buffers"][remote]
            rank, kind = remote["rank"], remote["type"]
        start, size = buffer["index"] * self.chunk + offset, buffer["size"] * self.chunk
        found = self.memory[rank][kind][start : start + min((size - offset) & _ALL, unit)]
        assert len(found) == min((size - offset) & _ALL, unit), "beyond a buffer"
        return found

    def _line(
        self, rank: int, block: dict[str, Any], op: dict[str, Any], channel: int, outward: bool
    ) -> Any:
        """Return which counter a channel is: both ends count those of a pair of ranks alike."""
        kind = op["channel_type"]
        of_rank = _of(self.plan["gpus"][rank]["channels"], "channel_type", kind)["connected_to"]
        own = _of(block["channels"], "channel_type", kind)["channel_ids"][channel]
        peer = of_rank[own]
        ends = (rank, peer) if outward else (peer, rank)
        return (kind, *ends, of_rank[:own].count(peer))


def _of(entries: list[dict[str, Any]], key: str, value: str) -> dict[str, Any]:
    return next(each for each in entries if each[key] == value)
