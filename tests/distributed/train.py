"""Trains a small convolutional net by DDP and prints the losses: ``train.py BACKEND STEPS TYPE``."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main(backend: str, steps: int, dtype: str) -> None:
    if backend == "hocket":
        import hocket.distributed  # noqa: F401
    torch.set_num_threads(1)
    torch.set_default_dtype(getattr(torch, dtype))
    dist.init_process_group(backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)  # DDP gives all the weights of rank 0
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3),
        torch.nn.BatchNorm2d(16),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(32 * 10 * 10, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 10),
    )
    model = DistributedDataParallel(net, bucket_cap_mb=0.25)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    data = torch.Generator().manual_seed(100 + rank)
    losses = []
    started = time.perf_counter()
    for _ in range(steps):
        images = torch.randn(8, 1, 14, 14, generator=data)
        labels = (images.mean(dim=(1, 2, 3)) * 70 + 5).clamp(0, 9).long()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / size)
    took = (time.perf_counter() - started) / steps
    weights = b"".join(
        bytes(parameter.detach().reshape(-1).view(torch.uint8).tolist())
        for parameter in net.parameters()
    )
    digest = torch.tensor(list(hashlib.sha256(weights).digest()))
    digests = [torch.empty_like(digest) for _ in range(size)]
    dist.all_gather(digests, digest)
    if rank == 0:
        print(
            json.dumps(
                {"losses": losses, "seconds": took, "equal": all(map(digest.equal, digests))}
            )
        )
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
