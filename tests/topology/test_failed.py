"""Networks without what has failed."""

from __future__ import annotations

from pathlib import Path

import pytest

import hocket as hk
from hocket import topology as tp
from hocket.topology.build import build_topology
from hocket.topology.text import from_text

from .small_networks import LINK, pairs


def test_without_keeps_the_names_of_the_rest() -> None:
    whole = tp.load("dgx_a100_2box")
    less = whole.without(nodes=["b0g3", "ib1"], links=[("b0g0", "b0nvs")])
    assert less.npu_count == 15
    assert set(less.device_names) == set(whole.device_names) - {"b0g3", "ib1"}
    gone = {pair for pair in pairs(whole) if {"b0g3", "ib1"} & set(pair)}
    gone |= {("b0g0", "b0nvs"), ("b0nvs", "b0g0")}
    assert pairs(less) == pairs(whole) - gone
    assert pairs(whole) >= gone  # the whole one is as it was
    again = less.without(nodes=["b1g7"])
    assert "b1g7" not in again.device_names
    assert again.device_index("b1g6") < again.npu_count


def test_without_what_is_not_there() -> None:
    topology = tp.ring(4, **LINK)
    with pytest.raises(hk.SpecError, match='no device is called "npu9"; devices are'):
        topology.without(nodes=["npu9"])
    with pytest.raises(hk.SpecError, match='there is no link "npu0" -> "npu2"; links of "npu0"'):
        topology.without(links=[("npu0", "npu2")])
    with pytest.raises(hk.SpecError, match="leave no NPU"):
        topology.without(nodes=topology.device_names)


def test_failures_of_an_option_are_told_from_those_of_a_file(tmp_path: Path) -> None:
    spec = from_text("ring:4", bandwidth=["1 GB/s"], latency=["1 ns"])
    with pytest.raises(hk.SpecError, match=r"^--topology ring:4: --failed: no device is called"):
        build_topology(spec.with_failures(["npu9"], []))
    spec = from_text("dgx1_v100", bandwidth=None, latency=None)
    with pytest.raises(hk.SpecError, match=r"^dgx1_v100: --failed: there is no link"):
        build_topology(spec.with_failures([], [("gpu0", "gpu7")]))
    file = tmp_path / "net.yml"
    file.write_text("npus: 2\nlinks: []\nfailed: {nodes: [x]}\n")
    spec = from_text(str(file), bandwidth=None, latency=None)
    with pytest.raises(hk.SpecError, match=r"net\.yml, line 3: failed: no device is called"):
        build_topology(spec.with_failures(spec.failed_nodes, spec.failed_links))
