"""Comparisons: whose plan ``auto`` takes, and what certifies plans of trees."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import hocket as hk
from hocket.cli import run
from hocket.plans.algorithms import check_options


def test_it_says_whose_plan_auto_takes_and_shows_certificates(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ring = hk.topology.load("ring:5@25GB/s,700ns")
    made = hk.compare("all-gather", ring, size="5 MB")
    plan = hk.plan("all-gather", ring, size="5 MB")
    assert made.auto == plan.algorithm == "trees"
    assert made.best.run.time_ps == hk.simulate(plan).time_ps
    told = made.to_dict()
    assert told["auto"] == "trees"
    trees = {each["algorithm"]: each["trees"] for each in told["algorithms"]}
    for name in ("trees", "symmetric"):
        found = trees[name]
        assert found is not None
        (packing,) = found["packings"]
        assert packing["certificate"].startswith("copies over ")
        assert packing["reached"] == 1
    assert trees["ring"] is None
    # Elsewhere it cannot be told from what was compared.
    assert hk.compare("all-gather", ring, size="5 MB", algorithms=["trees"]).auto is None
    assert hk.compare("all-gather", ring, size="5 MB", fidelity="flow").auto is None
    assert hk.compare("all-gather", ring, size="5 MB", switching="cut-through").auto is None
    assert run(["compare", "all-gather", "-t", "ring:5@25GB/s,700ns", "-s", "5MB"]) == 0
    out = capsys.readouterr().out
    assert "auto picks trees, 0.0% above the bound" in out
    assert "\ntrees: copies over " in out
    assert "\nsymmetric: copies over " in out


RING = "ring:4@25GB/s,1us"


@pytest.mark.parametrize("option", [{"trials": 7}, {"seed": 3}, {"slot": "2 us"}, {"window": 3}])
@pytest.mark.parametrize("algorithm", ["ring", "direct", "trees", "greedy", "exact", "blind"])
def test_an_option_that_a_named_algorithm_does_not_use_is_refused_everywhere(
    option: dict[str, object], algorithm: str
) -> None:
    """What ``plan`` refuses, comparisons of that algorithm alone refuse in the same words."""
    try:
        check_options(algorithm, hk.PlanOptions(**option))  # type: ignore[arg-type]
    except hk.SpecError as error:
        said = str(error)
    else:
        return
    given: dict[str, object] = {"algorithms": [algorithm], **option}
    calls: list[Callable[[], object]] = [
        lambda: hk.compare("all-reduce", RING, size="1 MB", **given),  # type: ignore[arg-type]
        lambda: hk.compare_sizes("all-reduce", RING, "1K:1M:x32", **given),  # type: ignore[arg-type]
        lambda: hk.pareto("all-reduce", RING, sizes="1K:1M:x32", **given),  # type: ignore[arg-type]
        lambda: hk.advise_failures("all-reduce", RING, size="1 MB", **given),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(hk.SpecError) as refused:
            call()
        assert str(refused.value) == said


@pytest.mark.parametrize("algorithms", [["ring", "greedy"], ["greedy", "trees"]])
def test_an_option_is_for_those_that_use_it(algorithms: list[str]) -> None:
    """Beside one that uses it, another algorithm is compared as it is without."""
    found = hk.compare("all-reduce", RING, size="1 MB", algorithms=algorithms, trials=1)
    alone = {
        name: hk.simulate(
            hk.plan(
                "all-reduce",
                RING,
                size="1 MB",
                algorithm=name,
                **({"trials": 1} if name == "greedy" else {}),  # type: ignore[arg-type]
            )
        ).time_ps
        for name in algorithms
    }
    assert {each.algorithm: each.run.time_ps for each in found} == alone


def test_what_comparisons_have_unasked_uses_no_slots() -> None:
    for call in (
        lambda: hk.compare("all-reduce", RING, size="1 MB", slot="2 us"),
        lambda: hk.pareto("all-reduce", RING, slot="2 us"),
    ):
        with pytest.raises(hk.SpecError) as error:
            call()
        assert str(error.value) == (
            "slot: no algorithm that is compared by default uses it; it is for exact and auto"
        )


def test_commands_refuse_alike(capsys: pytest.CaptureFixture[str]) -> None:
    where = ("all-reduce", "-t", RING, "--trials", "7", "-a", "ring")
    said = "hocket: --trials: ring does not use it; it is for greedy, exact and auto\n"
    for command in (("plan", *where, "-s", "1MB"), ("compare", *where, "-s", "1MB")):
        assert run(command) == 2
        assert capsys.readouterr().err == said
    assert run(("compare", "--front", *where)) == 2
    assert capsys.readouterr().err == said
    assert run(("compare", *where, "-a", "greedy", "-s", "1MB")) == 0
    assert "--trials is not for ring\n" in capsys.readouterr().out


def test_plans_are_timed_under_the_model_of_latency_that_they_are_made_for() -> None:
    """However the model is said: by a keyword, or in either value of options."""
    line, size = "line:5@1GB/s,100us", "1 MB"
    occupying = hk.PlanOptions(latency_model="occupying")
    greedy = hk.plan("broadcast", line, size=size, algorithm="greedy", options=occupying)
    took = hk.simulate(greedy, latency_model="occupying").time_ps
    assert took != hk.simulate(greedy).time_ps
    given: list[dict[str, object]] = [
        {"latency_model": "occupying"},
        {"options": occupying},
        {"fidelity": hk.LinkOptions(latency_model="occupying")},
        {"fidelity": hk.LinkOptions(latency_model="occupying"), "options": occupying},
    ]
    for each in given:
        found = hk.compare("broadcast", line, size=size, algorithms=["greedy"], **each)  # type: ignore[arg-type]
        assert found.best.run.time_ps == took
        front = hk.pareto("broadcast", line, sizes=[1_000_000], algorithms=["greedy"], **each)  # type: ignore[arg-type]
        assert front.points[0].time_ps == took
    failures = hk.advise_failures(
        "broadcast",
        line,
        size=size,
        algorithms=["greedy"],
        parts=["npu"],
        latency_model="occupying",
    )
    assert failures.time_ps == took


def test_half_of_the_links_are_busy_for_no_longer_than_the_median() -> None:
    found = hk.compare(
        "broadcast", "line:4@1GB/s,1us", size="1 MB", algorithms=["greedy"], chunks=1
    )
    run = found.best.run
    busy = sorted(map(int, run.link_busy_ps))
    assert busy[:3] == [0, 0, 0]
    assert busy[3] > 0
    assert run.median_busy_share == busy[3] / 2 / run.time_ps
    assert found.to_frame()["median_busy_share"].to_pylist() == [run.median_busy_share]
    assert found.to_dict()["algorithms"][0]["median_busy_share"] == run.median_busy_share
