"""Scaled dot-product attention as one operation, as accelerators carry it out.

On the meta device PyTorch takes it apart: scores are written and read again, which for long sequences is
most of a model's traffic. Fused kernels (Dao et al., FlashAttention, 2022) read queries, keys and values,
write the result and a number for each query, and compute the scores once more in the backward pass.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.flop_counter import register_flop_formula

from hocket.workload.torch.shapes import operation


def attention(query: Any, key: Any, value: Any, mask: Any = None, *more: Any, **named: Any) -> Any:
    """Stand in for PyTorch's operation; where a gradient of the mask is needed, take it apart as well."""
    mask = named.pop("attn_mask", mask)
    if _fits(query, key, value) and not (mask is not None and mask.requires_grad):
        return torch.ops.hocket.attention(query, key, value, mask)[0]
    return torch.ops.aten._scaled_dot_product_attention_math(
        query, key, value, mask, *more, **named
    )[0]


def _fits(query: Any, key: Any, value: Any) -> bool:
    """Return whether it is plain attention, or groups of heads share keys and values."""
    each = (query, key, value)
    if not all(one.is_meta and one.dim() >= 3 for one in each):
        return False
    if query.shape[-1] != key.shape[-1] or key.shape[:-1] != value.shape[:-1]:
        return False
    outer, inner = query.shape[:-2], key.shape[:-2]
    return bool(outer[:-1] == inner[:-1] and inner[-1] and outer[-1] % inner[-1] == 0)


def _result(query: Any, key: Any, value: Any, mask: Any) -> Any:
    return query.new_empty((*query.shape[:-1], value.shape[-1])), query.new_empty(query.shape[:-1])


def _gradients(gradient: Any, query: Any, key: Any, value: Any, *_kept: Any) -> Any:
    return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:3], *output, inputs[3])


def _undo(ctx: Any, gradient: Any, _of_sums: Any) -> Any:
    return (*torch.ops.hocket.attention_backward(gradient, *ctx.saved_tensors), None)


operation(
    "attention",
    "(Tensor query, Tensor key, Tensor value, Tensor? mask) -> (Tensor, Tensor)",
    _result,
).register_autograd(_undo, setup_context=_keep)
operation(
    "attention_backward",
    "(Tensor gradient, Tensor query, Tensor key, Tensor value, Tensor result, Tensor sums, "
    "Tensor? mask) -> (Tensor, Tensor, Tensor)",
    _gradients,
)


@register_flop_formula(torch.ops.hocket.attention)  # type: ignore[untyped-decorator, unused-ignore]
def _flops(query: Any, key: Any, value: Any, *_more: Any, **_shapes: Any) -> int:
    """Count the products of queries with keys, and of their weights with values."""
    return _pairs(query, key) * int(query[-1] + value[-1])


@register_flop_formula(torch.ops.hocket.attention_backward)  # type: ignore[untyped-decorator, unused-ignore]
def _flops_backward(
    gradient: Any, query: Any, key: Any, value: Any, *_more: Any, **_shapes: Any
) -> int:
    """Count the scores once more, the gradients of scores and values, and of queries and keys."""
    return _pairs(query, key) * int(3 * query[-1] + 2 * value[-1])


def _pairs(query: Any, key: Any) -> int:
    """Return two operations for each query and key of each head; a causal mask halves nothing."""
    count = 2 * int(key[-2])
    for size in query[:-1]:
        count *= int(size)
    return count
