"""Published sweeps of healthy machines: nothing calls their fabrics slow, or is certain of a cause."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import hocket as hk

SHIPPED = Path(__file__).parents[2] / "studies" / "src" / "hocket_studies" / "machines_measured"
SETS = {
    "azure_a100_1x8_superbench": "dgx_a100_1box",
    "h100_xxrjun_1x8_node002": "hgx_h200_8gpu",
    "h100_xxrjun_1x8_node007": "hgx_h200_8gpu",
    "p5_h100_awsbatch_8ranks": "hgx_h200_8gpu",
}
OTHERS = {
    "abhivijay_cw_1xN": "dgx_a100_1box",
    "dgx1class_v100_1x8": "dgx1_v100",
    "mi300x_azure_msccl_1x8_allgather_allpair": "mi300x_8gpu",
    "mi300x_azure_msccl_1x8_allgather_ring": "mi300x_8gpu",
    "mi300x_azure_msccl_1x8_allreduce_allpair": "mi300x_8gpu",
    "mi300x_azure_rccl_1x8_issue1562": "mi300x_8gpu",
    "nebius_h100_1x8_torch": "hgx_h200_8gpu",
    "sophia_dgxa100_2x8": "dgx_a100_2box",
    "sophia_dgxa100_2x8_default": "dgx_a100_2box",
    "stas_a100_1x8": "dgx_a100_1box",
    "stas_h200_1x8_torch": "hgx_h200_8gpu",
    "stas_h200_nvls_ramp": "hgx_h200_8gpu",
}
"""Of a folder that HOCKET_MEASURED names."""


def judge(path: Path, topology: str) -> list[str]:
    found = hk.measured(path, topology, plans=False)
    verdicts = [each.verdict for each in found]
    assert not {"fabric", "not told", "faster than the bound"} & set(verdicts)
    assert not any(each.is_sure for each in found.causes)
    return verdicts


@pytest.mark.parametrize("name", SETS)
def test_shipped_sweeps(name: str) -> None:
    verdicts = judge(SHIPPED / f"{name}.csv", SETS[name])
    assert verdicts.count("neither") >= 0.85 * len(verdicts)


@pytest.mark.parametrize("name", OTHERS)
def test_more_sweeps(name: str) -> None:
    folder = os.environ.get("HOCKET_MEASURED")
    if folder is None:
        pytest.skip("HOCKET_MEASURED names no folder of sweeps")
    judge(Path(folder) / f"{name}.csv", OTHERS[name])


@pytest.mark.parametrize(("run", "is_slow"), [("base", False), ("crossnic1", True)])
def test_a_setting_that_slows_a_fabric(run: str, is_slow: bool) -> None:
    """Eight nodes of four GH200: with NCCL_CROSS_NIC=1 they reach 72 GB/s, without 92."""
    folder = os.environ.get("HOCKET_MEASURED")
    if folder is None:
        pytest.skip("HOCKET_MEASURED names no folder of sweeps")
    rates = {"bandwidth": ["150 GB/s", "25 GB/s"], "latency": ["1 us", "2 us"]}
    nodes = hk.topology.grouped(hk.topology.product("FullyConnected_Switch", [4, 8], **rates), 4)
    path = Path(folder) / f"alps_gh200_8x4_{run}.csv"
    found = hk.measured(path, nodes, profile="gh200-slingshot", plans=False)
    assert any(each.verdict == "fabric" for each in found) is is_slow
    assert (list(found)[-1].verdict == "fabric") is is_slow


@pytest.mark.parametrize("name", SETS)
def test_shipped_sweeps_of_links_that_carry_less(name: str, tmp_path: Path) -> None:
    """The same sweeps, as if large data took 1.5 times as long."""
    lines = (SHIPPED / f"{name}.csv").read_text().splitlines()
    slower = []
    for line in lines:
        cells = line.split(",")
        if len(cells) > 4 and cells[3].isdecimal():
            cells[4] = str(float(cells[4]) * (1.5 if int(cells[3]) >= 1 << 20 else 1.0))
        slower.append(",".join(cells))
    path = tmp_path / "slower.csv"
    path.write_text("\n".join(slower))
    found = hk.measured(path, SETS[name], plans=False)
    for kind in {each.kind for each in found}:
        largest = [each for each in found if each.kind == kind][-1]
        assert largest.verdict == "fabric" or largest.instead is not None


def test_a_sweep_that_nothing_predicts_shows_no_cause(tmp_path: Path) -> None:
    """All-to-alls on a network of no known GPU: they take up to 2.2 times the bound."""
    lines = (SHIPPED / "azure_a100_1x8_superbench.csv").read_text().splitlines()
    path = tmp_path / "all_to_all.csv"
    kept = ("#", "collective", "alltoall")
    path.write_text("\n".join(each for each in lines if each.startswith(kept)))
    found = hk.measured(path, "box:1x8x8@300GB/s,350ns@25GB/s,1.3us", plans=False)
    assert {each.verdict for each in found} == {"not told"}
    assert found.causes == ()
