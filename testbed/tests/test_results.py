"""What runs on a testbed say, as JSON and as a table."""

from __future__ import annotations

import hocket as hk
from hocket_testbed import ClosPlan, ClosPlans, ClosSpec, Steered, SteeredRow, Study, StudyRun

SPEC = ClosSpec(spines=2, tors=3, hosts=4, rate="100 Mb/s")
PLACE = {"spines": 2, "tors": 3, "hosts": 12, "rate_bytes_per_s": 12_500_000}


def test_a_study_of_jobs() -> None:
    runs = (
        StudyRun("assigned", "model", (1.0, 2.0), (1.0, 1.6), 1, 0.5, True),
        StudyRun("ecmp", "7", (3.0, 1.0), (2.5, 1.0), 2, 0.5, True),
    )
    study = Study(SPEC, 2, 1000, runs, 1.5)
    value = study.to_dict()
    assert {name: value[name] for name in PLACE} == PLACE
    assert (value["size_bytes"], value["ideal_ps"], value["gain"]) == (1000, 1_500_000_000_000, 1.5)
    first = value["runs"][0]
    assert first["measured_ps"] == [1_000_000_000_000, 2_000_000_000_000]
    assert (first["deviation"], first["max_link_load"]) == (0.25, 1)
    row = study.to_frame().to_pylist()[0]
    assert row["measured_ps"] == "1000000000000 2000000000000"
    assert row["counters_agree"] is True


def test_plans_on_a_clos() -> None:
    ring = hk.topology.ring(4, bandwidth="1 GB/s", latency="1 us")
    plan = hk.plan("all-reduce", ring, size="1 MB", algorithm="ring")
    plans = ClosPlans(SPEC, (ClosPlan(plan, "ecmp", (0.3, 0.1, 0.2), 0.1, 0, 8, 1.5, 0.5),))
    value = plans.to_dict()
    assert {name: value[name] for name in PLACE} == PLACE
    (run,) = value["runs"]
    assert (run["algorithm"], run["collective"], run["size_bytes"]) == ("ring", "all-reduce", 10**6)
    assert (run["measured_ps"], run["fullest_link_to_mean"]) == (200_000_000_000, 1.5)
    assert "plan" not in run
    assert plans.to_frame().to_pylist()[0]["times_ps"].count(" ") == 2


def test_steered_flows() -> None:
    rows = tuple(SteeredRow("model", each, 1, 5, 4, 2e-6) for each in ("tcp", "udp"))
    value = Steered(rows).to_dict()
    assert (value["flows"], value["right"]) == (10, 8)
    assert value["rows"][0]["port_elapsed_ps"] == 2_000_000
