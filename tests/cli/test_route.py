"""``hocket route``: what its tables show of jobs, and of failures that hit nobody."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Hocket

FABRIC = ("--fabric", "clos:8x8", "--nics-per-host", "4", "--seed", "1")


@pytest.fixture
def jobs(folder: Path) -> str:
    """Five jobs of which the last sends nothing."""
    rows = [f"  - {{name: job{i}, data: {1 if i == 4 else 2}, compute: 400 s}}" for i in range(5)]
    head = "defaults: {parameters: 1e9, tensor: 8, iterations: 2, placement: random}\njobs:\n"
    (folder / "jobs.yml").write_text(head + "\n".join(rows) + "\n")
    return "jobs.yml"


def test_a_job_that_sends_nothing_has_no_times(hocket: Hocket, jobs: str) -> None:
    lines = hocket("route", jobs, *FABRIC).out.splitlines()
    alone = next(line for line in lines if "job4" in line)
    cells = [cell.strip() for cell in alone.strip("│").split("│")]
    assert cells[4:9] == ["–"] * 5
    assert "–" not in next(line for line in lines if "job0" in line)


def test_a_comparison_of_many_jobs_cuts_nothing_off(hocket: Hocket, jobs: str) -> None:
    done = hocket("route", jobs, *FABRIC, "--compare")
    assert done.code == 0
    assert "…" not in done.out
    assert "all-reduce times over the ideal" in done.out
    spray = next(line for line in done.out.splitlines() if "spray" in line)
    assert spray.count("x1.00") == 7


def test_a_failure_that_nobody_notices_is_said_to_be_so(hocket: Hocket, jobs: str) -> None:
    options = (*FABRIC, "--failover", "--outage")
    assert "no failure had to be answered" in hocket("route", jobs, *options, "spine3@5 s").out
    hit = hocket("route", jobs, *FABRIC, "--outage", "spine3@400.01 s").out
    assert "1 failure was answered" in hit


def test_jobs_are_shown_by_perfetto(hocket: Hocket, jobs: str, folder: Path) -> None:
    scheme = ("--scheme", "controller")
    done = hocket("route", jobs, *FABRIC, *scheme, "--perfetto", "jobs.json", "--json")
    assert done.code == 0
    shown = json.loads((folder / "jobs.json").read_text())["traceEvents"]
    spans = [event for event in shown if event["ph"] == "X"]
    run = json.loads(done.out)
    for number, job in enumerate(run["jobs"]):
        for category, start, end in (
            ("compute", "compute_start_ps", "start_ps"),
            ("communication", "start_ps", "end_ps"),
        ):
            own = [each for each in spans if (each["pid"], each["cat"]) == (number, category)]
            times = [(each["ts"] * 1e6, (each["ts"] + each["dur"]) * 1e6) for each in own]
            expected = [
                (each[start], each[end]) for each in job["iterations"] if each[start] < each[end]
            ]
            assert times == [pytest.approx(each, abs=2) for each in expected]
    assert sum(each["cat"] == "decision" for each in spans) == len(run["decisions"]) > 0
    assert hocket("route", jobs, *FABRIC, "--perfetto", "jobs.pftrace").code == 0
    assert (folder / "jobs.pftrace").read_bytes().count(b"communication") == 1 + len(run["jobs"])
    for options, expected_ in (
        (("--perfetto", "jobs.png"), "use .pftrace or .json"),
        (("--compare", "--perfetto", "a.json"), "--perfetto: is of one scheme"),
    ):
        refused = hocket("route", jobs, *FABRIC, *options)
        assert refused.code == 2
        assert expected_ in refused.err
