"""Causes of faults: published ones, and recordings that single out a part."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.telemetry.faults import A100, GIB, HDR, KNOWN, LATER, Fault, mlx, nics, said, setting
from tests.telemetry.recordings import inspector_call, lines, log

import hocket as hk

PATTERN = "Pattern 4, crossNic 0, nChannels 4, bw 24.000000/24.000000, type "


def rate(host: str, nic: int, mbps: int) -> str:
    return said(
        host, f"NET/IB: [{nic}] mlx5_{nic}:uverbs{nic}:1/IB provider=Mlx5 speed={mbps} ar=0"
    )


def diagnosed(folder: Path, fault: Fault) -> hk.Measured:
    ranks = fault.nodes * fault.gpus
    share = {"all_reduce": 2, "alltoall": 1}[fault.kind] * (ranks - 1) / ranks
    paths = []
    for number, (hosts, busbw) in enumerate(fault.runs or [((), fault.busbw)]):
        seconds = fault.size * share / (busbw * 1e9)
        text = log(fault.kind, [(fault.size, seconds)], ranks, fault.nodes, hosts)
        paths.append(folder / f"{number}.log")
        paths[-1].write_text("\n".join([*fault.lines, text]))
    return hk.measured(paths, fault.topology, plans=False)


@pytest.mark.parametrize("fault", [*KNOWN, *LATER], ids=lambda fault: fault.source)
def test_published_faults(tmp_path: Path, fault: Fault) -> None:
    found = diagnosed(tmp_path, fault)
    assert found.causes[0].name == fault.cause
    assert set(fault.parts) <= set(found.causes[0].parts)


def fault(lines: list[str], busbw: float = 30.0, **more: object) -> Fault:
    machine = {"topology": f"box:2x8x4{A100}{HDR}", "nodes": 2, "gpus": 8, "cause": ""}
    return Fault(**{"source": "", **machine, "busbw": busbw, "lines": lines, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("case", "cause", "parts"),
    [
        (fault([]), "unknown", ()),
        (fault(nics("IB", *mlx(0, 1, 2, 3))), "PCIe", ()),
        (fault(nics("IB", *mlx(0, 1, 2, 3)), busbw=10), "unknown", ()),  # more than a PCIe switch
        (fault(nics("IB", *mlx(0, 1))), "NIC list", ()),
        (fault(["-x NCCL_IB_HCA=mlx5_0,mlx5_1"]), "NIC list", ()),
        (
            fault(
                [*nics("IB", *mlx(0, 1, 2, 3)), said("node0", PATTERN + "NVL/SYS, sameChannels 1")]
            ),
            "far NIC",
            (),
        ),
        (fault([setting("PROTO", "LL")]), "protocol told", ()),
        (fault([setting("PROTO", "^Simple")]), "protocol told", ()),
        (fault([setting("PROTO", "^LL128")]), "unknown", ()),
        (fault([setting("MAX_NCHANNELS", "2")]), "few channels", ()),
        (fault([setting("PXN_DISABLE", "1")], kind="alltoall"), None, ()),
        (
            fault([setting("PXN_DISABLE", "1"), *nics("IB", *mlx(0, 1, 2, 3))], 5, kind="alltoall"),
            "PXN off",
            (),
        ),
        # one NIC of four nodes, or of a pair: its rate was negotiated down on one host
        (
            fault(
                [*nics("IB", *mlx(0, 1, 2, 3)), rate("node0", 2, 200_000), rate("node1", 2, 50_000)]
            ),
            "NIC",
            ("mlx5_2 of node1",),
        ),
        (
            fault([], runs=((("a", "b"), 45), (("a", "c"), 90), (("b", "c"), 90))),
            "pair",
            ("a", "b"),
        ),
        (fault([], runs=((("a", "b"), 45), (("a", "c"), 90), (("b", "c"), 45))), "node", ("b",)),
        (fault([], runs=((("a", "b"), 45), (("c", "d"), 90))), "unknown", ("a", "b")),
        (fault([], runs=((("a", "b"), 90), (("c", "d"), 91))), None, ()),
    ],
)
def test_faults_by_their_signs(
    tmp_path: Path, case: Fault, cause: str | None, parts: tuple[str, ...]
) -> None:
    found = diagnosed(tmp_path, case)
    assert next((each.name for each in found.causes), None) == cause
    if parts:
        assert found.causes[0].parts == parts


def test_a_nic_is_found_by_runs_of_each_alone(tmp_path: Path) -> None:
    """Four runs on the same nodes, each told to use another NIC."""
    paths = []
    for number, busbw in enumerate((23, 23, 11, 23)):
        seconds = GIB * 15 / 8 / (busbw * 1e9)
        hca = setting("IB_HCA", f"mlx5_{number}:1")
        paths.append(tmp_path / f"{number}.log")
        paths[-1].write_text(f"{hca}\n{log('all_reduce', [(GIB, seconds)], 16, 2)}")
    found = hk.measured(paths, f"box:2x8x4{A100}{HDR}", plans=False)
    assert (found.causes[0].name, found.causes[0].parts) == ("NIC", ("mlx5_2",))


def test_a_rank_that_comes_late(tmp_path: Path) -> None:
    """Others wait in their kernels for it, so its own are the shortest."""
    calls = [
        inspector_call("AllReduce", GIB, 9000 if rank == 5 else 12000, rank=rank, number=number)
        for number in range(4)
        for rank in range(8)
    ]
    path = tmp_path / "calls.json"
    path.write_text(lines(calls))
    (cause,) = hk.measured(path, "dgx_a100_1box", plans=False).causes[:1]
    assert cause.name == "rank"
    assert cause.parts[0].startswith("rank 5")
    assert "others wait" in cause.evidence
    assert "in 4 of 4 calls, 3,000 us" in cause.evidence


def test_what_nccl_says_may_be_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "nccl.log").write_text("\n".join(nics("IB", *mlx(0, 1, 2, 3), gdr=False)))
    with pytest.raises(hk.SpecError, match="they are logs of NCCL without times; give what was"):
        hk.measured(tmp_path / "nccl.log", "dgx_a100_2box")
    times = log("all_reduce", [(GIB, GIB * 15 / 8 / 10e9)], 16, 2)
    (tmp_path / "times.log").write_text(times)
    files = [tmp_path / "times.log", tmp_path / "nccl.log"]
    (cause, *_) = hk.measured(files, "dgx_a100_2box", plans=False).causes
    assert cause.name == "no GPUDirect RDMA"


def test_a_healthy_machine_has_no_cause(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, fault(nics("IB", *mlx(0, 1, 2, 3), gdr=False), busbw=90))
    assert found.causes == ()
