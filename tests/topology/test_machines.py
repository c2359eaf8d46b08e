"""The shipped machines: facts of each, and that every assumption in them is told."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import hocket as hk
from hocket.topology import machines
from hocket.topology.defaults import BANDWIDTH, LATENCY_PS
from hocket.topology.text import from_text

GB = 10**9

# NPUs, switches, directed links; bandwidth out of the first NPU [MB/s].
FACTS = {
    "amd4_sccl": (4, 0, 8, 2_000),
    "amd8_sccl": (8, 0, 56, 38_000),
    "aws_p4d_24xl": (8, 12, 58, 315_760),
    "azure_ndv4": (8, 18, 84, 331_504),
    "azure_ndv5_h100": (8, 20, 82, 513_008),
    "dgx1_v100": (8, 0, 32, 150_000),
    "dgx2_1box": (16, 1, 32, 125_000),
    "dgx2_2box": (32, 2, 80, 125_000),
    "dgx_a100_1box": (8, 1, 16, 300_000),
    "dgx_a100_2box": (16, 20, 96, 325_000),
    "dgx_a100_4box": (32, 38, 192, 325_000),
    "dgx_a100_8box": (64, 74, 384, 325_000),
    "dgx_h100_4box_quantum2": (32, 12, 128, 500_000),
    "gb200_nvl72": (72, 18, 2592, 900_000),
    "hgx_h100_2box_astrasim": (16, 2, 48, 450_000),
    "hgx_h100_2box_rails": (16, 10, 64, 500_000),
    "hgx_h100_2box_switch": (16, 19, 96, 500_000),
    "hgx_h100_4box_astrasim": (32, 4, 128, 500_000),
    "hgx_h100_4box_rails": (32, 12, 128, 500_000),
    "hgx_h100_4box_switch": (32, 37, 192, 500_000),
    "hgx_h100_8gpu_validated": (8, 1, 16, 400_000),
    "hgx_h100_ibm_4nvswitch": (8, 13, 96, 513_000),
    "hgx_h200_8gpu": (8, 1, 16, 450_000),
    "mi100_4p3l_ia": (8, 13, 64, 103_504),
    "mi100_8p6l": (8, 12, 86, 175_504),
    "mi250_1box": (16, 0, 56, 350_000),
    "mi250_2box": (32, 1, 176, 366_000),
    "mi250_rccl_16gcd": (16, 41, 188, 315_008),
    "mi300x_8gpu": (8, 35, 154, 399_008),
    "ndv2_1box": (8, 0, 32, 150_000),
    "ndv2_2box": (16, 3, 84, 162_500),
    "ndv2_4box": (32, 5, 168, 162_500),
    "themis_2d": (1024, 80, 4096, 250_000),
    "themis_3d_fc_ring_sw": (1024, 128, 11264, 325_000),
    "themis_3d_hetero": (1024, 320, 6144, 350_000),
    "themis_3d_homo": (1024, 320, 6144, 300_000),
    "themis_4d_ring_fc_ring_sw": (1024, 128, 13312, 800_000),
    "themis_4d_ring_sw_sw_sw": (1024, 512, 8192, 600_000),
    "themis_current": (1024, 80, 4096, 162_500),
    "tpu_v3_32_torus": (32, 0, 128, 320_000),
}


# Table 2 of Themis, and the current platform of its figure 4: bandwidth of an NPU along each
# dimension, one way [Gb/s]; latency of a step [ns]. That of the current platform is an assumption.
THEMIS = {
    "themis-2d": ([16, 64], [1200, 800], [700, 1700]),
    "themis-3d-homo": ([16, 8, 8], [800, 800, 800], [700, 700, 1700]),
    "themis-3d-hetero": ([16, 8, 8], [1600, 800, 400], [700, 700, 1700]),
    "themis-3d-fc-ring-sw": ([8, 16, 8], [1400, 800, 400], [700, 700, 1700]),
    "themis-4d-ring-sw-sw-sw": ([4, 4, 8, 8], [2000, 1600, 800, 400], [20, 700, 700, 1700]),
    "themis-4d-ring-fc-ring-sw": ([4, 8, 4, 8], [3000, 1400, 1200, 800], [20, 700, 700, 1700]),
    "themis-current": ([16, 64], [1200, 100], [700, 1700]),
}


def out_of(topology: hk.Topology, name: str, to: str = "") -> list[int]:
    """Bandwidth of each link that leaves a device, for one whose name begins so [bytes/s]."""
    src = topology.device_index(name)
    names = topology.device_names
    return [
        int(rate)
        for a, b, rate in zip(
            topology.link_src, topology.link_dst, topology.link_bandwidth, strict=True
        )
        if a == src and names[b].startswith(to)
    ]


def test_there_are_40() -> None:
    assert hk.topology.names() == sorted(FACTS)
    assert len(FACTS) == 40


@pytest.mark.parametrize("name", FACTS)
def test_facts(name: str) -> None:
    topology = hk.topology.load(name)
    npus, switches, links, rate = FACTS[name]
    found = topology.inspect()
    assert (found.npus, found.switches, found.links) == (npus, switches, links)
    assert sum(out_of(topology, topology.device_names[0])) == rate * 10**6
    assert found.connected
    assert found.unreachable is None
    assert found.diameter_hops is not None


@pytest.mark.parametrize("name", FACTS)
def test_links_go_both_ways_alike(name: str) -> None:
    topology = hk.topology.load(name)
    columns = (topology.link_src, topology.link_dst, topology.link_bandwidth)
    links = sorted(zip(*(column.tolist() for column in columns), strict=True))
    back = sorted((b, a, rate) for a, b, rate in links)
    if name == "dgx2_2box":  # a GPU sends to the other box, its neighbour receives
        assert sum(link not in set(back) for link in links) == 16
    else:
        assert links == back


@pytest.mark.parametrize("name", FACTS)
def test_every_default_is_told(name: str) -> None:
    text = machines.path(name).read_text(encoding="utf-8")
    spec = from_text(name, bandwidth=None, latency=None)
    told = [note for note in spec.notes if "is a default, not from the source" in note]
    asked = re.findall(r"(bandwidth|latency): default (\w+)", text)
    assert len(told) == len(set(asked))
    for quantity, medium in asked:
        value, reason = (BANDWIDTH if quantity == "bandwidth" else LATENCY_PS)[medium]
        assert any(note.startswith(quantity) and note.endswith(reason) for note in told)
        values = {
            link.bandwidth if quantity == "bandwidth" else link.latency_ps for link in spec.links
        }
        assert value in values
    # How many links a note names is right: every link of a kind that asks.
    kinds = dict(re.findall(r"^  ([\w.-]+): \{(.*)\}$", text, re.MULTILINE))
    links = sum("latency: default" in kinds[link.kind or ""] for link in spec.links)
    counted = [int(note.split()[2]) for note in told if note.startswith("latency")]
    assert sum(counted) == links


@pytest.mark.parametrize("name", FACTS)
def test_source_and_names(name: str) -> None:
    spec = from_text(name, bandwidth=None, latency=None)
    assert spec.name == name
    assert spec.source
    assert spec.links or spec.dimensions or spec.builder
    devices = [*spec.npus, *(switch for switch, _ in spec.switches)]
    assert len(set(devices)) == len(devices)
    assert all(re.fullmatch(r"[a-z0-9_]+", device) for device in devices)
    used = {link.src for link in spec.links}
    assert used == set(devices)  # nothing stands about unconnected
    assert len(machines.describe(name)) > 10
    assert machines.path(name).name == f"{name}.yml"
    assert machines.path(name.replace("_", "-")) == machines.path(name)


def test_dgx1_is_the_hybrid_cube_mesh() -> None:
    topology = hk.topology.load("dgx1_v100")
    for gpu in range(8):
        assert sorted(out_of(topology, f"gpu{gpu}")) == [25 * GB, 25 * GB, 50 * GB, 50 * GB]
    assert topology.inspect().diameter_hops == 2
    assert topology.inspect().bisection_bandwidth == 100 * GB * 3 // 2


@pytest.mark.parametrize(
    ("name", "gpu", "switch", "rate"),
    [
        ("dgx_a100_1box", "b0g3", "b0nvs", 300 * GB),
        ("dgx_a100_8box", "b7g7", "b7nvs", 300 * GB),
        ("dgx2_1box", "b0g15", "b0nvs", 125 * GB),
        ("azure_ndv5_h100", "gpu0", "nvs0", 450 * GB),
        ("hgx_h100_8gpu_validated", "gpu0", "nvs0", 400 * GB),
        ("hgx_h100_ibm_4nvswitch", "gpu0", "nvs_", 450 * GB),
    ],
)
def test_gpu_to_nvswitch(name: str, gpu: str, switch: str, rate: int) -> None:
    assert sum(out_of(hk.topology.load(name), gpu, switch)) == rate


def test_tpu_is_a_torus_of_4_by_8() -> None:
    topology = hk.topology.load("tpu_v3_32_torus")
    torus = hk.topology.torus(4, 8, bandwidth="80 GB/s", latency="1 us")
    for mine, theirs in ((topology, torus), (torus, topology)):
        assert mine.inspect().diameter_hops == theirs.inspect().diameter_hops == 6
    assert topology.inspect().bisection_bandwidth == torus.inspect().bisection_bandwidth
    assert topology.inspect().out_degree == (4, 4)


def test_mi300x_is_fully_connected() -> None:
    topology = hk.topology.load("mi300x_8gpu")
    for gpu in range(8):
        assert out_of(topology, f"gpu{gpu}", "gpu") == [48 * GB] * 7


def test_unknown_machine() -> None:
    with pytest.raises(hk.SpecError, match="there is no machine 'dgx9'"):
        machines.path("dgx9")


def test_files_are_beside_the_module() -> None:
    assert machines.path("dgx1_v100").parent == Path(machines.__file__).parent


@pytest.mark.parametrize(("name", "published"), THEMIS.items())
def test_networks_of_themis(name: str, published: tuple[list[int], list[int], list[int]]) -> None:
    """Bandwidth and latency as published, counted on the links of every NPU."""
    sizes, gbits, steps = published
    topology = hk.topology.load(name)
    assert topology.npu_count == 1024
    assert [size for _, size, *_ in topology.dimensions] == sizes
    assert topology.switching == "cut-through"
    rates = np.zeros((1024, len(sizes)), dtype=np.int64)
    latencies: list[set[int]] = [set() for _ in sizes]
    peers: dict[int, list[int]] = {}
    columns = (topology.link_src, topology.link_dst, topology.link_bandwidth)
    links = list(
        zip(*(column.tolist() for column in (*columns, topology.link_latency_ps)), strict=True)
    )
    for src, dst, _, _ in links:
        if dst >= 1024:
            peers.setdefault(dst, []).append(src)
    for src, dst, rate, delay in links:
        if src < 1024:
            other = dst if dst < 1024 else next(npu for npu in peers[dst] if npu != src)
            along = differs(src, other, sizes)
            rates[src, along] += rate
            latencies[along].add(delay if dst < 1024 else 2 * delay)
    assert (rates * 8 == np.array(gbits) * GB).all()
    assert latencies == [{step * 1000} for step in steps]


def differs(a: int, b: int, sizes: list[int]) -> int:
    """The one dimension in which two NPUs differ."""
    found = []
    for i, size in enumerate(sizes):
        if a % size != b % size:
            found.append(i)
        a, b = a // size, b // size
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("name", THEMIS)
def test_networks_of_themis_say_where_from(name: str) -> None:
    spec = from_text(name, bandwidth=None, latency=None)
    assert "Themis, ISCA 2022, " in spec.source[0]
    assert ("table 2" in spec.source[0]) == (name != "themis-current")
    assert any(note.startswith("Assumed:") for note in spec.notes) == (name == "themis-current")
    for kind in {dimension.kind for dimension in spec.dimensions}:
        assert any(note.startswith(kind) for note in spec.notes)
