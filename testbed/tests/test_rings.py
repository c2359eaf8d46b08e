"""The ring all-reduce by itself, over sockets within this process."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

import hocket as hk
from hocket_testbed import rings


def ranks(count: int, stack: ExitStack) -> list[rings._Rank]:
    pairs = [socket.socketpair() for _ in range(count)]
    for each in (one for pair in pairs for one in pair):
        stack.enter_context(each)
        each.setblocking(False)
    return [rings._Rank(i, count, pairs[i][0], pairs[i - 1][1]) for i in range(count)]


@pytest.mark.parametrize("count", [2, 3, 8])
@pytest.mark.parametrize("size", [4, 1000, 1 << 20])
def test_all_ranks_have_the_sum(count: int, size: int) -> None:
    with ExitStack() as stack:
        both = [ranks(count, stack), ranks(2, stack)]
        for _ in range(2):
            times = rings._run(both, [size, size])
            assert all(time > 0 for time in times)
            assert all(rank.is_right() for ring in both for rank in ring)


def test_a_wrong_sum_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    received = rings._Rank.receive

    def spoilt(rank: rings._Rank) -> None:
        received(rank)
        if rank.rank == 1 and rank.received == rank.steps:
            rank.vector[0, 0] += 1

    monkeypatch.setattr(rings._Rank, "receive", spoilt)
    with (
        ExitStack() as stack,
        pytest.raises(hk.SimulationError, match="1 of 3 ranks have a wrong sum"),
    ):
        rings._run([ranks(3, stack)], [3000])


def test_a_lost_connection_is_told() -> None:
    with ExitStack() as stack:
        ring = ranks(3, stack)
        ring[0].out.shutdown(socket.SHUT_RDWR)
        with pytest.raises(hk.SimulationError, match=r"rank \d lost its connection"):
            rings._run([ring], [1 << 20])
