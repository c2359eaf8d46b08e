"""Plans on real machines: rings take what the law says, and more that can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import hocket as hk
from hocket.profiles.cost_model import PROTOCOLS, cells_of, ways_of
from hocket.profiles.hardware import hardware_of
from hocket.profiles.measurement import Measurement
from hocket.profiles.plans import measured_network
from hocket.profiles.profile import load_profile


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "reduce-scatter"])
@pytest.mark.parametrize("size", [8 << 10, 1 << 20, 1 << 30])
def test_a_ring_takes_what_the_law_says(protocol: str, kind: str, size: int) -> None:
    box = hk.topology.load("dgx_a100_1box")
    profile = load_profile("a100")
    plan = hk.plan(kind, box, size=size, algorithm="ring", chunks=1)
    found = hk.predict_plan(plan, profile, protocol=protocol)
    cells = cells_of([Measurement(kind, 8, 1, size, 1.0)], hardware_of(box))
    wanted = ways_of(cells, profile.values)["ring", protocol][0]
    assert (found.moving + found.fixed) * 1e6 == pytest.approx(wanted, rel=1e-4)
    assert found.seconds == pytest.approx(
        (found.launch**4 + (wanted * 1e-6) ** 4) ** 0.25, rel=1e-4
    )


@pytest.mark.parametrize("size", [64 << 20, 4 << 30])
def test_sums_in_switches_take_their_constants(size: int) -> None:
    """Each NPU sends all but its own share, and a sum to be multicast: S in all."""
    box = hk.topology.load("hgx_h200_8gpu")
    values = load_profile("h100").values
    plan = hk.plan("all-reduce", box, size=size, algorithm="nccl-nvls", chunks=64)
    found = hk.predict_plan(plan, "h100")
    assert found.protocol == "simple"
    assert found.fixed * 1e6 == pytest.approx(values["nvls.fixed"])
    least = size / (450e9 * values["nvls.efficiency"])
    assert least <= found.moving <= 1.05 * least
    law = ways_of(cells_of([Measurement("all-reduce", 8, 1, size, 1.0)], hardware_of(box)), values)[
        "nvls", "simple"
    ][0]
    assert 0.88 * law <= (found.moving + found.fixed) * 1e6 <= law
    assert found == hk.predict_plan(plan, "h100", protocol="simple")
    with pytest.raises(hk.SpecError, match="protocol: switches sum or multicast in this plan"):
        hk.predict_plan(plan, "h100", protocol="ll128")


def test_links_of_a_network_as_a_protocol_sees_it() -> None:
    boxes = hk.topology.load("box:2x4x2@300GB/s,1us@25GB/s,2us")
    profile = load_profile("a100-infiniband")
    seen = measured_network(boxes, profile, "simple")
    values = profile.values
    share = np.asarray(seen.link_bandwidth) / np.asarray(boxes.link_bandwidth)
    names = boxes.device_names
    for link, (src, dst) in enumerate(zip(seen.link_src, seen.link_dst, strict=True)):
        ends = {names[src][0], names[dst][0]}
        is_fast = boxes.link_bandwidth[link] == 300e9
        wanted = values["simple.efficiency"] if is_fast else values["simple.nic"]
        if is_fast or "n" not in ends:
            assert share[link] == pytest.approx(wanted, rel=1e-6), (names[src], names[dst])
        if src < boxes.npu_count:
            assert seen.link_latency_ps[link] >= round(values["simple.step"] * 1e6)
    assert seen.switching == "cut-through"


def test_small_data_prefers_ll() -> None:
    plan = hk.plan("all-reduce", "dgx_a100_1box", size="8 KiB", algorithm="direct")
    small = hk.predict_plan(plan, "a100")
    assert small.protocol == "ll"
    large = hk.plan("all-reduce", "dgx_a100_1box", size="1 GiB", algorithm="direct")
    assert hk.predict_plan(large, "a100").protocol == "simple"


def test_bad_input() -> None:
    plan = hk.plan("all-reduce", "dgx_a100_1box", size="8 KiB", algorithm="ring")
    with pytest.raises(hk.SpecError, match="protocol: there is no 'LL'"):
        hk.predict_plan(plan, "a100", protocol="LL")
    with pytest.raises(hk.SpecError, match="launch: there is no 'mpj'"):
        hk.predict_plan(plan, "a100", launch="mpj")
    with pytest.raises(hk.SpecError, match="there is no 'a10'; did you mean 'a100'"):
        hk.predict_plan(plan, "a10")
