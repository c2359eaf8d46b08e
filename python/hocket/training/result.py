"""What a simulated training came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from hocket import _core
from hocket._core import iteration as core
from hocket.blocks import Block
from hocket.roofline import Accelerator
from hocket.training.build import Options
from hocket.training.columns import Columns, Pass
from hocket.training.memory import Memory
from hocket.training.parallel import CAUSES, Parallel
from hocket.workload import Workload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Breakdown", "LayerTime", "TrainingRun"]


@dataclass(frozen=True)
class Breakdown:
    """Where the time of all iterations went: a mean over pipeline stages; in ps.

    Attributes
    ----------
    forward, backward, update
        Compute; ``forward`` counts what is computed again.
    exposed
        Communication that compute waited for, by cause.
    waiting
        Compute that waited for another stage, or at the end for the last one: the pipeline's bubble.
    """

    forward: float
    backward: float
    update: float
    exposed: dict[str, float]
    waiting: float

    @property
    def compute(self) -> float:
        """All compute."""
        return self.forward + self.backward + self.update

    @property
    def communication(self) -> float:
        """All that is exposed."""
        return sum(self.exposed.values())


@dataclass(frozen=True)
class LayerTime:
    """A layer's part of all iterations, on an NPU of its stage; in ps."""

    name: str
    stage: int
    forward: int
    backward: int
    communication: int
    """Its collectives and messages, overlapped or not."""
    exposed: int
    """What of it compute waited for."""


@dataclass(frozen=True)
class TrainingRun:
    """Training iterations in simulated time.

    Attributes
    ----------
    workload, topology, parallel, algorithm, npu, options
        What was trained, on what, and how.
    memory
        An estimate of what an NPU holds.
    stages
        Layers of each pipeline stage.
    columns, shapes, outcome
        The graph, what its calls do, and when everything started and ended.
    """

    workload: Workload
    topology: _core.Topology
    parallel: Parallel
    algorithm: str
    npu: Accelerator
    options: Options
    memory: Memory
    stages: list[list[Block]]
    columns: Columns = field(repr=False)
    shapes: list[core.Shape] = field(repr=False)
    outcome: core.Outcome = field(repr=False)

    @property
    def total_ps(self) -> int:
        """All iterations [ps]."""
        return self.outcome.time_ps

    @property
    def time_ps(self) -> float:
        """An iteration, the mean over all of them [ps]."""
        return self.total_ps / self.options.iterations

    @property
    def time(self) -> float:
        """An iteration, the mean over all of them [s]."""
        return self.time_ps * 1e-12

    @property
    def samples_per_second(self) -> float:
        """Over all replicas."""
        return self.options.samples * self.parallel.dp / max(self.time, 1e-12)

    @cached_property
    def _arrays(self) -> dict[str, NDArray[np.int64]]:
        """Columns of the graph's nodes: actor, layer, pass, cause, iteration."""
        import numpy as np

        tags = self.columns.tags
        return {
            "actor": np.array(self.columns.actor, dtype=np.int64),
            "layer": np.array([tag.layer for tag in tags], dtype=np.int64),
            "pass": np.array([tag.does for tag in tags], dtype=np.int64),
            "cause": np.array([tag.cause for tag in tags], dtype=np.int64),
            "iteration": np.array([tag.iteration for tag in tags], dtype=np.int64),
        }

    @cached_property
    def _exposure(self) -> core.Exposure:
        return self.outcome.exposed()

    @cached_property
    def breakdown(self) -> Breakdown:
        """Where the time of all iterations went."""
        import numpy as np

        rows = self._arrays
        spans = (self.outcome.end_ps - self.outcome.start_ps).astype(np.int64)
        computes = rows["cause"] < 0
        actors = len(self.stages)

        def of(*passes: Pass) -> float:
            return float(spans[computes & np.isin(rows["pass"], passes)].sum()) / actors

        exposed = self._exposure.exposed_ps.astype(np.int64)
        by_cause = {
            name: float(exposed[rows["cause"] == i].sum()) / actors for i, name in enumerate(CAUSES)
        }
        forward = of(Pass.FORWARD, Pass.RECOMPUTE)
        backward = of(Pass.INPUT_GRADIENT, Pass.WEIGHT_GRADIENT)
        update = of(Pass.UPDATE)
        known = forward + backward + update + sum(by_cause.values())
        return Breakdown(forward, backward, update, by_cause, self.total_ps - known)

    @cached_property
    def layers(self) -> list[LayerTime]:
        """Every layer's part of all iterations."""
        import numpy as np

        rows = self._arrays
        spans = (self.outcome.end_ps - self.outcome.start_ps).astype(np.int64)
        calls = np.array(self.columns.call, dtype=np.int64)
        computes = rows["cause"] < 0
        spans[~computes] = (self.outcome.call_end_ps - self.outcome.call_start_ps).astype(np.int64)[
            calls[~computes]
        ]
        forward = np.isin(rows["pass"], (Pass.FORWARD, Pass.RECOMPUTE))
        count = sum(len(blocks) for blocks in self.stages)
        has_layer = rows["layer"] >= 0

        def by_layer(values: NDArray[np.int64], mask: NDArray[np.bool_]) -> NDArray[np.int64]:
            kept = mask & has_layer
            found = np.zeros(count, dtype=np.int64)
            np.add.at(found, rows["layer"][kept], values[kept])
            return found

        exposed = self._exposure.exposed_ps.astype(np.int64)
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
        """What all calls of a stage take one after the other, alone; a mean over stages."""
        shapes = [self.shapes[shape].lone_ps for shape in self.columns.shape]
        return sum(shapes) / len(self.stages)
