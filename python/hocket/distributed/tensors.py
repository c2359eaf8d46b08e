"""Tensors as arrays of the same memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from hocket.errors import SpecError

_CODES = {
    "float64": "<f8",
    "float32": "<f4",
    "float16": "<f2",
    "bfloat16": "<u2",
    "float8_e4m3fn": "|u1",
    "float8_e5m2": "|u1",
    "int64": "<i8",
    "int32": "<i4",
    "int16": "<i2",
    "int8": "|i1",
    "uint64": "<u8",
    "uint32": "<u4",
    "uint16": "<u2",
    "uint8": "|u1",
    "bool": "|b1",
    "complex64": "<c8",
    "complex128": "<c16",
}
"""How NumPy writes types of tensors; those that it does not have, as unsigned integers."""

UNKNOWN = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
"""Types that NumPy does not have."""


class _Memory:
    """Memory of a tensor, as NumPy asks for it."""

    def __init__(self, tensor: torch.Tensor, code: str) -> None:
        self.tensor = tensor
        self.__array_interface__ = {
            "version": 3,
            "typestr": code,
            "shape": (tensor.numel(),),
            "data": (tensor.data_ptr(), False),
        }


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor in one piece, and no view that conjugates or negates when read: itself, or a copy.

    One that has no such piece, as a sparse one, is refused by :func:`array_of`.
    """
    if tensor.layout is not torch.strided:
        return tensor
    return tensor.resolve_conj().resolve_neg().contiguous()


def array_of(tensor: torch.Tensor) -> tuple[npt.NDArray[Any], str | None]:
    """Return a tensor's elements in a row, and the type that NumPy does not know.

    Raises
    ------
    SpecError
        If it is not in this host's memory in one piece, or of a type without numbers.
    """
    name = str(tensor.dtype).removeprefix("torch.")
    if tensor.device.type != "cpu":
        raise SpecError("tensor", f"is on {tensor.device}", "move it to the CPU")
    if tensor.layout is not torch.strided:
        raise SpecError("tensor", "is sparse", "call to_dense(); only all_reduce takes sparse ones")
    if name not in _CODES:
        raise SpecError("tensor", f"{name} cannot be sent", f"one of {', '.join(_CODES)}")
    if not tensor.is_contiguous():
        raise SpecError("tensor", "is not contiguous", "call contiguous()")
    array = np.asarray(_Memory(tensor, _CODES[name]))
    return array, name if name in UNKNOWN else None
