"""A backend of PyTorch for tensors of a GPU: deployed plans where there are some, NCCL for all else.

All decisions and the order of steps are here. What a GPU has to do for them is a :class:`Device`:
:mod:`hocket.distributed.cuda` is the one of CUDA.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, Protocol, TypeVar

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend, Work

from hocket.deployment.facts import Facts, is_on, read_folder, stage_of
from hocket.deployment.manifest import Deployment, Entry
from hocket.deployment.route import Nccl, PlannedGroup, route
from hocket.deployment.staged import Engine, Stage
from hocket.distributed.backend import Tensors, operation
from hocket.distributed.deployed import FOLDER, STAGE, agree, shares_gpu
from hocket.distributed.tensors import plain
from hocket.distributed.watchdog import Watchdog
from hocket.errors import InfeasibleError, TransportError

_log = logging.getLogger("hocket.deployed")
_used: list[PlannedGroup] = []
"""Groups of this process that ever used the engine."""
_Found = TypeVar("_Found")


class GpuEngine(Engine, Protocol):
    """What runs plans on GPUs: they are prepared first."""

    def prepare(self, entry: Entry) -> None:
        """Read a plan."""
        ...

    def check(self) -> None:
        """Raise a ``TransportError`` if a launch gave up, as others did not come."""
        ...


class Event(Protocol):
    """A point in the work of a device."""

    def done(self) -> bool:
        """Return whether the device has come to it."""
        ...

    def wait(self) -> None:
        """Let the caller's stream wait for it."""
        ...


class Device(Protocol):
    """A GPU with one stream, on which the launches of all groups run in their order.

    Attributes
    ----------
    kind
        The device of its tensors.
    """

    kind: torch.device

    def facts(self, deployment: Deployment) -> dict[str, Any]:
        """Load the engine for a folder; what :class:`hocket.deployment.facts.Facts` says of the GPU."""
        ...

    def fallback(self, opts: Any, options: Any, ctas: int | None) -> Any:
        """Make the backend that does what is not planned, with so many CTAs at most."""
        ...

    def join(
        self,
        group: PlannedGroup,
        deployment: Deployment,
        rank: int,
        store: Any,
        timeout: timedelta,
    ) -> tuple[GpuEngine, torch.Tensor, torch.Tensor]:
        """Meet the other ranks of a group in the engine; with it the two buffers of the stage."""
        ...

    def is_captured(self) -> bool:
        """Return whether a graph captures the caller's stream."""
        ...

    def follow(self) -> None:
        """Let the stream wait for the caller's stream."""
        ...

    def enqueue(self, work: Callable[[], None]) -> None:
        """Do copies and launches on the stream."""
        ...

    def record(self) -> Event:
        """Return the point in the stream after all that was enqueued."""
        ...

    def future(self, value: Any) -> Any:
        """Return a future of PyTorch that is done after all that was enqueued."""
        ...

    def keep(self, tensor: torch.Tensor) -> None:
        """Keep a tensor's memory from other uses until all that was enqueued is done."""
        ...

    def relax(self) -> None:
        """Let this thread look at events while another captures a graph."""
        ...


class Call(Work):  # type: ignore[misc,unused-ignore]
    """A call whose plans were launched."""

    def __init__(self, future: Any, event: Event) -> None:
        super().__init__()
        self._future, self._event = future, event

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Let the caller's stream wait for it."""
        self._event.wait()
        return True

    def synchronize(self) -> None:
        """Let the caller's stream wait for it."""
        self._event.wait()

    def is_completed(self) -> bool:
        """Return whether the device has ended it."""
        return self._event.done()

    def is_success(self) -> bool:
        """Return whether it has ended: one that goes wrong ends the process."""
        return self._event.done()

    def get_future(self) -> Any:
        """Return a future of its tensors."""
        return self._future

    def result(self) -> Any:
        """Return its tensors."""
        return self._future.wait()


@dataclass(frozen=True)
class _Job:
    """One collective of a call: what routes it, and its tensors, whose parts follow each other."""

    kind: str
    op: str
    source: Tensors
    result: Tensors
    size: int | None
    root: int = 0

    @property
    def dtype(self) -> str:
        return str(self.source[0].dtype).removeprefix("torch.")

    def route(self, group: PlannedGroup, *, captured: bool) -> Entry | Nccl:
        tensors = (*self.source, *self.result)
        if any(each.layout is not torch.strided for each in tensors):
            return Nccl("a tensor is sparse")
        if len({each.dtype for each in tensors}) > 1:
            return Nccl("the types are unequal")
        return route(self.kind, self.op, self.dtype, self.size, self.root, group, captured)

    def run(self, stage: Stage, entry: Entry) -> None:
        source = _flat(self.source)
        direct = len(self.result) == 1 and plain(self.result[0]) is self.result[0]
        result = _flat(self.result) if direct else _room(self.result)
        stage.run(entry, source, result, self.op, self.dtype)
        if not direct:
            at = 0
            for each in self.result:
                part = result[at : at + _bytes(each)]
                each.copy_(part.view(each.dtype).view(each.shape))
                at += len(part)


class HocketBackend(Backend):  # type: ignore[misc,unused-ignore]
    """A backend whose collectives run deployed plans, or those of the fallback.

    Parameters
    ----------
    opts, options
        As PyTorch gives them to those who make backends, and the caller's options of the fallback.
    device
        Whose tensors.
    cpu
        The group that has the tensors on CPUs; None if another backend has them.

    Attributes
    ----------
    group
        What is planned for the group, or the reason why nothing is.
    """

    def __init__(self, opts: Any, options: Any, device: Device, cpu: Any = None) -> None:
        rank, size = opts.group_rank, opts.group_size
        super().__init__(rank, size)
        self._rank, self._size, self._timeout = rank, size, opts.timeout
        self._device, self._cpu, self._store = device, cpu, opts.store
        self._coalescing = False
        self._calls = 0
        self._watchdog: Watchdog | None = None
        npu = opts.global_ranks_in_group[rank] if opts.global_ranks_in_group else rank
        deployment, facts = _facts(device, npu)
        self.group = agree(opts.store, facts, deployment, rank, size)
        planned = deployment is not None and not self.group.reason
        self._debug = planned and facts.debug
        if deployment is None or not planned:
            self._fallback = device.fallback(opts, options, None)
            return
        make = partial(device.fallback, opts, options, deployment.manifest.fallback.max_ctas)
        try:
            self._fallback = self._together("fallback", make)
        except _ApartError as error:  # without it, there is no group
            raise TransportError(str(error)) from error
        self._start(deployment)

    @property
    def deployed(self) -> PlannedGroup:
        """The plans of the group and the calls that took them; or why it has none."""
        return self.group

    @property
    def bound_device(self) -> torch.device:
        """The device of the group's tensors."""
        return self._device.kind

    def _start(self, deployment: Deployment) -> None:
        """Join the engine, prepare each plan and test it; or fall back, at all ranks alike."""
        rank, size, group = self._rank, self._size, self.group
        self._watchdog = watchdog = Watchdog(
            self._store, rank, size, group.name, self._timeout.total_seconds(), self._device
        )
        _used.append(group)
        if len(_used) > 1:  # the flags of packets are of one group alone
            for each in _used:
                each.packets = False
        try:
            engine, send, recv = self._together(
                "join",
                partial(self._device.join, group, deployment, rank, self._store, self._timeout),
            )
            watchdog.engine = engine
            entries = [each for each in group.entries if self._may_run(each)]
            self._together("prepare", partial(self._prepare, engine, entries))
            self._stage = Stage(group, engine, send, recv)
            for entry in entries:
                self._together(f"test of {entry.id}", partial(self._test, entry))
        except _ApartError as error:
            group.reason = str(error)
            watchdog.stop()
            if rank == 0:
                _log.warning("a group of %d ranks runs no deployed plans: %s", size, error)

    def _may_run(self, entry: Entry) -> bool:
        """Return whether calls of some size may take a plan."""
        group = self.group
        packets = group.packets or entry.protocol != "LL"
        switches = group.switches or not entry.switches
        return packets and switches and entry.unit_bytes <= group.stage

    def _prepare(self, engine: GpuEngine, entries: Sequence[Entry]) -> None:
        for each in entries:
            engine.prepare(each)

    def _together(self, step: str, work: Callable[[], _Found]) -> _Found:
        """Do a step of the start, and learn whether all ranks could.

        Raises
        ------
        _ApartError
            At all ranks, if one could not, or does not come and no watchdog ends the processes.
        """
        wrong, found = "", None
        with self._limit(f"{step}, at the start"):
            try:
                found = work()
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}".splitlines()[0] or "it failed"
        keys = [f"hocket: {step} at rank {rank}" for rank in range(self._size)]
        self._store.set(keys[self._rank], wrong)
        with self._limit(f"the others, after {step}, at the start"):
            self._wait(step, keys)
        for rank, key in enumerate(keys):
            said = self._store.get(key).decode()
            if said:
                raise _ApartError(f"rank {rank}: {step}: {said}")
        return found  # type: ignore[return-value]

    def _limit(self, said: str) -> AbstractContextManager[None]:
        return nullcontext() if self._watchdog is None else self._watchdog.limit(said)

    def _wait(self, step: str, keys: Sequence[str]) -> None:
        """Wait until all ranks have done a step; a watchdog ends the processes earlier."""
        limit = self._timeout if self._watchdog is None else 2 * self._timeout
        try:
            self._store.wait(keys, limit)
        except RuntimeError as error:
            late = [rank for rank, key in enumerate(keys) if not self._store.check([key])]
            if not late:
                raise
            why = f"rank {late[0]}: {step}: it did not come in {limit.total_seconds():g} s"
            raise _ApartError(why) from error

    def _test(self, entry: Entry) -> None:
        """Run a plan on integers, as calls do; its context is made here, where all ranks come."""
        ranks, kind = self._size, entry.collective
        whole = entry.unit_bytes // 4
        count = whole // ranks if kind == "all-gather" else whole
        given = [(torch.arange(count, dtype=torch.int32) * 7 + 13 * each) for each in range(ranks)]
        wanted = _expected(kind, given, self._rank)
        source = given[self._rank].to(self._device.kind)
        result = torch.zeros_like(wanted, device=self._device.kind)
        job = _Job(kind, "sum", [source], [result], entry.unit_bytes)
        self._launch([(job, entry)], [result], f"test of {entry.id}", captured=False).wait()
        if not torch.equal(result.cpu(), wanted):
            raise InfeasibleError(entry.id, "gives wrong numbers")

    def _run(self, name: str, jobs: Sequence[_Job], *args: Any) -> Any:
        """Run a call by plans if each of its collectives has one, else by the fallback."""
        if self._cpu is not None and jobs and jobs[0].source[0].device.type == "cpu":
            return getattr(self._cpu, name)(*args)
        if self.group.reason:
            return self._by_fallback(name, *args)
        captured = self._device.is_captured()
        found: list[tuple[_Job, Entry]] = []
        reason = "it is coalesced with other calls" if self._coalescing else ""
        for job in () if reason else jobs:
            entry = job.route(self.group, captured=captured)
            if isinstance(entry, Nccl):
                reason = entry.reason
                break
            found.append((job, entry))
        self._calls += 1
        takes = ", ".join(entry.id for _, entry in found) if not reason else ""
        sizes = " + ".join(str(job.size) for job in jobs)
        kinds = " + ".join(sorted({f"{job.kind} {job.op} of {job.dtype}" for job in jobs}))
        said = f"{kinds}, call {self._calls}, {sizes} bytes, by {takes or 'NCCL'}"
        if self._debug:
            self._compare(said)
        if reason or not found:
            self.group.taken[reason] += 1
            return self._by_fallback(name, *args)
        for _, entry in found:
            self.group.taken[entry.id] += 1
        results = [each for job, _ in found for each in job.result]
        return self._launch(found, results, said, captured=captured)

    def _launch(
        self, found: Sequence[tuple[_Job, Entry]], results: Tensors, said: str, *, captured: bool
    ) -> Call:
        """Copy in, launch and copy out, after what the caller's stream has and before what follows."""
        device, watchdog = self._device, self._watchdog
        assert watchdog is not None

        def work() -> None:
            for job, entry in found:
                job.run(self._stage, entry)

        device.follow()
        try:
            device.enqueue(work)
        except BaseException as error:  # the other ranks may have launched: nothing falls back now
            watchdog.tell(f"{said}: {error}")
            raise
        future = device.future(results)
        for job, _ in found:
            for each in {id(each): each for each in (*job.source, *job.result)}.values():
                device.keep(each)
        event = device.record()
        if not captured:
            watchdog.add(event, said)
        return Call(future, event)

    def _compare(self, said: str) -> None:
        """Refuse a call that differs between ranks before it is launched."""
        keys = [f"hocket: call {self._calls} of rank {rank}" for rank in range(self._size)]
        self._store.set(keys[self._rank], said)
        for rank, key in enumerate(keys):
            try:
                other = self._store.get(key).decode()
            except RuntimeError as error:
                why = f"rank {rank} does not come; rank {self._rank} has {said}"
                raise TransportError(why) from error
            if other != said:
                raise TransportError(f"rank {rank} has {other}; rank {self._rank} has {said}")
        if self._calls > 2:  # which all have read
            self._store.delete_key(f"hocket: call {self._calls - 2} of rank {self._rank}")

    def _by_fallback(self, name: str, *args: Any) -> Any:
        given = [arg for arg in args if arg is not None]  # options that were not given
        return getattr(self._fallback, name)(*given)

    def allreduce(self, tensors: Tensors, opts: Any = None) -> Any:
        """Combine tensors in place."""
        return self._run("allreduce", _reduced(tensors, opts), tensors, opts)

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> Any:
        """Combine tensors in place, one after the other."""
        return self._run("allreduce_coalesced", _reduced(tensors, opts), tensors, opts)

    def broadcast(self, tensors: Tensors, opts: Any = None) -> Any:
        """Copy the root's tensors over those of the others."""
        root = 0 if opts is None else opts.rootRank
        jobs = [_Job("broadcast", "", [each], [each], _bytes(each), root) for each in tensors]
        return self._run("broadcast", jobs, tensors, opts)

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> Any:
        """Send the tensors of all ranks to all ranks, in tensors that may differ in size."""
        jobs = [
            _Job("all-gather", "", [own], parts, self._whole(own, parts))
            for parts, own in zip(outputs, inputs, strict=True)
        ]
        return self._run("allgather", jobs, outputs, inputs, opts)

    def all_gather_single(
        self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None
    ) -> Any:
        """Send the tensors of all ranks to all ranks, as one tensor."""
        return self._run(
            "all_gather_single", self._gathered([output], [tensor]), output, tensor, opts
        )

    def all_gather_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = None
    ) -> Any:
        """Send the tensors of all ranks to all ranks, for each of several."""
        jobs = self._gathered(outputs, inputs)
        return self._run("all_gather_single_coalesced", jobs, outputs, inputs, opts)

    def reduce_scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = None) -> Any:
        """Combine tensors, which may differ in size, and of which each rank gets one."""
        op = operation(opts) or "such operation"
        jobs = [
            _Job("reduce-scatter", op, parts, [own], self._whole(own, parts))
            for own, parts in zip(outputs, inputs, strict=True)
        ]
        return self._run("reduce_scatter", jobs, outputs, inputs, opts)

    def reduce_scatter_single(
        self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None
    ) -> Any:
        """Combine tensors, of which each rank gets a part."""
        jobs = self._scattered([output], [tensor], opts)
        return self._run("reduce_scatter_single", jobs, output, tensor, opts)

    def reduce_scatter_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = None
    ) -> Any:
        """Combine tensors, of which each rank gets a part, for each of several."""
        jobs = self._scattered(outputs, inputs, opts)
        return self._run("reduce_scatter_single_coalesced", jobs, outputs, inputs, opts)

    def all_to_all_single(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        output_sizes: Sequence[int],
        sizes: Sequence[int],
        opts: Any = None,
    ) -> Any:
        """Send part i of a tensor to rank i; a rank does not know whether given sizes are equal."""
        equal = not (output_sizes or sizes) and _bytes(output) == _bytes(tensor)
        size = _bytes(tensor) if equal and tensor.numel() % self._size == 0 else None
        jobs = [_Job("all-to-all", "", [tensor], [output], size)]
        return self._run("all_to_all_single", jobs, output, tensor, output_sizes, sizes, opts)

    def barrier(self, opts: Any = None) -> Any:
        """Wait for all ranks, by the fallback, after the calls of this backend."""
        if self._watchdog is not None:
            self._device.record().wait()
        cpu = self._cpu is not None and getattr(opts, "device", self._device.kind).type == "cpu"
        if cpu:
            return self._cpu.barrier(opts)
        if opts is not None and opts.device is not None and opts.device.index is None:
            opts.device = self._device.kind  # else NCCL guesses one
        return self._by_fallback("barrier", opts)

    def monitored_barrier(self, opts: Any, wait_all_ranks: bool) -> None:
        """Wait for all ranks, by the fallback if it can, and name one that does not come."""
        self._fallback.monitored_barrier(opts.timeout, wait_all_ranks)

    def start_coalescing(self) -> None:
        """Leave the calls that follow to the fallback, as one."""
        self._coalescing = True
        self._fallback._start_coalescing()

    def end_coalescing(self) -> Any:
        """End what :meth:`start_coalescing` began."""
        self._coalescing = False
        return self._fallback._end_coalescing()

    def shutdown(self) -> None:
        """End the watchdog and the fallback."""
        if self._watchdog is not None:
            self._watchdog.stop()
        self._fallback.shutdown()

    def getBackendName(self) -> str:  # noqa: N802
        """Return the name of the backend."""
        return "hocket"

    # PyTorch asks a backend in Python for them, and asks without an end where it has none.
    supports_splitting = supports_shrinking = supports_reconfigure = supports_window = False
    _supports_time_estimate = False

    @property
    def supports_coalescing(self) -> bool:
        """Whether several calls may become one."""
        return bool(self._fallback.supports_coalescing)

    @property
    def options(self) -> Any:
        """The options of the fallback."""
        return self._fallback.options

    def _whole(self, own: torch.Tensor, parts: Tensors) -> int | None:
        """Return the bytes of all parts, or None if they are not of one size for each rank."""
        equal = len(parts) == self._size and all(_bytes(part) == _bytes(own) for part in parts)
        return _bytes(own) * self._size if equal else None

    def _gathered(self, outputs: Tensors, inputs: Tensors) -> list[_Job]:
        pairs = list(zip(outputs, inputs, strict=True))
        fits = [_bytes(output) == _bytes(own) * self._size for output, own in pairs]
        return [
            _Job("all-gather", "", [own], [output], _bytes(output) if fit else None)
            for (output, own), fit in zip(pairs, fits, strict=True)
        ]

    def _scattered(self, outputs: Tensors, inputs: Tensors, opts: Any) -> list[_Job]:
        op = operation(opts) or "such operation"
        return [
            replace(job, kind="reduce-scatter", op=op, source=job.result, result=job.source)
            for job in self._gathered(inputs, outputs)
        ]


def _delegate(name: str) -> Callable[..., Any]:
    def call(self: HocketBackend, *args: Any) -> Any:
        own = args[0] if args else None
        tensor = own[0] if isinstance(own, (list, tuple)) and own else own
        is_cpu = isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu"
        if self._cpu is not None and is_cpu:
            return getattr(self._cpu, name)(*args)
        return self._by_fallback(name, *args)

    call.__name__, call.__doc__ = name, "Leave it to the fallback."
    return call


for _name in [
    "allreduce_sparse",
    "allgather_coalesced",
    "reduce",
    "gather",
    "scatter",
    "alltoall",
    "send",
    "recv",
    "recv_anysource",
    "abort",
    "set_timeout",
    "get_error",
    "_set_sequence_number_for_group",
    "_get_sequence_number_for_group",
    "_wait_for_pending_works",
    "_enable_collectives_timing",
    "eager_connect_single_device",
]:
    setattr(HocketBackend, _name, _delegate(_name))


def made_by_pytorch(name: str, opts: Any, options: Any) -> Any:
    """Make a backend by the creator that PyTorch registered for a name, as ``"nccl"``."""
    known: Any = dist.Backend
    known._ensure_backend_registered(name)  # PyTorch registers its own at their first use
    return known._plugins[name.upper()].creator_fn(opts, options)


class _ApartError(Exception):
    """A rank could not do a step of the start, as all ranks know."""


def _facts(device: Device, npu: int) -> tuple[Deployment | None, Facts]:
    """Return the folder and what this rank knows; an error becomes a fact that all ranks see."""
    folder = os.environ.get(FOLDER)
    facts = Facts(npu, socket.gethostname(), f"process {os.getpid()}", groups=len(_used))
    if not folder:
        return None, facts
    deployment, manifest, wrong = read_folder(folder)
    facts = replace(facts, manifest=manifest, wrong=wrong)
    if deployment is not None:
        try:
            stage = stage_of(os.environ.get(STAGE))
            debug = is_on("HOCKET_DEBUG", os.environ.get("HOCKET_DEBUG"))
            facts = replace(facts, stage=stage, debug=debug, one_gpu=shares_gpu())
            facts = replace(facts, **device.facts(deployment))
        except Exception as error:
            facts = replace(facts, wrong=str(error))
    return deployment, facts


def _expected(kind: str, given: list[torch.Tensor], rank: int) -> torch.Tensor:
    """Return what a rank gets of the integers of all."""
    if kind == "broadcast":
        return given[0]
    if kind == "all-gather":
        return torch.cat(given)
    if kind == "all-reduce":
        return torch.stack(given).sum(0, dtype=torch.int32)
    parts = [each.chunk(len(given))[rank] for each in given]
    if kind == "reduce-scatter":
        return torch.stack(parts).sum(0, dtype=torch.int32)
    return torch.cat(parts)


def _reduced(tensors: Tensors, opts: Any) -> list[_Job]:
    op = operation(opts) or "such operation"
    return [_Job("all-reduce", op, [each], [each], _bytes(each)) for each in tensors]


def _bytes(tensor: torch.Tensor) -> int:
    return int(tensor.numel() * tensor.element_size())


def _room(tensors: Tensors) -> torch.Tensor:
    size = sum(_bytes(each) for each in tensors)
    return torch.empty(size, dtype=torch.uint8, device=tensors[0].device)


def _flat(tensors: Tensors) -> torch.Tensor:
    """Return the bytes of tensors in a row: of one in one piece its own, else a copy."""
    parts = [plain(each.detach()).reshape(-1).view(torch.uint8) for each in tensors]
    return parts[0] if len(parts) == 1 else torch.cat(parts)
