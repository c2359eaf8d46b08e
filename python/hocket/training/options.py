"""Options of training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hocket._checks import instance_of, one_of, truth, whole
from hocket._options import Size
from hocket.collectives.collective import check_chunks
from hocket.errors import SpecError
from hocket.units import parse_size
from hocket.workload.accelerators import ACCELERATORS, Accelerator, accelerator
from hocket.workload.systolic import Chiplet

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    from hocket.collectives.experts import Experts

    class TrainingKeywords(TypedDict, total=False):
        """The fields of :class:`TrainingOptions` as keywords of a call."""

        npu: Accelerator | Chiplet | str
        efficiency: float | None
        samples: int
        iterations: int
        precision_bits: int
        bucket: int | str | None
        recompute: bool
        overlap_tensor: bool
        update: bool
        order: str
        chunks: int | None
        memory_check: bool
        cache: bool
        dispatch: str | None


_MAX_ITERATIONS = 10_000
CHIPLET = "chiplet"
"""The name of a chiplet with its own defaults."""
ALL_TO_ALL = "all-to-all"
"""Tokens as if every pair of NPUs exchanged as many."""
_WORDS = "write it as skew=20,nodes=4"
_OF_MODEL = ("experts", "top", "size", "routes")
"""Keys of a dispatch that a model says."""
ALL = "all"
"""A bucket of the gradients of all layers."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """The options of training.

    Attributes
    ----------
    samples
        Samples per replica and iteration (images, sequences, ...).
    iterations
        Number of iterations to simulate, one after the other.
    npu
        Accelerator that computes, such as v100, a100 or h100, or chiplet.
    efficiency
        Share of the accelerator's peak that computation reaches, such as 0.5. Default: its own.
    precision_bits
        Bits of weights, gradients and activations.
    bucket
        Bytes of gradients that are reduced together, or all.
    recompute
        Compute forward passes again in the backward pass, to save memory.
    overlap_tensor
        Sum input gradients while weight gradients are computed, or afterwards.
    update
        Include the time of the weight update, or leave it out.
    order
        Order in which a dimension serves collectives: fifo or lifo.
    memory_check
        Refuse a model that does not fit into the memory of an NPU, or run it anyway.
    chunks
        Number of equal slices of each collective, which are pipelined. Default: 64 on dimensions, otherwise
        chosen by the algorithm.
    cache
        For auto: reuse its earlier choice for each collective, and remember the new one.
    dispatch
        Tokens to experts: words of docs/moe.md, such as skew=20,nodes=4, or all-to-all. Default: an even
        dispatch, if the algorithm plans it.

    An NPU may also be a :class:`hocket.Accelerator`, or a :class:`hocket.Chiplet`, whose cycles count.
    `bucket` may be None for all. With `recompute`, the backward pass computes of each group of layers
    (:func:`hocket.training.stages.units`) all but what comes in.

    Raises
    ------
    SpecError
        Naming the field, for a value that makes no sense.

    References
    ----------
    Li et al.: PyTorch Distributed, VLDB 2020, section 3.2.3: buckets.
    """

    samples: int = 32
    iterations: int = 1
    npu: Accelerator | Chiplet | str = "a100"
    efficiency: float | None = None
    precision_bits: int = 16
    bucket: Size | None = "25 MiB"
    recompute: bool = False
    overlap_tensor: bool = True
    update: bool = True
    order: str = "fifo"
    memory_check: bool = True
    chunks: int | None = None
    cache: bool = True
    dispatch: str | None = None

    def __post_init__(self) -> None:
        limits = {"samples": 1 << 24, "iterations": _MAX_ITERATIONS, "precision_bits": 1024}
        for name, most in limits.items():
            object.__setattr__(self, name, whole(name, getattr(self, name), 1, most))
        object.__setattr__(self, "bucket", _bucket(self.bucket))
        if isinstance(self.npu, str) and self.npu == CHIPLET:
            object.__setattr__(self, "npu", Chiplet())
        one_of("order", self.order, ("fifo", "lifo"))
        check_chunks(self.chunks)
        truth("cache", self.cache)
        if self.dispatch is not None:
            instance_of(str, "dispatch", self.dispatch, _WORDS)
            self.experts()
        self.accelerator()

    @property
    def bucket_bytes(self) -> int | None:
        """Bytes of gradients that are reduced together; ``None``: those of all layers."""
        return None if self.bucket is None else int(self.bucket)

    def experts(self) -> Experts | None:
        """Return how tokens go to experts, without what a model says; ``None``: all-to-all."""
        if self.dispatch == ALL_TO_ALL:
            return None
        from hocket.collectives.yaml import (
            experts_from_words,
        )  # its library is loaded where it is used

        return experts_from_words(self.dispatch or "", "dispatch", said=_OF_MODEL)

    def accelerator(self) -> Accelerator:
        """Return what computes; of a chiplet, whose layers have times of their own, a stand-in."""
        if isinstance(self.npu, Chiplet):
            if self.efficiency is not None:
                raise SpecError(
                    "efficiency", "a chiplet's cycles count as they are", "leave it out"
                )
            return Accelerator("chiplet", "1 TFLOP/s")
        if isinstance(self.npu, Accelerator):
            found = self.npu
        else:
            one_of("npu", self.npu, (*ACCELERATORS, CHIPLET))
            found = accelerator(self.npu)
        return found if self.efficiency is None else replace(found, efficiency=self.efficiency)


def _bucket(given: int | str | None) -> int | None:
    if given is None or (isinstance(given, str) and given == ALL):
        return None
    try:
        size = parse_size(given, field="bucket") if isinstance(given, str) else given
    except SpecError as error:
        raise error.but(remedy=f"{error.remedy}, or {ALL}") from None
    return whole("bucket", size, 1, 1 << 62)
