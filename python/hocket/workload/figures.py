"""Workloads as data: those that are shipped, layers by their costs, and cycles on a chiplet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil

from hocket._results import Column, Result, figure, said
from hocket.workload.costs import Block, Work
from hocket.workload.layers import Workload, blocks_of
from hocket.workload.systolic import Chiplet, WorkloadCycles

_PASSES = ("forward", "input_gradient", "weight_gradient")
_PLANE = "{0[0]}x{0[1]}"


@dataclass(frozen=True)
class ListedWorkload(Result):
    """A shipped workload."""

    name: str = field(metadata=said(column=Column("workload")))
    description: str = field(
        metadata=said(column=Column("what it is", is_prose=True, after="parameters"))
    )
    layers: int = field(metadata=said(column=Column("layers")))
    parameters: int = field(metadata=said(column=Column("parameters")))


@dataclass(frozen=True)
class Counts(Result):
    """Operations and bytes."""

    flops: int
    bytes: int


@dataclass(frozen=True)
class PassFigures(Counts):
    """The cost of one pass of a layer for one sample."""

    time_ps: int | None
    """Where it was measured."""

    @classmethod
    def of(cls, work: Work) -> PassFigures:
        """Return those of a pass."""
        return cls(work.flops, work.bytes, None if work.time_ps is None else ceil(work.time_ps))


def _passes(block: Block) -> dict[str, PassFigures]:
    return {name: PassFigures.of(getattr(block, name)) for name in _PASSES}


@dataclass(frozen=True)
class LayerCosts(Result):
    """A layer by its costs."""

    name: str
    forward: PassFigures
    input_gradient: PassFigures
    weight_gradient: PassFigures
    parameters: int
    inputs: int
    outputs: int
    kept_numbers: int | None = field(metadata=said("kept"))
    split: str
    experts: int
    routed: int
    top: int
    is_table: bool = field(metadata=said("table"))
    joins: str | None


@dataclass(frozen=True)
class CostFigures(Result):
    """A workload by the costs of its layers."""

    name: str
    parameters: int
    forward_flops: int
    backward_flops: int
    layers: list[LayerCosts]
    notes: list[str]
    source: list[str]

    @classmethod
    def of(cls, workload: Workload) -> CostFigures:
        """Return those of a workload."""
        blocks = blocks_of(workload)
        forward = sum(each.forward.flops for each in blocks if each.forward.time_ps is None)
        return cls(
            workload.name,
            workload.parameters,
            forward,
            sum(each.flops for each in blocks) - forward,
            [LayerCosts.taken_from(each, **_passes(each)) for each in blocks],
            list(workload.notes),
            list(workload.source),
        )


@dataclass(frozen=True)
class TracedLayer(Result):
    """A layer of a PyTorch module."""

    name: str
    forward: Counts
    input_gradient: Counts
    weight_gradient: Counts
    parameters: int
    inputs: int
    outputs: int
    kept: int | None


@dataclass(frozen=True)
class TracedFigures(Result):
    """A PyTorch module as a workload."""

    name: str
    parameters: int
    forward: Counts
    input_gradient: Counts
    weight_gradient: Counts
    kept: int
    layers: list[TracedLayer]
    notes: list[str]

    @classmethod
    def of(cls, workload: Workload) -> TracedFigures:
        """Return those of a workload that was made of a module."""
        layers = [
            TracedLayer.taken_from(
                each, **{name: Counts.taken_from(getattr(each, name)) for name in _PASSES}
            )
            for each in workload.layers
        ]
        totals = {name: _sum(getattr(each, name) for each in layers) for name in _PASSES}
        kept = sum(each.kept or 0 for each in layers)
        return cls.taken_from(workload, layers=layers, kept=kept, **totals, notes=[*workload.notes])


def _sum(counts: Iterable[Counts]) -> Counts:
    every = list(counts)
    return Counts(sum(each.flops for each in every), sum(each.bytes for each in every))


@dataclass(frozen=True)
class LayerCycleFigures(Result):
    """Cycles of a layer on a chiplet, and its dimensions."""

    name: str = field(metadata=said(column=Column("layer", is_prose=True)))
    input: list[int] = field(metadata=said(column=Column("input", write=_PLANE)))
    """Height and width."""
    filter: list[int] = field(metadata=said(column=Column("filter", write=_PLANE)))
    """Height and width."""
    channels: int = field(metadata=said(column=Column("channels")))
    filters: int = field(metadata=said(column=Column("filters")))
    stride: int = field(metadata=said(column=Column("stride")))
    times: int = field(metadata=said(column=Column("times")))
    parameters: int = field(metadata=said(column=Column("parameters")))
    row_parameters: int
    gradient_bytes: int = field(
        metadata=said(column=Column("gradient bytes", write="{:,}", unit="count"))
    )
    forward_cycles: int = field(metadata=said(column=Column("forward")))
    input_gradient_cycles: int
    weight_gradient_cycles: int

    @property
    @figure(only="table", column=Column("backward"))
    def backward_cycles(self) -> int:
        """Cycles of both backward passes."""
        return self.input_gradient_cycles + self.weight_gradient_cycles


@dataclass(frozen=True)
class CycleFigures(Result):
    """Cycles of a workload on a chiplet."""

    name: str
    samples: int
    parameters: int
    row_parameters: int
    gradient_bytes: int
    forward_cycles: int
    backward_cycles: int
    cycles: int
    time_ps: int
    layers: list[LayerCycleFigures]
    notes: list[str]
    source: list[str]

    @classmethod
    def of(
        cls, workload: Workload, chiplet: Chiplet, cycles: WorkloadCycles, samples: int
    ) -> CycleFigures:
        """Return those of so many samples."""
        bits = chiplet.precision_bits
        layers = [
            LayerCycleFigures.taken_from(
                each.layer,
                input=[each.layer.input_height, each.layer.input_width],
                filter=[each.layer.filter_height, each.layer.filter_width],
                gradient_bytes=each.layer.gradient_bytes(bits),
                forward_cycles=each.forward,
                input_gradient_cycles=each.input_gradient,
                weight_gradient_cycles=each.weight_gradient,
            )
            for each in cycles.layers
        ]
        return cls.taken_from(
            workload,
            samples=samples,
            gradient_bytes=workload.gradient_bytes(bits),
            forward_cycles=cycles.forward,
            backward_cycles=cycles.backward,
            cycles=cycles.total,
            time_ps=chiplet.time_ps(cycles.total),
            layers=layers,
            notes=list(workload.notes),
            source=list(workload.source),
        )
