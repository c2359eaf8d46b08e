"""Trains a small net and prints the losses: ``train.py BACKEND STEPS TYPE [NET] [WAY]``.

NET is ``convolutions`` or ``transformer``; WAY is ``ddp``, ``hook`` (DDP whose gradients hocket averages,
whatever the backend), ``narrow`` (the same in bfloat16) or ``fsdp2``.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

Batch = tuple[torch.Tensor, torch.Tensor]


def convolutions() -> torch.nn.Module:
    return torch.nn.Sequential(
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


def images(data: torch.Generator) -> Batch:
    pixels = torch.randn(8, 1, 14, 14, generator=data)
    return pixels, (pixels.mean(dim=(1, 2, 3)) * 70 + 5).clamp(0, 9).long()


WORDS, LENGTH, WIDTH = 32, 16, 48


class Transformer(torch.nn.Module):
    """Predicts the next of some words, each of which follows from the two before it."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.places = torch.nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.1)
        layer = [
            torch.nn.TransformerEncoderLayer(WIDTH, 4, 96, dropout=0.0, batch_first=True)
            for _ in range(2)
        ]
        self.layers = torch.nn.ModuleList(layer)
        self.last = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        mask = torch.full((LENGTH, LENGTH), float("-inf")).triu(1)
        found = self.words(words) + self.places
        for layer in self.layers:
            found = layer(found, src_mask=mask)
        return self.last(found)


def sentences(data: torch.Generator) -> Batch:
    words = torch.randint(WORDS, (4, LENGTH + 1), generator=data)
    for place in range(2, LENGTH + 1):
        words[:, place] = (words[:, place - 1] * 3 + words[:, place - 2]) % WORDS
    return words[:, :-1], words[:, 1:].reshape(-1)


NETS: dict[str, tuple[Callable[[], torch.nn.Module], Callable[[torch.Generator], Batch]]] = {
    "convolutions": (convolutions, images),
    "transformer": (Transformer, sentences),
}


def spread(net: torch.nn.Module, way: str) -> torch.nn.Module:
    """Make the net one that trains on all ranks."""
    if way == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for layer in net.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(net, mesh=mesh)
        return net
    model = DistributedDataParallel(net, bucket_cap_mb=0.25)
    if way in ("hook", "narrow"):
        import hocket.distributed as hocket

        narrow = torch.bfloat16 if way == "narrow" else None
        model.register_comm_hook(hocket.Gradients(dtype=narrow), hocket.average_hook)
    return model


def weights(net: torch.nn.Module, way: str) -> bytes:
    found = b""
    for parameter in net.parameters():
        whole = parameter.full_tensor() if way == "fsdp2" else parameter
        found += bytes(whole.detach().reshape(-1).view(torch.uint8).tolist())
    return found


def counted() -> dict[str, int]:
    """Count the calls that hocket makes from now on, by kind."""
    from hocket.runtime import Communicator

    calls: dict[str, int] = {}
    make = Communicator._do

    def count(self: Communicator, kind: str, *more: object) -> None:
        calls[kind] = calls.get(kind, 0) + 1
        make(self, kind, *more)

    Communicator._do = count
    return calls


def main(backend: str, steps: int, dtype: str, which: str, way: str) -> None:
    calls: dict[str, int] = {}
    if backend == "hocket" or way in ("hook", "narrow"):
        import hocket.distributed  # noqa: F401

        calls = counted()
    torch.set_num_threads(1)
    torch.set_default_dtype(getattr(torch, dtype))
    dist.init_process_group(backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    # DDP gives all the weights of rank 0; shards must be of the same.
    torch.manual_seed(0 if way == "fsdp2" else rank)
    make, batch = NETS[which]
    net = make()
    model = spread(net, way)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    data = torch.Generator().manual_seed(100 + rank)
    losses = []
    started = time.perf_counter()
    for _ in range(steps):
        given, labels = batch(data)
        loss = torch.nn.functional.cross_entropy(model(given).flatten(0, -2), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / size)
    took = (time.perf_counter() - started) / steps
    digest = torch.tensor(list(hashlib.sha256(weights(net, way)).digest()))
    digests = [torch.empty_like(digest) for _ in range(size)]
    dist.all_gather(digests, digest)
    if rank == 0:
        print(
            json.dumps(
                {
                    "losses": losses,
                    "seconds": took,
                    "equal": all(map(digest.equal, digests)),
                    "calls": calls,
                }
            )
        )
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    words = [*sys.argv[1:], *("convolutions", "ddp")[len(sys.argv) - 4 :]]
    main(words[0], int(words[1]), words[2], words[3], words[4])
