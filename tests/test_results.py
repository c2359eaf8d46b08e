"""Results as data: dictionaries that JSON takes, frames, reprs, and tables of notebooks."""

from __future__ import annotations

import json
from typing import Any

import pytest

import hocket as hk


def product() -> hk.Topology:
    return hk.topology.product("Ring_SW", [2, 4], bandwidth=["10 GB/s"] * 2, latency=["100 ns"] * 2)


def results() -> dict[str, Any]:
    """Give one of each result."""
    on = product()
    plan = hk.plan("all-reduce", on, size="1 MB", algorithm="themis")
    cluster = hk.routing.cluster("clos:4x4", gpus_per_host=4, nics_per_host=4)
    jobs = [hk.routing.Job("one", model="bloom", data=2, tensor=2, pipeline=1, iterations=2)]
    return {
        "plan": plan,
        "synthesized": hk.plan("all-reduce", on, size="1 MB", algorithm="greedy"),
        "synthesis": hk.plan("all-reduce", on, size="1 MB", algorithm="greedy").synthesis,
        "schedule": plan.schedule,
        "run": hk.simulate(plan),
        "packets": hk.simulate(plan, fidelity="packet"),
        "dimension run": hk.simulate(plan, fidelity="dimension"),
        "comparison": hk.compare("all-reduce", on, size="1 MB"),
        "advice": hk.advise_dimensions(on),
        "training run": hk.train("alexnet", on),
        "training comparison": hk.training.compare_training("alexnet", on, ["themis", "none"]),
        "search": hk.training.search_parallels("alexnet", on, most=2),
        "cluster run": hk.routing.simulate(cluster, jobs),
    }


RESULTS = results()
TABLES = [name for name, each in RESULTS.items() if hasattr(each, "to_frame")]


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_a_dictionary_that_json_takes(name: str) -> None:
    value = RESULTS[name].to_dict()
    assert json.loads(json.dumps(value)) == value
    assert not [key for key in value if key.endswith(("_s", "seconds")) and "_per_s" not in key]


@pytest.mark.parametrize("name", RESULTS)
def test_a_repr_is_one_short_line(name: str) -> None:
    text = repr(RESULTS[name])
    assert "\n" not in text
    if name not in ("synthesis", "advice"):  # dataclasses of a few numbers
        assert len(text) < 160


@pytest.mark.parametrize("name", RESULTS)
def test_a_notebook_gets_a_table(name: str) -> None:
    html = RESULTS[name]._repr_html_()
    assert html.startswith("<table>")
    assert html.count("<tr>") == html.count("</tr>") > 1


def test_names_are_escaped_in_notebooks() -> None:
    named = hk.topology.ring(3, bandwidth="1 GB/s", latency="1 us").with_name("<script>")
    plan = hk.plan("all-reduce", named, size="1 MB", algorithm="ring", chunks=1)
    assert "<td>&lt;script&gt;</td>" in plan._repr_html_()


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_an_arrow_table(name: str) -> None:
    pa = pytest.importorskip("pyarrow")
    frame = RESULTS[name].to_frame()
    assert isinstance(frame, pa.Table)
    assert frame.num_rows > 0
    assert pa.table(RESULTS[name]).equals(frame)  # by __arrow_c_stream__


def test_rows_of_a_comparison() -> None:
    comparison = RESULTS["comparison"]
    rows = comparison.to_frame().to_pylist()
    assert [row["algorithm"] for row in rows] == [entry.algorithm for entry in comparison]
    assert [row["time_ps"] for row in rows] == [entry.run.time_ps for entry in comparison]
    assert [row["gap"] for row in rows] == [entry.run.gap for entry in comparison]


def test_figures_of_a_run_are_those_of_its_properties() -> None:
    run = RESULTS["run"]
    value = run.to_dict()
    assert value["time_ps"] == run.time_ps
    assert value["bound_ps"] == run.lower_bound.time_ps
    assert value["algbw_bytes_per_s"] == run.algbw
    assert value["dimensions"][1]["utilization"] == run.dimensions[1].utilization
    assert value["transfers"] == len(run.plan)
    assert value["npus"] == list(range(8))
