"""Causes of faults: published ones, and recordings that single out a part."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from tests.telemetry.faults import (
    A100,
    GIB,
    HDR,
    KNOWN,
    LAST,
    LATER,
    Fault,
    mlx,
    nics,
    said,
    setting,
)
from tests.telemetry.recordings import inspector_call, lines, log

import hocket as hk
from hocket.telemetry.causes import CauseName
from hocket.telemetry.library_log import read_library_log

PATTERN = "Pattern 4, crossNic 0, nChannels 4, bw 24.000000/24.000000, type "


def rate(host: str, nic: int, mbps: int) -> str:
    return said(
        host, f"NET/IB: [{nic}] mlx5_{nic}:uverbs{nic}:1/IB provider=Mlx5 speed={mbps} ar=0"
    )


def diagnosed(folder: Path, fault: Fault) -> hk.Measured:
    ranks = fault.nodes * fault.gpus
    share = {"all_reduce": 2, "alltoall": 1}.get(fault.kind, 0) * (ranks - 1) / ranks or 1.0
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


def test_faults_that_the_rules_were_not_made_for(tmp_path: Path) -> None:
    """Most are named right, and none is named wrong: 7 of 8 when they were collected."""
    causes = [diagnosed(tmp_path, fault).causes for fault in LAST]
    named = [None if not found else found[0].name for found in causes]
    right = sum(name == fault.cause for name, fault in zip(named, LAST, strict=True))
    assert right >= 7
    assert named.count(None) == len(LAST) - right


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
        (fault([setting("PROTO", "allreduce:^LL;Simple,LL128")]), "unknown", ()),
        (fault([setting("ALGO", "^Ring")]), "algorithm told", ()),
        (fault([setting("ALGO", "allreduce:tree")]), "algorithm told", ()),
        (fault([setting("ALGO", "^Tree")]), "unknown", ()),
        (fault([setting("ALGO", "allgather:tree")]), "unknown", ()),
        (fault(["mpirun -np 16 -x NCCL_P2P_DISABLE=1 all_reduce_perf"]), "no NVLink", ()),
        (fault(["If it hangs, set `NCCL_P2P_DISABLE=1` and try again"]), "unknown", ()),
        (fault(["# tried NCCL_NET_GDR_LEVEL=0 yesterday"]), "unknown", ()),
        (fault(["export NCCL_ALGO=Tree", setting("ALGO", "Ring")]), "unknown", ()),
        (fault([setting("ALGO", "Ring"), "export NCCL_ALGO=Tree"]), "unknown", ()),
        (fault([setting("IB_HCA", "^mlx5_8,mlx5_9"), *nics("IB", *mlx(0, 1, 2, 3))]), "PCIe", ()),
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


def test_pairs_single_out_a_node_of_four(tmp_path: Path) -> None:
    """The run on all four is judged; those on two of them are left out, and say which node it is."""
    runs = {"abcd": 85, "ab": 92, "ac": 92, "ad": 46, "bc": 92, "bd": 46, "cd": 46}
    paths = []
    for hosts, busbw in runs.items():
        ranks = 8 * len(hosts)
        seconds = GIB * 2 * (ranks - 1) / ranks / (busbw * 1e9)
        paths.append(tmp_path / f"{hosts}.log")
        paths[-1].write_text(log("all_reduce", [(GIB, seconds)], ranks, len(hosts), hosts))
    found = hk.measured(paths, f"box:4x8x4{A100}{HDR}", plans=False)
    assert [each.calls for each in found] == [1]
    assert [(each.name, each.parts) for each in found.causes] == [("node", ("d",))]
    assert sum("among 16 NPUs on 2 nodes" in note for note in found.notes) == 6
    with pytest.raises(hk.SpecError, match="among 16 NPUs on 2 nodes; the topology has 32"):
        hk.measured(paths[1:], f"box:4x8x4{A100}{HDR}", plans=False)


def test_lines_of_any_length_take_no_time(tmp_path: Path) -> None:
    long = "a" * 4000 + " NCCL INFO " + "b" * 80
    text = "\n".join([long, long[:-1] + ">", "NCCL_" + "A" * 4000] * 2000)
    assert not read_library_log(text)
    for words in ("1" * 3900, "NET/IB : [0] a:" * 260, "1 coll channels, " * 230, "NCCL_A" * 650):
        assert not read_library_log("\n".join([said("node0", words)] * 2000))


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


@pytest.mark.parametrize("what", ["Broadcast", "Reduce"])
def test_a_rank_that_ends_first_because_of_its_place_is_not_late(tmp_path: Path, what: str) -> None:
    calls = [
        inspector_call(what, GIB, 9000 if rank == 0 else 12000, rank=rank, number=number)
        for number in range(4)
        for rank in range(8)
    ]
    path = tmp_path / "calls.json"
    path.write_text(lines(calls))
    causes = hk.measured(path, "dgx_a100_1box", plans=False).causes
    assert "rank" not in [each.name for each in causes]


def test_wrong_results_are_told_beside_words_of_nccl(tmp_path: Path) -> None:
    text = log("all_reduce", [(GIB, 0.1)], 16, 2)
    row = next(line for line in text.splitlines() if line.split()[:1] == [str(GIB)])
    wrong = row.split()
    wrong[-5] = "17"
    path = tmp_path / "wrong.log"
    path.write_text("\n".join([*nics("IB", *mlx(0, 1)), text.replace(row, " ".join(wrong))]))
    with pytest.raises(hk.SpecError, match="with wrong results"):
        hk.measured(path, "dgx_a100_2box", plans=False)


def test_what_nccl_says_may_be_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "nccl.log").write_text("\n".join(nics("IB", *mlx(0, 1, 2, 3), gdr=False)))
    with pytest.raises(hk.SpecError, match="they are logs of NCCL without times; give what was"):
        hk.measured(tmp_path / "nccl.log", "dgx_a100_2box")
    times = log("all_reduce", [(GIB, GIB * 15 / 8 / 10e9)], 16, 2)
    (tmp_path / "times.log").write_text(times)
    files = [tmp_path / "times.log", tmp_path / "nccl.log"]
    (cause, *_) = hk.measured(files, "dgx_a100_2box", plans=False).causes
    assert cause.name == "no GPUDirect RDMA"


def test_settings_are_what_to_leave_out_first(tmp_path: Path) -> None:
    lines = [setting("TOPO_FILE", "other.xml"), setting("IB_GID_INDEX", "3")]
    (cause,) = diagnosed(tmp_path, fault(lines)).causes
    assert cause.name == "unknown"
    assert cause.action.startswith("run again without NCCL_TOPO_FILE=other.xml; ")


@pytest.mark.parametrize(
    ("way", "name"),
    [
        ("Ring 01 : 3 -> 6 [receive] via NET/IB/0", "NET"),
        ("Ring 00 : 7[7000] -> 8[4000] [send] via NET/IB/0/GDRDMA", "GDRDMA"),
        ("Channel 01 : 9[101d0] -> 0[101c0] [receive] via NET/AWS Libfabric/0", "NET"),
        ("Channel 04/0 : 5[c4000] -> 12[85000] [send] via NET/IB/8(4)/GDRDMA", "GDRDMA"),
        ("Channel 05/1 : 0[0] -> 1[1] via P2P/direct pointer/read", "P2P"),
        ("Channel 00 : 0[0] -> 1[1] via SHM/direct/direct", "SHM"),
    ],
)
def test_lines_of_channels_of_every_version(way: str, name: str) -> None:
    assert read_library_log(said("node0", way)).ways == {"node0": {name}}


def test_the_page_explains_every_cause() -> None:
    page = (Path(__file__).parents[2] / "docs" / "measured.md").read_text()
    table = page.partition("| cause | what tells it |")[2].partition("\n\n")[0]
    told = [name.strip() for row in table.splitlines()[2:] for name in row.split("|")[1].split(",")]
    assert sorted(told) == sorted(get_args(CauseName))


def test_a_healthy_machine_has_no_cause(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, fault(nics("IB", *mlx(0, 1, 2, 3), gdr=False), busbw=90))
    assert found.causes == ()
