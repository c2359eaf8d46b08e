"""Operations that accelerators carry out at once, and that PyTorch takes apart on the meta device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from hocket.workload.torch.attention import attention
from hocket.workload.torch.normalization import rms_norm


@contextmanager
def fused() -> Iterator[None]:
    """Keep attention, dropout and normalization by root mean squares in one piece."""
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("scaled_dot_product_attention", attention, "AutogradMeta")
        library.impl("dropout", _dropout, "AutogradMeta")
        library.impl("rms_norm", rms_norm, "AutogradMeta")
        yield


def _dropout(data: Any, share: float, train: bool) -> Any:
    return torch.ops.aten.native_dropout(data, share, True)[0] if train and share > 0 else data
