"""How the backend is made known to PyTorch, and which class PyTorch gets for which devices."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from hocket.distributed.backend import NAME, HocketProcessGroup
from hocket.errors import InfeasibleError, SpecError


def device() -> Any:
    """Return this process's GPU; None if there is none, or PyTorch has no backends in Python yet."""
    if not torch.cuda.is_available() or not hasattr(dist.Backend, "_ensure_backend_registered"):
        return None
    from hocket.distributed import cuda

    return cuda.device()


def create(opts: Any, options: Any) -> Any:
    """Make the backend of a group, as PyTorch asks.

    Raises
    ------
    InfeasibleError
        If it is asked for on GPUs alone, and there is none.
    """
    rank, size, timeout = opts.group_rank, opts.group_size, opts.timeout
    gpu = device()
    alone = _is_for("cuda", opts)
    if gpu is None:
        if alone:
            raise InfeasibleError(f"cuda:{NAME}", "there is no GPU of CUDA here", "give hocket")
        return HocketProcessGroup(opts.store, rank, size, timeout)
    from hocket.distributed.device import HocketBackend

    cpu = None
    if not alone and gpu.kind.type != "cpu":
        cpu = HocketProcessGroup(dist.PrefixStore("on CPUs", opts.store), rank, size, timeout)
    return HocketBackend(opts, options, gpu, cpu)


def _is_for(device: str, opts: Any) -> bool:
    """Return whether a backend is made for a device alone: PyTorch says so in the names of its keys."""
    key = f"hocket: device of rank {opts.group_rank}"
    opts.store.set(key, "")
    return bool(opts.store.underlying_store.check([f"{device}/{key}"]))


def deployed(group: Any = None) -> Any:
    """Return how the calls of a group take plans.

    Parameters
    ----------
    group
        A group of PyTorch; by default all ranks.

    Returns
    -------
    DeployedCalls, HocketBackend or PlannedGroup
        What has ``taken``: how many calls took which plan, by its id, and how many took none, by the
        reason. If the group has no plans, what has the ``reason``.

    Raises
    ------
    SpecError
        If the group has no backend of hocket.
    """
    used: Any = dist.group.WORLD if group is None else group
    backends = [used, *(used._get_backend(each) for each in used._device_types)]
    found = next((each for each in backends if hasattr(each, "deployed")), None)
    if found is None:
        raise SpecError("group", "has no backend of hocket", 'init_process_group("hocket")')
    return found.deployed


def register() -> None:
    """Make the backend known to PyTorch, once."""
    if NAME.upper() not in dir(dist.Backend):
        dist.Backend.register_backend(NAME, create, extended_api=True, devices=["cpu", "cuda"])
