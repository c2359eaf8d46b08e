"""Schedules of thread blocks are correct collectives, whatever the order of what may happen at once."""

from __future__ import annotations

from collections import Counter, deque
from random import Random

import pytest

from hocket_studies.block_schedules import (
    BlockSchedule,
    pairs_all_gather,
    pairs_all_reduce,
    ring_all_gather,
)

Contents = Counter[tuple[int, int]]
"""What a chunk is the sum of: (NPU, chunk of its data), and how often."""


def carry_out(schedule: BlockSchedule, seed: int) -> list[dict[object, Contents]]:
    """Run the blocks in some order that waits and connections allow; give every NPU's memory."""
    random = Random(seed)
    owned = schedule.chunks // schedule.npus
    memory: list[dict[object, Contents]] = []
    for npu in range(schedule.npus):
        is_all = schedule.kind == "all-reduce"
        mine = range(schedule.chunks) if is_all else range(npu * owned, (npu + 1) * owned)
        memory.append({("data", chunk): Counter({(npu, chunk): 1}) for chunk in mine})
    wires: dict[tuple[int, int, int], deque[list[Contents]]] = {}
    done = [0] * len(schedule.blocks)
    while True:
        ready = []
        for at, block in enumerate(schedule.blocks):
            if done[at] == len(block.steps):
                continue
            step = block.steps[done[at]]
            if any(done[other] <= which for other, which in step.waits):
                continue
            if step.op == "receive":
                assert block.receive is not None
                if not wires.get((block.receive, block.npu, block.channel)):
                    continue
            ready.append(at)
        if not ready:
            break
        at = random.choice(ready)
        block = schedule.blocks[at]
        step = block.steps[done[at]]
        own = memory[block.npu]
        places = [(step.place[0], step.place[1] + more) for more in range(step.chunks)]
        if step.op == "send":
            assert block.send is not None
            wire = wires.setdefault((block.npu, block.send, block.channel), deque())
            wire.append([Counter(own[place]) for place in places])
        elif step.op == "receive":
            assert block.receive is not None
            came = wires[block.receive, block.npu, block.channel].popleft()
            own.update(zip(places, came, strict=True))
        else:
            own[step.place] = sum((own[each] for each in step.operands), Counter(own[step.place]))
        done[at] += 1
    assert done == [len(block.steps) for block in schedule.blocks], "some block is stuck"
    assert not any(wires.values()), "something was sent and not received"
    return memory


def check(schedule: BlockSchedule, seed: int) -> None:
    for own in carry_out(schedule, seed):
        for chunk in range(schedule.chunks):
            owner = chunk * schedule.npus // schedule.chunks
            is_sum = schedule.kind == "all-reduce"
            wanted = range(schedule.npus) if is_sum else [owner]
            assert own["data", chunk] == Counter({(npu, chunk): 1 for npu in wanted})


@pytest.mark.parametrize("npus", [2, 3, 5, 8])
@pytest.mark.parametrize("seed", range(5))
def test_schedules_are_correct_in_any_order(npus: int, seed: int) -> None:
    for channels in (1, 2, npus):
        check(ring_all_gather(npus, channels), seed)
    check(pairs_all_gather(npus), seed)
    check(pairs_all_reduce(npus), seed)


def test_a_schedule_that_forgets_to_wait_is_found_out() -> None:
    right = pairs_all_reduce(4)
    blocks = [
        type(block)(
            block.npu,
            block.send,
            block.receive,
            block.channel,
            tuple(
                type(step)(step.op, step.place, step.operands, step.chunks) for step in block.steps
            ),
        )
        for block in right.blocks
    ]
    wrong = BlockSchedule(right.kind, 4, right.chunks, 1, tuple(blocks))
    with pytest.raises((AssertionError, KeyError)):
        check(wrong, 0)


@pytest.mark.parametrize(
    ("schedule", "blocks", "steps"),
    [
        (ring_all_gather(8, 1), 1, 14),
        (ring_all_gather(8, 2), 2, 14),
        (ring_all_gather(8, 4), 4, 14),
        (ring_all_gather(8, 8), 8, 14),
        (pairs_all_gather(8), 7, 14),
        # Published: 167, where all waits but one of a step, and all operands, are steps.
        (pairs_all_reduce(8), 8, 36),
    ],
)
def test_blocks_and_steps_of_an_npu_are_as_published(
    schedule: BlockSchedule, blocks: int, steps: int
) -> None:
    own = [block for block in schedule.blocks if block.npu == 0]
    assert (len(own), sum(len(block.steps) for block in own)) == (blocks, steps)
    if schedule.kind == "all-reduce":
        alike = sum(
            max(len(step.waits) - 1, 0) + max(len(step.operands), 1)
            for block in own
            for step in block.steps
        )
        assert alike == 167


def test_which_sizes_divide() -> None:
    assert pairs_all_reduce(8, 4).divides(1024)
    assert not pairs_all_reduce(8, 4).divides(512)
    assert ring_all_gather(8, 2, 2).chunk_bytes(1 << 20) == 1 << 16
