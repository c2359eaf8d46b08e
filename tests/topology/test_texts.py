"""Networks given as text."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from hocket import topology as tp
from hocket.topology.text import from_text

from .small_networks import GB, LINK, product, text


@pytest.mark.parametrize(
    ("given", "same"),
    [
        ("line:4", tp.line(4, **LINK)),
        ("ring:4", tp.ring(4, **LINK)),
        ("fc:4", tp.fully_connected(4, **LINK)),
        ("fully_connected:4", tp.fully_connected(4, **LINK)),
        ("switch:4", tp.switch(4, **LINK)),
        ("mesh:3x4", tp.mesh(3, 4, **LINK)),
        ("mesh:3X4", tp.mesh(3, 4, **LINK)),
        ("torus:3x3x2", tp.torus(3, 3, 2, **LINK)),
        ("hypercube:3", tp.hypercube(3, **LINK)),
        ("dragonfly:4x5", tp.dragonfly(4, 5, **LINK)),
        ("clos:2x4x3", tp.clos(spines=2, tors=4, hosts_per_tor=3, **LINK)),
        ("clos:2x4", tp.clos(spines=2, tors=4, hosts_per_tor=1, **LINK)),
        ("bigraph:2x3", tp.bigraph(2, 3, **LINK)),
        ("fat_tree:4", tp.fat_tree(4, **LINK)),
        ("fat-tree:4", tp.fat_tree(4, **LINK)),
        ("Ring_FC_SW:2x8x4", product("Ring_FC_SW", [2, 8, 4], ["2 GB/s"] * 3, ["3 ns"] * 3)),
        ("Switch:4", product("Switch", [4], ["2 GB/s"], ["3 ns"])),
    ],
)
def test_text_is_as_the_builder(given: str, same: hk.Topology) -> None:
    assert text(given) == same


@pytest.mark.parametrize("rates", [["1 GB/s", "2 GB/s", "4 GB/s"], ["1 GB/s,2 GB/s,4 GB/s"]])
def test_a_bandwidth_for_each_dimension(rates: list[str]) -> None:
    topology = text("Ring_FC_SW:2x2x2", bandwidth=rates)
    assert [each[2] for each in topology.dimensions] == [GB, 2 * GB, 4 * GB]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("mesh", "--topology: there is no 'mesh'; write it with its size, as mesh:9x9"),
        ("mesh:", "--topology: 'mesh:': '' "),
        ("mesh:9y9", "--topology: 'mesh:9y9': '9y9' "),
        ("mesh:-1", "--topology: 'mesh:-1': '-1' "),
        ("mesh:٣", "--topology: 'mesh:٣': '٣' "),
        ("mesh:0", "--topology mesh:0: dimensions of"),
        ("mesh:4294967296", "--topology: 'mesh:4294967296': a size is 2^32 or more"),
        ("mesh:" + "9" * 30, "--topology: 'mesh:999"),
        ("mesh:" + "x".join("1" * 40), "--topology: 'mesh:1x1"),
        ("ring:3x3", "--topology: 'ring:3x3' has 2 sizes; write it as ring:16"),
        ("fully_connected:3x3", "--topology: 'fully_connected:3x3' has 2 sizes; write it as fully"),
        ("dragonfly:4", "--topology: 'dragonfly:4' has 1 size; write it as dragonfly:GROUPS"),
        (
            "clos:4",
            "--topology: 'clos:4' has 1 size; write it as clos:SPINESxTORS[xHOSTS_PER_TOR]",
        ),
        (
            "bigraph:4",
            "--topology: 'bigraph:4' has 1 size; write it as bigraph:SWITCHES_PER_SIDExNPU",
        ),
        (
            "bigraph:0x4",
            "--topology bigraph:0x4: switches per side of the BiGraph: is 0; give it at",
        ),
        ("bigraph:4x0", "--topology bigraph:4x0: NPUs per switch of the BiGraph: is 0; give it at"),
        ("Ring_FC:2", "--topology: 'Ring_FC:2' has 1 size; give one for each of 2 dimensions"),
        ("rng:4", "--topology: there is no 'rng' to build; did you mean 'ring'?"),
        ("qqq:4", "--topology: there is no 'qqq' to build; give a shipped machine"),
        ("Ring_Foo:2x2", "--topology: there is no 'Ring_Foo' to build; "),
        ("ring:1", "--topology ring:1: size of the ring: is 1; give it at least 2"),
        ("ring:1000000000", "--topology ring:1000000000: ring 1000000000 (1000000000 NPUs"),
    ],
)
def test_wrong_text(given: str, says: str) -> None:
    with pytest.raises(hk.SpecError) as error:
        text(given)
    assert str(error.value).startswith(says)
    assert len(str(error.value)) < 450


@pytest.mark.parametrize(
    ("given", "options", "says"),
    [
        (
            "mesh:3x3",
            {"bandwidth": None},
            '--bandwidth: mesh:3x3 needs one; give --bandwidth "25 GB',
        ),
        ("mesh:3x3", {"latency": None}, '--latency: mesh:3x3 needs one; give --latency "700 ns"'),
        ("mesh:3x3", {"latency": []}, "--latency: mesh:3x3 needs one"),
        ("mesh:3x3", {"bandwidth": ["1 GB/s"] * 2}, "--bandwidth: 2 given for mesh:3x3; give one"),
        (
            "Ring_FC_SW:2x2x2",
            {"latency": ["1 ns", "2 ns"]},
            "--latency: 2 given for Ring_FC_SW:2x2x2; give one, or one for each of 3 dimensions",
        ),
        ("mesh:3x3", {"bandwidth": ["25"]}, "--bandwidth: '25' "),
        ("mesh:3x3", {"latency": ["fast"]}, "--latency: 'fast' "),
        (
            "dgx1_v100",
            {"latency": None},
            "--bandwidth: dgx1_v100 has its own; leave the option out",
        ),
        (
            "dgx1_v100",
            {"bandwidth": None},
            "--latency: dgx1_v100 has its own; leave the option out",
        ),
    ],
)
def test_wrong_options(given: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(hk.SpecError) as error:
        text(given, **options)
    assert str(error.value).startswith(says)


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("dgx1", "did you mean 'dgx1_v100'"),
        ("DGX1_V100", "did you mean 'dgx1_v100'"),
        ("mi300", "did you mean 'mi300x_8gpu'"),
        ("ndv2", "did you mean 'ndv2_1box' or 'ndv2_2box' or 'ndv2_4box'?"),
        ("something", "give a shipped machine (`hocket topology list`), a .yml file, ring:16"),
    ],
)
def test_near_names_of_machines(given: str, near: str) -> None:
    with pytest.raises(hk.SpecError) as error:
        from_text(given, bandwidth=None, latency=None)
    assert near in str(error.value)


def test_a_machine_comes_before_a_file_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    network = "npus: 2\nlinks:\n  - [npu0, npu1, 1 GB/s, 1 ns]\n"
    for name in ("dgx1_v100", "mine", "mine.yml"):
        Path(name).write_text(network)
    assert tp.load("dgx1_v100").npu_count == 8
    assert tp.load(tmp_path / "dgx1_v100").npu_count == 2
    assert tp.load("mine").npu_count == 2
    assert tp.load("mine.yml").npu_count == 2
    with pytest.raises(hk.SpecError, match=r"^--bandwidth: mine\.yml has its own; leave"):
        text("mine.yml", latency=None)


def test_numbers_are_in_si_units() -> None:
    text = tp.mesh(4, 4, bandwidth="25 GB/s", latency="700 ns")
    assert tp.mesh((4, 4), bandwidth=25e9, latency=700e-9) == text
    assert tp.mesh([4, 4], bandwidth=text.link_bandwidth[0], latency=Fraction(7, 10**7)) == text
    assert tp.clos(4, 4, 4, **LINK) == tp.clos(spines=4, tors=4, hosts_per_tor=4, **LINK)
    run = hk.simulate(hk.plan("all-reduce", text, size=1e6, algorithm="ring"))
    again = tp.ring(4, bandwidth=run.algbw, latency=run.time)
    assert again.link_bandwidth[0] == round(run.algbw)
    assert again.link_latency_ps[0] == run.time_ps


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("mesh:4x4", {"bandwidth": 25e9, "latency": 700e-9}),
        ("mesh:4x4", {"bandwidth": ["25 GB/s"], "latency": "700 ns"}),
        ("mesh:4x4@25GB/s,700ns", {}),
        ("mesh:4x4@200 Gb/s, 0.7 us", {}),
    ],
)
def test_load_takes_builders(text: str, keys: dict[str, Any]) -> None:
    assert tp.load(text, **keys) == tp.mesh(4, 4, bandwidth="25 GB/s", latency="700 ns")


def test_load_takes_what_goes_with_a_topology() -> None:
    broken = tp.load("dgx1_v100", failed=["gpu7", "gpu0,gpu1"])
    assert broken == tp.load("dgx1_v100").without(["gpu7"], ["gpu0,gpu1"])
    assert broken == tp.load("dgx1_v100").without(["gpu7"], [("gpu0", "gpu1")])
    assert tp.load("dgx1_v100", failed="gpu7").npu_count == 7
    product = tp.load("Ring_SW:4x2", bandwidth=[1e9, 2e9], latency=1e-6)
    assert [rate for _, _, rate, _, _ in product.dimensions] == [10**9, 2 * 10**9]
    assert tp.load("ring:8@1GB/s,1us", groups=4).groups == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_text_is_as_good_as_a_topology() -> None:
    ring = tp.ring(4, bandwidth=1e9, latency=1e-6)
    assert tp.as_topology(ring) is ring
    assert tp.as_topology("ring:4@1GB/s,1us") == ring
    assert tp.as_topology(Path("dgx1_v100")) == tp.load("dgx1_v100")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: tp.as_topology(3),
            "topology: 3 is not a topology; give one of hk.topology, or text",
        ),
        (lambda: tp.as_topology("dgx1"), "topology: there is no 'dgx1'; did you mean 'dgx1_v100'"),
        (lambda: tp.as_topology("mesh:4x4"), "bandwidth: mesh:4x4 needs one; give bandwidth="),
        (lambda: tp.as_topology("mesh:4x4@25GB/s"), "topology: 'mesh:4x4@25GB/s' has no latency"),
        (lambda: tp.as_topology("mesh:4x4@25,1ns"), "bandwidth: '25' "),
        (lambda: tp.as_topology("mesh:4@1GB/s,"), "latency: '' "),
        (
            lambda: tp.load("mesh:4@1GB/s,1ns", bandwidth=1e9),
            "name_or_path: 'mesh:4@1GB/s,1ns' has its own bandwidth and latency",
        ),
        (lambda: tp.load("dgx1_v100", bandwidth=1), "bandwidth: dgx1_v100 has its own"),
        (lambda: tp.load("dgx1_v100", failed=["gpu0,gpu1,gpu2"]), "failed: 'gpu0,gpu1,gpu2'"),
        (lambda: tp.load("dgx1_v100").without(links=["gpu0"]), 'links: "gpu0" is not a link; give'),
        (lambda: tp.load("dgx1_v100").without(links=[["gpu0"]]), 'links: "gpu0" is not a link'),
        (lambda: tp.load("dgx1_v100").without(links=["gpu0,gpu9"]), 'no device is called "gpu9"'),
    ],
)
def test_wrong_texts_of_topologies(call: Callable[[], object], says: str) -> None:
    with pytest.raises(hk.SpecError) as error:
        call()
    assert says in str(error.value)
    assert "\n" not in str(error.value)
