"""Makes calls that fail, each in a way in which PyTorch waits for calls, and prints what each raises."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

import hocket.distributed  # noqa: F401


def raised(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def strange() -> dict[str, str]:
    """Calls that a rank refuses alone; the group goes on."""
    return {
        "overlapping": raised(lambda: dist.all_reduce(torch.ones(1).expand(3))),
        "sparse": raised(lambda: dist.broadcast(torch.eye(2).to_sparse(), 0)),
        "short list": raised(lambda: dist.all_gather([torch.ones(2)], torch.ones(2))),
        "sizes": raised(lambda: dist.all_gather([torch.ones(3)] * 2, torch.ones(2))),
        "unequal": raised(lambda: scattered(torch.ones(1), torch.ones(2))),
        "splits": raised(
            lambda: dist.all_to_all_single(torch.ones(4), torch.ones(5), [2, 2], [2, 2])
        ),
        "elsewhere": raised(lambda: dist.all_reduce(torch.ones(2, device="meta"))),
        "root": raised(lambda: dist.broadcast(torch.ones(1), 7)),
    }


def scattered(*parts: torch.Tensor) -> None:
    """Scatter by rank 0, the only one that knows the parts."""
    if dist.get_rank() == 0:
        dist.scatter(torch.ones(1), list(parts))
    else:
        raise ValueError("left out")


def later() -> dict[str, str]:
    """Calls of a group that has failed."""
    group = dist.group.WORLD
    assert group is not None
    start = lambda: dist.all_reduce(torch.ones(2), async_op=True)  # noqa: E731
    return {
        "call": raised(lambda: dist.all_reduce(torch.ones(2))),
        "work": raised(lambda: start().wait()),
        "future": raised(lambda: start().get_future().wait()),
        "then": raised(lambda: start().get_future().then(lambda f: f.value()).wait()),
        "functional": raised(lambda: functional.all_reduce(torch.ones(2), "sum", group).sum()),
        "barrier": raised(dist.barrier),
    }


def main(what: str) -> None:
    dist.init_process_group("hocket", timeout=timedelta(seconds=20))
    rank = dist.get_rank()
    found: dict[str, str] = {}
    if what == "mismatch":
        found = strange()
        total = torch.ones(2)
        dist.all_reduce(total)
        found["sum"] = str(total.tolist())
        found["mismatch"] = raised(lambda: dist.all_reduce(torch.ones(2 + rank)))
        found |= later()
    else:
        net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
        step = lambda: net(torch.ones(2, 4)).sum().backward()  # noqa: E731
        found["step"] = raised(step)
        if rank == 1:
            print(json.dumps(found), flush=True)
            os._exit(0)
        found["step of those that are left"] = raised(step)
    print(json.dumps(found), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
