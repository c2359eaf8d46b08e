"""A process group of PyTorch over a communicator of hocket; what that does not do, gloo does."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Work

from hocket.deployment.route import PlannedGroup
from hocket.distributed.deployed import deploy_on_cpu
from hocket.distributed.future import FailingFuture
from hocket.distributed.tensors import array_of, plain
from hocket.errors import InfeasibleError, SpecError
from hocket.runtime import Communicator, connect, serve
from hocket.runtime.pending import Pending

NAME = "hocket"

_OPERATIONS = {"SUM": "sum", "PRODUCT": "product", "MIN": "min", "MAX": "max", "AVG": "average"}

_GLOO = ("send", "recv", "recv_anysource", "monitored_barrier", "allgather_coalesced")
"""What goes to gloo as it is."""

Tensors = Sequence[torch.Tensor]
Bytes = npt.NDArray[np.uint8]


class Call(Work):  # type: ignore[misc,unused-ignore]
    """A call that was started. Who waits for it, or for its future, gets its error."""

    def __init__(self, promise: FailingFuture, pending: Pending) -> None:
        super().__init__()
        self._promise = promise
        self._pending = pending

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Wait until it has ended; without a time as long as the group's timeout lets it.

        Raises
        ------
        TransportError
            If a rank died, stood still, or called something else.
        """
        if not self.is_completed():
            self._pending.wait(timeout.total_seconds() or None)
        if self._promise.failed is not None:
            raise self._promise.failed
        return True

    def synchronize(self) -> None:
        """Wait until it has ended."""
        self.wait()

    def is_completed(self) -> bool:
        """Return whether it has ended."""
        return bool(self._promise.future.done())

    def is_success(self) -> bool:
        """Return whether it has ended well."""
        return self.is_completed() and self._promise.failed is None

    def exception(self) -> BaseException | None:
        """Return what went wrong."""
        return self._promise.failed

    def get_future(self) -> Any:
        """Return a future of its tensors."""
        return self._promise.future

    def result(self) -> Any:
        """Return its tensors."""
        return self._promise.future.wait()


class HocketProcessGroup(dist.ProcessGroup):  # type: ignore[misc,unused-ignore]
    """A process group whose collectives on the CPU are those of :mod:`hocket.runtime`.

    Calls go on in a thread of their own, in order, with the interpreter released. The future of each holds
    its tensors, which may neither be read nor written until it is done.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._comm, self._store = join(store, rank, size, timeout)
        npu = dist.get_rank() if dist.is_initialized() else rank
        self._deployed = deploy_on_cpu(self._comm, store, npu)
        gloo = getattr(dist, "ProcessGroupGloo", None)
        self._gloo = gloo and gloo(dist.PrefixStore("gloo", store), rank, size, timeout)
        if self._gloo is not None and hasattr(self, "_register_backend"):
            # PyTorch keeps a group's name, which meshes of devices ask for, with a backend of its own kind.
            kind = dist.ProcessGroup.BackendType.CUSTOM
            self._register_backend(torch.device("cpu"), kind, self._gloo)
            self._set_default_backend(kind)

    @property
    def communicator(self) -> Communicator:
        """The communicator, with ranks of this group."""
        return self._comm

    @property
    def deployed(self) -> PlannedGroup:
        """The plans of the group and the calls that took them; or why it has none."""
        return self._deployed

    def getBackendName(self) -> str:  # noqa: N802
        """Return the name of the backend."""
        return NAME

    def getSize(self) -> int:  # noqa: N802
        """Return the number of ranks."""
        return self._comm.size

    def allreduce(self, tensors: Tensors, opts: Any = None) -> Any:
        """Combine tensors in place; sparse ones are summed by gloo."""
        op = operation(opts)
        if op is None or any(tensor.layout is not torch.strided for tensor in tensors):
            return self._by_gloo("allreduce", tensors, opts)

        def work() -> None:
            for tensor in tensors:
                with _Whole(tensor) as (array, dtype):
                    self._comm.all_reduce(array, op, out=array, dtype=dtype)

        return self._start(work, list(tensors))

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> Any:
        """Combine tensors in place, one after the other."""
        return self.allreduce(tensors, opts)

    def broadcast(self, tensors: Tensors, opts: Any) -> Any:
        """Copy the root's tensors over those of the others."""
        root = opts.rootRank

        def work() -> None:
            for tensor in tensors:
                with _Whole(tensor) as (array, dtype):
                    self._comm.broadcast(array, root, dtype=dtype)

        return self._start(work, list(tensors))

    def reduce(self, tensors: Tensors, opts: Any) -> Any:
        """Combine tensors at the root, in place."""
        op, root = operation(opts), opts.rootRank
        if op is None:
            return self._by_gloo("reduce", tensors, opts)

        def work() -> None:
            with _Whole(tensors[0]) as (array, dtype):
                out = array if self._comm.rank == root else None
                self._comm.reduce(array, root, op, out=out, dtype=dtype)

        return self._start(work, list(tensors))

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> Any:
        """Send the tensors of all ranks to all ranks, in tensors that may differ in size."""
        for parts, tensor in zip(outputs, inputs, strict=True):
            self._check_parts("tensor_list", parts, tensor)

        def work() -> None:
            for parts, tensor in zip(outputs, inputs, strict=True):
                if len({part.numel() for part in parts}) == 1:
                    array, dtype = array_of(plain(tensor))
                    _spread(self._comm.all_gather(array, dtype=dtype), parts)
                    continue
                parts[self._comm.rank].copy_(tensor.reshape_as(parts[self._comm.rank]))
                for root, part in enumerate(parts):
                    with _Whole(part) as (own, dtype):
                        self._comm.broadcast(own, root, dtype=dtype)

        return self._start(work, [tensor for parts in outputs for tensor in parts])

    def all_gather_single(
        self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None
    ) -> Any:
        """Send the tensors of all ranks to all ranks, as one tensor."""

        def work() -> None:
            array, dtype = array_of(plain(tensor))
            with _Whole(output) as (whole, _):
                self._comm.all_gather(array, out=whole, dtype=dtype)

        return self._start(work, [output])

    def all_gather_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = None
    ) -> Any:
        """Send the tensors of all ranks to all ranks, for each of several."""

        def work() -> None:
            for output, tensor in zip(outputs, inputs, strict=True):
                array, dtype = array_of(plain(tensor))
                with _Whole(output) as (whole, _):
                    self._comm.all_gather(array, out=whole, dtype=dtype)

        return self._start(work, list(outputs))

    def reduce_scatter_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = None
    ) -> Any:
        """Combine tensors, of which each rank gets a part, for each of several."""
        op = operation(opts)
        if op is None:
            return self._by_gloo("reduce_scatter_tensor_coalesced", outputs, inputs, opts)

        def work() -> None:
            for output, tensor in zip(outputs, inputs, strict=True):
                array, dtype = array_of(plain(tensor))
                with _Whole(output) as (own, _):
                    self._comm.reduce_scatter(array, op, out=own, dtype=dtype)

        return self._start(work, list(outputs))

    def reduce_scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = None) -> Any:
        """Combine tensors, which may differ in size, and of which each rank gets one."""
        op = operation(opts)
        if op is None:
            return self._by_gloo("reduce_scatter", outputs, inputs, opts)
        for output, parts in zip(outputs, inputs, strict=True):
            self._check_parts("input_list", parts, output)

        def work() -> None:
            for output, parts in zip(outputs, inputs, strict=True):
                with _Whole(output) as (own, dtype):
                    if len({part.numel() for part in parts}) == 1:
                        whole = torch.cat([part.reshape(-1) for part in parts])
                        array, _ = array_of(whole)
                        self._comm.reduce_scatter(array, op, out=own, dtype=dtype)
                        continue
                    for root, part in enumerate(parts):
                        array, _ = array_of(plain(part).reshape(-1))
                        out = own if root == self._comm.rank else None
                        self._comm.reduce(array, root, op, out=out, dtype=dtype)

        return self._start(work, list(outputs))

    def reduce_scatter_single(
        self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None
    ) -> Any:
        """Combine tensors, of which each rank gets a part."""
        op = operation(opts)
        if op is None:
            return self._by_gloo("_reduce_scatter_base", output, tensor, opts)

        def work() -> None:
            array, dtype = array_of(plain(tensor))
            with _Whole(output) as (own, _):
                self._comm.reduce_scatter(array, op, out=own, dtype=dtype)

        return self._start(work, [output])

    def all_to_all_single(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        output_sizes: Sequence[int],
        sizes: Sequence[int],
        opts: Any = None,
    ) -> Any:
        """Send part i of a tensor to rank i; parts of sizes that are given go by gloo, as bytes.

        A rank does not know whether the parts of the others are equal: all go the way that was asked for.
        """
        if output_sizes or sizes:
            widths = (
                self._widths("output_split_sizes", output, output_sizes),
                self._widths("input_split_sizes", tensor, sizes),
            )
        else:
            widths = None

        def work() -> None:
            array, dtype = array_of(plain(tensor))
            with _Whole(output) as (whole, _):
                if widths is None:
                    self._comm.all_to_all(array, out=whole, dtype=dtype)
                    return
                self._swap(whole.view("u1"), array.view("u1"), *widths)

        return self._start(work, [output])

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Any:
        """Send tensor i of a list to rank i, by gloo, as bytes."""
        for name, given in (("output_tensor_list", outputs), ("input_tensor_list", inputs)):
            self._check_length(name, given)

        def work() -> None:
            parts = [array_of(plain(tensor).reshape(-1))[0].view("u1") for tensor in inputs]
            lens = [part.numel() * part.element_size() for part in outputs]
            whole = np.empty(sum(lens), np.uint8)
            self._swap(whole, np.concatenate(parts), lens, [len(part) for part in parts])
            _spread(whole, outputs)

        return self._start(work, list(outputs))

    def _swap(self, into: Bytes, of: Bytes, came: list[int], goes: list[int]) -> None:
        """Have gloo send so many bytes to each rank: it does not know every type."""
        given = (torch.from_numpy(each) for each in (into, of))
        self._by_gloo("alltoall_base", *given, came, goes).wait()

    def _widths(self, name: str, tensor: torch.Tensor, sizes: Sequence[int]) -> list[int]:
        """Return the bytes of each part, by its rows."""
        rows = tensor.shape[0] if tensor.dim() else 1
        parts = [*sizes] or [rows // self.size()] * self.size()
        if len(parts) != self.size() or sum(parts) != rows or min(parts) < 0:
            why = f"{parts} are not the rows of {self.size()} parts of {rows}"
            raise SpecError(name, why, "give each rank's, which sum up to them")
        row = tensor.numel() // rows * tensor.element_size() if rows else 0
        return [part * row for part in parts]

    def _check_length(self, name: str, parts: Tensors) -> None:
        if len(parts) != self.size():
            raise SpecError(name, f"has {len(parts)} tensors", f"give {self.size()}")

    def _check_equal(self, name: str, parts: Tensors, own: torch.Tensor) -> None:
        """Refuse lists whose tensors differ in size, where all ranks must have the same."""
        self._check_parts(name, parts, own)
        for number, part in enumerate(parts):
            if part.numel() != own.numel():
                why = (
                    f"has {part.numel()} numbers for rank {number}, and {own.numel()} for the root"
                )
                raise SpecError(name, why, "give all ranks the same number")

    def _check_parts(self, name: str, parts: Tensors, own: torch.Tensor) -> None:
        """Refuse lists that do not fit, before the others wait for this rank.

        Raises
        ------
        SpecError
            If a part is missing, this rank's has another size, or one is of another type.
        """
        rank = self._comm.rank
        self._check_length(name, parts)
        if parts[rank].numel() != own.numel():
            why = (
                f"has {parts[rank].numel()} numbers for rank {rank}, whose tensor has {own.numel()}"
            )
            raise SpecError(name, why, "give each rank's number")
        for number, part in enumerate(parts):
            if part.dtype != own.dtype:
                why = f"is of {part.dtype} for rank {number}"
                raise SpecError(name, why, f"give {own.dtype}, as the tensor")

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any) -> Any:
        """Send the tensors of all ranks to the root."""
        root = opts.rootRank
        if self._comm.rank == root:
            self._check_equal("gather_list", outputs[0], inputs[0])

        def work() -> None:
            array, dtype = array_of(plain(inputs[0]))
            whole = self._comm.gather(array, root, dtype=dtype)
            if whole is not None:
                _spread(whole, outputs[0])

        return self._start(work, list(outputs[0]) if outputs else list(inputs))

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any) -> Any:
        """Send one of the root's tensors to each rank."""
        root = opts.rootRank
        if self._comm.rank == root:
            self._check_equal("scatter_list", inputs[0], outputs[0])

        def work() -> None:
            with _Whole(outputs[0]) as (own, dtype):
                if self._comm.rank == root:
                    whole = torch.cat([part.reshape(-1) for part in inputs[0]])
                    array, dtype = array_of(whole)
                    self._comm.scatter(array, root, out=own, dtype=dtype)
                else:
                    self._comm.scatter(None, root, out=own, dtype=dtype)

        return self._start(work, list(outputs))

    def barrier(self, opts: Any = None) -> Any:
        """Wait for all ranks."""
        return self._start(self._comm.barrier, [])

    # Names of other versions of PyTorch for the same.
    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    alltoall_base = all_to_all_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def _start(self, work: Callable[[], None], tensors: list[torch.Tensor]) -> Any:
        """Start a call; its work ends when the call has."""
        promise = FailingFuture(tensors)

        def call() -> None:
            failed: BaseException | None = None
            try:
                work()
            except BaseException as error:
                failed = error
            promise.settle(failed)

        return Call(promise, self._comm.start_work(call))

    def _by_gloo(self, name: str, *args: Any, **keywords: Any) -> Any:
        if self._gloo is None:
            raise InfeasibleError(name, "is not done by hocket, and there is no gloo here")
        given = [arg for arg in args if arg is not None]  # options that were not given
        return getattr(self._gloo, name)(*given, **keywords)


def _delegate(name: str) -> Callable[..., Any]:
    def call(self: HocketProcessGroup, *args: Any, **keywords: Any) -> Any:
        return self._by_gloo(name, *args, **keywords)

    call.__name__, call.__doc__ = name, "Leave it to gloo."
    return call


for _name in _GLOO:
    setattr(HocketProcessGroup, _name, _delegate(_name))


class _Whole:
    """A tensor in one piece while a call writes it: itself, or a copy that is copied back."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor.detach()
        self._work = plain(self._tensor)

    def __enter__(self) -> tuple[Any, str | None]:
        return array_of(self._work)

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self._work.data_ptr() != self._tensor.data_ptr():
            self._tensor.copy_(self._work)


def _spread(whole: Any, parts: Tensors) -> None:
    """Copy parts of an array into tensors, byte by byte."""
    at = 0
    for part in parts:
        with _Whole(part) as (array, _):
            target = array.view("u1")
            target[:] = whole.view("u1")[at : at + len(target)]
            at += len(target)


def operation(opts: Any) -> str | None:
    """Return the operation on numbers, or None if hocket does not have it."""
    given = dist.ReduceOp.SUM if opts is None else opts.reduceOp
    for name, op in _OPERATIONS.items():
        known = getattr(dist.ReduceOp, name, None)
        if known is not None and given == known:
            return op
    return None


def join(store: Any, rank: int, size: int, timeout: timedelta) -> tuple[Communicator, Any]:
    """Meet the other ranks, who learn from PyTorch's store where.

    Returns
    -------
    tuple
        The communicator, and at rank 0 the store where all meet, which must be kept as long.
    """
    key = "hocket: where ranks meet"
    served = None
    if rank == 0:
        secret = secrets.token_hex(16)
        served = serve(f"{_own_address()}:0", secret=secret)
        store.set(key, f"{served.address} {secret}")
    address, secret = cast(bytes, store.get(key)).decode().split()
    limit = timeout.total_seconds()
    communicator = connect(
        address,
        rank=rank,
        size=size,
        secret=secret,
        serves=False,
        timeout=limit,
        join_timeout=limit,
        transport=os.environ.get("HOCKET_TRANSPORT", "auto"),
    )
    return communicator, served


def _own_address() -> str:
    """Return the address under which the other ranks reach this host."""
    master = os.environ.get("MASTER_ADDR", "127.0.0.1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((master, 9))  # sends nothing
        return str(probe.getsockname()[0])
