"""Causes of faults: published ones, and recordings that single out a part."""

from __future__ import annotations

import ctypes
import itertools
from pathlib import Path
from typing import get_args

import pytest
from tests.telemetry.faults import (
    A100,
    FAULTS,
    GIB,
    H100,
    HDR,
    NDR,
    Fault,
    connected,
    mlx,
    nics,
    said,
    setting,
)
from tests.telemetry.recordings import inspector_call, lines, log

import hocket as hk
from hocket.telemetry.causes import CauseName
from hocket.telemetry.library_log import LibraryLog, read_library_log

PATTERN = "Pattern 4, crossNic 0, nChannels 4, bw 24.000000/24.000000, type "


def rate(host: str, nic: int, mbps: int) -> str:
    return said(
        host, f"NET/IB: [{nic}] mlx5_{nic}:uverbs{nic}:1/IB provider=Mlx5 speed={mbps} ar=0"
    )


def took(busbw: float, size: int = GIB, ranks: int = 16) -> tuple[int, float]:
    """The time of an all-reduce."""
    return size, size * 2 * (ranks - 1) / ranks / (busbw * 1e9)


def causes(folder: Path, files: list[str], topology: str = f"box:2x8x4{A100}{HDR}") -> list[str]:
    paths = []
    for number, text in enumerate(files):
        paths.append(folder / f"{number}.log")
        paths[-1].write_text(text)
    return [each.name for each in hk.measured(paths, topology, plans=False).causes]


def diagnosed(folder: Path, fault: Fault) -> hk.Measured:
    ranks, nodes = fault.ranks
    share = {"all_reduce": 2, "alltoall": 1, "all_gather": 1}.get(fault.kind, 0)
    factor = share * (ranks - 1) / ranks or 1.0
    paths = []
    for number, (hosts, busbw) in enumerate(fault.runs or [((), fault.busbw)]):
        times = [(fault.size, fault.size * factor / (busbw * 1e9))]
        text = log(fault.kind, times, ranks, nodes, hosts, fault.device)
        paths.append(folder / f"{number}.log")
        paths[-1].write_text("\n".join([*fault.says, text]))
    return hk.measured(paths, fault.machine, plans=False)


@pytest.mark.parametrize(
    "fault",
    [fault for name in ("known", "later", "found") for fault in FAULTS[name]],
    ids=lambda fault: fault.source,
)
def test_published_faults(tmp_path: Path, fault: Fault) -> None:
    found = diagnosed(tmp_path, fault)
    assert found.causes[0].name == fault.cause
    assert set(fault.parts) <= set(found.causes[0].parts)


@pytest.mark.parametrize(
    ("name", "right", "wrong", "surely_wrong"),
    [
        ("last", 7, 0, 0),
        ("fresh", 8, 1, 0),
        ("newest", 11, 0, 0),
        ("unseen", 7, 0, 0),
        ("latest", 9, 2, 1),
        ("blind", 11, 0, 0),
        ("again", 11, 2, 0),
    ],
)
def test_faults_that_the_rules_were_not_made_for(
    tmp_path: Path, name: str, right: int, wrong: int, surely_wrong: int
) -> None:
    """Most are named right, and hardly one is named wrong: as many as when the rules were last mended."""
    faults, named, sure = FAULTS[name], [], []
    for each in faults:
        found = diagnosed(tmp_path, each).causes
        named.append(found[0].name if found else "unknown")
        sure.append(next((one.name for one in found if one.is_sure), "unknown"))
    assert (
        sum(one not in ("unknown", each.cause) for one, each in zip(sure, faults, strict=True))
        == surely_wrong
    )
    is_right = [name == each.cause for name, each in zip(named, faults, strict=True)]
    assert sum(is_right) >= right
    is_wrong = [name != "unknown" and not fits for name, fits in zip(named, is_right, strict=True)]
    assert sum(is_wrong) <= wrong


BOXES = {"machine": f"box:3x8x8{H100}{NDR}"}


def fault(says: list[str], busbw: float = 30.0, **more: object) -> Fault:
    given = {"source": "", "machine": f"box:2x8x4{A100}{HDR}", "cause": "", "busbw": busbw}
    return Fault(**{**given, "says": says, **more})  # type: ignore[arg-type]


PICKED = said("node0", f"AllReduce: {GIB} Bytes -> Algo NVLS_TREE proto SIMPLE channel{{Lo..Hi}}")
FAR = [said("node0", "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0")]
PAIR = "box:2x1x1@50GB/s,350ns@25GB/s,1.3us"


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
        (fault([setting("PROTO", "^Simple")], 70), "protocol told", ()),
        (fault([setting("PROTO", "^LL128")]), "unknown", ()),
        (fault([setting("PROTO", "simple")], size=4 << 20), "protocol told", ()),
        (fault([setting("ALGO", "Ring,Tree")], size=4 << 20), None, ()),
        (fault([setting("PROTO", "allreduce:^LL;Simple,LL128")]), "unknown", ()),
        (fault([setting("ALGO", "^Ring")], 82), "algorithm told", ()),
        (fault([setting("ALGO", "allreduce:tree")], 82), "algorithm told", ()),
        (fault([setting("ALGO", "^Tree")]), "unknown", ()),
        (fault([setting("ALGO", "allgather:tree")]), "unknown", ()),
        (fault(["mpirun -np 16 -x NCCL_P2P_DISABLE=1 all_reduce_perf"]), "no NVLink", ()),
        (fault(["If it hangs, set `NCCL_P2P_DISABLE=1` and try again"]), "unknown", ()),
        (fault(["# tried NCCL_NET_GDR_LEVEL=0 yesterday"]), "unknown", ()),
        (fault(["export NCCL_ALGO=Tree", setting("ALGO", "Ring")]), "unknown", ()),
        (fault([setting("ALGO", "Ring"), "export NCCL_ALGO=Tree"]), "unknown", ()),
        (fault([setting("IB_HCA", "^mlx5_8,mlx5_9"), *nics("IB", *mlx(0, 1, 2, 3))]), "PCIe", ()),
        (fault([setting("MAX_NCHANNELS", "2")]), "few channels", ()),
        (fault(["-x NCCL_MAX_CTAS=0x2"]), "few channels", ()),
        (fault(["-x NCCL_MAX_CTAS=0x20"]), "unknown", ()),
        (fault(["-x NCCL_MAX_NCHANNELS=0"]), "few channels", ()),  # NCCL takes one
        (fault(["-x NCCL_MAX_NCHANNELS=-2"]), "unknown", ()),
        (fault([said("node0", "2 coll channels, 2 p2p channels")]), "few channels", ()),
        (fault([said("node0", "8 coll channels, 0 nvls channels, 8 p2p")]), "unknown", ()),
        (fault([said("node0", "0 coll channels, 0 p2p channels")]), "unknown", ()),
        (fault([said("node0", "9999 coll channels, 2 p2p channels")]), "unknown", ()),
        (fault([said("node0", f"{GIB} Bytes -> Algo 1 proto 0 time 9.5")]), "pick", ()),
        (
            fault(
                [
                    said(
                        "node0", f"AllReduce: {GIB} Bytes -> Algo RING proto LL channel{{Lo..Hi}}"
                    ),
                    setting("MAX_NCHANNELS", "1"),
                ]
            ),
            "few channels",  # which costs more
            (),
        ),
        (fault([said("node0", f"AllGather: {GIB} Bytes -> Algo RING proto LL")]), "unknown", ()),
        (fault([said("node0", f"{GIB} Bytes -> Algo 99999999 proto 7")]), "unknown", ()),
        (fault([*nics("RoCE", "mlx5_bond_0")], machine=f"box:2x8x1{A100}{HDR}"), None, ()),
        (
            fault(
                ["-x NCCL_IB_QPS_PER_CONNECTION=0x4", *nics("RoCE", "mlx5_bond_0")],
                10,
                machine=f"box:2x8x1{A100}{HDR}",
            ),
            "PCIe",
            (),
        ),
        # slower than if all NICs sent over one link
        (fault(nics("RoCE", *mlx(*range(8)), hosts=3), 5, **BOXES), "packet loss", ()),
        (fault(nics("IB", *mlx(*range(8)), hosts=3), 5, **BOXES), "unknown", ()),
        (fault(nics("RoCE", *mlx(*range(8)), hosts=3), 50, **BOXES), "shared paths", ()),
        (fault([setting("PXN_DISABLE", "1")], kind="alltoall"), None, ()),
        (
            fault([setting("PXN_DISABLE", "1"), *nics("IB", *mlx(0, 1, 2, 3))], 5, kind="alltoall"),
            "PXN off",
            (),
        ),
        # a way that nothing predicts here: it first, then what its rate may be
        (fault([PICKED, *nics("RoCE", *mlx(*range(8)), hosts=3)], 50, **BOXES), "pick", ()),
        (fault([PICKED], 350, **BOXES), None, ()),
        (fault([PICKED, setting("ALGO", "^Tree")], 50, **BOXES), "unknown", ()),
        # a node that is as slow as if no NVLink was used, and one that is not
        (fault([], 15, machine="hgx_h200_8gpu"), "no NVLink", ()),
        (fault([], 60, machine="hgx_h200_8gpu"), "unknown", ()),
        (fault([], 1, machine="fully_connected:8@4GB/s,700ns"), "unknown", ()),
        # GPUs in the processor's memory need no GPUDirect RDMA; nothing predicts them
        (fault(FAR, 5, machine=PAIR), "no GPUDirect RDMA", ()),
        (fault(FAR, 5, machine=PAIR, device="NVIDIA GB10"), "unknown", ()),
        (fault([], 13, machine=PAIR), None, ()),
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
    for words in ("1" * 3900, "NET/IB : [0] a:" * 260, "0 coll channels, " * 230, "NCCL_A" * 650):
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
    table = page.partition("| cause | evidence |")[2].partition("\n\n")[0]
    told = [name.strip() for row in table.splitlines()[2:] for name in row.split("|")[1].split(",")]
    assert sorted(told) == sorted(get_args(CauseName))


def test_a_healthy_machine_has_no_cause(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, fault(nics("IB", *mlx(0, 1, 2, 3), gdr=False), busbw=90))
    assert found.causes == ()


def test_numbers_are_read_as_c_reads_them() -> None:
    read = ctypes.CDLL(None).strtoll
    read.restype = ctypes.c_longlong
    texts = ["4", "0x4", "010", "08", "0x", "-1", "+3", " 7", "abc", "4abc", "", "0", "00", "0XfF"]
    texts += ["".join(each) for each in itertools.product("01x9a-", repeat=3)]
    for text in texts:
        log = LibraryLog({"NAME": text})
        assert log.number("NAME") == read(text.encode(), None, 0), text


def test_what_other_runs_say_is_no_cause(tmp_path: Path) -> None:
    """A run that is not judged, and one that is quick: their settings are those of nobody else."""
    slow, quick = log("all_reduce", [took(30)], 16, 2), log("all_reduce", [took(90)], 16, 2)
    node = log("all_reduce", [took(100, ranks=8)], 8, 1)
    told = setting("PROTO", "LL")
    assert causes(tmp_path, [f"{told}\n{slow}"]) == ["protocol told"]
    assert causes(tmp_path, [slow, f"{told}\n{node}"]) == ["unknown"]
    assert causes(tmp_path, [slow, slow.replace("box", "c"), f"{told}\n{quick}"])[-1] == "unknown"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_runs_of_one_file_are_told_apart(tmp_path: Path, order: tuple[int, int]) -> None:
    runs = [
        f"{setting('PROTO', 'LL')}\n{log('all_reduce', [took(90, 64 << 20)], 16, 2)}",
        f"-x NCCL_DEBUG=WARN\n{log('all_reduce', [took(30)], 16, 2)}",
    ]
    text = "# Avg bus bandwidth    : 60\n#\n".join(runs[number] for number in order)
    assert causes(tmp_path, [text]) == ["unknown"]
    assert causes(tmp_path, [text.replace("-x ", "-x NCCL_PROTO=LL -x ")]) == ["protocol told"]


def test_what_a_shell_exports_holds_for_runs_after_it(tmp_path: Path) -> None:
    run = f"mpirun -np 16 -x NCCL_DEBUG=WARN\n{log('all_reduce', [took(30)], 16, 2)}"
    text = "# Avg bus bandwidth    : 60\n#\n".join(["export NCCL_PROTO=LL", run])
    assert causes(tmp_path, [text]) == ["protocol told"]


def test_a_cause_of_one_run_names_its_file(tmp_path: Path) -> None:
    slow = log("all_reduce", [took(30)], 16, 2)
    for name, lines_ in (("a", setting("PROTO", "LL")), ("b", "")):
        (tmp_path / f"{name}.log").write_text(f"{lines_}\n{slow}")
    found = hk.measured(
        [tmp_path / "a.log", tmp_path / "b.log"], f"box:2x8x4{A100}{HDR}", plans=False
    )
    (cause,) = found.causes
    assert cause.evidence.startswith("in ")
    assert "a.log: NCCL_PROTO=LL" in cause.evidence
    assert "b.log" not in cause.evidence


def test_the_log_of_one_rank_tells_no_nic_list(tmp_path: Path) -> None:
    """A rank uses the NICs that are near to it, and others use others."""
    whole = nics("IB", *mlx(0, 1, 2, 3), hosts=1)
    one = [line for line in whole if " [0] " in line]
    (cause,) = diagnosed(tmp_path, fault(one)).causes
    assert (cause.name, cause.is_sure) == ("PCIe", False)
    assert cause.action.startswith("give the logs of all ranks of a node")
    assert diagnosed(tmp_path, fault([*one, *connected("node0")])).causes[0].name == "NIC list"


@pytest.mark.parametrize(
    "lines_",
    [
        [
            "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [2]mlx5_2:1/RoCE [3]mlx5_3:1/RoCE [RO]",
            "NET/IB : Made virtual device [4] name=mlx5_0+mlx5_1 speed=400000 ndevs=2 rail=0 plane=0",
            "NET/IB : Made virtual device [5] name=mlx5_2+mlx5_3 speed=400000 ndevs=2 rail=0 plane=0",
            "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/4/GDRDMA",
            "Channel 01/0 : 0[0] -> 8[0] [send] via NET/IB/5/GDRDMA",
        ],
        [
            "NET/IB : Using [0]={[0] mlx5_2:1/RoCE, [1] mlx5_3:1/RoCE} "
            "[1]={[2] mlx5_0:1/RoCE, [3] mlx5_1:1/RoCE} [RO]; OOB eth0:10.0.0.1<0>",
            "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IBext_v8/0/GDRDMA",
            "Channel 01/0 : 0[0] -> 8[0] [send] via NET/IBext_v8/1/GDRDMA",
        ],
    ],
)
def test_nics_that_nccl_fuses_count_each(tmp_path: Path, lines_: list[str]) -> None:
    given = [*(said("node0", line) for line in lines_), *connected("node0")]
    assert diagnosed(tmp_path, fault(given)).causes[0].name == "PCIe"
    given = [line for line in given if "Channel 01" not in line]
    assert diagnosed(tmp_path, fault(given)).causes[0].evidence.startswith("NCCL uses 2 of 4 NICs")


def test_ports_have_a_share_of_the_rate_of_their_nic(tmp_path: Path) -> None:
    """Two NICs of 25 GB/s that show as four ports of 12.5."""
    given = [
        *nics("IB", *mlx(0, 1, 2, 3)),
        *(rate(host, nic, 100_000) for host in ("node0", "node1") for nic in range(4)),
    ]
    two = f"box:2x8x2{A100}{HDR}"
    assert diagnosed(tmp_path, fault(given, 20, machine=two)).causes[0].name == "PCIe"
    given += [rate("node1", 3, 50_000)]
    assert diagnosed(tmp_path, fault(given, 20, machine=two)).causes[0].parts == (
        "mlx5_3 of node1",
    )


def test_a_nic_that_is_not_used_says_nothing_of_gpudirect(tmp_path: Path) -> None:
    off = [
        said("node0", f"NET/IB : GPU Direct RDMA Disabled for HCA {nic} 'mlx5_{nic}'")
        for nic in range(5)
    ]
    used = nics("IB", *mlx(0, 1, 2, 3))
    assert diagnosed(tmp_path, fault([*used, off[4]])).causes[0].name == "PCIe"
    silent = [line for line in used if "Channel" not in line]
    assert diagnosed(tmp_path, fault([*silent, off[3]])).causes[0].name != "no GPUDirect RDMA"
    assert diagnosed(tmp_path, fault([*silent, *off])).causes[0].name == "no GPUDirect RDMA"


@pytest.mark.parametrize(
    ("busbw", "per_peer", "found"),
    [(18, 1, ["few channels"]), (18, 2, []), (24, 1, [])],
)
def test_sends_need_channels_that_fill_a_nic(
    tmp_path: Path, busbw: float, per_peer: int, found: list[str]
) -> None:
    """A channel carries 14 GB/s, as NCCL counts it, and each GPU has a NIC of 25."""
    words = f"16 coll channels, 0 nvls channels, 16 p2p channels, {per_peer} p2p channels per peer"
    case = fault([said("node0", words)], busbw, kind="sendrecv", machine=f"box:2x8x8{A100}{HDR}")
    assert [each.name for each in diagnosed(tmp_path, case).causes] == found


def over_tcp(*used: int, named: int = 2) -> list[str]:
    using = " ".join(f"[{number}]eth{number}:10.0.{number}.1<0>" for number in range(named))
    return [
        *(said(host, f"NET/Socket : Using {using}") for host in ("node0", "node1")),
        *(
            said(host, f"Channel {nic:02d}/0 : 0[0] -> 8[0] [send] via NET/Socket/{nic}", nic)
            for host in ("node0", "node1")
            for nic in used
        ),
        *connected("node0", "node1"),
    ]


@pytest.mark.parametrize(
    ("lines_", "found"),
    [
        (over_tcp(0), ["sockets", "NIC list"]),
        (over_tcp(0, 1), ["sockets"]),
        (over_tcp(0, 1, named=5), ["sockets"]),  # others may be those of containers
        (over_tcp(0, named=1), ["sockets"]),
    ],
)
def test_interfaces_that_nccl_names_for_tcp_and_does_not_use(
    tmp_path: Path, lines_: list[str], found: list[str]
) -> None:
    case = fault(lines_, 2, machine=f"box:2x8x2{A100}12.5GB/s,10us")
    causes = diagnosed(tmp_path, case).causes
    assert [each.name for each in causes] == found
    assert "NCCL_SOCKET_NTHREADS" in causes[0].action
    assert ("subnet" in causes[0].action) is (len(found) > 1 or "[1]eth1" in lines_[0])


@pytest.mark.parametrize(
    ("way", "device", "busbw", "found"),
    [
        ("P2P/IPC", "NVIDIA A800 80GB PCIe", 6, ["PCIe"]),
        ("P2P/IPC", "NVIDIA A800 80GB PCIe", 20, []),
        ("SHM/direct/direct", "NVIDIA A800 80GB PCIe", 6, ["no NVLink"]),
        ("SHM/direct/direct", "NVIDIA GeForce RTX 4090", 6, ["unknown"]),
    ],
)
def test_gpus_that_pcie_alone_joins(
    tmp_path: Path, way: str, device: str, busbw: float, found: list[str]
) -> None:
    lines_ = [said("node0", f"Channel 00/0 : 0[0] -> 1[1] via {way}")]
    case = fault(lines_, busbw, machine="fully_connected:2@25GB/s,1us", device=device)
    causes = diagnosed(tmp_path, case).causes
    assert [each.name for each in causes] == found
    assert not any(each.is_sure for each in causes)
    assert "NVLinks join" not in "".join(each.evidence for each in causes)


@pytest.mark.parametrize(
    ("value", "busbw", "found"),
    [("0", 30, True), ("1", 30, True), ("2", 30, False), ("0", 90, False)],
)
def test_rings_may_choose_their_nics(
    tmp_path: Path, value: str, busbw: float, *, found: bool
) -> None:
    names = [
        each.name
        for each in diagnosed(tmp_path, fault([setting("CROSS_NIC", value)], busbw)).causes
    ]
    assert ("rail told" in names) is found


def test_containers_of_one_node_are_nodes_to_nccl(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(log("all_reduce", [took(10, ranks=4)], 4, 2, ["a", "b"]))
    with pytest.raises(hk.SpecError, match="containers of one node are nodes if none sees"):
        hk.measured(tmp_path / "a.log", "fully_connected:4@50GB/s,700ns", plans=False)


def test_runs_that_take_what_is_predicted_are_not_odd(tmp_path: Path) -> None:
    """The best pair does better than predicted; and if all are slow, one is slower."""
    files = [
        log("all_reduce", [took(busbw)], 16, 2, hosts) for hosts, busbw in (("ab", 90), ("cd", 130))
    ]
    assert causes(tmp_path, files) == []
    slow = [
        log("all_reduce", [took(busbw)], 16, 2, hosts) for hosts, busbw in (("ab", 20), ("cd", 40))
    ]
    assert causes(tmp_path, slow) == ["unknown", "unknown"]


def test_a_run_over_one_nic_is_not_judged_beside_one_over_all(tmp_path: Path) -> None:
    whole = log("all_reduce", [took(90)], 16, 2)
    ones = [
        f"{setting('IB_HCA', f'mlx5_{nic}:1')}\n{log('all_reduce', [took(busbw)], 16, 2)}"
        for nic, busbw in enumerate((23, 23, 11, 23))
    ]
    paths = []
    for number, text in enumerate([whole, *ones]):
        paths.append(tmp_path / f"{number}.log")
        paths[-1].write_text(text)
    found = hk.measured(paths, f"box:2x8x4{A100}{HDR}", plans=False)
    assert [(each.verdict, each.calls) for each in found] == [("neither", 1)]
    assert [(each.name, each.parts) for each in found.causes] == [("NIC", ("mlx5_2",))]
    assert sum("over fewer NICs" in note for note in found.notes) == 4


def test_a_driver_in_the_list_of_nics_is_all_of_its_nics() -> None:
    assert LibraryLog({"IB_HCA": "mlx5"}).hcas == set()
    assert LibraryLog({"IB_HCA": "^mlx5_0"}).hcas == set()
    assert LibraryLog({"IB_HCA": "=mlx5_0:1,rdma1,bnxt_re2"}).hcas == {
        "mlx5_0",
        "rdma1",
        "bnxt_re2",
    }


def test_a_cause_says_whether_anything_is_slow(tmp_path: Path) -> None:
    lines_ = nics("IB", *mlx(0, 1, 2, 3), gdr=False)
    (cause,) = diagnosed(tmp_path, fault(lines_)).causes
    assert cause.is_sure
    (cause,) = diagnosed(tmp_path, fault(lines_, size=4 << 20)).causes
    assert (cause.name, cause.is_sure) == ("no GPUDirect RDMA", False)
    (cause,) = diagnosed(tmp_path, fault(nics("IB", *mlx(0, 1, 2, 3)))).causes
    assert (cause.name, cause.is_sure) == ("PCIe", False)


@pytest.mark.parametrize(
    ("lines_", "busbw", "found"),
    [
        # Trees are predicted to cost 8 %, and calls take 16 % more, or three times as long.
        ([setting("ALGO", "Tree")], 82, [("algorithm told", True)]),
        ([setting("ALGO", "Tree")], 30, [("unknown", True), ("algorithm told", False)]),
        # Half of the NICs are half of the rate; other things may take the rest.
        (nics("IB", *mlx(0, 1)), 30, [("NIC list", True)]),
        (nics("IB", *mlx(0, 1)), 10, [("unknown", True), ("NIC list", False)]),
        # What many healthy machines have too.
        ([setting("CROSS_NIC", "0")], 80, [("rail told", False)]),
        (
            nics("RoCE", "mlx5_bond_0", "mlx5_bond_1", "b2", "b3"),
            50,
            [("queue pairs", False), ("PCIe", False)],
        ),
    ],
)
def test_what_explains_little_is_only_possible(
    tmp_path: Path, lines_: list[str], busbw: float, found: list[tuple[str, bool]]
) -> None:
    told = diagnosed(tmp_path, fault(lines_, busbw)).causes
    assert [(each.name, each.is_sure) for each in told] == found


@pytest.mark.parametrize("runs", [["ab", "bc"], ["ab", "ac", "bc"]])
def test_a_node_of_one_slow_run_may_be_its_path(tmp_path: Path, runs: list[str]) -> None:
    files = [log("all_reduce", [took(40 if "a" in hosts else 90)], 16, 2, hosts) for hosts in runs]
    paths = []
    for number, text in enumerate(files):
        paths.append(tmp_path / f"{number}.log")
        paths[-1].write_text(text)
    (cause, *_) = hk.measured(paths, f"box:2x8x4{A100}{HDR}", plans=False).causes
    assert (cause.name, cause.parts, cause.is_sure) == ("node", ("a",), len(runs) == 3)


@pytest.mark.parametrize(("kind", "named"), [("RoCE", ["packet loss"]), ("IB", ["unknown"])])
def test_rates_that_fall_with_the_size(tmp_path: Path, kind: str, named: list[str]) -> None:
    """The busbw of NVIDIA/nccl#1453, three nodes on two racks: no sharing of links explains them."""
    rates = {16: 24.09, 32: 29.50, 64: 5.27, 128: 5.22, 256: 4.09, 512: 5.31, 1024: 5.3}
    times = [took(busbw, size << 20, 24) for size, busbw in rates.items()]
    text = "\n".join([*nics(kind, *mlx(*range(1, 9)), hosts=3), log("all_reduce", times, 24, 3)])
    assert causes(tmp_path, [text], f"box:3x8x8{H100}{HDR}") == named


def test_a_pick_is_judged_by_what_is_predicted(tmp_path: Path) -> None:
    """On four nodes, rings are faster than trees."""
    tree, ring = (
        fault(
            [said("node0", f"{GIB} Bytes -> Algo {name} proto SIMPLE")],
            busbw,
            machine="dgx_a100_4box",
        )
        for name, busbw in (("TREE", 140), ("RING", 40))
    )
    (found,) = diagnosed(tmp_path, tree).causes
    assert found.name == "pick"
    assert found.effect is not None
    assert 1.1 < found.effect < 3
    assert found.evidence.startswith("NCCL runs 1 GiB with tree and simple; ring and simple is")
    assert [each.name for each in diagnosed(tmp_path, ring).causes] == ["unknown"]


def test_a_line_lists_few_of_many(tmp_path: Path) -> None:
    many = fault([setting(f"X{number}", "1") for number in range(5000)])
    (found,) = diagnosed(tmp_path, many).causes
    assert "NCCL_X1003=1 and 4,992 more; " in found.action
    assert len(found.action) < 800


def test_damaged_lines_are_counted(tmp_path: Path) -> None:
    lines = log(
        "all_reduce", [took(160), took(160, 1 << 20), took(160, 1 << 25)], 16, 2
    ).splitlines()
    bad = [
        lines[-1].replace(f"{1 << 25:12d}", "9" * 30),
        lines[-1].replace(f"{1 << 23:12d}", f"{(1 << 23) - 1:12d}"),
        lines[-1].replace(f"{1 << 25:12d}", f"{0:12d}").replace(f"{1 << 23:12d}", f"{0:12d}"),
    ]
    (tmp_path / "a.log").write_text("\n".join([*lines[:-1], *bad, lines[-1]]))
    found = hk.measured(tmp_path / "a.log", "dgx_a100_2box", plans=False)
    assert [each.size for each in found.sizes] == [1 << 20, 1 << 25, GIB]
    first = len(lines)
    assert found.notes == (
        f"{tmp_path / 'a.log'}: left out 1 of 0 bytes, the first is line {first + 2}, 2 in damaged "
        f"lines, the first is line {first}, 3 in place",
    )
