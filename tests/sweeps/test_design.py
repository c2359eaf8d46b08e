"""Networks for a budget: against all candidates planned by hand, closed forms, and bad input."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import prod
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket as hk
from hocket import _core
from hocket.cli import run as run_hocket
from hocket.sweeps import design
from hocket.sweeps.candidates import (
    KINDS,
    Shape,
    bought,
    clos_shapes,
    fat_trees,
    least_time,
    product_shapes,
    splits,
)
from hocket.topology import costs as prices
from hocket.topology.spec import CostsSpec, PriceSpec
from hocket.topology.text import from_text

COSTS = CostsSpec(2.0, PriceSpec(20.0, Fraction(1, 10**9)), PriceSpec(30.0, Fraction(1, 5 * 10**9)))
ALGORITHMS = ["ring", "direct", "hierarchical"]


def test_shapes_and_splits_are_all_there_are() -> None:
    shapes = product_shapes(12, KINDS, 3)
    assert len(set(shapes)) == len(shapes)
    assert all(shape.npus == 12 for shape in shapes)
    # 12; 2x6, 3x4, 4x3, 6x2; 2x2x3 in three orders. Of two NPUs, a full mesh is a ring.
    assert len(shapes) == 3 + (6 + 9 + 9 + 6) + 3 * 2 * 2 * 3
    for ways, steps in ((1, 4), (2, 4), (3, 6)):
        found = list(splits(ways, steps))
        assert len(set(found)) == len(found)
        assert all(sum(each) == steps and min(each) >= 1 for each in found)
        count = prod(range(steps - ways + 1, steps)) // prod(range(1, ways))
        assert len(found) == count
    for shape in clos_shapes(12):
        assert shape.npus == 12
    for k in (4, 6, 16):
        (shape,) = fat_trees(k**3 // 4)
        assert (shape.npus, shape.ports) == (k**3 // 4, k)
    assert fat_trees(12) == []


@settings(max_examples=60)
@given(
    st.sampled_from([*product_shapes(12, KINDS, 3), *clos_shapes(12), *fat_trees(16)]),
    st.data(),
    st.integers(300, 9000),
)
def test_a_budget_is_spent_and_not_exceeded(shape: Shape, data: st.DataObject, budget: int) -> None:
    if shape.clos is not None:
        split = (1.0, data.draw(st.sampled_from([0.5, 1.0, 3.0, 4.0])))
    else:
        split = data.draw(st.sampled_from(list(splits(shape.ways, 5))))
    made = bought(shape, split, float(budget), COSTS, None)
    if made is None:
        assert shape.fixed(COSTS) > budget - 10
        return
    spec = from_text(made.text("700ns"), bandwidth=None, latency=None)
    cost = prices.cost_of(type(spec)(**{**vars(spec), "costs": COSTS}))
    assert cost is not None
    # Bandwidths are rounded down by less than a MB/s each.
    assert 0 <= budget - cost.total < float(sum(shape.rates(COSTS))) * 10**6 * (1 + 1e-9)
    if shape.clos is not None:
        spines, _, below = shape.clos
        host, up = made.bandwidths
        assert below * host / (spines * up) == pytest.approx(split[1], rel=1e-2)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([*product_shapes(12, KINDS, 3), *clos_shapes(12), *fat_trees(16)]),
    st.data(),
    st.sampled_from(["all-reduce", "all-gather", "reduce-scatter", "broadcast"]),
    st.sampled_from([1_200, 1_000_000, 10**9]),
)
def test_the_closed_form_is_close_below_the_bound(
    shape: Shape, data: st.DataObject, kind: str, size: int
) -> None:
    ways = [(1.0, 4.0)] if shape.clos is not None else list(splits(shape.ways, 5))
    made = bought(shape, data.draw(st.sampled_from(ways)), 9000.0, COSTS, None)
    assert made is not None
    topology = hk.topology.load(made.text("700ns"))
    bound = _core.bound(topology, hk.collective_on(kind, topology, size=size)).time_ps
    least = least_time(made, kind, size, 700_000)
    assert 0 <= least <= bound
    assert kind == "broadcast" or least > bound / 2


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=200))
def test_bounds_that_are_computed_late_give_the_order_of_all(pairs: list[tuple[int, int]]) -> None:
    made = product_shapes(12, KINDS, 3)
    (candidate,) = [bought(made[0], (1.0,), 9000.0, COSTS, None)]
    assert candidate is not None
    bounds = [below + more for below, more in pairs]
    waiting = [replace(candidate, budget=float(i)) for i in range(len(pairs))]
    queue = design._Queue(
        waiting,
        [below for below, _ in pairs],
        lambda some: [bounds[int(each.budget)] for each in some],
    )
    taken = []
    while wave := queue.take(3, 15):
        taken += wave
    assert taken == sorted((bound, i) for i, bound in enumerate(bounds) if bound <= 15)


def test_many_npus_are_planned_for_by_symmetry() -> None:
    asked = hk.DesignOptions(kinds=["Ring"], steps=2, levels=[], most_dimensions=2, workers=1)
    found = hk.design_network(npus=289, budget=60_000, costs=COSTS, size="64 MB", options=asked)
    assert (found.best.algorithm, found.is_exhausted, found.worth) == ("symmetric", True, 0.01)
    assert found.best.gap is not None
    assert 0 <= found.best.gap < 0.03


def test_the_best_is_the_best_of_all_candidates() -> None:
    """Every candidate is planned here, bounds or not."""
    found = hk.design_network(
        "all-reduce",
        npus=4,
        budget=900,
        costs=COSTS,
        size="1 MB",
        algorithms=ALGORITHMS,
        levels=[],
        steps=3,
        workers=1,
    )
    times = []
    for shape in [*product_shapes(4, KINDS, 3), *clos_shapes(4)]:
        ways = [(1.0, each) for each in (1.0, 2.0, 4.0)]
        for split in ways if shape.clos is not None else splits(shape.ways, 3):
            made = bought(shape, split, 900.0, COSTS, None)
            if made is not None:
                text = made.text("700ns")
                ranked = hk.compare("all-reduce", text, size="1 MB", algorithms=ALGORITHMS)
                times.append((ranked.best.run.time_ps, text))
    assert found.is_exhausted
    assert found.best.time_ps <= min(times)[0]
    known = {text: time for time, text in times}
    for each in found.designs:
        assert known.get(each.network, each.time_ps) == each.time_ps
        assert each.bound_ps is not None
        assert each.bound_ps <= each.time_ps
        assert each.cost <= 900
    assert [each.time_ps for each in found.designs] == sorted(e.time_ps for e in found.designs)
    # Those that were not planned for cannot be quicker: their bounds say so.
    planned = {each.network for each in found.designs}
    assert all(time >= found.best.time_ps for time, text in times if text not in planned)


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_processes() -> None:
    made = [
        hk.design_network(
            "all-gather", npus=6, budget=2000, costs=COSTS, size="1 MB", steps=3, workers=workers
        ).to_dict()
        for workers in (1, 3)
    ]
    assert made[0] == made[1]
    front = made[0]["front"]
    assert len(front) > 1
    assert all(a["cost"] < b["cost"] for a, b in itertools.pairwise(front))
    assert all(a["time_ps"] > b["time_ps"] for a, b in itertools.pairwise(front))


def test_a_ring_of_two_is_a_cable() -> None:
    # 100 units buy a cable of 80 GB/s besides its 20. Half of 1 MB goes each way twice, in pieces that
    # keep the cable full: 12.5 us, and 0.7 us until the last has arrived.
    costs = CostsSpec(0.0, PriceSpec(20.0, Fraction(1, 10**9)), PriceSpec(1000.0, Fraction(0)))
    found = hk.design_network(
        npus=2, budget=100, costs=costs, size=10**6, levels=[], algorithms=["ring"], workers=1
    )
    assert found.best.network == "Ring:2@80GB/s,700ns"
    assert (found.best.cost, found.best.time_ps) == (100.0, 12_500_000 + 700_000)


def test_training_is_judged_by_its_iteration() -> None:
    found = hk.design_network(
        npus=4,
        budget=800,
        costs=COSTS,
        workload="alexnet",
        kinds=["Ring"],
        steps=2,
        levels=[],
        samples=16,
        workers=1,
    )
    assert {each.candidate.shape.clos for each in found.designs} == {None}
    best = found.best
    run = hk.train("alexnet", best.network, samples=16, cache=False)
    assert best.time_ps == run.time_ps
    assert best.bound_ps is None


def test_training_is_judged_on_clos_networks_too() -> None:
    """Two levels at each oversubscription, and the three of a fat tree, by each algorithm there is."""
    found = hk.design_network(
        npus=16,
        budget=4000,
        costs=COSTS,
        workload="alexnet",
        kinds=["clos"],
        oversubscription=[1, 4],
        levels=[],
        samples=16,
        workers=2,
    )
    assert found.is_exhausted
    shapes = {each.candidate.shape for each in found.designs}
    bought_of = {
        shape
        for shape in [*clos_shapes(16), *fat_trees(16)]
        for split in ([(1.0, 1.0), (1.0, 4.0)] if shape.clos else [(1.0,)])
        if bought(shape, split, 4000.0, COSTS, None) is not None
    }
    assert shapes == bought_of
    assert any(shape.ports == 4 for shape in shapes)
    assert {each.candidate.oversubscription for each in found.designs} == {1.0, 4.0, None}
    for each in (found.designs[0], found.designs[-1]):
        times = {
            name: hk.train("alexnet", each.network, samples=16, algorithm=name, cache=False).time_ps
            for name in ("halving-doubling", "bidirectional-ring", "double-binary-tree")
        }
        assert each.time_ps == min(times.values()) == times[each.algorithm]


@pytest.mark.slow
def test_the_best_is_written_as_a_topology_file(tmp_path: Path) -> None:
    for kinds, npus in ((["Ring", "Switch"], 6), (["clos"], 6), (["clos"], 16)):
        found = hk.design_network(
            npus=npus,
            budget=250 * npus,
            costs=COSTS,
            size="1 MB",
            kinds=kinds,
            levels=[],
            workers=1,
        )
        found.save(tmp_path / "best.yml")
        assert hk.topology.price(tmp_path / "best.yml").total == pytest.approx(found.best.cost)
        ranked = hk.compare(
            "all-reduce", tmp_path / "best.yml", size="1 MB", algorithms=[found.best.algorithm]
        )
        assert ranked.best.run.time_ps == found.best.time_ps


PRICES = "costs: {link: {each: 20, bandwidth: 1 per GB/s}, switch: {each: 30}}"
WRONG = [
    (
        ("-b", "50"),
        "--budget: 50 buys no network of 4 NPUs; the cheapest takes 80",
    ),
    (("-b", "0"), "--budget: 0.0 is no budget; give a number above 0"),
    (("--npus", "1"), "--npus: 1 is too small; give a whole number from 2 to 1048576"),
    (("--kinds", "Rin"), "--kinds: there is no 'Rin'; did you mean 'Ring'?"),
    (
        ("--kinds", "clos", "--npus", "3"),
        "--kinds: 3 NPUs make no network of clos; kinds are Ring, ",
    ),
    (
        ("--costs", "kinds.yml"),
        "costs.kinds: are of a network that is there already; price link and ",
    ),
    (("--costs", "free.yml"), "--costs: the bandwidth of links costs nothing; price it"),
    (("--costs", "none.yml"), "none.yml: cannot be read: No such file or directory"),
    (("--oversubscription", "0"), "--oversubscription: 0.0 is not valid; give numbers from "),
    (
        ("--oversubscription", "x"),
        "--oversubscription: 'x' is not a list of numbers; write numbers",
    ),
    (("--latency", "1 parsec"), "--latency: '1 parsec': 'parsec' is not a unit of time"),
    (("--latency", "-1s"), "hocket: --latency: '-1s' is negative"),
    (("--most-evaluated", "0"), "hocket: --most-evaluated: 0 is too small"),
    (("--most-dimensions", "9"), "hocket: --most-dimensions: 9 is too large"),
    (("--workload", "alexnet"), "--size: a workload has its own; leave it out"),
    (("--samples", "3"), "--samples: it is of training; give a workload, or leave it out"),
    (("-a", "rong"), "there is no algorithm 'rong'; did you mean 'ring'?"),
    (("-o", "x.txt"), "--output: 'x.txt' does not end in .yml, .yaml; name a .yml file"),
    (("--steps", "0"), "--steps: 0 is too small"),
    (("-w", "0"), "--workers: 0 is too small"),
]


@pytest.mark.parametrize(("argv", "message"), WRONG, ids=[" ".join(argv) for argv, _ in WRONG])
def test_bad_input_is_one_line(
    argv: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("prices.yml").write_text(PRICES)
    Path("free.yml").write_text("costs: {link: {each: 20}}")
    Path("kinds.yml").write_text("costs: {kinds: {nv: {each: 20}}}")
    usual = {"--npus": "4", "-b": "500", "-s": "1MB", "--costs": "prices.yml", "-w": "1"}
    given = dict(zip(argv[::2], argv[1::2], strict=True))
    words = [word for pair in {**usual, **given}.items() for word in pair]
    assert run_hocket(["sweep", "design", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_a_design_that_comes_to_nothing_says_what_its_plans_failed_by() -> None:
    """The budget is to blame only where it buys nothing; else the error is that of a run by itself."""
    few = {
        "kinds": ["Ring", "clos"],
        "steps": 1,
        "levels": [],
        "workers": 1,
        "oversubscription": [1],
    }
    alike: list[tuple[dict[str, object], Callable[[], object]]] = [
        (
            {"workload": "alexnet", "parallel": "dp=1,pp=4", "samples": 8},
            lambda: hk.train(
                "alexnet", "ring:4@1GB/s,1us", parallel="dp=1,pp=4", samples=8, algorithm="ring"
            ),
        ),
        (
            {"workload": "llama3-70b", "parallel": "dp=1,tp=4", "samples": 1},
            lambda: hk.train("llama3-70b", "Ring:4@1GB/s,1us", parallel="dp=1,tp=4", samples=1),
        ),
        (
            {"kind": "all-to-all", "size": "1 MB", "algorithms": ["ring"]},
            lambda: hk.compare("all-to-all", "Ring:4@1GB/s,1us", size="1 MB", algorithms=["ring"]),
        ),
    ]
    for what, alone in alike:
        with pytest.raises(hk.Error) as wanted:
            alone()
        with pytest.raises(hk.Error) as error:
            hk.design_network(npus=4, budget=900, costs=COSTS, **few, **what)  # type: ignore[arg-type]
        assert (error.value.field, error.value.why.split(" on ")[0]) == (
            wanted.value.field,
            wanted.value.why.split(" on ")[0],
        )
        assert error.value.field != "budget"
        assert "memory_check" not in str(error.value)


def test_a_model_that_fits_by_recomputing_is_designed_for() -> None:
    given = {"npus": 8, "budget": 4000, "costs": COSTS, "workload": "llama3-8b", "npu": "h100"}
    few = {
        "kinds": ["FullyConnected"],
        "steps": 1,
        "most_dimensions": 1,
        "levels": [],
        "workers": 1,
    }
    more = {"parallel": "tp=8", "samples": 8}
    with pytest.raises(hk.InfeasibleError) as error:
        hk.design_network(**given, **few, **more)  # type: ignore[arg-type]
    assert {"recompute": True} in error.value.instead
    assert "recompute=True" in str(error.value)
    found = hk.design_network(**given, **few, **more, recompute=True)  # type: ignore[arg-type]
    run = hk.train(
        "llama3-8b", found.best.network, parallel="tp=8", samples=8, npu="h100", recompute=True
    )
    assert found.best.time_ps == run.time_ps


def test_a_named_algorithm_trains_on_products_too_and_what_it_cannot_do_is_counted() -> None:
    given = {"npus": 4, "budget": 900, "costs": COSTS, "workload": "alexnet", "samples": 4}
    few = {"steps": 1, "levels": [], "workers": 1, "oversubscription": [1], "most_dimensions": 1}
    found = hk.design_network(**given, **few, algorithms=["direct"])  # type: ignore[arg-type]
    assert {each.algorithm for each in found.designs} == {"direct"}
    assert found.refused == {}
    found = hk.design_network(**given, **few, algorithms=["themis"])  # type: ignore[arg-type]
    assert {each.algorithm for each in found.designs} == {"themis"}
    assert all(each.candidate.shape.dimensions for each in found.designs)
    assert found.evaluated == len(found.designs) + sum(found.refused.values())
    assert all("works on dimensions" in reason for reason in found.refused)
    assert found.to_dict()["refused"] == found.refused


def test_the_command_says_why_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("prices.yml").write_text(PRICES)
    usual = (
        "sweep",
        "design",
        "--npus",
        "8",
        "-b",
        "4000",
        "--costs",
        "prices.yml",
        "-w",
        "1",
        "--kinds",
        "Ring",
    )
    less = ("--steps", "1", "--levels", "1", "--most-dimensions", "1")
    pipeline = ("--workload", "alexnet", "--parallel", "pp=4,dp=2", "--samples", "8")
    assert run_hocket([*usual, *less, *pipeline]) == 2
    assert capsys.readouterr().err == (
        "hocket: --samples: 8 do not divide into 16 micro-batches, 4 for each of 4 stages; give "
        "--samples 16 or --parallel dp=2,pp=4,micro-batches=8\n"
    )
