"""Calls the backend for GPUs on the double, and prints what comes out: ``device_calls.py WAY``."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from tests.distributed import double

import hocket.distributed
from hocket.deployment import MANIFEST
from hocket.deployment.manifest import digest
from hocket.deployment.route import route
from hocket.errors import TransportError

KINDS = {
    torch.float32: "sum average",
    torch.float16: "sum average",
    torch.bfloat16: "sum average",
    torch.int32: "sum",
}


def forms() -> Any:
    """Every collective that has plans, in each form of a call, with views and lists."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for count in (size * 300, size * 333):
        mine = (torch.arange(count) % 50 + rank).float()
        total = sum((torch.arange(count) % 50 + each).float() for each in range(size))
        own = slice(count // size * rank, count // size * (rank + 1))
        whole, part = torch.zeros(count), torch.zeros(count // size)
        dist.all_gather_into_tensor(whole, total[own].clone())
        assert torch.equal(whole, total)
        whole.zero_()
        dist.all_gather(list(whole.chunk(size)), total[own].clone())
        assert torch.equal(whole, total)
        whole[own] = total[own]
        dist.all_gather_into_tensor(whole, whole[own])  # in place
        assert torch.equal(whole, total)
        dist.reduce_scatter_tensor(part, mine)
        assert torch.equal(part, total[own])
        dist.reduce_scatter(part, list(mine.clone().chunk(size)), op=dist.ReduceOp.AVG)
        assert torch.allclose(part, total[own] / size)
        within = mine.clone()
        dist.reduce_scatter_tensor(within[own], within)  # in place
        assert torch.equal(within[own], total[own])
        sent = torch.arange(count) + 1000 * rank  # 64 bits move as bytes
        got = torch.zeros_like(sent)
        dist.all_to_all_single(got, sent)
        assert torch.equal(
            got, torch.cat([(torch.arange(count) + 1000 * each)[own] for each in range(size)])
        )
        for dtype, ops in KINDS.items():
            for op in ops.split():
                tensor = mine.clone().to(dtype).reshape(-1, 2).t()  # not in one piece
                dist.all_reduce(tensor, dist.ReduceOp.AVG if op == "average" else dist.ReduceOp.SUM)
                wanted = total / size if op == "average" else total
                assert torch.allclose(tensor.t().reshape(-1).float(), wanted, rtol=1e-2)
        flags = torch.full((count * 2,), rank == 0)
        dist.broadcast(flags, 0)
        assert flags.all()
        with dist._coalescing_manager(async_ops=True) as works:
            several = [mine.clone(), mine.clone() * 2]
            for each in several:
                dist.all_reduce(each)
        works.wait()
        assert torch.equal(several[1], 2 * total)
        future = dist.all_reduce(mine, async_op=True).get_future()
        assert torch.equal(future.wait()[0], total)
    objects: list[Any] = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert [each["rank"] for each in objects] == list(range(size))
    for op in (dist.ReduceOp.MAX, dist.ReduceOp.PRODUCT):
        dist.all_reduce(torch.ones(3000), op)
    dist.all_reduce(torch.ones(3000, dtype=torch.float64))
    dist.all_reduce(torch.ones(0))
    dist.broadcast(torch.ones(3000), 1)
    return None


def steps() -> Any:
    """The order of what a call asks of the device."""
    made = double.device()
    made.steps.clear()
    dist.all_reduce(torch.ones(1000))
    return list(made.steps)


def growth() -> Any:
    """Calls of many sizes; what the engine never frees."""
    counts = torch.randint(300, 8000, (500,), generator=torch.Generator().manual_seed(1))
    for count in counts.tolist():
        tensor = torch.full((count + 3,), float(dist.get_rank()))[3:]
        dist.all_reduce(tensor)
        assert tensor[-1] == 6
    made = double.device().executors[0]
    return [len(made.contexts), len(made.device_plans), len(double.device().buffers)]


def meshes() -> Any:
    """Groups of a mesh: mixed calls, and no packets."""
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    rank = dist.get_rank()
    for turn in range(10):
        for name, wanted in (("dp", 2 * (rank % 2) + 2), ("tp", 4 * (rank // 2) + 1)):
            tensor = torch.full((700 + turn,), float(rank))
            dist.all_reduce(tensor, group=mesh[name].get_group())
            assert tensor[5] == wanted
        whole = torch.full((700,), float(rank))
        dist.all_reduce(whole)
        assert whole[5] == 6
    groups = [hocket.distributed.deployed(mesh[name].get_group()) for name in ("dp", "tp")]
    return [[each.packets, sum(each.taken.values())] for each in groups]


def captured() -> Any:
    """A captured call that was prepared, replayed with new data; and one that was not."""
    made = double.device()
    tensor = torch.zeros(1000)
    dist.all_reduce(tensor)
    made.capturing = True
    group = hocket.distributed.deployed()
    found = route("all-reduce", "sum", "float32", 40_000, 0, group, captured=True)
    work = dist.all_reduce(tensor, async_op=True)
    made.capturing = False
    for turn in range(20):
        tensor.fill_(dist.get_rank() + turn)
        made.replay()
        assert tensor[7] == 6 + 4 * turn
    return [getattr(found, "reason", None), work is not None]


def asked() -> Any:
    """What PyTorch asks a backend: whether it supports this and that."""
    backend: Any = dist.group.WORLD._get_backend(torch.device("cpu"))  # type: ignore[union-attr]
    names = [name for name in dir(backend) if name.lstrip("_").startswith("supports_")]
    return [
        name for name in names if not callable(getattr(backend, name)) and getattr(backend, name)
    ]


def together() -> Any:
    """All of these, one after the other."""
    return {each.__name__: each() for each in (steps, growth, captured, forms, meshes, asked)}


def interpreted() -> Any:
    """By hocket's interpreter, whose device plans are none of the double's."""
    return {each.__name__: each() for each in (steps, captured, forms, meshes)}


def starts() -> Any:
    """Groups of which rank 1 fails at a step of the start; what they sum, and why not by plans."""
    found = {}
    for step in ("facts", "join", "prepare", "numbers"):
        os.environ["HOCKET_DOUBLE"] = f"{step}:1"
        group = dist.new_group()
        tensor = torch.full((1000,), float(dist.get_rank()))
        dist.all_reduce(tensor, group=group)
        found[step] = [tensor[9].item(), hocket.distributed.deployed(group).reason]
    os.environ["HOCKET_DOUBLE"] = "fallback:1"
    try:
        dist.new_group()
    except TransportError as error:
        found["fallback"] = [6, str(error)]
    return found


def folders() -> Any:
    """Groups of which rank 1 has another folder, or none; what they sum, and why not by plans."""
    found, own = {}, os.environ["HOCKET_DEPLOY"]
    for fault in ("manifest", "program", "version", "estimates", "stage", "none", "same"):
        with tempfile.TemporaryDirectory() as at:
            if dist.get_rank() == 1:
                _spoil(fault, Path(shutil.copytree(own, Path(at) / "deploy")))
            group = dist.new_group()
            tensor = torch.full((1000,), float(dist.get_rank()))
            dist.all_reduce(tensor, group=group)
            found[fault] = [tensor[9].item(), hocket.distributed.deployed(group).reason]
        os.environ.update(HOCKET_DEPLOY=own, HOCKET_STAGE="64K")
    return found


def _spoil(fault: str, folder: Path) -> None:
    """Name a folder, or a stage, in which something is wrong."""
    os.environ["HOCKET_DEPLOY"] = "" if fault == "none" else str(folder)
    if fault == "stage":
        os.environ["HOCKET_STAGE"] = "5GiB"
    manifest = folder / MANIFEST
    changed = manifest
    if fault == "program":
        changed = next(each for each in sorted(folder.glob("*.json")) if each != manifest)
    if fault in ("manifest", "program"):
        text = bytearray(changed.read_bytes())
        text[len(text) // 2] ^= 1
        changed.write_bytes(text)
    if fault in ("version", "estimates"):
        values = json.loads(manifest.read_text())
        values.update({"version": 2} if fault == "version" else {})
        values["estimates"]["launch_ps"] += fault == "estimates"
        manifest.write_text(json.dumps({**values, "sha256": digest(values)}))


def left_out() -> Any:
    """Rank 1 leaves out a call, with a limit that is short once the group has started.

    The interpreter has one of its own.
    """
    backend: Any = dist.group.WORLD._get_backend(torch.device("cpu"))  # type: ignore[union-attr]
    if not double.device().is_own:
        backend._watchdog._seconds = 3.0
    dist.all_reduce(torch.ones(1000))
    began = time.monotonic()
    if dist.get_rank() != 1:
        dist.all_reduce(torch.ones(2000))
    time.sleep(100)
    return began


def unlaunched() -> Any:
    """Rank 1 fails to launch what the others launch."""
    dist.all_reduce(torch.ones(1000))
    os.environ["HOCKET_DOUBLE"] = "launch:1"
    try:
        dist.all_reduce(torch.ones(2000))
    finally:
        time.sleep(100)


def compared() -> Any:
    """Ranks make different calls."""
    dist.all_reduce(torch.ones(1000))
    try:
        dist.all_reduce(torch.ones(1000 + 500 * (dist.get_rank() == 1)))
    except TransportError as error:
        return str(error)
    return "nothing"


def main(way: str) -> None:
    double.install()
    torch.set_num_threads(1)
    limit = timedelta(seconds=float(os.environ.get("LIMIT", "60")))
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    # Ranks meet without the limit: on a busy machine they come late.
    at = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = dist.TCPStore(*at, size, rank == 0)
    dist.init_process_group("cpu:hocket", store=store, rank=rank, world_size=size, timeout=limit)
    calls: dict[str, Callable[[], Any]] = {
        each.__name__: each
        for each in (together, interpreted, starts, folders, left_out, unlaunched, compared)
    }
    found = calls[way]()
    deployed = hocket.distributed.deployed()
    print(json.dumps({"found": found, "reason": deployed.reason, "taken": dict(deployed.taken)}))
    sys.stdout.flush()
    if way != "compared":
        dist.barrier()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
