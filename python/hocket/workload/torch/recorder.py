"""Notes each operation that PyTorch carries out, with the layer and the pass that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hocket.workload.torch.backward import Backward
from hocket.workload.torch.pass_record import FORWARD, Operations, PassRecord, Touch
from hocket.workload.torch.products import Step, steps_of
from hocket.workload.torch.storages import Effect, Storages, tensors_in

_SUM = torch.ops.aten.sum


class Recorder(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
    """A dispatch mode under which a module runs forward and backward.

    Attributes
    ----------
    tally
        What has been noted.
    where
        Path of the module whose operation was the last.
    """

    def __init__(self, module: Any, inputs: Iterable[Any]) -> None:
        super().__init__()
        self.tally = PassRecord()
        self.where = type(module).__name__
        self._stack: list[tuple[str, int]] = [(self.where, 0)]
        self._calls = 0
        self._latest: tuple[str, int] | None = None
        self._storages = Storages()
        self._kept: set[int] = set()
        self._unused = {
            self._storages.key(each): int(each.numel())
            for each in module.parameters()
            if each.requires_grad
        }
        self._pending: list[tuple[Any, int, bool]] = []
        self._makers: dict[Any, tuple[int, bool]] = {}
        self._backward: Backward | None = None
        for each in inputs:
            key = self._storages.add(each)
            self._touch(-1, {key: self._storages.bytes_of(each)}, writes=True)

    def enter(self, name: str) -> None:
        """Note that a module is called."""
        self._find_makers()
        self._calls += 1
        self._stack.append((name, self._calls))
        if self._backward is None:
            self.where = name

    def leave(self) -> None:
        """Note that the module called last has returned."""
        self._find_makers()
        self._stack.pop()

    def keep(self, tensor: Any) -> Any:
        """Note that autograd keeps a tensor for the backward pass."""
        key = self._storages.key(tensor)
        if key in self._storages.data and key not in self._kept:
            self._kept.add(key)
            self._part().kept += self._storages.sizes[key]
        return tensor.detach()

    def start_backward(self, results: Iterable[Any], ends: list[Any], seeds: list[Any]) -> None:
        """Note what the module gives, and that the gradients of ``ends`` come next, from ``seeds``."""
        self._find_makers()
        for each in results:
            key = self._storages.key(each)
            if key in self._storages.data:
                self._touch(-1, {key: self._storages.bytes_of(each)}, writes=False)
        self.tally.unused = sum(self._unused.values())
        self.tally.sizes = self._storages.sizes
        for each in seeds:
            self._storages.add(each)
        self._backward = Backward(self.tally, self._storages, self._makers)
        self._backward.follow([each.grad_fn for each in ends])

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Carry out an operation and note it."""
        self._find_makers()
        args, kwargs = _on_meta(args, kwargs or {})
        result = func(*args, **kwargs)
        for step in steps_of(func, args, kwargs, result):
            effect = self._storages.effect(func, step.takes, step.gives)
            if self._backward is None:
                self._note(step, effect)
            else:
                is_sum = func._overloadpacket is _SUM
                self._backward.note(step, effect, is_sum=is_sum)
        return result

    def _note(self, step: Step, effect: Effect) -> None:
        """Note a step of the forward pass."""
        for each in step.takes:
            numbers = self._unused.pop(self._storages.key(each), 0)
            if numbers:
                self._part().parameters += numbers
        if not step.flops and not effect.writes:
            return
        part = self._part()
        part.flops[FORWARD] += step.flops
        part.bytes[FORWARD] += self._storages.count(effect)
        place = len(self.tally.parts) - 1
        self._touch(place, effect.reads, writes=False)
        self._touch(place, effect.writes, writes=True)
        self._pending = [(each, place, bool(effect.writes)) for each in step.gives]

    def _part(self) -> Operations:
        """Return the part that runs: a new one where another call of a module goes on."""
        if self._latest != self._stack[-1]:
            self._latest = self._stack[-1]
            self.where = self._latest[0]
            self.tally.parts.append(Operations(self.where))
        return self.tally.parts[-1]

    def _touch(self, part: int, sizes: dict[int, int], *, writes: bool) -> None:
        self.tally.touches += [Touch(part, key, size, writes) for key, size in sizes.items()]

    def _find_makers(self) -> None:
        """Look up the graph's nodes of what the last operation gave: autograd adds them after it."""
        for tensor, part, is_data in self._pending:
            if tensor.grad_fn is not None:
                self._makers.setdefault(tensor.grad_fn, (part, is_data))
        self._pending = []


def _on_meta(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Leave the numbers of constants that meet data or weights behind; they have none either."""
    if "device" in kwargs and kwargs["device"] is not None and kwargs["device"].type != "cpu":
        kwargs = {**kwargs, "device": torch.device("meta")}
    met = [each.is_meta for each in tensors_in([*args, *kwargs.values()])]
    if not any(met):
        return args, kwargs
    if kwargs.get("device") is not None:
        kwargs = {**kwargs, "device": torch.device("meta")}
    if all(met):
        return args, kwargs
    return _moved(args), {name: _moved(each) for name, each in kwargs.items()}


def _moved(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to("meta")
    if isinstance(value, list | tuple):
        return type(value)(_moved(each) for each in value)
    return value
