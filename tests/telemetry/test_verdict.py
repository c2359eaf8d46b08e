"""The rule, on times of which the answer is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.telemetry.recordings import flight, flight_entry, inspector_call, lines, log

import hocket as hk
from hocket.plans.synthesis import PlanOptions
from hocket.telemetry.verdict import Case, tolerance_at, verdicts

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def case(seconds: float, size: int = 1, **more: Any) -> Case:
    known: dict[str, Any] = {"bound_ps": 10**12, "predicted": 10.0, "least": 1.0, "best": None}
    return Case(size, seconds, **{**known, "tolerance": 0.3, **more})


def alone(seconds: float, **more: Any) -> str:
    ((verdict, _),) = verdicts([case(seconds, **more)])
    return verdict


@pytest.mark.parametrize(
    ("seconds", "more", "verdict"),
    [
        (10, {}, "neither"),
        (12.9, {}, "neither"),
        (13.1, {}, "fabric"),
        (13.1, {"tolerance": 0.5}, "neither"),
        (13.1, {"least": 5.1}, "start"),
        (13.1, {"least": 4.9}, "fabric"),
        (10, {"best": 9.1}, "neither"),
        (10, {"best": 8.9}, "algorithm"),
        (13.1, {"best": 5}, "fabric"),
        (13.1, {"otherwise": 14}, "algorithm"),
        (13.1, {"otherwise": 15.5}, "fabric"),
        (9, {"best": 8.2}, "neither"),  # not a tenth below what was measured
        (7, {"best": 6}, "neither"),  # of another machine
        (1.04, {}, "neither"),
        (1.04, {"predicted": 0.5}, "neither"),  # no plan could be faster
        (0.96, {}, "neither"),
        (0.94, {}, "faster than the bound"),
        (13.1, {"predicted": None}, "not told"),
        (1.04, {"predicted": None}, "neither"),
        (13.1, {"bound_ps": None}, "fabric"),
    ],
)
def test_the_rule_at_a_single_size(seconds: float, more: dict[str, Any], verdict: str) -> None:
    assert alone(seconds, **more) == verdict


def over(ratios: list[float], starts: int = 0) -> list[str]:
    """Verdicts on ratios of measured and predicted, the first of which are at sizes that are all start."""
    least = [9.0 if place < starts else 1.0 for place in range(len(ratios))]
    cases = [
        case(10 * ratio, 1 << place, least=own)
        for place, (ratio, own) in enumerate(zip(ratios, least, strict=True))
    ]
    return [verdict for verdict, _ in verdicts(cases)]


def test_what_slow_links_cost_larger_sizes_cost_as_well() -> None:
    assert over([1, 1, 2, 2, 2]) == ["neither", "neither", "fabric", "fabric", "fabric"]
    assert over([1, 2, 2, 2, 1, 1]) == ["neither", *["algorithm"] * 3, "neither", "neither"]


def test_what_a_slow_start_costs_smaller_sizes_cost_as_well() -> None:
    assert over([2, 2, 2, 1, 1, 1], 3) == [*["start"] * 3, *["neither"] * 3]
    assert over([1, 1, 2, 2, 1, 1], 4) == ["neither"] * 2 + ["algorithm"] * 2 + ["neither"] * 2
    assert over([1, 1, 2, 2, 2, 2], 4) == ["neither"] * 2 + ["fabric"] * 4


def test_a_size_that_stands_out_is_nobodys() -> None:
    assert over([1, 1, 5, 1, 1]) == ["neither"] * 5
    assert over([2, 2, 1, 2, 2]) == ["fabric"] * 5
    far = verdicts([case(10, 1), case(20, 5), case(10, 25)])
    assert [verdict for verdict, _ in far] == ["neither", "algorithm", "neither"]


@given(
    st.lists(st.floats(0.5, 4), min_size=1, max_size=12),
    st.floats(1.01, 3),
)
def test_nothing_that_is_slower_is_judged_better(ratios: list[float], factor: float) -> None:
    """Slower everywhere: what was slow stays slow."""
    before, after = over(ratios), over([ratio * factor for ratio in ratios])
    slow = ("fabric", "start", "algorithm")
    assert all(late in slow for early, late in zip(before, after, strict=True) if early in slow)


def test_tolerances_are_those_of_the_page() -> None:
    sizes = (64 * KIB - 1, 64 * KIB, MIB - 1, MIB, 64 * MIB, 64 * MIB + 1)
    assert [tolerance_at(size) for size in sizes] == [0.2, 0.5, 0.5, 0.3, 0.3, 0.15]


# ---- whole recordings, of a machine that is as predicted but for one thing ----

SIZES = [8 * KIB << (2 * step) for step in range(10)]
QUICK = PlanOptions(time_limit="1s", cache=False)


def healthy(kind: str = "all-gather", machine: str = "dgx_a100_1box") -> dict[int, float]:
    found = hk.predict(kind, machine, sizes=SIZES)
    return {each.size: each.seconds for each in found.times}


def judged(folder: Path, times: dict[int, float], **more: Any) -> hk.Measured:
    path = folder / "log.txt"
    path.write_text(log("all_gather", times.items()))
    return hk.measured(path, "dgx_a100_1box", **{"plans": False, **more})


def test_a_healthy_machine(tmp_path: Path) -> None:
    found = judged(tmp_path, healthy())
    assert {each.verdict for each in found} == {"neither"}
    (span,) = found.ranges
    assert (span.first, span.last) == (SIZES[0], SIZES[-1])
    assert "neither is slow: it takes 1.00 times what is predicted" in span.sentence
    assert [each.pick.algorithm for each in found if each.pick] == ["ring"] * len(SIZES)
    top = list(found)[-1]
    assert top.algbw == pytest.approx(top.size / top.seconds)
    assert top.busbw == pytest.approx(top.algbw * 7 / 8)
    asked = hk.collective_on("all-gather", "dgx_a100_1box", top.size)
    assert top.bound_ps == hk.bound("dgx_a100_1box", asked).time_ps


def test_links_of_half_the_bandwidth(tmp_path: Path) -> None:
    times = {size: took + size / 280e9 for size, took in healthy().items()}
    found = judged(tmp_path, times)
    *_, last = found.ranges
    assert last.verdict == "fabric"
    assert last.last == SIZES[-1]
    assert "the fabric is slow: it takes" in last.sentence
    assert next(iter(found)).verdict == "neither"


def test_a_start_that_is_slow(tmp_path: Path) -> None:
    found = judged(tmp_path, {size: took + 150e-6 for size, took in healthy().items()})
    first, *_ = found.ranges
    assert first.verdict == "start"
    assert first.first == SIZES[0]
    assert list(found)[-1].verdict == "neither"


def test_a_choice_that_is_bad_at_some_sizes(tmp_path: Path) -> None:
    times = {size: took * (2 if MIB <= size <= 40 * MIB else 1) for size, took in healthy().items()}
    found = judged(tmp_path, times)
    verdicts = [each.verdict for each in found.ranges]
    assert verdicts == ["neither", "algorithm", "neither"]
    assert "though the fabric carries larger sizes as predicted" in found.ranges[1].sentence


def test_a_plan_that_saves_much(tmp_path: Path) -> None:
    """NCCL sends to each of 7 others over few channels; an all-to-all of 4 MiB by a plan takes half."""
    path = tmp_path / "log.txt"
    took = hk.predict("all-to-all", "hgx_h200_8gpu", sizes=[4 * MIB]).times[0].seconds
    path.write_text(log("alltoall", [(4 * MIB, took)]))
    found = hk.measured(path, "hgx_h200_8gpu", launch="process", planning=QUICK)
    (each,) = found
    assert each.verdict == "algorithm"
    assert each.best is not None
    assert each.best < 0.9 * took
    plan = hk.plan("all-to-all", "hgx_h200_8gpu", size=4 * MIB, algorithm=str(each.algorithm))
    assert each.best == pytest.approx(
        hk.predict_plan(plan, "h100", launch="process").seconds, rel=0.1
    )
    assert "the best plan" in found.ranges[0].sentence


@pytest.mark.parametrize("slower", [1.0, 1.2, 2.0])
def test_times_are_judged_by_how_far_machines_of_a_class_are(tmp_path: Path, slower: float) -> None:
    """A profile of classes is right within its expected error only; beyond it a machine is slow."""
    network = "hgx_h100_2box_rails"
    sizes = [8 * MIB, 64 * MIB, GIB]
    found = hk.predict("all-gather", network, sizes=sizes, profile="h100+ib").times
    assert 1.2 < found[-1].factor < 2
    path = tmp_path / "log.txt"
    rows = [(each.size, slower * each.seconds) for each in found]
    path.write_text(log("all_gather", rows, 16, 2))
    judged = hk.measured(path, network, profile="h100+ib", plans=False)
    assert [each.is_over for each in judged] == [slower == 2.0] * 3


def test_a_library_that_does_not_use_its_quickest_algorithm(tmp_path: Path) -> None:
    """365.6 GB/s of busbw without NVLS on H200, 473 with it: of ml-engineering by S. Bekman (CC-BY-SA)."""
    path = tmp_path / "log.txt"
    path.write_text(log("all_reduce", [(8 * GIB, 41117e-6), (16 * GIB, 81875.7e-6)]))
    (span,) = hk.measured(path, "hgx_h200_8gpu", plans=False).ranges
    assert span.verdict == "algorithm"
    assert "as long as ring takes: the library does not use what is fastest here" in span.sentence
    path.write_text(log("all_reduce", [(8 * GIB, 31774e-6), (16 * GIB, 62634.9e-6)]))
    (span,) = hk.measured(path, "hgx_h200_8gpu", plans=False).ranges
    assert span.verdict == "neither"


def test_plans_through_switches_take_what_nvls_does(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    took = hk.predict("all-reduce", "hgx_h200_8gpu", sizes=GIB, launch="process").times[0].seconds
    path.write_text(log("all_reduce", [(GIB, took)]))
    (each,) = hk.measured(path, "hgx_h200_8gpu", planning=QUICK, launch="process")
    assert each.verdict == "neither"
    assert each.best is not None
    # NVLS moves 1 + 1/8 of the data over each NPU's links, a plan through switches may move 1.
    assert took / (1 + 1 / 8) < each.best <= took


def test_no_plan_beats_the_prediction(tmp_path: Path) -> None:
    found = judged(tmp_path, {GIB: 4.3e-3}, plans=True, planning=QUICK)
    (each,) = found
    assert each.verdict == "neither"
    assert each.best is not None
    assert each.predicted is not None
    assert 0.9 * each.predicted < each.best <= each.predicted


def test_faster_than_any_plan_can_be(tmp_path: Path) -> None:
    found = judged(tmp_path, {GIB: 1e-3})
    assert [each.verdict for each in found] == ["faster than the bound"]
    assert "faster than any plan can be on this topology" in found.ranges[0].sentence


def test_without_a_profile_the_librarys_model_predicts_large_sizes(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(log("all_gather", [(MIB, 1e-4), (GIB, 0.1)]))
    found = hk.measured(path, hk.topology.load("dgx_a100_1box"), plans=False)
    assert found.profile is None
    assert [each.verdict for each in found] == ["not told", "fabric"]
    assert "nothing predicts it here" in found.ranges[0].sentence
    assert any("NCCL's own model predicts, from 64 MiB on" in each for each in found.notes)


def test_a_network_that_no_model_fits(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(log("all_gather", [(GIB, 1.0)], 4))
    found = hk.measured(path, "ring:4@25GB/s,1us", plans=False)
    assert [(each.verdict, each.pick, each.predicted) for each in found] == [
        ("not told", None, None)
    ]
    assert found.library is None
    assert "no model of NCCL fits this topology" in found.notes[0]


def test_kernels_are_compared_without_a_launch(tmp_path: Path) -> None:
    path = tmp_path / "inspector.log"
    calls = [inspector_call("AllGather", MIB, 60, rank=rank) for rank in range(8)]
    path.write_text(lines(calls))
    found = hk.measured(path, "dgx_a100_1box", plans=False)
    (each,) = found
    assert (each.timing, each.calls, found.launch, found.notes) == ("kernel", 1, {}, ())
    launched = hk.predict("all-gather", "dgx_a100_1box", sizes=[8 * MIB]).times[0].seconds
    assert each.predicted is not None
    assert each.predicted < launched


def test_files_of_several_kinds_and_ranks_are_taken_together(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(log("all_gather", [(8 * MIB, 1e-4)]))
    (tmp_path / "inspector.log").write_text(lines([inspector_call("AllGather", MIB, 60)]))
    dump = flight([flight_entry("_all_gather_base", MIB // 4, 2 * MIB, 0.05)])
    (tmp_path / "dump").write_text(json.dumps(dump))
    found = hk.measured(
        [tmp_path / "log.txt", tmp_path / "inspector.log", tmp_path / "dump"],
        "dgx_a100_1box",
        plans=False,
    )
    assert [(each.timing, each.size, each.calls) for each in found] == [
        ("run", 8 * MIB, 1),
        ("kernel", 8 * MIB, 2),
    ]
    assert list(found)[1].seconds == pytest.approx(50e-6)  # of 50 and 60, the lower one
    assert found.notes[-1].startswith("Flight Recorder: kernels of 1 of 8 ranks are there")


def test_a_result_is_data_and_a_picture(tmp_path: Path) -> None:
    found = judged(tmp_path, healthy())
    assert found.to_frame().num_rows == len(found)
    assert "<table>" in found._repr_html_()
    assert repr(found) == "<Measured on 'dgx_a100_1box': 10 sizes in 1 ranges>"
    found.plot(tmp_path / "measured.svg")
    text = (tmp_path / "measured.svg").read_text()
    assert text.startswith("<?xml")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"tolerance": -1}, "tolerance: -1 is no share"),
        ({"tolerance": True}, "tolerance: "),
        ({"plans": 1}, "plans: 1 is neither True nor False"),
        ({"in_place": None}, "in_place: "),
        ({"profile": "a10"}, "there is no 'a10'"),
        ({"launch": "tpu"}, "launch: "),
        ({"gpu": "tpu"}, "gpu: "),
    ],
)
def test_arguments_that_make_no_sense(tmp_path: Path, more: dict[str, Any], words: str) -> None:
    with pytest.raises(hk.SpecError) as caught:
        judged(tmp_path, {MIB: 1e-4}, **more)
    assert words in str(caught.value)


def test_another_world_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(log("all_gather", [(MIB, 1e-4)], 16, 2))
    with pytest.raises(hk.SpecError) as caught:
        hk.measured(path, "dgx_a100_1box")
    why = "its collectives are among 16 NPUs on 2 nodes; the topology has 8 NPUs on 1 node"
    assert why in str(caught.value)
    for files in ([], 3, [3], [None]):
        with pytest.raises(hk.SpecError, match="files"):
            hk.measured(files, "dgx_a100_1box")  # type: ignore[arg-type]
