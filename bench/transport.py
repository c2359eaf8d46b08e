"""All-reduces by hocket and by gloo, in turns in the same processes: ``transport.py [RANKS]``.

It needs PyTorch, and starts itself once for each rank. Times of a call are medians until the last rank is
done, of 20 in a row below 4 MiB; CPU time is that of all ranks.
"""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.distributed as dist

import hocket as hk
from hocket.distributed.tensors import array_of

SIZES = (1 << 10, 64 << 10, 1 << 20, 64 << 20)


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(ways: dict[str, Callable[[], object]], meet: Callable[[], None], calls: int) -> None:
    """Make each call in turns; print the median of the slowest rank, and the CPU time of all."""
    rounds = 7
    took = {name: torch.zeros(rounds, dtype=torch.float64) for name in ways}
    spent = {name: torch.zeros(rounds, dtype=torch.float64) for name in ways}
    for turn in range(-2, rounds):
        for name, call in ways.items():
            meet()
            cpu, start = cpu_seconds(), time.perf_counter()
            for _ in range(calls):
                call()
            end = (time.perf_counter() - start) / calls
            used = (cpu_seconds() - cpu) / calls
            if turn >= 0:
                took[name][turn], spent[name][turn] = end, used
    for name in ways:
        dist.all_reduce(took[name], op=dist.ReduceOp.MAX)
        dist.all_reduce(spent[name])
        if dist.get_rank() == 0:
            median, cpu = took[name].median().item(), spent[name].median().item()
            print(f"| {name} | {median * 1e6:,.0f} | {cpu * 1e3:,.1f} |", flush=True)


def rank_main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    address = os.environ["BENCH_STORE"]
    comms = {
        way: hk.runtime.connect(
            address, rank=rank, size=size, serves=False, transport=way, group=way
        )
        for way in ("shared", "tcp")
    }
    network = hk.topology.fully_connected(size, bandwidth="10 GB/s", latency="10 us")
    for length in SIZES:
        if rank == 0:
            print(f"\n{length >> 10} KiB, load {os.getloadavg()[0]:.1f}", flush=True)
        tensor = torch.ones(length // 4)
        array, _ = array_of(tensor)

        shared = comms["shared"].empty(length // 4)
        shared[:] = 1
        # What a sum of registered arrays must read and write at least, each rank its share.
        copied = np.ones_like(shared)
        ring = hk.plan("all-reduce", network, size=length, algorithm="ring", chunks=1)

        def by(
            way: str, array: object = array, plan: hk.Plan | None = None
        ) -> Callable[[], object]:
            return lambda: comms[way].all_reduce(array, "sum", out=array, plan=plan)

        measure(
            {
                "gloo": lambda tensor=tensor: dist.all_reduce(tensor),
                "shared": by("shared"),
                "tcp": by("tcp"),
                "registered": by("shared", shared),
                "limit": lambda copied=copied, shared=shared: np.copyto(copied, shared),
                "plan through memory": by("shared", array, ring),
            },
            comms["shared"].barrier,
            1 if length > 1 << 22 else 20,
        )
    dist.barrier()
    os._exit(0)


def main(ranks: int) -> None:
    store = hk.runtime.serve()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(ranks),
        "BENCH_STORE": store.address,
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__, "rank"],
            env={**environment, "RANK": str(rank)},
        )
        for rank in range(ranks)
    ]
    for process in processes:
        process.wait()


if __name__ == "__main__":
    if sys.argv[1:] == ["rank"]:
        rank_main()
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
