"""How training goes, where users may choose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hocket._checks import one_of, truth, whole
from hocket.collectives.collective import check_chunks
from hocket.errors import SpecError
from hocket.units import parse_size
from hocket.workload.accelerators import Accelerator, accelerator
from hocket.workload.systolic import Chiplet

if TYPE_CHECKING:
    from typing_extensions import TypedDict

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


_MAX_ITERATIONS = 10_000


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How training goes.

    Attributes
    ----------
    npu
        What computes: an :class:`hocket.Accelerator` or one's name, or a :class:`hocket.Chiplet`, whose
        cycles count then.
    efficiency
        The share of an accelerator's peak that is reached; by default the accelerator's own.
    samples
        Of each replica in an iteration (images, sequences, ...).
    iterations
        How many follow each other.
    precision_bits
        Of weights, gradients and activations.
    bucket
        Bytes of gradients that are collected before their all-reduce is due; ``None``: those of all layers.
    recompute
        Whether the backward pass computes what the forward pass did not keep: of each group of layers
        (:func:`hocket.training.stages.units`) all but what comes in.
    overlap_tensor
        Whether an input gradient is summed over a tensor-parallel group while the weight gradient is
        computed, rather than after it.
    update
        Whether the weights' update takes time.
    order
        Which of an NPU's collectives a dimension serves first: ``fifo``, ``lifo``.
    chunks
        Of each collective; 64 by default on dimensions, else the algorithm's own.
    memory_check
        Whether to refuse what does not fit the NPU's memory.
    cache
        Whether ``auto`` remembers what it chooses for each collective, and takes what it chose before.

    Raises
    ------
    SpecError
        Naming the field, for a value that makes no sense.

    References
    ----------
    Li et al.: PyTorch Distributed, VLDB 2020, section 3.2.3: buckets.
    """

    npu: Accelerator | Chiplet | str = "a100"
    efficiency: float | None = None
    samples: int = 32
    iterations: int = 1
    precision_bits: int = 16
    bucket: int | str | None = 25 * 2**20
    recompute: bool = False
    overlap_tensor: bool = True
    update: bool = True
    order: str = "fifo"
    chunks: int | None = None
    memory_check: bool = True
    cache: bool = True

    def __post_init__(self) -> None:
        limits = {"samples": 1 << 24, "iterations": _MAX_ITERATIONS, "precision_bits": 1024}
        for name, most in limits.items():
            object.__setattr__(self, name, whole(name, getattr(self, name), 1, most))
        if self.bucket is not None:
            is_text = isinstance(self.bucket, str)
            size = parse_size(self.bucket, field="bucket") if is_text else self.bucket
            object.__setattr__(self, "bucket", whole("bucket", size, 1, 1 << 62))
        one_of("order", self.order, ("fifo", "lifo"))
        check_chunks(self.chunks)
        truth("cache", self.cache)
        self.accelerator()

    @property
    def bucket_bytes(self) -> int | None:
        """Bytes of gradients that are reduced together; ``None``: those of all layers."""
        return None if self.bucket is None else int(self.bucket)

    def accelerator(self) -> Accelerator:
        """Return what computes; of a chiplet, whose layers have times of their own, a stand-in."""
        if isinstance(self.npu, Chiplet):
            if self.efficiency is not None:
                raise SpecError(
                    "efficiency", "a chiplet's cycles count as they are", "leave it out"
                )
            return Accelerator("chiplet", "1 TFLOP/s")
        found = self.npu if isinstance(self.npu, Accelerator) else accelerator(self.npu)
        return found if self.efficiency is None else replace(found, efficiency=self.efficiency)
