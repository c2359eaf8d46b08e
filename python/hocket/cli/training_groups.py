"""Options of training that ``hocket train`` and ``hocket train --compare`` share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from hocket.cli import complete, options
from hocket.cli.command import Option
from hocket.errors import SpecError

if TYPE_CHECKING:
    from hocket.training import TrainingOptions
    from hocket.workload.accelerators import Accelerator
    from hocket.workload.systolic import Chiplet

_CHIPLET = "chiplet"
_ALL = "all"


@dataclass(frozen=True)
class Training:
    """The accelerator and the course of an iteration."""

    panel: ClassVar[str] = "Training"

    samples: Annotated[
        int | None,
        Option("--samples", help="Samples per replica and iteration. Default: 32."),
    ] = None
    iterations: Annotated[int, Option("--iterations", help="Number of iterations to simulate.")] = 1
    npu: Annotated[
        str,
        Option(
            "--npu",
            complete=complete.devices,
            help="Accelerator that computes, such as v100, a100 or h100, or chiplet.",
        ),
    ] = "a100"
    efficiency: Annotated[
        float | None,
        Option(
            "--efficiency",
            help="Share of the accelerator's peak that computation reaches, such as 0.5. "
            "Default: 1.",
        ),
    ] = None
    precision_bits: Annotated[
        int, Option("--precision-bits", help="Bits of weights, gradients and activations.")
    ] = 16
    bucket: Annotated[
        str,
        Option("--bucket", rare=True, help="Bytes of gradients that are reduced together, or all."),
    ] = "25 MiB"
    recompute: Annotated[
        bool,
        Option(
            "--recompute", help="Compute forward passes again in the backward pass, to save memory."
        ),
    ] = False
    overlap_tensor: Annotated[
        bool,
        Option(
            "--overlap-tensor/--no-overlap-tensor",
            rare=True,
            help="Sum input gradients while weight gradients are computed, or afterwards.",
        ),
    ] = True
    update: Annotated[
        bool,
        Option(
            "--update/--no-update",
            rare=True,
            help="Include the time of the weight update, or leave it out.",
        ),
    ] = True
    order: Annotated[
        str,
        Option(
            "--order",
            rare=True,
            help="Order in which a dimension serves collectives: fifo or lifo.",
        ),
    ] = "fifo"
    memory_check: Annotated[
        bool,
        Option(
            "--memory-check/--no-memory-check",
            help="Refuse a model that does not fit into the memory of an NPU, or run it anyway.",
        ),
    ] = True
    chunks: options.Chunks = None
    cache: options.Cache = True

    def training(self, **more: Any) -> TrainingOptions:
        """Return the options as one value."""
        from hocket.training import TrainingOptions

        given = {name: value for name, value in vars(self).items() if value is not None}
        read = {
            "npu": _npu(self.npu),
            "bucket": _bucket(self.bucket),
            "efficiency": self.efficiency,
        }
        return TrainingOptions(**{**given, **read, **more})


def _npu(name: str) -> Accelerator | Chiplet:
    from hocket.workload.accelerators import ACCELERATORS
    from hocket.workload.systolic import Chiplet

    if name == _CHIPLET:
        return Chiplet()
    options.choice("--npu", name, (*ACCELERATORS, _CHIPLET))
    return ACCELERATORS[name]


def _bucket(text: str) -> int | None:
    from hocket.units import parse_size

    if text == _ALL:
        return None
    try:
        return parse_size(text, field="--bucket")
    except SpecError as error:
        raise error.but(remedy=f"{error.remedy}, or all") from None
