"""A module's forward and backward pass on the meta device.

The backward pass is autograd's own, not derived from the forward one: so it has what it really reads and
writes, recomputation and sums of gradients included, and skips what nobody needs, such as the gradients
of data and of frozen weights. A hook before and after each node of autograd's graph says which layer's
forward operation it undoes.
"""

from __future__ import annotations

import copy
from typing import Any

import torch

from hocket.errors import SpecError
from hocket.workload.torch.failure import describe_failure
from hocket.workload.torch.fused import fused
from hocket.workload.torch.inputs import Inputs
from hocket.workload.torch.pass_record import PassRecord
from hocket.workload.torch.recorder import Recorder
from hocket.workload.torch.storages import tensors_in


def trace(module: Any, inputs: Inputs, batch: int) -> PassRecord:
    """Run the module once forward and once backward for so many samples, and note what that takes.

    Raises
    ------
    SpecError
        If it does not run, in one line: where, and what PyTorch says.
    """
    module = _on_meta(module)
    positional, named = inputs.tensors(batch)
    recorder = Recorder(module, [*tensors_in(positional), *tensors_in(named)])
    hooks = _follow(module, recorder)
    trained = [each for each in module.parameters() if each.requires_grad]
    step = "forward"
    try:
        with torch.enable_grad(), fused(), recorder:
            with torch.autograd.graph.saved_tensors_hooks(recorder.keep, lambda kept: kept):
                result = tensors_in(module(*positional, **named))
            ends = [each for each in result if each.requires_grad]
            seeds = [torch.empty(each.shape, dtype=each.dtype, device="meta") for each in ends]
            recorder.start_backward(result, ends, seeds)
            step = "backward"
            if trained and ends:
                torch.autograd.grad(ends, trained, seeds, allow_unused=True)
    except SpecError:
        raise
    except Exception as error:  # whatever the module's own code raises
        raise SpecError(None, _message(error, module, recorder, inputs, step)) from None
    finally:
        for hook in hooks:
            hook.remove()
    if trained and not ends:
        raise SpecError(
            None,
            f"module {type(module).__name__}: nothing that it gives depends on its parameters",
            "give one whose forward returns tensors to train",
        )
    recorder.tally.frozen = sum(p.numel() for p in module.parameters() if not p.requires_grad)
    return recorder.tally


def _on_meta(module: Any) -> Any:
    """Copy a module without its numbers; what is shared stays shared."""
    shared: dict[int, Any] = {}
    for each in module.parameters():
        if isinstance(each, torch.nn.parameter.UninitializedTensorMixin):
            raise SpecError(
                None,
                f"module {type(module).__name__}: has a lazy layer without its sizes",
                "run it once first",
            )
        empty = torch.empty_like(each, device="meta")
        shared[id(each)] = torch.nn.Parameter(empty, requires_grad=each.requires_grad)
    for part in module.modules():
        for each in (*part.buffers(recurse=False), *vars(part).values()):
            if isinstance(each, torch.Tensor) and id(each) not in shared:
                shared[id(each)] = torch.empty_like(each, device="meta", requires_grad=False)
    try:
        return copy.deepcopy(module, shared)
    except Exception as error:  # a module may hold anything
        raise SpecError(
            None,
            f"module {type(module).__name__}: cannot be copied: {describe_failure(error)}",
            "leave what it holds beside parameters and buffers out",
        ) from None


def _follow(module: Any, recorder: Recorder) -> list[Any]:
    """Notify the recorder whenever a part of the module is called and returns."""
    hooks = []
    for path, part in module.named_modules():
        name = path or type(module).__name__

        def enter(_part: Any, _given: Any, name: str = name) -> None:
            recorder.enter(name)

        def leave(_part: Any, _given: Any, _result: Any) -> None:
            recorder.leave()

        hooks.append(part.register_forward_pre_hook(enter))
        hooks.append(part.register_forward_hook(leave, always_call=True))
    return hooks


def _message(error: Exception, module: Any, recorder: Recorder, inputs: Inputs, step: str) -> str:
    where = f"module {type(module).__name__}: its {step} pass stops in {recorder.where}"
    text = describe_failure(error)
    if isinstance(error, NotImplementedError) or "meta tensor" in text.lower():
        return (
            f"{where}: an operation needs the values of its input, and only shapes are traced: {text}; "
            "leave that operation out"
        )
    return f"{where}: {text}; check that it takes {inputs}"
