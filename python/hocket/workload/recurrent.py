"""Recurrent layers of long short-term memory (LSTM) by their sizes: what each costs for one sequence.

At each of s steps, four gates take n numbers of the input and m of the state: weights are 4 m (n + m),
their products 2 x 4 m (n + m) operations, and about 9 m more make a state of the gates. A second direction
costs as much again. Operations of one step wait for those of the step before; of that nothing is said here.
"""

from __future__ import annotations

from dataclasses import dataclass

from hocket._checks import whole
from hocket.errors import SpecError
from hocket.units import shown
from hocket.workload.costs import Block, Work
from hocket.workload.limits import LARGEST

_MAX_LAYERS = 10_000
_STATE_FLOPS = 9
"""For each number of a state: five functions, three products and a sum."""
_KEPT = 6
"""For each number of a state: itself, the cell's and four gates'."""


@dataclass(frozen=True)
class Lstm:
    """Sizes of a stack of LSTM layers.

    Attributes
    ----------
    layers
        How many; each takes what the one before gives.
    hidden
        Numbers of the state, and so of the output, in each direction.
    input
        Numbers that the first layer takes at each step.
    sequence
        Steps of a sample.
    bidirectional
        Whether each layer has another that runs backward, so that it gives twice as many numbers.
    biases
        Vectors of biases for each gate: 1, or 2 as cuDNN and PyTorch have them, or 0.

    References
    ----------
    Hochreiter, Schmidhuber: Long Short-Term Memory, 1997, with the forget gate of Gers et al. 2000.
    """

    layers: int
    hidden: int
    input: int
    sequence: int
    bidirectional: bool = False
    biases: int = 2

    def __post_init__(self) -> None:
        whole("lstm: layers", self.layers, 1, _MAX_LAYERS)
        for name in ("hidden", "input", "sequence"):
            whole(f"lstm: {name}", getattr(self, name), 1, LARGEST - 1)
        if not isinstance(self.bidirectional, bool):
            wrong = shown(self.bidirectional)
            raise SpecError("lstm", f"bidirectional: {wrong} is not a choice", "give True or False")
        whole("lstm: biases", self.biases, 0, 2)

    @property
    def count(self) -> int:
        """The number of blocks."""
        return self.layers

    def blocks(self) -> list[Block]:
        """Return its layers by their costs, in the order of the forward pass; a sample is one sequence.

        # Complexity

        O(layers).
        """
        found, taken = [], self.input
        for i in range(1, self.layers + 1):
            found.append(self._layer(f"layer.{i}", taken))
            taken = self.hidden * self._directions
        return found

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _layer(self, name: str, taken: int) -> Block:
        weights = 4 * self.hidden * (taken + self.hidden)
        states = self._directions * self.sequence * self.hidden
        products = 2 * self._directions * self.sequence * weights
        inputs = self.sequence * taken
        moved = 2 * (inputs + states)
        kept = inputs + _KEPT * states
        back = Work(products + 2 * _STATE_FLOPS * states, moved + 2 * _KEPT * states)
        return Block(
            name,
            forward=Work(products + _STATE_FLOPS * states, moved + 2 * _KEPT * states),
            input_gradient=back,
            weight_gradient=Work(products, moved + 8 * states),
            parameters=self._directions * (weights + 4 * self.biases * self.hidden),
            inputs=inputs,
            outputs=states,
            kept=kept,
        )
