"""Models that are trained: their layers, weights and gradients.

Dimensions are those of SCALE-Sim's layer tables (Samajdar et al. 2018): the input counts with its padding,
so that an output is ``(input - filter) // stride + 1`` high and wide; a fully connected layer has an input
and a filter of 1 x 1.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any

from hocket import workloads
from hocket.blocks import Block, Work, blocks_of, check_order
from hocket.errors import SpecError
from hocket.limits import LARGEST, MOST_PARAMETERS, check_name
from hocket.limits import bytes_of as bytes_of
from hocket.limits import whole as whole
from hocket.transformers import Transformer
from hocket.units import shown

__all__ = [
    "Block",
    "Layer",
    "Transformer",
    "Work",
    "Workload",
    "blocks_of",
    "load",
    "names",
    "transformer",
]


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
        """Numbers that are trained: weights, biases, and factors and shifts of a normalization."""
        own = self.window * self.filters if self.own_parameters is None else self.own_parameters
        return own + (self.biases + 2 * self.normalized) * self.filters

    @property
    def row_parameters(self) -> int:
        """Weights as SCALE-Sim's tables count them: a filter wherever one is applied, no biases."""
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
                f"workload {self.name}: layers: are no layers; give a list of Layer or Block"
            )
        object.__setattr__(self, "layers", tuple(given))
        if not self.layers:
            raise SpecError(f"workload {self.name}: there is no layer; give at least one")
        if max(self.parameters, self.row_parameters) > MOST_PARAMETERS:
            raise SpecError(
                f"workload {self.name}: has 2^48 parameters or more; make layers smaller or fewer"
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
        """Give the bytes of the gradients of all layers, each rounded up, tables left out."""
        return sum(layer.gradient_bytes(precision_bits) for layer in self.layers)


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


def transformer(name: str = "transformer", **sizes: Any) -> Workload:
    """Give a transformer as a workload by its sizes; a sample is one sequence.

    Parameters
    ----------
    name
        What it is called.
    sizes
        Attributes of :class:`Transformer`, such as ``layers=96, hidden=12288, heads=96, sequence=2048,
        vocabulary=50257``.

    Raises
    ------
    SpecError
        Naming the size that makes no sense.
    """
    known = [field.name for field in fields(Transformer)]
    for key in sizes:
        if key not in known:
            raise SpecError(f"transformer: there is no {shown(key)}; sizes are {', '.join(known)}")
    missing = [key for key in ("layers", "hidden", "heads", "sequence") if key not in sizes]
    if missing:
        raise SpecError(f"transformer: {missing[0]} is missing; give it")
    return Workload(name, tuple(Transformer(**sizes).blocks()))
