"""Small models whose layers have every kind of parallelism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import hocket as hk
from hocket.training import TrainingRun
from hocket.training.parallel import CAUSES, PASSES
from hocket.workload.costs import Block, Work


@dataclass(frozen=True)
class Model:
    """What a workload is to training: a name and layers."""

    name: str
    layers: tuple[Block, ...]


def transformer(layers: int = 4, *, experts: int = 0, table: bool = False) -> Model:
    """Give a few layers of attention and two products, with experts or a table where asked for."""
    width, length = 256, 128
    whole = width * length
    blocks = []
    if table:
        blocks.append(
            Block(
                "words",
                Work(bytes=4 * whole),
                Work(),
                Work(bytes=4 * whole),
                parameters=1 << 20,
                outputs=whole,
                is_table=True,
            )
        )
    for i in range(layers):
        product = Work(2 * length * width * width, 4 * whole)
        routed = {"experts": experts, "routed": whole} if experts else {}
        blocks += [
            _block(f"in{i}", product, width * width, "columns", whole),
            _block(f"middle{i}", product, 0, "inside", whole),
            _block(f"out{i}", product, width * width, "rows", whole, **routed),
        ]
    return Model("small", tuple(blocks))


def _block(name: str, work: Work, parameters: int, split: Any, numbers: int, **more: Any) -> Block:
    of_weights = work if parameters else Work()
    return Block(
        name,
        work,
        work,
        of_weights,
        parameters=parameters,
        inputs=numbers,
        outputs=numbers,
        split=split,
        **more,
    )


def network(*sizes: int) -> hk.Topology:
    """Give a product of switches."""
    count = len(sizes)
    kinds = "_".join(["SW"] * count)
    bandwidth, latency = ["50 GB/s"] * count, ["1 us"] * count
    return hk.topology.product(kinds, sizes, bandwidth=bandwidth, latency=latency)


def trained(model: Model, topology: hk.Topology, parallel: str, **options: Any) -> TrainingRun:
    """Train."""
    return hk.train(model, topology, parallel=parallel, **options)  # type: ignore[arg-type]


class Tag(NamedTuple):
    """The place of a node in training; a layer of -1 is none, and computation has no cause."""

    iteration: int
    layer: int
    does: str
    cause: str | None


def tags(run: TrainingRun) -> list[Tag]:
    """The tags of all nodes of a run."""
    columns, names = run.columns, dict(enumerate(CAUSES))
    rows = (columns.iteration, columns.layer.astype("int32"), columns.does, columns.cause)
    return [
        Tag(iteration, layer, PASSES[does], names.get(cause))
        for iteration, layer, does, cause in zip(*(row.tolist() for row in rows), strict=True)
    ]
