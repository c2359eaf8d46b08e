"""Flow fidelity: fluids that share links max-min fairly, its knob, and how it stops."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hocket as hk
from hocket.cli import run


def mesh(side: int) -> hk.Topology:
    return hk.topology.mesh(side, side, bandwidth="25 GB/s", latency="21 ns")


def made(algorithm: str, topology: hk.Topology, size: str) -> hk.Plan:
    kind = "all-to-all" if algorithm == "direct" else "all-reduce"
    return hk.plan(kind, topology, size=size, algorithm=algorithm, chunks=1).verify()


def crossings(plan: hk.Plan, columns: int) -> NDArray[np.int64]:
    """How many links each transfer crosses on a mesh of so many columns."""
    src, dst = plan.core.src.astype(int), plan.core.dst.astype(int)
    return np.asarray(abs(src % columns - dst % columns) + abs(src // columns - dst // columns))


def test_without_contention_flows_and_messages_take_as_long() -> None:
    ring = hk.topology.ring(8, bandwidth="47 GB/s", latency="300 ns")
    plan = made("ring", ring, "10 MB")
    flow, link = hk.simulate(plan, fidelity="flow"), hk.simulate(plan)
    assert np.array_equal(flow.end_ps, link.end_ps)
    assert np.array_equal(flow.link_busy_ps, link.link_busy_ps)
    assert (flow.fidelity, flow.order, flow.switching) == ("flow", None, "cut-through")
    assert (flow.cycle_ps, flow.options) == (None, hk.FlowOptions())


def test_messages_that_share_a_link_end_together() -> None:
    line = hk.topology.line(3, bandwidth="10 GB/s", latency="1 us")
    # Both ways: an NPU at an end sends 1 MB to each other, one link of which is shared by two.
    plan = made("direct", line, "3 MB")
    flow = hk.simulate(plan, fidelity="flow")
    assert flow.end_ps.tolist() == (200_000_000 + 1_000_000 * crossings(plan, 3)).tolist()
    assert flow.time_ps >= flow.lower_bound.time_ps
    assert hk.simulate(plan, switching="store-and-forward").time_ps > flow.time_ps


def test_no_flow_is_faster_than_the_rate() -> None:
    line = hk.topology.line(2, bandwidth="10 GB/s", latency="1 us")
    plan = made("direct", line, "2 MB")
    flow = hk.simulate(plan, fidelity="flow", flow_rate="4 GB/s")
    assert flow.time_ps == 250_000_000 + 1_000_000
    assert hk.simulate(plan, fidelity="flow", flow_rate="40 GB/s").time_ps == 101_000_000


def test_heat_is_the_share_of_time_with_a_flow() -> None:
    plan = made("direct", mesh(3), "900 kB")
    flow = hk.simulate(plan, fidelity="flow", keep_services=True)
    heat = flow.heat(50)
    assert heat.max() <= 1 + 1e-5
    busy = heat.sum(axis=1) * flow.time_ps / 50
    assert busy == pytest.approx(flow.link_busy_ps.astype(float), rel=1e-4)
    assert flow.link_bytes.sum() == 100_000 * crossings(plan, 3).sum()


def test_the_same_again() -> None:
    plan = made("double-binary-tree", mesh(4), "300 kB")
    first, second = (hk.simulate(plan, fidelity="flow") for _ in range(2))
    assert first.end_ps.tolist() == second.end_ps.tolist()


def test_an_interrupt_stops_flows(interrupted: Callable[..., str]) -> None:
    script = """
import hocket as hk
mesh = hk.topology.mesh(12, 12, bandwidth="25 GB/s", latency="21 ns")
plan = hk.plan("all-to-all", mesh, size="100 MB", algorithm="direct", chunks=1).verify()
print("made", flush=True)
try:
    while True:
        hk.simulate(plan, fidelity="flow")
except KeyboardInterrupt:
    print("stopped")
"""
    assert interrupted(script, within=10) == "stopped\n"


BAD: dict[str, tuple[str, dict[str, Any]]] = {
    "--order plan": ("order: flow fidelity ", {"order": "plan"}),
    "--order ready": ("order: flow fidelity ", {"order": "ready"}),
    "--switching store-and-forward": (
        "switching: flow fidelity ",
        {"switching": "store-and-forward"},
    ),
    "--latency-model occupying": (" flow fidelity ", {"latency_model": "occupying"}),
    "--preset mcm": ("flow", {"clock": "1 GHz"}),
    "--buffer-flits 64": ("flow", {"buffer_flits": 64}),
    "--flow-rate 0GB/s": ("rate: '0GB/s' ", {"flow_rate": "0GB/s"}),
    "--flow-rate fast": ("rate: 'fast' ", {"flow_rate": "fast"}),
    "--flow-rate 1B/s": ("213 days", {"flow_rate": "1 B/s"}),
}


@pytest.mark.parametrize("options", BAD)
def test_what_flows_do_not_heed_is_refused(
    options: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message, given = BAD[options]
    plan = made("ring", mesh(4), "400 MB")
    plan.save(tmp_path / "plan.parquet")
    capsys.readouterr()
    argv = [str(tmp_path / "plan.parquet"), "--fidelity", "flow", *options.split()]
    for command in (
        ["simulate", *argv, "--output", str(tmp_path / "out.parquet")],
        ["show", *argv, "--heat", "--output", str(tmp_path / "out.png")],
    ):
        assert run(command) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert message in err
        assert [path.name for path in tmp_path.iterdir()] == ["plan.parquet"]
    with pytest.raises((hk.SpecError, hk.SimulationError), match=message):
        hk.simulate(plan, fidelity="flow", **given)


@pytest.mark.parametrize("fidelity", ["link", "packet", "dimension"])
def test_a_flow_rate_is_of_flows(
    fidelity: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = made("ring", mesh(2), "4 kB")
    with pytest.raises(hk.SpecError, match=f"flow_rate: {fidelity} fidelity "):
        hk.simulate(plan, fidelity=fidelity, flow_rate="1 GB/s")
    plan.save(tmp_path / "plan.parquet")
    argv = ["simulate", str(tmp_path / "plan.parquet"), "--fidelity", fidelity]
    assert run([*argv, "--flow-rate", "1GB/s"]) == 2
    assert f"--flow-rate: {fidelity} fidelity " in capsys.readouterr().err


def test_only_heat_is_drawn_of_flows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.parquet"
    made("ring", mesh(2), "4 kB").save(plan)
    assert run(["show", str(plan), "--ten", "--fidelity", "flow", "--json"]) == 2
    assert "--fidelity: flow is of --heat" in capsys.readouterr().err
    picture = tmp_path / "heat.png"
    argv = ["show", str(plan), "--heat", "--fidelity", "flow", "-o", str(picture), "--json"]
    assert run(argv) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["fidelity"], found["order"], found["packets"]) == ("flow", None, None)
    assert picture.stat().st_size > 1000


def test_a_run_says_how_links_were_shared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.parquet"
    made("double-binary-tree", mesh(3), "90 kB").save(plan)
    argv = ["simulate", str(plan), "--fidelity", "flow"]
    assert run(argv) == 0
    assert "cut-through, shared max-min fairly" in capsys.readouterr().out
    assert run([*argv, "--json", "--flow-rate", "10GB/s"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["fidelity"], found["order"], found["switching"]) == ("flow", None, "cut-through")
    again = hk.simulate(hk.Plan.load(plan), fidelity="flow", flow_rate="10 GB/s")
    assert found["time_ps"] == again.time_ps


def test_algorithms_are_compared_as_flows(capsys: pytest.CaptureFixture[str]) -> None:
    topology = mesh(3)
    names = ["ring", "multitree", "double-binary-tree"]
    compared = hk.compare(
        "all-reduce", topology, size="1 MiB", algorithms=names, chunks=1, fidelity="flow"
    )
    assert {entry.run.fidelity for entry in compared} == {"flow"}
    for entry in compared:
        assert hk.simulate(entry.plan, fidelity="flow").time_ps == entry.run.time_ps
        assert entry.run.time_ps >= compared.bound.time_ps
    argv = "compare all-reduce -t mesh:3x3 --size 1MiB --bandwidth 25GB/s --latency 21ns -a ring"
    assert run([*argv.split(), "--fidelity", "flow", "--flow-rate", "20GB/s"]) == 0
    assert "as flows that share links" in capsys.readouterr().out
    with pytest.raises(hk.SpecError, match="order: flow fidelity "):
        hk.compare("all-reduce", topology, size="1 MiB", fidelity="flow", order="plan")
