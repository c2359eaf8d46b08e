"""Files of other programs: each is refused by what it is, whatever its name and whoever reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from hocket.files.foreign import check_foreign

LINKS = "; write npus:, switches: and links: as YAML"
ROCM = """

============================ ROCm System Management Interface ============================
================================ Weight between two GPUs =================================
       GPU0         GPU1
GPU0   0            15
GPU1   15           0

=============================== Link Type between two GPUs ===============================
       GPU0         GPU1
GPU0   0            XGMI
GPU1   XGMI         0

GPU[0]\t\t: (Topology) Numa Node: 0
"""
FOREIGN = {
    "rocm-smi --showtopo": (
        ROCM,
        "is what rocm-smi --showtopo prints, which states no bandwidths; give",
    ),
    "rocm-smi, cut": (
        ROCM.partition("\n====")[2].partition("\n")[2],
        "is what rocm-smi --showtopo prints",
    ),
    "amd-smi": (
        "ACCESS TABLE:\n       0000:01:00.0 0000:02:00.0\n",
        "is what amd-smi topology prints",
    ),
    "SimAI": (
        "8 2 2 2 10 H100\n4 5 6 7 \n0 4 2880Gbps 0.000025ms 0\n1 4 2880Gbps 0.000025ms 0\n",
        f"is a topology of SimAI{LINKS}",
    ),
    "ns-3": ("6 2 5\n4 5\n0 4 100Gbps 1us 0\n1 4 100Gbps 1us 0\n", f"simulations of RDMA{LINKS}"),
    "SimAI's workload": (
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 ga: 1 all_gpus: 16\n2\n"
        "grad_gather\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLGATHER\t1000000\t100\n",
        "is a workload as text, of SimAI or of ASTRA-sim 1; give a shipped model",
    ),
    "ASTRA-sim's workload": (
        "DATA\n3\nlayer_64_1_conv1 -1 1000 NONE 0 1000 NONE 0 1000 ALLREDUCE 9408 10\n",
        "is a workload as text, of SimAI or of ASTRA-sim 1",
    ),
    "ibnetdiscover": (
        "#\n# Topology file: generated on Wed Mar  4 05:06:07 2026\n#\nvendid=0x2c9\n",
        "is what ibnetdiscover prints, which names no GPUs",
    ),
    "lspci -tv": ("-+-[0000:b0]-+-00.0  Intel\n-[0000:00]-+-00.0\n", "is what lspci -t prints"),
    "lstopo": ("Machine (503GB total)\n  Package L#0\n    NUMANode L#0\n", "is what lstopo prints"),
    "nvidia-smi": (
        "Wed Mar  4 05:06:07 2026\n+-----------+\n| NVIDIA-SMI 570.86    Driver Version: 570.86 |\n",
        "is what nvidia-smi prints alone, which names no links; give what nvidia-smi topo -m prints",
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_others_write_is_refused_by_its_name(name: str, end: str, tmp_path: Path) -> None:
    text, words = FOREIGN[name]
    readers: list[tuple[str, Any]] = [
        ("net.txt", hk.topology.load),
        ("net.yml", hk.topology.load),
        ("net", hk.topology.load),
        ("net.txt", lambda path: hk.measured(path, "dgx_a100_1box", plans=False)),
        ("net.yml", lambda path: hk.workload.load(str(path))),
        ("net", hk.traces.load),
    ]
    for file, read in readers:
        path = tmp_path / file
        path.write_bytes(text.replace("\n", end).encode())
        with pytest.raises(hk.SpecError) as caught:
            read(path)
        assert words in str(caught.value), file
        assert caught.value.origin == str(path)
        assert caught.value.remedy


def test_the_json_of_nccl_tests_is_named(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text('{"version":1,"start_time":"2026-03-04 05:06:07","args":["all_reduce_perf"]}\n')
    with pytest.raises(
        hk.SpecError, match=r"is JSON of nccl-tests \(-J\); give what the program printed"
    ):
        hk.measured(path, "dgx_a100_1box", plans=False)


@pytest.mark.parametrize(
    "text",
    [
        "npus: [a, b]\nlinks:\n  - {a: a, b: b, bandwidth: 1 GB/s, latency: 1 us}\n",
        "# from rocm-smi --showtopo\nbuilder: ring\n",
        "DATA: 3\n",
        "",
    ],
)
def test_what_is_none_of_them_passes(text: str) -> None:
    check_foreign(text, "net.yml")
    check_foreign(text.encode(), "net.yml")
