"""Plans without namespaces: sockets of the loopback interface that keep to links."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import hocket as hk
import hocket_testbed
from hocket import _core
from hocket._core.runtime import Pacer
from hocket.cli import run
from hocket.cli.documents import json_schema
from hocket_testbed import rank_threads
from hocket_testbed.calibrated import Calibration, model_of, predicted
from hocket_testbed.network import NetworkSpec
from hocket_testbed.plan_connections import load_of, on_network

T = hk.topology
NETWORKS = {
    "mesh": T.mesh(2, 2, bandwidth="1 GB/s", latency="1 us"),
    "ring": T.ring(8, bandwidth="1 GB/s", latency="1 us"),
    "box": T.box(2, 2, bandwidth="1 GB/s", latency="1 us"),
}


EXACT = Calibration(1.0, (), 0.0)
"""Links keep to their rates, and a message costs nothing else: no run is quicker than this model."""


def quickest(spec: NetworkSpec, plan: hk.Plan) -> float:
    """The time of a plan over exact links, which no measurement is part of [s]."""
    return predicted(on_network(plan, model_of(spec, EXACT)).verify(), EXACT)


@pytest.mark.parametrize("name", list(NETWORKS))
def test_each_link_carries_the_bytes_of_the_plan(name: str) -> None:
    """Results are checked while they run; links are shared, and routes lead over several."""
    topology = NETWORKS[name]
    spec = NetworkSpec(topology=topology, rate="800 Mb/s", loopback=True)
    model = model_of(spec, EXACT)
    with hocket_testbed.build_network(spec):
        for algorithm in ("ring", "greedy", "direct"):
            made = hk.plan("all-reduce", topology, size="400 kB", algorithm=algorithm, chunks=1)
            plan = on_network(made, model).verify()
            with rank_threads.gathered(spec, plan) as ranks:
                ranks.run()
                before = ranks.carried()
                took = ranks.run()
                after = ranks.carried()
            for link, data in enumerate(load_of(plan)):
                carried = after[link] - before[link]
                # Headers, and the call that brings ranks together.
                assert data <= carried <= data + 3_000 + 100 * len(plan), (algorithm, link)
            busiest = max(
                data / rate for data, rate in zip(load_of(plan), spec.goodput, strict=True)
            )
            # A link makes up for 0.3 ms that it stood idle, once.
            assert took >= busiest - 0.001


def test_a_mesh_and_a_ring_beside_their_simulation() -> None:
    for name, plans in (("mesh", ["ring", "greedy"]), ("ring", ["bidirectional-ring"])):
        spec = NetworkSpec(topology=NETWORKS[name], rate="400 Mb/s", loopback=True)
        with hocket_testbed.build_network(spec):
            study = hocket_testbed.run_plans(spec, plans, size="1.6 MB", repeats=3)
        for row in study.runs:
            # No run is quicker than links are; how much later one is depends on the machine.
            assert row.time > 0.97 * quickest(spec, row.plan)
            assert 1.0 <= row.overhead < 1.01
        # Three runs of a short and three of a long message: what disturbs them moves it both ways.
        assert 0.8 < study.calibration.alone < 1.1
        assert study.calibration.worst == study.calibration.alone
        assert study.to_dict()["medium"] == "loopback"
    assert study.calibration.delay > -0.0003


def test_links_take_time_over_loopback_too() -> None:
    spec = NetworkSpec(topology=NETWORKS["mesh"], rate="400 Mb/s", loopback=True, latency="4 ms")
    with hocket_testbed.build_network(spec):
        study = hocket_testbed.run_plans(spec, ["ring"], size="200 kB", chunks=1, repeats=2)
    (row,) = study.runs
    # Six steps of the ring; messages of 50 kB take about 1 ms.
    assert min(row.times) > 6 * 0.0045
    assert row.predicted > 6 * 0.0045
    assert row.time > 0.97 * quickest(spec, row.plan)


def slow(topology: _core.Topology, rate: str) -> float:
    spec = NetworkSpec(topology=topology, rate=rate, loopback=True)
    model = model_of(spec, EXACT)
    made = hk.plan("all-reduce", topology, size="400 kB", algorithm="ring", chunks=1)
    with rank_threads.gathered(spec, on_network(made, model).verify()) as ranks:
        ranks.run()
        return min(ranks.run() for _ in range(3))


def test_links_of_half_the_rate_take_twice_as_long() -> None:
    topology = NETWORKS["mesh"]
    fast, half = slow(topology, "80 Mb/s"), slow(topology, "40 Mb/s")
    # Six steps of 100 kB: 62.7 and 125.5 ms, less 0.3 ms for each, and whatever the machine adds to both.
    assert fast > 0.060
    assert half > 0.123


def test_the_command_prints_what_the_schema_says_and_draws(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    picture = tmp_path / "plans.svg"
    network = ["-t", "ring:3@1GB/s,1us", "--link-bandwidth", "400 Mb/s", "--loopback"]
    command = ["testbed", "run", "ring", "greedy", *network, "--size", "600KB", "--repeats", "1"]
    assert run([*command, "--json", "--link-latency", "1ms", "--plot", str(picture)]) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, json_schema())
    assert found["medium"] == "loopback"
    assert found["latency_ps"] == 1_000_000_000
    drawn = picture.read_text(encoding="utf-8")
    assert drawn.startswith("<?xml")
    assert run(command) == 0
    said = capsys.readouterr()
    assert "all-reduce of 600 kB on ring 3, links of 400 Mb/s by pace over loopback" in said.out
    assert said.err == ""


def test_without_rights_it_goes_over_loopback_and_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> tuple[str, str]:
        return "network namespaces need root (Operation not permitted)", "run it as root"

    monkeypatch.setattr(hocket_testbed, "what_is_missing", missing)
    command = ["testbed", "run", "ring", "-t", "ring:3@1GB/s,1us", "--link-bandwidth", "400 Mb/s"]
    assert run([*command, "--size", "600KB", "--repeats", "1", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["medium"] == "loopback"
    lines = [line for line in said.err.splitlines() if "loopback" in line]
    assert lines == [
        "hocket: network namespaces need root (Operation not permitted): "
        "ranks send over the loopback interface instead"
    ]


def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    ring = ["-t", "ring:4@1GB/s,1us", "ring", "--loopback"]
    for arguments, says in (
        ([*ring, "--link-latency", "soon"], "--link-latency: "),
        ([*ring, "--link-latency", "2s"], "--link-latency: '2s' is long; give 1 s at most"),
        ([*ring, "--plot", "plans.doc"], "plans.doc"),
    ):
        assert run(["testbed", "run", *arguments]) == 2, arguments
        said = capsys.readouterr().err
        assert said.count("\n") == 1, said
        assert says in said


def test_a_pacer_refuses_links_that_carry_nothing() -> None:
    with pytest.raises(hk.SpecError, match=r"^rates: a link carries nothing"):
        Pacer([1000, 0])
    with pytest.raises(hk.SpecError, match=r"^latency: "):
        Pacer([1000], -1.0)
