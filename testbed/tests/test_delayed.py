"""Links that take time and links that drop frames: what a relay does to plans that run over it."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

import hocket as hk
import hocket_testbed
from hocket import _core
from hocket._core.runtime import relay
from hocket_testbed import delayed, rank_threads
from hocket_testbed.calibrated import Calibration, calibrate_network, model_of, predicted
from hocket_testbed.namespaces import batch, inside
from hocket_testbed.network import NetworkSpec
from hocket_testbed.plan_connections import on_network

MESH = hk.topology.mesh(2, 2, bandwidth="1 GB/s", latency="1 us")


@pytest.fixture
def relayed(prefix: str) -> str:
    missing = delayed.what_relay_lacks()
    if missing is not None:
        pytest.skip(missing[0])
    return prefix


def planned(topology: _core.Topology, algorithm: str = "ring", size: str = "1 MB") -> hk.Plan:
    return hk.plan("all-reduce", topology, size=size, algorithm=algorithm, chunks=1)


def plan_of_two(topology: _core.Topology, size: int) -> hk.Plan:
    made = hk.plan("all-reduce", topology, size=size, algorithm="ring", chunks=1, npus=[0, 1])
    return on_network(made, topology).verify()


def asked_and_answered(spec: NetworkSpec, link: int) -> float:
    """The shortest of several times of a small packet over a link and back [s]."""
    near, far = spec.ends(link)
    with inside(far.namespace):
        answers = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with inside(near.namespace):
        asks = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with answers, asks:
        answers.bind((far.address, 0))
        asks.bind((near.address, 0))
        asks.settimeout(5)
        answers.settimeout(5)
        times = []
        for _ in range(12):
            begun = time.perf_counter()
            asks.sendto(b"?", answers.getsockname())
            _, whom = answers.recvfrom(1)
            answers.sendto(b"!", whom)
            asks.recv(1)
            times.append(time.perf_counter() - begun)
    return min(times)


def test_a_link_takes_as_long_as_it_is_told(relayed: str) -> None:
    spec = NetworkSpec(topology=MESH, prefix=relayed, latency="5 ms")
    with hocket_testbed.build_network(spec):
        took = asked_and_answered(spec, 3)
    # Twice the latency at least, and less than if something were delayed twice.
    assert 0.010 <= took < 0.020


def test_plans_run_over_links_that_take_time(relayed: str) -> None:
    spec = NetworkSpec(topology=MESH, prefix=relayed, rate="400 Mb/s", latency="4 ms")
    with hocket_testbed.build_network(spec):
        study = hocket_testbed.run_plans(spec, ["ring"], size="200 kB", chunks=1, repeats=2)
    (run,) = study.runs
    # A ring of four takes six steps, each of which takes the latency.
    assert min(run.times) > 6 * 0.004
    assert run.predicted > 6 * 0.004
    assert study.to_dict()["latency_ps"] == 4_000_000_000
    assert 1.04 < run.overhead < 1.1


def test_the_model_has_the_latency_of_links_besides_what_was_measured() -> None:
    spec = NetworkSpec(topology=MESH, latency="1 ms")
    for delay, latency in ((50e-6, 1_050_000_000), (-200e-6, 1_000_000_000)):
        model = model_of(spec, Calibration(1.0, (), delay))
        assert set(model.link_latency_ps.tolist()) == {latency}
    found = Calibration(1.0, (), -200e-6, 50e-6)
    assert set(model_of(spec, found).link_latency_ps.tolist()) == {1_050_000_000}
    # Long messages are ahead of that by as much as makes 200 us less than their bytes take.
    assert found.ahead == pytest.approx(250e-6)
    long, few = (plan_of_two(model_of(spec, found), size) for size in (2_000_000, 128))
    rate = spec.goodput[0]
    assert predicted(long, found) == pytest.approx(2 * (1_000_000 / rate + 800e-6), abs=1e-7)
    assert predicted(few, found) == pytest.approx(2 * 1050e-6, abs=1e-7)


def test_dropped_frames_are_sent_again(relayed: str) -> None:
    """Of all frames a share is gone, whole ones of 64 kB among them; every sum is right all the same."""
    spec = NetworkSpec(topology=MESH, prefix=relayed, rate="400 Mb/s", loss=0.02, seed=5)
    model = model_of(spec, Calibration(1.0, (), 0.0))
    with hocket_testbed.build_network(spec):
        for algorithm in ("ring", "greedy"):
            plan = on_network(planned(MESH, algorithm), model).verify()
            with rank_threads.gathered(spec, plan) as ranks:
                before = resent(spec)
                for _ in range(3):
                    # Each checks all results.
                    ranks.run()
                assert resent(spec) > before


def resent(spec: NetworkSpec) -> int:
    """Segments that the kernel sent again, in all namespaces."""
    count = 0
    for name in spec.namespaces():
        with inside(name):
            lines = Path("/proc/thread-self/net/snmp").read_text(encoding="ascii").splitlines()
        names, values = (line.split() for line in lines if line.startswith("Tcp:"))
        count += int(values[names.index("RetransSegs")])
    return count


def test_a_cable_that_is_cut_is_an_error_of_all(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is reset: packets are gone, as when a host loses its power; a ring then waits all around."""
    spec = NetworkSpec(topology=MESH, prefix=prefix, rate="400 Mb/s")
    monkeypatch.setattr(rank_threads, "_TIMEOUT", 4.0)
    plan = planned(MESH).verify()
    with hocket_testbed.build_network(spec), rank_threads.gathered(spec, plan) as ranks:
        ranks.run()
        near, far = spec.ends(0)
        # From now on its frames are for a card that is not there.
        nobody = f"neigh replace {far.address} lladdr 02:00:00:00:00:01 dev {near.interface}"
        batch([f"{nobody} nud permanent"], near.namespace)
        begun = time.monotonic()
        with pytest.raises(hk.TransportError, match="wait for"):
            ranks.run()
        assert time.monotonic() - begun < 100


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"latency": "fast"}, "^latency: "),
        ({"latency": "-1 ms"}, "^latency: "),
        ({"latency": "2 s"}, "^latency: '2 s' is long; give 1 s at most"),
        ({"loss": 1}, "^loss: 1 is not valid; give 0, or a share such as 0.01"),
        ({"loss": "some"}, "^loss: 'some' is not valid"),
        ({"loss": 0.1, "loopback": True}, "^loss: the loopback interface drops nothing"),
        ({"seed": -1}, "^seed: -1"),
        ({"loopback": "yes"}, "^loopback: 'yes'"),
    ],
)
def test_links_that_make_no_sense(given: dict[str, object], says: str) -> None:
    with pytest.raises(hk.SpecError, match=says):
        NetworkSpec(**{"topology": MESH, **given})  # type: ignore[arg-type]


def test_without_devices_of_that_kind_it_says_so(
    relayed: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(delayed, "DEVICE", tmp_path / "tun")
    spec = NetworkSpec(topology=MESH, prefix=relayed, latency="1 ms")
    with (
        pytest.raises(hk.InfeasibleError, match=r"tun cannot be opened; use a kernel with TUN"),
        hocket_testbed.build_network(spec),
    ):
        pass


def test_a_relay_refuses_what_is_no_file() -> None:
    with pytest.raises(hk.SpecError, match=r"^pairs: -1 is no open file"):
        relay([(-1, -1)], 0.0, 0.0, 0, 0)
    with pytest.raises(hk.SpecError, match=r"^delay: "):
        relay([], -1.0, 0.0, 0, 0)


def test_calibration_sees_what_a_message_takes_besides_the_latency(relayed: str) -> None:
    spec = NetworkSpec(topology=MESH, prefix=relayed, rate="400 Mb/s", latency="8 ms")
    with hocket_testbed.build_network(spec):
        found = calibrate_network(spec)
    # What is left is far below the latency itself, on any machine that runs tests.
    assert -0.005 < found.delay < 0.008
