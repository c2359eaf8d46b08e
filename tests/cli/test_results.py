"""What ``--json`` prints: the published schema holds for every command that prints a result."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.nccl import dumps

from hocket.cli import schema
from hocket.cli.documents import DOCUMENTS

EXAMPLES = Path(__file__).parents[2] / "examples"
SWEEP = (
    Path(__file__).parents[2]
    / "studies/src/hocket_studies/machines_measured/p5_h100_awsbatch_8ranks.csv"
)
CHAKRA = Path(__file__).parents[1] / "data" / "chakra"
RAILS = ("-t", "Ring_SW:2x4", "--bandwidth", "10 GB/s", "--latency", "100 ns")
LINE = ("-t", "line:4", "--bandwidth", "25 GB/s", "--latency", "21 ns")
MESH = ("-t", "mesh:3x3", "--bandwidth", "25 GB/s", "--latency", "21 ns")

PREDICTIONS = ("prediction", "nccl-prediction", "training-prediction")
"""Whose times are those of a law, not of a simulation that counts in picoseconds."""
COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "plan": ("plan", ("plan", "all-reduce", *MESH, "-s", "1MB", "-a", "greedy")),
    "plan, ring": ("plan", ("plan", "all-reduce", *MESH, "-s", "1MB", "-a", "ring")),
    "plan, exact": ("plan", ("plan", "all-gather", *MESH, "-s", "9MB", "-a", "exact")),
    "plan, trees": ("plan", ("plan", "all-reduce", *MESH, "-s", "1MB", "-a", "trees")),
    "plan, symmetric": (
        "symmetric-plan",
        ("plan", "all-reduce", "-t", "torus:3x3@25GB/s,21ns", "-s", "9MB", "-a", "symmetric"),
    ),
    "verify": ("plan", ("check", "plan.parquet")),
    "export": (
        "exported-file",
        ("export", "plan.parquet", "--to", "msccl", "-o", "written.xml"),
    ),
    "export, folder": (
        "exported-file",
        ("export", "plan.parquet", "--to", "chakra", "-o", "traces"),
    ),
    "check": ("checked-file", ("check", "plan.xml")),
    "import": ("checked-file", ("import", "plan.xml")),
    "simulate": ("run", ("simulate", "plan.parquet")),
    "simulate, flow": ("run", ("simulate", "plan.parquet", "--fidelity", "flow")),
    "simulate, packet": ("run", ("simulate", "plan.parquet", "--fidelity", "packet")),
    "simulate, rails": ("dimension-run", ("simulate", "rails.parquet", "--fidelity", "dimension")),
    "schedule": ("dimension-run", ("plan", "--dimension-only", "all-reduce", *RAILS, "-s", "1MB")),
    "compare": ("comparison", ("compare", "all-reduce", *LINE, "-s", "1MB")),
    "compare, rails": (
        "comparison",
        ("compare", "all-reduce", *RAILS, "-s", "1MB", "-a", "themis", "-a", "ring"),
    ),
    "compare, broadcast": ("comparison", ("compare", "broadcast", *RAILS, "-s", "1MB")),
    "compare, sizes": ("comparisons", ("compare", "all-reduce", *LINE, "-s", "8KB,1MB")),
    "pareto": (
        "pareto",
        ("compare", "--front", "all-reduce", *LINE, "-s", "8KB,1MB", "-a", "ring", "-a", "direct"),
    ),
    "sweep": ("sweep", ("sweep", "sweep.yml", "-o", "rows", "-w", "1")),
    "sweep, count": ("sweep-count", ("sweep", "sweep.yml", "--count")),
    "sweep report": ("sweep-report", ("sweep", "report", "rows")),
    "design": (
        "design",
        (
            "sweep",
            "design",
            "--npus",
            "4",
            "-s",
            "1MB",
            "--costs",
            "prices.yml",
            "-b",
            "500",
            "-w",
            "1",
        ),
    ),
    "timetable": (
        "timetable",
        ("plan", "all-gather", *MESH, "-s", "9MB", "-a", "greedy", "--timetable-only"),
    ),
    "topology advise": ("advice", ("topology", "advise", *RAILS)),
    "topology advise --failures": (
        "failure-advice",
        ("topology", "advise", "--failures", "all-reduce", *MESH, "-s", "1MB", "-a", "ring"),
    ),
    "topology advise --failures, sizes": (
        "failure-advices",
        ("topology", "advise", "--failures", "all-reduce", *MESH, "-s", "8kB,1MB", "-a", "ring"),
    ),
    "train": ("training-run", ("train", "alexnet", *RAILS)),
    "train, pipeline": (
        "training-run",
        ("train", "alexnet", "-t", "dgx1_v100", "-p", "dp=4,pp=2", "-a", "ring"),
    ),
    "train, chiplet": ("training-run", ("train", "alexnet", *MESH, "--npu", "chiplet")),
    "compare-training": ("training-comparison", ("train", "--compare", "alexnet", *RAILS)),
    "compare-training, search": (
        "training-comparison",
        ("train", "--compare", "alexnet", *RAILS, "--search", "1"),
    ),
    "topology list": ("machines", ("topology", "list")),
    "topology show": ("topology", ("topology", "show", *RAILS[1:])),
    "topology show, machine": ("topology", ("topology", "show", "dgx1_v100")),
    "algorithms": ("algorithms", ("plan", "--list")),
    "deploy": (
        "deployed",
        ("deploy", "-t", "fully-connected:4@25GB/s,1us", "--sizes", "8K:8K", "-o", "deployed"),
    ),
    "schedules": ("schedules", ("plan", "--dimension-only", "--list")),
    "workload list": ("workloads", ("workload", "list")),
    "workload show": ("workload", ("workload", "show", "gpt3-175b")),
    "workload show, measured": ("workload", ("workload", "show", "measured.yml")),
    "workload show, chiplet": ("workload-cycles", ("workload", "show", "alexnet")),
    "trace show": ("trace", ("trace", "show", str(CHAKRA / "all_reduce"))),
    "trace run": (
        "trace-run",
        ("trace", "run", str(CHAKRA / "all_reduce"), "-t", "ring:4@25GB/s,1us"),
    ),
    "view": ("structures", ("show", "plan.parquet")),
    "view, heat": ("link-heat", ("show", "plan.parquet", "--heat")),
    "view, ten": ("time-expanded", ("show", "plan.parquet", "--ten", "--chunk", "0")),
    "predict": ("prediction", ("predict", "all-reduce", "-t", "hgx_h200_8gpu", "-s", "1MiB")),
    "predict-training": (
        "training-prediction",
        ("predict", "--training", "gpt3-175b", "-p", "dp=4,tp=8,pp=12", "--batch", "16"),
    ),
    "predict --nccl": (
        "nccl-prediction",
        ("predict", "--nccl", "all-reduce", "-t", "hgx_h200_8gpu", "-s", "1MiB"),
    ),
    "nccl audit": ("nccl-audit", ("nccl", "audit", "topo.xml", "graph.xml", "--size", "1MiB")),
    "nccl graph": ("nccl-graph", ("nccl", "graph", "topo.xml", "-o", "own.xml")),
    "nccl tuner": (
        "nccl-tuner",
        ("nccl", "tuner", "write", "-t", "hgx_h200_8gpu", "-o", "tuner.csv"),
    ),
    "measured": (
        "measured",
        ("measured", str(SWEEP), "-t", "hgx_h200_8gpu", "--no-plans"),
    ),
    "calibrate --advise": ("measurement-advice", ("calibrate", "--advise", "-t", "hgx_h200_8gpu")),
    "calibrate": ("fitted-profile", ("calibrate", str(SWEEP), "-t", "hgx_h200_8gpu")),
    "run": ("timed-calls", ("run", "--np", "2", "-s", "1KB", "--calls", "2")),
    "autotune": (
        "tuning",
        ("compare", "--table", "--np", "3", "--sizes", "4K", "-o", "table.json"),
    ),
    "doctor": ("installation", ("doctor",)),
    "reproduce": ("reproduction", ("reproduce", "themis", "--figure", "9")),
    "route": ("cluster-run", ("route", str(EXAMPLES / "jobs.yml"), "-f", "clos:32x64")),
    "route, compare": (
        "cluster-runs",
        ("route", str(EXAMPLES / "jobs.yml"), "-f", "clos:32x64", "--compare"),
    ),
}


@pytest.fixture(scope="module")
def validator() -> Any:
    """Give the published schema."""
    return jsonschema.Draft202012Validator(json.loads(schema.schema_text("results")))


def test_the_published_schema_has_every_document(validator: Any) -> None:
    validator.check_schema(validator.schema)
    elsewhere = {
        "pipelined-plan",
        "traced-workload",
        "testbed-study",
        "testbed-steering",
        "calibration",
    }
    elsewhere |= {
        "nccl-asked-tuner",
        "testbed-plans",
        "testbed-clos-plans",
    }  # where a plugin, or a testbed, is built
    kinds = {*DOCUMENTS, *(point.name for point in entry_points(group="hocket.documents"))}
    assert {each for each, _ in COMMANDS.values()} | elsewhere == kinds, (
        "tests of from-torch run where PyTorch is, those of testbeds where one can be built"
    )


SLOW = {"nccl audit", "reproduce", "compare-training", "design"}
"""What computes for seconds."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in COMMANDS]
)
def test_what_is_printed_is_as_published(
    hocket: Any, folder: Path, validator: Any, name: str
) -> None:
    kind, argv = COMMANDS[name]
    if {"plan.parquet", "plan.xml"} & set(argv):
        hocket("plan", "all-reduce", *MESH, "-s", "1MB", "-a", "ring", "-o", "plan.parquet")
    if "topo.xml" in argv:
        (folder / "topo.xml").write_text(dumps.PCI_T4.topology())
        (folder / "graph.xml").write_text(dumps.rings_of(dumps.PCI_T4))
    if "plan.xml" in argv:
        hocket("export", "plan.parquet", "--to", "msccl", "-o", "plan.xml")
    if {"sweep.yml", "rows", "prices.yml"} & set(argv):
        (folder / "prices.yml").write_text("costs: {link: {each: 1, bandwidth: 1 per GB/s}}")
        (folder / "sweep.yml").write_text(
            "command: simulate\nset: {algorithm: ring, size: 1 MB}\ncosts: prices.yml\n"
            "grid: {topology: ['ring:4@25GB/s,1us', 'line:4@25GB/s,1us']}"
        )
    if name == "sweep report":
        hocket("sweep", "sweep.yml", "-o", "rows", "-w", "1")
    if "measured.yml" in argv:
        text = "measured_samples: 7\nlayers: [{name: b, forward: 3 ms}]"
        (folder / "measured.yml").write_text(text)
    if "rails.parquet" in argv:
        hocket("plan", "all-reduce", *RAILS, "-s", "1MB", "-a", "themis", "-o", "rails.parquet")
    value = hocket(*argv, "--json").json()
    assert (value["format"], value["version"]) == (f"hocket.{kind}", 1)
    validator.validate(value)
    times = [key for key in _keys(value) if key.endswith(("_s", "seconds"))]
    if kind in PREDICTIONS:
        times = [key for key in times if key != "time_s"]
    assert times == [key for key in _keys(value) if key.endswith("_per_s")], (
        "times are in picoseconds"
    )


def test_the_schema_refuses_what_is_not_published(validator: Any) -> None:
    advice = {
        "format": "hocket.advice",
        "version": 1,
        "topology": "ring",
        "utilization_fixed": 1.0,
        "utilization_best": 1.0,
        "limiting": [],
        "dimensions": [],
        "pairs": [],
        "verdict": "",
    }
    assert validator.is_valid(advice)
    for wrong in ({**advice, "version": 2}, {**advice, "more": 1}, {**advice, "pairs": None}):
        assert not validator.is_valid(wrong)
    del advice["pairs"]
    assert not validator.is_valid(advice)


def _keys(value: object) -> list[str]:
    if isinstance(value, list):
        return [key for each in value for key in _keys(each)]
    if isinstance(value, dict):
        return [*value, *(key for each in value.values() for key in _keys(each))]
    return []
