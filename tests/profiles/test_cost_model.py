"""The law of times: closed forms, an obvious implementation beside it, and what it predicts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket as hk
from hocket.profiles.cost_model import CONSTANTS, KINDS, cells_of, times, ways_of
from hocket.profiles.hardware import Hardware, hardware_of
from hocket.profiles.measurement import Measurement

H100 = Hardware(450e9, 400e9, sums=True)


def longer(*parts: float) -> float:
    """Join what goes on at once: the longest counts, and near it the others."""
    return float(sum(part**8 for part in parts) ** (1 / 8))


def point_to_point(row: Measurement, on: Hardware, c: dict[str, float]) -> float:
    n, m, size = row.npus, row.nodes, row.size
    p = n // m
    inside, outside = on.bandwidth / 1e6, on.nic_bandwidth / 1e6
    is_all, far = row.kind == "all-to-all", m > 1
    peer = size / n if is_all else size
    time = c["p2p.fixed"] + c["p2p.ramp"] * peer / (peer + 2**20)
    channel = 1 / longer(1 / peer, 1 / c["p2p.whole"]) / (c["p2p.channel"] * 1e6)
    near = between = 0.0
    if is_all:
        time += c["p2p.peer"] * (p - 1) + c["p2p.hop"] * (n - p)
        near = size * (p - 1) / n / (inside * c["p2p.efficiency"])
        if far:
            sent = p * size * (n - p) / n + p * (n - p) * min(peer, 131072)
            between = sent / (outside * c["p2p.nic"])
    else:
        time += c["p2p.peer"] * (p > 1) + c["p2p.hop"] * far
        near = size / (inside * c["p2p.efficiency"]) if p > 1 else 0.0
        if far:
            share = c["p2p.nic"] * (m / 2) ** -c["p2p.spread"]
            between = p * (size + min(size, 131072)) / (outside * share)
    return time + longer(channel, near, between)


def obvious(row: Measurement, on: Hardware, c: dict[str, float]) -> dict[tuple[str, str], float]:
    """Give every way of one cell, written out from the table in the module's documentation."""
    n, m, size = row.npus, row.nodes, row.size
    p = n // m
    inside, outside = on.bandwidth / 1e6, on.nic_bandwidth / 1e6
    far = m > 1
    if row.kind in ("all-to-all", "send-receive"):
        return {("point-to-point", "simple"): point_to_point(row, on, c)}
    found: dict[tuple[str, str], float] = {}
    double = 2 if row.kind == "all-reduce" else 1
    factor = {"all-reduce": 2 * (n - 1) / n, "broadcast": 1.0, "reduce": 1.0}.get(
        row.kind, (n - 1) / n
    )
    rooted = size if m == 2 and not on.by_processor else 2 * size
    for q in ("ll", "ll128", "simple"):
        if q in on.without:
            continue
        time = c[f"{q}.fixed"] + double * (n - 1 - (m - 1)) * c[f"{q}.step"]
        moving = [factor * size / (inside * c[f"{q}.efficiency"])] if p > 1 else [0.0]
        if far:
            time += c[f"{q}.far"] + double * (m - 1) * c[f"{q}.hop"]
            moving.append(factor * size / (outside * c[f"{q}.nic"]))
        found["ring", q] = time + longer(*moving)
        if row.kind == "all-reduce" and far:
            time = c[f"{q}.fixed"] + c[f"{q}.far"]
            time += 2 * ((p - 1) * c[f"{q}.step"] + math.log2(m) * c[f"{q}.hop"])
            share = c["tree.efficiency"] * c[f"{q}.efficiency"]
            up = 2 * size / (inside * share) if p > 1 else 0.0
            found["tree", q] = time + longer(up, rooted / (outside * c[f"{q}.nic"]))
    if row.kind != "all-reduce":
        return found
    if on.sums and not far and n > 4:
        found["nvls", "simple"] = c["nvls.fixed"] + size * (1 + 1 / n) / (
            inside * c["nvls.efficiency"]
        )
    start = c["nvls.fixed"] + c["simple.far"]
    summed = size * (1 + 1 / p) / (inside * c["nvls.efficiency"])
    if on.sums and far and p > 4:
        time = start + 2 * math.log2(m) * c["simple.hop"]
        found["nvls-tree", "simple"] = time + longer(summed, rooted / (outside * c["simple.nic"]))
    if on.sums_between and far:
        time = start + 2 * c["simple.hop"]
        found["collnet", "simple"] = time + longer(summed, size / (outside * c["sharp.nic"]))
    return found


values = st.fixed_dictionaries(
    {name: st.floats(each.prior / 5, each.prior * 5) for name, each in CONSTANTS.items()}
)


@settings(deadline=None)
@given(
    st.sampled_from(KINDS),
    st.integers(1, 8),
    st.integers(1, 5),
    st.integers(1, 1 << 34),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.sets(st.sampled_from(["ll", "ll128"])),
    values,
    st.floats(0, 100),
)
def test_the_law_is_what_its_table_says(
    kind: str,
    near: int,
    nodes: int,
    size: int,
    has: tuple[bool, bool, bool],
    without: set[str],
    constants: dict[str, float],
    launch: float,
) -> None:
    npus = max(near, 2 if nodes == 1 else 1) * nodes
    row = Measurement(kind, npus, nodes, size, 1.0)
    sums, sums_between, by_processor = has
    on = Hardware(
        *(300e9, 200e9, sums),
        sums_between=sums_between,
        by_processor=by_processor,
        without=tuple(without),
    )
    wanted = obvious(row, on, constants)
    cells = cells_of([row], on)
    ways = {way: time[0] for way, time in ways_of(cells, constants).items() if np.isfinite(time[0])}
    assert ways == pytest.approx(wanted, rel=1e-9)
    smooth = sum(time**-8 for time in wanted.values()) ** (-1 / 8)
    took = times(cells, constants, np.array([launch]))[0]
    assert took == pytest.approx((launch**4 + smooth**4) ** 0.25, rel=1e-9)


def test_sums_by_switches_take_what_their_law_says() -> None:
    """Source: t = S (1 + 1/n) / (e B), measured with e = 0.68 to 0.70 on H100 and H200."""
    row = Measurement("all-reduce", 8, 1, 16 << 30, 1.0)
    constants = {name: each.prior for name, each in CONSTANTS.items()}
    ways = ways_of(cells_of([row], H100), constants)
    time = ways["nvls", "simple"][0] - constants["nvls.fixed"]
    assert time == pytest.approx((16 << 30) * 1.125 / (constants["nvls.efficiency"] * 450e3))


def test_four_npus_do_not_sum_in_switches() -> None:
    row = Measurement("all-reduce", 4, 1, 1 << 30, 1.0)
    constants = {name: each.prior for name, each in CONSTANTS.items()}
    assert np.isinf(ways_of(cells_of([row], H100), constants)["nvls", "simple"][0])


@pytest.mark.parametrize(
    ("network", "bandwidth", "nics", "sums", "npus"),
    [
        ("switch:8@100GB/s,1us", 100e9, 0, False, 8),
        ("ring:4@25GB/s,1us", 50e9, 0, False, 4),
        ("fc:8@50GB/s,1us", 350e9, 0, False, 8),
        ("box:4x8x4@300GB/s,1us@25GB/s", 300e9, 100e9, False, 8),
        ("rail:2x4@300GB/s,1us@25GB/s", 300e9, 100e9, False, 4),
        ("dgx_a100_4box", 300e9, 200e9, False, 8),
        ("dgx1_v100", 150e9, 0, False, 8),
        ("aws_p4d_24xl", 300e9, 0, False, 8),
        ("hgx_h200_8gpu", 450e9, 0, True, 8),
        ("dgx_h100_4box_quantum2", 450e9, 400e9, True, 8),
        ("gb200_nvl72", 900e9, 0, True, 72),
    ],
)
def test_what_is_read_off_a_network(
    network: str, bandwidth: float, nics: float, sums: bool, npus: int
) -> None:
    found = hardware_of(hk.topology.load(network))
    assert found.bandwidth == pytest.approx(bandwidth, rel=1e-5)
    assert found.nic_bandwidth == pytest.approx(nics, rel=1e-5)
    assert (found.sums, found.npus) == (sums, npus)


@pytest.mark.parametrize("node", [0, 1])
def test_networks_that_are_cut_are_refused(node: int) -> None:
    network = hk.topology.load("dgx_a100_2box").without(nodes=[f"b{node}nvs", f"b{node}nic0"])
    with pytest.raises(hk.InfeasibleError, match="do not reach each other both ways; join them"):
        hardware_of(network)


def test_nodes_of_one_npu_are_refused() -> None:
    network = hk.topology.load("ring:4@25GB/s,1us", groups=1)
    with pytest.raises(hk.InfeasibleError, match="a single NPU"):
        hardware_of(network)
