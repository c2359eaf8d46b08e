"""Normalization by root mean squares as one operation, as accelerators carry it out.

It reads its input and writes the result and a scale for each row; backward it reads the gradient, the
input and the scales, and writes the input's gradient.
"""

from __future__ import annotations

from typing import Any

import torch

from hocket.workload.torch.shapes import operation


def rms_norm(data: Any, sizes: Any, weight: Any = None, eps: float | None = None) -> Any:
    """Stand in for PyTorch's operation, which the meta device takes apart."""
    if tuple(data.shape[data.dim() - len(sizes) :]) != tuple(sizes):
        raise ValueError(f"rms_norm: normalizes {list(sizes)}, not the end of {list(data.shape)}")
    return torch.ops.hocket.rms_norm(data, weight, len(sizes))[0]


def _result(data: Any, weight: Any, sizes: int) -> Any:
    return torch.empty_like(data), data.new_empty(data.shape[: data.dim() - sizes])


def _gradients(gradient: Any, data: Any, scales: Any, weight: Any) -> Any:
    of_weight = data.new_empty(0) if weight is None else torch.empty_like(weight)
    return torch.empty_like(data), of_weight


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[0], output[1], inputs[1])


def _undo(ctx: Any, gradient: Any, _of_scales: Any) -> Any:
    data, scales, weight = ctx.saved_tensors
    of_data, of_weight = torch.ops.hocket.rms_norm_backward(gradient, data, scales, weight)
    return of_data, None if weight is None else of_weight, None


operation(
    "rms_norm", "(Tensor data, Tensor? weight, int sizes) -> (Tensor, Tensor)", _result
).register_autograd(_undo, setup_context=_keep)
operation(
    "rms_norm_backward",
    "(Tensor gradient, Tensor data, Tensor scales, Tensor? weight) -> (Tensor, Tensor)",
    _gradients,
)
