"""The user's choices for a predicted training run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hocket._checks import one_of, share_of_peak, truth, whole
from hocket._options import Rate
from hocket.throughput.job import PRECISIONS, RECOMPUTE, USUAL
from hocket.throughput.machine import share_of_power
from hocket.throughput.stack import STACKS, Stack
from hocket.units import parse_bandwidth
from hocket.workload.accelerators import Accelerator, accelerator

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    class TrainingPredictionKeywords(TypedDict, total=False):
        """The fields of :class:`TrainingPredictionOptions` as keywords of a call."""

        npu: Accelerator | str
        stack: str
        micro_batch: int
        sequence: int | None
        recompute: str | None
        sequence_parallel: bool | None
        precision: str
        nic_bandwidth: int | str | None
        power: int | None
        efficiency: float | None


_MOST = 1 << 24


@dataclass(frozen=True, kw_only=True)
class TrainingPredictionOptions:
    """The accelerator, the program, and how it computes.

    Attributes
    ----------
    npu
        Accelerator that computes, such as v100, a100, h100 or b200. Fitted: V100, A100, H100, H200,
        B200, GB200 and GB300.
    stack
        Program: megatron-core, megatron-2022, megatron-2021, megatron-2020, megatron-bridge,
        megatron-deepspeed, llm-foundry, fms-fsdp, torchtitan, maxtext, oneflow-2021 or deepspeed-2021.
    micro_batch
        Sequences that a replica computes at a time. Whether they fit into memory is not checked.
    sequence
        Tokens of a sequence. Default: the model's own.
    recompute
        Recomputation in the backward pass: none, selective or full. Default: as usual for the program.
    sequence_parallel
        Split along the sequence what tensor parallelism does not split. Default: as usual for the program.
    precision
        Precision of products: 16-bit, 8-bit or 4-bit.
    nic_bandwidth
        Bandwidth of all NICs of a node, such as ``"200 GB/s"``. Default: as in the network.
    power
        Power limit of an accelerator [W]: its speed is in proportion. Default: its nominal power.
    efficiency
        Share of the peak that large products reach on an accelerator that was not fitted.

    Raises
    ------
    SpecError
        Naming the field, for a value that makes no sense.
    """

    npu: Accelerator | str = "h100"
    stack: str = "megatron-core"
    micro_batch: int = 1
    sequence: int | None = None
    recompute: str | None = None
    sequence_parallel: bool | None = None
    precision: str = USUAL
    nic_bandwidth: Rate | None = None
    power: int | None = None
    efficiency: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.npu, Accelerator):
            accelerator(self.npu)
        one_of("stack", self.stack, list(STACKS))
        whole("micro_batch", self.micro_batch, 1, _MOST)
        if self.sequence is not None:
            whole("sequence", self.sequence, 1, _MOST)
        if self.recompute is not None:
            one_of("recompute", self.recompute, RECOMPUTE)
        if self.sequence_parallel is not None:
            truth("sequence_parallel", self.sequence_parallel)
        one_of("precision", self.precision, tuple(PRECISIONS))
        if self.nic_bandwidth is not None:
            parse_bandwidth(self.nic_bandwidth, field="nic_bandwidth")
        if self.power is not None:
            share_of_power(self.power, self.accelerator)
        if self.efficiency is not None:
            share_of_peak("efficiency", self.efficiency)

    @property
    def accelerator(self) -> Accelerator:
        """The accelerator that computes."""
        return self.npu if isinstance(self.npu, Accelerator) else accelerator(self.npu)

    @property
    def program(self) -> Stack:
        """The program."""
        return STACKS[self.stack]
