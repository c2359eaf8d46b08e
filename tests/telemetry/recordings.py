"""Recordings as those who record write them, made from times that are given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

GPU = "NVIDIA A100-SXM4-40GB"
TIMES = "     time   algbw   busbw #wrong"
COLUMNS = f"#       size         count      type   redop    root{TIMES}{TIMES}\n"


def log(
    kind: str,
    times: Iterable[tuple[int, float]],
    npus: int = 8,
    nodes: int = 1,
    hosts: Sequence[str] = (),
    device: str = GPU,
) -> str:
    """What nccl-tests prints, from sizes [bytes] and times [s]; in place it takes twice as long."""
    lines = [f"# {kind}_perf\n"]
    names = hosts or [f"box{node}" for node in range(nodes)]
    for rank in range(npus):
        where = f"on {names[rank * nodes // npus]} device {rank % (npus // nodes)} [0x07] {device}"
        lines.append(f"#  Rank {rank:2d} Group  0 Pid {770 + rank} {where}\n")
    lines.append(COLUMNS)
    redop = "sum" if "reduce" in kind or kind == "sendrecv" else "none"
    root = 0 if kind in ("broadcast", "reduce") else -1
    share = {"all_reduce": 2, "broadcast": 0, "reduce": 0, "sendrecv": 0}.get(kind, 1)
    factor = share * (npus - 1) / npus or 1.0
    for size, seconds in times:
        cells = ""
        for took in (seconds, 2 * seconds):
            rate = size / took / 1e9
            cells += f" {took * 1e6:.3f} {rate:.2f} {rate * factor:.2f} 0"
        lines.append(f"{size:12d} {size // 4:12d} float {redop} {root}{cells}\n")
    return "".join(lines)


def inspector_call(
    kind: str, size: int, took_us: float, *, rank: int = 0, number: int = 0, **more: Any
) -> dict[str, Any]:
    """One call as NCCL Inspector writes it; the size is that which the rank hands in."""
    head = {"id": "0x7f8c496ae9f661", "rank": rank, "n_ranks": 8, "nnodes": 1}
    return {
        "header": {**head, **more},
        "metadata": {"inspector_output_format_version": "v4.0", "hostname": "box0", "pid": 770},
        "coll_perf": {
            "coll": kind,
            "coll_sn": number,
            "coll_msg_size_bytes": size,
            "coll_exec_time_us": took_us,
            "coll_timing_source": "kernel_gpu",
            "coll_algobw_gbs": 1.0,
            "coll_busbw_gbs": 1.0,
        },
    }


def lines(calls: Iterable[object]) -> str:
    """Give JSON values a line each."""
    return "".join(json.dumps(each) + "\n" for each in calls)


def flight_entry(
    name: str, given: int, got: int, took_ms: float | None, **more: Any
) -> dict[str, Any]:
    """One entry of Flight Recorder, of floats by their number."""
    took = {} if took_ms is None else {"duration_ms": took_ms}
    return {
        "record_id": 0,
        "pg_id": 0,
        "process_group": ["0", "default_pg"],
        "collective_seq_id": 1,
        "profiling_name": f"nccl:{name}",
        "input_sizes": [[given // 4, 4]],
        "input_dtypes": ["Float"],
        "output_sizes": [[got]],
        "output_dtypes": ["Float"],
        "state": "completed",
        "is_p2p": False,
        **took,
        **more,
    }


def flight(entries: Sequence[object], ranks: int = 8) -> dict[str, Any]:
    """A dump of Flight Recorder."""
    group = {"name": "0", "desc": "default_pg", "ranks": str(list(range(ranks)))}
    return {"version": "2.10", "pg_config": {"0": group}, "pg_status": {}, "entries": entries}


def kernel(name: str, given: int, got: int, took_us: float, **more: Any) -> dict[str, Any]:
    """One kernel of NCCL as Kineto writes it, of halves by their number."""
    args = {
        "stream": 20,
        "Collective name": name,
        "In msg nelems": given,
        "Out msg nelems": got,
        "Group size": 8,
        "dtype": "BFloat16",
        "In split size": "[]",
        "Out split size": "[]",
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]",
        "Seq": 1,
        **more,
    }
    event = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)"}
    return {**event, "pid": 0, "tid": 20, "ts": 100.0, "dur": took_us, "args": args}


def trace(events: Sequence[object], rank: int = 0) -> dict[str, Any]:
    """A trace of PyTorch's profiler."""
    other = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 1, "dur": 2}
    about = {"backend": "nccl", "rank": rank, "world_size": 8}
    return {"schemaVersion": 1, "distributedInfo": about, "traceEvents": [other, *events]}
