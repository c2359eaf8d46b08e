"""Storages: tensors that share memory or depend on the inputs, and their bytes for numbers of 16 bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Effect:
    """The reads and writes of an operation: bytes of data, by the number of the storage."""

    reads: dict[int, int]
    writes: dict[int, int]


class Storages:
    """Storages of tensors by number; those of data are known.

    Data is what depends on the inputs; all other tensors are fixed: weights, buffers, positions, and what
    is computed from them alone.
    """

    def __init__(self) -> None:
        self.data: set[int] = set()
        self.sizes: dict[int, int] = {}
        self._alive: dict[int, Any] = {}

    def key(self, tensor: Any) -> int:
        """Return the number of a tensor's storage; no other has it later."""
        storage = tensor.untyped_storage()
        key = int(storage._cdata)
        if key not in self._alive:
            self._alive[key] = storage
            self.sizes[key] = _stored(tensor) * _width(tensor)
        return key

    def add(self, tensor: Any) -> int:
        """Note that a tensor is data, and give the number of its storage."""
        key = self.key(tensor)
        self.data.add(key)
        return key

    def bytes_of(self, tensor: Any) -> int:
        """Return the bytes of a tensor: what it repeats of a smaller storage counts once."""
        return min(int(tensor.numel()), _stored(tensor)) * _width(tensor)

    def effect(self, func: Any, takes: list[Any], gives: list[Any]) -> Effect:
        """Return what an operation reads and writes of data; views and empty tensors take nothing.

        What it gives is data from then on if anything that it takes is. A batch's mean and variance are
        not: there are as many for any number of samples.
        """
        before = {self.key(each) for each in takes}
        is_data = not before.isdisjoint(self.data)
        if "batch_norm" in str(func):
            gives = gives[:1]
        mutates = bool(func._schema.is_mutable)
        new = [each for each in gives if mutates or self.key(each) not in before]
        if func.is_view or not new or not is_data:
            return Effect({}, {})
        if "empty" in str(func):
            for each in new:
                self.add(each)
            return Effect({}, {})
        return Effect(self._reads(takes), {self.add(each): self.bytes_of(each) for each in new})

    def _reads(self, takes: list[Any]) -> dict[int, int]:
        """Sum up parts of a storage that begin at different places, such as queries and keys."""
        parts: dict[tuple[int, int], int] = {}
        for each in takes:
            part = (self.key(each), int(each.storage_offset()))
            if part[0] in self.data:
                parts[part] = max(parts.get(part, 0), self.bytes_of(each))
        reads: dict[int, int] = {}
        for (key, _), size in parts.items():
            reads[key] = min(reads.get(key, 0) + size, self.sizes[key])
        return reads

    def count(self, effect: Effect) -> int:
        """Return the bytes of what is still data of what an operation reads and writes."""
        both = (*effect.reads.items(), *effect.writes.items())
        return sum(size for key, size in both if key in self.data)


def tensors_in(values: Any) -> list[Any]:
    """Return all tensors in lists, dictionaries and objects such as what a module returns."""
    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, Mapping):
        values = values.values()
    elif hasattr(values, "__dataclass_fields__"):
        values = vars(values).values()
    elif not isinstance(values, list | tuple | set):
        return []
    return [each for value in values for each in tensors_in(value)]


def _stored(tensor: Any) -> int:
    return int(tensor.untyped_storage().nbytes()) // int(tensor.element_size())


def _width(tensor: Any) -> int:
    """Bytes of a number: 2 of a floating-point one, whatever its type."""
    if tensor.dtype.is_complex:
        return 4
    return 2 if tensor.dtype.is_floating_point else int(tensor.element_size())
