"""The record of a module's two passes, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass, field

FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT = range(3)
"""The passes, as places in :attr:`Operations.flops` and :attr:`Operations.bytes`."""


@dataclass
class Operations:
    """Operations that follow each other in one call of one module.

    Attributes
    ----------
    name
        Path of the module.
    flops, bytes
        For each pass.
    parameters
        Trained numbers that are used here first.
    kept
        Bytes kept here first for the backward pass.
    """

    name: str
    flops: list[int] = field(default_factory=lambda: [0, 0, 0])
    bytes: list[int] = field(default_factory=lambda: [0, 0, 0])
    parameters: int = 0
    kept: int = 0

    @property
    def is_layer(self) -> bool:
        """Whether it multiplies or has parameters; otherwise it is counted for the layer before."""
        return any(self.flops) or self.parameters > 0


@dataclass(frozen=True)
class Touch:
    """A stored tensor that a part reads or writes; ``part`` is -1 outside the module.

    Attributes
    ----------
    part, storage
        Which, by number.
    bytes
        Of what is read; those of the whole storage bound the sum.
    """

    part: int
    storage: int
    bytes: int
    writes: bool


@dataclass
class PassRecord:
    """All parts in the order in which they ran forward.

    Attributes
    ----------
    parts
        At least one where the module does anything.
    touches
        Of activations in the forward pass, in their order.
    sizes
        Bytes of each storage that is touched.
    frozen
        Numbers that are not trained.
    unused
        Trained numbers that no operation uses.
    """

    parts: list[Operations] = field(default_factory=list)
    touches: list[Touch] = field(default_factory=list)
    sizes: dict[int, int] = field(default_factory=dict)
    frozen: int = 0
    unused: int = 0
