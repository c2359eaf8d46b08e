"""Network files of ASTRA-sim."""

from __future__ import annotations

from pathlib import Path

import pytest

import hocket as hk
from hocket.topology.text import from_file

from .topology_files import (
    ASTRA,
    GIB,
    NETWORK,
    load,
    refusal,
)


@pytest.mark.parametrize(
    ("name", "npus", "count", "rates", "delays"),
    [
        ("FullyConnected", 16, 240, {50 * GIB}, {500_000}),
        ("HGX-H100-validated", 8, 16, {400 * GIB}, {936_000}),  # 936.25 ns is cut there
        ("Ring", 16, 32, {50 * GIB}, {500_000}),
        ("Ring_16npus", 16, 32, {50 * GIB}, {500_000}),
        ("Ring_4npus", 4, 8, {50 * GIB}, {500_000}),
        ("Ring_8npus", 8, 16, {50 * GIB}, {500_000}),
        (
            "Ring_FullyConnected_Switch",
            64,
            64 + 64 * 7 + 64 * 2,
            {200 * GIB, 100 * GIB, 50 * GIB},
            {50_000, 500_000, 2_000_000},
        ),
        ("Switch", 16, 32, {50 * GIB}, {500_000}),
    ],
)
def test_astra_networks(
    name: str, npus: int, count: int, rates: set[int], delays: set[int]
) -> None:
    topology = hk.topology.load(ASTRA / f"{name}.yml")
    assert topology.npu_count == npus
    assert len(topology.link_src) == count
    assert set(topology.link_bandwidth.tolist()) == rates
    assert set(topology.link_latency_ps.tolist()) == delays
    assert topology.inspect().connected
    assert "2^30" in from_file(ASTRA / f"{name}.yml").notes[0]


@pytest.mark.parametrize("path", sorted(ASTRA.glob("*.yml")), ids=lambda path: path.stem)
def test_astra_networks_are_compared_on(path: Path) -> None:
    names = ["ring", "direct", "hierarchical", "themis"]
    topology = hk.topology.load(path)
    entries = hk.compare("all-reduce", topology, size="1 MB", algorithms=names).entries
    assert all(entry.run.gap >= 0 for entry in entries)
    assert "ring" in [entry.algorithm for entry in entries]


def test_all_astra_networks_are_tried() -> None:
    assert len(list(ASTRA.glob("*.yml"))) == 8


def test_five_astra_dimensions_are_honoured(tmp_path: Path) -> None:
    text = (
        "topology: [Ring, Switch, FullyConnected, Ring, Switch]\nnpus_count: [2, 3, 2, 4, 2]\n"
        "bandwidth: [1, 2, 3, 4, 5]\nlatency: [10, 20, 30, 40, 50.9]\n"
    )
    topology = load(tmp_path, text)
    assert topology.npu_count == 96
    assert topology.dimensions == [
        ("Ring", 2, GIB, 10_000, False),
        ("Switch", 3, 2 * GIB, 20_000, False),
        ("FullyConnected", 2, 3 * GIB, 30_000, False),
        ("Ring", 4, 4 * GIB, 40_000, False),
        ("Switch", 2, 5 * GIB, 50_000, False),
    ]


def test_astra_numbers_with_an_exponent(tmp_path: Path) -> None:
    topology = load(tmp_path, NETWORK.replace("50.0", "1e2").replace("500", "5.5e1"))
    assert topology.dimensions[0] == ("Ring", 4, 100 * GIB, 55_000, False)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "latency",
            "latancy",
            "line 4: latancy: ASTRA-sim's network files have no such key; did you",
        ),
        ("topology", "topolgy", "line 1: topolgy: ASTRA-sim's network files have no such key; did"),
        (
            "npus_count",
            "npu_count",
            "line 2: npu_count: ASTRA-sim's network files have no such key",
        ),
        ("latency: [ 500, 20 ]", "", "line 1: key 'latency' is missing; add a list with one entry"),
        ("[ 4, 2 ]", "[ 4 ]", "line 2: npus_count: has 1 entries, topology has 2; give one a dim"),
        ("[ 50.0, 25.0 ]", "[ 1, 2, 3 ]", "line 3: bandwidth: has 3 entries, topology has 2; give"),
        ("[ 4, 2 ]", "6", "line 2: npus_count: 6 "),
        ("[ Ring, Switch ]", "Ring", "line 1: topology: 'Ring' "),
        ("[ Ring, Switch ]", "[]", "line 1: topology: [] "),
        ("Ring", "Rng", "line 1: topology[0]: 'Rng' is not a dimension; did you mean 'Ring'?"),
        (
            "Ring",
            "Mesh",
            "line 1: topology[0]: 'Mesh' is not a dimension; use Ring, FullyConnected",
        ),
        ("Ring", "[Ring]", "line 1: topology[0]: ['Ring'] is not a dimension; use Ring"),
        ("50.0", "-50", "line 3: bandwidth[0]: -50 "),
        ("50.0", "0", "line 3: bandwidth[0]: 0 "),
        ("50.0", ".nan", "line 3: bandwidth[0]: nan "),
        ("50.0", ".inf", "line 3: bandwidth[0]: inf "),
        (
            "50.0",
            "50 GB/s",
            "line 3: bandwidth[0]: '50 GB/s' ",
        ),
        ("50.0", "true", "line 3: bandwidth[0]: true "),
        ("50.0", "1.0e+300", "line 3: bandwidth[0]: 1e+300 "),
        (
            "500",
            "-1",
            "line 4: latency[0]: -1 is not a latency; ASTRA-sim's is a plain number of ns, 0",
        ),
        ("500", "fast", "line 4: latency[0]: 'fast' is not a latency; "),
        ("4, 2", "4.5, 2", "line 2: npus_count[0]: 4.5 "),
        ("4, 2", "0, 2", "line 2: npus_count[0]: 0 "),
        ("4, 2", "true, 2", "line 2: npus_count[0]: true "),
    ],
)
def test_wrong_astra_networks(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert refusal(tmp_path, NETWORK.replace(old, new)).startswith(says)


def test_astra_refuses_further_keys(tmp_path: Path) -> None:
    says = (
        "line 5: loops: ASTRA-sim's network files have no such key; keys are topology, npus_count"
    )
    assert refusal(tmp_path, NETWORK + "loops: 3\n").startswith(says)
