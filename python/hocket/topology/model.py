"""The keys of hocket's own topology files, as pydantic models: the source of the JSON Schema."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)

from hocket.topology.defaults import Default, default
from hocket.units import parse_bandwidth, parse_time

FIELD = "@"
"""Stands for the field in messages of validators; the reader puts the path in its place."""


def _rate(value: object) -> int:
    return parse_bandwidth(value, field=FIELD)


def _delay(value: object) -> int:
    return parse_time(value, field=FIELD)


def rate_or_default(value: object, *, field: str = FIELD) -> int | Default:
    """Read a bandwidth [bytes/s], or ask for a default one."""
    if isinstance(value, str) and value.startswith("default"):
        return default("bandwidth", value, field=field)
    return parse_bandwidth(value, field=field)


def delay_or_default(value: object, *, field: str = FIELD) -> int | Default:
    """Read a latency [ps], or ask for a default one."""
    if isinstance(value, str) and value.startswith("default"):
        return default("latency", value, field=field)
    return parse_time(value, field=field)


_RATE_TEXT = {"type": "string", "examples": ["25 GB/s", "200 Gb/s"]}
_TIME_TEXT = {"type": "string", "examples": ["700 ns", "1.7 us"]}

Rate: TypeAlias = Annotated[int, BeforeValidator(_rate), WithJsonSchema(_RATE_TEXT)]
Delay: TypeAlias = Annotated[int, BeforeValidator(_delay), WithJsonSchema(_TIME_TEXT)]
RateOrDefault: TypeAlias = Annotated[
    int | Default, BeforeValidator(lambda value: rate_or_default(value)), WithJsonSchema(_RATE_TEXT)
]
DelayOrDefault: TypeAlias = Annotated[
    int | Default,
    BeforeValidator(lambda value: delay_or_default(value)),
    WithJsonSchema(_TIME_TEXT),
]
Count: TypeAlias = Annotated[int, Field(ge=1, lt=1 << 32)]
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\s,]+$")]
Words: TypeAlias = Annotated[str, Field(min_length=1, max_length=2000)]


class Strict(BaseModel):
    """No unknown keys, no conversions between types."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True, defer_build=True
    )


class Failures(Strict):
    """What has failed, by name."""

    nodes: list[Name] = Field(default=[], description="NPUs and switches.")
    links: list[Annotated[list[Name], Field(min_length=2, max_length=2)]] = Field(
        default=[], description="Both ends of each link; it fails both ways."
    )


class Source(Strict):
    """Where the facts come from: a repository or a paper."""

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


class Common(Strict):
    """Keys of every form."""

    name: Name | None = None
    source: list[Source] = []
    notes: list[Words] = []
    failed: Failures = Failures()
    switching: Literal["store-and-forward", "cut-through"] | None = Field(
        default=None,
        description="How devices pass messages on: once they are whole, or as they arrive. "
        "By default cut-through for dims: and builders with a Switch dimension, else "
        "store-and-forward.",
    )


class LinkKind(Strict):
    """Bandwidth and latency that links of a kind share."""

    bandwidth: RateOrDefault
    latency: DelayOrDefault


class Way(Strict):
    """Bandwidth and latency of one direction."""

    bandwidth: RateOrDefault
    latency: DelayOrDefault


class Switch(Strict):
    """A switch with a bandwidth limit of its own."""

    name: Name
    limit: Rate | None = None


class Link(Strict):
    """A link from ``a`` to ``b``, and back unless ``ways`` is ``one``."""

    a: Name
    b: Name
    kind: Words | None = None
    bandwidth: RateOrDefault | None = None
    latency: DelayOrDefault | None = None
    ways: Literal["both", "one"] = "both"
    count: Annotated[int, Field(ge=1, le=100_000)] = 1
    reverse: Way | None = None


TAGS = ("<int>", "<list>", "<dict>", "<str>")
"""Parts of a location in a pydantic error that are no keys: which form of a value was meant."""


def _form(value: object) -> str | None:
    tag = f"<{type(value).__name__}>"
    return tag if tag in TAGS else None


def _one_of(*forms: str, right: str) -> Discriminator:
    """Tell the forms of a value apart by its type, so that an error is about the form meant."""

    def tag(value: object) -> str | None:
        if isinstance(value, BaseModel):
            return "<dict>"
        found = _form(value)
        return found if found in forms else None

    return Discriminator(tag, custom_error_type="form", custom_error_message=right)


Npus: TypeAlias = Annotated[
    Annotated[Count, Tag("<int>")] | Annotated[list[Name], Tag("<list>")],
    _one_of("<int>", "<list>", right="give a number of NPUs or a list of their names"),
]
SwitchEntry: TypeAlias = Annotated[
    Annotated[Name, Tag("<str>")] | Annotated[Switch, Tag("<dict>")],
    _one_of("<str>", "<dict>", right='give a name, or {name: s0, limit: "100 GB/s"}'),
]
ShortLink: TypeAlias = Annotated[list[Words], Field(min_length=3, max_length=4)]
LinkEntry: TypeAlias = Annotated[
    Annotated[Link, Tag("<dict>")] | Annotated[ShortLink, Tag("<list>")],
    _one_of(
        "<dict>",
        "<list>",
        right="write a link as [a, b, kind], [a, b, bandwidth, latency] or {a: ..., b: ..., ...}",
    ),
]


class LinksFile(Common):
    """Devices and links, one by one."""

    npus: Npus
    switches: list[SwitchEntry] = []
    link_kinds: dict[Words, LinkKind] = {}
    links: list[LinkEntry] = Field(
        description="Mappings, or short: [a, b, kind] or [a, b, bandwidth, latency]."
    )


class Dimension(Strict):
    """One dimension of a product."""

    kind: Literal["Ring", "FullyConnected", "Switch", "Line"]
    size: Count
    bandwidth: Rate
    latency: Delay
    offload: bool = Field(
        default=False,
        description="Whether its switches sum and multicast; only those of a Switch can.",
    )

    @model_validator(mode="after")
    def _can_offload(self) -> Dimension:
        if self.offload and self.kind != "Switch":
            raise ValueError(
                f"a {self.kind} has no switches that could sum; leave offload: to a Switch"
            )
        return self


class DimsFile(Common):
    """A product of dimensions; NPU numbers vary fastest in the first."""

    dims: Annotated[list[Dimension], Field(min_length=1, max_length=32)]


class Linked(Common):
    """Keys of every builder: bandwidth and latency of its links."""

    bandwidth: Rate
    latency: Delay

    def arguments(self) -> tuple[object, ...]:
        """Give what the builder of the core takes."""
        raise TypeError


class LineFile(Linked):
    """NPUs in a row."""

    builder: Literal["line"]
    npus: Count

    def arguments(self) -> tuple[object, ...]:
        """Give what the builder of the core takes."""
        return (self.npus, self.bandwidth, self.latency)


class RingFile(Linked):
    """NPUs in a cycle."""

    builder: Literal["ring"]
    npus: Count
    ways: Literal["both", "one"] = "both"

    def arguments(self) -> tuple[object, ...]:
        """Give what the builder of the core takes."""
        return (self.npus, self.bandwidth, self.latency, self.ways == "both")


class FullyConnectedFile(Linked):
    """A link each way between every pair of NPUs."""

    builder: Literal["fully_connected"]
    npus: Count

    def arguments(self) -> tuple[object, ...]:
        """Give what the builder of the core takes."""
        return (self.npus, self.bandwidth, self.latency)


class SwitchFile(Linked):
    """NPUs around one switch."""

    builder: Literal["switch"]
    npus: Count
    limit: Rate | None = None

    def arguments(self) -> tuple[object, ...]:
        """Give what the builder of the core takes."""
        return (self.npus, self.bandwidth, self.latency, self.limit)


class GridFile(Linked):
    """A mesh or torus of any number of axes."""

    builder: Literal["mesh", "torus"]
    size: Annotated[list[Count], Field(min_length=1, max_length=32)]

    def arguments(self) -> tuple[object, ...]:
        """Give what the builder of the core takes."""
        return (self.size, self.bandwidth, self.latency)


class HypercubeFile(Linked):
    """``2 ** log2_npus`` NPUs."""

    builder: Literal["hypercube"]
    log2_npus: Annotated[int, Field(ge=1, le=1000)]

    def arguments(self) -> tuple[object, ...]:
        """Give what the builder of the core takes."""
        return (self.log2_npus, self.bandwidth, self.latency)


class DragonflyFile(Linked):
    """Fully connected groups, a link between every two."""

    builder: Literal["dragonfly"]
    groups: Count
    group_size: Count
    global_bandwidth: Rate | None = None
    global_latency: Delay | None = None

    def arguments(self) -> tuple[object, ...]:
        """Give what the builder of the core takes."""
        far = self.bandwidth if self.global_bandwidth is None else self.global_bandwidth
        late = self.latency if self.global_latency is None else self.global_latency
        return (self.groups, self.group_size, self.bandwidth, self.latency, far, late)


class ClosFile(Linked):
    """NPUs below ToR switches, every ToR joined to every spine."""

    builder: Literal["clos"]
    spines: Count
    tors: Count
    hosts_per_tor: Count
    host_bandwidth: Rate | None = None

    def arguments(self) -> tuple[object, ...]:
        """Give what the builder of the core takes."""
        host = self.bandwidth if self.host_bandwidth is None else self.host_bandwidth
        counts = (self.spines, self.tors, self.hosts_per_tor)
        return (*counts, host, self.bandwidth, self.latency)


class BiGraphFile(Linked):
    """Two sides of switches, every one joined to every one across, NPUs at all of them."""

    builder: Literal["bigraph"]
    switches_per_side: Count
    npus_per_switch: Count

    def arguments(self) -> tuple[object, ...]:
        """Give what the builder of the core takes."""
        return (self.switches_per_side, self.npus_per_switch, self.bandwidth, self.latency)


class FatTreeFile(Linked):
    """A three-level fat tree of k-port switches."""

    builder: Literal["fat_tree"]
    k: Count

    def arguments(self) -> tuple[object, ...]:
        """Give what the builder of the core takes."""
        return (self.k, self.bandwidth, self.latency)


BUILDERS: dict[str, type[Linked]] = {
    "line": LineFile,
    "ring": RingFile,
    "fully_connected": FullyConnectedFile,
    "switch": SwitchFile,
    "mesh": GridFile,
    "torus": GridFile,
    "hypercube": HypercubeFile,
    "dragonfly": DragonflyFile,
    "clos": ClosFile,
    "bigraph": BiGraphFile,
    "fat_tree": FatTreeFile,
}


def json_schema() -> dict[str, Any]:
    """Give the JSON Schema of topology files, for editors."""
    from pydantic import TypeAdapter

    forms: Any = LinksFile | DimsFile
    for model in BUILDERS.values():
        forms = forms | model
    schema: dict[str, Any] = TypeAdapter(forms).json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hocket topology",
        **schema,
    }
