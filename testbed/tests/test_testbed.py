"""A Clos of namespaces: what the kernel does there is what the models say."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

import hocket as hk
import hocket_testbed
from hocket.cli import run
from hocket.cli.documents import json_schema
from hocket_testbed import ownership, rights
from hocket_testbed.counters import sent
from hocket_testbed.namespaces import batch, inside, names_of
from hocket_testbed.routes import ways_out

SMALL = {"spines": 2, "tors": 2, "hosts": 2}


def test_what_is_built_goes_away(prefix: str) -> None:
    spec = hocket_testbed.ClosSpec(prefix=prefix, **SMALL)  # type: ignore[arg-type]
    with hocket_testbed.build(spec):
        devices = ["host0", "host1", "host2", "host3", "spine0", "spine1", "tor0", "tor1"]
        assert names_of(prefix) == [f"{prefix}-{device}" for device in devices]
        assert set(sent(f"{prefix}-tor1")) == {"lo", "host2", "host3", "up0.0", "up1.0"}
        shown = batch(["class show dev up0.0"], f"{prefix}-tor0", program="tc")
        assert "rate 100Mbit ceil 100Mbit" in shown
        with inside(f"{prefix}-tor0"):
            seed = Path("/proc/sys/net/ipv4/fib_multipath_hash_seed").read_text()
        assert int(seed) == spec.tor_seed(0)
        assert spec.tor_seed(0) != spec.tor_seed(1)
    assert names_of(prefix) == []


def test_the_simulation_hashes_as_the_kernel_does(prefix: str) -> None:
    """Spines of ecmp with given headers, against ``ip route get`` in the ToRs."""
    spec = hocket_testbed.ClosSpec(prefix=prefix, spines=4, tors=3, hosts=2, seed=11, rate=None)
    fabric = hk.topology.clos(spines=4, tors=3, hosts_per_tor=2, bandwidth=1, latency=0)
    flows, headers, said = [], [], []
    with hocket_testbed.build(spec):
        for src in range(6):
            dst = (src + 3) % 6
            tors = (spec.tor_of(src), spec.tor_of(dst))
            for protocol in ("tcp", "udp"):
                some = [
                    hk.steering.Header(
                        spec.address(src), spec.address(dst), 5000 + src, port, protocol
                    )
                    for port in range(20_000, 20_040)
                ]
                ways = ways_out(spec.namespace(f"tor{tors[0]}"), some, f"host{src}")
                flows += [tors] * len(some)
                headers += some
                said += [int(way.removeprefix("up").split(".")[0]) for way in ways]
    made = hk.routing.assign(
        fabric,
        flows,
        scheme="ecmp",
        hash="linux",
        headers=headers,
        switch_seeds=[spec.tor_seed(tor) for tor in range(3)],
    )
    assert made.spines.tolist() == said
    assert set(said) == {0, 1, 2, 3}


def test_steered_flows_take_the_wanted_paths(prefix: str) -> None:
    spec = hocket_testbed.ClosSpec(prefix=prefix, links=2, rate=None, hosts=1)
    with hocket_testbed.build(spec):
        steered = hocket_testbed.steer_flows(spec, flows=4)
    assert (steered.right, steered.flows) == (48, 48)
    kinds = {(row.method, row.protocol, row.stages) for row in steered.rows}
    assert kinds == {
        (method, protocol, stages)
        for method in hocket_testbed.METHODS
        for protocol in ("tcp", "udp")
        for stages in (1, 2)
    }


def test_flows_over_ipv6_are_steered_by_port_label_and_segment(prefix: str) -> None:
    spec = hocket_testbed.ClosSpec(prefix=prefix, links=2, rate=None, hosts=1, tors=3, ipv6=True)
    with hocket_testbed.build(spec):
        steered = hocket_testbed.steer_flows(spec, flows=6, methods=hocket_testbed.METHODS_IPV6)
        over_ipv4 = hocket_testbed.steer_flows(spec, flows=2, methods=["model"])
    assert (steered.right, steered.flows) == (72, 72)
    assert {row.method for row in steered.rows} == set(hocket_testbed.METHODS_IPV6)
    assert (over_ipv4.right, over_ipv4.flows) == (8, 8)


def test_a_label_and_a_segment_can_be_wrong(prefix: str) -> None:
    """The counters tell labels and segments for one way from those for another."""
    from hocket_testbed.packet_marks import mark
    from hocket_testbed.steered import _went

    spec = hocket_testbed.ClosSpec(prefix=prefix, rate=None, hosts=1, tors=2, ipv6=True)
    header = hk.steering.Header(spec.address(0), spec.address(1), 5000, 20_000)
    with hocket_testbed.build(spec):
        for method in ("flow-label", "segments"):
            marked = mark(spec, method, header, hocket_testbed.Wanted(0, 1, 2))
            took = [_went(spec, marked, hocket_testbed.Wanted(0, 1, up)) for up in range(4)]
            assert took == [False, False, True, False]


def test_ipv6_must_be_there_to_steer_by_it(prefix: str) -> None:
    spec = hocket_testbed.ClosSpec(prefix=prefix)
    with pytest.raises(hk.SpecError, match="flow-label needs IPv6; build it with ipv6=True"):
        hocket_testbed.steer_flows(spec, methods=["flow-label"])
    with pytest.raises(hk.SpecError, match="ipv6"):
        hocket_testbed.ClosSpec(prefix=prefix, ipv6=1)  # type: ignore[arg-type]


def test_flows_that_go_elsewhere_are_seen(prefix: str) -> None:
    """The counters are no foregone conclusion: a port for one way is wrong for another."""
    from hocket_testbed.packet_marks import Marked
    from hocket_testbed.steered import _went

    spec = hocket_testbed.ClosSpec(prefix=prefix, rate=None, hosts=1)
    header = hk.steering.Header(spec.address(0), spec.address(1), 5000, 20_000)
    with hocket_testbed.build(spec):
        port = hocket_testbed.port_for(spec, "model", header, hocket_testbed.Wanted(0, 1, 2))
        marked = Marked(header.by(port))
        took = [_went(spec, marked, hocket_testbed.Wanted(0, 1, up)) for up in range(4)]
    assert took == [False, False, True, False]


def test_a_hash_that_nobody_knows_is_learned(prefix: str) -> None:
    seeds = (777, 778, 5, 6, 7)
    spec = hocket_testbed.ClosSpec(
        prefix=prefix, spines=3, tors=2, hosts=1, rate=None, switch_seeds=seeds
    )
    with hocket_testbed.build(spec), inside(spec.namespace("host0")):
        learned = hk.steering.calibrate(spec.address(0), spec.address(1), 5000)
        (found,) = learned.identify(seeds=range(1, 2000))
        assert found.hash == hk.steering.SwitchHash("linux", 777)
        spines = tuple(spec.spine_address(spine, 0, 0) for spine in range(3))
        assert found.switches == spines
        header = hk.steering.Header(spec.address(0), spec.address(1), 5000)
        port = hk.steering.probe_port(header, {2: spines[1]})
        assert spec.tor_hash(0).way(header.by(port), 3) == 1
        assert hk.steering.probe(header.by(port), 2) == spines[1]
        with pytest.raises(hk.InfeasibleError, match="none of 3 ports leads through"):
            hk.steering.probe_port(header, {2: "10.9.9.9"}, ports=(2000, 2002))
        foreign = hk.steering.Header("10.9.9.9", spec.address(1), 5000)
        with pytest.raises(hk.InfeasibleError, match="no probe goes from 10"):
            hk.steering.probe(foreign, 2)


def test_jobs_by_assigned_and_hashed_paths(prefix: str) -> None:
    """Sums are checked while it runs; how long it takes is for bench/RESULTS.md."""
    spec = hocket_testbed.ClosSpec(prefix=prefix)
    told: list[str] = []
    with hocket_testbed.build(spec):
        study = hocket_testbed.run_study(
            spec, size="256 KiB", seeds=2, progress=lambda stage, *_: told.append(stage)
        )
    assert [run.fullest for run in study.assigned] == [1, 1, 1]
    assert all(run.counted for run in study.runs)
    assert all(run.fullest > 1 for run in study.hashed)
    assert [max(run.predicted) for run in study.assigned] == pytest.approx([study.ideal] * 3)
    assert told == ["assigned, model", "assigned, route-get", "assigned, probes"] + [
        f"ecmp, {seed}" for seed in (0, 1)
    ]
    assert study.to_frame().num_rows == 5
    assert study.gain is not None
    assert study.predicted_gain is not None
    assert study.deviation is not None


def test_a_testbed_has_one_owner(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "_PATIENCE", 0.1)
    spec = hocket_testbed.ClosSpec(prefix=prefix, rate=None, **SMALL)  # type: ignore[arg-type]
    with hocket_testbed.build(spec):
        for call in (
            lambda: hocket_testbed.build(spec).__enter__(),
            lambda: hocket_testbed.clean(prefix),
        ):
            with pytest.raises(hk.InfeasibleError, match=f"belongs to process {os.getpid()}"):
                call()


BUILD = """
import sys, time
import hocket as hk
import hocket_testbed
spec = hocket_testbed.ClosSpec(prefix=sys.argv[1], spines=2, tors=2, hosts=1, rate=None)
with hocket_testbed.build(spec):
    print("made", flush=True)
    time.sleep(60)
"""


def started(prefix: str) -> subprocess.Popen[str]:
    """A process that has built a testbed."""
    process = subprocess.Popen(
        [sys.executable, "-c", BUILD, prefix],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "made\n"
    return process


@pytest.mark.parametrize("with_signal", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_killed_owner_leaves_nothing(prefix: str, with_signal: signal.Signals) -> None:
    with started(prefix) as process:
        assert len(names_of(prefix)) == 6
        process.send_signal(with_signal)
    for _ in range(500):
        if not names_of(prefix):
            break
        time.sleep(0.02)
    assert names_of(prefix) == []


def guards(prefix: str) -> list[int]:
    """Processes that guard a testbed."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_text()
            except OSError:
                continue
            if f"guard({prefix!r})" in command:
                found.append(int(entry.name))
    return found


@pytest.mark.slow
def test_what_is_left_without_a_guard_is_removed(prefix: str) -> None:
    with started(prefix) as process:
        (guard,) = guards(prefix)
        os.kill(guard, signal.SIGKILL)
        process.kill()
    assert len(names_of(prefix)) == 6
    spec = hocket_testbed.ClosSpec(prefix=prefix, rate=None, **SMALL)  # type: ignore[arg-type]
    with hocket_testbed.build(spec):
        assert len(names_of(prefix)) == 8
    with started(prefix) as process:
        os.kill(guards(prefix)[0], signal.SIGKILL)
        process.kill()
    assert hocket_testbed.clean(prefix) == 6


def test_without_rights_it_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused() -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(rights, "leave_for_new", refused)
    monkeypatch.setattr(rights, "which", lambda program: program)
    for command in ("clos", "steer", "calibrate"):
        assert run(["testbed", command]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "network namespaces need root (Operation not permitted); run it as root" in said
    monkeypatch.setattr(rights, "which", lambda _: None)
    assert run(["testbed", "clos"]) == 2
    assert "there is no program ip; install iproute2" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["clos", "--size", "64 KiB", "--seeds", "1", "--method", "model"],
        ["steer", "--flows", "1", "--method", "probes"],
        ["calibrate", "--probes", "24", "--seed", "3"],
    ],
)
def test_commands_print_what_the_schema_says(
    command: list[str], prefix: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["testbed", *command, "--prefix", prefix, "--json"]) == 0
    jsonschema.validate(json.loads(capsys.readouterr().out), json_schema())
    more = ["--plot", str(tmp_path / "study.png")] if command[0] == "clos" else []
    assert run(["testbed", *command, "--prefix", prefix, *more]) == 0
    assert capsys.readouterr().out
    assert run(["testbed", *command, "--prefix", prefix, "--csv"]) == 0
    assert "," in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"spines": 0}, "^spines: 0 is too small"),
        ({"tors": 1}, "^tors: 1 is too small"),
        ({"links": 16, "tors": 64}, "^links: 16 to each of 64 ToRs"),
        ({"rate": "fast"}, "^rate: "),
        ({"prefix": "My bed"}, "^prefix: 'My bed' does not name"),
        ({"switch_seeds": [1]}, "^switch_seeds: there are 1 for 4 ToRs and 4 spines"),
        ({"switch_seeds": [0] * 8}, "^switch_seeds: 0 is too small"),
    ],
)
def test_a_clos_that_makes_no_sense(given: dict[str, object], says: str) -> None:
    with pytest.raises(hk.SpecError, match=says):
        hocket_testbed.ClosSpec(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"jobs": 3}, "^jobs: 3 do not share 4 hosts evenly"),
        ({"size": 3}, "^size: 3 B are less than"),
        ({"methods": ["x"]}, "^methods: there is no 'x'"),
        ({"seeds": -1}, "^seeds: -1"),
        ({"repeats": 0}, "^repeats: 0"),
        ({"scheme": "x"}, "^scheme: there is no 'x'"),
    ],
)
def test_a_study_that_makes_no_sense(given: dict[str, object], says: str) -> None:
    with pytest.raises(hk.SpecError, match=says):
        hocket_testbed.run_study(hocket_testbed.ClosSpec(), **given)  # type: ignore[arg-type]
    wide = hocket_testbed.ClosSpec(links=2)
    with pytest.raises(hk.SpecError, match=r"^spec: the simulation knows no such links"):
        hocket_testbed.run_study(wide)
