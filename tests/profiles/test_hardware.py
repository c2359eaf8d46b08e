"""What is read off a network whose NPUs or nodes are not alike: the slowest counts, and is soon found."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise, permutations, product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket as hk
from hocket._core import Topology
from hocket.cli import run
from hocket.profiles.flows import Flows
from hocket.profiles.hardware import hardware_of, neighbour_bandwidth
from hocket.topology.slow import read_slow, slowed


def failed(network: str, *links: tuple[str, str]) -> Topology:
    return hk.topology.load(network).without(links=links)


@pytest.mark.parametrize(
    ("network", "link", "bandwidth", "nics"),
    [
        # One of six links of 25 GB/s; two of them; one of seven of 48; one of three of an NPU of a torus.
        ("dgx1_v100", ("gpu7", "gpu3"), 125e9, 0),
        ("dgx1_v100", ("gpu7", "gpu6"), 100e9, 0),
        ("mi300x_8gpu", ("gpu7", "gpu0"), 6 * 48e9, 0),
        ("mi300x_8gpu", ("gpu7", "pci23"), 7 * 48e9, 0),
        ("torus:10x10x10@25GB/s,1us", ("npu999", "npu998"), 125e9, 0),
        # One of eight NICs, and the link to the NVSwitch, without which the NIC is all there is.
        ("dgx_a100_4box", ("b3g7", "b3nic7"), 300e9, 175e9),
        ("dgx_a100_4box", ("b3g7", "b3nvs"), 25e9, 200e9),
        ("dgx_a100_4box", ("b3nic7", "ib1"), 300e9, 175e9),
        ("rail:128x8@300GB/s,1us@25GB/s", ("npu1023", "rail7"), 300e9, 175e9),
    ],
)
def test_a_dead_link_of_the_last_npu_is_seen(
    network: str, link: tuple[str, str], bandwidth: float, nics: float
) -> None:
    found = hardware_of(failed(network, link))
    assert found.bandwidth == pytest.approx(bandwidth, rel=1e-4)
    assert found.nic_bandwidth == pytest.approx(nics, rel=1e-4)


@pytest.mark.parametrize(
    ("slow", "nics", "slowest"),
    [
        ("b0nic2=0.25GB/s", 175e9, 2e9),  # left out
        ("b0g2,b0nic2=0.25GB/s", 175e9, 2e9),  # what leads to the NIC is slow
        ("b0nic2=12.5GB/s", 187.5e9, 100e9),  # two channels by each of the others
        ("b0nic2=18GB/s", 187.5e9, 144e9),
        ("b0g2,b0nvs=3GB/s", 200e9, 0),
    ],
)
def test_channels_that_send_as_much_do_not_add_up_unlike_nics(
    slow: str, nics: float, slowest: float
) -> None:
    found = hardware_of(slowed(hk.topology.load("dgx_a100_2box"), read_slow([slow])))
    assert (found.nic_bandwidth, found.slowest) == pytest.approx((nics, slowest))
    assert (found.about_nics is None) == (slowest == 0)


@given(st.lists(st.tuples(*[st.sampled_from((4, 7, 10, 20))] * 3), min_size=2, max_size=3))
@settings(max_examples=60, deadline=None)
def test_unlike_nics_are_shared_by_equal_channels(nodes: list[tuple[int, ...]]) -> None:
    """Beside every way to give each NIC none, one or two channels, as many in each node."""
    topology = hk.topology.load(f"box:{len(nodes)}x3x3@900GB/s,1us@20GB/s,1us")
    slow = [
        f"nic{node}_{nic}={rate}GB/s"
        for node, rates in enumerate(nodes)
        for nic, rate in enumerate(rates)
        if rate < 20
    ]
    found = hardware_of(slowed(topology, read_slow(slow)))
    paces: dict[int, list[float]] = {}
    for rates in nodes:
        best: dict[int, float] = {}
        for times in product((0, 1, 2), repeat=3):
            taken = [rate / many for rate, many in zip(rates, times, strict=True) if many]
            if taken:
                best[sum(times)] = max(best.get(sum(times), 0.0), min(taken))
        for count, pace in best.items():
            paces.setdefault(count, []).append(pace)
    most = max(count * min(pace) for count, pace in paces.items())
    cut = min(sum(rates) for rates in nodes)
    assert found.nic_bandwidth == pytest.approx(1e9 * min(most, cut), rel=1e-5)


def test_predictions_say_what_slow_nics_may_cost() -> None:
    slow = slowed(hk.topology.load("dgx_a100_2box"), read_slow(["b0nic2=0.25GB/s"]))
    whole = hk.predict("all-gather", "dgx_a100_2box", sizes="1 GiB")
    found = hk.predict("all-gather", slow, sizes=["1 MiB", "1 GiB"], profile=whole.profile)
    ring = hk.compare("all-gather", slow, size="1 GiB", algorithms=["nccl-ring"]).best.run
    assert not whole.notes
    assert 1.05 < found.times[1].seconds / whole.times[0].seconds < 1.2
    (note,) = found.notes
    assert "the slowest has 0.25 GB/s: a node sends 175 GB/s if NCCL knows" in note
    said = float(note.rpartition("takes ")[2].removesuffix(" ms")) * 1e-3
    assert said == pytest.approx(ring.time_ps * 1e-12, rel=0.3)
    pick = hk.nccl.predict("all-gather", slow, size="1 GiB")
    assert pick.notes[0] in note


@pytest.mark.parametrize("command", [["predict"], ["predict", "--nccl"], ["compare"]])
def test_commands_say_what_slow_nics_may_cost(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["all-gather", "-t", "dgx_a100_2box", "--size", "1MB", "--slow", "b0nic2=0.25GB/s"]
    assert run([*command, *words]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "the slowest has 0.25 GB/s: a node sends 175 GB/s if NCCL knows the rates;" in printed


def test_hardware_is_read_without_scipy() -> None:
    code = """
import sys, hocket as hk
hk.nccl.predict("all-reduce", "dgx_a100_2box", size="1 MiB")
print("scipy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_what_an_npu_with_all_its_links_sends_is_kept() -> None:
    assert hardware_of(failed("dgx1_v100", ("gpu7", "gpu3"))).most == pytest.approx(150e9, rel=1e-4)
    assert hardware_of(hk.topology.load("dgx1_v100")).most == 0


@pytest.mark.parametrize(
    ("network", "link", "profile", "kind"),
    [
        ("dgx1_v100", ("gpu7", "gpu3"), "v100", "all-reduce"),
        ("dgx_a100_4box", ("b3g7", "b3nvs"), "a100", "all-reduce"),
        ("dgx_a100_4box", ("b3nic7", "ib1"), "a100", "all-gather"),
        ("dgx_h100_4box_quantum2", ("npu31", "rail7"), "h100", "all-reduce"),
    ],
)
def test_predictions_get_slower_by_a_dead_link(
    network: str, link: tuple[str, str], profile: str, kind: str
) -> None:
    def seconds(topology: Topology) -> float:
        found = hk.predict(kind, topology, sizes="1 GiB", profile=profile)
        return found.times[0].seconds

    whole, broken = hk.topology.load(network), failed(network, link)
    assert seconds(broken) > 1.05 * seconds(whole)
    asked = (hk.nccl.predict(kind, each, size="1 GiB").seconds for each in (broken, whole))
    assert next(asked) > 1.05 * next(asked)


def test_a_dead_link_leaves_the_gpu_what_it_is() -> None:
    """125 GB/s is what no GPU of NVIDIA has; the other seven say that it is Volta."""
    pick = hk.nccl.predict("all-reduce", failed("dgx1_v100", ("gpu7", "gpu3")), size="1 GiB")
    assert pick.gpu == "volta"


@pytest.mark.parametrize(
    ("network", "dead"),
    [
        ("box:128x8x8@300GB/s,1us@25GB/s", ("npu1023", "nic127_7")),
        ("rail:128x8@300GB/s,1us@25GB/s", ("npu1023", "rail7")),
        ("torus:10x10x10@25GB/s,1us", ("npu999", "npu998")),
        ("themis_3d_fc_ring_sw", ("npu1023", "sw127")),
    ],
)
def test_devices_that_are_alike_are_looked_at_once(
    monkeypatch: pytest.MonkeyPatch, network: str, dead: tuple[str, str]
) -> None:
    """A thousand NPUs: a handful of flows each way, not one for each NPU or node."""
    plain, counted = Flows.most, []

    def most(self: Flows, *args: object, **keywords: object) -> float:
        counted.append(1)
        return plain(self, *args, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(Flows, "most", most)
    hardware_of(hk.topology.load(network))
    assert len(counted) <= 4
    hardware_of(failed(network, dead))
    assert len(counted) <= 4 + 12


def narrowest(topology: Topology) -> float:
    """Give the least maximum flow between any two NPUs: each by itself, by another library."""
    graph = nx.DiGraph()
    columns = (topology.link_src, topology.link_dst, topology.link_bandwidth)
    for src, dst, rate in zip(*(column.tolist() for column in columns), strict=True):
        before = graph.get_edge_data(src, dst, {"capacity": 0})["capacity"]
        graph.add_edge(src, dst, capacity=before + rate)
    return min(
        nx.maximum_flow_value(graph, a, b) for a, b in permutations(range(topology.npu_count), 2)
    )


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_skipping_what_is_alike_changes_nothing(data: st.DataObject) -> None:
    """Rings over switches of few bandwidths, so that many NPUs look alike, and some are."""
    npus, switches = data.draw(st.integers(2, 7)), data.draw(st.integers(1, 3))
    count = npus + switches
    rate = st.sampled_from([40, 50, 60])
    order = data.draw(st.permutations(range(count)))
    links = [(src, dst, data.draw(rate)) for src, dst in pairwise([*order, order[0]])]
    ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    more = data.draw(st.lists(ends.filter(lambda each: each[0] != each[1]), max_size=14))
    links += [(src, dst, data.draw(rate)) for src, dst in more]
    src, dst, speeds = (np.array(column) for column in zip(*links, strict=True))
    topology = Topology.from_arrays(
        "made",
        [f"d{place}" for place in range(count)],
        npus,
        [None] * switches,
        src.astype(np.uint32),
        dst.astype(np.uint32),
        (speeds * 10**9).astype(np.uint64),
        np.zeros(len(links), np.uint64),
    )
    found = hardware_of(topology)
    direct = {(s, d) for s, d, _ in links if max(s, d) < npus}
    pairs = [(a, b) for a in range(npus) for b in range(a)]
    missing = [pair for pair in pairs if pair not in direct or pair[::-1] not in direct]
    if 2 * len(missing) >= npus:
        assert found.bandwidth == pytest.approx(narrowest(topology), rel=1e-4)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_pairs_of_boards_are_held_to_the_cut_between_them(data: st.DataObject) -> None:
    """Islands of NPUs with wide links among them, a host each, and narrow links between hosts."""
    islands, size = data.draw(st.integers(2, 4)), data.draw(st.integers(2, 3))
    npus = islands * size
    links = [
        (a, b, 300)
        for first in range(0, npus, size)
        for a, b in permutations(range(first, first + size), 2)
    ]
    links += [(npu, npus + npu // size, 30) for npu in range(npus)]
    links += [(npus + npu // size, npu, 30) for npu in range(npus)]
    rate = st.integers(5, 25)
    order = data.draw(st.permutations(range(islands)))
    for a, b in pairwise(order):
        links += [(npus + a, npus + b, data.draw(rate)), (npus + b, npus + a, data.draw(rate))]
    src, dst, speeds = (np.array(column) for column in zip(*links, strict=True))
    topology = Topology.from_arrays(
        "islands",
        [f"d{place}" for place in range(npus + islands)],
        npus,
        [None] * islands,
        src.astype(np.uint32),
        dst.astype(np.uint32),
        (speeds * 10**9).astype(np.uint64),
        np.zeros(len(links), np.uint64),
    )
    found = hardware_of(topology)
    assert found.bandwidth == pytest.approx(narrowest(topology), rel=1e-4)
    assert found.most == pytest.approx(300e9 * (size - 1), rel=1e-4)
    assert found.is_on_pci


def test_links_of_pci_express_are_no_links_between_gpus() -> None:
    """NVLinks of 25 GB/s beside PCIe 3.0 x16, which carries more than a quarter of one."""
    links = [(0, 1), (1, 2), (2, 3), (3, 0)]
    src, dst = zip(*links, *((b, a) for a, b in links), strict=True)
    hosts = [(npu, 4) for npu in range(4)] + [(4, npu) for npu in range(4)]
    topology = Topology.from_arrays(
        "ring with a host",
        [f"d{place}" for place in range(5)],
        4,
        [None],
        [*src, *(each[0] for each in hosts)],
        [*dst, *(each[1] for each in hosts)],
        [25 * 10**9] * 8 + [15_753_846_153] * 8,
        [0] * 16,
    )
    found = hardware_of(topology)
    assert (found.bandwidth, found.most, found.is_on_pci) == (50e9, 0.0, False)


def test_a_spine_that_is_narrower_than_nics_counts() -> None:
    """Four nodes of two NPUs; between the two halves only 10 GB/s, though each node has 50."""
    names = [f"d{place}" for place in range(14)]
    links = [(npu, 8 + npu // 2, 100) for npu in range(8)]
    links += [(8 + node, 12 + node // 2, 50) for node in range(4)] + [(12, 13, 10)]
    both = links + [(dst, src, rate) for src, dst, rate in links]
    topology = Topology.from_arrays(
        "halves",
        names,
        8,
        [None] * 6,
        [src for src, _, _ in both],
        [dst for _, dst, _ in both],
        [rate * 10**9 for _, _, rate in both],
        [0] * len(both),
        groups=[[0, 1], [2, 3], [4, 5], [6, 7]],
    )
    assert hardware_of(topology).nic_bandwidth == pytest.approx(10e9)


def test_neighbours_are_the_slowest_group_of_any_node() -> None:
    whole = hk.topology.load("dgx1_v100")
    broken = failed("dgx1_v100", ("gpu7", "gpu6"))
    assert neighbour_bandwidth(whole, 4) == pytest.approx(100e9, rel=1e-4)
    assert neighbour_bandwidth(broken, 4) == pytest.approx(50e9, rel=1e-4)
