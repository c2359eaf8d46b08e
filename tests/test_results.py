"""Results as data: dictionaries that JSON takes, frames, reprs, and tables of notebooks."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from pydantic import TypeAdapter

import hocket as hk
from hocket._results import HIDDEN, Column, Result, TableResult, figure, picoseconds, said
from hocket._schema import typed
from hocket.cli.table import table_of


def product() -> hk.Topology:
    return hk.topology.product("Ring_SW", [2, 4], bandwidth=["10 GB/s"] * 2, latency=["100 ns"] * 2)


@cache
def rails() -> hk.Plan:
    return hk.plan("all-reduce", product(), size="1 MB", algorithm="themis")


@cache
def synthesized() -> hk.Plan:
    return hk.plan("all-reduce", product(), size="1 MB", algorithm="greedy")


def cluster_run() -> Any:
    cluster = hk.routing.cluster("clos:4x4", gpus_per_host=4, nics_per_host=4)
    jobs = [hk.routing.Job("one", model="bloom", data=2, tensor=2, pipeline=1, iterations=2)]
    return hk.routing.simulate(cluster, jobs)


RESULTS: dict[str, Callable[[], Any]] = {
    "plan": rails,
    "synthesized": synthesized,
    "synthesis": lambda: synthesized().synthesis,
    "schedule": lambda: rails().schedule,
    "run": lambda: hk.simulate(rails()),
    "packets": lambda: hk.simulate(rails(), fidelity="packet"),
    "dimension run": lambda: hk.simulate(rails(), fidelity="dimension"),
    "comparison": lambda: hk.compare("all-reduce", product(), size="1 MB"),
    "advice": lambda: hk.advise_dimensions(product()),
    "training run": lambda: hk.train("alexnet", product()),
    "training comparison": lambda: hk.training.compare_training(
        "alexnet", product(), ["themis", "none"]
    ),
    "search": lambda: hk.training.search_parallels("alexnet", product(), most=2),
    "cluster run": cluster_run,
    "tuner table": lambda: hk.nccl.tuner_table("dgx1_v100"),  # its last size is 2^64 - 1
}
NO_TABLE = {"synthesis", "run", "packets", "dimension run"}


@cache
def result(name: str) -> Any:
    """Return one of each result; made when a test first asks, not when tests are collected."""
    return RESULTS[name]()


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_a_dictionary_that_json_takes(name: str) -> None:
    value = result(name).to_dict()
    assert json.loads(json.dumps(value)) == value
    assert not [key for key in value if key.endswith(("_s", "seconds")) and "_per_s" not in key]


@pytest.mark.parametrize("name", RESULTS)
def test_a_repr_is_one_short_line(name: str) -> None:
    text = repr(result(name))
    assert "\n" not in text
    if name not in ("synthesis", "advice"):  # dataclasses of a few numbers
        assert len(text) < 160


@pytest.mark.parametrize("name", RESULTS)
def test_a_notebook_gets_a_table(name: str) -> None:
    html = result(name)._repr_html_()
    assert html.startswith("<table>")
    assert html.count("<tr>") == html.count("</tr>") > 1


def test_names_are_escaped_in_notebooks() -> None:
    named = hk.topology.ring(3, bandwidth="1 GB/s", latency="1 us").with_name("<script>")
    plan = hk.plan("all-reduce", named, size="1 MB", algorithm="ring", chunks=1)
    assert "<td>&lt;script&gt;</td>" in plan._repr_html_()


@pytest.mark.parametrize("name", RESULTS)
def test_a_table_is_an_arrow_table(name: str) -> None:
    pa = pytest.importorskip("pyarrow")
    assert hasattr(result(name), "to_frame") == (name not in NO_TABLE)
    if name in NO_TABLE:
        return
    frame = result(name).to_frame()
    assert isinstance(frame, pa.Table)
    assert frame.num_rows > 0
    assert pa.table(result(name)).equals(frame)  # by __arrow_c_stream__


def test_rows_of_a_comparison() -> None:
    comparison = result("comparison")
    rows = comparison.to_frame().to_pylist()
    assert [row["algorithm"] for row in rows] == [entry.algorithm for entry in comparison]
    assert [row["time_ps"] for row in rows] == [entry.run.time_ps for entry in comparison]
    assert [row["gap"] for row in rows] == [entry.run.gap for entry in comparison]


def test_figures_of_a_run_are_those_of_its_properties() -> None:
    run = result("run")
    value = run.to_dict()
    assert value["time_ps"] == run.time_ps
    assert value["bound_ps"] == run.lower_bound.time_ps
    assert value["algbw_bytes_per_s"] == run.algbw
    assert value["dimensions"][1]["utilization"] == run.dimensions[1].utilization
    assert value["transfers"] == len(run.plan)
    assert value["npus"] == list(range(8))


@dataclass(frozen=True)
class Place(Result):
    """A place."""

    name: str
    height: float = field(metadata=said("height_m"))


@dataclass(frozen=True)
class Trip(Result):
    """A trip, told as results are."""

    seconds: float | None = field(metadata=said("time_ps", of=picoseconds))
    top: Place | None = field(metadata=said(parts=Place))
    start: Place = field(metadata=said(inline=Place, but=("height",)))
    notes: list[str]
    secret: str = field(default="", metadata=HIDDEN)

    @property
    @figure(only="rows")
    def is_known(self) -> bool:
        """Whether there is a place above others."""
        return self.top is not None

    @property
    @figure("words", only="table", column=Column("notes", leaves=0, leaves_alike=3, nothing="none"))
    def _words(self) -> str | None:
        return " and ".join(self.notes) or None

    @figure("note_count")
    def __len__(self) -> int:
        """How many notes there are."""
        return len(self.notes)


@dataclass(frozen=True)
class Trips(TableResult):
    """Several."""

    _table = "trips"

    trips: tuple[Trip, ...]


def test_all_that_a_result_is_made_into_follows_from_its_fields() -> None:
    far = Trip(1.5, Place("peak", 8.0), Place("home", 1.0), ["a", "b"])
    assert far.to_dict() == {
        "time_ps": 1_500_000_000_000,
        "top": {"name": "peak", "height_m": 8.0},
        "name": "home",
        "notes": ["a", "b"],
        "note_count": 2,
    }
    near = Trip(None, None, Place("home", 1.0), [])
    rows = Trips((far, near)).to_frame().to_pylist()
    assert [each["top_height_m"] for each in rows] == [8.0, None]
    names = ["time_ps", "top_name", "top_height_m", "name", "is_known", "note_count"]
    assert list(rows[0]) == names
    assert [each["is_known"] for each in rows] == [True, False]
    lines = table_of(Trips((far, near))).lines()
    assert [line.strip("│ ") for line in lines if line.startswith("│")] == ["a and b", "none"]
    schema = TypeAdapter(typed(Trips)).json_schema()["$defs"]["Trip"]
    assert set(schema["properties"]) == set(far.to_dict())
    assert schema["properties"]["note_count"]["description"] == "How many notes there are."
    assert schema["properties"]["time_ps"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
