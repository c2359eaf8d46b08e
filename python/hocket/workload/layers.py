"""Models that are trained: their layers, weights and gradients.

Dimensions are those of SCALE-Sim's layer tables (Samajdar et al. 2018): the input counts with its padding,
so that an output is ``(input - filter) // stride + 1`` high and wide; a fully connected layer has an input
and a filter of 1 x 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from hocket._checks import check_name, whole
from hocket.errors import SpecError
from hocket.units import shown
from hocket.workload.costs import Block, Work
from hocket.workload.limits import LARGEST, MAX_PARAMETERS, bytes_of


@dataclass(frozen=True)
class Layer:
    """One convolution, or one product of matrices as a convolution of 1 x 1.

    Attributes
    ----------
    name
        What it is called.
    input_height, input_width
        Of one channel of the input, padding included.
    filter_height, filter_width
        Of one channel of a filter.
    channels
        Of the input, and so of each filter.
    filters
        How many, and so channels of the output.
    stride
        From one place of a filter to the next, both ways.
    times
        How often it is applied for a sample, to other input with the same weights.
    own_parameters
        Weights that it has, where that is not what its filters say: 0 for a product of two activations
        or for weights that an earlier layer has already.
    reads_data
        Whether its input is data, so that no gradient of it is needed. So it is of a workload's first layer
        in any case.
    biases
        Whether a number is added to each channel of the output, which is trained as well.
    normalized
        Whether its output is normalized, with a factor and a shift for each channel that are trained.

    References
    ----------
    Samajdar et al., SCALE-Sim: Systolic CNN Accelerator Simulator, 2018: the rows of its topology files.
    """

    name: str
    input_height: int = 1
    input_width: int = 1
    filter_height: int = 1
    filter_width: int = 1
    channels: int = 1
    filters: int = 1
    stride: int = 1
    times: int = 1
    own_parameters: int | None = None
    reads_data: bool = False
    biases: bool = False
    normalized: bool = False

    def __post_init__(self) -> None:
        check_name(self.name)
        for field in _SIZES:
            whole(f"layer {self.name}: {field}", getattr(self, field), 1, LARGEST - 1)
        if self.own_parameters is not None:
            whole(f"layer {self.name}: own_parameters", self.own_parameters, 0, MAX_PARAMETERS)
        if self.filter_height > self.input_height or self.filter_width > self.input_width:
            raise SpecError(
                None,
                f"layer {self.name}: the filter, {self.filter_height} x {self.filter_width}, "
                f"is larger than the input, {self.input_height} x {self.input_width}",
                "make the filter smaller, or give the input with its padding",
            )

    @property
    def output_height(self) -> int:
        """Rows of an output channel."""
        return (self.input_height - self.filter_height) // self.stride + 1

    @property
    def output_width(self) -> int:
        """Columns of an output channel."""
        return (self.input_width - self.filter_width) // self.stride + 1

    @property
    def output_pixels(self) -> int:
        """Pixels of an output channel."""
        return self.output_height * self.output_width

    @property
    def window(self) -> int:
        """Products that sum up to one number of the output."""
        return self.filter_height * self.filter_width * self.channels

    @property
    def macs(self) -> int:
        """Multiplications of the forward pass for one sample."""
        return self.times * self.output_pixels * self.window * self.filters

    @property
    def parameters(self) -> int:
        """Numbers that are trained: weights, biases, and factors and shifts of a normalization."""
        own = self.window * self.filters if self.own_parameters is None else self.own_parameters
        return own + (self.biases + 2 * self.normalized) * self.filters

    @property
    def row_parameters(self) -> int:
        """Weights as SCALE-Sim's tables count them: a filter wherever one is applied, no biases."""
        return self.times * self.window * self.filters

    def gradient_bytes(self, precision_bits: int = 32) -> int:
        """Return the bytes of the gradient of the weights, rounded up to whole ones."""
        return bytes_of(self.parameters, precision_bits)


_SIZES = (
    "input_height",
    "input_width",
    "filter_height",
    "filter_width",
    "channels",
    "filters",
    "stride",
    "times",
)


@dataclass(frozen=True)
class Workload:
    """A model: its layers in the order of the forward pass.

    Attributes
    ----------
    name
        What it is called.
    layers
        Its layers, by their dimensions (:class:`Layer`) or by their costs (:class:`Block`); those that are
        repeated stand here as often.
    notes, source
        What its file says of it, and where the dimensions come from.
    """

    name: str
    layers: tuple[Layer | Block, ...]
    notes: tuple[str, ...] = ()
    source: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.name)
        given: object = self.layers
        if not isinstance(given, list | tuple) or not all(
            isinstance(each, Layer | Block) for each in given
        ):
            raise SpecError(
                None,
                f"workload {self.name}: layers: are no layers",
                "give a list of Layer or Block",
            )
        object.__setattr__(self, "layers", tuple(given))
        if not self.layers:
            raise SpecError(None, f"workload {self.name}: there is no layer", "give at least one")
        if max(self.parameters, self.row_parameters) > MAX_PARAMETERS:
            raise SpecError(
                None,
                f"workload {self.name}: has 2^48 parameters or more",
                "make layers smaller or fewer",
            )
        check_order(self.name, self.layers)

    @property
    def parameters(self) -> int:
        """Numbers that are trained, of all layers."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def row_parameters(self) -> int:
        """Weights of all layers as SCALE-Sim's tables count them."""
        return sum(
            layer.row_parameters if isinstance(layer, Layer) else layer.parameters
            for layer in self.layers
        )

    def gradient_bytes(self, precision_bits: int = 32) -> int:
        """Return the bytes of the gradients of all layers, each rounded up, tables left out."""
        return sum(layer.gradient_bytes(precision_bits) for layer in self.layers)


def check_order(workload: str, layers: Sequence[Layer | Block]) -> None:
    """Check what layers say of each other: that ``joins`` names a later one, and experts get numbers.

    Parameters
    ----------
    workload
        Its name, for messages.
    layers
        In the order of the forward pass.

    Raises
    ------
    SpecError
        Naming workload and layer.
    """
    last = {layer.name: i for i, layer in enumerate(layers)}
    for i, layer in enumerate(layers):
        if not isinstance(layer, Block):
            continue
        if layer.joins is not None and last.get(layer.joins, -1) <= i:
            raise SpecError(
                None,
                f"workload {workload}: layer {layer.name}: joins: {shown(layer.joins)} is not "
                "a later layer",
                "name one that comes after it",
            )
        wrong = not_routed(layers[i - 1] if i else None, layer)
        if wrong is not None:
            raise SpecError(None, f"workload {workload}: layer {layer.name}: {wrong}")


def not_routed(before: Layer | Block | None, layer: Layer | Block) -> str | None:
    """Describe what is wrong if nothing is sent to a layer's experts; ``before`` is the layer before it."""
    if not isinstance(layer, Block) or not layer.experts or layer.routed:
        return None
    if isinstance(before, Block) and before.experts == layer.experts:
        return None
    return (
        f"nothing is routed to its {layer.experts} experts; give routed, or put it after a layer "
        "with as many experts"
    )


def check_workload(value: object) -> Workload:
    """Check that a value is a workload, or has a name and layers as one has, and give it.

    Raises
    ------
    SpecError
        If it is neither.
    """
    if hasattr(value, "name") and hasattr(value, "layers"):
        return cast(Workload, value)
    right = "name one, or make one as by hk.workload.load(...)"
    raise SpecError("workload", f"{shown(value)} is not a Workload", right)


def blocks_of(workload: Workload) -> list[Block]:
    """Return the layers of a workload by their costs, in the order of the forward pass.

    A layer of SCALE-Sim's kind costs two operations for each product, reads its input and writes its
    output, and each of its gradients costs as much; of a layer that reads data no input gradient is
    computed. A normalization reads its input twice and writes as much; backward, it reads that and a
    gradient twice and writes one; its input is kept too. Its operations, and biases, are not counted.

    # Complexity

    O(layers).
    """
    check_workload(workload)
    found = []
    for i, layer in enumerate(workload.layers):
        found.append(layer if isinstance(layer, Block) else _of_layer(layer, first=i == 0))
    return found


def _of_layer(layer: Layer, *, first: bool) -> Block:
    inputs = layer.times * layer.input_height * layer.input_width * layer.channels
    outputs = layer.times * layer.output_pixels * layer.filters
    moved = 2 * (inputs + outputs)
    normalized = 2 * outputs if layer.normalized else 0
    of_input = Work(2 * layer.macs, moved)
    of_weights = Work(2 * layer.macs, moved + 5 * normalized)
    if first or layer.reads_data:
        of_input = Work()
    elif layer.parameters == 0:
        # A product of two activations: both gradients are inputs'.
        of_input, of_weights = Work(4 * layer.macs, 2 * moved), Work()
    return Block(
        layer.name,
        forward=Work(2 * layer.macs, moved + 3 * normalized),
        input_gradient=of_input,
        weight_gradient=of_weights,
        parameters=layer.parameters,
        inputs=inputs,
        outputs=outputs,
        kept=inputs + outputs if layer.normalized else None,
    )
