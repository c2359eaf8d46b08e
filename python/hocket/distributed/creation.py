"""How the backend is made known to PyTorch, and which class PyTorch gets for which devices."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from hocket.deployment.route import PlannedGroup
from hocket.distributed.backend import NAME, HocketProcessGroup
from hocket.errors import InfeasibleError, SpecError

_bound: list[int] = []
"""The GPU that the job gave last as ``device_id``, if it gave one."""


def device(opts: Any) -> Any:
    """Return this process's GPU; None if there is none, or PyTorch has no backends in Python yet.

    It is the one that the job gave last as ``device_id``, and else the current one.
    """
    if not torch.cuda.is_available() or not hasattr(dist.Backend, "_ensure_backend_registered"):
        return None
    from hocket.distributed import cuda

    group = opts.process_group
    bound = getattr(group, "bound_device_id", None)
    if bound is not None:
        _bound[:] = [bound.index]
        # PyTorch splits groups that have one, which only backends of its own can.
        group.bound_device_id = None
    return cuda.device(_bound[0] if _bound else torch.cuda.current_device())


def create(opts: Any, options: Any) -> Any:
    """Make the backend of a group, as PyTorch asks.

    Raises
    ------
    InfeasibleError
        If it is asked for on GPUs alone, and there is none, or PyTorch is too old for it.
    """
    rank, size, timeout = opts.group_rank, opts.group_size, opts.timeout
    gpu = device(opts)
    alone = _is_for("cuda", opts)
    if gpu is None:
        if alone:
            why = "there is no GPU of CUDA here"
            if torch.cuda.is_available():
                why = f"PyTorch {torch.__version__} has no backends in Python, 2.15 has"
            raise InfeasibleError(f"cuda:{NAME}", why, f'give "{NAME}", for tensors on CPUs')
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
    return bool(opts.store.underlying_store.check([f"{device}//{key}"]))


def deployed(group: Any = None) -> PlannedGroup:
    """Return what is planned for a group, and which calls took plans.

    Parameters
    ----------
    group
        A group of PyTorch; by default all ranks.

    Returns
    -------
    PlannedGroup
        Its ``taken`` counts how many calls took which plan, by its id, and how many took none, by the
        reason. If the group has no plans, its ``reason`` says why.

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
    planned: PlannedGroup = found.deployed
    return planned


def register() -> None:
    """Make the backend known to PyTorch, once."""
    if NAME.upper() not in dir(dist.Backend):
        dist.Backend.register_backend(NAME, create, extended_api=True, devices=["cpu", "cuda"])
