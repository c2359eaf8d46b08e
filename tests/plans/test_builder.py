"""Plans of one's own: waits that are found, waits that are given, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket as hk

LINK = {"bandwidth": "25 GB/s", "latency": "700 ns"}
RING = hk.topology.ring(4, **LINK)
REDUCE = hk.collective_on("all-reduce", RING, "4 MB")


def ring_all_reduce(n: int, slices: int = 1) -> hk.PlanBuilder:
    topology = hk.topology.ring(n, **LINK)
    collective = hk.collective_on("all-reduce", topology, "1 MB")
    builder = hk.PlanBuilder(topology, collective, name="mine", chunks=n * slices)
    for send, lead in ((builder.reduce, 0), (builder.copy, 1)):
        for step in range(n - 1):
            for npu in range(n):
                first = (npu + lead - step) % n * slices
                send(range(first, first + slices), npu, (npu + 1) % n)
    return builder


def test_a_ring_takes_what_the_ring_takes() -> None:
    plan = ring_all_reduce(4, slices=2).build().verify()
    assert len(plan) == 24
    assert plan.algorithm == "mine"
    assert repr(plan) == '<Plan mine all-reduce on "ring 4": 24 transfers>'
    # messages of two chunks, where the other pipelines
    whole = hk.plan("all-reduce", plan.topology, size="1 MB", algorithm="ring", chunks=1)
    assert hk.simulate(plan).time_ps == hk.simulate(whole).time_ps


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_all_to_one_to_all_waits_for_all_sums(n: int) -> None:
    topology = hk.topology.fully_connected(n, **LINK)
    builder = hk.PlanBuilder(topology, hk.collective_on("all-reduce", topology, "1 MB"))
    for npu in range(1, n):
        builder.reduce(0, npu, 0)
    for npu in range(1, n):
        builder.copy(0, 0, npu)
    plan = builder.build().verify()
    # all copies share one group, that of the sums (and each waits for the send of its receiver)
    assert plan.core.group_items.size <= (n - 1) + 2 * (n - 1)


@st.composite
def sequences(draw: st.DrawFn) -> hk.PlanBuilder:
    """Transfers that are right one after the other; the collective asks for what they come to."""
    npus, pieces = draw(st.integers(2, 5)), draw(st.integers(1, 4))
    steps = draw(
        st.lists(
            st.tuples(
                st.booleans(),
                st.integers(0, npus - 1),
                st.integers(0, npus - 1),
                st.integers(0, pieces - 1),
                st.integers(1, pieces),
            ),
            max_size=30,
        )
    )
    state = [[{npu} for npu in range(npus)] for _ in range(pieces)]
    moves: list[tuple[bool, int, int, range]] = []
    for is_sum, src, dst, first, count in steps:
        chunks = range(first, min(first + count, pieces))
        if src == dst:
            continue
        if is_sum and any(state[c][src] & state[c][dst] for c in chunks):
            continue
        if not is_sum and any(state[c][src] == state[c][dst] for c in chunks):
            continue
        for c in chunks:
            state[c][dst] = state[c][dst] | state[c][src] if is_sum else set(state[c][src])
        moves.append((is_sum, src, dst, chunks))
    everyone = set(range(npus))
    wanted = [[npu for npu in range(npus) if state[c][npu] == everyone] for c in range(pieces)]
    if not all(wanted):
        # Whoever is left with a part gets nothing; one more sum each would need the rest. Gather it at 0.
        for c in range(pieces):
            if not wanted[c]:
                moves += _completed(state[c], c, npus)
                wanted[c] = [0]
    topology = hk.topology.fully_connected(npus, **LINK)
    demands = [(8, True, None, who) for who in wanted]
    builder = hk.PlanBuilder(topology, hk.Collective.custom(list(range(npus)), demands))
    for is_sum, src, dst, chunks in moves:
        (builder.reduce if is_sum else builder.copy)(chunks, src, dst)
    return builder


def _completed(state: list[set[int]], chunk: int, npus: int) -> list[tuple[bool, int, int, range]]:
    """Bring every contribution that is still whole somewhere together at NPU 0, or give up."""
    moves, have = [], set(state[0])
    for npu in range(1, npus):
        if not state[npu] & have:
            moves.append((True, npu, 0, range(chunk, chunk + 1)))
            have |= state[npu]
    return moves


@settings(max_examples=400, deadline=None, derandomize=True)
@given(sequences())
def test_what_is_right_step_by_step_is_proved(builder: hk.PlanBuilder) -> None:
    codes: set[str] = set()
    try:
        builder.build().verify()
    except hk.VerificationError as error:
        codes = {each.code for each in error.violations}
    # Contributions that were copied over are lost for good; nothing else may go wrong.
    assert codes <= {"missing"}


def test_explicit_waits_are_taken_as_they_are() -> None:
    line = hk.topology.line(3, **LINK)
    builder = hk.PlanBuilder(line, hk.collective_on("broadcast", line, "1 MB"))
    builder.copy(0, 0, 1)
    builder.copy(0, 1, 2, after=())
    with pytest.raises(hk.VerificationError, match=r"sent_before_held|unordered_read"):
        builder.build().verify()

    builder = hk.PlanBuilder(line, hk.collective_on("broadcast", line, "1 MB"), chunks=2)
    both = [builder.copy(0, 0, 1), builder.copy(1, 0, 1)]
    builder.copy(range(2), 1, 2, after=both)
    transfers = builder.build().verify().transfers
    assert transfers.wait.tolist() == [hk.Plan.NO_WAIT] * 2 + [1 << 31]


def test_barriers_are_shared() -> None:
    topology = hk.topology.fully_connected(6, **LINK)
    builder = hk.PlanBuilder(topology, hk.collective_on("all-reduce", topology, "1 MB"))
    for npu in range(1, 6):
        builder.reduce(0, npu, 0)
    done = builder.barrier()
    for npu in range(1, 6):
        builder.copy(0, 0, npu, after=done)
    plan = builder.build().verify()
    assert plan.core.group_items.tolist() == [0, 1, 2, 3, 4]
    assert len(set(plan.transfers.wait[5:].tolist())) == 1
    assert builder.barrier() != done


def test_names_ranges_and_paths() -> None:
    topology = hk.topology.switch(3, **LINK)
    names = topology.device_names
    builder = hk.PlanBuilder(topology, hk.collective_on("broadcast", topology, 10), chunks=5)
    builder.copy(range(5), names[0], names[1], path=[names[0], names[3], names[1]])
    builder.copy(range(1, 3), 0, np.int64(2), path=[0, 3, 2])
    builder.copy(range(3, 5), 1, 2, path=[1, 3, 2])
    builder.copy(0, 1, 2)
    transfers = builder.build().verify().transfers
    assert transfers.path.tolist() == [0, 1, 2, hk.Plan.DEFAULT_ROUTE]
    assert transfers.size_bytes.tolist() == [10, 4, 4, 2]


def test_chunks_cut_each_demand() -> None:
    gather = hk.collective_on("all-gather", RING, 41)
    plan = hk.PlanBuilder(RING, gather, chunks=3).build()
    assert plan.chunks == 12
    assert plan.core.chunk_offsets[-1] == 41
    assert plan.core.chunk_demand.tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3


BAD: dict[str, tuple[Callable[[hk.PlanBuilder], object], str]] = {
    "chunk": (
        lambda b: b.copy(9, 0, 1),
        "transfer 1: chunk: there is no chunk 9; chunks are 0 to 3",
    ),
    "range": (
        lambda b: b.copy(range(0, 4, 2), 0, 1),
        "transfer 1: chunk: range(0, 4, 2) is not a run",
    ),
    "empty": (lambda b: b.copy(range(2, 2), 0, 1), "transfer 1: chunk: range(2, 2) is not a run"),
    "text": (lambda b: b.copy("0", 0, 1), "transfer 1: chunk: '0' is not a chunk"),
    "npu": (lambda b: b.copy(0, 7, 1), "transfer 1: src: there is no NPU 7; NPUs are 0 to 3"),
    "name": (lambda b: b.reduce(0, 0, "gpu9"), "transfer 1: dst: "),
    "self": (lambda b: b.copy(0, 1, 1), "transfer 1: dst: NPU 1 is the sender, too"),
    "later": (
        lambda b: b.copy(0, 0, 1, after=1),
        "transfer 1: after: 1 is none of the 1 transfers",
    ),
    "group": (lambda b: b.copy(0, 0, 1, after=[1 << 31]), "transfer 1: after: 2147483648 is none"),
    "word": (lambda b: b.copy(0, 0, 1, after="all"), "transfer 1: after: 'all' is none of the 1"),
    "path": (lambda b: b.copy(0, 0, 1, path=[0, 2]), "transfer 1: path: there is no link from"),
    "short": (lambda b: b.copy(0, 0, 1, path=[0]), "transfer 1: path: [0] does not join them"),
    "stray": (lambda b: b.copy(0, 0, 1, path=[0, "x"]), "transfer 1: path: "),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_transfers_are_refused_in_a_line(case: str) -> None:
    builder = hk.PlanBuilder(RING, REDUCE, chunks=4)
    builder.reduce(0, 0, 1)
    call, text = BAD[case]
    with pytest.raises(hk.SpecError) as caught:
        call(builder)
    assert str(caught.value).startswith(text)
    assert "\n" not in str(caught.value)
    assert len(builder) == 1


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((RING, "all-reduce"), "collective"),
        ((REDUCE, RING), "topology"),
        ((hk.topology.ring(3, **LINK), REDUCE), "collective"),
    ],
)
def test_bad_ends_are_refused(arguments: tuple[object, object], field: str) -> None:
    with pytest.raises(hk.SpecError) as caught:
        hk.PlanBuilder(*arguments)  # type: ignore[arg-type]
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("keywords", "field"),
    [
        ({"chunks": 0}, "chunks"),
        ({"chunks": 1.5}, "chunks"),
        ({"chunks": 5_000_000}, "chunks"),
        ({"name": ""}, "name"),
        ({"name": 3}, "name"),
        ({"link_order": "fast"}, "link_order"),
    ],
)
def test_bad_settings_are_refused(keywords: dict[str, object], field: str) -> None:
    with pytest.raises(hk.SpecError) as caught:
        hk.PlanBuilder(RING, REDUCE, **keywords)  # type: ignore[arg-type]
    assert caught.value.field == field


def test_a_plan_of_anything_else_is_refused() -> None:
    with pytest.raises(hk.SpecError, match="is not a plan of the core; plans are made by"):
        hk.Plan(RING, REDUCE, [])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("offsets", "demand", "words"),
    [
        ([0, 2e6, 4e6], [0, 0], "offsets: it holds float64; give whole numbers"),
        ([0, 2, 4], [False, False], "demand: it holds bool; give whole numbers"),
        ("ab", [0], "offsets: it holds <U2"),
        (4, [0], "offsets: 4 is one number; give a list of them"),
        ([[0, 4]], [0], "offsets: it has 2 dimensions"),
        ([[0], [1, 2]], [0], "offsets: it holds lists of several lengths"),
        ([0, -4], [0], "offsets: -4 is out of range"),
        ([0, 4], [1 << 40], "demand: 1099511627776 is out of range"),
        ([0, 4, 2], [0, 0], "chunk_offsets falls from 4 to 2"),
    ],
)
def test_chunks_are_whole_numbers(offsets: object, demand: object, words: str) -> None:
    builder = hk.PlanBuilder(RING, REDUCE)
    with pytest.raises(hk.SpecError) as caught:
        builder.use_chunks(offsets, demand)  # type: ignore[arg-type]
    assert words in str(caught.value)
    builder.use_chunks([0, 1_000_000, 4_000_000], np.array([0, 0], np.int8))
    assert builder.chunks == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda builder: builder.copy(True, 0, 1),
        lambda builder: builder.copy(0, False, 1),
        lambda builder: builder.reduce(0, 0, True),
        lambda builder: builder.copy(0, 0, 2, path=[0, True, 2]),
        lambda builder: builder.extend("copy", [True, False], 0, 1),
        lambda _: hk.collective_on("broadcast", RING, "1 MB", root=True),
        lambda _: hk.collective_on("all-gather", RING, "1 MB", npus=[True, 2]),
    ],
)
def test_a_truth_value_is_no_number(call: Callable[[hk.PlanBuilder], object]) -> None:
    builder = hk.PlanBuilder(RING, REDUCE)
    with pytest.raises(hk.SpecError):
        call(builder)
    assert len(builder) == 0


def test_a_wrong_plan_says_what_the_transfer_sends() -> None:
    builder = hk.PlanBuilder(RING, REDUCE, chunks=2)
    builder.reduce(range(2), 1, 0)
    builder.copy(1, 0, 1)
    with pytest.raises(hk.VerificationError) as caught:
        builder.build().verify()
    told = [each.detail for each in caught.value.violations if each.transfer is not None]
    assert told[0].endswith("; transfer 0 adds chunks 0 to 1 from npu1 to npu0")
    assert any(each.endswith("; transfer 1 copies chunk 1 from npu0 to npu1") for each in told)
