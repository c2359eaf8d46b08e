"""What CUDA does for :class:`hocket.deployment.own.OwnEngine`. On a GPU only its start has run.

References
----------
PyTorch 2.15, ``torch/cuda/_utils.py`` (arguments of kernels) and ``torch/distributed/_symmetric_memory``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from hocket.deployment.own import KERNEL, THREADS, Symmetric, Words, source


class OwnGpu:
    """The GPU of a rank: memory that all ranks reach, and launches of hocket's interpreter.

    Parameters
    ----------
    group
        Name of the group whose ranks share memory, as PyTorch's symmetric memory knows it.
    stream
        On which it launches.
    """

    def __init__(self, group: str, stream: Any) -> None:
        self._group, self._stream = group, stream
        self._device = stream.device
        with torch.cuda.device(self._device):
            self._kernel: Any = torch.cuda._compile_kernel(source(), KERNEL)
        self.report: Any = torch.zeros(4, dtype=torch.int64, pin_memory=True)

    def symmetric(self, size: int) -> Symmetric:
        """Allocate so many bytes at all ranks, which come here together. None launches before all have."""
        import torch.distributed._symmetric_memory as symmetric

        memory: Any = symmetric.empty(size, dtype=torch.uint8, device=self._device)
        memory.zero_()
        handle: Any = symmetric.rendezvous(memory, self._group)
        torch.cuda.synchronize(self._device)
        begin = memory.data_ptr() - handle.buffer_ptrs[handle.rank]
        multicast = int(handle.multicast_ptr or 0)
        addresses = [each + begin for each in handle.buffer_ptrs]
        return Symmetric(memory, addresses, multicast and multicast + begin)

    def upload(self, words: Words) -> Any:
        """Copy words to the GPU."""
        return torch.from_numpy(words.view(np.int64)).to(self._device)

    def address(self, of: Any) -> int:
        """Return where a tensor begins."""
        return int(of.data_ptr())

    def launch(self, call: Any, blocks: int, vectors: int, dtype: int) -> None:
        """Launch the interpreter in the order of the stream."""
        self._kernel((blocks, 1, 1), (THREADS, 1, 1), [call, vectors, dtype], stream=self._stream)
