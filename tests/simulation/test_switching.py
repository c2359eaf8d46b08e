"""How devices pass messages on, and dimensions that sum: files, plans, options, reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from hocket.cli import run as command
from hocket.topology.json import topology_from_json, topology_to_json
from hocket.topology.text import from_file

DIMS = """\
dims:
  - {kind: Ring, size: 4, bandwidth: 1 GB/s, latency: 1 us}
  - {kind: Switch, size: 2, bandwidth: 1 GB/s, latency: 1 us}
"""
LINKS = "npus: [a, b]\nswitches: [s]\nlinks:\n  - [a, s, 1 GB/s, 1 us]\n  - [s, b, 1 GB/s, 1 us]\n"
RING = "builder: ring\nnpus: 4\nbandwidth: 1 GB/s\nlatency: 1 us\n"
SWITCH = "builder: switch\nnpus: 4\nbandwidth: 1 GB/s\nlatency: 1 us\n"
LINK = {"bandwidth": ["1 GB/s"] * 2, "latency": ["1 us"] * 2}


def saved(folder: Path, text: str) -> Path:
    file = folder / "net.yml"
    file.write_text(text, encoding="utf-8")
    return file


def refusal(folder: Path, text: str) -> str:
    file = saved(folder, text)
    with pytest.raises(hk.SpecError) as error:
        hk.topology.load(file)
    message = str(error.value).removeprefix(str(file))
    assert len(message.splitlines()) == 1
    return message


@pytest.mark.parametrize(
    ("text", "own"),
    [
        (DIMS, "cut-through"),
        (DIMS.replace("Switch", "Line"), "store-and-forward"),
        (DIMS.replace("Switch, size: 2", "Switch, size: 1"), "store-and-forward"),
        (LINKS, "store-and-forward"),
        (RING, "store-and-forward"),
        (SWITCH, "cut-through"),
    ],
)
def test_switching_of_a_file(tmp_path: Path, text: str, own: str) -> None:
    assert hk.topology.load(saved(tmp_path, text)).switching == own
    for chosen in ("cut-through", "store-and-forward"):
        topology = hk.topology.load(saved(tmp_path, f"{text}switching: {chosen}\n"))
        assert topology.switching == chosen


def test_switching_outlasts_failures(tmp_path: Path) -> None:
    failed = "switching: cut-through\nfailed: {nodes: [npu0]}\n"
    assert hk.topology.load(saved(tmp_path, RING + failed)).switching == "cut-through"


def test_astra_sim_networks_are_products(tmp_path: Path) -> None:
    text = "topology: [Ring, Switch]\nnpus_count: [2, 4]\nbandwidth: [1, 1]\nlatency: [1, 1]\n"
    topology = hk.topology.load(saved(tmp_path, text))
    assert topology.switching == "cut-through"
    assert not any(offload for *_, offload in topology.dimensions)


def test_offload_of_a_file(tmp_path: Path) -> None:
    text = DIMS.replace("size: 2,", "size: 2, offload: true,")
    topology = hk.topology.load(saved(tmp_path, text))
    assert [offload for *_, offload in topology.dimensions] == [False, True]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            DIMS + "switching: cut-thru\n",
            ", line 4: switching: there is no 'cut-thru'; did you mean 'cut-",
        ),
        (DIMS + "switching: 1\n", ", line 4: switching: there is no 1; use store-and-forward or"),
        (
            DIMS.replace("size: 4,", "size: 4, offload: true,"),
            ", line 2: dims[0]: a Ring has no switches that could sum; leave offload: to a Switch",
        ),
        (
            DIMS.replace("size: 2,", "size: 2, offload: 1,"),
            ", line 3: dims[1].offload: 1 is neither true nor false; write one of them",
        ),
        (
            DIMS.replace("1 GB/s", "0 GB/s"),
            ", line 2: dims[0].bandwidth: '0 GB/s' ",
        ),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, says: str) -> None:
    assert refusal(tmp_path, text).startswith(says)


def test_products() -> None:
    plain = hk.topology.product("Ring_SW", [4, 2], **LINK)
    assert plain.switching == "cut-through"
    assert plain == hk.topology.product(
        "Ring_SW", [4, 2], **LINK, offload=[False, False], switching="cut-through"
    )
    changed = hk.topology.product(
        "Ring_SW", [4, 2], **LINK, offload=[False, True], switching="store-and-forward"
    )
    assert changed.switching == "store-and-forward"
    assert [offload for *_, offload in changed.dimensions] == [False, True]
    assert hk.topology.product("Ring_FC", [4, 2], **LINK).switching == "store-and-forward"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"offload": [True]}, "offload: 1 given for the 2 dimensions of 'Ring_SW'; give a list"),
        ({"offload": True}, "offload: only true given for the 2 dimensions of 'Ring_SW'; give"),
        ({"offload": [True, True]}, r"offload\[0\]: a Ring has no switches that could sum; leave"),
        ({"offload": [False, 1]}, r"offload\[1\]: 1 is neither True nor False; give one of them"),
        ({"switching": "x"}, "switching: there is no 'x'; use store-and-forward or cut-through"),
        ({"bandwidth": ["1 GB/s", "0 GB/s"]}, r"bandwidth\[1\]: '0 GB/s' "),
    ],
)
def test_wrong_products(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(hk.SpecError, match=f"^{says}"):
        hk.topology.product("Ring_SW", [4, 2], **{**LINK, **changes})


@pytest.mark.parametrize("switching", ["store-and-forward", "cut-through"])
@pytest.mark.parametrize("offload", [False, True])
def test_plan_files_keep_both(tmp_path: Path, switching: str, offload: bool) -> None:
    topology = hk.topology.product(
        "Ring_SW", [4, 2], **LINK, offload=[False, offload], switching=switching
    )
    plan = hk.plan("all-reduce", topology, size="1 MB", algorithm="hierarchical", chunks=4)
    plan.save(tmp_path / "plan.parquet")
    again = hk.Plan.load(tmp_path / "plan.parquet")
    assert again.topology == topology
    assert hk.simulate(again).time_ps == hk.simulate(plan).time_ps


def test_values_of_before_are_read() -> None:
    topology = hk.topology.product("Ring_SW", [4, 2], **LINK)
    fields = json.loads(json.dumps(topology_to_json(topology)))
    assert topology_from_json(fields) == topology
    del fields["switching"]
    fields["dimensions"] = [dimension[:4] for dimension in fields["dimensions"]]
    assert topology_from_json(fields) == topology.with_switching("store-and-forward")


def test_a_run_says_what_it_used() -> None:
    topology = hk.topology.switch(4, bandwidth="1 GB/s", latency="1 us")
    plan = hk.plan("all-reduce", topology, size="1 MB", algorithm="halving-doubling", chunks=1)
    own = hk.simulate(plan)
    assert (own.switching, own.order) == ("cut-through", "ready")
    other = hk.simulate(plan, switching="store-and-forward", order="plan")
    assert (other.switching, other.order) == ("store-and-forward", "plan")
    assert own.time_ps == hk.simulate(plan, switching="cut-through", order="ready").time_ps
    assert own.time_ps < other.time_ps


NETWORK = ["-t", "Ring_SW:4x2", "--bandwidth", "1 GB/s", "--latency", "1 us"]


def test_reports_say_what_was_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["compare", "all-reduce", *NETWORK, "-s", "1MB", "-a", "hierarchical", "--json"]
    for given in ([], ["--switching", "store-and-forward"]):
        assert command([*base, *given]) == 0
        (found,) = json.loads(capsys.readouterr().out)["algorithms"]
        assert found["switching"] == (given or ["cut-through"])[-1]
        assert found["order"] == "ready"
    file = str(tmp_path / "plan.parquet")
    plan = ["plan", "all-reduce", *NETWORK, "-s", "1MB", "-a", "hierarchical", "-o", file]
    assert command(plan) == 0
    capsys.readouterr()
    assert command(["simulate", file]) == 0
    assert "cut-through, serve in ready order" in capsys.readouterr().out
    assert command(["simulate", file, "--switching", "store-and-forward", "--order", "plan"]) == 0
    assert "store-and-forward, serve in plan order" in capsys.readouterr().out


def test_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(saved(tmp_path, DIMS.replace("size: 2,", "size: 2, offload: true,")))
    assert command(["topology", "show", file]) == 0
    out = capsys.readouterr().out
    assert "cut-through" in out
    assert "Switch of 2, 1 GB/s, 1 us a link, sums in its switches" in out
    assert command(["topology", "show", file, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["switching"] == "cut-through"
    assert [dimension["offload"] for dimension in shown["dimensions"]] == [False, True]


def test_dimensions_of_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    note = "dimension 2 (Ring) has size 1 and is skipped"
    text = DIMS + "  - {kind: Line, size: 3, bandwidth: 1 GB/s, latency: 1 us}\n"
    text = text.replace("Switch, size: 2", "Ring, size: 1") + "notes: [mine]\n"
    file = saved(tmp_path, text)
    assert from_file(file).notes == ("mine", note)
    topology = hk.topology.load(file)
    one = {"bandwidth": ["1 GB/s"] * 3, "latency": ["1 us"] * 3}
    assert topology == hk.topology.product("Ring_Ring_Line", [4, 1, 3], **one)
    assert command(["topology", "show", str(file)]) == 0
    assert f"note: {note}" in capsys.readouterr().out
    link = ["--bandwidth", "1 GB/s", "--latency", "1 us"]
    assert command(["topology", "show", "FC_R:4x1", *link, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == [note]
    plan = hk.plan("all-reduce", topology, size="1 MB", algorithm="hierarchical", chunks=4)
    plan.save(tmp_path / "plan.parquet")
    assert command(["simulate", str(tmp_path / "plan.parquet")]) == 0
    lines = capsys.readouterr().out.splitlines()
    (skipped,) = [line for line in lines if "dimension 2" in line]
    assert "Ring of 1: skipped" in skipped
    (third,) = [line for line in lines if "dimension 3" in line]
    assert "Line of 3" in third


def test_a_bandwidth_of_0_names_its_dimension(capsys: pytest.CaptureFixture[str]) -> None:
    rates = ["--bandwidth", "1 GB/s,0 GB/s", "--latency", "1 us"]
    assert command(["topology", "show", "Ring_SW:4x2", *rates]) == 2
    error = "hocket: --bandwidth, dimension 2: '0 GB/s' is 0; give it more than 0\n"
    assert capsys.readouterr().err == error
