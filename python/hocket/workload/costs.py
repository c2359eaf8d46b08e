"""Layers that are known by what they cost: operations, bytes, weights and what is exchanged."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal

from hocket._checks import check_name, one_of, truth, whole
from hocket.errors import SpecError
from hocket.units import shown
from hocket.workload.limits import MAX_COUNT, MAX_PARAMETERS, bytes_of

SPLITS = ("copied", "columns", "rows", "inside")


@dataclass(frozen=True)
class Work:
    """The cost of one pass of a layer for one sample.

    Attributes
    ----------
    flops
        Operations; a multiplication and the addition of its product are two.
    bytes
        Read from memory and written to it, those of the weights apart, for numbers of 16 bits.
    time_ps
        Measured instead; then the others count for nothing. A measured batch is divided by its samples:
        rounded up to a picosecond for each where a file has it.
    """

    flops: int = 0
    bytes: int = 0
    time_ps: int | Fraction | None = None

    def __post_init__(self) -> None:
        for name in ("flops", "bytes"):
            whole(name, getattr(self, name), 0, MAX_COUNT)
        if self.time_ps is not None:
            given = self.time_ps
            whole("time_ps", ceil(given) if isinstance(given, Fraction) else given, 0, MAX_COUNT)


@dataclass(frozen=True)
class Block:
    """A layer by its costs. Numbers are those of a whole layer that nothing has cut up.

    Attributes
    ----------
    name
        What it is called.
    forward, input_gradient, weight_gradient
        The three passes, for one sample. The gradients of a product of two activations, neither of which is
        a weight, are both in ``input_gradient``.
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
        Numbers that are sent to experts, and as many that come back, for one sample; 0 for a layer with
        experts that follows one with as many: it finds its numbers there.
    top
        To how many experts each token goes; ``routed`` counts it once for each of them.
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
    top: int = 1
    is_table: bool = False
    joins: str | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        for name in ("forward", "input_gradient", "weight_gradient"):
            if not isinstance(getattr(self, name), Work):
                wrong = shown(getattr(self, name))
                raise SpecError(
                    None, f"layer {self.name}: {name}: {wrong} is not a Work", "give one"
                )
        whole(f"layer {self.name}: parameters", self.parameters, 0, MAX_PARAMETERS)
        for name in ("inputs", "outputs", "experts", "routed"):
            whole(f"layer {self.name}: {name}", getattr(self, name), 0, MAX_COUNT)
        if self.kept is not None:
            whole(f"layer {self.name}: kept", self.kept, 0, MAX_COUNT)
        truth(f"layer {self.name}: is_table", self.is_table)
        one_of(f"layer {self.name}: split", self.split, SPLITS)
        self._check_experts()
        if self.is_table and not (self.parameters and self.outputs):
            raise SpecError(
                None,
                f"layer {self.name}: a table has parameters, and outputs that are exchanged",
                "give both",
            )

    def _check_experts(self) -> None:
        if self.routed and not self.experts:
            raise SpecError(
                None, f"layer {self.name}: routed: there are no experts to send to", "give experts"
            )
        whole(f"layer {self.name}: top", self.top, 1, max(1, self.experts))
        if self.experts and (not self.parameters or self.parameters % self.experts):
            raise SpecError(
                None,
                f"layer {self.name}: {self.parameters} parameters do not divide among "
                f"{self.experts} experts",
                "give those of all experts together",
            )
        if self.experts and self.is_table:
            raise SpecError(
                None, f"layer {self.name}: tables have no experts", "leave one of them out"
            )

    @property
    def is_measured(self) -> bool:
        """Whether one of its passes is a time."""
        passes = (self.forward, self.input_gradient, self.weight_gradient)
        return any(work.time_ps is not None for work in passes)

    @property
    def flops(self) -> int:
        """Operations of the passes that are not measured, for one sample."""
        passes = (self.forward, self.input_gradient, self.weight_gradient)
        return sum(work.flops for work in passes if work.time_ps is None)

    @property
    def kept_numbers(self) -> int:
        """Numbers that are kept for the backward pass, for one sample."""
        return self.inputs if self.kept is None else self.kept

    def gradient_bytes(self, precision_bits: int = 32) -> int:
        """Return the bytes of the weights' gradient, rounded up; 0 for tables, which are not summed."""
        return 0 if self.is_table else bytes_of(self.parameters, precision_bits)
