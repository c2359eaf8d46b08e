"""The results of this package as JSON values."""

from __future__ import annotations

from typing_extensions import TypedDict

from hocket.training.data import ParallelData


class ExpectedErrorData(TypedDict):
    """How far predictions were from runs that were not fitted: shares of the measured time."""

    median: float
    p90: float
    runs: int
    of: str
    """Which runs."""


class PartData(TypedDict):
    """A part of an iteration: products of matrices, attention, the pipeline bubble, ..."""

    part: str
    time_s: float


class TrainingPredictionData(TypedDict):
    """The time of an iteration on a real machine."""

    npu: str
    npus: int
    npus_per_node: int
    stack: str
    parallel: ParallelData
    batch: int
    micro_batch: int
    recompute: str
    sequence_parallel: bool
    precision: str
    time_s: float
    """Of an iteration."""
    tokens_per_s_per_npu: float
    tflops_per_npu: float
    """Operations of the model, recomputation not counted, all scores of attention counted."""
    hardware_tflops_per_npu: float
    """Recomputation counted."""
    share_of_peak: float
    """Of tflops_per_npu."""
    parts: list[PartData]
    """What the iteration consists of; the sum is its time."""
    expected_error: ExpectedErrorData | None
    """None where no run of such a program or cluster was predicted."""
    assumed: list[str]
    """Constants that were fitted for another program or accelerator, or not at all."""
