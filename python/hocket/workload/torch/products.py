"""Operations of products of matrices and convolutions, as PyTorch's own counter has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from hocket.workload.torch.storages import tensors_in

_ATEN = torch.ops.aten
_VECTOR = {_ATEN.mv: 0, _ATEN.addmv: 1, _ATEN.dot: 0}
"""Products with a vector, which PyTorch's counter leaves out, and the place of the first operand."""


@dataclass(frozen=True)
class Step:
    """Work of an operation: FLOPs, and the tensors that it takes and gives."""

    flops: int
    takes: list[Any]
    gives: list[Any]


def steps_of(func: Any, args: Any, kwargs: Any, result: Any) -> list[Step]:
    """Return the steps of a call: one, or for the gradients of a convolution one for each operand.

    Each of these takes as much as the convolution. PyTorch's formula for both is not used: it takes the
    weight gradient of a grouped convolution for one without groups.
    """
    packet = func._overloadpacket
    if packet is _ATEN.convolution_backward:
        return _of_convolution(args, result)
    takes, gives = tensors_in([*args, *kwargs.values()]), tensors_in(result)
    if packet in _VECTOR:
        return [Step(2 * int(args[_VECTOR[packet]].numel()), takes, gives)]
    count = flop_registry.get(packet)
    flops = 0 if count is None else int(count(*args, **kwargs, out_val=result))
    return [Step(flops, takes, gives)]


def _of_convolution(args: Any, result: Any) -> list[Step]:
    gradient, data, weight = args[:3]
    transposed, wanted = args[7], args[10]
    count = flop_registry[_ATEN.convolution]
    flops = int(count(data, weight, None, 0, 0, 0, transposed, out_val=gradient))
    steps = []
    if wanted[0]:
        steps.append(Step(flops, [gradient, weight], [result[0]]))
    if wanted[1]:
        steps.append(Step(flops, [gradient, data], [result[1]]))
    if wanted[2]:
        steps.append(Step(0, [gradient], [result[2]]))
    return steps
