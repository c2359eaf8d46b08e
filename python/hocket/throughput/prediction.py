"""The prediction for a training iteration on a real machine: time, operations per second and error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING

from hocket._options import options_of
from hocket._results import HIDDEN, Result, figure, said
from hocket.errors import SpecError
from hocket.throughput.constants import (
    Constants,
    ExpectedError,
    owners_of,
    shipped,
)
from hocket.throughput.cost_model import CONSTANTS, parts_of
from hocket.throughput.job import PRECISIONS, Job
from hocket.throughput.machine import CORES, Machine, machine_of, share_of_power, usual_hardware
from hocket.throughput.options import TrainingPredictionOptions
from hocket.throughput.stack import Stack
from hocket.topology.sources import TopologyLike, as_topology
from hocket.training.parallel import Parallel
from hocket.units import parse_bandwidth
from hocket.workload import as_transformer
from hocket.workload.transformers import Transformer

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hocket.throughput.options import TrainingPredictionKeywords


@dataclass(frozen=True)
class PredictedPart(Result):
    """A part of an iteration: products of matrices, attention, the pipeline bubble, ..."""

    part: str
    time_s: float


def _parts(parts: dict[str, float]) -> list[PredictedPart]:
    return [PredictedPart(*each) for each in parts.items()]


@dataclass(frozen=True)
class Predicted(Result):
    """The model and its machine."""

    npu: str
    npus: int
    npus_per_node: int
    power_share: float
    stack: str
    parallel: Parallel
    batch: int
    micro_batch: int
    recompute: str
    sequence_parallel: bool
    precision: str


@dataclass(frozen=True)
class TrainingPrediction(Result):
    """The time of an iteration.

    Attributes
    ----------
    job, machine, stack
        What is trained, on what and by which program.
    parts
        What the iteration consists of [s].
    error
        How far predictions of such runs were off, without anything of their source; None if the efficiency
        is stated.
    assumed
        Constants without a part of the accelerator or of the program, and what they are taken from.
    """

    job: Job = field(metadata=HIDDEN)
    machine: Machine = field(metadata=HIDDEN)
    stack: Stack = field(metadata=HIDDEN)
    parts: dict[str, float] = field(metadata=said(of=_parts))
    error: ExpectedError | None = field(metadata=said("expected_error"))
    assumed: tuple[str, ...]

    @property
    @figure(inline=Predicted)
    def _predicted(self) -> Predicted:
        job = self.job
        return Predicted.taken_from(
            job,
            npu=self.machine.accelerator.name,
            npus=job.parallel.npus,
            npus_per_node=self.machine.hardware.npus,
            power_share=self.machine.power,
            stack=self.stack.name,
            parallel=replace(job.parallel, micro_batches=job.micro_batches),
        )

    @property
    @figure("time_s")
    def seconds(self) -> float:
        """Time of an iteration [s]."""
        return sum(self.parts.values())

    @property
    @figure("tflops_per_npu")
    def tflops(self) -> float:
        """Teraflops of an NPU; recomputation is not counted, all scores of attention are."""
        return self.job.flops / (self.seconds * self.job.parallel.npus) * 1e-12

    @property
    @figure("hardware_tflops_per_npu")
    def hardware_tflops(self) -> float:
        """Teraflops of an NPU with what is computed again."""
        return self.job.hardware_flops / (self.seconds * self.job.parallel.npus) * 1e-12

    @property
    @figure()
    def share_of_peak(self) -> float:
        """Share of the accelerator's peak that `tflops` is (MFU)."""
        return self.tflops * 1e12 / (self.machine.peak * PRECISIONS[self.job.precision])

    @property
    @figure("tokens_per_s_per_npu")
    def tokens_per_s(self) -> float:
        """Tokens a second of an NPU."""
        return self.job.tokens / (self.seconds * self.job.parallel.npus)


def predict_training(
    model: Transformer | str | PathLike[str],
    topology: TopologyLike | None = None,
    *,
    parallel: Parallel | str,
    batch: int,
    options: TrainingPredictionOptions | None = None,
    **keywords: Unpack[TrainingPredictionKeywords],
) -> TrainingPrediction:
    """Predict the time of an iteration on a real machine, and the error of the prediction.

    Parameters
    ----------
    model
        A transformer, or the name or file of a workload that is one.
    topology
        A network whose groups are nodes like those that are used, of which there may be more; by default
        DGX nodes of the accelerator.
    parallel
        Sizes, also as text: ``"dp=8,tp=8,pp=8,interleave=2"``.
    batch
        Sequences of an iteration, of all replicas together.
    options
        What computes, by which program, and how.
    keywords
        Any option of :class:`hocket.TrainingPredictionOptions` by its name, in place of the one in
        `options`.

    Raises
    ------
    SpecError
        Naming what makes no sense, or what has to be said.
    InfeasibleError
        If nodes of the topology have a single NPU, or do not reach each other.

    Examples
    --------
    >>> import hocket as hk
    >>> found = hk.predict_training("gpt3-175b", parallel="dp=4,tp=8,pp=12,interleave=2", batch=1536,
    ...                             npu="a100", stack="megatron-2021")
    >>> 145 < found.hardware_tflops < 155  # 153 were measured
    True
    """
    asked = options_of(TrainingPredictionOptions, options, keywords)
    program = asked.program
    sizes = as_transformer(model)
    if asked.sequence is not None:
        sizes = replace(sizes, sequence=asked.sequence)
    again, cut = asked.recompute, asked.sequence_parallel
    job = Job(
        model=sizes,
        parallel=Parallel.parse(parallel) if isinstance(parallel, str) else parallel,
        batch=batch,
        micro_batch=asked.micro_batch,
        recompute=program.recompute if again is None else again,
        sequence_parallel=program.cuts_sequence if cut is None else cut,
        precision=asked.precision,
    )
    machine = _machine(asked, topology, job)
    constants = shipped()
    if asked.efficiency is None:
        return predict_job(job, machine, program, constants)
    # How far a stated efficiency is off is not known.
    values = constants.values(program, machine, job.precision)
    values["efficiency"] = float(asked.efficiency)
    parts = parts_of(job, machine, program, values)
    assumed = _assumed(job, machine, program, constants, stated=("efficiency",))
    return TrainingPrediction(job, machine, program, parts, None, assumed)


def predict_job(
    job: Job, machine: Machine, stack: Stack, constants: Constants
) -> TrainingPrediction:
    """Do as :func:`predict_training`, for a job on a machine.

    Raises
    ------
    SpecError
        If nothing is known of the accelerator.
    """
    if not constants.knows(machine.family):
        known = [chip for chip in CORES if constants.knows(chip)]
        raise SpecError(
            "npu",
            f"no runs of {machine.accelerator.name!r} were fitted, only of {', '.join(known)}",
            "give efficiency, the share of the peak that large products reach",
        )
    values = constants.values(stack, machine, job.precision)
    parts = parts_of(job, machine, stack, values)
    error = constants.expected(stack, machine, job.precision)
    return TrainingPrediction(
        job, machine, stack, parts, error, _assumed(job, machine, stack, constants)
    )


def _machine(asked: TrainingPredictionOptions, topology: TopologyLike | None, job: Job) -> Machine:
    chip = asked.accelerator
    if topology is None:
        machine = Machine(chip, usual_hardware(chip))
    else:
        machine = machine_of(as_topology(topology), chip)
    if asked.nic_bandwidth is not None:
        rate = parse_bandwidth(asked.nic_bandwidth, field="nic_bandwidth")
        machine = replace(machine, hardware=replace(machine.hardware, nic_bandwidth=float(rate)))
    if asked.power is not None:
        machine = replace(machine, power=share_of_power(asked.power, chip))
    needed, there = job.parallel.npus, machine.hardware.npus
    if needed > there and not machine.hardware.nic_bandwidth:
        wrong = f"it is one node of {there} NPUs, and the run needs {needed:,}"
        raise SpecError("topology", wrong, "name one of several nodes, or give nic_bandwidth")
    return machine


def _assumed(
    job: Job, machine: Machine, stack: Stack, constants: Constants, stated: Sequence[str] = ()
) -> tuple[str, ...]:
    """Name constants of the law that have no part of the accelerator or of the program."""
    is_unused = {
        "scores": stack.fused,
        "attention": not stack.fused,
        "exposed": not stack.hides_data or job.parallel.tp > 1 or job.parallel.zero == 3,
    }
    found = []
    for name in CONSTANTS:
        if is_unused.get(name, False) or name in stated:
            continue
        owners = owners_of(name, stack, machine, job.precision)
        # Parts that matter: of the accelerator, of the program, or what all share.
        missing = [owner for owner in owners[1:3] or owners if not constants.has(owner, name)]
        if missing:
            found.append(f"{name}: nothing of {' and '.join(missing)} was fitted")
        elif stack.borrows and len(owners) > 1:
            found.append(f"{name}: that of {stack.constants}")
    return tuple(found)
