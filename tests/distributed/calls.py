"""Calls every collective of ``torch.distributed`` on a backend, and prints what comes out."""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist


def results(rank: int, size: int) -> dict[str, object]:
    found: dict[str, object] = {}
    mine = torch.arange(6.0) + 10 * rank
    for name in ("SUM", "PRODUCT", "MIN", "MAX"):
        tensor = mine.clone()
        dist.all_reduce(tensor, op=getattr(dist.ReduceOp, name))
        found[f"all_reduce {name}"] = tensor.tolist()
    for dtype in (torch.float64, torch.float16, torch.int64, torch.int32, torch.uint8):
        tensor = torch.arange(5).to(dtype) + rank
        dist.all_reduce(tensor)
        found[f"all_reduce {dtype}"] = tensor.tolist()
    strided = torch.arange(12.0).reshape(3, 4).t()
    dist.all_reduce(strided)
    found["all_reduce strided"] = strided.tolist()
    tensor = mine.clone()
    dist.broadcast(tensor, 1)
    found["broadcast"] = tensor.tolist()
    tensor = mine.clone()
    dist.reduce(tensor, 1)
    found["reduce"] = tensor.tolist() if rank == 1 else None
    parts = [torch.empty(6) for _ in range(size)]
    dist.all_gather(parts, mine)
    found["all_gather"] = [part.tolist() for part in parts]
    own = torch.empty(2)
    dist.scatter(own, [torch.full((2,), float(i)) for i in range(size)] if rank == 0 else None)
    found["scatter"] = own.tolist()
    into = [torch.empty(6) for _ in range(size)] if rank == 0 else None
    dist.gather(mine, into)
    found["gather"] = [part.tolist() for part in into] if into is not None else None
    if rank == 0:
        dist.send(mine, 1)
    elif rank == 1:
        got = torch.empty(6)
        dist.recv(got, 0)
        found["recv"] = got.tolist()
    work = dist.all_reduce(mine, async_op=True)
    work.wait()
    found["async"] = mine.tolist()
    pair = dist.new_group([0, 1])
    if rank < 2:
        tensor = torch.ones(3) * (rank + 1)
        dist.all_reduce(tensor, group=pair)
        found["pair"] = tensor.tolist()
    found |= truths(rank, size)
    dist.monitored_barrier(timeout=timedelta(seconds=60), wait_all_ranks=rank == 0)
    sparse = (torch.eye(2) * (rank + 1)).to_sparse()
    dist.all_reduce(sparse)
    found["sparse"] = sparse.to_dense().tolist()
    # Rank 0 has equal parts, and the others have not.
    sizes = [[2] * size] + [[1 + i] + [2] * (size - 2) + [3 - i] for i in range(size - 1)]
    given = torch.arange(2.0 * sum(sizes[rank])).reshape(-1, 2) + 100 * rank
    split = torch.empty(sum(row[rank] for row in sizes), 2)
    dist.all_to_all_single(split, given, [row[rank] for row in sizes], sizes[rank])
    found["all_to_all_single with splits"] = split.tolist()
    dist.barrier()
    return found


def truths(rank: int, size: int) -> dict[str, object]:
    """Combine truth values: a sum is whether any is true."""
    found: dict[str, object] = {}
    mine = torch.tensor([rank == 1, False, True, rank > 0, rank == 0, True])
    for name in ("SUM", "PRODUCT", "MIN", "MAX"):
        op = getattr(dist.ReduceOp, name)
        tensor = mine.clone()
        dist.all_reduce(tensor, op=op)
        found[f"all_reduce bool {name}"] = tensor.tolist()
        tensor = mine.clone()
        dist.reduce(tensor, 1, op=op)
        found[f"reduce bool {name}"] = tensor.tolist() if rank == 1 else None
    return found


def more(rank: int, size: int) -> dict[str, object]:
    """What gloo of PyTorch 1.13 does not do: compared with what it must be."""
    numbers = torch.arange(2.0 * size) + rank
    own = torch.empty(2)
    base = getattr(dist, "reduce_scatter_tensor", None) or dist._reduce_scatter_base
    base(own, numbers)
    total = torch.arange(2.0 * size) * size + size * (size - 1) / 2
    whole = torch.empty(2 * size)
    gather = getattr(dist, "all_gather_into_tensor", None) or dist._all_gather_base
    gather(whole, own)
    out = torch.empty(2 * size)
    dist.all_to_all_single(out, torch.arange(2.0 * size) + 100 * rank)
    swapped = [100.0 * i + 2 * rank + j for i in range(size) for j in range(2)]
    wide = torch.tensor([1.5, -2.0], dtype=torch.bfloat16) * (rank + 1)
    dist.all_reduce(wide)
    factor = size * (size + 1) / 2
    lists = torch.empty(2)
    dist.reduce_scatter(lists, [numbers[2 * i : 2 * i + 2].clone() for i in range(size)])
    return {
        "reduce_scatter": own.tolist() == total[2 * rank : 2 * rank + 2].tolist(),
        "reduce_scatter of lists": lists.tolist() == own.tolist(),
        "all_gather": whole.tolist() == total.tolist(),
        "all_to_all": out.tolist() == swapped,
        "bfloat16": wide.tolist() == [1.5 * factor, -2 * factor],
        **uneven(rank, size),
    }


def uneven(rank: int, size: int) -> dict[str, object]:
    """Lists of tensors of different sizes, and types that gloo does not have."""
    found: dict[str, object] = {}
    gathered = [torch.empty(each) for each in range(size)]  # that of rank 0 is empty
    dist.all_gather(gathered, torch.full((rank,), rank + 0.5))
    found["all_gather uneven"] = [each.tolist() for each in gathered] == [
        [each + 0.5] * each for each in range(size)
    ]
    lists = torch.empty(rank + 1)
    dist.reduce_scatter(lists, [torch.full((each + 1,), float(rank)) for each in range(size)])
    found["reduce_scatter uneven"] = lists.tolist() == [size * (size - 1) / 2] * (rank + 1)
    any_true = torch.empty(1, dtype=torch.bool)
    dist.reduce_scatter(any_true, [torch.tensor([rank == 1 and i < 2]) for i in range(size)])
    found["reduce_scatter bool"] = any_true.tolist() == [rank < 2]
    for name in ("float8_e4m3fn", "float8_e5m2", "bfloat16", "int16", "complex64", "bool"):
        dtype = getattr(torch, name, None)
        if dtype is None:
            continue
        # Rank i sends i + j + 1 numbers to rank j: each of them 1 if j is odd.
        lens = [rank + i + 1 for i in range(size)]
        parts = [torch.full((each,), i % 2).to(dtype) for i, each in enumerate(lens)]
        right = torch.full((sum(lens),), rank % 2).to(dtype).to(torch.complex64)
        split = torch.empty(sum(lens), dtype=dtype)
        dist.all_to_all_single(split, torch.cat(parts), lens, lens)
        came = [torch.empty(each, dtype=dtype) for each in lens]
        dist.all_to_all(came, parts)
        for way, result in (("splits", split), ("lists", torch.cat(came))):
            found[f"all_to_all {way} {name}"] = bool((result.to(torch.complex64) == right).all())
    return found


def meshes(rank: int, size: int) -> dict[str, object]:
    """What DTensor and functional collectives call, where this PyTorch has them."""
    try:
        import torch.distributed._functional_collectives as functional
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
    except ImportError:
        return {}
    mesh = init_device_mesh("cpu", (size,))
    whole = torch.arange(4.0 * size * size).reshape(2 * size, 2 * size)
    parted = distribute_tensor(whole, mesh, [Shard(0)])
    turned = parted.redistribute(mesh, [Shard(1)])
    product = parted.redistribute(mesh, [Shard(1)]) @ distribute_tensor(whole, mesh, [Shard(0)])
    assert any(isinstance(place, Partial) for place in product.placements)
    group = dist.group.WORLD
    mine = torch.arange(2.0 * size) + rank
    total = torch.arange(2.0 * size) * size + size * (size - 1) / 2
    many = functional.all_gather_into_tensor_coalesced([mine, mine * 2], group)
    few = functional.reduce_scatter_tensor_coalesced([mine, mine * 2], "sum", [0, 0], group)
    all_of = torch.cat([torch.arange(2.0 * size) + each for each in range(size)])
    own = total[2 * rank : 2 * rank + 2]
    return {
        "shards": parted.to_local().tolist() == whole[2 * rank : 2 * rank + 2].tolist(),
        "full": parted.full_tensor().tolist() == whole.tolist(),
        "turned": turned.to_local().tolist() == whole[:, 2 * rank : 2 * rank + 2].tolist(),
        "product": product.redistribute(mesh, [Replicate()]).to_local().tolist()
        == (whole @ whole).tolist(),
        "sum": functional.all_reduce(mine, "sum", group).tolist() == total.tolist(),
        "gathered": [each.tolist() for each in many] == [all_of.tolist(), (all_of * 2).tolist()],
        "scattered": [each.tolist() for each in few] == [own.tolist(), (own * 2).tolist()],
    }


def main(backend: str) -> None:
    if backend == "hocket":
        import hocket.distributed  # noqa: F401
    if backend == "double":
        from tests.distributed import double

        double.install()
        backend = "cpu:hocket"
    dist.init_process_group(backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    found = results(rank, size)
    if backend == "hocket":
        found["more"] = {**more(rank, size), **meshes(rank, size)}
    print(json.dumps(found))
    sys.stdout.flush()
    dist.barrier()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
