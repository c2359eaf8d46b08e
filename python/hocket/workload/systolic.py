"""Cycles that a chiplet of systolic arrays takes to train a model.

After SCALE-Sim (Samajdar et al. 2018), output stationary, without stalls for memory, and section VI and
table II of Laskar et al. 2024 (RingBiOdd and TTO): a chiplet of 4 x 4 processing elements (PEs), each an
array of 256 x 256. docs/workloads.md says what each choice gives beside the figure that is published there.

What is not counted: biases, normalization, pooling, activation functions, the update of the weights, and
the sum of the gradients of a chiplet's own samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from hocket._checks import is_decimal, one_of, whole
from hocket.errors import SpecError
from hocket.units import parse_frequency, shown
from hocket.workload.layers import Layer, Workload

FOLDS = ("drained", "overlapped")
DISTRIBUTIONS = ("samples", "folds")
INPUT_GRADIENTS = ("convolution", "columns")
_WIDEST = 1 << 20
_MAX_SAMPLES = 1 << 24


class Gemm(NamedTuple):
    """A product of matrices: ``rows x depth`` by ``depth x columns``."""

    rows: int
    columns: int
    depth: int


@dataclass(frozen=True)
class Array:
    """An output-stationary systolic array.

    Each of its cells makes one number of the result; a result that is larger than the array is made in
    *folds*, one after the other.

    Attributes
    ----------
    rows, columns
        Cells.
    """

    rows: int = 256
    columns: int = 256

    def __post_init__(self) -> None:
        for name in ("rows", "columns"):
            whole(f"array: {name}", getattr(self, name), 1, _WIDEST)

    def folds(self, gemm: Gemm) -> int:
        """Return in how many parts a result is made."""
        return _ratio(gemm.rows, self.rows) * _ratio(gemm.columns, self.columns)

    def cycles(
        self, gemm: Gemm, *, folds: Literal["drained", "overlapped"] = "drained", arrays: int = 1
    ) -> int:
        """Return the cycles of a product.

        Parameters
        ----------
        gemm
            The product.
        folds
            ``drained``: a fold takes ``rows + columns + depth - 2`` cycles, until the last cell of the
            array has its number, and the next begins then; cycles are numbered from 0, and the number of
            the last is given. So count versions 2 and 3 of SCALE-Sim. ``overlapped``: operands of the next
            fold follow at once, results leave meanwhile, a row a cycle; a fold takes ``depth`` cycles, or
            as many as it has rows if that is more, and the array is filled once. So counts version 1,
            nearly.
        arrays
            Among how many arrays the folds are dealt out; the cycles are those of the one that has most.

        References
        ----------
        Samajdar et al., SCALE-Sim: Systolic CNN Accelerator Simulator, 2018, and its versions 2 and 3:
        what they print for single layers is what ``drained`` gives.
        """
        one_of("folds", folds, FOLDS)
        each = _ratio(self.folds(gemm), whole("arrays", arrays, 1, _WIDEST))
        if folds == "drained":
            return each * (self.rows + self.columns + gemm.depth - 2) - 1
        rows, columns = min(gemm.rows, self.rows), min(gemm.columns, self.columns)
        return each * max(gemm.depth, rows) + rows + columns - 2


@dataclass(frozen=True)
class LayerCycles:
    """Cycles of a layer for all samples of a chiplet.

    Attributes
    ----------
    layer
        The layer.
    forward
        Its output.
    input_gradient
        The gradient with respect to its input; 0 where nobody needs it.
    weight_gradient
        The gradient with respect to its weights.
    """

    layer: Layer
    forward: int
    input_gradient: int
    weight_gradient: int

    @property
    def backward(self) -> int:
        """Both gradients, one after the other."""
        return self.input_gradient + self.weight_gradient


@dataclass(frozen=True)
class WorkloadCycles:
    """Cycles of every layer of a workload, in the order of the forward pass."""

    layers: tuple[LayerCycles, ...]

    @property
    def forward(self) -> int:
        """The forward pass."""
        return sum(each.forward for each in self.layers)

    @property
    def backward(self) -> int:
        """The backward pass."""
        return sum(each.backward for each in self.layers)

    @property
    def total(self) -> int:
        """Both passes: T of Laskar et al., section VIII-B."""
        return self.forward + self.backward


@dataclass(frozen=True)
class Chiplet:
    """Processing elements (PEs), each a systolic array, that train on samples of their own.

    Attributes
    ----------
    processing_elements
        Rows and columns of PEs, such as 4x4.
    array
        Rows and columns of the array of a PE, such as 256x256.
    clock
        Clock of the chiplet, such as ``"1 GHz"``.
    precision_bits
        Bits of each number.
    folds
        Sequence of the folds of a product: drained or overlapped.
    distribution
        Work distributed over PEs: samples, or folds of all samples together.
    input_gradient
        Computation of the input gradient: convolution or columns.
    data_gradient
        Also compute the gradient of the data.

    Folds follow each other as in :meth:`Array.cycles`. With the distribution `samples`, each PE takes
    samples of its own, one at a time. With `folds`, all samples make one product, whose folds are dealt
    out to the PEs. An input gradient by convolution is that of the output's gradient, spread by the stride
    and padded, with the filters turned round: ``input pixels x channels``, summed over a filter of each
    output channel. One by columns is that of every place of the filters, ``output pixels x (filter x
    channels)``, summed over the filters; adding up what falls on one pixel is not counted.

    References
    ----------
    Laskar et al., Enhancing Collective Communication in MCM Accelerators for Deep Learning Training, HPCA
    2024, section VI and table II.
    """

    processing_elements: Annotated[tuple[int, int] | str, "ROWSxCOLUMNS"] = "4x4"
    array: Annotated[Array | tuple[int, int] | str, "ROWSxCOLUMNS"] = "256x256"
    clock: Annotated[str, "FREQUENCY"] = "1 GHz"
    precision_bits: int = 32
    folds: Literal["drained", "overlapped"] = "drained"
    distribution: Literal["samples", "folds"] = "samples"
    input_gradient: Literal["convolution", "columns"] = "convolution"
    data_gradient: bool = False

    def __post_init__(self) -> None:
        pes = pair("processing_elements", self.processing_elements)
        object.__setattr__(self, "processing_elements", pes)
        if not isinstance(self.array, Array):
            object.__setattr__(self, "array", Array(*pair("array", self.array)))
        whole("precision_bits", self.precision_bits, 1, 1024)
        one_of("folds", self.folds, FOLDS)
        one_of("distribution", self.distribution, DISTRIBUTIONS)
        one_of("input_gradient", self.input_gradient, INPUT_GRADIENTS)
        parse_frequency(self.clock, field="clock")

    @property
    def clock_hz(self) -> int:
        """Cycles per second."""
        return parse_frequency(self.clock, field="clock")

    def time_ps(self, cycles: int) -> int:
        """Return the time of so many cycles [ps], rounded up."""
        if type(cycles) is not int or cycles < 0:
            raise SpecError(
                "cycles", f"{shown(cycles)} is not a count", "give a whole number, 0 or more"
            )
        return _ratio(cycles * 10**12, self.clock_hz)

    def layer(self, layer: Layer, samples: int = 16, *, first: bool = False) -> LayerCycles:
        """Count a layer's cycles.

        Parameters
        ----------
        layer
            The layer.
        samples
            Of the whole chiplet.
        first
            Whether its input is data.
        """
        if not isinstance(layer, Layer):
            raise SpecError(
                "layer", f"{shown(layer)} is not a Layer", "give one, as of workload.layers"
            )
        whole("samples", samples, 1, _MAX_SAMPLES)
        forward, of_input, of_weights = self._gemms(layer, samples)
        needed = self.data_gradient or not (first or layer.reads_data)
        return LayerCycles(
            layer,
            self._cycles(forward, layer, samples),
            self._cycles(of_input, layer, samples) if needed else 0,
            self._cycles(of_weights, layer, samples),
        )

    def workload(self, workload: Workload, samples: int = 16) -> WorkloadCycles:
        """Count the cycles of every layer for so many samples of the whole chiplet.

        Raises
        ------
        SpecError
            Naming the first layer that is given by its costs: cycles follow from dimensions.
        """
        if not isinstance(workload, Workload):
            raise SpecError(
                "workload",
                f"{shown(workload)} is not a Workload",
                "give one, as by hk.workload.load(...)",
            )
        counted: dict[tuple[object, ...], LayerCycles] = {}
        layers = []
        for i, layer in enumerate(workload.layers):
            if not isinstance(layer, Layer):
                raise SpecError(
                    None,
                    f"workload {workload.name}: layer {layer.name} has costs and no dimensions, "
                    "from which cycles follow",
                    "give its dimensions, or see hk.workload.blocks_of",
                )
            shape = (layer.input_height, layer.input_width, layer.filter_height, layer.filter_width)
            sizes = (layer.channels, layer.filters, layer.stride, layer.times)
            key = (*shape, *sizes, i == 0 or layer.reads_data)
            if key not in counted:
                counted[key] = self.layer(layer, samples, first=i == 0)
            same = counted[key]
            layers.append(
                LayerCycles(layer, same.forward, same.input_gradient, same.weight_gradient)
            )
        return WorkloadCycles(tuple(layers))

    def _gemms(self, layer: Layer, samples: int) -> tuple[Gemm, Gemm, Gemm]:
        """Return the products for output, input gradient and weight gradient, of a PE or of all."""
        many = samples * layer.times if self.distribution == "folds" else 1
        out = many * layer.output_pixels
        if self.input_gradient == "columns":
            of_input = Gemm(out, layer.window, layer.filters)
        else:
            pixels = many * layer.input_height * layer.input_width
            taps = layer.filter_height * layer.filter_width
            of_input = Gemm(pixels, layer.channels, taps * layer.filters)
        return (
            Gemm(out, layer.filters, layer.window),
            of_input,
            Gemm(layer.window, layer.filters, out),
        )

    def _cycles(self, gemm: Gemm, layer: Layer, samples: int) -> int:
        assert isinstance(self.array, Array)
        rows, columns = pair("processing_elements", self.processing_elements)
        pes = rows * columns
        if self.distribution == "folds":
            return self.array.cycles(gemm, folds=self.folds, arrays=pes)
        turns = _ratio(samples, pes) * layer.times
        return turns * self.array.cycles(gemm, folds=self.folds)


def pair(name: str, value: object) -> tuple[int, int]:
    """Check that a value is two whole numbers, or such a text as ``4x4``, and give them."""
    if isinstance(value, str):
        parts = value.lower().split("x")
        if len(parts) != 2 or not all(is_decimal(part) and int(part) for part in parts):
            right = "write rows and columns as 4x4"
            raise SpecError(str(name), f"{shown(value)} is not a size", right)
        value = tuple(map(int, parts))
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise SpecError(
            str(name), f"{shown(value)} is not a pair", "give rows and columns, as (4, 4)"
        )
    low, high = (whole(name, each, 1, 1 << 10 if "elements" in name else _WIDEST) for each in value)
    return low, high


def _ratio(number: int, by: int) -> int:
    return -(-number // by)
