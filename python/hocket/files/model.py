"""The common base of the pydantic models of files: the source of their JSON Schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from hocket._checks import did_you_mean
from hocket.errors import SpecError
from hocket.files.complaint import NAME, Located, complaint
from hocket.units import parse_bandwidth, parse_time, parse_written, shown

if TYPE_CHECKING:
    from hocket.files.yaml_tree import Place


def _rate(value: object) -> int:
    return parse_written(parse_bandwidth, value, field=None)


def _delay(value: object) -> int:
    return parse_written(parse_time, value, field=None)


RATE_TEXT = {"type": "string", "examples": ["25 GB/s", "200 Gb/s"]}
TIME_TEXT = {"type": "string", "examples": ["700 ns", "1.7 us"]}

Rate: TypeAlias = Annotated[int, BeforeValidator(_rate), WithJsonSchema(RATE_TEXT)]
Delay: TypeAlias = Annotated[int, BeforeValidator(_delay), WithJsonSchema(TIME_TEXT)]
Count: TypeAlias = Annotated[int, Field(ge=1, lt=1 << 32)]
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=200, pattern=NAME)]
Words: TypeAlias = Annotated[str, Field(min_length=1, max_length=2000)]


class Strict(BaseModel):
    """No unknown keys, no conversions between types."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True, defer_build=True
    )


class Source(Strict):
    """The source of the facts: a repository or a paper."""

    paper: Words | None = None
    repo: Words | None = None
    path: Words | None = None
    commit: Words | None = None
    licence: Words | None = None

    @model_validator(mode="after")
    def _says_where(self) -> Source:
        if self.repo is None and self.paper is None:
            raise ValueError("key 'repo' is missing; add it, or paper:")
        return self


TAGS = ("<int>", "<list>", "<dict>", "<str>")
"""Parts of a location in a pydantic error that are no keys: which form of a value was meant."""


def _form(value: object) -> str | None:
    tag = f"<{type(value).__name__}>"
    return tag if tag in TAGS else None


def one_of(*forms: str, right: str) -> Discriminator:
    """Distinguish the forms of a value by its type, so that an error is about the form meant."""

    def tag(value: object) -> str | None:
        if isinstance(value, BaseModel):
            return "<dict>"
        found = _form(value)
        return found if found in forms else None

    return Discriminator(tag, custom_error_type="form", custom_error_message=right)


Model = TypeVar("Model", bound=Strict)


def last_key(place: Place) -> str | None:
    """Return the innermost key that leads to a place."""
    return next((part for part in reversed(place) if isinstance(part, str)), None)


def _models(kind: Any) -> Iterator[type[Strict]]:
    """Yield the models in a type."""
    if isinstance(kind, type) and issubclass(kind, Strict):
        yield kind
    for part in get_args(kind):
        yield from _models(part)


class Reader(Located):
    """A reader of files whose values a model describes; it says in one line what is wrong first.

    A kind of file puts its own words in place of :meth:`keys_at`, :meth:`near` and :meth:`fault`.
    """

    tags: tuple[str, ...] = TAGS

    def checked(self, model: type[Model], values: object) -> Model:
        """Return what the values of a file say.

        Raises
        ------
        SpecError
            Naming file, line, key and remedy.
        """
        try:
            return model.model_validate(values)
        except ValidationError as error:
            raise self._first(error, model) from None

    def keys_at(self, model: type[Strict], location: Place) -> list[str]:
        """Return the keys that the mapping at a location of a pydantic error may have."""
        models = [model]
        for part in location[:-1]:
            fields = [each.model_fields[part] for each in models if part in each.model_fields]
            models = [kind for each in fields for kind in _models(each.annotation)] or models
        return list(dict.fromkeys(name for each in models for name in each.model_fields))

    def near(self, word: str, known: list[str]) -> list[str]:
        """Return the keys that a misspelt one may stand for."""
        del word
        return known

    def fault(self, place: Place, found: Any) -> SpecError | None:
        """Return what is wrong with a value, if a kind of file has words of its own for it."""

    def _first(self, error: ValidationError, model: type[Strict]) -> SpecError:
        """Make an error of the first thing that pydantic found; of a misspelt key, its name."""
        errors = error.errors(include_url=False)
        beside = [each for each in errors if each["loc"][:-1] == errors[0]["loc"][:-1]]
        unknown = [each for each in beside if each["type"] == "extra_forbidden"]
        found = (unknown or errors)[0]
        place = tuple(part for part in found["loc"] if part not in self.tags)
        kind, given, context = found["type"], found["input"], found.get("ctx", {})
        if kind == "extra_forbidden":
            word, known = str(place[-1]), self.keys_at(model, found["loc"])
            hint = did_you_mean(word, self.near(word, known), f"keys are {', '.join(known)}")
            why = f"there is no key {shown(place[-1])}; {hint}"
            return self.wrong(place[:-1], why, line_of=place)
        if kind == "missing":
            return self.wrong(place[:-1], f"key {place[-1]!r} is missing", "add it")
        own = self.fault(place, found)
        if own is not None:
            return own
        if kind == "value_error":
            return self.wrong(place, str(context["error"]))
        if kind == "form":
            why = "has no value" if given is None else f"{shown(given)} is not valid"
            return self.wrong(place, why, found["msg"])
        words = tuple(part for part in place if isinstance(part, str) and part != "[key]")
        return self.wrong(place, complaint(kind, given, context, words))


def schema_of(model: type[BaseModel], title: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of files, for editors."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **model.model_json_schema(), "title": title}
