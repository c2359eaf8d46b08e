"""All-reduce by gloo over the links of a testbed, beside plans of hocket on the same links.

It needs root, and a Python with PyTorch and gloo: ``HOCKET_TORCH_PYTHON``. Ranks of gloo are processes,
each in the namespace of its NPU, that reach each other by shortest paths over the shaped links.

    python testbed/gloo.py mesh:3x3@1GB/s,1us "16 MB" ring greedy trees
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import deque
from statistics import median

import hocket as hk
import hocket_testbed
from hocket.units import parse_size
from hocket_testbed.namespaces import batch
from hocket_testbed.plan_runs import plans_for

RANK = """
import sys, time
import torch
import torch.distributed as dist
rank, size, count, meeting, calls = (
    int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
)
dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=size)
torch.set_num_threads(1)
times = []
for call in range(calls + 1):
    data = torch.full((count,), float(rank + 1))
    dist.barrier()
    begun = time.perf_counter()
    dist.all_reduce(data)
    spent = torch.tensor([time.perf_counter() - begun])
    assert (data == size * (size + 1) / 2).all()
    dist.all_reduce(spent, op=dist.ReduceOp.MAX)
    times.append(spent.item())
if rank == 0:
    print(*times[1:], flush=True)
"""


def lead_everywhere(spec: hocket_testbed.NetworkSpec) -> None:
    """Lead packets to each NPU's address of the meeting place over the links, by fewest links."""
    topology = spec.topology
    into: dict[int, list[int]] = {}
    for link, dst in enumerate(topology.link_dst.tolist()):
        into.setdefault(dst, []).append(link)
    for npu in range(topology.npu_count):
        to = spec.meeting(npu).other.address
        seen, queue = {npu}, deque([npu])
        while queue:
            device = queue.popleft()
            for link in into.get(device, ()):
                src = int(topology.link_src[link])
                if src in seen:
                    continue
                seen.add(src)
                queue.append(src)
                near, far = spec.ends(link)
                route = f"route add {to}/32 via {far.address} dev {near.interface} congctl cubic"
                if src < topology.npu_count:
                    route += f" src {spec.meeting(src).other.address}"
                batch([route], near.namespace)


def gloo(spec: hocket_testbed.NetworkSpec, size: int, calls: int = 5) -> list[float]:
    """Return the times of calls [s]."""
    python = os.environ.get("HOCKET_TORCH_PYTHON", "/usr/bin/python3")
    lead_everywhere(spec)
    npus = spec.topology.npu_count
    with tempfile.TemporaryDirectory() as folder:
        ranks = []
        for npu in range(npus):
            name = spec.namespace(f"npu{npu}")
            told = [str(npu), str(npus), str(size // 4), f"{folder}/meeting", str(calls)]
            ranks.append(
                subprocess.Popen(
                    ["ip", "netns", "exec", name, "chrt", "-f", "40", python, "-c", RANK, *told],
                    env={**os.environ, "GLOO_SOCKET_IFNAME": "meet", "OMP_NUM_THREADS": "1"},
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
        said = [rank.communicate(timeout=300)[0] for rank in ranks]
    return [float(each) for each in said[0].split()]


def main() -> None:
    """Run both, and print a row each."""
    network, size, *algorithms = sys.argv[1:]
    spec = hocket_testbed.NetworkSpec(topology=hk.topology.load(network), prefix="gloo")
    plans = plans_for(spec, algorithms, size=size)
    with hocket_testbed.build_network(spec):
        study = hocket_testbed.run_plans(spec, plans)
        times = gloo(spec, parse_size(size, field="size"))
    for run in study.runs:
        took = f"{1e3 * run.time:.1f} ms, simulated {1e3 * run.predicted:.1f} ms"
        print(
            f"{run.plan.algorithm}: {took}, gloo takes {median(times) / run.time:.2f} times as long"
        )
    print(f"gloo: {1e3 * median(times):.1f} ms ({1e3 * min(times):.1f} to {1e3 * max(times):.1f})")


if __name__ == "__main__":
    main()
