"""Layers whose times are the cycles of a chiplet of systolic arrays."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from hocket.errors import SpecError
from hocket.workload.costs import Block, Work
from hocket.workload.layers import Layer, Workload, blocks_of

if TYPE_CHECKING:
    from hocket.workload.systolic import Chiplet


def blocks_on_chiplet(workload: Workload, chiplet: Chiplet, samples: int) -> list[Block]:
    """Return a workload's layers with the times that a chiplet takes for so many samples at once.

    Raises
    ------
    SpecError
        If a layer has no dimensions.
    """
    found = []
    for i, (layer, block) in enumerate(zip(workload.layers, blocks_of(workload), strict=True)):
        if not isinstance(layer, Layer):
            raise SpecError(
                "npu",
                f"layer {block.name} has no dimensions, which a chiplet's cycles need",
                "use an accelerator such as a100",
            )
        cycles = chiplet.layer(layer, samples, first=i == 0)
        works = [
            Work(time_ps=Fraction(chiplet.time_ps(count), samples))
            for count in (cycles.forward, cycles.input_gradient, cycles.weight_gradient)
        ]
        forward, of_input, of_weights = works
        found.append(
            replace(block, forward=forward, input_gradient=of_input, weight_gradient=of_weights)
        )
    return found
