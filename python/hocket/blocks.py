"""Layers that are known by what they cost: operations, bytes, weights and what is exchanged."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal

from hocket.errors import SpecError
from hocket.units import shown
from hocket.workload import MOST_PARAMETERS, Layer, Workload, whole

__all__ = ["SPLITS", "Block", "Work", "blocks_of"]

SPLITS = ("copied", "columns", "rows", "inside")
MOST = 1 << 62
"""Operations, bytes or numbers of a pass for one sample are fewer."""


@dataclass(frozen=True)
class Work:
    """What one pass of a layer takes for one sample.

    Attributes
    ----------
    flops
        Operations; a multiplication and the addition of its product are two.
    bytes
        Read from memory and written to it, those of the weights apart, for numbers of 16 bits.
    time_ps
        Measured instead; then the others count for nothing. A fraction where several samples were measured.
    """

    flops: int = 0
    bytes: int = 0
    time_ps: int | Fraction | None = None

    def __post_init__(self) -> None:
        for name in ("flops", "bytes"):
            whole(name, getattr(self, name), 0, MOST)
        if self.time_ps is not None:
            given = self.time_ps
            whole("time_ps", ceil(given) if isinstance(given, Fraction) else given, 0, MOST)


@dataclass(frozen=True)
class Block:
    """A layer by its costs. Numbers are those of a whole layer that nothing has cut up.

    Attributes
    ----------
    name
        What it is called.
    forward, input_gradient, weight_gradient
        The three passes, for one sample.
    parameters
        Numbers that are trained.
    inputs, outputs
        Numbers that it takes from the layer before, and gives to the next, for one sample.
    kept
        Numbers that the forward pass keeps for the backward one, for one sample; None: ``inputs``.
    split
        What tensor parallelism does to it. ``copied``: every NPU of the group computes it whole.
        ``columns``: its output is cut, and its input gradient summed over the group. ``rows``: its
        input is cut, and its output summed over the group. ``inside``: cut between such, as attention is
        by heads, and nothing is exchanged.
    experts
        Among how many experts ``parameters`` are divided; 0: it has none. Expert parallelism deals
        them out.
    routed
        Numbers that are sent to experts, and as many that come back, for one sample.
    is_table
        Whether it is embedding tables that are dealt out over all NPUs; their ``outputs`` are
        exchanged all-to-all.
    joins
        The name of the later layer that needs its outputs, where that is not the next: the layers between
        run meanwhile.
    """

    name: str
    forward: Work
    input_gradient: Work = Work()
    weight_gradient: Work = Work()
    parameters: int = 0
    inputs: int = 0
    outputs: int = 0
    kept: int | None = None
    split: Literal["copied", "columns", "rows", "inside"] = "copied"
    experts: int = 0
    routed: int = 0
    is_table: bool = False
    joins: str | None = None

    def __post_init__(self) -> None:
        whole(f"layer {self.name}: parameters", self.parameters, 0, MOST_PARAMETERS)
        for name in ("inputs", "outputs", "experts", "routed"):
            whole(f"layer {self.name}: {name}", getattr(self, name), 0, MOST)
        if self.kept is not None:
            whole(f"layer {self.name}: kept", self.kept, 0, MOST)
        if self.split not in SPLITS:
            raise SpecError(
                f"layer {self.name}: split: there is no {shown(self.split)}; use {' or '.join(SPLITS)}"
            )


def blocks_of(workload: Workload) -> list[Block]:
    """Give the layers of a workload by their costs, in the order of the forward pass.

    A layer of SCALE-Sim's kind costs two operations for each product, reads its input and writes its
    output; of a layer that reads data no input gradient is computed. One without parameters of its own
    multiplies two activations, or shares weights: the second gradient is computed all the same.
    """
    found = []
    for i, layer in enumerate(workload.layers):
        found.append(layer if isinstance(layer, Block) else _of_layer(layer, first=i == 0))
    return found


def _of_layer(layer: Layer, *, first: bool) -> Block:
    inputs = layer.times * layer.input_height * layer.input_width * layer.channels
    outputs = layer.times * layer.output_pixels * layer.filters
    work = Work(2 * layer.macs, 2 * (inputs + outputs))
    needs_no_input_gradient = first or layer.reads_data
    return Block(
        layer.name,
        forward=work,
        input_gradient=Work() if needs_no_input_gradient else work,
        weight_gradient=work,
        parameters=layer.parameters,
        inputs=inputs,
        outputs=outputs,
    )
