"""Which call takes which plan, how sizes are padded, and how calls are cut."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.deployment.folders import entry

from hocket.deployment.manifest import Entry
from hocket.deployment.route import Nccl, PlannedGroup, pieces, route, size_class
from hocket.deployment.staged import Stage

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "all-to-all")
MIB = 1 << 20


def group(*entries: Entry, ranks: int = 4, **more: Any) -> PlannedGroup:
    return PlannedGroup("tp", ranks, entries, **more)


REDUCE = entry("all-reduce", 4, 1024, MIB)
PACKETS = entry("all-reduce", 4, 16, 1024, protocol="LL")
GATHER = entry("all-gather", 4, 1024, MIB)
TP = group(REDUCE, PACKETS, GATHER)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (("send", "", "float32", 4096, 0), "no plan for send"),
        (("barrier", "", "uint8", 1, 0), "no plan for barrier"),
        (("broadcast", "", "float32", 4096, 0), "no plan for broadcast"),
        (("all-gather", "", "float32", None, 0), "the parts are unequal"),
        (("all-reduce", "sum", "float32", 0, 0), "there are no bytes"),
        (("all-gather", "", "float32", 4096, 2), "the root is rank 2, and plans have root 0"),
        (("all-reduce", "max", "float32", 4096, 0), "plans have no max"),
        (("all-reduce", "product", "float32", 4096, 0), "plans have no product"),
        (("all-reduce", "sum", "int64", 4096, 0), "plans have no sum of int64"),
        (("all-reduce", "sum", "float64", 4096, 0), "plans have no sum of float64"),
        (("all-reduce", "sum", "float8_e4m3fn", 4096, 0), "plans have no sum of float8_e4m3fn"),
        (("all-reduce", "average", "int32", 4096, 0), "plans have no average of int32"),
        (("all-reduce", "sum", "float32", 2 * MIB, 0), "no plan for 2 MiB"),
        (("all-gather", "", "float32", 512, 0), "no plan for 512 B"),
    ],
)
def test_what_no_plan_does_is_left_with_a_reason(call: tuple[Any, ...], why: str) -> None:
    assert route(*call, TP, False) == Nccl(why)


def test_what_a_plan_does() -> None:
    for dtype in ("float32", "float16", "bfloat16", "int32", "uint32"):
        assert route("all-reduce", "sum", dtype, 4096, 0, TP, False) is REDUCE
    assert route("all-reduce", "average", "bfloat16", 1024, 0, TP, False) is REDUCE
    assert route("all-reduce", "sum", "float32", 1023, 0, TP, False) is PACKETS
    for dtype in ("int64", "bool", "float8_e4m3fn", "complex128"):
        assert route("all-gather", "", dtype, 4096, 0, TP, False) is GATHER


def test_packets_are_of_one_group_and_of_no_graph() -> None:
    call = ("all-reduce", "sum", "float32", 512, 0)
    assert "packets would read" in str(route(*call, TP, True))
    alone = group(PACKETS, packets=False)
    assert route(*call, alone, False) == Nccl(
        "packets are of one group alone, and there are several"
    )


def test_a_graph_captures_what_ran_before() -> None:
    made = group(REDUCE, stage=4096)
    call = ("all-reduce", "sum", "float32", 10_000, 0)
    assert route(*call, made, True) == Nccl("2 of its launches were never made before capture")
    made.prepared |= {(REDUCE.id, 4096), (REDUCE.id, size_class(10_000 - 8192, 16))}
    assert route(*call, made, True) is REDUCE


def test_a_group_without_plans_says_why() -> None:
    made = PlannedGroup("", 4, reason="ranks 0 and 1 differ")
    assert route("all-reduce", "sum", "float32", 4096, 0, made, False) == Nccl(made.reason)
    small = group(entry("all-reduce", 4, 0, MIB, unit_bytes=8192), stage=4096)
    found = route("all-reduce", "sum", "float32", 512, 0, small, False)
    assert found == Nccl("a stage of 4 KiB holds no unit of the plan")


def _agrees(calls: int) -> None:
    """Give all ranks the same calls, each its own objects: they answer alike."""
    seed = random.Random(7)
    rows = [entry(kind, 4, 64 << 2 * k, 64 << 2 * k + 2) for kind in KINDS for k in range(8)]
    ranks = [group(*(row.model_copy() for row in rows), stage=8192) for _ in range(4)]
    types = ("float32", "bfloat16", "int64", "int32", "uint8")
    for _ in range(calls):
        call = (
            seed.choice((*KINDS, "send", "reduce")),
            seed.choice(("sum", "average", "max")),
            seed.choice(types),
            seed.choice((None, 0, seed.randrange(1 << 22))),
            seed.choice((0, 0, 1)),
        )
        captured = seed.random() < 0.2
        found = [route(*call, each, captured) for each in ranks]
        assert all(each == found[0] for each in found)
        if isinstance(found[0], Entry) and call[3] and seed.random() < 0.1:
            for each in ranks:
                each.prepared |= {(found[0].id, p.padded) for p in pieces(found[0], call[3], each)}


def test_all_ranks_answer_alike() -> None:
    _agrees(5_000)


@pytest.mark.slow
def test_all_ranks_answer_alike_a_million_times() -> None:
    _agrees(1_000_000)


@given(st.integers(1, 1 << 40), st.integers(1, 1 << 20))
def test_classes_are_four_an_octave(size: int, unit: int) -> None:
    found = size_class(size, unit)
    assert found >= size
    assert found % unit == 0
    assert found < size * 1.25 + unit
    units = found // unit
    assert units < 4 or units / (1 << units.bit_length() - 3) in (4, 5, 6, 7)
    assert size_class(found, unit) == found


def together(kind: str, sends: list[Any], dtype: str) -> list[Any]:
    """Return what each rank gets: the definition of each collective."""
    ranks = len(sends)
    if kind in ("all-reduce", "reduce-scatter"):
        whole = sum(each.view(dtype).astype(np.int64) for each in sends).astype(dtype)
        return [whole] * ranks if kind == "all-reduce" else np.split(whole, ranks)
    if kind == "all-gather":
        return [np.concatenate(sends)] * ranks
    if kind == "broadcast":
        return [sends[0]] * ranks
    return list(np.stack([np.split(each, ranks) for each in sends], axis=1).reshape(ranks, -1))


@settings(deadline=None)
@given(
    st.sampled_from(KINDS),
    st.integers(2, 5),
    st.integers(1, 3000),
    st.integers(1, 4),
    st.sampled_from([256, 1000, 4096]),
    st.sampled_from(["int32", "uint8"]),
)
def test_pieces_and_padding_give_what_numpy_gives(
    kind: str, ranks: int, numbers: int, chunks: int, stage: int, dtype: str
) -> None:
    unit = 16 * ranks * chunks
    plan = entry(kind, ranks, 0, 1 << 30, unit_bytes=unit)
    random = np.random.default_rng(numbers)
    parts = ranks if kind in ("reduce-scatter", "all-to-all") else 1
    given = [random.integers(0, 200, numbers * parts).astype(dtype) for _ in range(ranks)]
    wanted = together(kind, given, dtype)
    results = [np.zeros(each.size, dtype) for each in wanted]
    cuts = []
    for source, result in zip(given, results, strict=True):
        made = group(plan, ranks=ranks, stage=max(stage, unit))
        noted = Noted()
        buffers = (np.full(made.stage, 0xAB, np.uint8) for _ in range(2))
        Stage(made, noted, *buffers).run(
            plan, source.view(np.uint8), result.view(np.uint8), "sum", dtype
        )
        cuts.append(noted.sends)
    assert len({len(each) for each in cuts}) == 1
    answers = [together(kind, list(sends), dtype) for sends in zip(*cuts, strict=True)]
    for rank, (source, result) in enumerate(zip(given, results, strict=True)):
        made = group(plan, ranks=ranks, stage=max(stage, unit))
        told = Told([each[rank].view(np.uint8) for each in answers])
        buffers = (np.zeros(made.stage, np.uint8) for _ in range(2))
        Stage(made, told, *buffers).run(
            plan, source.view(np.uint8), result.view(np.uint8), "sum", dtype
        )
        assert all(size % unit == 0 for size in (each[1] for each in made.prepared))
        np.testing.assert_array_equal(result, wanted[rank].view(dtype))


class Noted:
    """An engine that notes what each launch is given."""

    def __init__(self) -> None:
        self.sends: list[npt.NDArray[Any]] = []

    def launch(self, _entry: Entry, send: Any, _recv: Any, _op: str, dtype: str) -> None:
        """Note it."""
        self.sends.append(send.view(dtype).copy())


class Told:
    """An engine that is told what each launch gives."""

    def __init__(self, results: list[Any]) -> None:
        self._results = results

    def launch(self, _entry: Entry, _send: Any, recv: Any, _op: str, _dtype: str) -> None:
        """Give the next."""
        recv[:] = self._results.pop(0)
