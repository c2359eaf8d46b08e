"""Workloads of PyTorch modules, under the name that users import (docs/from-torch.md)."""

from hocket.workload.torch import from_torch

__all__ = ["from_torch"]
