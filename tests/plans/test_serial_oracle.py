"""Waits and refusals of the plan builder against the rules themselves, a place at a time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket as hk

from .serial_oracle import GROUP, NOTHING, Oracle, RefusalError

NPUS, CHUNKS = 4, 5
STAR = hk.topology.offloaded(hk.topology.switch(NPUS, bandwidth="25 GB/s", latency="1 us"))
ALL_REDUCE = hk.collective_on("all-reduce", STAR, "1 MB")
LINKS = list(zip(STAR.link_src.tolist(), STAR.link_dst.tolist(), strict=True))
ENDS = range(NPUS + 1)  # the switch sums and multicasts

Move = dict[str, Any]


@st.composite
def moves(draw: st.DrawFn) -> list[Move]:
    """Sends, sums and barriers, most of them right; transfers, groups and NPUs that are not, too."""
    # Often the same few places, so that they conflict.
    npus = st.one_of(st.integers(0, 2), st.integers(0, NPUS), st.integers(0, NPUS + 2))
    starts = st.one_of(st.integers(0, 1), st.integers(0, CHUNKS + 1))
    count = draw(st.integers(0, 30))
    handles = st.one_of(
        st.integers(0, count), st.integers(GROUP, GROUP + 4), st.just(NOTHING), st.just(1 << 40)
    )
    made: list[Move] = []
    for _ in range(count):
        if draw(st.integers(0, 9)) == 0:
            made.append({"barrier": True})
            continue
        start = draw(starts)
        src, dst = draw(npus), draw(npus)
        move: Move = {
            "is_sum": draw(st.booleans()),
            "chunks": range(start, start + draw(st.integers(0 if start == 3 else 1, 3))),
            "src": src,
            "dst": dst,
        }
        extra = draw(st.integers(0, 11))
        if extra == 0:
            move["after"] = draw(st.lists(handles, max_size=3))
        if extra == 1:
            through = [[src, NPUS, dst], [src, dst], [src], [dst, NPUS, src]]
            path = draw(st.sampled_from(through))
            move["path"] = [device for device in path if device <= NPUS]
        made.append(move)
    return made


def builder() -> hk.PlanBuilder:
    return hk.PlanBuilder(STAR, ALL_REDUCE, chunks=CHUNKS)


def columns_of(built: hk.PlanBuilder) -> tuple[list[int], list[tuple[int, ...]], list[int]]:
    core = built.build(routing="single").core
    items, offsets = core.group_items.tolist(), core.group_offsets.tolist()
    groups = [tuple(items[start:end]) for start, end in pairwise(offsets)]
    return core.wait.tolist(), groups, core.path.tolist()


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True)
@given(moves())
def test_waits_and_refusals_are_those_of_the_rules(made: list[Move]) -> None:
    oracle, built = Oracle(STAR, ENDS, CHUNKS, LINKS), builder()
    for move in made:
        if "barrier" in move:
            assert built.barrier() == oracle.barrier()
            continue
        given = dict(move)
        is_sum = given.pop("is_sum")
        chunks, src, dst = given.pop("chunks"), given.pop("src"), given.pop("dst")
        try:
            expected: object = oracle.send(is_sum, chunks, src, dst, **given)
        except RefusalError as refusal:
            expected = str(refusal)
        send = built.reduce if is_sum else built.copy
        try:
            found: object = send(chunks, src, dst, **given)
        except hk.SpecError as error:
            found = str(error)
        assert found == expected
        assert len(built) == len(oracle.waits)
    assert columns_of(built) == (oracle.waits, oracle.groups, oracle.taken)


def refusal_of(number: int, move: Move) -> str | None:
    """Return why a row of an array is refused; a run of one chunk is shown as that chunk."""
    chunks = move["chunks"]
    try:
        Oracle(STAR, ENDS, CHUNKS, LINKS).check(number, chunks, move["src"], move["dst"])
    except RefusalError as refusal:
        text = str(refusal)
        return text.replace(str(chunks), str(chunks.start)) if len(chunks) == 1 else text
    return None


@settings(max_examples=100, deadline=None, derandomize=True)
@given(moves(), st.integers(1, 6))
def test_arrays_are_taken_as_calls_are(made: list[Move], rows: int) -> None:
    """All of an array or nothing; single transfers between two arrays count."""
    plain = [move for move in made if move.keys() == {"is_sum", "chunks", "src", "dst"}]
    by_call, by_array = builder(), builder()
    for first in range(0, len(plain), rows):
        part = plain[first : first + rows]
        op = np.array([move["is_sum"] for move in part])
        chunk = [move["chunks"].start for move in part]
        count = [len(move["chunks"]) for move in part]
        src, dst = [move["src"] for move in part], [move["dst"] for move in part]
        numbers = range(len(by_call), len(by_call) + len(part))
        refusals = [refusal_of(number, move) for number, move in zip(numbers, part, strict=True)]
        expected: object = next(filter(None, refusals), numbers)
        try:
            found: object = by_array.extend(op, chunk, src, dst, chunk_count=count)
        except hk.SpecError as error:
            found = str(error)
        assert found == expected
        if isinstance(expected, str):
            continue
        for move in part:
            send = by_call.reduce if move["is_sum"] else by_call.copy
            send(move["chunks"], move["src"], move["dst"])
    assert columns_of(by_array) == columns_of(by_call)
