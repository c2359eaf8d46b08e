"""Interleaved pipelines against closed forms, and against a slow run of what stages do in turn."""

from __future__ import annotations

from itertools import accumulate
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket as hk
from hocket._core.iteration import under_way
from hocket.training.stages import spoken
from hocket.workload import Workload
from hocket.workload.costs import Block, Work

from .small_models import tags

US = 10**6


def block(name: str, forward: int, backward: int, **fields: int) -> Block:
    """A layer of measured passes; times in us, the backward pass in two halves."""
    known = {"parameters": 10**6, "inputs": 1000, "outputs": 1000, **fields}
    half = Work(time_ps=backward * US)
    return Block(name, Work(time_ps=forward * US), half, half, **known)  # type: ignore[arg-type]


def train(blocks: list[Block], spread: hk.Parallel, **options: object) -> hk.TrainingRun:
    network = hk.topology.product(
        "SW",
        [spread.npus],
        bandwidth=["1 GB/s"],
        latency=[options.pop("latency", "0 ns")],  # type: ignore[list-item]
    )
    chosen: dict[str, object] = {"samples": spread.parts, "update": False, "memory_check": False}
    chosen |= {"algorithm": "none", **options}
    return hk.train(Workload("mine", tuple(blocks)), network, parallel=spread, **chosen)  # type: ignore[arg-type]


@given(
    stages=st.integers(2, 4),
    pieces=st.integers(2, 4),
    rounds=st.integers(1, 4),
    forward=st.integers(1, 50),
)
@settings(deadline=None, max_examples=60)
def test_the_bubble_is_divided_by_the_pieces(
    stages: int, pieces: int, rounds: int, forward: int
) -> None:
    """Narayanan et al. 2021, section 2.2.2: (p - 1) (forward + backward) / v of waiting."""
    parts = rounds * stages
    blocks = [block(f"l{i}", forward, forward) for i in range(stages * pieces)]
    spread = hk.Parallel(pp=stages, interleave=pieces, micro_batches=parts)
    run = train(blocks, spread)
    of_piece = 3 * forward * US
    assert run.total_ps == (parts * pieces + stages - 1) * of_piece
    assert run.breakdown.waiting == pytest.approx((stages - 1) * of_piece)
    plain = train(blocks, hk.Parallel(pp=stages, micro_batches=parts))
    assert plain.total_ps == (parts + stages - 1) * pieces * of_piece


def turns(stage: int, stages: int, pieces: int, parts: int) -> list[tuple[bool, int, int]]:
    """What a stage does in turn: forward or not, which piece, which micro-batch; one forward, one backward.

    Megatron-LM's schedule: so many passes forward are done ahead, then the two ways take turns.
    """
    rounds = range(0, parts, stages) if pieces > 1 else [0]
    size = stages if pieces > 1 else parts
    order = [(p, first + i) for first in rounds for p in range(pieces) for i in range(size)]
    forward = [(True, piece, part) for piece, part in order]
    backward = [(False, pieces - 1 - piece, part) for piece, part in order]
    ahead = stages - 1 - stage
    if pieces > 1:
        ahead = len(order) if parts == stages else 2 * ahead + (pieces - 1) * stages
    done, rest = forward[:ahead], forward[ahead:]
    for way in backward:
        done += [*rest[:1], way]
        rest = rest[1:]
    return done


@given(stages=st.integers(1, 4), pieces=st.integers(1, 3), rounds=st.integers(1, 3))
@settings(deadline=None, max_examples=30)
def test_every_pass_has_its_turn(stages: int, pieces: int, rounds: int) -> None:
    """Stages list what is their turn, and keep as much as is forward and not yet backward."""
    parts = rounds * stages
    spread = hk.Parallel(
        dp=2, pp=stages, interleave=pieces if stages > 1 else 1, micro_batches=parts
    )
    pieces = spread.interleave
    run = train([block(f"l{i}", 10, 10) for i in range(stages * pieces)], spread)
    nodes = list(zip(run.columns.actor.tolist(), tags(run), strict=True))
    for stage in range(stages):
        own = [tag for actor, tag in nodes if actor == stage and tag.cause is None]
        own = [tag for tag in own if tag.does in ("forward", "input gradient")]
        layers = sorted({tag.layer for tag in own})
        listed = [(tag.does == "forward", layers.index(tag.layer)) for tag in own]
        expected = turns(stage, stages, pieces, parts)
        assert listed == [(is_forward, piece) for is_forward, piece, _ in expected]
        kept = accumulate(1 if is_forward else -1 for is_forward, _, _ in expected)
        assert under_way(stage, stages, pieces, parts) == max(kept)


def slowly(times: list[tuple[int, int]], stages: int, pieces: int, parts: int) -> int:
    """When the last pass ends: stages do what is their turn as soon as what it needs has ended."""
    todo = [turns(stage, stages, pieces, parts) for stage in range(stages)]
    free, ended = [0] * stages, dict[tuple[bool, int, int], int]()
    last = stages * pieces - 1
    while any(todo):
        moved = False
        for stage in range(stages):
            while todo[stage]:
                is_forward, piece, part = todo[stage][0]
                place = piece * stages + stage
                if is_forward:
                    need = None if place == 0 else (True, place - 1, part)
                else:
                    need = (True, last, part) if place == last else (False, place + 1, part)
                if need is not None and need not in ended:
                    break
                start = max(free[stage], 0 if need is None else ended[need])
                free[stage] = start + times[place][0 if is_forward else 1]
                ended[is_forward, place, part] = free[stage]
                todo[stage].pop(0)
                moved = True
        assert moved, "stages wait for each other"
    return max(free)


@pytest.mark.parametrize("seed", range(40))
def test_uneven_layers_take_what_turns_say(seed: int) -> None:
    random = Random(seed)
    stages, pieces = random.randint(2, 4), random.randint(2, 3)
    parts = stages * random.randint(1, 3)
    times = [(random.randint(1, 30), random.randint(1, 30)) for _ in range(stages * pieces)]
    blocks = [block(f"l{i}", *each) for i, each in enumerate(times)]
    run = train(blocks, hk.Parallel(pp=stages, interleave=pieces, micro_batches=parts))
    if any(len(own) != pieces for own in run.stages):  # layers were gathered otherwise
        pytest.skip("pieces of several layers")
    both = [(forward, 2 * backward) for forward, backward in times]
    assert run.total_ps == slowly(both, stages, pieces, parts) * US


def test_stages_have_layers_in_turn_and_keep_more() -> None:
    blocks = [block(f"l{i}", 10, 10) for i in range(8)]
    run = train(blocks, hk.Parallel(pp=2, interleave=2, micro_batches=4))
    assert [[each.name for each in own] for own in run.stages] == [
        ["l0", "l1", "l4", "l5"],
        ["l2", "l3", "l6", "l7"],
    ]
    assert spoken(run.pieces[1]) == "l2 to l3, l6 to l7"
    plain = train(blocks, hk.Parallel(pp=2, micro_batches=4))
    assert run.memory.weights == plain.memory.weights
    # The first stage has 5 of 8 passes of pieces under way: 2.5 micro-batches of four layers, not 2.
    assert run.memory.activations == plain.memory.activations * 2.5 / 2


def test_messages_go_round_from_the_last_stage_to_the_first() -> None:
    """Two stages with two pieces: three messages a way, of 2,000 bytes over 1 GB/s each and latency."""
    blocks = [block(f"l{i}", 10, 10) for i in range(4)]
    spread = hk.Parallel(pp=2, interleave=2, micro_batches=2)
    run = train(blocks, spread, algorithm="themis", latency="3 us")
    free = train(blocks, spread)
    assert run.breakdown.exposed["pipeline"] > 0
    assert free.total_ps < run.total_ps <= free.total_ps + 2 * 2 * 3 * 8 * US


def test_micro_batches_are_a_multiple_of_the_stages() -> None:
    blocks = [block(f"l{i}", 10, 10) for i in range(8)]
    with pytest.raises(hk.SpecError, match="6 micro-batches are no multiple of 4 stages") as caught:
        train(blocks, hk.Parallel(pp=4, interleave=2, micro_batches=6))
    assert "micro-batches=8" in str(caught.value)
    with pytest.raises(hk.SpecError, match="interleave=3: 4 stages have 8 layers"):
        train(blocks, hk.Parallel(pp=4, interleave=3, micro_batches=4))


def test_context_parallelism_is_not_simulated() -> None:
    with pytest.raises(hk.SpecError, match=r"cp=2.*hocket predict --training"):
        train([block("l", 1, 1)], hk.Parallel(dp=2, cp=2))
