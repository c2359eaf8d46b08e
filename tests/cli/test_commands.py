"""Every command does what it says: tables, JSON, files, pictures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import hocket as hk

RING = ("--topology", "ring:4", "--bandwidth", "1 GB/s", "--latency", "1 us")
PLAN = ("plan", "all-reduce", *RING, "-s", "1MB", "-a", "ring", "-c", "1")
MAIN = "from hocket.cli import main; main()"
MAGIC = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


def ring4() -> hk.Topology:
    return hk.topology.ring(4, bandwidth="1 GB/s", latency="1 us")


def test_version(hocket: Any) -> None:
    result = hocket("--version")
    assert (result.code, result.out, result.err) == (0, f"hocket {hk.__version__}\n", "")


def test_nothing_given_shows_the_help(hocket: Any) -> None:
    for argv in ((), ("topology",)):
        result = hocket(*argv)
        assert result.code == 2
        assert "Usage: hocket" in result.out + result.err
        assert "stopped" not in result.err


def test_compare_prints_a_table(hocket: Any) -> None:
    result = hocket("compare", "all-reduce", "-t", "dgx1_v100", "-s", "256MB")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0].startswith("all-reduce of 256 MB among 8 NPUs of dgx1_v100")
    for word in ("time", "algbw", "busbw", "gap", "busiest link", "max load"):
        assert word in lines[2]
    rows = [line for line in lines if line.startswith("│")]
    assert {"ring", "direct", "greedy"} < {row.split()[1] for row in rows}
    assert [row.split()[1] for row in rows[:2]] == ["nccl-ring", "trees"]
    assert rows[-1].split()[1] == "nccl"
    assert "nccl: NCCL 2.30.7 picks ring with Simple" in result.out
    assert "bound 2.987 ms: partition into 8 single NPUs" in result.out
    assert "; all plans proved\n" in result.out
    assert result.out.endswith(" algorithms do not apply here (--why)\n")
    why = hocket("compare", "all-reduce", "-t", "dgx1_v100", "-s", "256MB", "--why").out
    assert "left out: hierarchical" in why
    assert "left out: binomial" not in why  # it is for other collectives


def test_compare_names_what_failed(hocket: Any) -> None:
    options = ("-t", "dgx1_v100", "-s", "256MB", "--failed", "gpu0,gpu1", "-a", "ring")
    result = hocket("compare", *options)
    assert result.code == 0
    assert "of dgx1_v100 without gpu0,gpu1" in result.out


def test_compare_json_is_what_python_gives(hocket: Any) -> None:
    result = hocket("compare", "all-gather", *RING, "-s", "1MB", "--npus", "npu3,0-2", "--json")
    assert (result.code, result.err) == (0, "")
    values = result.json()
    expected = hk.compare("all-gather", ring4(), size="1 MB", npus=[3, 0, 1, 2])
    assert values["collective"] == "all-gather"
    assert values["npus"] == [3, 0, 1, 2]
    assert values["size_bytes"] == 1_000_000
    assert values["bound"]["time_ps"] == expected.bound.time_ps
    assert values["bound"]["witness"] == expected.bound.witness
    assert values["refused"] == expected.refused
    assert [each["algorithm"] for each in values["algorithms"]] == [e.algorithm for e in expected]
    for each, entry in zip(values["algorithms"], expected, strict=True):
        assert each["chunks"] == entry.chunks
        assert each["time_ps"] == entry.run.time_ps
        assert each["algbw_bytes_per_s"] == entry.run.algbw
        assert each["busbw_bytes_per_s"] == entry.run.busbw
        assert each["gap"] == entry.run.gap
        assert each["max_link_bytes"] == entry.run.max_link_bytes
        assert each["transfers"] == len(entry.plan)
        assert each["verified"] is True


def test_compare_hands_its_options_on(hocket: Any) -> None:
    given = ("--order", "plan", "--switching", "cut-through", "--latency-model", "occupying")
    argv = ("compare", "broadcast", "-t", "switch:5", "--bandwidth", "2 GB/s", "--latency", "3 us")
    result = hocket(*argv, "-s", "1MB", "-a", "chain", "-c", "7", "--root", "2", *given, "--json")
    topology = hk.topology.switch(5, bandwidth="2 GB/s", latency="3 us")
    plan = hk.plan("broadcast", topology, size="1 MB", algorithm="chain", chunks=7, root=2)
    run = hk.simulate(plan, order="plan", switching="cut-through", latency_model="occupying")
    assert [each["time_ps"] for each in result.json()["algorithms"]] == [run.time_ps]


def test_a_bound_below_a_picosecond_is_no_division_by_zero(hocket: Any) -> None:
    link = ("--bandwidth", "8000000 TB/s", "--latency", "0 ns")
    argv = ("compare", "all-reduce", "-t", "ring:4", *link, "-s", "100 B")
    assert hocket(*argv, "--plot", "times.png").code == 0
    values = hocket(*argv, "--json").json()
    assert all(each["gap"] >= 0 for each in values["algorithms"])


@pytest.mark.parametrize("suffix", MAGIC)
def test_pictures(hocket: Any, folder: Path, suffix: str) -> None:
    assert hocket(*PLAN, "-o", "plan.parquet").code == 0
    compare = ("compare", "all-reduce", *RING, "-s", "1MB", "--plot", f"times{suffix}")
    assert hocket(*compare).code == 0
    assert hocket("simulate", "plan.parquet", "--plot", f"heat{suffix}").code == 0
    draw = ("topology", "draw", "dgx1_v100", "--failed", "gpu0,gpu1", "-o", f"net{suffix}")
    assert hocket(*draw).out == f"drawn to net{suffix}\n"
    for name in ("times", "heat", "net"):
        data = (folder / f"{name}{suffix}").read_bytes()
        assert data.startswith(MAGIC[suffix])
        assert len(data) > 4_000
    written = {path.name for path in folder.iterdir()}
    assert written == {"plan.parquet", *(f"{name}{suffix}" for name in ("times", "heat", "net"))}


def test_pictures_hold_their_words_and_are_the_same_each_time(hocket: Any, folder: Path) -> None:
    assert hocket("topology", "draw", "dgx1_v100", "-o", "a.svg").code == 0
    assert hocket("topology", "draw", "dgx1_v100", "-o", "b.svg").code == 0
    assert (folder / "a.svg").read_bytes() == (folder / "b.svg").read_bytes()


@pytest.mark.parametrize(
    ("network", "more", "is_schematic"),
    [
        ("dgx1_v100", [], False),
        ("dgx1_v100", ["--schematic"], True),
        ("clos:4x4x8", [], False),
        ("mesh:9x9", [], True),
        ("mesh:9x9", ["--full"], False),
        ("clos:8x32x4", ["--failed", "spine1", "--failed", "tor5,spine0"], True),
    ],
)
def test_large_networks_are_drawn_as_schematics(
    hocket: Any, folder: Path, network: str, more: list[str], is_schematic: bool
) -> None:
    link = ["--bandwidth", "25 GB/s", "--latency", "1 us"] if ":" in network else []
    result = hocket("topology", "draw", network, *link, *more, "-o", "a.svg")
    assert (result.code, result.err) == (0, "")
    text = (folder / "a.svg").read_text(encoding="utf-8")
    assert ("the widest" in text) != is_schematic  # only where every device is drawn
    if "--failed" in more:
        assert "failed: spine1, tor5–spine0" in text


def test_plan_says_what_it_made(hocket: Any, folder: Path) -> None:
    result = hocket(*PLAN, "-o", "plan.parquet")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "ring all-reduce of 1 MB among 4 NPUs of ring 4: 24 transfers of 4 chunks, proved",
        "time 1.506 ms: 100.5% above the bound, 751 us",
        "written to plan.parquet",
    ]
    assert len(hk.Plan.load(folder / "plan.parquet")) == 24
    assert "not kept" in hocket(*PLAN).out


def test_plan_json(hocket: Any) -> None:
    options = ("--root", "npu2", "--npus", "1-3", "--no-in-place", "-c", "5", "--json")
    argv = ("plan", "broadcast", *RING, "-s", "1MB", "-a", "chain", *options)
    values = hocket(*argv, "-o", "plan.parquet").json()
    plan = hk.Plan.load("plan.parquet")
    assert values == {
        "format": "hocket.plan",
        "version": 1,
        "algorithm": "chain",
        "collective": "broadcast",
        "topology": "ring 4",
        "npus": [1, 2, 3],
        "root": 2,
        "size_bytes": 1_000_000,
        "in_place": False,
        "chunk_count": 5,
        "routing": "balanced",
        "link_order": "ready",
        "transfers": 10,
        "verified": True,
        "reproducible": True,
        "synthesis": None,
        "trees": None,
        "selection": None,
        "time_ps": hk.simulate(plan.verify()).time_ps,
        "bound_ps": hk.bound(plan.topology, plan.collective).time_ps,
        "file": "plan.parquet",
    }


def test_a_picture_of_packets(hocket: Any, folder: Path) -> None:
    hocket(*PLAN, "-o", "plan.parquet")
    packet = ("simulate", "plan.parquet", "--fidelity", "packet", "--preset", "mcm")
    for name in ("a.png", "b.png"):
        result = hocket(*packet, "--plot", name)
        assert (result.code, result.err) == (0, "")
        assert "8192 B in flits of 512 B, 4 virtual channels of 318" in result.out
    assert hocket("simulate", "plan.parquet", "--plot", "links.png").code == 0
    drawn = [(folder / name).read_bytes() for name in ("a.png", "b.png", "links.png")]
    assert drawn[0].startswith(b"\x89PNG")
    assert drawn[0] == drawn[1] != drawn[2]


def test_verify_and_simulate_a_file(hocket: Any, folder: Path) -> None:
    hocket(*PLAN, "-o", "plan.parquet")
    verified = hocket("check", "plan.parquet")
    assert verified.code == 0
    proved, reproducible = verified.out.splitlines()
    assert proved.endswith("24 transfers of 4 chunks: proved")
    assert reproducible == "reproducible: sums have the same bits in every timing"
    assert hocket("check", "plan.parquet", "--json").json()["verified"] is True

    run = hk.simulate(hk.plan("all-reduce", ring4(), size="1 MB", algorithm="ring", chunks=1))
    shown = hocket("simulate", "plan.parquet", "-o", "run.parquet")
    assert shown.code == 0
    for word in ("1.506 ms", "bound", "gap", "busiest link", "proved"):
        assert word in shown.out
    values = hocket("simulate", "plan.parquet", "--json").json()
    assert values["time_ps"] == run.time_ps == 1_506_000_000
    assert values["utilization"] == run.utilization
    table = pq.read_table(folder / "run.parquet")
    plan = pq.read_table(folder / "plan.parquet").column_names
    assert table.column_names == [*plan, "start_ps", "end_ps"]
    assert np.array_equal(table["end_ps"].to_numpy(), run.end_ps)
    assert max(table["end_ps"].to_pylist()) == run.time_ps


def test_an_older_file_is_replaced(hocket: Any, folder: Path) -> None:
    (folder / "plan.parquet").write_text("old")
    assert hocket(*PLAN, "-o", "plan.parquet").code == 0
    assert hocket("check", "plan.parquet").code == 0
    assert [path.name for path in folder.iterdir()] == ["plan.parquet"]


def test_algorithms(hocket: Any) -> None:
    table = hocket("plan", "--list").out
    values = hocket("plan", "--list", "--json").json()["algorithms"]
    assert [each["name"] for each in values] == [each.name for each in hk.algorithms()]
    for each in values:
        assert each["name"] in table
        assert each["summary"]
        assert each["kinds"]


def test_topology_list(hocket: Any) -> None:
    values = hocket("topology", "list", "--json").json()["machines"]
    assert [each["name"] for each in values] == hk.topology.names()
    assert len(values) == 40
    table = hocket("topology", "list").out
    assert all(each["name"] in table for each in values)


def test_topology_show(hocket: Any) -> None:
    result = hocket("topology", "show", "mesh:9x9", "--bandwidth", "25GB/s", "--latency", "21 ns")
    facts = {
        line.strip("│").split("│")[0].strip(): line.strip("│").split("│")[1].strip()
        for line in result.out.splitlines()
        if line.startswith("│")
    }
    assert facts["NPUs"] == "81"
    assert facts["links (directed)"] == "288"
    assert facts["diameter"] == "16 links"
    assert facts["diameter in latency"] == "336 ns"
    assert facts["connected"] == "yes"
    listed = hocket("topology", "show", "dgx1_v100", "--links").out
    assert "gpu0" in listed
    assert "source:" in listed


def test_topology_json_is_what_python_gives(hocket: Any) -> None:
    failed = ("--failed", "gpu0,gpu1", "--failed", "gpu7")
    values = hocket("topology", "show", "dgx1_v100", *failed, "--json").json()
    topology = hk.topology.load("dgx1_v100").without(["gpu7"], [("gpu0", "gpu1")])
    found = topology.inspect()
    assert values["npus"] == topology.device_names
    assert values["link_count"] == found.links == len(values["links"])
    assert values["diameter_hops"] == found.diameter_hops
    assert values["bisection_bytes_per_s"] == found.bisection_bandwidth
    ends = {(link["src"], link["dst"]) for link in values["links"]}
    assert ("gpu0", "gpu1") not in ends
    assert sum(link["bandwidth_bytes_per_s"] for link in values["links"]) == found.total_bandwidth


def in_a_process(*argv: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", MAIN, *argv],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(Path(hk.__file__).parent.parent), **more},
        timeout=120,
        check=False,
    )


def test_a_real_process(folder: Path) -> None:
    made = in_a_process(*PLAN, "-o", "plan.parquet")
    assert (made.returncode, made.stderr) == (0, "")
    assert "written to plan.parquet" in made.stdout
    wrong = in_a_process("check", "nothing.parquet")
    assert wrong.returncode == 2
    assert wrong.stdout == ""
    assert wrong.stderr.count("\n") == 1


@pytest.mark.parametrize("streams", [">&-", ">&- 2>&-"])
def test_a_closed_output_is_said_in_a_line(streams: str) -> None:
    words = f"'{sys.executable}' -c 'from hocket.cli import main; main()' plan --list {streams}"
    made = subprocess.run(["sh", "-c", words], capture_output=True, encoding="utf-8", check=False)
    said = "hocket: standard output is closed; leave it open, or give >/dev/null\n"
    assert (made.returncode, made.stderr) == (2, "" if "2>" in streams else said)


@pytest.mark.parametrize("name", ["plan.html", "plan.svg", "plan.png"])
def test_a_plan_is_no_picture(hocket: Any, folder: Path, name: str) -> None:
    made = hocket(*PLAN, "-o", name)
    assert made.code == 2
    assert "a plan is written as Parquet; name plan.parquet" in made.err


def test_completion_completes(folder: Path) -> None:
    more = {"_HOCKET_COMPLETE": "complete_bash", "COMP_WORDS": "hocket sim", "COMP_CWORD": "1"}
    assert in_a_process(**more).stdout.split() == ["simulate"]


def test_a_reader_that_has_gone_is_no_error(folder: Path) -> None:
    for argv in (["plan", "--list"], ["topology", "show", "dgx_a100_8box", "--json"]):
        reader, writer = os.pipe()
        os.close(reader)
        run = subprocess.run(
            [sys.executable, "-c", MAIN, *argv],
            stdout=writer,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(hk.__file__).parent.parent)},
            timeout=120,
            check=False,
        )
        os.close(writer)
        assert (run.returncode, run.stderr) == (0, b"")
