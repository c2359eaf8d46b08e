"""Trains by the plans of a deployed folder on CPUs and prints what ran: ``train_deployed.py BACKEND WAY``.

The ranks form a mesh of 2 x 2. WAY is ``ddp``, ``fsdp2``, or ``tp``: tensor parallel along one axis, FSDP2
along the other.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh


def taken(group: Any) -> dict[str, int]:
    """Return how many calls of a group took which plan."""
    if "hocket.distributed" not in sys.modules:
        return {}
    return dict(sys.modules["hocket.distributed"].deployed(group).taken)


def spread(net: Any, way: str, mesh: Any) -> Any:
    """Make a net one that trains on all ranks."""
    if way == "ddp":
        return torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.01)
    from torch.distributed.fsdp import fully_shard

    if way == "fsdp2":
        return fully_shard(net, mesh=init_device_mesh("cpu", (4,)))
    from torch.distributed.tensor import parallel

    plan = {"0": parallel.ColwiseParallel(), "2": parallel.RowwiseParallel()}
    parallel.parallelize_module(net, mesh["tp"], plan)
    return fully_shard(net, mesh=mesh["dp"])


def main(backend: str, way: str) -> None:
    if backend == "hocket":
        import hocket.distributed  # noqa: F401
    if backend == "double":
        from tests.distributed import double

        double.install()
        backend = "cpu:hocket"
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group(backend)
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
    net = spread(net, way, mesh)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    # Ranks of a tensor-parallel group share a batch.
    data = torch.Generator().manual_seed(rank if way != "tp" else mesh["dp"].get_local_rank())
    losses = []
    for _ in range(5):
        loss = net(torch.randn(16, 64, generator=data)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    shared = torch.arange(4096.0) + rank
    dist.all_reduce(shared, group=mesh["tp"].get_group())
    counted = torch.arange(1024) + rank
    dist.all_reduce(counted)
    told = {
        "losses": losses,
        "sums": [shared[7].item(), counted[7].item()],
        "world": taken(dist.group.WORLD),
        "dp": taken(mesh["dp"].get_group()),
        "tp": taken(mesh["tp"].get_group()),
    }
    print(json.dumps(told))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
