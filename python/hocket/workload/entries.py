"""The keys of workload files, as pydantic models: the source of the JSON Schema."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)

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
            is_table=self.table,
            joins=self.joins,
        )


def _work(given: WorkEntry | int, samples: int) -> Work:
    if isinstance(given, int):
        return Work(time_ps=-(-given // samples))
    return Work(given.flops, given.bytes)


class TransformerSizes(Strict):
    """Sizes of a transformer; a sample is one sequence."""

    layers: Size
    hidden: Size = Field(description="Numbers for a token.")
    heads: Size
    sequence: Size = Field(description="Tokens of a sample.")
    vocabulary: SizeOrNone = Field(
        default=0, description="Words; without them no embedding and no head."
    )
    kv_heads: Size | None = Field(
        default=None, description="Heads of keys and values; as heads if left out."
    )
    feed_forward: Size | None = Field(
        default=None, description="Numbers inside; four times hidden if left out."
    )
    gated: bool = Field(default=False, description="Two matrices up, as SwiGLU.")
    tied_embeddings: bool = Field(default=True, description="The head's weights are these.")
    positions: SizeOrNone = Field(default=0, description="How many have a vector of their own.")
    token_types: SizeOrNone = Field(default=0, description="Kinds of tokens that have one.")
    embedding_norm: bool = Field(default=False, description="A normalization after the embedding.")
    final_norm: bool = Field(default=True, description="One after the last layer.")
    head: bool = Field(default=True, description="Scores of all words at the end.")
    causal: bool = Field(default=False, description="Half the scores of attention are left out.")
    biases: bool = Field(default=True, description="Of every matrix of the layers.")
    norm: Literal["layernorm", "rmsnorm"] = "layernorm"
    experts: SizeOrNone = Field(default=0, description="Of each feed-forward part.")
    top_k: Size = Field(default=2, description="Experts that a token is sent to.")

    @model_validator(mode="after")
    def _fits(self) -> TransformerSizes:
        self.architecture()
        return self

    def architecture(self) -> Transformer:
        """Return the transformer that this describes."""
        return Transformer(**dict(self))


class LstmSizes(Strict):
    """Sizes of a stack of LSTM layers; a sample is one sequence."""

    layers: Size
    hidden: Size = Field(description="Numbers of the state in each direction.")
    input: Size = Field(description="Numbers that the first layer takes at each step.")
    sequence: Size = Field(description="Steps of a sample.")
    bidirectional: bool = False
    biases: Annotated[int, Field(ge=0, le=2)] = Field(
        default=2, description="Vectors of biases for each gate."
    )

    @model_validator(mode="after")
    def _fits(self) -> LstmSizes:
        self.architecture()
        return self

    def architecture(self) -> Lstm:
        """Return the layers that this describes."""
        return Lstm(**dict(self))


class TransformerEntry(Strict):
    """A transformer: layers by their costs; its name, if any, stands before theirs."""

    name: Name | None = None
    transformer: TransformerSizes
    repeat: Size = 1

    @model_validator(mode="after")
    def _is_named(self) -> TransformerEntry:
        _check_named(self.name, self.repeat)
        return self

    @property
    def sizes(self) -> TransformerSizes:
        """Its sizes."""
        return self.transformer


class LstmEntry(Strict):
    """LSTM layers; their name, if any, stands before those of each."""

    name: Name | None = None
    lstm: LstmSizes
    repeat: Size = 1

    @model_validator(mode="after")
    def _is_named(self) -> LstmEntry:
        _check_named(self.name, self.repeat)
        return self

    @property
    def sizes(self) -> LstmSizes:
        """Their sizes."""
        return self.lstm


def _check_named(name: str | None, repeat: int) -> None:
    if name is None and repeat > 1:
        raise SpecError(None, "is repeated without a name", "give it one")


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
