"""Published faults with a known cause, each rebuilt as a log: the facts are those of the thread named.

Rates are busbw as the threads quote them. What a thread does not quote is assumed, and its note says so.
Lines of NCCL are in its own format, with hosts and addresses made up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GB, GIB = 10**9, 1 << 30
HDR, NDR = "25GB/s,1.3us", "50GB/s,1.3us"
A100, H100 = "@300GB/s,350ns@", "@450GB/s,350ns@"


def said(host: str, words: str, rank: int = 0) -> str:
    """A line of NCCL."""
    return f"{host}:{770 + rank}:801 [{rank}] NCCL INFO {words}"


def connected(*hosts: str) -> list[str]:
    """What every rank of a host says."""
    return [said(host, "Connected all rings", rank) for host in hosts for rank in range(8)]


def setting(name: str, value: str) -> str:
    return said("node0", f"NCCL_{name} set by environment to {value}.")


def nics(kind: str, *names: str, hosts: int = 2, gdr: bool = True, first: int = 0) -> list[str]:
    """What each host says of its NICs, and of the channels over them."""
    out = []
    for host in (f"node{number}" for number in range(hosts)):
        using = " ".join(f"[{number}]{name}:1/{kind}" for number, name in enumerate(names))
        out.append(said(host, f"NET/IB : Using {using} [RO]; OOB eth0:10.0.0.1<0>"))
        out.append(said(host, "Using network IB"))
        for number in range(len(names)):
            way = f"NET/IB/{number}{'/GDRDMA' if gdr else ''}"
            ends = f"{first + number}[{number}] -> {first + 8 + number}[{number}]"
            out.append(said(host, f"Channel {number:02d}/0 : {ends} [send] via {way}", number))
        out += connected(host)
    return out


def mlx(*numbers: int) -> list[str]:
    return [f"mlx5_{number}" for number in numbers]


@dataclass(frozen=True)
class Fault:
    """A case: where it is from, what ran, what was measured, what NCCL said, and the cause."""

    source: str
    topology: str
    nodes: int
    gpus: int
    busbw: float
    lines: Sequence[str]
    cause: str
    parts: tuple[str, ...] = ()
    kind: str = "all_reduce"
    size: int = GIB
    runs: Sequence[tuple[tuple[str, ...], float]] = ()
    """Hosts and busbw of each run, where there are several."""


KNOWN = (
    # After an update of the system NCCL does not see nvidia_peermem: 180 GB/s became 10.
    Fault(
        "NVIDIA/nccl#1676",
        "dgx_a100_2box",
        2,
        8,
        10,
        [
            *nics("IB", *mlx(*range(8)), gdr=False),
            *(
                said("node0", f"NET/IB : GPU Direct RDMA Disabled for HCA {n} 'mlx5_{n}'")
                for n in range(8)
            ),
        ],
        "no GPUDirect RDMA",
    ),
    # Four NICs; 93 GB/s with GPUDirect RDMA. The average of all sizes is quoted without it.
    Fault(
        "NVIDIA/nccl#1412",
        f"box:2x8x4{A100}{HDR}",
        2,
        8,
        33.3,
        nics("IB", *mlx(0, 1, 2, 4), gdr=False),
        "no GPUDirect RDMA",
    ),
    # nv_peer_mem was not loaded on one of two nodes. Rates are not quoted: assumed.
    Fault(
        "NVIDIA/nccl-tests#152",
        f"box:2x8x4{A100}{HDR}",
        2,
        8,
        4,
        [
            said("gpu32", "Channel 00 : 0[7000] -> 8[7000] [send] via NET/IB/1/GDRDMA"),
            said("gpu37", "Channel 00 : 0[7000] -> 8[7000] [receive] via NET/IB/0"),
            said("gpu37", "Channel 00 : 0[7000] -> 12[88000] [receive] via NET/IB/5/Shared"),
        ],
        "no GPUDirect RDMA",
        ("gpu37",),
        kind="alltoall",
    ),
    # Virtual machines with two NICs: 48 GB/s after settings of ACS, 56 % of it before.
    Fault(
        "NVIDIA/nccl#949",
        f"box:2x8x2{A100}{HDR}",
        2,
        8,
        27,
        [*nics("IB", *mlx(0, 1)), setting("ALGO", "Ring")],
        "PCIe",
    ),
    # One NIC of 200 Gb/s, which perftest fills: 9.84 GB/s, with ACS enabled.
    Fault(
        "NVIDIA/nccl-tests#112",
        f"box:2x8x1{A100}{HDR}",
        2,
        8,
        9.84,
        [
            "mpirun -np 16 -x NCCL_IB_GID_INDEX=3 -x NCCL_IB_HCA=mlx5_0 all_reduce_perf -b 1G -e 8G",
            *nics("RoCE", "mlx5_0"),
        ],
        "PCIe",
    ),
    # Five pairs of nodes, three of them slow; one node is in two of these and in no quick one.
    Fault(
        "NVIDIA/nccl-tests#106",
        f"box:2x8x4{A100}{HDR}",
        2,
        8,
        0,
        [setting("ALGO", "Ring")],
        "node",
        ("gn644",),
        runs=(
            (("gn644", "gn699"), 49.36),
            (("gn632", "gn641"), 88.36),
            (("gn284", "gn678"), 49.28),
            (("gn641", "gn644"), 49.30),
            (("gn404", "gn699"), 86.81),
        ),
    ),
    # NVLinks are there and P2P is off: 220 GB/s without the setting. The slow rate is assumed.
    Fault(
        "NVIDIA/nccl-tests#228",
        "dgx_a100_1box",
        1,
        8,
        20,
        [
            setting("P2P_LEVEL", "LOC"),
            said("node0", "24 coll channels, 0 collnet channels, 0 nvls channels, 32 p2p channels"),
            said("node0", "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct"),
        ],
        "no NVLink",
    ),
    # 370 GB/s with NVLS off, 480 with it.
    Fault(
        "NVIDIA/nccl#2140",
        "hgx_h200_8gpu",
        1,
        8,
        370,
        [
            setting("NVLS_ENABLE", "0"),
            said("node0", "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM"),
            said(
                "node0", "24 coll channels, 24 collnet channels, 0 nvls channels, 32 p2p channels"
            ),
        ],
        "no NVLS",
        size=8 * GIB,
    ),
    # 5 GB/s over a bond's sockets where RoCE has 25.
    Fault(
        "areal-project/AReaL#639",
        f"box:2x8x1{A100}{HDR}",
        2,
        8,
        5,
        [
            said("node0", "NET/IB : No device found."),
            said("node0", "NET/Socket : Using [0]bond0:10.0.0.2<0>"),
            said("node0", "Channel 00 : 0[0] -> 8[0] [send] via NET/Socket/0"),
        ],
        "sockets",
    ),
    # Five nodes with four NICs: 150 GB/s with trees, 190 with rings.
    Fault(
        "NVIDIA/nccl#1368",
        f"box:5x8x4{H100}{NDR}",
        5,
        8,
        150,
        [
            "mpirun -np 40 -x NCCL_IB_HCA=mlx5_10:1,mlx5_11:1,mlx5_12:1,mlx5_13:1 -x NCCL_ALGO=Tree "
            "-x NCCL_IB_QPS_PER_CONNECTION=2 all_reduce_perf -b 1M -e 1G -g 1 -f 2"
        ],
        "algorithm told",
    ),
    # A bond of 2 x 200 Gb/s, which perftest fills: 240 Gb/s. Other lines are assumed.
    Fault(
        "NVIDIA/nccl-tests#265",
        f"box:2x8x1{H100}{NDR}",
        2,
        8,
        30,
        nics("RoCE", "mlx5_bond_0"),
        "queue pairs",
    ),
    # Many nodes on several racks; adaptive routing and splitting over queue pairs gave 70 % more.
    Fault(
        "NVIDIA/cluster-readiness-engine#287",
        "box:8x4x4@900GB/s,350ns@100GB/s,1.3us",
        8,
        4,
        200,
        [
            *nics("RoCE", *mlx(0, 1, 2, 3), hosts=8),
            setting("IB_QPS_PER_CONNECTION", "4"),
            setting("IB_SPLIT_DATA_ON_QPS", "0"),
        ],
        "shared paths",
    ),
    # Two NICs of 200 Gb/s whose cables came up at 100: 24 GB/s.
    Fault(
        "NVIDIA/nccl#307",
        f"box:2x8x2@150GB/s,350ns@{HDR}",
        2,
        8,
        24,
        [
            *nics("IB", *mlx(0, 2)),
            *(
                said(host, f"NET/IB: [{n}] {name}:uverbs{n}:1/IB provider=Mlx5 speed=100000 ar=0")
                for host in ("node0", "node1")
                for n, name in enumerate(mlx(0, 2))
            ),
        ],
        "NIC",
    ),
)
"""Cases that were there while the rules were written."""

LATER = (
    # Two virtual machines of eight A100: 4 GB/s, and 186 where nvidia_peermem is loaded.
    Fault(
        "Azure/AKS#3507",
        "dgx_a100_2box",
        2,
        8,
        4,
        nics("IB", *mlx(*range(8)), gdr=False),
        "no GPUDirect RDMA",
    ),
    # A container without the device files: no NIC is found. "Extremely slow": the rate is assumed.
    Fault(
        "NVIDIA/nccl#451",
        f"box:2x8x1{A100}3.125GB/s,1.3us",
        2,
        8,
        0.8,
        [
            setting("IB_DISABLE", "0"),
            "node0:770:801 [0] misc/ibvwrap.cc:212 NCCL WARN Call to ibv_open_device failed",
            said("node0", "NET/IB : No device found."),
            said("node0", "NET/Socket : Using [0]bond0:10.0.0.2<0>"),
            said("node0", "Using network Socket"),
        ],
        "sockets",
    ),
    # libibverbs is missing in the image: about 40 times slower than InfiniBand.
    Fault(
        "PrimeIntellect-ai/prime-rl#1599",
        "hgx_h100_2box_switch",
        2,
        8,
        10,
        [
            said("node0", "Failed to open libibverbs.so[.1]"),
            said("node0", "NET/Socket : Using [0]eth0:10.0.0.2<0>"),
        ],
        "sockets",
    ),
    # An image whose EFA plugin does not work: sockets, 1.0 GB/s on average.
    Fault(
        "aws/aws-k8s-tester#473",
        f"box:2x8x8{H100}{NDR}",
        2,
        8,
        1.01,
        [
            "[1,9]<stdout>:" + said("worker-1", "Channel 01/0 : 9[1] -> 8[0] via P2P/IPC"),
            "[1,8]<stdout>:"
            + said("worker-1", "Channel 00/0 : 8[0] -> 0[0] [send] via NET/Socket/0"),
        ],
        "sockets",
    ),
    # Rings of newer versions use one of four ports: 7 GB/s of algbw, 50 before.
    Fault(
        "NVIDIA/nccl-tests#352",
        "box:2x4x4@300GB/s,350ns@12.5GB/s,1.3us",
        2,
        4,
        12.25,
        [
            *(
                said(
                    host,
                    "NET/IB : Using "
                    + " ".join(f"[{n}]mlx5_{n}:1/IB" for n in range(4))
                    + " [RO]; OOB ib0:10.0.0.1<0>",
                )
                for host in ("node0", "node1")
            ),
            said("node0", "Channel 00/0 : 0[0] -> 4[0] [send] via NET/IB/0/GDRDMA"),
            said("node1", "Channel 00/0 : 4[0] -> 0[0] [send] via NET/IB/0/GDRDMA"),
            *connected("node0", "node1"),
        ],
        "NIC list",
    ),
    # Eight channels reduce what eight nodes reach, 350 GB/s, much. The rate is assumed.
    Fault(
        "uccl-project/uccl#205",
        f"box:8x8x8{H100}{NDR}",
        8,
        8,
        200,
        [
            *nics("RoCE", *mlx(*range(8)), hosts=8),
            setting("MAX_NCHANNELS", "8"),
            setting("MIN_NCHANNELS", "8"),
        ],
        "few channels",
    ),
    # Eight nodes, all-to-all: 10 GB/s with PXN off, 12 with it.
    Fault(
        "NVIDIA/nccl-tests#187",
        f"box:8x8x4{A100}{HDR}",
        8,
        8,
        10,
        [*nics("RoCE", *mlx(0, 1, 2, 3), hosts=8), setting("P2P_PXN_LEVEL", "0")],
        "PXN off",
        kind="alltoall",
    ),
    # Instances whose hardware has no GPUDirect RDMA: 3 GB/s of four EFA interfaces.
    Fault(
        "aws/aws-ofi-nccl#547",
        "box:2x8x4@32GB/s,350ns@12.5GB/s,1.3us",
        2,
        8,
        3,
        [
            said("node0", "Using network Libfabric"),
            said("node0", "Channel 00/0 : 0[0] -> 8[0] [send] via NET/Libfabric/0/Shared"),
        ],
        "no GPUDirect RDMA",
    ),
)
"""Cases that were collected when the rules were done."""

LAST = (
    # GPUDirect-TCPX is not set up: 15 % of what the instances have. The lines are assumed.
    Fault(
        "skypilot-org/skypilot#3592",
        f"box:2x8x4{H100}31.25GB/s,1.3us",
        2,
        8,
        18.97,
        [
            said("node0", "NET/Socket : Using [0]eth0:10.0.0.2<0>"),
            said("node0", "Using network Socket"),
        ],
        "sockets",
    ),
    # A launcher turns P2P and SHM off on machines with NVLink. The rate is assumed.
    Fault(
        "Motphys/UniLab#1507",
        "dgx_a100_1box",
        1,
        8,
        2,
        [
            setting("P2P_DISABLE", "1"),
            setting("SHM_DISABLE", "1"),
            said("node0", "Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0"),
        ],
        "no NVLink",
    ),
    # No plugin for Slingshot in the image, so TCP. Lines and rate are assumed.
    Fault(
        "determined-ai/environments#169",
        f"box:2x4x4{A100}{HDR}",
        2,
        4,
        5,
        [said("nid1", "NET/Socket : Using [0]hsn0:10.0.0.2<0>")],
        "sockets",
    ),
    # NVLS is off by default: 1,023 us, and 844 with it. The size is that of a ring in this time.
    Fault(
        "sgl-project/sglang#3502",
        "hgx_h200_8gpu",
        1,
        8,
        359,
        [setting("NVLS_ENABLE", "0")],
        "no NVLS",
        size=200 << 20,
    ),
    # Two GPUs of some nodes use one NIC, by a wrong topology. Lines and rate are assumed.
    Fault(
        "NVIDIA/nccl#820",
        f"box:2x8x8{A100}{HDR}",
        2,
        8,
        90,
        [
            *(
                said(
                    host,
                    "NET/IB : Using " + " ".join(f"[{n}]mlx5_{n}:1/RoCE" for n in range(8)) + " ;",
                )
                for host in ("node0", "node1")
            ),
            *(
                said(
                    host,
                    f"Channel 0{n}/0 : {n}[{n}] -> {n + 8}[{n}] [send] via NET/IB/{n or 1}/GDRDMA",
                )
                for host in ("node0", "node1")
                for n in range(8)
            ),
            *connected("node0", "node1"),
        ],
        "NIC list",
    ),
    # NICs do not read the memory of GPUs before NCCL_NET_GDR_READ=1: 6.12 GB/s, then 9.23.
    Fault(
        "NVIDIA/nccl#371",
        "box:2x8x1@12GB/s,350ns@12.5GB/s,1.3us",
        2,
        8,
        6.12,
        [
            said("need01", "Channel 00 : 15[8a000] -> 0[1a000] [receive] via NET/IB/0/GDRDMA"),
            said("need01", "Channel 00 : 7[8a000] -> 8[1a000] [send] via NET/IB/0"),
        ],
        "no GPUDirect RDMA",
    ),
    # A newer version uses fewer channels for each peer: 18.3 GB/s, and 24.2 before.
    Fault(
        "NVIDIA/nccl#1272",
        "box:8x4x4@150GB/s,350ns@25GB/s,1.3us",
        8,
        4,
        18.3,
        [said("nid1", "Channel 00/1 : 3[3] -> 4[0] [send] via NET/AWS Libfabric/3/GDRDMA")],
        "few channels",
        kind="sendrecv",
    ),
    # Each process sees its own GPU only, so P2P is off. Lines and rate are assumed.
    Fault(
        "NVIDIA/nccl#1066",
        "fully_connected:4@100GB/s,700ns",
        1,
        4,
        12,
        [said("node0", "Channel 00/0 : 0[0] -> 1[0] via SHM/direct/direct")],
        "no NVLink",
    ),
)
"""Cases that were collected when the rules had been mended."""

FOUND = (
    # An image without libibverbs: "all-reduces will be performed over TCP". The rate is assumed.
    Fault(
        "sgl-project/sglang#1427",
        "hgx_h100_2box_switch",
        2,
        8,
        8,
        [
            said("node0", "Failed to open libibverbs.so[.1]"),
            said("node0", "NET/Socket : Using [0]ib0:10.0.0.2<0>"),
        ],
        "sockets",
    ),
    # RDMA is not set up on the host; the NICs are named all the same. The rate is assumed.
    Fault(
        "hiyouga/LLaMA-Factory#6111",
        f"box:2x8x8{A100}{HDR}",
        2,
        8,
        5,
        [
            setting("IB_DISABLE", "0"),
            said("node0", f"NCCL_IB_HCA set to {','.join(f'mlx5_{n}:1' for n in range(8))}"),
            said("node0", "NET/IB : No device found."),
            said("node0", "NET/Socket : Using [0]eth0:10.0.0.2<0>"),
            said("node0", "Using network Socket"),
        ],
        "sockets",
    ),
    # A script names NICs that other machines have: no such device, so TCP. Lines and rate are assumed.
    Fault(
        "ROCm/Megatron-LM#132",
        f"box:2x8x8{A100}{NDR}",
        2,
        8,
        6,
        [
            f"export NCCL_IB_HCA={','.join(f'rdma{n}' for n in range(8))}",
            said("node0", "NET/IB : No device found."),
            said("node0", "NET/Socket : Using [0]eth0:10.0.0.2<0>"),
        ],
        "sockets",
    ),
    # A setting turns RoCE off too: a step takes 5.7 s, and 2.5 with it. Lines and rate are assumed.
    Fault(
        "scottclowe/pytorch-experiment-template#11",
        "box:2x4x1@32GB/s,350ns@12.5GB/s,1.3us",
        2,
        4,
        3,
        [
            "export NCCL_IB_DISABLE=1",
            said("node0", "NET/Socket : Using [0]eth0:10.0.0.2<0>"),
        ],
        "sockets",
    ),
    # 330 GB/s with NVLS off on a node, 430 with it.
    Fault(
        "NVIDIA/nccl#1221",
        "hgx_h200_8gpu",
        1,
        8,
        330,
        ["mpirun -np 8 -x NCCL_NVLS_ENABLE=0 all_reduce_perf -b 4G -e 8G -g 1"],
        "no NVLS",
        size=4 * GIB,
    ),
    # Each bond carries 180 Gb/s, and one queue pair uses one of its ports. The rate is assumed.
    Fault(
        "NVIDIA/nccl#1015",
        f"box:2x8x4{A100}{HDR}",
        2,
        8,
        48,
        nics("RoCE", *(f"mlx5_bond_{n}" for n in range(4))),
        "queue pairs",
    ),
    # GPUDirect RDMA is off, so NCCL calls NICs at the same PCIe switch far (PHB). The rate is assumed.
    Fault(
        "NVIDIA/nccl#489",
        f"box:2x8x1{A100}{HDR}",
        2,
        8,
        3,
        [
            *nics("IB", "mlx5_0", gdr=False),
            said(
                "node0",
                "Pattern 4, crossNic 0, nChannels 1, bw 12.000000/12.000000, type NVL/PHB, sameChannels 1",
            ),
        ],
        "no GPUDirect RDMA",
    ),
    # GH200 with four ports of 200 Gb/s: NCCL leaves GPUDirect RDMA off; 79.72 GB/s, and 96.07 with it.
    Fault(
        "NVIDIA/nccl#1579",
        "box:2x1x1@150GB/s,350ns@100GB/s,1.3us",
        2,
        1,
        79.72,
        nics("RoCE", *mlx(0, 1, 2, 3), gdr=False),
        "no GPUDirect RDMA",
        size=2 * GIB,
    ),
    # Eight nodes below one switch: 43.53 GB/s; below two: 19.53. Newer routing reached 39.93.
    Fault(
        "NVIDIA/nccl#319",
        f"box:8x8x2@150GB/s,350ns@{HDR}",
        8,
        8,
        19.53,
        [setting("ALGO", "RING"), *nics("IB", *mlx(0, 2), hosts=8)],
        "shared paths",
    ),
    # Containers on one node that see one GPU each: the network instead of NVLink. The rate is assumed.
    Fault(
        "NVIDIA/nccl#324",
        "fully_connected:2@100GB/s,700ns",
        1,
        2,
        3,
        [
            said("node0", "NET/Socket : Using [0]eth0:10.0.0.2<0>"),
            said("node0", "Channel 00 : 0[3d000] -> 1[3e000] [receive] via NET/Socket/0"),
            said("node0", "Channel 00 : 1[3e000] -> 0[3d000] [send] via NET/Socket/0"),
        ],
        "no NVLink",
    ),
    # All channels use one of four interfaces. The rate is assumed.
    Fault(
        "NVIDIA/nccl#527",
        f"box:2x8x4{A100}12.5GB/s,1.3us",
        2,
        8,
        10,
        [
            said(
                host,
                f"Channel {n:02d} : 0[101c0] -> 8[101c0] [{way}] via NET/AWS Libfabric/0/GDRDMA",
            )
            for host, way in (("ip-1", "send"), ("ip-2", "receive"))
            for n in range(2)
        ]
        + connected("ip-1", "ip-2"),
        "NIC list",
    ),
    # The plugin rules out LL128, though the instances have it. The size and the rate are assumed.
    Fault(
        "aws/aws-ofi-nccl#280",
        "hgx_h100_2box_switch",
        2,
        8,
        20,
        [
            setting("PROTO", "simple"),
            said("ip-1", "Channel 00/0 : 0[0] -> 8[0] [send] via NET/AWS Libfabric/0/GDRDMA"),
        ],
        "protocol told",
        size=4 << 20,
    ),
    # Four A100 in a node, all joined by NVLinks: NCCL does not pick LL128; it is faster if told, and
    # picked in newer versions. Rates and the table of NCCL are assumed.
    Fault(
        "NVIDIA/nccl#1261",
        f"box:4x4x4@100GB/s,350ns@{HDR}",
        4,
        4,
        8,
        [
            *nics("IB", *mlx(0, 1, 2, 3), hosts=4),
            said(
                "node0",
                "    AllReduce |    14.4/   4.5 |     0.0/   0.0 |    56.0/  21.0 |     9.0/   4.0 |"
                "     0.0/   0.0 |    27.6/  23.0 |     0.0/   0.0 |     0.0/   0.0 |     0.0/   0.0 |",
            ),
        ],
        "no LL128",
        size=2 << 20,
    ),
)
"""Cases that were collected after that; what they taught is in the rules now."""

FRESH = (
    # GPUs and NICs seem far: NCCL_NET_GDR_LEVEL=SYS or a topology file helps. The rate is assumed.
    Fault(
        "Azure/aks-rdma-infiniband#36",
        "dgx_a100_2box",
        2,
        8,
        20,
        [
            *nics("IB", *mlx(*range(8)), gdr=False),
            *(
                said("node0", f"NET/IB : GPU Direct RDMA Enabled for HCA {n} 'mlx5_{n}'")
                for n in range(8)
            ),
        ],
        "no GPUDirect RDMA",
    ),
    # A container without /dev/infiniband: 150 of 190 Gb/s. Lines are assumed.
    Fault(
        "vllm-project/vllm#42075",
        f"box:2x8x1{H100}{HDR}",
        2,
        8,
        18.75,
        [
            setting("IB_DISABLE", "0"),
            "export NCCL_IB_HCA=mlx5_0",
            said("node0", "NET/Socket : Using [0]eth0:10.0.0.2<0>"),
        ],
        "sockets",
    ),
    # A setting turns off NVLinks between the hosts of a rack of GB200. Lines and rate are assumed.
    Fault(
        "vllm-project/vllm#16992",
        "fully_connected:8@900GB/s,350ns",
        1,
        8,
        40,
        [
            setting("CUMEM_ENABLE", "0"),
            said("node0", "Channel 00/0 : 3[3] -> 4[0] [send] via NET/IB/0/GDRDMA"),
            said("node1", "Channel 00/0 : 7[3] -> 0[0] [send] via NET/IB/0/GDRDMA"),
        ],
        "no NVLink",
    ),
    # Four nodes: 6 GB/s, and twice that with GPUDirect RDMA. Lines are assumed.
    Fault(
        "NVIDIA/nccl-tests#29",
        "box:4x8x2@150GB/s,350ns@12.5GB/s,1.3us",
        4,
        8,
        6,
        [
            said("server1", "Ring 00 : 31[3] -> 0[0] [receive] via NET/IB/0"),
            said("server1", "Ring 00 : 3[3] -> 8[0] [send] via NET/IB/0"),
        ],
        "no GPUDirect RDMA",
    ),
    # RCCL takes eight channels by default, and 24 are enough. Lines and rate are assumed.
    Fault(
        "ROCm/rccl#1366",
        f"box:4x4x4@128GB/s,350ns@{HDR}",
        4,
        4,
        40,
        [
            *nics("RoCE", *mlx(0, 1, 2, 3), hosts=4),
            said("node0", "8 coll channels, 8 collnet channels, 0 nvls channels, 8 p2p channels"),
        ],
        "few channels",
    ),
    # A container without /dev/infiniband. The rate is assumed.
    Fault(
        "pytorch/pytorch#111424",
        f"box:2x8x8{H100}{NDR}",
        2,
        8,
        5,
        [
            said("node013", "NET/IB : No device found."),
            setting("IB_DISABLE", "0"),
            said("node013", "NET/Socket : Using [0]eth0:10.0.0.2<0>"),
        ],
        "sockets",
    ),
    # The plugin has another name than NCCL looks for. The rate is assumed.
    Fault(
        "NVIDIA/exemplar-performance#39",
        f"box:8x8x8{H100}{NDR}",
        8,
        8,
        20,
        [
            said("ip-1", "NET/Plugin: Could not find: libnccl-net-aws-ofi.so."),
            said("ip-1", "NET/IB : No device found."),
            said("ip-1", "NET/Socket : Using [0]enp71s0:10.0.0.2<0>"),
        ],
        "sockets",
    ),
    # GPUDirect RDMA is not found with one of four topology files. The rate is assumed.
    Fault(
        "NVIDIA/nccl#1303",
        f"box:2x8x8{H100}{HDR}",
        2,
        8,
        60,
        [*nics("RoCE", *mlx(*range(8)), gdr=False), setting("TOPO_FILE", "/topo3.xml")],
        "no GPUDirect RDMA",
    ),
    # NVLS is not there in a container, as NCCL says. The rate is assumed.
    Fault(
        "NVIDIA/nccl#892",
        "hgx_h200_8gpu",
        1,
        8,
        360,
        [
            said("036260b61d3a", "NVLS multicast support is not available on dev 0"),
            said("036260b61d3a", "16 coll channels, 0 nvls channels, 16 p2p channels"),
            said("036260b61d3a", "Channel 15/0 : 7[7] -> 4[4] via P2P/direct pointer"),
        ],
        "no NVLS",
    ),
    # Firmware negotiates how connections are made (ECE), and they are slow. Lines and rate are assumed.
    Fault(
        "NVIDIA/nccl#1403",
        f"box:2x8x4{H100}{NDR}",
        2,
        8,
        90,
        nics("RoCE", *mlx(0, 1, 2, 3)),
        "unknown",
    ),
)
"""Cases that were collected when the rules knew those of `FOUND`."""

NEWEST = (
    # Two nodes reach 25 GB/s together and 39 with any third: routes of the fabric collide. Others assumed.
    Fault(
        "NVIDIA/nccl#325",
        f"box:2x8x2@150GB/s,350ns@{HDR}",
        2,
        8,
        0,
        [setting("ALGO", "RING")],
        "pair",
        ("node1", "node2"),
        runs=((("node1", "node2"), 25), (("node1", "node3"), 39), (("node2", "node4"), 39)),
    ),
    # Libfabric takes TCP, not EFA. Eight GPUs a node and the rate are assumed.
    Fault(
        "NVIDIA/nccl#229",
        "box:2x8x1@150GB/s,350ns@12.5GB/s,1.3us",
        2,
        8,
        1.5,
        [
            said("ip-1", "NET/Socket : Using [0]eth0:192.168.16.255<0>"),
            said("ip-1", "NET/OFI Selected Provider is tcp;ofi_rxm"),
        ],
        "sockets",
    ),
    # The same today, as the plugin of EFA writes it. The rate is assumed.
    Fault(
        "aws/aws-ofi-nccl#850",
        f"box:2x8x4{A100}12.5GB/s,1.3us",
        2,
        8,
        2,
        [
            said(
                "ip-1", "NET/OFI Selected provider is tcp, fabric is 172.31.64.0/20 (found 1 nics)"
            ),
            said("ip-1", "NET/OFI Setting NCCL_PROTO='simple' to prevent data corruption"),
            said("ip-1", "Using network AWS Libfabric"),
        ],
        "sockets",
    ),
    # Two p4d: one of four NICs, without GPUDirect RDMA. The rate is assumed.
    Fault(
        "aws/aws-ofi-nccl#64",
        f"box:2x8x4{A100}12.5GB/s,1.3us",
        2,
        8,
        5,
        [
            said("ip-1", "Channel 01 : 7[a01d0] -> 8[101c0] [send] via NET/AWS Libfabric/0", 7),
            said("ip-2", "Channel 01 : 15[a01d0] -> 0[101c0] [send] via NET/AWS Libfabric/0", 7),
            said("ip-2", "Channel 00 : 8[101c0] -> 9[101d0] via P2P/IPC/read"),
            said("ip-2", "2 coll channels, 2 p2p channels, 1 p2p channels per peer"),
        ],
        "no GPUDirect RDMA",
    ),
    # An engine turns both off: 506 us became 1350 for 112 MiB on four nodes of GB200.
    Fault(
        "lightseekorg/tokenspeed#1127",
        "fully_connected:16@900GB/s,350ns",
        1,
        16,
        163,
        [
            setting("CUMEM_ENABLE", "0"),
            setting("NVLS_ENABLE", "0"),
            said("node0", "Channel 00/0 : 3[3] -> 4[0] [send] via NET/IB/0/GDRDMA"),
        ],
        "no NVLink",
        size=112 << 20,
    ),
    # ACS is on: 186 GB/s between two servers whose NICs perftest fills. Lines are assumed.
    Fault(
        "cloud-hypervisor/cloud-hypervisor#8141",
        f"box:2x8x8{H100}{NDR}",
        2,
        8,
        186,
        nics("IB", *mlx(*range(8))),
        "PCIe",
    ),
    # A container for each GPU: only host memory is left. The rate is assumed.
    Fault(
        "NVIDIA/nccl#945",
        "dgx_a100_1box",
        1,
        8,
        12,
        [said("node0", "Channel 00/0 : 0[0] -> 1[0] via SHM/direct/direct")],
        "no NVLink",
    ),
    # Containers that share all but their GPUs use the network. The rate is assumed.
    Fault(
        "NVIDIA/nvidia-docker#1253",
        "dgx1_v100",
        1,
        8,
        5,
        [
            said("host0", "Ring 00 : 0[0] -> 1[1] via P2P/IPC"),
            said("host0", "Ring 00 : 3[1] -> 0[0] [receive] via NET/Socket/0"),
        ],
        "no NVLink",
    ),
    # A recipe of a cloud turns NVLS off. Rate and lines are assumed.
    Fault(
        "coreweave/reference-architecture#74",
        "hgx_h200_8gpu",
        1,
        8,
        365,
        [
            "export NCCL_NVLS_ENABLE=0",
            said("node0", "16 coll channels, 0 collnet channels, 0 nvls channels, 32 p2p channels"),
        ],
        "no NVLS",
        size=4 * GIB,
    ),
    # Three partitions of GB200: NCCL takes rings, 197 GB/s, and trees reach 234. The line is assumed.
    Fault(
        "NVIDIA/nccl#1801",
        f"box:3x4x4@900GB/s,350ns@{NDR}",
        3,
        4,
        196.7,
        [
            setting("NVLS_ENABLE", "0"),
            said(
                "node0",
                "AllReduce: 17179869184 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}",
            ),
        ],
        "pick",
        size=16 * GIB,
    ),
    # nvidia_peermem was not loaded. Lines and rate are assumed.
    Fault(
        "NVIDIA/nccl#1343",
        f"box:2x8x4{A100}{HDR}",
        2,
        8,
        20,
        nics("IB", *mlx(0, 1, 2, 3), gdr=False),
        "no GPUDirect RDMA",
    ),
    # GPUs without NVLink whose driver refuses it: 8 GB/s, and 20 with it. Lines are assumed.
    Fault(
        "aikitoria/open-gpu-kernel-modules#20",
        f"box:3x8x1@64GB/s,350ns@{NDR}",
        3,
        8,
        8,
        [
            said(h, "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0")
            for h in ("node0", "node1", "node2")
        ],
        "no GPUDirect RDMA",
    ),
)
"""Cases that were collected when the rules knew those of `FRESH`."""

UNSEEN = (
    # Virtual machines: 180 GB/s with four NICs, 320 without virtualization. Lines are assumed.
    Fault(
        "NVIDIA/nccl-tests#380",
        f"box:2x8x4{H100}{NDR}",
        2,
        8,
        180,
        nics("IB", *mlx(0, 1, 2, 3)),
        "PCIe",
        size=8 * GIB,
    ),
    # One GPU a node, far from its NIC: 1.1 GB/s, and 9 with NCCL_NET_GDR_LEVEL and the right NUMA domains.
    Fault(
        "NVIDIA/nccl-tests#293",
        "box:2x1x1@25GB/s,350ns@12.5GB/s,1.3us",
        2,
        1,
        1.1,
        [
            said(host, f"Channel 00/0 : {way} [send] via NET/IBext_v8/0")
            for host, way in (("test1", "0[0] -> 1[0]"), ("test2", "1[0] -> 0[0]"))
        ],
        "no GPUDirect RDMA",
    ),
    # Both NICs seem to share a lane of PCIe, so there is one ring: 24 GB/s, not 48.
    Fault(
        "NVIDIA/nccl#439",
        f"box:2x2x2@300GB/s,350ns@{HDR}",
        2,
        2,
        24,
        [
            line
            for host in ("node0", "node1")
            for line in (
                said(host, "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB ; OOB eth0:10.0.0.1<0>"),
                said(host, "Channel 00/02 : 0[0] -> 2[0] [send] via NET/IB/0/GDRDMA"),
                said(host, "2 coll channels, 0 nvls channels, 2 p2p channels", 0),
                said(host, "2 coll channels, 0 nvls channels, 2 p2p channels", 1),
            )
        ],
        "NIC list",
    ),
    # Pods of one GPU each on a node whose GPUs NVLinks join. The rate is assumed.
    Fault(
        "NVIDIA/nccl#1781",
        "fully_connected:2@450GB/s,350ns",
        1,
        2,
        20,
        [said("pod0", "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA")],
        "no NVLink",
    ),
    # The same over TCP. The rate is assumed.
    Fault(
        "NVIDIA/k8s-device-plugin#347",
        "dgx_a100_1box",
        1,
        8,
        2,
        [said("pod0", "Channel 00 : 0[0] -> 1[0] [send] via NET/Socket/0")],
        "no NVLink",
    ),
    # Four of eight NICs are used, and none reads the memory of GPUs. The rate is assumed.
    Fault(
        "NVIDIA/nccl#1392",
        "dgx_a100_2box",
        2,
        8,
        20,
        [
            *(
                said("pnode4", f"NET/IB : GPU Direct RDMA Disabled for HCA {n} 'mlx5_{m}'")
                for n, m in enumerate((0, 1, 2, 3, 6, 7, 8, 9))
            ),
            *(
                said("pnode4", f"Channel {n:02d}/0 : 8[{n}] -> 0[{n}] [receive] via NET/IB/{m}", n)
                for n, m in enumerate((0, 2, 4, 6))
            ),
        ],
        "no GPUDirect RDMA",
    ),
    # Processors lie between GPUs and NICs, and two NICs reach less than one. Lines and rate are assumed.
    Fault(
        "NVIDIA/nccl#1084",
        "box:2x8x2@32GB/s,350ns@12.5GB/s,1.3us",
        2,
        8,
        8,
        [
            *nics("RoCE", *mlx(0, 1)),
            said(
                "node0",
                "Pattern 4, crossNic 0, nChannels 2, bw 9.000000/9.000000, type SYS/PHB, sameChannels 0",
            ),
        ],
        "far NIC",
    ),
)
"""Cases that were collected when the rules knew those of `NEWEST`."""
LATEST = (
    # Slingshot is asked for, and its plugin is not loaded: TCP. Lines and rate are assumed.
    Fault(
        "ecmwf/WeatherGenerator#1261",
        "box:2x4x4@150GB/s,350ns@25GB/s,1.3us",
        2,
        4,
        8,
        [
            setting("NET_GDR_LEVEL", "PHB"),
            said("nid1", "NET/Plugin: Could not find: libnccl-net.so."),
            said("nid1", "NET/Socket : Using [0]hsn0:10.0.0.2<0>"),
            said("nid1", "Using network Socket"),
        ],
        "sockets",
    ),
    # Two P5: the image of the job does not use EFA. The rate is assumed.
    Fault(
        "awslabs/awsome-distributed-ai#386",
        f"box:2x8x8{H100}{NDR}",
        2,
        8,
        5,
        [
            "(RayTrainWorker pid=944, ip=10.0.0.1) "
            + said("worker-p5", "Channel 13/0 : 0[0] -> 8[0] [receive] via NET/Socket/0"),
            "(RayTrainWorker pid=946, ip=10.0.0.1) "
            + said("worker-p5", "Channel 06/0 : 10[2] -> 11[3] via P2P/CUMEM", 2),
        ],
        "sockets",
    ),
    # Two nodes of four V100: NCCL_NET_GDR_LEVEL=3 turns GPUDirect RDMA on. The rate is assumed.
    Fault(
        "Mellanox/nv_peer_memory#56",
        "box:2x4x1@150GB/s,350ns@12.5GB/s,1.3us",
        2,
        4,
        6,
        [
            said("secondary_node", "Ring 01 : 3 -> 6 [receive] via NET/IB/0", 2),
            said("secondary_node", "Ring 01 : 7 -> 2 [send] via NET/IB/0", 3),
            said("master_node", "Ring 01 : 2[2] -> 0[0] via P2P/IPC", 2),
        ],
        "no GPUDirect RDMA",
    ),
    # Four nodes without libibverbs: 4 GB/s over IPoIB, and 6 with it. Lines are assumed.
    Fault(
        "NVIDIA/nccl#465",
        "box:4x4x1@32GB/s,350ns@12.5GB/s,1.3us",
        4,
        4,
        4,
        [
            said("node0", "Failed to open libibverbs.so[.1]"),
            said("node0", "NET/Socket : Using [0]ib0:10.0.0.2<0>"),
        ],
        "sockets",
    ),
    # A default of another library leaves one channel for each peer: less than half of what a GPU's NICs
    # carry. The rate and the lines are assumed.
    Fault(
        "meta-pytorch/torchcomms#1433",
        "box:2x4x4@900GB/s,350ns@100GB/s,1.3us",
        2,
        4,
        45,
        [
            setting("P2P_PER_CHANNEL_NET_BW", "-1"),
            said(
                "node0",
                "16 coll channels, 0 nvls channels, 16 p2p channels, 1 p2p channels per peer",
            ),
        ],
        "few channels",
        kind="sendrecv",
    ),
    # Two nodes of MI350X: trees with LL128 reach 127 GB/s, and rings with LL128 156. The line is assumed.
    Fault(
        "ROCm/rocm-systems#9406",
        "box:2x8x8@500GB/s,350ns@50GB/s,1.3us",
        2,
        8,
        127.38,
        [
            *nics("RoCE", *(f"rdma{n}" for n in range(8))),
            said(
                "node0",
                "AllReduce: 33554432 Bytes -> Algo TREE proto LL128 channel{Lo..Hi}={0..63}",
            ),
        ],
        "pick",
        size=32 << 20,
    ),
    # A container that is not privileged finds no NIC: two GH200. Lines and rate are assumed.
    Fault(
        "vllm-project/vllm#6610",
        "box:2x1x1@50GB/s,350ns@50GB/s,1.3us",
        2,
        1,
        3,
        [
            said("node0", "NET/IB : No device found."),
            said("node0", "NET/Socket : Using [0]eth0:10.0.0.2<0>"),
            said("node0", "Using network Socket"),
        ],
        "sockets",
    ),
    # Two containers with two V100 each: 15.5 GB/s, and 31.7 in one; all channels name P2P.
    Fault(
        "NVIDIA/nccl-tests#93",
        "fully_connected:4@25GB/s,700ns",
        1,
        4,
        15.5,
        [said("node1", "Channel 00 : 0[1a000] -> 1[1c000] via P2P/direct pointer")],
        "no NVLink",
    ),
    # Two containers on one node are slower than two on two nodes. The rate and the line are assumed.
    Fault(
        "NVIDIA/nccl#1511",
        "fully_connected:2@150GB/s,700ns",
        1,
        2,
        6,
        [said("pod0", "Channel 00/0 : 0[0] -> 1[0] via SHM/direct/direct")],
        "no NVLink",
    ),
    # Two pods on one node, each with a GPU: channels use a NIC. The rate is assumed.
    Fault(
        "NVIDIA/nccl#797",
        "fully_connected:2@150GB/s,700ns",
        1,
        2,
        10,
        [
            setting("P2P_LEVEL", "SYS"),
            said("pod1", "Channel 00/0 : 1[1b000] -> 0[1a000] [receive] via NET/IB/0/GDRDMA"),
        ],
        "no NVLink",
    ),
    # Four NICs of 400 Gb/s: only several queue pairs with split data reach nearly their rate. Settings and
    # rate are assumed.
    Fault(
        "NVIDIA/nccl#1401",
        f"box:2x8x4{H100}{NDR}",
        2,
        8,
        130,
        [
            *nics("RoCE", *mlx(0, 1, 2, 3)),
            setting("IB_QPS_PER_CONNECTION", "4"),
            setting("IB_SPLIT_DATA_ON_QPS", "0"),
        ],
        "queue pairs",
    ),
    # Newer versions make 16 channels on Blackwell, 32 before. The rate and the line are assumed.
    Fault(
        "openxla/xla#32970",
        "box:1x8x8@900GB/s,350ns@50GB/s,1.3us",
        1,
        8,
        550,
        [said("node0", "16 coll channels, 16 collnet channels, 0 nvls channels, 32 p2p channels")],
        "few channels",
    ),
    # Six nodes below two racks: flows collide where ECMP hashes them. The rate is assumed: a half.
    Fault(
        "uccl-project/uccl#153",
        f"box:6x8x8{H100}{NDR}",
        6,
        8,
        180,
        nics("RoCE", *mlx(*range(8)), hosts=6),
        "shared paths",
    ),
    # NCCL_CROSS_NIC=0 is slower than 1: 149 GB/s. Four NICs a node and the lines are assumed.
    Fault(
        "NVIDIA/nccl#1411",
        f"box:2x8x4{H100}{NDR}",
        2,
        8,
        149,
        [setting("CROSS_NIC", "0"), setting("ALGO", "Ring"), *nics("RoCE", *mlx(0, 1, 2, 3))],
        "rail told",
    ),
)
"""Cases that were collected when the rules knew those of `UNSEEN`."""
