"""A communication hook of DistributedDataParallel: hocket averages gradients, whatever the backend."""

# PyTorch compares the annotations of a hook with its own classes: they may not become text.
from datetime import timedelta
from itertools import count
from typing import Any

import torch
import torch.distributed as dist

from hocket.distributed.backend import HocketProcessGroup, join
from hocket.distributed.future import FailingFuture
from hocket.distributed.tensors import array_of
from hocket.errors import SpecError
from hocket.runtime import Communicator

_made = count()
"""All ranks make their hooks in the same order, and so meet under the same name."""
_NARROW = (torch.bfloat16, torch.float16)


class Gradients:
    """The averaging of gradients: the state of :func:`average_hook`.

    Parameters
    ----------
    group
        Among whom; by default all. If it is not a group of hocket, its ranks meet once more, through
        PyTorch's store, and all other calls stay with its backend.
    dtype
        ``torch.bfloat16`` or ``torch.float16`` to send gradients in half as many bytes; sums are rounded
        as docs/runtime.md says. By default they travel as they are.
    timeout
        How long a call may stand still, where ranks meet once more.

    Raises
    ------
    SpecError
        For another type.
    TransportError
        If not all ranks come.
    """

    def __init__(
        self,
        group: Any = None,
        *,
        dtype: torch.dtype | None = None,
        timeout: timedelta = timedelta(minutes=30),
    ) -> None:
        if dtype is not None and dtype not in _NARROW:
            raise SpecError("dtype", f"{dtype} is not narrower", "torch.bfloat16 or torch.float16")
        self._dtype = dtype
        self._served: Any = None
        used = dist.group.WORLD if group is None else group
        if isinstance(used, HocketProcessGroup):
            self._comm = used.communicator
            return
        ranks = [dist.get_global_rank(used, rank) for rank in range(dist.get_world_size(group))]
        name = f"hocket gradients {next(_made)} of " + ",".join(map(str, ranks))
        store = dist.PrefixStore(name, dist.distributed_c10d._get_default_store())
        rank = dist.get_rank(group)
        self._comm, self._served = join(store, rank, len(ranks), timeout)

    @property
    def communicator(self) -> Communicator:
        """The group of a call."""
        return self._comm

    def average(self, tensor: torch.Tensor) -> "torch.futures.Future[torch.Tensor]":
        """Average a tensor among all ranks, in place; the future holds it."""
        promise = FailingFuture(tensor)

        def call() -> None:
            failed: BaseException | None = None
            try:
                sent = tensor if self._dtype is None else tensor.to(self._dtype)
                array, dtype = array_of(sent)
                self._comm.all_reduce(array, "average", out=array, dtype=dtype)
                if sent is not tensor:
                    tensor.copy_(sent)
            except BaseException as error:
                failed = error
            promise.settle(failed)

        self._comm.start_work(call)
        future: torch.futures.Future[torch.Tensor] = promise.future
        return future


def average_hook(state: Gradients, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Average a bucket of gradients by hocket.

    >>> model.register_comm_hook(hocket.distributed.Gradients(), hocket.distributed.average_hook)
    """
    return state.average(bucket.buffer())
