"""Values and results pickle, deep-copy and go to other processes; a pickle is input like a file."""

from __future__ import annotations

import contextlib
import copy
import pickle
import random
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hocket as hk
from hocket import _core

SIZE = "1 MB"
CHAKRA = Path(__file__).parent / "data" / "chakra"
TRACE_COLUMNS = """
rank_first id kind duration_ps operations tensor_bytes is_cpu call_kind bytes group peer tag priority
name_row dependency_first dependencies order group_id group_first group_ranks calls_kind calls_group
calls_size calls_first calls_nodes call partner
"""


def networks() -> list[hk.Topology]:
    """Give a network of every kind: with limits, dimensions, equal paths, failures, offload."""
    link = {"bandwidth": "50 GB/s", "latency": "700 ns"}
    return [
        hk.topology.ring(5, **link),
        hk.topology.mesh(3, 4, **link),
        hk.topology.switch(4, **link, limit="80 GB/s"),
        hk.topology.fat_tree(4, **link),
        hk.topology.product(
            "Ring_Switch", [4, 3], bandwidth=["50 GB/s", "20 GB/s"], latency=["1 us", "2 us"]
        ),
        hk.topology.torus(3, 3, **link).without(links=[("npu0", "npu1")]),
    ]


def again(value: Any) -> Any:
    """Pickle and unpickle."""
    return pickle.loads(pickle.dumps(value))


def columns(core: _core.Plan) -> list[list[int]]:
    names = "chunk chunk_count src dst op wait path chunk_offsets chunk_demand group_offsets"
    names += " group_items path_offsets path_items"
    return [getattr(core, name).tolist() for name in names.split()]


@pytest.mark.parametrize("index", range(6))
def test_topologies(index: int) -> None:
    topo = networks()[index]
    assert again(topo) == topo
    assert copy.deepcopy(topo) is topo


def collectives(topo: hk.Topology) -> list[hk.Collective]:
    kinds = ["all-reduce", "reduce-scatter", "all-gather", "all-to-all"]
    made = [hk.collective_on(kind, topo, SIZE, in_place=kind != "all-gather") for kind in kinds]
    some = [0, 2, 3]
    made += [
        hk.collective_on(kind, topo, SIZE, npus=some, root=2) for kind in ("broadcast", "gather")
    ]
    return [*made, _core.Collective.joined(made[:2])]


def test_collectives() -> None:
    for collective in collectives(networks()[1]):
        found = again(collective)
        assert found == collective
        assert (found.root, found.in_place, found.size) == (
            collective.root,
            collective.in_place,
            collective.size,
        )


@pytest.mark.parametrize("index", range(6))
def test_plans_are_the_same_but_for_the_proof(index: int) -> None:
    topo = networks()[index]
    applicable = [
        each.algorithm for each in hk.compare("all-reduce", topo, size=SIZE, chunks=1).entries
    ]
    for algorithm in applicable:
        plan = hk.plan("all-reduce", topo, size=SIZE, algorithm=algorithm, chunks=1).verify()
        found = again(plan)
        assert columns(found.core) == columns(plan.core), algorithm
        assert (found.algorithm, found.link_order, found.routing, found.synthesis) == (
            plan.algorithm,
            plan.link_order,
            plan.routing,
            plan.synthesis,
        )
        assert (found.topology, found.collective) == (topo, plan.collective)
        assert not found.is_verified, "a pickle proves nothing"
        assert hk.simulate(found).time_ps == hk.simulate(plan).time_ps
        assert found.is_verified
        assert found.is_reproducible == plan.is_reproducible
        assert (found.own_schedule is None) == (plan.own_schedule is None)
        assert copy.deepcopy(plan).is_verified, "what never changes is not copied"


@pytest.mark.parametrize("fidelity", ["link", "flow", "packet"])
@pytest.mark.parametrize("index", range(6))
def test_runs(index: int, fidelity: Any) -> None:
    topo = networks()[index]
    plan = hk.plan("all-gather", topo, size="64 KB", algorithm="greedy")
    run = hk.simulate(plan, fidelity=fidelity, keep_services=True)
    before = (run.utilization, run.lower_bound.witness)  # computed once and kept
    found = again(run)
    assert found.time_ps == run.time_ps
    for name in ("start_ps", "end_ps", "link_busy_ps", "link_bytes"):
        assert np.array_equal(getattr(found, name), getattr(run, name)), name
    assert (found.utilization, found.lower_bound.witness) == before
    assert (found.fidelity, found.order, found.switching, found.cycle_ps) == (
        run.fidelity,
        run.order,
        run.switching,
        run.cycle_ps,
    )
    assert found.equal_links == run.equal_links
    assert np.array_equal(found.heat(7), run.heat(7))
    assert found.plan.core is not run.plan.core
    if run.topology.dimensions:
        assert [use.bytes for use in found.dimensions] == [use.bytes for use in run.dimensions]
        assert np.array_equal(found.activity(5), run.activity(5))


def test_a_run_and_its_plan_are_pickled_once() -> None:
    plan = hk.plan("all-reduce", networks()[1], size=SIZE, algorithm="ring", chunks=1)
    run = hk.simulate(plan)
    own = len(pickle.dumps(plan)) + 8 * (2 * len(plan) + 3 * run.topology.link_count)
    assert len(pickle.dumps(run)) < own + 2000
    found = again(run)
    assert not found.plan.is_verified
    assert found.plan.verify().is_verified


def test_schedules_and_their_runs() -> None:
    topo = networks()[4]
    for algorithm in ("themis", "hierarchical", "multirail-optimal"):
        schedule = hk.schedule("all-reduce", topo, size=SIZE, algorithm=algorithm, chunks=4)
        found = again(schedule)
        assert (found.lanes, found.algorithm, found.policy) == (
            schedule.lanes,
            schedule.algorithm,
            schedule.policy,
        )
        run = schedule.simulate(latency_model="occupying")
        assert (
            again(run).time_ps == found.simulate(latency_model="occupying").time_ps == run.time_ps
        )
        assert again(run).lower_bound.components == run.lower_bound.components
        plan = hk.plan("all-reduce", topo, size=SIZE, algorithm=schedule)
        assert hk.simulate(again(plan), fidelity="dimension").time_ps == schedule.simulate().time_ps


def test_comparisons_and_errors() -> None:
    found = hk.compare("broadcast", networks()[2], size=SIZE, chunks=1)
    back = again(found)
    assert [(each.algorithm, each.run.time_ps) for each in back] == [
        (each.algorithm, each.run.time_ps) for each in found
    ]
    assert back.bound.time_ps == found.bound.time_ps
    plan = hk.plan("all-gather", networks()[0], size=SIZE, algorithm="ring", chunks=1)
    wrong = wrong_plan(plan)
    with pytest.raises(hk.VerificationError) as caught:
        _core.verify(wrong)
    error = again(caught.value)
    assert str(error) == str(caught.value)
    assert list(error.violations) == list(caught.value.violations)


@pytest.mark.parametrize("algorithm", ["themis", "ring"])
def test_training(algorithm: str) -> None:
    topo = networks()[4]
    run = hk.train("resnet50", topo, algorithm=algorithm)
    before = (run.breakdown, run.iteration_ps)  # computed once and kept
    found = again(run)
    assert (found.breakdown, found.iteration_ps) == before
    assert np.array_equal(found.outcome.start_ps, run.outcome.start_ps)
    assert np.array_equal(found.outcome.call_end_ps, run.outcome.call_end_ps)
    assert found.total_ps == run.total_ps
    assert copy.deepcopy(run).total_ps == run.total_ps


@pytest.mark.parametrize("scheme", hk.routing.SCHEMES)
def test_assignments(scheme: str) -> None:
    """A path for each flow comes back, and loads with it; so does what a solver proved."""
    fabric = hk.topology.clos(spines=3, tors=4, hosts_per_tor=4, bandwidth="100 Gb/s", latency=0)
    flows = [(0, 1, 3), (0, 2, 2), (0, 3, 2), (0, 1, 2), (2, 3, 5)]
    made = hk.routing.assign(fabric, flows, scheme=scheme, jobs=[0, 0, 1, 1, 2])
    found = again(made)
    assert repr(found) == repr(made)
    assert (found.certificate, found.flows, found.jobs) == (made.certificate, made.flows, made.jobs)
    assert np.array_equal(found.link_loads, made.link_loads)
    assert copy.deepcopy(made).core is made.core
    if scheme != "spray":
        assert np.array_equal(found.choices, made.choices)


def cluster_run(**options: Any) -> hk.routing.ClusterRun:
    hosts = hk.routing.cluster("clos:4x8x8")
    jobs = [
        hk.routing.Job(name, parameters=10**6, data=8, tensor=4, iterations=2, compute="20 us")
        for name in ("one", "other")
    ]
    return hk.routing.simulate(hosts, jobs, keep_rates=True, **options)


@pytest.mark.parametrize("scheme", ["controller", "greedy", "ecmp", "spray"])
def test_cluster_runs(scheme: str) -> None:
    run = cluster_run(scheme=scheme, look_ahead=1)
    found = again(run)
    assert found.to_dict() == run.to_dict()
    assert found.jobs == run.jobs
    assert found.core.rates == run.core.rates
    assert np.array_equal(found.link_bytes, run.link_bytes)
    assert copy.deepcopy(run).to_dict() == run.to_dict()


@pytest.mark.parametrize("name", ["all_reduce", "custom_allreduce"])
def test_traces_and_their_runs(name: str) -> None:
    trace = hk.traces.load(CHAKRA / name)
    found = again(trace)
    for column in TRACE_COLUMNS.split():
        assert np.array_equal(getattr(found, column), getattr(trace, column)), column
    assert found.names == trace.names
    assert hk.traces.summarize(found) == hk.traces.summarize(trace)
    assert copy.deepcopy(trace) is trace
    run = hk.traces.replay(
        trace, hk.topology.ring(trace.ranks, bandwidth="50 GB/s", latency="700 ns")
    )
    ran = again(run)
    assert (ran.time_ps, ran.calls, ran.ranks) == (run.time_ps, run.calls, run.ranks)
    assert copy.deepcopy(run).calls == run.calls


def state_of(core: Any) -> tuple[str, dict[str, Any]]:
    restore, (name, state) = core.__reduce__()
    assert restore is _core.restore
    return name, dict(state)


def wrong_plan(plan: hk.Plan) -> Any:
    """Give the same plan whose first transfer goes elsewhere."""
    name, state = state_of(plan.core)
    state["dst"] = state["dst"].copy()
    state["dst"][0] = (state["dst"][0] + 1) % 5
    return _core.restore(name, state)


def test_a_wrong_plan_is_found_out() -> None:
    plan = hk.plan("all-gather", networks()[0], size=SIZE, algorithm="ring", chunks=1).verify()
    wrong = wrong_plan(plan)
    assert not wrong.is_verified
    with pytest.raises(hk.VerificationError):
        _core.simulate(wrong)


def simulated(plan: hk.Plan) -> hk.Run:
    return hk.simulate(plan.verify())


def test_other_processes() -> None:
    topo = networks()[1]
    names = ["ring", "direct", "greedy"]
    plans = [hk.plan("all-reduce", topo, size=SIZE, algorithm=name) for name in names]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        runs = list(pool.map(simulated, plans))
    assert [run.time_ps for run in runs] == [hk.simulate(plan).time_ps for plan in plans]
    assert [run.plan.algorithm for run in runs] == names


def cores() -> list[Any]:
    topo = networks()[4]
    plan = hk.plan("all-reduce", topo, size=SIZE, algorithm="themis", chunks=4)
    run = hk.simulate(plan, keep_services=True)
    assert plan.schedule is not None
    dimension_run = plan.schedule.simulate().core
    custom = _core.Collective.joined([plan.collective, plan.collective])
    schedule = plan.schedule.core
    trained = hk.train("resnet50", topo, algorithm="themis")
    own = [plan.collective, custom, plan.core, schedule, dimension_run, run.core]
    own += [trained.columns, trained.outcome]
    fabric = hk.topology.clos(spines=3, tors=4, hosts_per_tor=4, bandwidth="100 Gb/s", latency=0)
    routed = [
        hk.routing.assign(fabric, [(0, 1, 3), (2, 3, 5)], scheme=scheme).core
        for scheme in ("greedy", "spray")
    ]
    trace = hk.traces.load(CHAKRA / "all_reduce")
    replayed = hk.traces.replay(
        trace, hk.topology.ring(trace.ranks, bandwidth="50 GB/s", latency="700 ns")
    )
    other = [*routed, cluster_run().core, trace, replayed.graph]
    return [topo, *own, *trained.shapes[:2], *other]


def altered(value: Any, draw: random.Random) -> Any:
    """Give something else in place of a value."""
    if isinstance(value, np.ndarray) and len(value) and draw.random() < 0.8:
        value = value.copy()
        if draw.random() < 0.3:
            return value[: draw.randrange(len(value))]
        largest = int(np.iinfo(value.dtype).max)
        new = draw.choice([0, 1, draw.randrange(100), largest, largest - 1])
        value[draw.randrange(len(value))] = new
        return value
    if isinstance(value, list) and value and draw.random() < 0.5:
        return value[: draw.randrange(len(value))]
    if isinstance(value, int) and draw.random() < 0.6:
        return draw.choice([0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, value + 1])
    return draw.choice([None, "", "x", -1, 1 << 70, [], b"", 1.5, np.zeros(3), {}])


def try_all(core: Any) -> None:
    """Use what an altered state made: it may be wrong, but nothing breaks."""
    uses: list[Callable[[], object]] = [
        lambda: repr(core),
        lambda: core.inspect(),
        lambda: _core.verify(core),
        lambda: _core.simulate(core),
        lambda: _core.report(core),
        lambda: _core.heat(core, 5),
        lambda: _core.activity(core, bins=5),
        lambda: _core.equal_links(core),
        lambda: core.report(),
        lambda: core.simulate(),
        lambda: core.demands(),
        lambda: core.exposed(),
        lambda: core.busy_ps,
        lambda: core.decisions,
        lambda: core.path_ends,
        lambda: hk.traces.summarize(core),
        lambda: hk.traces.replay(core, hk.topology.ring(8, bandwidth="50 GB/s", latency="700 ns")),
    ]
    for use in uses:
        with contextlib.suppress(hk.Error, AttributeError, TypeError):
            use()


@pytest.mark.parametrize("seed", range(40))
def test_altered_states_are_refused_in_a_line(seed: int) -> None:
    draw = random.Random(seed)
    for core in cores():
        name, state = state_of(core)
        key = draw.choice(list(state))
        if draw.random() < 0.1:
            del state[key]
        else:
            state[key] = altered(state[key], draw)
        refused = None
        try:
            try_all(_core.restore(name, state))
        except hk.Error as error:
            refused = str(error)
        assert refused is None or "\n" not in refused


def test_no_state_at_all() -> None:
    for name, state in [("Plan", {}), ("Plan", None), ("Nonsense", {}), ("Topology", {"name": 3})]:
        with pytest.raises(hk.SpecError, match="pickle of") as caught:
            _core.restore(name, state)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seed", range(20))
def test_truncated_pickles(seed: int) -> None:
    draw = random.Random(seed)
    for core in cores():
        text = pickle.dumps(core)
        with pytest.raises((pickle.UnpicklingError, EOFError)):
            pickle.loads(text[: draw.randrange(len(text) - 1)])
