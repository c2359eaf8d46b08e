"""What a GPU of CUDA does for :mod:`hocket.distributed.device`. None of it was run on a GPU yet.

References
----------
microsoft/mscclpp 0.9.0 (MIT), python/csrc/core_py.cpp, executor_py.cpp and gpu_utils_py.cpp: names and
arguments of the bindings. The extension is loaded alone: its package needs CuPy.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
import torch.distributed as dist

from hocket.deployment.manifest import RUNTIME, Deployment
from hocket.deployment.on_mscclpp import MscclppEngine
from hocket.deployment.route import PlannedGroup
from hocket.distributed.device import made_by_pytorch
from hocket.errors import InfeasibleError

_VERSION = RUNTIME["version"]


class _Memory:
    """Memory of MSCCL++, as PyTorch asks for it."""

    def __init__(self, buffer: Any, size: int) -> None:
        self.buffer = buffer
        self.__cuda_array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "shape": (size,),
            "data": (buffer.data(), False),
        }


class _Event:
    def __init__(self, stream: Any) -> None:
        self._event = torch.cuda.Event()
        self._event.record(stream)

    def done(self) -> bool:
        return bool(self._event.query())

    def wait(self) -> None:
        self._event.wait()


class Cuda:
    """The GPU of a process, its stream, and MSCCL++'s executor.

    Attributes
    ----------
    kind
        The GPU.
    """

    def __init__(self) -> None:
        self.kind = torch.device("cuda", torch.cuda.current_device())
        self._stream: Any = torch.cuda.Stream(self.kind)
        self._kept: list[Any] = []

    def facts(self) -> dict[str, Any]:
        """Load the engine, and return what is known of the GPU."""
        bindings()
        found: Any = torch.cuda.get_device_properties(self.kind)
        return {
            "device": str(found.uuid),
            "engine": f"mscclpp {_VERSION}",
            "processors": found.multi_processor_count,
            "capability": f"{found.major}.{found.minor}",
            "bus": f"{found.pci_domain_id:04x}:{found.pci_bus_id:02x}:{found.pci_device_id:02x}.0",
            "multicast": bool(bindings().is_nvls_supported()),
        }

    def fallback(self, opts: Any, options: Any, ctas: int | None) -> Any:
        """Make NCCL's backend as PyTorch does."""
        made = options or dist.ProcessGroupNCCL.Options()
        if ctas is not None:
            made.config.max_ctas = ctas
        return made_by_pytorch("nccl", opts, made)

    def join(
        self,
        group: PlannedGroup,
        deployment: Deployment,
        rank: int,
        store: Any,
        timeout: timedelta,
    ) -> tuple[MscclppEngine, torch.Tensor, torch.Tensor]:
        """Make a communicator of MSCCL++, whose ranks meet through PyTorch's store, and memory of it."""
        core, key = bindings(), "hocket: mscclpp"
        bootstrap = core.CppTcpBootstrap.create(rank, group.ranks)
        if rank == 0:
            store.set(key, bootstrap.create_unique_id().__getstate__())
        unique = core.CppUniqueId()
        unique.__setstate__(store.get(key))
        bootstrap.initialize(unique, int(timeout.total_seconds()))
        executor = core.CppExecutor(core.CppCommunicator(bootstrap))
        engine = MscclppEngine(
            core,
            executor,
            deployment.folder,
            rank=rank,
            ranks=group.ranks,
            stream=self._stream.cuda_stream,
            address=lambda buffer: int(buffer.data_ptr()),
            scale=lambda buffer, dtype, factor: buffer.view(getattr(torch, dtype)).mul_(factor),
        )
        return engine, self._memory(group.stage), self._memory(group.stage)

    def _memory(self, size: int) -> torch.Tensor:
        buffer = bindings().CppRawGpuBuffer(size)
        self._kept.append(buffer)
        return torch.as_tensor(_Memory(buffer, size), device=self.kind).zero_()

    def is_captured(self) -> bool:
        """Return whether a CUDA graph captures the current stream."""
        return bool(torch.cuda.is_current_stream_capturing())

    def follow(self) -> None:
        """Let the stream wait for the current stream."""
        self._stream.wait_stream(torch.cuda.current_stream(self.kind))

    def enqueue(self, work: Callable[[], None]) -> None:
        """Do work with the stream as the current one."""
        with torch.cuda.stream(self._stream):
            work()

    def record(self) -> _Event:
        """Record an event."""
        return _Event(self._stream)

    def future(self, value: Any) -> Any:
        """Return a future that is done with the stream's work."""
        made: Any = torch.futures.Future(devices=[self.kind])
        with torch.cuda.stream(self._stream):
            made.set_result(value)
        return made

    def keep(self, tensor: torch.Tensor) -> None:
        """Tell the allocator that the stream uses a tensor."""
        tensor.record_stream(self._stream)

    def relax(self) -> None:
        """Let this thread query events while another captures."""
        # The library that PyTorch has loaded; 2 is cudaStreamCaptureModeRelaxed.
        runtime = ctypes.CDLL(f"libcudart.so.{str(torch.version.cuda).partition('.')[0]}")
        runtime.cudaThreadExchangeStreamCaptureMode(ctypes.byref(ctypes.c_int(2)))


@cache
def device() -> Cuda:
    """Return this process's GPU."""
    return Cuda()


@cache
def bindings() -> Any:
    """Load MSCCL++'s extension.

    Raises
    ------
    InfeasibleError
        If it is missing or of another version.
    """
    try:
        found = version("mscclpp")
    except PackageNotFoundError:
        raise InfeasibleError("mscclpp", "is not installed") from None
    if found != _VERSION:
        raise InfeasibleError("mscclpp", f"is {found}, and hocket drives {_VERSION}")
    package = importlib.util.find_spec("mscclpp")  # finds the package without importing it
    places = list(package.submodule_search_locations or []) if package else []
    spec = importlib.machinery.PathFinder.find_spec("_mscclpp", places)
    if spec is None or spec.loader is None:
        raise InfeasibleError("mscclpp", "has no extension _mscclpp")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
