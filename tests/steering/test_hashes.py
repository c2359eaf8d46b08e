"""Hashes of switches as users see them, and hashes learned from answers."""

from __future__ import annotations

from typing import Any

import pytest

import hocket as hk
from hocket.steering import Calibration, Header, Stage, SwitchHash

TOR, SPINE = SwitchHash("linux", seed=12345), SwitchHash("linux", seed=6)
HEADER = Header("10.0.0.1", "10.0.1.1", 4791, protocol="udp")


def test_ports_lead_where_they_should() -> None:
    taken: list[int] = []
    for up in range(4):
        for down in range(2):
            stages = [Stage(TOR, 4, up), Stage(SPINE, 2, down)]
            port = hk.steering.find_port(HEADER, stages, ports=(50_000, 60_000), taken=taken)
            assert 50_000 <= port <= 60_000
            assert port not in taken
            assert (TOR.way(HEADER.by(port), 4), SPINE.way(HEADER.by(port), 2)) == (up, down)
            taken.append(port)


@pytest.mark.parametrize("algorithm", hk.steering.ALGORITHMS)
def test_every_algorithm_has_ways(algorithm: str) -> None:
    hash = SwitchHash(algorithm, seed=3)
    ways = hash.ways([HEADER.by(port) for port in range(1000, 1400)], 5)
    assert len(set(ways)) == (1 if algorithm == "linux-layer3" else 5)
    six = Header("fd00::1", "fd00::2", 80, label=5)
    assert 0 <= hash.way(six, 3) < 3


@pytest.mark.parametrize("mapped", ["::ffff:10.0.0.2", "::FFFF:a00:2", "0:0:0:0:0:ffff:0a00:0002"])
def test_an_address_of_ipv4_is_one_as_ipv6_writes_it(mapped: str) -> None:
    header = Header("10.0.0.2", "10.0.0.1", 1)
    assert Header(mapped, "10.0.0.1", 1) == header
    assert TOR.way(Header(mapped, "10.0.0.1", 1), 64) == TOR.way(header, 64)


def test_switches_that_hash_alike_leave_paths_out() -> None:
    stages = [Stage(TOR, 4, 0), Stage(TOR, 2, 1)]
    with pytest.raises(hk.InfeasibleError, match="hash alike"):
        hk.steering.find_port(HEADER, stages)
    with pytest.raises(hk.InfeasibleError, match="none of 2 values"):
        hk.steering.find_port(HEADER, [Stage(TOR, 4000, 5)], ports=(1024, 1025))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Header("x", "10.0.0.1", 1), "^src: 'x' is not an IP address"),
        (
            lambda: Header("fe80::1%eth0", "fe80::2", 1),
            "^src: 'fe80::1%eth0' has a zone, .* write fe80::1",
        ),
        (lambda: Header("fd00::1", "10.0.0.1", 1), "^dst: .* family"),
        (lambda: Header("10.0.0.2", "10.0.0.1", 70_000), "^dport: 70000 is too large"),
        (lambda: Header("10.0.0.2", "10.0.0.1", 1, protocol="x"), "^protocol: there is no 'x'"),
        (lambda: SwitchHash("md5"), "^algorithm: there is no 'md5'"),
        (lambda: SwitchHash(seed=-1), "^seed: -1 is too small"),
        (lambda: TOR.way(HEADER, 0), "^ways: 0 is too small"),
        (lambda: TOR.ways([3], 2), "^headers: 3 is not a Header"),  # type: ignore[list-item]
        (lambda: hk.steering.find_port(HEADER, [], ports=(9, 8)), "^ports: 9 is above 8"),
        (lambda: hk.steering.find_port(3, []), "^header: 3 is not a Header"),  # type: ignore[arg-type]
        (lambda: hk.steering.find_port(HEADER, [3]), "^stages: 3 is not a Stage"),  # type: ignore[list-item]
        (lambda: hk.steering.probe_each([Header("::1", "::2", 1)], 2), "^header: ::1 .* IPv6"),
        (lambda: hk.steering.calibrate("10.0.0.1", "10.0.0.2", 1, probes=0), "^probes: 0"),
        (lambda: hk.steering.calibrate("10.0.0.1", "10.0.0.2", 1, ports=(5, 9)), "^probes: 64"),
        (lambda: hk.steering.probe_port(HEADER, {}, ports=(5, 4)), "^ports: 5 is above 4"),
        (lambda: hk.steering.find_port(HEADER, [], ports=5), "^ports: 5 is not a list"),  # type: ignore[arg-type]
        (lambda: hk.steering.probe_port(HEADER, {}, ports=(5,)), "^ports: .* is not a range"),  # type: ignore[arg-type]
        (lambda: hk.steering.probe_port(None, {}), "^header: None is not a Header"),  # type: ignore[arg-type]
        (lambda: hk.steering.probe_port(HEADER, [1]), "^wanted: .* is not a Mapping; give one of"),  # type: ignore[arg-type]
    ],
)
def test_refusals(call: Any, says: str) -> None:
    with pytest.raises(hk.SpecError, match=says) as caught:
        call()
    assert "\n" not in str(caught.value)


def learned(hash: SwitchHash, switches: list[str]) -> Calibration:
    headers = [
        Header("10.0.0.1", "10.0.1.1", 5000, 10_000 + 31 * i, protocol)
        for protocol in ("tcp", "udp")
        for i in range(40)
    ]
    ways = hash.ways(headers, len(switches))
    return Calibration(2, headers, [switches[way] for way in ways])


@pytest.mark.slow
def test_a_hash_is_identified_by_what_switches_answer() -> None:
    order = ["10.0.3.0", "10.0.1.0", "10.0.2.0"]
    for algorithm, fields in (("linux", 0x37), ("linux", 0x33), ("linux-layer4", 0x37)):
        found = learned(SwitchHash(algorithm, 4321, fields), order).identify()
        assert [each.hash for each in found] == [SwitchHash(algorithm, 4321, fields)]
        assert found[0].switches == tuple(order)
    assert learned(TOR, order).identify(seeds=range(1, 12345)) == []
    told: list[tuple[str, int, int]] = []
    learned(TOR, order).identify(progress=lambda *each: told.append(each))
    assert told[-1][1] == told[-1][2]


def test_what_a_calibration_says() -> None:
    made = learned(TOR, ["a", "b"])
    missed = Calibration(2, made.headers, [None, *made.answers[1:]])
    assert (missed.unanswered, missed.switches) == (1, ("a", "b"))
    assert sum(map(len, missed.ports.values())) == 79
    assert missed.to_frame().num_rows == 80
    data = missed.to_dict()
    assert [each["switch"] for each in data["switches"]] == ["a", "a", "b", "b"]
    assert repr(missed) == "<Calibration: 79 of 80 probes, 2 switches>"
    with pytest.raises(hk.InfeasibleError, match="1 switches answered"):
        Calibration(2, made.headers, ["a"] * 80).identify()
    for words, given in (
        ("^seeds: ", {"seeds": [1, 2]}),
        ("^algorithms: there is no 'x'", {"algorithms": ["x"]}),
        ("^fields: 64", {"fields": [64]}),
        ("^ways: 0", {"ways": 0}),
        ("^most: 0", {"most": 0}),
    ):
        with pytest.raises(hk.SpecError, match=words):
            made.identify(**given)  # type: ignore[arg-type]


def test_a_queue_pair_sends_from_a_port_that_its_numbers_give() -> None:
    def formula(a: int, b: int) -> int:
        product = a * b
        product ^= product >> 20
        product ^= product >> 40
        label = product & 0xFFFFF
        return 0xC000 | (label & 0x3FFF) ^ (label >> 14)

    for a, b in [(1, 2), (0x11A, 0x11B), (0xFFFFFF, 0xFFFFFF), (0, 5), (0x123456, 0xABCDEF)]:
        assert hk.steering.queue_pair_port(a, b) == formula(a, b)
        assert hk.steering.queue_pair_port(b, a) == formula(a, b)
    assert hk.steering.queue_pair_port(1, 2, flow_label=0x4001) == 0xC000
    with pytest.raises(hk.SpecError, match="dst_qpn"):
        hk.steering.queue_pair_port(1, 1 << 24)
    with pytest.raises(hk.SpecError, match="flow_label"):
        hk.steering.queue_pair_port(1, 2, flow_label=1 << 20)


def test_a_flow_label_leads_through_both_switches() -> None:
    tor, spine = SwitchHash("linux", seed=77, fields=0x3F), SwitchHash("crc32", 3, 0x3F)
    header = Header("fd00::1", "fd00:1::1", 4791, 50_000, "udp")
    for up in range(4):
        stages = [Stage(tor, 4, up), Stage(spine, 2, up % 2)]
        label = hk.steering.find_label(header, stages, first=1 + 1000 * up)
        marked = Header("fd00::1", "fd00:1::1", 4791, 50_000, "udp", label)
        assert [tor.way(marked, 4), spine.way(marked, 2)] == [up, up % 2]
        # The first that does: all before it lead elsewhere.
        for other in range(1 + 1000 * up, label):
            wrong = Header("fd00::1", "fd00:1::1", 4791, 50_000, "udp", other)
            assert [tor.way(wrong, 4), spine.way(wrong, 2)] != [up, up % 2]
    with pytest.raises(hk.InfeasibleError, match="IPv4 has no flow label"):
        hk.steering.find_label(HEADER, [Stage(TOR, 4, 0)])
    with pytest.raises(hk.SpecError, match="first"):
        hk.steering.find_label(header, [], first=0)
