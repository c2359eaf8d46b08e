"""The inputs of a module: shapes as text or numbers, or tensors, without their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from hocket._checks import is_decimal
from hocket.errors import SpecError
from hocket.units import shown

_FORM = "write sizes and type as 3x224x224, 128:int64 or scalar, after a name as tokens=128:int64"
_MAX_SIZES = 16
_LARGEST = 1 << 40
_BATCH = 2
"""Of a single sample PyTorch leaves copies out that it makes of any other number."""


@dataclass(frozen=True)
class Shape:
    """A tensor of one sample: the batch goes before its sizes."""

    sizes: tuple[int, ...]
    dtype: Any


@dataclass(frozen=True)
class Inputs:
    """Arguments of a module, for any batch.

    Attributes
    ----------
    positional, named
        Shapes, and whatever is not a tensor as it is.
    batch
        Samples to trace with.
    """

    positional: tuple[Any, ...]
    named: dict[str, Any]
    batch: int

    def tensors(self, batch: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments for so many samples, on the meta device."""
        return (
            tuple(_filled(each, batch) for each in self.positional),
            {name: _filled(each, batch) for name, each in self.named.items()},
        )

    def __str__(self) -> str:
        parts = [_describe_failure(each) for each in self.positional]
        parts += [f"{name}={_describe_failure(each)}" for name, each in self.named.items()]
        return ", ".join(parts) or "nothing"


def read_inputs(given: Any, batch: int | None) -> Inputs:
    """Read what :func:`hocket.from_torch.from_torch` takes as ``inputs``.

    Raises
    ------
    SpecError
        If one is neither a shape nor a tensor, or tensors differ in their batch.
    """
    positional: list[Any] = []
    named: dict[str, Any] = {}
    counts: dict[int, None] = {}
    if isinstance(given, Mapping):
        named = {str(key): _entry(value, counts) for key, value in given.items()}
    else:
        for each in _listed(given):
            if isinstance(each, str):
                key, shape = _from_text(each)
                if key in named:
                    raise SpecError(
                        None, f"input {shown(each)}: there are two of that name", "leave one"
                    )
                if key:
                    named[key] = shape
                    continue
                each = shape
            positional.append(_entry(each, counts))
    if len(counts) > 1:
        raise SpecError(
            "inputs",
            f"their first sizes are {' and '.join(map(str, counts))}, the samples of a batch",
            "make them the same",
        )
    own = next(iter(counts), None)
    if own is not None and batch is not None and own != batch:
        raise SpecError(
            "batch", f"the tensors given have {own} samples, not {batch}", "leave it out"
        )
    return Inputs(tuple(positional), named, own or batch or _BATCH)


def _listed(given: Any) -> list[Any]:
    if given is None:
        return []
    if isinstance(given, str | torch.Tensor) or _is_sizes(given):
        return [given]
    return list(given) if isinstance(given, list | tuple) else [given]


def _is_sizes(value: Any) -> bool:
    return (
        isinstance(value, tuple | torch.Size)
        and len(value) > 0
        and all(isinstance(each, int) and not isinstance(each, bool) for each in value)
    )


def _entry(value: Any, counts: dict[int, None]) -> Any:
    if isinstance(value, str):
        return _from_text(value)[1]
    if _is_sizes(value):
        return _checked(shown(value), tuple(value), torch.float32)
    if not isinstance(value, torch.Tensor):
        return value
    if value.dim() == 0 or value.shape[0] == 0:
        raise SpecError(
            None,
            f"input of shape {tuple(value.shape)}: has no batch",
            "make its first size the samples",
        )
    counts[value.shape[0]] = None
    return Shape(tuple(value.shape[1:]), value.dtype)


def _from_text(text: str) -> tuple[str, Shape]:
    name, equals, rest = text.rpartition("=")
    sizes, colon, kind = rest.partition(":")
    dtype = getattr(torch, kind, None) if colon else torch.float32
    if not isinstance(dtype, torch.dtype):
        raise SpecError(None, f"input {shown(text)}: there is no type {shown(kind)}", str(_FORM))
    if equals and not name.isidentifier():
        raise SpecError(None, f"input {shown(text)}: {shown(name)} is not a name", str(_FORM))
    parts = [] if sizes == "scalar" else sizes.lower().split("x")
    if not all(is_decimal(part, 19) for part in parts):
        raise SpecError(None, f"input {shown(text)}: {shown(sizes)} is not a shape", str(_FORM))
    return name, _checked(shown(text), tuple(map(int, parts)), dtype)


def _checked(text: str, sizes: tuple[int, ...], dtype: Any) -> Shape:
    numbers = 1
    for size in sizes:
        numbers *= size
    if len(sizes) > _MAX_SIZES or min(sizes, default=1) < 1 or numbers >= _LARGEST:
        raise SpecError(
            None,
            f"input {text}: is out of range",
            f"give up to {_MAX_SIZES} sizes of 1 or more, and fewer than 2^40 numbers",
        )
    return Shape(sizes, dtype)


def _filled(value: Any, batch: int) -> Any:
    if not isinstance(value, Shape):
        return value
    return torch.empty((batch, *value.sizes), dtype=value.dtype, device="meta")


def _describe_failure(value: Any) -> str:
    if not isinstance(value, Shape):
        return shown(value)
    sizes = "x".join(map(str, value.sizes)) or "scalar"
    kind = str(value.dtype).removeprefix("torch.")
    return sizes if kind == "float32" else f"{sizes}:{kind}"
