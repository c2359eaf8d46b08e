"""Switches that sum and multicast: files, functions, plans that end at them, and what is refused."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import pytest
from tests.topology.topology_files import load, refusal

import hocket as hk
from hocket.cli import run
from hocket.topology.json import topology_from_json, topology_to_json

STAR = """\
npus: 4
switches: [core, {name: edge, limit: 10 GB/s}]
link_kinds: {port: {bandwidth: 100 GB/s, latency: 500 ns}}
links:
  - [npu0, core, port]
  - [npu1, core, port]
  - [npu2, core, port]
  - [npu3, core, port]
  - [npu3, edge, port]
"""
CORE = "offload:\n  - {switches: [core], operations: [sum, multicast], rate: 2 TB/s, trees: 4}\n"
MEASURED_MS = 4.00
"""All-reduce of 1 GiB on eight H100 with NVLS, as nccl-tests reports it."""


def star(folder: Path, offload: str = CORE) -> hk.Topology:
    return load(folder, STAR + offload)


def test_a_file_says_which_switches_can_do_what(tmp_path: Path) -> None:
    network = star(tmp_path)
    assert network.switch_offloads == [(["sum", "multicast"], 2 * 10**12, 4), None]
    assert network.npu_count == 4
    assert star(tmp_path, "").switch_offloads == []
    every = star(tmp_path, "offload: [{switches: all, operations: [all-reduce]}]\n")
    assert every.switch_offloads == [(["all-reduce"], None, None)] * 2
    line = "offload: [{switches: all, operations: [sum]}]\n"
    planes = load(tmp_path, "builder: planes\nnpus: 4\nplanes: 3\n" + BANDWIDTH + line)
    assert planes.switch_offloads == [(["sum"], None, None)] * 3


BANDWIDTH = "bandwidth: 1 GB/s\nlatency: 1 us\n"


@pytest.mark.parametrize(
    ("offload", "message"),
    [
        (
            "offlaod: [{switches: [core], operations: [sum]}]\n",
            "line 10: there is no key 'offlaod'; did you mean 'offload'?",
        ),
        (
            "offload:\n  - {switches: [core], operatoins: [sum]}\n",
            "line 11: offload[0]: there is no key 'operatoins'; did you mean 'operations'?",
        ),
        (
            "offload:\n  - {switches: [core], operations: [sum, mutlicast]}\n",
            "line 11: offload[0].operations[1]: there is no 'mutlicast'; did you mean 'multicast'?",
        ),
        (
            "offload:\n  - {switches: [croe], operations: [sum]}\n",
            "line 11: offload[0].switches[0]: there is no switch 'croe'; did you mean 'core'?",
        ),
        (
            "offload:\n  - {switches: [npu1], operations: [sum]}\n",
            "line 11: offload[0].switches[0]: 'npu1' is an NPU, which needs no offload; switches are core",
        ),
        (
            "offload:\n  - {switches: [core]}\n",
            "line 11: offload[0]: key 'operations' is missing; add it",
        ),
        (
            "offload:\n  - {switches: core, operations: [sum]}\n",
            "line 11: offload[0].switches: there is no 'core'; ",
        ),
        (
            "offload:\n  - {switches: [core], operations: []}\n",
            "line 11: offload[0].operations: [] has 0 entries; write it as [sum, multicast]",
        ),
        (
            "offload:\n  - {switches: [core], operations: [sum], trees: 0}\n",
            "line 11: offload[0].trees: 0 is too small; give at least 1",
        ),
        (
            "offload:\n  - {switches: [core], operations: [sum], rate: 2}\n",
            "line 11: offload[0].rate: 2 ",
        ),
        ("offload: true\n", "line 10: offload: true is not a list; write it as mappings, "),
    ],
)
def test_a_wrong_file_says_what_where_and_what_would_be_right(
    tmp_path: Path, offload: str, message: str
) -> None:
    assert refusal(tmp_path, STAR + offload).startswith(message)


def test_a_function_does_what_a_file_does(tmp_path: Path) -> None:
    plain = star(tmp_path, "")
    offloaded = hk.topology.offloaded
    same = offloaded(plain, ["core"], ["sum", "multicast"], rate="2 TB/s", trees=4)
    assert same == star(tmp_path)
    assert same != plain
    assert offloaded(plain, [4]).switch_offloads[0] == (["sum", "multicast"], None, None)
    assert offloaded(same, "all", []) == plain
    for wrong, text in [
        ({"switches": ["npu0"]}, r"switches\[0\]: 'npu0' is an NPU"),
        ({"switches": [6]}, r"switches\[0\]: there is no switch 6; switches are core, edge"),
        ({"switches": "core"}, "switches: 'core' is not a list; give names"),
        ({"operations": ["add"]}, "operations: there is no 'add'; operations are sum"),
        ({"trees": 0}, "trees: 0"),
        ({"rate": "fast"}, "rate: "),
    ]:
        with pytest.raises(hk.SpecError, match=text):
            offloaded(plain, **wrong)  # type: ignore[arg-type]
    with pytest.raises(hk.SpecError, match="has none"):
        offloaded(hk.topology.ring(4, bandwidth="1 GB/s", latency="1 us"))


def test_copies_and_json_keep_it(tmp_path: Path) -> None:
    network = hk.topology.grouped(star(tmp_path), 2)
    for same in (
        pickle.loads(pickle.dumps(network)),
        copy.deepcopy(network),
        topology_from_json(json.loads(json.dumps(topology_to_json(network)))),
    ):
        assert same == network
        assert same.switch_offloads == network.switch_offloads
    assert "switch_offloads" not in topology_to_json(star(tmp_path, ""))


def test_a_dimension_that_sums_has_switches_that_do() -> None:
    network = hk.topology.product(
        "Ring_SW",
        [2, 4],
        bandwidth=["1 GB/s"] * 2,
        latency=["1 us"] * 2,
        offload=[False, True],
    )
    assert network.switch_offloads == [(["sum", "multicast", "all-reduce"], None, None)] * 2
    plan = hk.plan("all-reduce", network, size="1 MB", algorithm="in-network")
    assert hk.simulate(plan).time_ps >= hk.simulate(plan).lower_bound.time_ps > 0


@pytest.mark.parametrize(
    "machine", ["hgx_h100_8gpu_validated", "hgx_h200_8gpu", "gb200_nvl72", "dgx_h100_4box_quantum2"]
)
def test_shipped_machines_come_within_a_tenth_of_their_bound(machine: str) -> None:
    network = hk.topology.load(machine)
    plan = hk.plan("all-reduce", network, size="1 GiB", algorithm="in-network", chunks=64)
    made = hk.simulate(plan)
    assert made.lower_bound.time_ps <= made.time_ps <= 1.1 * made.lower_bound.time_ps


def test_the_bound_of_an_h100_box_is_no_longer_above_what_was_measured() -> None:
    network = hk.topology.load("hgx_h100_8gpu_validated")
    collective = hk.collective_on("all-reduce", network, "1 GiB")
    forwards = hk.topology.offloaded(network, "all", [])
    assert hk.bound(network, collective).time_ps <= MEASURED_MS * 1e9
    assert hk.bound(forwards, collective).time_ps == pytest.approx(4.70e9, rel=1e-3)


def test_every_fidelity_runs_a_plan_that_ends_at_switches(tmp_path: Path) -> None:
    plan = hk.plan("all-reduce", star(tmp_path), size="256 KiB", algorithm="in-network", chunks=4)
    for fidelity in ("link", "flow", "packet"):
        made = hk.simulate(plan, fidelity=fidelity)
        assert made.time_ps >= made.lower_bound.time_ps > 0
    file = tmp_path / "sums.parquet"
    plan.save(file)
    again = hk.Plan.load(file)
    assert again.topology == plan.topology
    assert hk.simulate(again).time_ps == hk.simulate(plan).time_ps
    for options in (["-o", "rings.svg"], ["--heat", "-o", "heat.svg"], ["--ten", "-o", "ten.svg"]):
        where = [*options[:-1], str(tmp_path / options[-1])]
        assert run(["show", str(file), *where]) == 0
    picture = (tmp_path / "ten.svg").read_text(encoding="utf-8")
    assert "core" in picture
    assert "edge" not in picture


def test_own_plans_name_switches(tmp_path: Path) -> None:
    network = star(tmp_path)
    builder = hk.PlanBuilder(network, hk.collective_on("reduce", network, "1 MB"), name="by hand")
    for npu in ("npu1", "npu2", "npu3"):
        builder.reduce(0, npu, "core")
    builder.reduce(0, "core", "npu0")
    assert builder.build().verify()
    with pytest.raises(hk.SpecError, match="edge"):
        builder.copy(0, "npu3", "edge")
    wrong = hk.PlanBuilder(network, hk.collective_on("all-reduce", network, "1 MB"), name="wrong")
    for npu in range(4):
        wrong.reduce(0, npu, 4)
    for npu in range(4):
        wrong.copy(0, "core", npu)
    with pytest.raises(hk.VerificationError, match="switch core cannot multicast its own sum"):
        wrong.build().verify()


def test_what_cannot_be_planned_is_refused_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plain.yml"
    file.write_text(STAR, encoding="utf-8")
    command = ["plan", "all-reduce", "-t", str(file), "-s", "1MB", "-a", "in-network"]
    assert run(command) == 2
    error = capsys.readouterr().err.strip()
    assert len(error.splitlines()) == 1
    assert "no switch of" in error
    assert "say in the topology which do (offload)" in error


def test_show_says_what_switches_can_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "star.yml"
    file.write_text(STAR + CORE, encoding="utf-8")
    assert run(["topology", "show", str(file)]) == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "offload 1 of 2 switches: sum, multicast, at 2000 GB/s, 4 trees" in shown
    assert run(["topology", "show", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["offload"] == [
        {
            "switch": "core",
            "operations": ["sum", "multicast"],
            "rate_bytes_per_s": 2 * 10**12,
            "trees": 4,
        }
    ]


def test_graphs_keep_it(tmp_path: Path) -> None:
    network = star(tmp_path)
    graph = hk.topology.to_networkx(network)
    assert graph.nodes["core"]["offload"] == {
        "operations": ["sum", "multicast"],
        "rate": 2 * 10**12,
        "trees": 4,
    }
    assert "offload" not in graph.nodes["edge"]
    assert hk.topology.from_networkx(graph).switch_offloads == network.switch_offloads
    graph.nodes["core"]["offload"] = ["sum"]
    with pytest.raises(hk.SpecError, match=r"node 'core': offload: .* give a mapping"):
        hk.topology.from_networkx(graph)
    graph.nodes["core"]["offload"] = {"operations": ["add"]}
    with pytest.raises(hk.SpecError, match="operations: there is no 'add'"):
        hk.topology.from_networkx(graph)
