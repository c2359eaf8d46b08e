"""The fabric that is learned is the one that was built, and frames that are none are left alone."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hocket as hk
import hocket_testbed
from hocket.cli import run
from hocket_testbed.namespaces import batch
from hocket_testbed.neighbours import Heard, frame, heard_of


def edges(topology: hk.Topology) -> Counter[tuple[str, str]]:
    names = [name.replace("npu", "host") for name in topology.device_names]
    ends = zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True)
    return Counter((names[src], names[dst]) for src, dst in ends)


def test_what_is_learned_is_what_was_built(prefix: str) -> None:
    spec = hocket_testbed.ClosSpec(prefix=prefix, spines=2, tors=3, hosts=2, rate="100 Mb/s")
    built = hk.topology.clos(spines=2, tors=3, hosts_per_tor=2, bandwidth=1, latency=0)
    with hocket_testbed.build(spec):
        learned = hocket_testbed.learn_fabric(spec)
    assert edges(learned) == edges(built)
    assert learned.npu_count == 6
    assert learned.device_names[6:] == ["spine0", "spine1", "tor0", "tor1", "tor2"]
    assert set(learned.link_bandwidth.tolist()) == {12_500_000 * 1448 // 1514}


def test_cables_between_a_pair_are_counted_and_one_that_is_down_is_not_there(prefix: str) -> None:
    spec = hocket_testbed.ClosSpec(prefix=prefix, spines=2, tors=2, hosts=1, links=3, rate=None)
    with hocket_testbed.build(spec):
        whole = edges(hocket_testbed.learn_fabric(spec))
        batch([f"link set dev {spec.uplink(4)} down"], f"{prefix}-tor1")
        less = edges(hocket_testbed.learn_fabric(spec))
    assert whole["tor1", "spine1"] == whole["spine1", "tor1"] == 3
    assert whole - less == Counter({("tor1", "spine1"): 1, ("spine1", "tor1"): 1})


def test_a_testbed_that_is_not_there_is_said(prefix: str) -> None:
    with pytest.raises(hk.InfeasibleError, match="there is no testbed"):
        hocket_testbed.learn_fabric(hocket_testbed.ClosSpec(prefix=prefix))


def test_the_command_prints_a_network(prefix: str, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--spines", "2", "--tors", "2", "--hosts", "1", "--prefix", prefix]
    assert run(["testbed", "learn", *small, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "hocket.topology"
    assert (document["npus"], document["switches"]) == (
        ["host0", "host1"],
        ["spine0", "spine1", "tor0", "tor1"],
    )
    assert len(document["links"]) == 2 * (2 + 4)


@given(st.text(min_size=1, max_size=40), st.text(min_size=1, max_size=15), st.booleans())
def test_frames_are_read_as_they_were_written(device: str, interface: str, forwards: bool) -> None:
    written = frame(device, interface, forwards=forwards)
    assert heard_of(written, "tor0") == Heard(device, interface, forwards, "tor0")
    assert written[:6] == bytes.fromhex("0180c200000e")


@given(st.binary(max_size=200), st.integers(0, 60))
def test_frames_that_are_none_are_left_alone(noise: bytes, cut: int) -> None:
    found = heard_of(bytes(12) + b"\x88\xcc" + noise, "tor0")
    assert found is None or found.dst == "tor0"
    assert heard_of(noise, "tor0") is None or noise[12:14] == b"\x88\xcc"
    whole = frame("tor1", "up0.0", forwards=True)
    some = heard_of(whole[:cut], "tor0")
    assert some is None or some == Heard("tor1", "up0.0", True, "tor0")
