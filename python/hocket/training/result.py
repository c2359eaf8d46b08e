"""The outcome of a simulated training."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from hocket import _core
from hocket._checks import path_of
from hocket._core import iteration as core
from hocket._results import HIDDEN, Column, Result, TableResult, figure, name_of, said
from hocket.training.memory import Memory
from hocket.training.network import Exchange, is_on_dimensions
from hocket.training.options import TrainingOptions
from hocket.training.parallel import CAUSES, PASSES, Group, Parallel, groups
from hocket.units import parse_operations
from hocket.workload.accelerators import Accelerator
from hocket.workload.costs import Block
from hocket.workload.layers import Workload

if TYPE_CHECKING:
    from os import PathLike

    import numpy as np
    from numpy.typing import NDArray

    from hocket.training.timeline import Span


@dataclass(frozen=True)
class Breakdown(Result):
    """The use of time, of one pipeline stage or as a mean over all; in ps.

    All of it together is the time from the first start to the last end.

    Attributes
    ----------
    forward, backward, update
        Compute; ``forward`` counts what is computed again.
    exposed
        Communication that compute waited for, by cause (:data:`hocket.training.parallel.CAUSES`).
    waiting
        Compute that waited for another stage, or at the end for the last one: the pipeline's bubble.
    """

    forward: float = field(metadata=said("forward_ps"))
    backward: float = field(metadata=said("backward_ps"))
    update: float = field(metadata=said("update_ps"))
    exposed: dict[str, float] = field(metadata=said("exposed_ps"))
    waiting: float = field(metadata=said("waiting_ps"))

    @property
    def compute(self) -> float:
        """All compute."""
        return self.forward + self.backward + self.update

    @property
    def communication(self) -> float:
        """All that is exposed."""
        return sum(self.exposed.values())

    @property
    def total(self) -> float:
        """All of it."""
        return self.compute + self.communication + self.waiting

    def over(self, count: float) -> Breakdown:
        """Return a part of it, such as that of one of ``count`` iterations."""
        return Breakdown(
            self.forward / count,
            self.backward / count,
            self.update / count,
            {name: time / count for name, time in self.exposed.items()},
            self.waiting / count,
        )


@dataclass(frozen=True)
class LayerTime:
    """A layer's part of all iterations, on an NPU of its stage; in ps.

    Attributes
    ----------
    name, stage
        Of the layer; stages are numbered from 0.
    forward, backward
        Compute; ``forward`` counts what is computed again.
    communication
        Its collectives and messages, overlapped or not.
    exposed
        What of it compute waited for.
    """

    name: str
    stage: int
    forward: int
    backward: int
    communication: int
    exposed: int


@dataclass(frozen=True)
class MeanChoice(Result):
    """A collective of an iteration, and what auto chose for it."""

    kind: str = field(metadata=said(column=Column("collective", leaves=0)))
    npus: int = field(metadata=said(column=Column("NPUs")))
    size: int = field(metadata=said("size_bytes", column=Column("size", leaves=0, is_given=True)))
    calls: float = field(metadata=said(column=Column("calls", write="{:,.4g}", after="time_ps")))
    """Of all stages, in an iteration."""
    algorithm: str = field(metadata=said(column=Column("algorithm", leaves=0)))
    time_ps: int = field(metadata=said(column=Column("time", leaves=0)))
    """That it takes alone, with the groups of its axis together."""


@dataclass(frozen=True)
class MeanLayer(Result):
    """A layer's part of an iteration."""

    name: str = field(metadata=said(column=Column("layer", is_prose=True)))
    stage: int = field(metadata=said(column=Column("stage")))
    """From 1."""
    forward_ps: float = field(metadata=said(column=Column("forward")))
    backward_ps: float = field(metadata=said(column=Column("backward")))
    communication_ps: float = field(metadata=said(column=Column("communication")))
    exposed_ps: float = field(metadata=said(column=Column("exposed", leaves=0)))


@dataclass(frozen=True)
class MeanStage(Result):
    """A pipeline stage."""

    layers: list[str]
    breakdown: Breakdown


@dataclass(frozen=True)
class PortionFigures(Result):
    """A dimension that a group lies on."""

    dimension: int
    """From 1."""
    npus: int
    apart: int


@dataclass(frozen=True)
class GroupFigures(Result):
    """A group of a kind of parallelism."""

    npus: int
    count: int | None
    """How many such groups there are; None on dimensions."""
    dimensions: list[PortionFigures] | None
    """None where groups are lists of NPUs."""


@dataclass(frozen=True)
class NpuFigures(Result):
    """The accelerator."""

    name: str
    peak_flops_per_s: int
    efficiency: float
    memory_bytes: int | None


@dataclass(frozen=True)
class OptionFigures(Result):
    """The options of training."""

    chunks: int | None
    """Of each collective; None where the algorithm chose."""
    order: str
    samples: int
    """Of each replica in an iteration."""
    iterations: int
    precision_bits: int
    bucket_bytes: int | None
    recompute: bool
    overlap_tensor: bool
    update: bool


def _npu(npu: Accelerator) -> NpuFigures:
    return NpuFigures.taken_from(npu, peak_flops_per_s=parse_operations(npu.peak, field="peak"))


def _group(group: Group) -> GroupFigures:
    if group.portions is None:
        return GroupFigures(group.size, len(group.members), None)
    places = [PortionFigures(number + 1, size, apart) for number, size, apart in group.portions]
    return GroupFigures(group.size, None, places)


@dataclass(frozen=True, repr=False)
class TrainingRun(TableResult):
    """Training iterations in simulated time.

    Attributes
    ----------
    workload, topology, parallel, algorithm, npu, options
        What was trained, on what, and how.
    memory
        An estimate of what the NPU with most to hold holds.
    pieces
        Layers of each pipeline stage, in groups of consecutive ones; one group, unless it is interleaved.
    columns, shapes, outcome
        The graph, what its calls do, and when everything started and ended.
    exchanges
        What each of the shapes is of: kind, NPUs, bytes.
    makers
        Which algorithm ``auto`` chose for each of the shapes that are collectives, by their places; empty
        where an algorithm was named.
    """

    _table = "_layers"

    workload: Workload = field(metadata=said(of=name_of))
    topology: _core.Topology = field(metadata=said(of=name_of))
    parallel: Parallel
    algorithm: str
    npu: Accelerator = field(metadata=said(of=_npu))
    options: TrainingOptions = field(metadata=HIDDEN)
    memory: Memory
    pieces: list[list[list[Block]]] = field(metadata=HIDDEN)
    columns: core.TrainingGraph = field(repr=False, metadata=HIDDEN)
    shapes: list[core.Shape] = field(repr=False, metadata=HIDDEN)
    outcome: core.Outcome = field(repr=False, metadata=HIDDEN)
    exchanges: list[Exchange] = field(repr=False, metadata=HIDDEN)
    makers: dict[int, str] = field(default_factory=dict, repr=False, metadata=HIDDEN)

    @property
    @figure()
    def npu_count(self) -> int:
        """NPUs of the network."""
        return self.topology.npu_count

    @property
    @figure(inline=OptionFigures)
    def _options(self) -> OptionFigures:
        return OptionFigures.taken_from(self.options)

    @cached_property
    @figure()
    def choices(self) -> list[MeanChoice]:
        """The collectives that ``auto`` chose for, those that take longest in all first."""
        calls, count = Counter(self.columns.shape), self.options.iterations
        found = [
            MeanChoice(
                *self.exchanges[place], calls[place] / count, name, self.shapes[place].lone_ps
            )
            for place, name in self.makers.items()
        ]
        return sorted(found, key=lambda each: -each.calls * each.time_ps)

    @property
    @figure("breakdown")
    def _breakdown(self) -> Breakdown:
        return self.breakdown.over(self.options.iterations)

    @property
    @figure("communication_alone_ps")
    def _communication_ps(self) -> float:
        return self.communication_ps / self.options.iterations

    @property
    @figure("groups")
    def _groups(self) -> dict[str, GroupFigures]:
        return {name: _group(group) for name, group in self.used_groups.items()}

    @property
    @figure("stages")
    def _stages(self) -> list[MeanStage]:
        count = self.options.iterations
        return [
            MeanStage([block.name for block in blocks], mean.over(count))
            for blocks, mean in zip(self.stages, self.stage_breakdowns, strict=True)
        ]

    @property
    @figure("layers")
    def _layers(self) -> list[MeanLayer]:
        count = self.options.iterations
        return [
            MeanLayer(
                *(each.name, each.stage + 1, each.forward / count, each.backward / count),
                *(each.communication / count, each.exposed / count),
            )
            for each in self.layers
        ]

    @cached_property
    def stages(self) -> list[list[Block]]:
        """Layers of each pipeline stage."""
        return [[block for piece in own for block in piece] for own in self.pieces]

    @property
    @figure()
    def chosen(self) -> dict[str, int]:
        """The number of different collectives that ``auto`` left to each algorithm, the most first."""
        return dict(Counter(self.makers.values()).most_common())

    @property
    @figure()
    def total_ps(self) -> int:
        """All iterations [ps]."""
        return self.outcome.time_ps

    @property
    @figure()
    def time_ps(self) -> float:
        """An iteration, the mean over all of them [ps]."""
        return self.total_ps / self.options.iterations

    @property
    def time(self) -> float:
        """An iteration, the mean over all of them [s]."""
        return self.time_ps * 1e-12

    @property
    def used_groups(self) -> dict[str, Group]:
        """The groups of more than one NPU, by the name of the axis."""
        names = ["tp", "dp", "pp"] + (["ep"] if self.parallel.ep > 1 else [])
        return {name: self.groups[name] for name in names if self.groups[name].size > 1}

    def __repr__(self) -> str:
        what = f"{self.workload.name} on {self.topology.name!r}, {self.parallel}"
        return f"<TrainingRun of {what} by {self.algorithm}: {self.time * 1e3:.6g} ms an iteration>"

    @cached_property
    @figure("iteration_ends_ps")
    def iteration_ps(self) -> list[int]:
        """When each iteration ended, its last collective included [ps]."""
        import numpy as np

        found = np.zeros(self.options.iterations, dtype=np.uint64)
        np.maximum.at(found, self.columns.iteration, self.outcome.end_ps)
        return [int(end) for end in found]

    @property
    @figure("samples_per_s")
    def samples_per_second(self) -> float:
        """Over all replicas."""
        return self.options.samples * self.parallel.dp / max(self.time, 1e-12)

    @property
    @figure("flops_per_s_per_npu")
    def operations_per_second(self) -> float | None:
        """Operations of the model that an NPU does a second; None where a layer's time was measured.

        What is recomputed, or computed by every NPU of a tensor-parallel group, counts once.
        """
        works = [
            work
            for blocks in self.stages
            for block in blocks
            for work in (block.forward, block.input_gradient, block.weight_gradient)
        ]
        if any(work.time_ps is not None for work in works):
            return None
        each = sum(work.flops for work in works)
        return each * self.samples_per_second / self.parallel.npus

    @property
    @figure()
    def utilization(self) -> float | None:
        """Share of its peak that an NPU does: what is known as MFU. None as `operations_per_second`.

        Source: Chowdhery et al.: PaLM, 2022, section 4.1.
        """
        done = self.operations_per_second
        return None if done is None else done / parse_operations(self.npu.peak, field="peak")

    @cached_property
    def exposed_ps(self) -> NDArray[np.uint64]:
        """Time that compute waited for the call of each node of the graph, at its end [ps]."""
        return self.outcome.exposed().exposed_ps

    def _is_of(self, *passes: str) -> NDArray[np.bool_]:
        """Mark the nodes of some passes."""
        import numpy as np

        return np.isin(self.columns.does, [PASSES.index(name) for name in passes])

    @cached_property
    def breakdown(self) -> Breakdown:
        """The use of the time of all iterations: a mean over stages."""
        each = self.stage_breakdowns

        def mean(times: list[float]) -> float:
            return sum(times) / len(each)

        return Breakdown(
            mean([stage.forward for stage in each]),
            mean([stage.backward for stage in each]),
            mean([stage.update for stage in each]),
            {name: mean([stage.exposed[name] for stage in each]) for name in CAUSES},
            mean([stage.waiting for stage in each]),
        )

    @cached_property
    def stage_breakdowns(self) -> list[Breakdown]:
        """The use of the time of all iterations in each pipeline stage."""
        import numpy as np

        columns = self.columns
        spans = (self.outcome.end_ps - self.outcome.start_ps).astype(np.int64)
        exposed = self.exposed_ps.astype(np.int64)
        computes = columns.cause >= len(CAUSES)

        def by_stage(values: NDArray[np.int64], mask: NDArray[np.bool_]) -> list[int]:
            found = np.zeros(len(self.stages), dtype=np.int64)
            np.add.at(found, columns.actor[mask], values[mask])
            return [int(value) for value in found]

        def of(*passes: str) -> list[int]:
            return by_stage(spans, computes & self._is_of(*passes))

        forward = of("forward", "recompute")
        backward = of("input gradient", "weight gradient")
        update = of("update")
        causes = [by_stage(exposed, columns.cause == i) for i in range(len(CAUSES))]
        found = []
        for s in range(len(self.stages)):
            waited = {name: float(cause[s]) for name, cause in zip(CAUSES, causes, strict=True)}
            known = forward[s] + backward[s] + update[s] + sum(cause[s] for cause in causes)
            times = (float(forward[s]), float(backward[s]), float(update[s]))
            found.append(Breakdown(*times, waited, float(self.total_ps - known)))
        return found

    @cached_property
    def layers(self) -> list[LayerTime]:
        """Every layer's part of all iterations."""
        import numpy as np

        spans = (self.outcome.end_ps - self.outcome.start_ps).astype(np.int64)
        layer = self.columns.layer
        computes = self.columns.cause >= len(CAUSES)
        calls = self.columns.call[~computes]
        spans[~computes] = (self.outcome.call_end_ps - self.outcome.call_start_ps)[calls]
        forward = self._is_of("forward", "recompute")
        count = sum(len(blocks) for blocks in self.stages)

        def by_layer(values: NDArray[np.int64], mask: NDArray[np.bool_]) -> NDArray[np.int64]:
            kept = mask & (layer < count)
            found = np.zeros(count, dtype=np.int64)
            np.add.at(found, layer[kept], values[kept])
            return found

        exposed = self.exposed_ps.astype(np.int64)
        columns = [
            by_layer(spans, computes & forward),
            by_layer(spans, computes & ~forward),
            by_layer(spans, ~computes),
            by_layer(exposed, ~computes),
        ]
        places = [(block.name, s) for s, blocks in enumerate(self.stages) for block in blocks]
        return [
            LayerTime(*place, *(int(column[i]) for column in columns))
            for i, place in enumerate(places)
        ]

    @cached_property
    def communication_ps(self) -> float:
        """The total time of a stage's calls, each alone; a mean over stages."""
        import numpy as np

        calls = np.bincount(self.columns.shape, minlength=len(self.shapes)).tolist()
        alone = [shape.lone_ps for shape in self.shapes]
        total: int = sum(n * time for n, time in zip(calls, alone, strict=True))
        return total / len(self.stages)

    @property
    @figure("hidden_share")
    def hidden(self) -> float:
        """Share of what all calls take alone that went on beside compute; 0 where there are none."""
        if not self.communication_ps:
            return 0.0
        return max(0.0, 1 - self.breakdown.communication / self.communication_ps)

    @property
    def groups(self) -> dict[str, Group]:
        """The groups of every axis, and where they lie."""
        on_dimensions = is_on_dimensions(self.topology, self.algorithm)
        return groups(self.parallel, self.topology, on_dimensions=on_dimensions)

    def timeline(self) -> list[Span]:
        """Return everything that was computed and sent, stage by stage, in the order of starts."""
        from hocket.training.timeline import timeline

        return timeline(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write what ``--json`` prints, and the time-line with it, to a .json file that pages are made of.

        Raises
        ------
        SpecError
            If the file cannot be written.
        """
        from hocket.training.timeline import save_iteration

        save_iteration(self, path_of("path", path))

    def save_perfetto(self, path: str | PathLike[str]) -> None:
        """Write the time-line as trace events, which ui.perfetto.dev and chrome://tracing show.

        A process is a pipeline stage; its threads are what it computes and, for each cause, what it sends.
        """
        from hocket.training.timeline import save_perfetto

        save_perfetto(self, path_of("path", path))

    def plot(self, path: str | PathLike[str]) -> None:
        """Draw the time-line, and where the time of an iteration went: a .png, .svg or .pdf file."""
        from hocket.plot.training import draw_training

        draw_training(self, path_of("path", path))
