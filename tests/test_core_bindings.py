"""The binding layer: arrays without a copy, errors as our classes, signals during long calls."""

from __future__ import annotations

import gc
import inspect
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hocket import _core
from hocket.errors import Error, InfeasibleError, SpecError, VerificationError
from hocket.plans.algorithms import SCHEDULERS

GB = 10**9
LIMIT = 1 << 30  # bytes that a plan may take
U32 = np.uint32
NO_WAIT = _core.Plan.NO_WAIT
DEFAULT = _core.Plan.DEFAULT_ROUTE


def ring(n: int = 3, **changes: Any) -> _core.Topology:
    """A one-way ring: link i leads from NPU i to i + 1."""
    arguments: dict[str, Any] = {
        "name": "ring",
        "device_names": [f"npu{i}" for i in range(n)],
        "npu_count": n,
        "switch_limits": [],
        "link_src": np.arange(n, dtype=U32),
        "link_dst": np.roll(np.arange(n, dtype=U32), -1),
        "link_bandwidth": np.arange(1, n + 1, dtype=np.uint64) * GB,
        "link_latency_ps": np.full(n, 500, np.uint64),
    }
    return _core.Topology.from_arrays(**(arguments | changes))


def broadcast(**changes: Any) -> _core.Plan:
    """A chain broadcast of 900 bytes on the ring of 3, first hop over an explicit path."""
    columns: dict[str, Any] = {
        "chunk_offsets": np.array([0, 900], np.uint64),
        "chunk_demand": np.array([0], U32),
        "chunk": np.array([0, 0], U32),
        "chunk_count": np.array([1, 1], U32),
        "src": np.array([0, 1], U32),
        "dst": np.array([1, 2], U32),
        "op": np.array([0, 0], np.uint8),
        "wait": np.array([NO_WAIT, 0], U32),
        "path": np.array([0, DEFAULT], U32),
        "group_offsets": np.array([0], U32),
        "group_items": np.array([], U32),
        "path_offsets": np.array([0, 1], U32),
        "path_items": np.array([0], U32),
    }
    collective = _core.Collective("broadcast", [0, 1, 2], 900)
    return _core.Plan.from_columns(ring(), collective, "chain", **(columns | changes))


TOPOLOGY_COLUMNS = ["link_src", "link_dst", "link_bandwidth", "link_latency_ps"]
PLAN_COLUMNS = [
    "chunk_offsets",
    "chunk_demand",
    "chunk",
    "chunk_count",
    "src",
    "dst",
    "op",
    "wait",
    "path",
    "group_offsets",
    "group_items",
    "path_offsets",
    "path_items",
]
RUN_COLUMNS = ["start_ps", "end_ps", "link_busy_ps", "link_bytes", "link_messages"]
RUN_COLUMNS += ["service_transfer", "service_link", "service_start_ps", "service_end_ps"]


def test_topology_gives_back_its_columns() -> None:
    topology = ring()
    assert topology.link_src.tolist() == [0, 1, 2]
    assert topology.link_dst.tolist() == [1, 2, 0]
    assert topology.link_bandwidth.tolist() == [GB, 2 * GB, 3 * GB]
    assert topology.link_latency_ps.tolist() == [500] * 3
    assert (topology.name, topology.npu_count, topology.device_count) == ("ring", 3, 3)
    assert topology.device_names == ["npu0", "npu1", "npu2"]
    assert topology.device_index("npu2") == 2
    assert topology == ring()
    assert topology != ring(4)


def test_switches_and_dimensions_round_trip() -> None:
    dimensions = [("Ring", 3, GB, 500), ("Switch", 1, 2 * GB, 7, True)]
    topology = ring(
        device_names=["a", "b", "c", "s", "t"],
        switch_limits=[None, 5 * GB],
        dimensions=dimensions,
        switching="cut-through",
    )
    assert topology.switch_limits == [None, 5 * GB]
    assert topology.dimensions == [("Ring", 3, GB, 500, False), dimensions[1]]
    assert topology.switching == "cut-through"
    assert topology.with_switching("store-and-forward").switching == "store-and-forward"
    assert topology.with_switching("store-and-forward") != topology
    assert ring().switching == "store-and-forward"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"switching": "x"}, 'switching is "x"; it is store-and-forward or cut-through'),
        ({"dimensions": [("Ring", 3, 0, 5)]}, r"dimension 1 \(Ring\): bandwidth is 0; remove"),
        ({"dimensions": [("Ring", 3, 1, 5, True)]}, r"dimension 1 \(Ring\) has no switches"),
    ],
)
def test_wrong_switching_and_dimensions(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(SpecError, match=says) as error:
        ring(**changes)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("make", "columns"),
    [
        (ring, TOPOLOGY_COLUMNS),
        (broadcast, PLAN_COLUMNS),
        (lambda: _core.simulate(broadcast(), keep_services=True), RUN_COLUMNS),
    ],
    ids=["topology", "plan", "run"],
)
def test_columns_are_read_only_views(make: Callable[[], object], columns: list[str]) -> None:
    owner = make()
    for name in columns:
        first, second = getattr(owner, name), getattr(owner, name)
        assert first.base is owner, name
        assert not first.flags.writeable, name
        assert first.size == 0 or np.shares_memory(first, second), name
        with pytest.raises(ValueError, match="WRITEABLE"):
            first.setflags(write=True)


def test_a_view_outlives_its_owner() -> None:
    bandwidth = ring(1000).link_bandwidth
    gc.collect()
    assert int(bandwidth.sum()) == GB * 1000 * 1001 // 2


def test_columns_round_trip() -> None:
    plan = broadcast()
    again = _core.Plan.from_columns(
        plan.topology,
        plan.collective,
        plan.algorithm,
        **{name: getattr(plan, name) for name in PLAN_COLUMNS},
    )
    for name in PLAN_COLUMNS:
        np.testing.assert_array_equal(getattr(again, name), getattr(plan, name))
    assert (len(again), again.algorithm, again.nbytes) == (2, "chain", plan.nbytes)
    assert again.collective == plan.collective


def test_strided_input_is_read_in_order() -> None:
    columns = np.array([[0, 1], [1, 2]], U32)
    plan = broadcast(src=columns[:, 0], dst=columns[:, 1])
    assert (plan.src.tolist(), plan.dst.tolist()) == ([0, 1], [1, 2])


@pytest.mark.parametrize("kind", ["all-reduce", "gather"])
def test_collective_gives_back_what_it_got(kind: str) -> None:
    root = 1 if kind == "gather" else None
    collective = _core.Collective(kind, [4, 2, 7], 100, root, in_place=False)
    assert (collective.kind, collective.npus, collective.size) == (kind, [4, 2, 7], 100)
    assert (collective.root, collective.in_place) == (root, False)


def test_custom_demands_round_trip() -> None:
    demands = [(10, True, None, [0]), (5, False, [1, 2], None)]
    collective = _core.Collective.custom([0, 1, 2], demands)
    assert collective.demands() == demands
    assert (collective.kind, collective.size) == ("custom", 15)


def test_simulated_times_are_exact() -> None:
    # 900 B at 1 GB/s and 500 ps, then at 2 GB/s and 500 ps.
    run = _core.simulate(broadcast(), keep_services=True)
    assert run.end_ps.tolist() == [900_500, 900_500 + 450_500]
    assert run.time_ps == 1_351_000
    assert run.link_bytes.tolist() == [900, 900, 0]
    assert run.service_link.tolist() == [0, 1]
    report = _core.report(run)
    algbw, busbw = _core.rates(broadcast().collective, run.time_ps)
    assert algbw == busbw == pytest.approx(900 / 1.351e-6)
    names = broadcast().topology.device_names
    assert report.busiest_link == (names[0], names[1], pytest.approx(900_000 / 1_351_000))
    assert report.max_link_bytes == 900
    heat = _core.heat(run, 10)
    assert heat.shape == (3, 10)
    assert heat.sum(axis=1) / 10 == pytest.approx(run.link_busy_ps / run.time_ps)


def test_errors_of_the_core_come_in_parts() -> None:
    with pytest.raises(SpecError) as caught:
        _core.checked_routing("nonsense")
    error = caught.value
    assert (error.field, error.why) == ("routing", 'there is no "nonsense"')
    assert error.remedy is not None
    assert str(error) == f"routing: {error.why}; {error.remedy}"
    with pytest.raises(SpecError, match=r"^size is 0 B; give") as caught:
        _core.Collective("all-reduce", [0, 1], 0)
    assert caught.value.remedy == "give the collective at least one byte"


def test_bytes_of_transfers() -> None:
    plan = broadcast()
    assert plan.size_bytes.tolist() == [900, 900]


def test_a_time_of_no_picoseconds_counts_as_one():
    assert _core.gap(3, 2) == 0.5
    assert (_core.gap(0, 0), _core.gap(1, 0), _core.gap(5, 0)) == (0.0, 0.0, 4.0)
    assert _core.rates(broadcast().collective, 0) == _core.rates(broadcast().collective, 1)


def test_every_algorithm_makes_plans_that_verify() -> None:
    n = 4
    near = np.arange(n, dtype=U32)
    both_ways = ring(
        n,
        link_src=np.concatenate([near, np.roll(near, -1)]),
        link_dst=np.concatenate([np.roll(near, -1), near]),
        link_bandwidth=np.full(2 * n, GB, np.uint64),
        link_latency_ps=np.zeros(2 * n, np.uint64),
    )
    made = 0
    for algorithm in _core.registry.entries():
        name = algorithm.name
        assert algorithm.summary
        if not algorithm.in_core:
            continue
        if name in (
            *SCHEDULERS,
            "ring-bi-odd",
            "tto",
            "tto-overlapped",
            "two-tree-overlap",
            "ring-2d",
            "hdrm",
            "multi-ring",
            "in-network",
            "multimem",
            "nccl-nvls",
            "node-groups",
            "steiner",
        ):  # need dimensions, a BiGraph, nodes, switches that sum, or NPUs that relay
            continue
        for kind in algorithm.kinds:
            collective = _core.Collective(kind, list(range(n)), 4096)
            plan = _core.plan(both_ways, collective, name, None, LIMIT).plan_and_run[0]
            _core.verify(plan)
            assert len(plan) > 0
            ladder = _core.registry.chunk_ladder(both_ways, collective, name)
            assert not ladder if algorithm.making == "routes" else min(ladder) >= 1
            made += 1
    assert made > 10


def test_a_plan_says_why_it_cannot_be() -> None:
    collective = _core.Collective("all-reduce", [0, 1, 2], 300)
    with pytest.raises(InfeasibleError, match="for all-reduce use ring"):
        _core.plan(ring(), collective, "binomial", None, LIMIT)
    with pytest.raises(InfeasibleError, match=r"^hierarchical: "):
        _core.registry.chunk_ladder(ring(), collective, "hierarchical")
    with pytest.raises(SpecError, match="algorithms are ring"):
        _core.plan(ring(), collective, "rign", None, LIMIT)
    with pytest.raises(SpecError, match="more than the limit of 64"):
        _core.plan(ring(), collective, "ring", None, 64)
    with pytest.raises(SpecError, match="cannot be cut"):
        _core.plan(ring(), collective, "ring", 10**6, LIMIT)


def test_bound_is_met_by_a_plan_that_cannot_be_better() -> None:
    # NPU 0 sends 900 B over its only link out, at 1 GB/s and 500 ps.
    pair = [(900, False, [0], [1])]
    bound = _core.bound(ring(), _core.Collective.custom([0, 1], pair))
    assert bound.time_ps == 900_500
    assert bound.witness
    assert max(time for _, time in bound.components) == bound.time_ps
    assert bound.time_ps <= _core.simulate(broadcast()).time_ps
    with pytest.raises(SpecError, match="NPU 7 is not in topology"):
        _core.bound(ring(), _core.Collective("all-reduce", [0, 7], 1))


def test_bounds_are_of_a_fidelity() -> None:
    # Two links of 500 ps, on which a flit takes 9 ns and 4.5: they count those, less the one that is sent.
    far = _core.Collective.custom([0, 2], [(900, False, [0], [2])])
    times = {name: _core.bound(ring(), far, name).time_ps for name in ("link", "flow", "dimension")}
    assert times == {"link": 901_000, "flow": 901_000, "dimension": 901_000}
    assert _core.bound(ring(), far, "packet", 9).time_ps == 9_000 + 4_500 - 9_000 + 900_000
    with pytest.raises(SpecError, match='fidelity is "cell"; it is link or flow or packet'):
        _core.bound(ring(), far, "cell")  # type: ignore[arg-type]


def test_verify_is_remembered() -> None:
    plan = broadcast()
    assert not plan.is_verified
    _core.verify(plan)
    assert plan.is_verified


def test_violations_come_with_the_error() -> None:
    plan = broadcast(wait=np.array([NO_WAIT, NO_WAIT], U32))
    with pytest.raises(VerificationError) as caught:
        _core.verify(plan)
    first = caught.value.violations[0]
    assert isinstance(first, _core.Violation)
    assert first.transfer == 1
    assert str(first) == first.text
    assert first.detail in str(caught.value)
    with pytest.raises(VerificationError):
        _core.simulate(plan)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ring(link_bandwidth=np.array([1, 0, 1], np.uint64)), "bandwidth is 0"),
        (lambda: ring(link_dst=np.array([0, 2, 0], U32)), "to itself"),
        (lambda: ring(link_dst=np.array([1, 2, 9], U32)), "there are 3 devices"),
        (lambda: ring(link_dst=np.array([1], U32)), "link_dst has 1 entries"),
        (lambda: ring(npu_count=4), "npu_count is 4"),
        (lambda: ring(npu_count=10**15), "npu_count is 10"),
        (lambda: ring(device_names=["a", "a", "b"]), "listed twice"),
        (lambda: ring(switch_limits=[None]), "switch_limits has 1 entries"),
        (lambda: ring(dimensions=[("Loop", 3, GB, 0)]), "kinds are Ring"),
        (lambda: ring(dimensions=[("Ring", 2, GB, 0)]), "multiply to 2"),
        (lambda: ring().device_index("nobody"), "devices are: npu0"),
        (lambda: _core.Collective("all-reduse", [0, 1], 1), "kinds are all-reduce"),
        (lambda: _core.Collective("all-reduce", [0], 1), "at least two NPUs"),
        (lambda: _core.Collective("all-reduce", [0, 1], 0), "size is 0 B"),
        (lambda: _core.Collective("all-reduce", [0, 1], 1, root=0), "has no root"),
        (lambda: _core.Collective("gather", [0, 1], 1, root=2), "ranks are 0 to 1"),
        (
            lambda: _core.Collective.custom([0, 1], [(2**63, True, None, None)] * 2),
            "demand 1: brings the bytes",
        ),
        (lambda: broadcast(src=np.array([0], U32)), "column src has 1 rows"),
        (lambda: broadcast(op=np.array([0, 2], np.uint8)), "op 2 is neither"),
        (lambda: broadcast(wait=np.array([NO_WAIT, 5], U32)), "does not exist"),
        (lambda: broadcast(path_offsets=np.array([0, 9], U32)), "there are 1 items"),
        (lambda: broadcast(chunk_offsets=np.array([0, 9, 4], np.uint64)), "chunk_offsets has 3"),
        (lambda: broadcast(group_offsets=np.array([], U32)), "groups has 0 entries"),
        (lambda: _core.simulate(broadcast(), order="random"), "ready or plan"),
        (lambda: _core.heat(_core.simulate(broadcast()), 4), "keep_services=True"),
    ],
)
def test_wrong_input_is_a_spec_error(call: Callable[[], object], message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        call()
    assert isinstance(caught.value, Error)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


def long_plan() -> _core.Plan:
    """A million bytes, one transfer each: long enough for progress to be told."""
    n = 1 << 20
    return _core.Plan.from_columns(
        ring(2),
        _core.Collective.custom([0, 1], [(n, False, [0], [1])]),
        "stream",
        chunk_offsets=np.arange(n + 1, dtype=np.uint64),
        chunk_demand=np.zeros(n, U32),
        chunk=np.arange(n, dtype=U32),
        chunk_count=np.ones(n, U32),
        src=np.zeros(n, U32),
        dst=np.ones(n, U32),
        op=np.zeros(n, np.uint8),
        wait=np.full(n, NO_WAIT, U32),
        path=np.full(n, DEFAULT, U32),
        group_offsets=np.zeros(1, U32),
        group_items=np.zeros(0, U32),
        path_offsets=np.zeros(1, U32),
        path_items=np.zeros(0, U32),
    )


def test_progress_is_told() -> None:
    seen: list[tuple[str, int, int]] = []
    _core.verify(long_plan(), lambda *report: seen.append(report))
    assert seen
    for stage, done, total in seen:
        assert stage == "verify"
        assert 0 < done <= total == 1 << 20


def test_an_exception_of_the_callable_stops_the_call() -> None:
    def refuse(*_: object) -> None:
        raise LookupError("enough")

    plan = long_plan()
    with pytest.raises(LookupError, match="enough"):
        _core.verify(plan, refuse)
    assert not plan.is_verified


def test_ctrl_c_stops_the_call() -> None:
    plan = long_plan()

    def interrupt(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        _core.verify(plan, interrupt)
    assert not plan.is_verified


def test_ctrl_c_stops_planning_that_reports_nothing() -> None:
    topology = _core.families.build("mesh", {"size": [32, 32], "bandwidth": GB, "latency": 0})
    collective = _core.Collective("all-reduce", list(range(1024)), 1 << 30)

    def plan(chunks: int) -> _core.Plan:
        return _core.plan(topology, collective, "multitree", chunks, 1 << 40).plan_and_run[0]

    timer = threading.Timer(0.02, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        plan(1)
    timer.join()


def test_ctrl_c_stops_waiting_for_a_bound() -> None:
    topology = _core.families.build("mesh", {"size": [60, 60], "bandwidth": GB, "latency": 0})
    collective = _core.Collective("all-reduce", list(range(3600)), 1 << 30)
    timer = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        _core.bound(topology, collective)
    timer.join()


def test_other_threads_run_during_a_long_call() -> None:
    plan = long_plan()
    ran = threading.Event()
    worker = threading.Thread(target=ran.set)
    seen: list[bool] = []

    def watch(*_: object) -> None:
        if not seen:
            worker.start()
        seen.append(ran.wait(timeout=10))

    _core.verify(plan, watch)
    worker.join()
    assert seen
    assert all(seen)


def test_errors_of_the_core_keep_their_parts() -> None:
    """No part has to be cut out of a text: origin, field, reason and remedy come one by one."""
    product = [("Ring", 4, GB, 0)]
    ends = (np.array([0], U32), np.array([1], U32))
    rates = (np.array([GB], np.uint64), np.array([0], np.uint64))
    columns = ("link_src", "link_dst", "link_bandwidth", "link_latency_ps")
    one_way = ring(**dict(zip(columns, (*ends, *rates), strict=True)))
    collective = _core.Collective("all-gather", [0, 1, 2], 300)
    calls: list[tuple[Callable[[], object], tuple[str | None, str | None, str | None]]] = [
        (
            lambda: _core.plan(ring(), collective, "chain", None, LIMIT).plan_and_run[0],
            ("chain", None, None),
        ),
        (
            lambda: _core.registry.chunk_ladder(one_way, collective, "blind"),
            ("blind", None, None),
        ),
        (
            lambda: _core.build_product([("Rung", 4, GB, 0)]),
            ("dimension 1", None, "kinds are Ring, Line, Switch, FullyConnected"),
        ),
        (
            lambda: _core.build_product([("Ring", 4, 0, 0)]),
            ("dimension 1 (Ring)", None, "remove it or give it a bandwidth"),
        ),
        (
            lambda: _core.build_product(product).with_switching("slow"),
            (None, None, "it is store-and-forward or cut-through"),
        ),
        (lambda: _core.Plan.merged([], LIMIT), (None, "plans", "give one or more")),
        (lambda: ring(npu_count=4), (None, None, "name every device")),
    ]
    for call, parts in calls:
        with pytest.raises((InfeasibleError, SpecError)) as caught:
            call()
        error = caught.value
        assert (error.origin, error.field, error.remedy) == parts
        assert error.why not in ("", str(error))
        assert ";" not in error.why or error.remedy is None


def test_all_that_the_core_offers_says_what_it_is() -> None:
    modules = [_core, *(each for each in vars(_core).values() if inspect.ismodule(each))]
    assert len(modules) > 1
    offered = [
        (module.__name__, name, thing)
        for module in modules
        for name, thing in [("", module), *vars(module).items()]
        if not name.startswith("_") and not isinstance(thing, str)
    ]
    assert not [(module, name) for module, name, thing in offered if not thing.__doc__]
