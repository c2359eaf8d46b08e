"""Operations of our own that have shapes and no numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def operation(name: str, schema: str, shapes: Callable[..., Any]) -> Any:
    """Add ``torch.ops.hocket.NAME``, whose results are what ``shapes`` makes of its operands."""
    added = torch.library.custom_op(f"hocket::{name}", _none, mutates_args=(), schema=schema)
    added.register_fake(shapes)
    return added


def _none(*_given: Any) -> Any:
    raise NotImplementedError("only shapes are traced")
