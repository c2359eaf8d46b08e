"""The shipped machines hold what their sources say, and show what is a default."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from hocket import machines
from hocket.errors import SpecError
from hocket.files.defaults import BANDWIDTH
from hocket.files.spec import TopologySpec
from hocket.files.text import from_file

# NPUs, switches (NICs and CPUs too), directed links; sum of the bandwidths that the source gives
# [MB/s]; directed links without bandwidth and without latency in the source.
FACTS = {
    "amd4_sccl": (4, 0, 8, 8_000, 0, 8),
    "amd8_sccl": (8, 0, 56, 304_000, 0, 56),
    "aws_p4d_24xl": (8, 12, 58, 5_404_320, 2, 58),
    "azure_ndv4": (8, 18, 84, 6_460_160, 12, 84),
    "azure_ndv5_h100": (8, 20, 82, 11_024_384, 2, 82),
    "dgx1_v100": (8, 0, 32, 1_200_000, 0, 0),
    "dgx2_1box": (16, 1, 32, 4_000_000, 0, 0),
    "dgx2_2box": (32, 2, 80, 8_200_000, 0, 0),
    "dgx_a100_1box": (8, 1, 16, 4_800_000, 0, 16),
    "dgx_a100_2box": (16, 20, 96, 11_200_000, 0, 96),
    "dgx_a100_4box": (32, 38, 192, 22_400_000, 0, 192),
    "dgx_a100_8box": (64, 74, 384, 44_800_000, 0, 384),
    "hgx_h100_2box_astrasim": (16, 2, 48, 13_600_000, 0, 0),
    "hgx_h100_4box_astrasim": (32, 4, 128, 28_800_000, 0, 0),
    "hgx_h100_8gpu_validated": (8, 1, 16, 6_400_000, 0, 0),
    "hgx_h100_ibm_4nvswitch": (8, 13, 96, 8_608_000, 0, 96),
    "mi100_4p3l_ia": (8, 13, 64, 1_451_784, 0, 64),
    "mi100_8p6l": (8, 12, 86, 2_273_136, 2, 86),
    "mi250_1box": (16, 0, 56, 5_600_000, 0, 56),
    "mi250_2box": (32, 1, 176, 12_224_000, 0, 176),
    "mi250_rccl_16gcd": (16, 41, 188, 8_212_480, 12, 188),
    "mi300x_8gpu": (8, 35, 154, 8_528_640, 2, 154),
    "ndv2_1box": (8, 0, 32, 1_200_000, 0, 0),
    "ndv2_2box": (16, 3, 84, 2_650_000, 0, 16),
    "ndv2_4box": (32, 5, 168, 5_300_000, 0, 32),
    "tpu_v3_32_torus": (32, 0, 128, 10_240_000, 0, 0),
}
GB = 10**9


def load(name: str) -> TopologySpec:
    return from_file(machines.path(name))


def defaults(spec: TopologySpec, quantity: str) -> int:
    """How many links have a default, as the notes tell the user."""
    found = [re.match(rf"{quantity} of (\d+) links is a default", note) for note in spec.notes]
    return sum(int(match[1]) for match in found if match)


def test_there_are_these_machines() -> None:
    assert machines.names() == sorted(FACTS)


@pytest.mark.parametrize("name", FACTS)
def test_a_machine_is_as_its_source_says(name: str) -> None:
    npus, switches, links, megabytes, without_rate, without_latency = FACTS[name]
    spec = load(name)
    assert spec.name == name
    assert (len(spec.npus), len(spec.switches), len(spec.links)) == (npus, switches, links)
    assert len({(link.src, link.dst) for link in spec.links}) == links
    guessed = without_rate * BANDWIDTH["upi"][0]
    assert sum(link.bandwidth for link in spec.links) - guessed == megabytes * 10**6
    assert defaults(spec, "bandwidth") == without_rate
    assert defaults(spec, "latency") == without_latency


@pytest.mark.parametrize("name", FACTS)
def test_a_machine_says_what_it_is_and_where_from(name: str) -> None:
    spec = load(name)
    assert spec.source
    described = machines.describe(name)
    assert described
    assert "\n" not in described


@pytest.mark.parametrize("name", FACTS)
def test_pcie_is_called_raw_only_where_it_is(name: str) -> None:
    spec = load(name)
    raw = {15_760_000_000, 15_752_000_000, 31_504_000_000, 63_008_000_000, 63 * GB}
    pcie = {link.bandwidth for link in spec.links if (link.kind or "").startswith("pcie")}
    says_raw = any(note.startswith("PCIe is raw") for note in spec.notes)
    assert says_raw == (bool(pcie) and pcie <= raw)


@pytest.mark.parametrize("name", sorted(set(FACTS) - {"dgx2_2box"}))
def test_links_go_both_ways(name: str) -> None:
    links = {(each.src, each.dst): (each.bandwidth, each.latency_ps) for each in load(name).links}
    assert all(links[b, a] == value for (a, b), value in links.items())


def test_relays_between_dgx2_boxes_go_one_way() -> None:
    relays = {
        (each.src, each.dst) for each in load("dgx2_2box").links if each.kind == "ib100-relay"
    }
    odd_to_even = {(f"b{x}g{i + 1}", f"b{1 - x}g{i}") for x in (0, 1) for i in range(0, 16, 2)}
    assert relays == odd_to_even


def test_dgx1_is_the_hybrid_cube_mesh() -> None:
    spec = load("dgx1_v100")
    assert {(each.bandwidth, each.latency_ps) for each in spec.links} == {
        (25 * GB, 700_000),
        (50 * GB, 700_000),
    }
    leaving = Counter[str]()
    for link in spec.links:
        leaving[link.src] += link.bandwidth
    assert leaving == {f"gpu{i}": 6 * 25 * GB for i in range(8)}  # six bricks a GPU
    ring = [0, 1, 3, 2, 6, 7, 5, 4]
    twice = {(each.src, each.dst) for each in spec.links if each.bandwidth == 50 * GB}
    assert twice == {
        (f"gpu{ring[i]}", f"gpu{ring[(i + step) % 8]}") for i in range(8) for step in (1, -1)
    }


def test_an_unknown_machine_is_refused_in_a_line() -> None:
    with pytest.raises(SpecError, match=r"no machine 'dgx9'") as error:
        machines.path("dgx9")
    assert "\n" not in str(error.value)


def test_every_file_is_a_machine() -> None:
    folder = Path(machines.__file__).parent
    assert {file.name for file in folder.iterdir() if file.suffix != ".py" and file.is_file()} == {
        f"{name}.yml" for name in FACTS
    }
