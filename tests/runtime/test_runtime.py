"""Collectives on arrays between processes, against NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.runtime.ranks import Ranks

import hocket as hk
from hocket import runtime
from hocket.plans.algorithms import quick
from hocket.runtime.arrays import DTYPES, OPERATIONS
from hocket.runtime.rank import filled
from hocket.runtime.reference import check, combined

Array = npt.NDArray[Any]

KINDS = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "broadcast",
    "reduce",
    "all-to-all",
    "gather",
    "scatter",
)
LINK = {"bandwidth": "1 GB/s", "latency": "10 us"}


def call(
    comm: runtime.Communicator, kind: str, array: Array, root: int, op: str, **more: Any
) -> Array | None:
    """Make the call of a kind, with arrays of the kind's usual shapes."""
    if kind == "all-reduce":
        return comm.all_reduce(array, op, **more)
    if kind == "reduce":
        return comm.reduce(array, root, op, **more)
    if kind == "reduce-scatter":
        return comm.reduce_scatter(array, op, **more)
    if kind == "all-gather":
        return comm.all_gather(array, **more)
    if kind == "all-to-all":
        return comm.all_to_all(array, **more)
    if kind == "gather":
        return comm.gather(array, root, **more)
    if kind == "broadcast":
        return comm.broadcast(array.copy(), root, **more)
    if comm.rank == root:
        return comm.scatter(array, root, **more)
    part = np.empty_like(array[: len(array) // comm.size])
    return comm.scatter(None, root, out=part, **more)


def checked(
    comm: runtime.Communicator, kind: str, count: int, dtype: str, op: str = "sum", **more: Any
) -> list[str]:
    """Make a call and compare; give what is wrong."""
    root = comm.size - 1 if kind in ("broadcast", "reduce", "gather", "scatter") else 0
    has_parts = kind not in ("all-reduce", "reduce", "broadcast")
    count = count * comm.size if has_parts else count
    inputs = [filled(rank, count, dtype) for rank in range(comm.size)]
    before = inputs[comm.rank].copy()
    result = call(comm, kind, inputs[comm.rank], root, op, **more)
    wrong = check(kind, result, inputs, comm.rank, root, op)
    if not np.array_equal(before, inputs[comm.rank]):
        wrong = "the array that was only to be read has changed"
    return [f"{kind} {op} of {count} {dtype} at {comm.rank}: {wrong}"] if wrong else []


def every_kind(sizes: tuple[int, ...]) -> Callable[[runtime.Communicator], list[str]]:
    def work(comm: runtime.Communicator) -> list[str]:
        wrong = []
        for kind, count in itertools.product(KINDS, sizes):
            wrong += checked(comm, kind, count, "int32")
            wrong += checked(comm, kind, count, "float32")
        return wrong

    return work


@pytest.mark.parametrize("transport", ["tcp", "shared"])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_every_kind_without_a_plan(transport: str, size: int) -> None:
    if size == 1 and transport == "tcp":
        return
    with Ranks(size, every_kind((0, 1, 17, 40_001)), transport=transport) as ranks:
        assert ranks.results() == [[]] * size


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["tcp", "shared"])
@pytest.mark.parametrize("size", [7, 16])
def test_every_kind_among_many(transport: str, size: int) -> None:
    work = every_kind((0, 1, 17, 400_000 // size + 1))
    with Ranks(size, work, transport=transport, timeout="120 s", join_timeout="120 s") as ranks:
        assert [ranks.ended(rank, 600).value for rank in range(size)] == [[]] * size


def plans_of(size: int, kinds: tuple[str, ...]) -> list[hk.Plan]:
    """Plans of all quick algorithms on a network, those that apply."""
    topology = hk.topology.fully_connected(size, **LINK)
    plans = []
    for kind in kinds:
        root = size - 1 if kind in ("broadcast", "reduce", "gather", "scatter") else None
        for algorithm in quick(kind):
            try:
                made = hk.plan(
                    kind, topology, size=size * 7560, algorithm=algorithm, chunks=1, root=root
                )
            except (hk.InfeasibleError, hk.SpecError):
                continue
            plans.append(made)
    return plans


def run_plans(plans: list[hk.Plan], sizes: tuple[int, ...], dtypes: tuple[str, ...]) -> Any:
    def work(comm: runtime.Communicator) -> list[str]:
        wrong = []
        for plan, count, dtype in itertools.product(plans, sizes, dtypes):
            found = checked(comm, plan.collective.kind, count, dtype, plan=plan)
            wrong += [f"{plan.algorithm}: {each}" for each in found]
        return wrong

    return work


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["tcp", "shared"])
def test_plans_of_every_algorithm(transport: str) -> None:
    plans = plans_of(4, KINDS)
    assert {plan.collective.kind for plan in plans} == set(KINDS)
    assert len({plan.algorithm for plan in plans}) > 8
    work = run_plans(plans, (0, 1, 1009), ("int64", "float32"))
    with Ranks(4, work, transport=transport) as ranks:
        assert ranks.results() == [[]] * 4


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["tcp", "shared"])
@pytest.mark.parametrize("size", [3, 8, 12])
def test_plans_of_every_algorithm_among_more(size: int, transport: str) -> None:
    plans = plans_of(size, KINDS)
    sizes, dtypes = (0, 1, 1009, 65_537), ("int64", "float32", "float16", "int8")
    if size > 8:  # several processes a core, where each call waits for all to have their turn
        sizes, dtypes = (0, 1009), ("int64", "float16")
    work = run_plans(plans, sizes, dtypes)
    with Ranks(size, work, transport=transport, timeout="120 s", join_timeout="120 s") as ranks:
        assert [ranks.ended(rank, 600).value for rank in range(size)] == [[]] * size


def test_a_plan_over_several_hops_and_streams() -> None:
    mesh = hk.topology.mesh(2, 3, **LINK)
    plans = [
        hk.plan("all-reduce", mesh, size=1 << 20, algorithm=name, chunks=4)
        for name in ("greedy", "multitree", "ring")
    ]
    with Ranks(6, run_plans(plans, (0, 5, 30_011), ("int32",)), streams=2) as ranks:
        assert ranks.results() == [[]] * 6


def operations(comm: runtime.Communicator) -> list[str]:
    wrong = []
    for dtype, op in itertools.product((*DTYPES, "float32"), OPERATIONS):
        if dtype.startswith(("bfloat", "float8")):
            continue  # NumPy has none: see the next test
        if op == "average" and "int" in dtype:
            continue
        wrong += checked(comm, "all-reduce", 1003, dtype, op)
        wrong += checked(comm, "reduce-scatter", 11, dtype, op)
        inputs = [filled(rank, 1003, dtype) for rank in range(comm.size)]
        given = inputs[comm.rank].copy()
        result = comm.all_reduce(given, op, out=given)
        said = check("all-reduce", result, inputs, comm.rank, 0, op)
        if said or result is not given:
            wrong.append(f"{op} of {dtype} in place at {comm.rank}: {said}")
    return wrong


@pytest.mark.parametrize("transport", ["tcp", "shared"])
def test_every_type_and_operation(transport: str) -> None:
    with Ranks(3, operations, transport=transport) as ranks:
        assert ranks.results() == [[]] * 3


def truths(comm: runtime.Communicator) -> list[list[Array | None]]:
    """Combine truth values, of which one is a byte that is neither 0 nor 1."""
    mine = np.array([comm.rank == 1, False, True, comm.rank > 0, comm.rank == 0, True])
    mine.view(np.uint8)[5] = 255 - comm.rank
    ways: Any = (comm.all_reduce, comm.reduce_scatter, lambda given, op: comm.reduce(given, 1, op))
    return [[way(mine, op) for way in ways] for op in OPERATIONS[:4]]


@pytest.mark.parametrize("transport", ["tcp", "shared"])
def test_truth_values_are_summed_as_numpy_sums_them(transport: str) -> None:
    inputs = [np.array([i == 1, False, True, i > 0, i == 0, True]) for i in range(3)]
    with Ranks(3, truths, transport=transport) as ranks:
        for rank, found in enumerate(ranks.results()):
            for op, (whole, part, at_root) in zip(OPERATIONS, found, strict=False):
                total = combined(inputs, op)
                assert (whole.astype(bool) == total).all()
                assert (part.astype(bool) == total[2 * rank : 2 * rank + 2]).all()
                assert at_root is None if rank != 1 else (at_root.astype(bool) == total).all()


def bfloats(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Round to nearest even, to the upper half of a float."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def floats(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrow(comm: runtime.Communicator) -> list[Array]:
    values = [bfloats(filled(rank, 999, "float32")) for rank in range(comm.size)]
    total = comm.all_reduce(values[comm.rank], dtype="bfloat16")
    eights = np.array([0x38, 0x40, 0xB8, 0x7E], np.uint8)  # 1, 2, -1 and 448
    tiny = comm.all_reduce(eights, dtype="float8_e4m3fn")
    return [floats(total), tiny]


@pytest.mark.parametrize("transport", ["tcp", "shared"])
def test_types_that_numpy_does_not_have(transport: str) -> None:
    with Ranks(3, narrow, transport=transport) as ranks:
        found = ranks.results()
    values = [floats(bfloats(filled(rank, 999, "float32"))) for rank in range(3)]
    right = np.sum([each.astype(np.float64) for each in values], axis=0)
    allowed = np.sum(np.abs(values), axis=0) * 2**-7 * 2
    for total, tiny in found:
        assert (np.abs(total - right) <= allowed).all()
        assert list(tiny) == [0x44, 0x4C, 0xC4, 0x7F]  # 3, 6, -3, and too large for a number
        assert np.array_equal(total, found[0][0])


def eights(kind: str) -> npt.NDArray[np.float32]:
    """The values of all 256 floats of 8 bits, by the format's definition."""
    exponent_bits, bias = (4, 7) if kind == "float8_e4m3fn" else (5, 15)
    bits = 7 - exponent_bits
    codes = np.arange(256)
    exponent = (codes >> bits) & ((1 << exponent_bits) - 1)
    share = (codes & ((1 << bits) - 1)) / (1 << bits)
    value = np.where(
        exponent > 0, (1 + share) * 2.0 ** (exponent - bias), share * 2.0 ** (1 - bias)
    )
    if kind == "float8_e4m3fn":
        value[(codes & 0x7F) == 0x7F] = np.nan
    else:
        value[exponent == 31] = np.where(share[exponent == 31] == 0, np.inf, np.nan)
    return np.where(codes >> 7, -value, value).astype(np.float32)


def by_every_operation(comm: runtime.Communicator) -> dict[tuple[str, str], Array]:
    found = {}
    for kind in ("float8_e4m3fn", "float8_e5m2"):
        given = np.random.default_rng(comm.rank).integers(0, 256, 2000).astype(np.uint8)
        for op in OPERATIONS:
            found[kind, op] = comm.all_reduce(given, op, dtype=kind)
    return found


@pytest.mark.parametrize("transport", ["tcp", "shared"])
def test_eight_bits_by_every_operation(transport: str) -> None:
    with Ranks(2, by_every_operation, transport=transport) as ranks:
        first, second = ranks.results()
    draws = [np.random.default_rng(rank).integers(0, 256, 2000) for rank in range(2)]
    for (kind, op), codes in first.items():
        assert np.array_equal(codes, second[kind, op])
        values = eights(kind)
        one, other = (values[draw].astype(np.float64) for draw in draws)
        with np.errstate(invalid="ignore", over="ignore"):
            right = {
                "sum": one + other,
                "product": one * other,
                "min": np.minimum(one, other),
                "max": np.maximum(one, other),
                "average": (one + other) / 2,
            }[op]
        got = values[codes].astype(np.float64)
        is_number = np.isfinite(one) & np.isfinite(other)
        assert np.isnan(got[np.isnan(right)]).all(), (kind, op)
        most = np.nanmax(values[np.isfinite(values)])
        # With two ranks there is one rounding, and one more for an average, which is a sum at first.
        fits = is_number & (np.abs(one + other if op == "average" else right) <= most)
        finite = np.unique(values[np.isfinite(values)].astype(np.float64))
        at = np.clip(np.searchsorted(finite, right[fits]), 1, len(finite) - 1)
        gap = finite[at] - finite[at - 1]
        allowed = gap * (0.5 if op != "average" else 1.0)
        assert (np.abs(got[fits] - right[fits]) <= allowed).all(), (kind, op)
        if op in ("min", "max"):
            assert np.array_equal(got[is_number], right[is_number])


def shared_arrays(comm: runtime.Communicator) -> list[str]:
    """Arrays in memory that all see, whole and in part, beside ordinary ones."""
    wrong = []
    for dtype, shape in (("float32", (comm.size * 30_000,)), ("int16", (comm.size, 70_001))):
        mine = comm.empty(shape, dtype)
        assert (mine.shape, mine.dtype) == (shape, np.dtype(dtype))
        out = comm.empty(shape, dtype)
        for kind, op in itertools.product(KINDS, ("sum", "max")):
            root = comm.size - 1 if kind in ("broadcast", "reduce", "gather", "scatter") else 0
            inputs = [filled(rank, mine.size, dtype).reshape(shape) for rank in range(comm.size)]
            mine[...] = inputs[comm.rank]
            more = {"out": out} if kind in ("all-reduce", "all-to-all") else {}
            result = call(comm, kind, mine, root, op, **more)
            found = check(kind, result, inputs, comm.rank, root, op)
            wrong += [f"{kind} {op} of {dtype}: {found}"] if found else []
    mine = comm.empty(100_000, "float64")
    mine[:] = comm.rank + 1
    comm.all_reduce(mine[100:90_000], "average", out=mine[100:90_000])
    half = (comm.size + 1) / 2
    assert (mine[100:90_000] == half).all()
    assert (mine[:100] == comm.rank + 1).all()
    assert (mine[90_000:] == comm.rank + 1).all()
    # Some in shared memory, some not.
    given = mine if comm.rank else mine.copy()
    assert (comm.all_reduce(given)[200:300] == half * comm.size).all()
    assert comm.empty(0).tolist() == []
    assert comm.empty((), "int32").shape == ()
    kept = comm.empty((2, 3))
    kept[:] = 7
    comm.close()
    assert (kept == 7).all()
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["tcp", "shared"])
@pytest.mark.parametrize("size", [2, 5])
def test_arrays_in_memory_that_all_see(transport: str, size: int) -> None:
    with Ranks(size, shared_arrays, transport=transport) as ranks:
        assert ranks.results() == [[]] * size


def test_shared_arrays_that_make_no_sense() -> None:
    def work(comm: runtime.Communicator) -> list[str]:
        said = []
        for shape, dtype in ((-1, "f4"), (3, "f5"), (3, object), ("x", "f4")):
            with pytest.raises(hk.SpecError) as caught:
                comm.empty(shape, dtype)  # type: ignore[arg-type]
            said.append(str(caught.value))
        return said

    with Ranks(2, work) as ranks:
        found = ranks.results()[0]
    assert all("\n" not in each for each in found)
    assert found[2] == "dtype: holds objects of Python; give numbers"


def arrays(comm: runtime.Communicator) -> list[str]:
    """Arrays of all kinds; the errors are those of this rank and reach no other."""
    refused = []
    numbers = np.arange(24.0)

    def refuse(work: Callable[[], Any]) -> None:
        try:
            work()
        except hk.SpecError as error:
            refused.append(str(error))

    strided = numbers.reshape(4, 6)[:, ::2]
    assert (comm.all_reduce(strided) == strided * comm.size).all()
    unaligned = np.frombuffer(b"x" + numbers.tobytes(), np.uint8)[1:].view(np.float64)
    assert not unaligned.flags.aligned
    assert (comm.all_reduce(unaligned) == numbers * comm.size).all()
    in_place = numbers.copy()
    assert comm.all_reduce(in_place, out=in_place) is in_place
    assert in_place[5] == 5 * comm.size
    odd = np.frombuffer(bytearray(b"x" + numbers.tobytes()), np.uint8)[1:].view(np.float64)
    table = numbers.reshape(4, 6).copy()
    for array in (numbers + 1j, odd, table, np.empty(0), np.array([True])):
        op = "max" if array.dtype == bool else "sum"
        expected = array.copy() if op == "max" else array * comm.size
        assert comm.all_reduce(array, op, out=array) is array
        assert (array == expected).all()
    assert comm.all_reduce(memoryview(numbers))[5] == 5 * comm.size
    assert comm.all_reduce(numbers + 1j)[5] == (5 + 1j) * comm.size
    assert comm.all_gather(np.array(["ab", "c"]))[2] == "ab"
    assert comm.all_reduce(np.array([True, False]), "max").tolist() == [True, False]
    assert comm.all_reduce(np.float32(2) * np.ones(())).shape == ()
    assert comm.all_gather(np.ones(())).shape == (comm.size,)
    assert comm.all_to_all(np.arange(12).reshape(comm.size * 2, -1)).shape == (comm.size * 2, 3)
    refuse(lambda: comm.all_reduce([1, 2]))
    refuse(lambda: comm.all_reduce(numbers, "mean"))
    refuse(lambda: comm.all_reduce(numbers, out=strided))
    refuse(lambda: comm.all_reduce(strided, out=strided))
    refuse(lambda: comm.all_reduce(numbers, out=unaligned))
    refuse(lambda: comm.all_reduce(numbers, out=numbers.astype("f4")))
    refuse(lambda: comm.all_reduce(numbers.astype(">f8")))
    refuse(lambda: comm.all_reduce(np.array(["ab"])))
    refuse(lambda: comm.all_reduce(numbers.astype("i4"), "average"))
    refuse(lambda: comm.all_reduce(numbers, dtype="bfloat16"))
    refuse(lambda: comm.reduce_scatter(np.arange(5)))
    refuse(lambda: comm.all_to_all(numbers, out=numbers))
    refuse(lambda: comm.broadcast(numbers, root=2))
    refuse(lambda: comm.scatter(None) if comm.rank else comm.all_reduce(object()))
    refuse(lambda: comm.start(len, "x"))
    fixed, turned, swapped = numbers.copy(), np.asfortranarray(table), numbers.astype(">f8")
    fixed.flags.writeable = False
    refuse(lambda: comm.all_reduce(fixed, out=fixed))
    refuse(lambda: comm.all_reduce(turned, out=turned))
    refuse(lambda: comm.all_reduce(swapped, out=swapped))
    refuse(lambda: comm.all_reduce(in_place, "mean", out=in_place))
    refuse(lambda: comm.all_reduce(np.ma.masked_less(numbers, 3)))
    refuse(lambda: comm.empty(3, ">f4"))
    if comm.rank > 0:
        refuse(lambda: comm.broadcast(fixed))
    given = fixed if comm.rank == 0 else np.zeros(24)
    assert (comm.broadcast(given) == numbers).all()
    assert comm.start(comm.all_reduce, numbers).wait()[5] == 5 * comm.size
    return refused


@pytest.mark.parametrize("transport", ["tcp", "shared"])
def test_arrays_that_are_taken_copied_or_refused(transport: str) -> None:
    with Ranks(2, arrays, transport=transport) as ranks:
        found = ranks.results()
    assert found[0][:3] == [
        "array: list is not an array; give NumPy, DLPack or a buffer",
        "op: 'mean' is not an operation; one of sum, product, min, max, average",
        "out: has shape (4, 3); it must be (24,)",
    ]
    assert found[0][3] == (
        "out: its elements are not next to each other; give a contiguous array, or copy it"
    )
    assert [len(each) for each in found] == [21, 22]
    assert "is read-only" in found[0][4]
    assert "must be of float64" in found[0][5]
    assert "an average of int32 is not defined" in found[0][8]
    assert "out: is missing" in found[1][13]


def groups(comm: runtime.Communicator) -> list[float]:
    halves = [comm.group([0, 2]), comm.group([3, 1])]
    sums = []
    for half in halves:
        if half is not None:
            with half:
                sums.append(float(half.all_reduce(np.array([comm.rank]))[0]))
                sums.append(float(half.rank))
    pending = [comm.start(comm.all_reduce, np.full(1000, i)) for i in range(20)]
    comm.barrier()
    assert all(each.done() for each in pending)
    sums += [float(each.wait()[0]) for each in pending[:2]]
    return sums


@pytest.mark.parametrize("transport", ["tcp", "shared"])
def test_groups_within_groups_and_calls_that_go_on(transport: str) -> None:
    with Ranks(4, groups, transport=transport) as ranks:
        found = ranks.results()
    assert found == [[2, 0, 0, 4], [4, 1, 0, 4], [2, 1, 0, 4], [4, 0, 0, 4]]


def over_itself(comm: runtime.Communicator) -> list[str]:
    """Results that are written over what is given, at every offset, small and large."""
    wrong = []
    size = comm.size
    for count, shift in itertools.product((6, 150_000), (0, 1, 5, -3)):
        full = np.arange(count * (size + 2), dtype=np.float64)
        ranks = [full + 7 * rank for rank in range(size)]
        whole, part = count * size, count
        cases = {
            "all-gather": (slice(count, count + part), slice(shift + 3, shift + 3 + whole)),
            "reduce-scatter": (slice(3, 3 + whole), slice(shift + 3, shift + 3 + part)),
            "reduce": (slice(3, 3 + whole), slice(shift + 3, shift + 3 + whole)),
            "scatter": (slice(3, 3 + whole), slice(shift + 3, shift + 3 + part)),
            "gather": (slice(count, count + part), slice(shift + 3, shift + 3 + whole)),
            "all-reduce": (slice(3, 3 + whole), slice(shift + 3, shift + 3 + whole)),
        }
        for kind, (given, out) in cases.items():
            mine = ranks[comm.rank].copy()
            inputs = [each[given] for each in ranks]
            if kind == "scatter":
                result = comm.scatter(mine[given] if comm.rank == 0 else None, out=mine[out])
            else:
                result = call(comm, kind, mine[given], 0, "sum", out=mine[out])
            said = check(kind, result, inputs, comm.rank, 0, "sum")
            if said:
                wrong.append(f"{kind} of {count} shifted by {shift} at {comm.rank}: {said}")
        mine = ranks[comm.rank][:whole].copy()
        own = mine[comm.rank * part : (comm.rank + 1) * part]
        inputs = [each[rank * part : (rank + 1) * part] for rank, each in enumerate(ranks)]
        said = check("all-gather", comm.all_gather(own, out=mine), inputs, comm.rank, 0, "sum")
        wrong += [f"all-gather in place at {comm.rank}: {said}"] if said else []
    return wrong


@pytest.mark.parametrize("transport", ["tcp", "shared"])
def test_results_may_be_written_over_what_is_given(transport: str) -> None:
    with Ranks(3, over_itself, transport=transport) as ranks:
        assert ranks.results() == [[]] * 3


def inside(comm: runtime.Communicator) -> list[str]:
    """What may not be done where a started call is under way, or with things of other kinds."""

    def said(work: Callable[[], object]) -> str:
        try:
            work()
        except hk.SpecError as error:
            return str(error)
        return "nothing"

    numbers = np.ones(3)
    within = comm.start_work(lambda: said(comm.start(comm.all_reduce, numbers).wait))
    found = [within.wait(), comm.start_work(lambda: said(comm.close)).wait()]
    comm.barrier()
    found += [said(lambda: comm.all_reduce(numbers, plan="ring"))]  # type: ignore[arg-type]
    for ranks in ("ab", None, [0.5]):
        found += [said(partial(comm.group, ranks))]  # type: ignore[arg-type]
    number = np.float32(3)
    found += [said(lambda: comm.all_reduce(number, out=number))]
    assert comm.broadcast(np.full(2, comm.rank), np.int64(1)).tolist() == [1, 1]  # type: ignore[arg-type]
    comm.close()
    return [*found, said(lambda: comm.group([0, 1]))]


@pytest.mark.parametrize("transport", ["tcp", "shared"])
def test_what_makes_no_sense_within_a_group_is_refused(transport: str) -> None:
    with Ranks(2, inside, transport=transport) as ranks:
        for found in ranks.results():
            assert [each.split(";")[0] for each in found] == [
                "a started call waits for one that comes after it",
                "a started call cannot close its communicator",
                "plan: 'ring' is not a Plan",
                "ranks: 'ab' are no ranks",
                "ranks: None are no ranks",
                "ranks: [0.5] are no ranks",
                "out: is a number, which cannot be written",
                "the communicator is closed",
            ]


def test_a_plan_must_be_that_of_the_call() -> None:
    plan = hk.plan("all-reduce", hk.topology.fully_connected(3, **LINK), size=300, algorithm="ring")

    def work(comm: runtime.Communicator) -> list[str]:
        said = []
        for attempt in (
            lambda: comm.all_reduce(np.ones(3), plan=plan),
            lambda: comm.all_gather(np.ones(3), plan=plan),
        ):
            with pytest.raises(hk.SpecError) as caught:
                attempt()
            said.append(str(caught.value))
        return said

    with Ranks(2, work) as ranks:
        assert ranks.results()[0] == [
            "plan: its number of ranks is 3, the call's 2",
            "plan: its kind is all-reduce, the call's all-gather",
        ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"address": "nowhere"}, "address: 'nowhere' is not HOST:PORT"),
        ({"rank": 2}, "rank: 2 of 2 ranks"),
        ({"rank": -1}, "rank: -1 is not a whole number from 0"),
        ({"size": None}, "size: is missing"),
        ({"timeout": "0 s"}, "timeout: '0 s' is not a time above 0"),
        ({"transport": "rdma"}, "transport: 'rdma' is not known"),
        ({"streams": 0}, "streams: 0 is too small; give a whole number from 1 to 64"),
        ({"streams": -1}, "streams: -1 is too small; give a whole number from 1 to 64"),
        ({"address": "0.0.0.0:0"}, "give a secret that all ranks know"),
        ({"port": 1}, "port: there is no such option"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], said: str) -> None:
    options: dict[str, Any] = {"address": "127.0.0.1:0", "rank": 0, "size": 2, **given}
    with pytest.raises(hk.SpecError) as caught:
        runtime.connect(options.pop("address"), **options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_environment_says_where_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOCKET_STORE", "HOCKET_RANK", "HOCKET_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(hk.SpecError, match="HOCKET_STORE"):
        runtime.connect()
    store = runtime.serve(secret="key")
    if True:
        monkeypatch.setenv("HOCKET_STORE", store.address)
        monkeypatch.setenv("HOCKET_RANK", "0")
        monkeypatch.setenv("HOCKET_SIZE", "1")
        monkeypatch.setenv("HOCKET_SECRET", "key")
        with runtime.connect() as comm:
            assert comm.all_reduce(np.arange(3)).tolist() == [0, 1, 2]
        monkeypatch.setenv("HOCKET_SIZE", "many")
        with pytest.raises(hk.SpecError, match="whole number"):
            runtime.connect()
