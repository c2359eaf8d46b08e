"""Makes layers of what was traced: parts that do little join the layer before them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from hocket.errors import SpecError
from hocket.workload.costs import Block, Work
from hocket.workload.layers import Workload
from hocket.workload.torch.pass_record import (
    FORWARD,
    INPUT_GRADIENT,
    WEIGHT_GRADIENT,
    Operations,
    PassRecord,
)

_LONGEST_NAME = 180
_BYTES = 2
"""Of a number of 16 bits."""


@dataclass
class _Sum:
    """A layer's figures for all samples of a batch; bytes where they are sizes."""

    name: str
    flops: list[int] = field(default_factory=lambda: [0, 0, 0])
    bytes: list[int] = field(default_factory=lambda: [0, 0, 0])
    parameters: int = 0
    kept: int = 0
    inputs: int = 0
    outputs: int = 0

    def add(self, part: Operations) -> None:
        """Add what a part takes."""
        for kind in range(3):
            self.flops[kind] += part.flops[kind]
            self.bytes[kind] += part.bytes[kind]
        self.parameters += part.parameters
        self.kept += part.kept

    def sizes(self) -> tuple[int, ...]:
        """Return all that should grow with the batch."""
        return (*self.flops, *self.bytes, self.kept, self.inputs, self.outputs)


def workload_of(
    name: str, once: PassRecord, twice: PassRecord | None, batch: int, inputs: str
) -> Workload:
    """Make a workload of a trace for a batch, and of one for twice as many samples, if there is one.

    Raises
    ------
    SpecError
        If there is no layer.
    """
    sums = _sums(once)
    if not sums:
        raise SpecError(
            None, f"module {name}: does nothing with its inputs", "give one that has layers"
        )
    notes = [f"Traced with inputs {inputs} in a batch of {batch}."]
    if once.frozen:
        notes.append(f"{once.frozen:,} numbers are frozen and no parameters here.")
    if once.unused:
        notes.append(f"{once.unused:,} parameters are used by nothing and left out.")
    notes += _nonlinear(sums, None if twice is None else _sums(twice), batch)
    blocks = [_block(each, batch) for each in _named(sums)]
    return Workload(name, cast(Any, tuple(blocks)), tuple(notes))


def _sums(tally: PassRecord) -> list[_Sum]:
    """Join each part without products and parameters with the layer before it, or after it."""
    places, sums = [], list[_Sum]()
    hosted = False
    for part in tally.parts:
        if not sums or (part.is_layer and hosted):
            sums.append(_Sum(part.name))
        if part.is_layer:
            hosted = True
            if not any(sums[-1].flops) and not sums[-1].parameters:
                sums[-1].name = part.name
        sums[-1].add(part)
        places.append(len(sums) - 1)
    _add_exchanged(tally, places, sums)
    return sums


def _add_exchanged(tally: PassRecord, places: list[int], sums: list[_Sum]) -> None:
    """Add what each layer takes from others, and gives to others."""
    maker: dict[int, int] = {}
    taken: dict[tuple[int, int], int] = {}
    given: dict[tuple[int, int], int] = {}
    for touch in tally.touches:
        place = -1 if touch.part < 0 else places[touch.part]
        source = maker.get(touch.storage, place)
        if touch.writes:
            maker[touch.storage] = place
        elif source != place:
            for table, layer in ((taken, place), (given, source)):
                key = (layer, touch.storage)
                table[key] = table.get(key, 0) + touch.bytes
    for (layer, storage), size in taken.items():
        if layer >= 0:
            sums[layer].inputs += min(size, tally.sizes[storage])
    for (layer, storage), size in given.items():
        if layer >= 0:
            sums[layer].outputs += min(size, tally.sizes[storage])


def _nonlinear(sums: list[_Sum], doubled: list[_Sum] | None, batch: int) -> list[str]:
    """Warn if the costs are not those of one sample times the samples."""
    if doubled is None:
        return [
            f"Does not run with {2 * batch} samples: whether costs grow with them is not known."
        ]
    if [each.name for each in sums] != [each.name for each in doubled]:
        return [f"With {2 * batch} samples other layers run: costs hold for {batch} alone."]
    differ = [
        one.name
        for one, two in zip(sums, doubled, strict=True)
        if tuple(2 * size for size in one.sizes()) != two.sizes()
    ]
    if not differ:
        return []
    return [
        f"Costs of {len(differ)} of {len(sums)} layers do not grow with the batch, first of "
        f"{differ[0]}: they hold for a batch of {batch}."
    ]


def _named(sums: Iterable[_Sum]) -> Iterable[_Sum]:
    """Name each layer: calls of a module after its first have a number.

    A name in a file has no spaces and commas.
    """
    seen: dict[str, int] = {}
    for each in sums:
        each.name = re.sub(r"[\s,]", "_", each.name)[:_LONGEST_NAME]
        seen[each.name] = seen.get(each.name, 0) + 1
        if seen[each.name] > 1:
            each.name = f"{each.name}#{seen[each.name]}"
        yield each


def _block(total: _Sum, batch: int) -> Block:
    def share(size: int, unit: int = 1) -> int:
        return -(-size // (unit * batch))

    forward, of_input, of_weight = (
        Work(share(total.flops[kind]), share(total.bytes[kind]))
        for kind in (FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT)
    )
    return Block(
        total.name,
        forward,
        of_input,
        of_weight,
        parameters=total.parameters,
        inputs=share(total.inputs, _BYTES),
        outputs=share(total.outputs, _BYTES),
        kept=share(total.kept, _BYTES),
    )
