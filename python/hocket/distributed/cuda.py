"""What a GPU of CUDA does for :mod:`hocket.distributed.device`.

Plans are run by MSCCL++'s executor where it is installed, and else by hocket's own interpreter.

References
----------
microsoft/mscclpp 0.9.0 (MIT), python/csrc/core_py.cpp, executor_py.cpp and gpu_utils_py.cpp: names and
arguments of the bindings. The extension is loaded alone: its package needs CuPy.
PyTorch 2.15, ``torch/distributed/_symmetric_memory``: how ranks that meet in a store share memory.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import itertools
import os
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
import torch.distributed as dist
from torch._C._autograd import DeviceType
from torch._C._distributed_c10d import _register_process_group, _SymmetricMemory

from hocket import _core
from hocket.deployment.manifest import MARGIN, RUNTIME, Deployment
from hocket.deployment.on_mscclpp import MscclppEngine
from hocket.deployment.own import OwnEngine, programs_of
from hocket.deployment.route import PlannedGroup
from hocket.distributed.deployed import ENGINE, shares_gpu
from hocket.distributed.device import GpuEngine, made_by_pytorch
from hocket.distributed.own_gpu import OwnGpu
from hocket.errors import InfeasibleError, SpecError

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
    """The GPU of a process, its stream, and its engine.

    Parameters
    ----------
    index
        Its number among those of the process.

    Attributes
    ----------
    kind
        The GPU.
    """

    def __init__(self, index: int) -> None:
        self.kind = torch.device("cuda", index)
        self._stream: Any = torch.cuda.Stream(self.kind)
        self._kept: list[Any] = []
        self._numbers = itertools.count()

    def facts(self, deployment: Deployment) -> dict[str, Any]:
        """Load the engine, and return what is known of the GPU."""
        found: Any = torch.cuda.get_device_properties(self.kind)
        if not any(each.switches for each in deployment.manifest.entries):
            # MSCCL++ reads it when it is loaded. Else it takes memory for multicast, by the megabyte.
            os.environ.setdefault("MSCCLPP_FORCE_DISABLE_NVLS", "1")
        if is_own():
            engine = f"hocket {_core.__version__}"
            multicast = _SymmetricMemory.has_multicast_support(DeviceType.CUDA, self.kind.index)
        else:
            engine, multicast = f"mscclpp {_VERSION}", bindings().is_nvls_supported()
        return {
            "device": str(found.uuid),
            "engine": engine,
            "processors": found.multi_processor_count,
            "capability": f"{found.major}.{found.minor}",
            "bus": f"{found.pci_domain_id:04x}:{found.pci_bus_id:02x}:{found.pci_device_id:02x}.0",
            "multicast": bool(multicast),
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
    ) -> tuple[GpuEngine, torch.Tensor, torch.Tensor]:
        """Make the engine, whose ranks meet through PyTorch's store, and memory of it."""
        if is_own():
            return self._join_own(group, deployment, rank, store, timeout)
        core, key = bindings(), "hocket: mscclpp"
        bootstrap = core.CppTcpBootstrap.create(rank, group.ranks)
        if rank == 0:
            store.set(key, bootstrap.create_unique_id().__getstate__())
        # The binding sets only what is not made yet.
        unique = core.CppUniqueId.__new__(core.CppUniqueId)
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
            scale=_scale,
        )
        return engine, self._memory(group.stage), self._memory(group.stage)

    def _join_own(
        self,
        group: PlannedGroup,
        deployment: Deployment,
        rank: int,
        store: Any,
        timeout: timedelta,
    ) -> tuple[GpuEngine, torch.Tensor, torch.Tensor]:
        name = f"hocket {next(self._numbers)}"  # PyTorch has no name yet for a group that is made
        meeting = dist.PrefixStore("hocket: memory", store)
        own = dist.ProcessGroup(meeting, rank, group.ranks)
        own._set_group_name(name)
        _register_process_group(name, own)
        processors: int = torch.cuda.get_device_properties(self.kind).multi_processor_count
        blocks = processors - deployment.manifest.fallback.max_ctas - MARGIN
        if shares_gpu():  # the blocks of all ranks run at once
            blocks //= group.ranks
        engine = OwnEngine(
            OwnGpu(name, self._stream),
            programs_of(group, deployment.folder, blocks),
            rank=rank,
            ranks=group.ranks,
            stage=group.stage,
            seconds=0.9 * timeout.total_seconds(),  # before the watchdog, which knows less
            scale=_scale,
        )
        return engine, engine.send, engine.recv

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


def _scale(buffer: Any, dtype: str, factor: float) -> None:
    buffer.view(getattr(torch, dtype)).mul_(factor)


@cache
def is_own() -> bool:
    """Return whether hocket's interpreter runs plans, and not MSCCL++'s executor.

    Raises
    ------
    SpecError
        If the setting names no engine.
    """
    named = os.environ.get(ENGINE)
    if named not in (None, "", "mscclpp", "hocket"):
        raise SpecError(ENGINE, f"{named!r} is no engine", "give mscclpp or hocket")
    if named:
        return named == "hocket"
    return importlib.util.find_spec("mscclpp") is None


@cache
def device(index: int) -> Cuda:
    """Return a GPU of this process."""
    return Cuda(index)


@cache
def bindings() -> Any:
    """Load MSCCL++'s extension.

    Raises
    ------
    InfeasibleError
        If it is missing or of another version.
    """
    right = f"install {_VERSION}, or set {ENGINE}=hocket"
    try:
        found = version("mscclpp")
    except PackageNotFoundError:
        raise InfeasibleError("mscclpp", "is not installed", right) from None
    if found != _VERSION:
        raise InfeasibleError("mscclpp", f"is {found}, and hocket drives {_VERSION}", right)
    package = importlib.util.find_spec("mscclpp")  # finds the package without importing it
    places = list(package.submodule_search_locations or []) if package else []
    spec = importlib.machinery.PathFinder.find_spec("_mscclpp", places)
    if spec is None or spec.loader is None:
        raise InfeasibleError("mscclpp", "has no extension _mscclpp", right)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
