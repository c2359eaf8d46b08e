"""Workload files: layers, and groups of layers that are repeated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, Discriminator, Field, Tag, ValidationError, model_validator

from hocket.errors import SpecError
from hocket.files.complaint import Located, complaint, did_you_mean, shown_path
from hocket.files.model import Name, Source, Strict, Words
from hocket.files.yaml_tree import FileKind, Place, parse_yaml, read_yaml
from hocket.units import shown
from hocket.workload import LARGEST, MOST_PARAMETERS, Layer, Workload

KIND = FileKind("workload", "layers:", "use repeat:")
MOST_LAYERS = 100_000
"""Of a workload, those that are repeated counted as often."""
_DEEPEST = 4

Size: TypeAlias = Annotated[int, Field(ge=1, lt=LARGEST)]
Area: TypeAlias = Annotated[list[Size], Field(min_length=2, max_length=2)]


class LayerEntry(Strict):
    """A layer; a fully connected one needs no ``input`` and no ``filter``."""

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
    parameters: Annotated[int, Field(ge=0, le=MOST_PARAMETERS)] | None = Field(
        default=None,
        description="Weights of each, where its filters do not say: 0 for a product of two "
        "activations, or for weights that an earlier layer has already.",
    )
    reads_data: bool = Field(
        default=False,
        description="Whether its input is data, of which no gradient is needed; that of the first "
        "layer always is.",
    )

    @model_validator(mode="after")
    def _fits(self) -> LayerEntry:
        self.layer(self.name)
        return self

    def layer(self, name: str) -> Layer:
        """Give the layer that this describes."""
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
        )


class GroupEntry(Strict):
    """Layers that come several times, each time with their own weights."""

    name: Name
    repeat: Size = 1
    layers: Annotated[list[Entry], Field(min_length=1)]


_TAGS = ("<layer>", "<group>")


def _form(value: object) -> str | None:
    if isinstance(value, dict):
        return "<group>" if "layers" in value else "<layer>"
    if isinstance(value, GroupEntry):
        return "<group>"
    return "<layer>" if isinstance(value, BaseModel) else None


Entry: TypeAlias = Annotated[
    Annotated[LayerEntry, Tag("<layer>")] | Annotated[GroupEntry, Tag("<group>")],
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
    layers: Annotated[list[Entry], Field(min_length=1)] = Field(
        description="Layers and groups of layers, in the order of the forward pass."
    )


def from_file(path: Path) -> Workload:
    """Read a workload file.

    Raises
    ------
    SpecError
        Naming file, line, key and remedy.
    """
    return _workload(*read_yaml(path, KIND), shown_path(path), path.stem)


def from_text(text: str, name: str) -> Workload:
    """Read a text as :func:`from_file` reads a file; ``name`` stands for it in messages."""
    return _workload(*parse_yaml(text, name, KIND), name, Path(name).stem)


def _workload(values: dict[str, Any], lines: dict[Place, int], name: str, stem: str) -> Workload:
    reader = _Reader(lines, name)
    reader.check_depth(values)
    try:
        file = WorkloadFile.model_validate(values)
    except ValidationError as error:
        raise reader.error(error) from None
    count = _count(file.layers)
    if count > MOST_LAYERS:
        raise reader.wrong(
            ("layers",), f"are {count} with all repeats; make it at most {MOST_LAYERS}"
        )
    layers = tuple(_expanded(file.layers, ""))
    source = tuple(
        " ".join(
            part for part in (each.paper, each.repo, each.path, each.commit, each.licence) if part
        )
        for each in file.source
    )
    try:
        return Workload(file.name or stem, layers, tuple(file.notes), source)
    except SpecError as error:
        raise reader.wrong(("layers",), str(error)) from None


def _count(entries: list[Entry]) -> int:
    return sum(
        each.repeat * (_count(each.layers) if isinstance(each, GroupEntry) else 1)
        for each in entries
    )


def _expanded(entries: list[Entry], before: str) -> Iterator[Layer]:
    """Give every layer; what is repeated gets its number from 1 after its name."""
    for each in entries:
        for i in range(1, each.repeat + 1):
            name = before + each.name + (f".{i}" if each.repeat > 1 else "")
            if isinstance(each, GroupEntry):
                yield from _expanded(each.layers, f"{name}/")
            else:
                yield each.layer(name)


class _Reader(Located):
    def check_depth(self, values: dict[str, Any]) -> None:
        """Refuse groups in groups without end."""
        level: list[tuple[Place, object]] = [((), values)]
        for depth in range(_DEEPEST + 2):
            level = [
                ((*place, "layers", i), inner)
                for place, value in level
                if isinstance(value, dict) and isinstance(value.get("layers"), list)
                for i, inner in enumerate(value["layers"])
            ]
            if depth == _DEEPEST + 1 and level:
                raise self.wrong(
                    level[0][0], f"groups are {_DEEPEST + 1} deep; make it at most {_DEEPEST}"
                )

    def error(self, error: ValidationError) -> SpecError:
        """Make one line of the first thing that pydantic found; of a misspelt key, its name."""
        errors = error.errors(include_url=False)
        beside = [each for each in errors if each["loc"][:-1] == errors[0]["loc"][:-1]]
        unknown = [each for each in beside if each["type"] == "extra_forbidden"]
        found = (unknown or errors)[0]
        forms = [part for part in found["loc"] if part in _TAGS]
        place = tuple(part for part in found["loc"] if part not in _TAGS)
        kind, given, context = found["type"], found["input"], found.get("ctx", {})
        words = tuple(part for part in place if isinstance(part, str))
        if kind == "extra_forbidden":
            known = list(_model(words, forms).model_fields)
            hint = did_you_mean(str(place[-1]), known, f"keys are {', '.join(known)}")
            message = f"there is no key {shown(place[-1])}; {hint}"
            return self.wrong(place[:-1], message, line_of=place)
        if kind == "missing":
            return self.wrong(place[:-1], f"key {place[-1]!r} is missing; add it")
        if kind == "value_error":
            return self.wrong(place, found["msg"].removeprefix("Value error, "))
        if kind == "form":
            wrong = "has no value" if given is None else f"{shown(given)} will not do"
            return self.wrong(place, f"{wrong}; {found['msg']}")
        of_list = kind in ("list_type", "too_short", "too_long") and given is not None
        if of_list and words[-1] in _LISTS:
            many = (
                f"has {context['actual_length']} entries"
                if "short" in kind or "long" in kind
                else ""
            )
            wrong = f"{shown(given)} {many or 'is no list'}"
            return self.wrong(place, f"{wrong}; write it as {_LISTS[words[-1]]}")
        return self.wrong(place, complaint(kind, given, context, words))


def _model(words: tuple[str, ...], forms: list[Any]) -> type[Strict]:
    """Which mapping a key stands in."""
    if words[:1] == ("source",) and len(words) > 1:
        return Source
    if not forms:
        return WorkloadFile
    return GroupEntry if forms[-1] == "<group>" else LayerEntry


_LISTS = {
    "layers": "lines of - {name: fc, channels: 2048, filters: 1000}, at least one",
    "input": "[height, width]",
    "filter": "[height, width]",
}


def json_schema() -> dict[str, Any]:
    """Give the JSON Schema of workload files, for editors."""
    schema = WorkloadFile.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "hocket workload",
    }
