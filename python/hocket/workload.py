"""Models that are trained: their layers, weights and gradients.

Dimensions are those of SCALE-Sim's layer tables (Samajdar et al. 2018): the input counts with its padding,
so that an output is ``(input - filter) // stride + 1`` high and wide; a fully connected layer has an input
and a filter of 1 x 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from os import PathLike
from pathlib import Path

from hocket import workloads
from hocket.errors import SpecError
from hocket.units import shown

__all__ = ["Layer", "Workload", "load", "names"]

LARGEST = 1 << 24
"""No size of a layer is as large as this."""
_LONGEST_NAME = 2000
_PRECISION = 1024


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

    def __post_init__(self) -> None:
        _check_name(self.name)
        for field in _SIZES:
            whole(f"layer {self.name}: {field}", getattr(self, field), 1, LARGEST - 1)
        if self.own_parameters is not None:
            whole(f"layer {self.name}: own_parameters", self.own_parameters, 0, MOST_PARAMETERS)
        if self.filter_height > self.input_height or self.filter_width > self.input_width:
            raise SpecError(
                f"layer {self.name}: the filter, {self.filter_height} x {self.filter_width}, is larger "
                f"than the input, {self.input_height} x {self.input_width}; make the filter smaller, or "
                "give the input with its padding"
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
        """Weights that are trained; those of filters, without biases and normalization."""
        if self.own_parameters is not None:
            return self.own_parameters
        return self.window * self.filters

    @property
    def row_parameters(self) -> int:
        """Weights as SCALE-Sim's tables count them: a filter of its own wherever one is applied."""
        return self.times * self.window * self.filters

    def gradient_bytes(self, precision_bits: int = 32) -> int:
        """Give the bytes of the gradient of the weights, rounded up to whole ones."""
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
MOST_PARAMETERS = (1 << 48) - 1
"""Of a workload: what is more does not fit a size in bytes."""


@dataclass(frozen=True)
class Workload:
    """A model: its layers in the order of the forward pass.

    Attributes
    ----------
    name
        What it is called.
    layers
        Its layers; those that are repeated stand here as often.
    notes, source
        What its file says of it, and where the dimensions come from.
    """

    name: str
    layers: tuple[Layer, ...]
    notes: tuple[str, ...] = ()
    source: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_name(self.name)
        from hocket.blocks import Block

        given: object = self.layers
        if not isinstance(given, list | tuple) or not all(
            isinstance(x, Layer | Block) for x in given
        ):
            raise SpecError(f"workload {self.name}: layers: are no layers; give a list of Layer")
        object.__setattr__(self, "layers", tuple(given))
        if not self.layers:
            raise SpecError(f"workload {self.name}: there is no layer; give at least one")
        if max(self.parameters, self.row_parameters) > MOST_PARAMETERS:
            raise SpecError(
                f"workload {self.name}: has 2^48 parameters or more; make layers smaller or fewer"
            )

    @property
    def parameters(self) -> int:
        """Weights of all layers."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def row_parameters(self) -> int:
        """Weights of all layers as SCALE-Sim's tables count them."""
        return sum(getattr(layer, "row_parameters", layer.parameters) for layer in self.layers)

    def gradient_bytes(self, precision_bits: int = 32) -> int:
        """Give the bytes of the gradients of all layers, each rounded up to whole ones."""
        return sum(bytes_of(layer.parameters, precision_bits) for layer in self.layers)


def load(name_or_path: str | PathLike[str]) -> Workload:
    """Give a shipped workload by name, or one from a YAML file (docs/workloads.md).

    Raises
    ------
    SpecError
        Naming what was wrong and what would be right; of a file its name, key and line.
    """
    from hocket.files.workload_file import from_file

    text = str(name_or_path)
    if "\0" in text:
        raise SpecError(f"name_or_path: {shown(text)} is no path; leave the NUL out")
    path = Path(text)
    if path.suffix in (".yml", ".yaml") or "/" in text:
        return from_file(path)
    return from_file(workloads.path(text))


def names() -> list[str]:
    """Names of the shipped workloads."""
    return workloads.names()


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable():
        raise SpecError(f"name: {shown(name)} is no name; give up to {_LONGEST_NAME} letters")


def whole(field: str, value: object, least: int, most: int) -> int:
    """Check that a value is a whole number within bounds, and give it."""
    right = f"give a whole number from {least} to {most}"
    if isinstance(value, bool):
        raise SpecError(f"{field}: {shown(value)} is no number; {right}")
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError:
        raise SpecError(f"{field}: {shown(value)} is no whole number; {right}") from None
    if not least <= number <= most:
        size = "small" if number < least else "large"
        raise SpecError(f"{field}: {shown(number)} is too {size}; {right}")
    return number


def bytes_of(parameters: int, precision_bits: int) -> int:
    """Give the bytes that numbers of so many bits take, rounded up to whole ones."""
    bits = whole("precision_bits", precision_bits, 1, _PRECISION)
    return -(-parameters * bits // 8)
