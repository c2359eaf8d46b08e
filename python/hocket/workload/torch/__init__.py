"""Workloads from PyTorch: a module is run once forward and once backward, without its numbers.

All tensors are on PyTorch's meta device, which computes shapes alone, so that a module of any size can be
traced. Operations of both passes are noted as PyTorch carries them out, and belong to the module whose
``forward`` is running. Nothing here needs PyTorch before :func:`from_torch` is called.
"""

from __future__ import annotations

import re
from typing import Any

from hocket._checks import whole
from hocket.errors import SpecError
from hocket.units import shown
from hocket.workload.layers import Workload

__all__ = ["from_torch", "need_torch"]

_LARGEST_BATCH = 1 << 20


def from_torch(
    module: Any, inputs: Any, *, batch: int | None = None, name: str | None = None
) -> Workload:
    """Trace a PyTorch module into a workload of layers by their costs.

    Parameters
    ----------
    module
        A ``torch.nn.Module``, left as it is; on the meta device it needs no memory.
    inputs
        Of its ``forward``: a shape for one sample as text (``"3x224x224"``, ``"128:int64"``, ``"scalar"``,
        ``"tokens=128:int64"`` by its name) or as a tuple of numbers, a tensor whose first dimension is the
        batch, or a list of such; ``None`` for nothing.
    batch
        Samples to trace with; default 2, or that of tensors. Costs are divided by it.
    name
        Of the workload; default the module's class.

    Returns
    -------
    Workload
        A layer for each call of a module that has parameters or multiplies; what other operations take
        is counted for the layer before. ``notes`` says what is not as it seems, such as costs that do
        not grow with the batch.

    Raises
    ------
    SpecError
        If PyTorch is not installed, the module does not run on such inputs, or needs their values.

    Complexity
    ----------
    Two forward and two backward passes without numbers: linear in the operations.
    """
    need_torch()
    import torch

    from hocket.workload.torch.inputs import read_inputs
    from hocket.workload.torch.layers import workload_of
    from hocket.workload.torch.trace import trace

    if not isinstance(module, torch.nn.Module):
        raise SpecError("module", f"{shown(module)} is not a torch.nn.Module", "give one")
    if batch is not None:
        whole("batch", batch, 1, _LARGEST_BATCH)
    title: Any = type(module).__name__ if name is None else name
    if not isinstance(title, str) or not re.fullmatch(r"[^\s,]{1,200}", title):
        raise SpecError(
            "name", f"{shown(title)} is not valid in a file", "leave spaces and commas out"
        )
    given = read_inputs(inputs, batch)
    once = trace(module, given, given.batch)
    try:
        twice = trace(module, given, 2 * given.batch)
    except SpecError:
        twice = None
    return workload_of(title, once, twice, given.batch, str(given))


def need_torch() -> None:
    """Refuse to go on without PyTorch.

    Raises
    ------
    SpecError
        If it is not installed.
    """
    try:
        import torch.utils.flop_counter  # noqa: F401
    except ImportError:
        raise SpecError(
            None, "a workload from PyTorch needs it: pip install 'hocket[torch]'"
        ) from None
