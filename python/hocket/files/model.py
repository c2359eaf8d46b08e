"""The common base of the pydantic models of files: the source of their JSON Schemas."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    WithJsonSchema,
    model_validator,
)

from hocket.units import parse_bandwidth, parse_time, parse_written


def _rate(value: object) -> int:
    return parse_written(parse_bandwidth, value, field=None)


def _delay(value: object) -> int:
    return parse_written(parse_time, value, field=None)


RATE_TEXT = {"type": "string", "examples": ["25 GB/s", "200 Gb/s"]}
TIME_TEXT = {"type": "string", "examples": ["700 ns", "1.7 us"]}

Rate: TypeAlias = Annotated[int, BeforeValidator(_rate), WithJsonSchema(RATE_TEXT)]
Delay: TypeAlias = Annotated[int, BeforeValidator(_delay), WithJsonSchema(TIME_TEXT)]
Count: TypeAlias = Annotated[int, Field(ge=1, lt=1 << 32)]
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\s,]+$")]
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
