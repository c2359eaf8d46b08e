"""The keys of workload files, as pydantic models: the source of the JSON Schema."""

from __future__ import annotations

from dataclasses import MISSING
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, cast, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    create_model,
    model_validator,
)

from hocket._options import declared
from hocket.errors import SpecError
from hocket.files.model import Delay, Name, Source, Strict, Words
from hocket.units import parse_count
from hocket.workload.costs import Block, Work
from hocket.workload.layers import Layer
from hocket.workload.limits import LARGEST, MAX_COUNT, MAX_PARAMETERS
from hocket.workload.recurrent import Lstm
from hocket.workload.transformers import Transformer

Size: TypeAlias = Annotated[int, Field(ge=1, lt=LARGEST)]
SizeOrNone: TypeAlias = Annotated[int, Field(ge=0, lt=LARGEST)]
Area: TypeAlias = Annotated[list[Size], Field(min_length=2, max_length=2)]


def _amount(value: object) -> object:
    """Read a count as ``1.2e9``, which YAML takes for a text."""
    if not isinstance(value, str | float) or (isinstance(value, float) and value == 0):
        return 0 if isinstance(value, float) else value
    return parse_count(value, field=None)


Amount: TypeAlias = Annotated[
    int,
    Field(ge=0, le=MAX_COUNT),
    BeforeValidator(_amount),
    WithJsonSchema({"type": ["number", "string"], "examples": [3000000, "1.2e9"]}),
]
Parameters: TypeAlias = Annotated[
    int,
    Field(ge=0, le=MAX_PARAMETERS),
    BeforeValidator(_amount),
    WithJsonSchema({"type": ["number", "string"], "examples": [2048000, "1.5e9"]}),
]


class LayerEntry(Strict):
    """A layer by its dimensions; a fully connected one needs no ``input`` and no ``filter``."""

    name: Name
    input: Area = Field(default=[1, 1], description="Height and width, padding included.")
    filter: Area = Field(default=[1, 1], description="Height and width.")
    channels: Size = Field(description="Of the input.")
    filters: Size = Field(description="How many, and so channels of the output.")
    stride: Size = 1
    times: Size = Field(
        default=1, description="How often it is applied for a sample, with the same weights."
    )
    repeat: Size = Field(default=1, description="How many such layers, each with its own weights.")
    parameters: Annotated[int, Field(ge=0, le=MAX_PARAMETERS)] | None = Field(
        default=None,
        description="Weights of each, where its filters do not say: 0 for a product of two "
        "activations, or for weights that an earlier layer has already.",
    )
    reads_data: bool = Field(
        default=False,
        description="Whether its input is data, of which no gradient is needed; that of the first "
        "layer always is.",
    )
    biases: bool = Field(default=False, description="Whether each filter has one, trained as well.")
    normalized: bool = Field(
        default=False,
        description="Whether a normalization follows, with a factor and a shift for each filter.",
    )

    @model_validator(mode="after")
    def _fits(self) -> LayerEntry:
        self.layer(self.name)
        return self

    def layer(self, name: str) -> Layer:
        """Return the layer that this describes."""
        return Layer(
            name,
            input_height=self.input[0],
            input_width=self.input[1],
            filter_height=self.filter[0],
            filter_width=self.filter[1],
            channels=self.channels,
            filters=self.filters,
            stride=self.stride,
            times=self.times,
            own_parameters=self.parameters,
            reads_data=self.reads_data,
            biases=self.biases,
            normalized=self.normalized,
        )


class WorkEntry(Strict):
    """The cost of a pass for one sample."""

    flops: Amount = Field(default=0, description="Operations; a multiply-add is two.")
    bytes: Amount = Field(
        default=0, description="Read and written, those of weights apart, for numbers of 16 bits."
    )


def _pass_form(value: object) -> str | None:
    if isinstance(value, dict | WorkEntry):
        return "<work>"
    return "<time>" if isinstance(value, str | int) and not isinstance(value, bool) else None


Pass: TypeAlias = Annotated[
    Annotated[WorkEntry, Tag("<work>")] | Annotated[Delay, Tag("<time>")],
    Discriminator(
        _pass_form,
        custom_error_type="form",
        custom_error_message="write what a sample takes as {flops: 1.2e9, bytes: 3e6}, or the "
        'time of measured_samples as "1.2 ms"',
    ),
]


class CostEntry(Strict):
    """A layer by its costs, for one sample."""

    name: Name
    forward: Pass = Field(description="Operations and bytes, or a measured time.")
    input_gradient: Pass | None = Field(
        default=None, description="As forward if left out, but nothing where the input is data."
    )
    weight_gradient: Pass | None = Field(
        default=None, description="If left out, as forward where there are parameters."
    )
    parameters: Parameters = 0
    inputs: Amount = Field(default=0, description="Numbers from the layer before.")
    outputs: Amount = Field(default=0, description="Numbers for the next layer.")
    kept: Amount | None = Field(
        default=None, description="Numbers kept for the backward pass; inputs if left out."
    )
    split: Literal["copied", "columns", "rows", "inside"] = Field(
        default="copied", description="What tensor parallelism does to it."
    )
    experts: SizeOrNone = Field(default=0, description="Among which parameters are divided.")
    routed: Amount = Field(
        default=0, description="Numbers that are sent to experts, and as many that come back."
    )
    top: Size = Field(
        default=1, description="Experts that each token goes to; routed counts it for each of them."
    )
    table: bool = Field(
        default=False, description="Whether it is embedding tables, dealt out over all NPUs."
    )
    joins: Name | None = Field(
        default=None, description="The later layer that needs its outputs, if not the next."
    )
    reads_data: bool = Field(
        default=False, description="Whether its input is data, as that of the first layer."
    )
    repeat: Size = Field(default=1, description="How many such layers, each with its own weights.")

    @model_validator(mode="after")
    def _fits(self) -> CostEntry:
        if self.reads_data and self.input_gradient is not None:
            raise SpecError(
                "input_gradient", "no gradient of data is needed", "leave one of them out"
            )
        self.block(self.name, first=False, samples=1)
        return self

    @property
    def is_measured(self) -> bool:
        """Whether one of its passes is a time."""
        passes = (self.forward, self.input_gradient, self.weight_gradient)
        return any(isinstance(each, int) for each in passes)

    def block(self, name: str, *, first: bool, samples: int) -> Block:
        """Return the layer that this describes; measured times are those of so many samples."""
        forward = _work(self.forward, samples)
        reads_data = self.reads_data or (first and self.input_gradient is None)
        input_gradient = Work() if reads_data else forward
        if self.input_gradient is not None:
            input_gradient = _work(self.input_gradient, samples)
        weight_gradient = forward if self.parameters else Work()
        if self.weight_gradient is not None:
            weight_gradient = _work(self.weight_gradient, samples)
        return Block(
            name,
            forward,
            input_gradient,
            weight_gradient,
            parameters=self.parameters,
            inputs=self.inputs,
            outputs=self.outputs,
            kept=self.kept,
            split=self.split,
            experts=self.experts,
            routed=self.routed,
            top=self.top,
            is_table=self.table,
            joins=self.joins,
        )


def _work(given: WorkEntry | int, samples: int) -> Work:
    if isinstance(given, int):
        return Work(time_ps=-(-given // samples))
    return Work(given.flops, given.bytes)


class ArchitectureSizes(Strict):
    """Sizes of layers of one kind; a sample is one sequence."""

    of: ClassVar[type[Transformer | Lstm]]

    @model_validator(mode="after")
    def _fits(self) -> ArchitectureSizes:
        self.architecture()
        return self

    def architecture(self) -> Transformer | Lstm:
        """Return the layers that this describes."""
        return self.of(**dict(self))


def _sizes(kind: type[Transformer | Lstm]) -> type[ArchitectureSizes]:
    """Make the keys of an architecture from the fields of its class, which checks what types do not say."""
    hints = get_type_hints(kind)
    keys: dict[str, Any] = {}
    for name, each in declared(cast(type, kind)).items():
        if each.default is MISSING:
            keys[name] = (Size, Field(description=each.doc))
            continue
        hint = hints[name]
        if each.kind is int:
            hint = Size | None if each.default is None else SizeOrNone
        keys[name] = (hint, Field(default=each.default, description=each.doc))
    about = str(kind.__doc__).partition("\n")[0]
    made = create_model(f"{kind.__name__}Sizes", __base__=ArchitectureSizes, __doc__=about, **keys)
    made.of = kind
    return made


if TYPE_CHECKING:
    TransformerSizes: TypeAlias = ArchitectureSizes
    LstmSizes: TypeAlias = ArchitectureSizes
else:
    TransformerSizes, LstmSizes = _sizes(Transformer), _sizes(Lstm)


class ArchitectureEntry(Strict):
    """Layers by their costs, made of sizes; their name, if any, stands before that of each."""

    name: Name | None = None
    repeat: Size = 1

    @model_validator(mode="after")
    def _is_named(self) -> ArchitectureEntry:
        if self.name is None and self.repeat > 1:
            raise SpecError(None, "is repeated without a name", "give it one")
        return self


class TransformerEntry(ArchitectureEntry):
    """A transformer."""

    transformer: TransformerSizes

    @property
    def sizes(self) -> ArchitectureSizes:
        """Its sizes."""
        return self.transformer


class LstmEntry(ArchitectureEntry):
    """LSTM layers."""

    lstm: LstmSizes

    @property
    def sizes(self) -> ArchitectureSizes:
        """Their sizes."""
        return self.lstm


class GroupEntry(Strict):
    """Layers that come several times, each time with their own weights."""

    name: Name
    repeat: Size = 1
    layers: Annotated[list[Entry], Field(min_length=1)]


_FORMS: dict[str, type[Strict]] = {
    "<layer>": LayerEntry,
    "<costs>": CostEntry,
    "<group>": GroupEntry,
    "<transformer>": TransformerEntry,
    "<lstm>": LstmEntry,
}
_COST_KEYS = CostEntry.model_fields.keys() - LayerEntry.model_fields.keys()


def _form(value: object) -> str | None:
    if isinstance(value, BaseModel):
        return next((tag for tag, model in _FORMS.items() if isinstance(value, model)), None)
    if not isinstance(value, dict):
        return None
    for key, tag in (
        ("layers", "<group>"),
        ("transformer", "<transformer>"),
        ("lstm", "<lstm>"),
        ("channels", "<layer>"),
        ("filters", "<layer>"),
    ):
        if key in value:
            return tag
    return "<costs>" if _COST_KEYS & value.keys() else "<layer>"


Entry: TypeAlias = Annotated[
    Annotated[LayerEntry, Tag("<layer>")]
    | Annotated[CostEntry, Tag("<costs>")]
    | Annotated[GroupEntry, Tag("<group>")]
    | Annotated[TransformerEntry, Tag("<transformer>")]
    | Annotated[LstmEntry, Tag("<lstm>")],
    Discriminator(
        _form,
        custom_error_type="form",
        custom_error_message="write a layer as {name: fc, channels: 2048, filters: 1000} and layers "
        "that are repeated as {name: block, repeat: 3, layers: [...]}",
    ),
]


class WorkloadFile(Strict):
    """A model that is trained."""

    name: Name | None = None
    source: list[Source] = Field(default=[], description="Where the dimensions come from.")
    notes: list[Words] = Field(default=[], description="What else there is to say.")
    measured_samples: Size | None = Field(
        default=None, description="Of the batch whose times are given."
    )
    layers: Annotated[list[Entry], Field(min_length=1)] = Field(
        description="Layers, groups of layers and architectures, in the order of the forward pass."
    )


TAGS = (*_FORMS, "<work>", "<time>")
"""Parts of a location in a pydantic error that are no keys: which form of a value was meant."""


def model_of(location: tuple[Any, ...]) -> type[Strict]:
    """Return the model whose mapping a key stands in, by the key's location in a pydantic error."""
    if location[:1] == ("source",) and len(location) > 1:
        return Source
    inner = location[:-1]
    for part in reversed(inner):
        if part == "<work>":
            return WorkEntry
        if part == "transformer":
            return TransformerSizes
        if part == "lstm":
            return LstmSizes
        if part in _FORMS:
            return _FORMS[part]
    return WorkloadFile


def near_keys(word: str, known: list[str]) -> list[str]:
    """Return the keys that a misspelt one may stand for: of a layer, those of either kind of layer."""
    layers = [*LayerEntry.model_fields, *CostEntry.model_fields]
    return layers if known == list(LayerEntry.model_fields) and word not in layers else known
