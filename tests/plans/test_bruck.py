"""Bruck's all-to-all: its steps and its time by closed form, and what it refuses."""

from __future__ import annotations

import pytest

import hocket as hk

BLOCK, BLOCK_PS, LATENCY_PS = 1000, 1_000_000, 700_000
"""A block takes a microsecond at 1 GB/s."""


def sent(npus: int) -> list[int]:
    """Return how many blocks each NPU sends in each step: those that have the bit of the step."""
    steps = (npus - 1).bit_length()
    return [sum(distance >> step & 1 for distance in range(npus)) for step in range(steps)]


@pytest.mark.parametrize("npus", [2, 3, 4, 5, 7, 8, 13, 16])
def test_the_time_is_that_of_the_closed_form(npus: int) -> None:
    links = {"bandwidth": "1 GB/s", "latency": "700 ns"}
    near = hk.topology.fully_connected(npus, **links)
    far = hk.topology.switch(npus, **links)
    size = npus * BLOCK
    plan = hk.plan("all-to-all", near, size=size, algorithm="bruck", chunks=1)
    assert len(plan) == npus * sum(sent(npus))
    assert hk.simulate(plan).time_ps == sum(LATENCY_PS + blocks * BLOCK_PS for blocks in sent(npus))
    # A switch passes a block on while it comes in: what is added is the latency of a second link.
    behind = hk.plan("all-to-all", far, size=size, algorithm="bruck", chunks=1)
    each = [2 * LATENCY_PS + blocks * BLOCK_PS for blocks in sent(npus)]
    assert hk.simulate(behind).time_ps == sum(each)


def test_it_does_all_to_all_alone() -> None:
    ring = hk.topology.ring(4, bandwidth="1 GB/s", latency="1 us")
    with pytest.raises(hk.InfeasibleError, match="it does all-to-all, not all-gather"):
        hk.plan("all-gather", ring, size="1 MB", algorithm="bruck")
    with pytest.raises(hk.SpecError, match="of 25 B cannot be cut"):
        hk.plan("all-to-all", ring, size=100, algorithm="bruck", chunks=26)
