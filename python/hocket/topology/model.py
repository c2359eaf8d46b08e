"""The keys of hocket's own topology files, as pydantic models: the source of the JSON Schema."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import (
    BeforeValidator,
    Field,
    Tag,
    WithJsonSchema,
    create_model,
    model_validator,
)

from hocket._core.families import Family
from hocket.files.model import (
    RATE_TEXT,
    TIME_TEXT,
    Count,
    Delay,
    Name,
    Rate,
    Source,
    Strict,
    Words,
    one_of,
)
from hocket.topology.cost_model import Costs
from hocket.topology.declared import FAMILIES, described, is_left_out
from hocket.topology.defaults import Default, default
from hocket.topology.offload import Operation
from hocket.units import parse_bandwidth, parse_time, parse_written, shown


def rate_or_default(value: object, *, field: str | None = None) -> int | Default:
    """Read a bandwidth [bytes/s], or ask for a default one."""
    if isinstance(value, str) and value.startswith("default"):
        return default("bandwidth", value, field=field)
    return parse_written(parse_bandwidth, value, field=field)


def delay_or_default(value: object, *, field: str | None = None) -> int | Default:
    """Read a latency [ps], or ask for a default one."""
    if isinstance(value, str) and value.startswith("default"):
        return default("latency", value, field=field)
    return parse_written(parse_time, value, field=field)


RateOrDefault: TypeAlias = Annotated[
    int | Default, BeforeValidator(lambda value: rate_or_default(value)), WithJsonSchema(RATE_TEXT)
]
DelayOrDefault: TypeAlias = Annotated[
    int | Default,
    BeforeValidator(lambda value: delay_or_default(value)),
    WithJsonSchema(TIME_TEXT),
]


class Failures(Strict):
    """The failed parts, by name."""

    nodes: list[Name] = Field(default=[], description="NPUs and switches.")
    links: list[Annotated[list[Name], Field(min_length=2, max_length=2)]] = Field(
        default=[], description="Both ends of each link; it fails both ways."
    )


Groups: TypeAlias = Annotated[
    Annotated[Count, Tag("<int>")]
    | Annotated[list[Annotated[list[Name], Field(min_length=1)]], Tag("<list>")],
    one_of("<int>", "<list>", right="give a number of NPUs, or lists as [[gpu0, gpu1], ...]"),
]


class Offload(Strict):
    """Switches that do more than forward: what they can do, how fast, for how many trees."""

    switches: Annotated[
        Annotated[Literal["all"], Tag("<str>")] | Annotated[list[Name], Tag("<list>")],
        one_of("<str>", "<list>", right="give names, as [s0, s1], or all"),
    ] = Field(description="Names of switches, or all.")
    operations: Annotated[list[Operation], Field(min_length=1)] = Field(
        description="sum: what comes from several devices leaves as one sum to one; multicast: what comes "
        "from one leaves to several; all-reduce: a sum leaves to several."
    )
    rate: Rate | None = Field(
        default=None, description="Bandwidth at which each takes in what ends at it."
    )
    trees: Count | None = Field(
        default=None,
        description="How many sets of devices each can be set up for, with which it exchanges one chunk.",
    )


Share: TypeAlias = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
PositiveNumber: TypeAlias = Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)]


class Profile(Strict):
    """The costs of a machine other than its links: constants of the model of times."""

    source: list[Source] = Field(default=[])
    notes: list[Words] = Field(default=[])
    box: Words | None = Field(default=None, description="Class of its nodes, as h100.")
    fabric: Words | None = Field(default=None, description="Class of what joins them, as ib.")
    launch: dict[Words, Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]] = Field(
        default={}, description="What launching a collective takes, by kind of program [us]."
    )
    launch_per_npu: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] = Field(
        default=0.0, description="What each NPU of a process that drives several adds to it [us]."
    )
    constants: dict[Words, Annotated[list[PositiveNumber], Field(min_length=1, max_length=3)]] = (
        Field(
            default={},
            description="By name: the value, and the ends of its 90 % interval where they are known; times "
            "in microseconds, efficiencies as shares of nominal bandwidth.",
        )
    )
    blocks: dict[Words, Annotated[list[PositiveNumber], Field(min_length=1, max_length=3)]] = Field(
        default={},
        description="Constants of thread blocks, likewise; times in microseconds, rates in GB/s.",
    )
    errors: dict[
        Literal["below 1 MiB", "from 1 MiB"],
        Annotated[list[Share], Field(min_length=2, max_length=2)],
    ] = Field(
        default={},
        description="Of measured times that the fit did not see: median and 90th percentile, as shares.",
    )
    fitted_to: dict[Words, Words] = Field(
        default={},
        description="Files of measured times that the constants were fitted to, each with the start of its "
        "SHA-256.",
    )


class ProfileFile(Strict):
    """A profile that stands alone."""

    profile: Profile


Profiled: TypeAlias = Annotated[
    Annotated[Words, Tag("<str>")] | Annotated[Profile, Tag("<dict>")],
    one_of(
        "<str>", "<dict>", right="name a shipped profile, or give {launch: ..., constants: ...}"
    ),
]


def _gpu(value: object) -> object:
    if isinstance(value, str) and not re.fullmatch("sm[1-9][0-9]{1,2}|gfx[0-9a-f]{3,4}", value):
        raise ValueError(f"{shown(value)} names no GPUs; write sm90 or gfx942")
    return value


Gpu: TypeAlias = Annotated[str, BeforeValidator(_gpu)]


class Common(Strict):
    """Keys of every form."""

    name: Name | None = None
    source: list[Source] = Field(default=[])
    notes: list[Words] = Field(default=[])
    failed: Failures = Failures()
    slow: list[Annotated[str, Field(min_length=1)]] = Field(
        default=[],
        description="Slow devices and links with their rates, as nic0=50Gb/s or 'gpu0,gpu1=12.5 GB/s'.",
    )
    groups: Groups | None = Field(
        default=None,
        description="Which NPUs form a node: lists of their names, or how many that follow one another do.",
    )
    offload: list[Offload] = Field(
        default=[], description="Switches that sum and multicast; the others only forward."
    )
    profile: Profiled | None = Field(
        default=None,
        description="What real runs cost beside latency and bandwidth: a shipped profile, or constants.",
    )
    costs: Costs | None = Field(
        default=None, description="What NPUs, links and switches cost, in any unit."
    )
    gpu: Gpu | None = Field(
        default=None, description="What the NPUs are, as dumps state it: sm90 or gfx942."
    )
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


Npus: TypeAlias = Annotated[
    Annotated[Count, Tag("<int>")] | Annotated[list[Name], Tag("<list>")],
    one_of("<int>", "<list>", right="give a number of NPUs or a list of their names"),
]
SwitchEntry: TypeAlias = Annotated[
    Annotated[Name, Tag("<str>")] | Annotated[Switch, Tag("<dict>")],
    one_of("<str>", "<dict>", right='give a name, or {name: s0, limit: "100 GB/s"}'),
]
ShortLink: TypeAlias = Annotated[list[Words], Field(min_length=3, max_length=4)]
LinkEntry: TypeAlias = Annotated[
    Annotated[Link, Tag("<dict>")] | Annotated[ShortLink, Tag("<list>")],
    one_of(
        "<dict>",
        "<list>",
        right="write a link as [a, b, kind], [a, b, bandwidth, latency] or {a: ..., b: ..., ...}",
    ),
]


class LinksFile(Common):
    """Devices and links, one by one."""

    npus: Npus
    switches: list[SwitchEntry] = Field(default=[])
    link_kinds: dict[Words, LinkKind] = Field(default={})
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


class FamilyFile(Common):
    """A network of a family, by its parameters."""

    builder: str

    def arguments(self) -> dict[str, object]:
        """Return the parameters; None where one is left out that has no default of its own."""
        return {each.name: getattr(self, each.name) for each in FAMILIES[self.builder].parameters}


_TYPES: dict[str, Any] = {
    "count": Count,
    "counts": Annotated[list[Count], Field(min_length=1, max_length=32)],
    "bandwidth": Rate,
    "latency": Delay,
    "flag": bool,
}


def _model(family: Family) -> type[FamilyFile]:
    """Make the keys of a family from its parameters."""
    fields: dict[str, Any] = {"builder": (cast("Any", Literal)[family.name], ...)}
    for each in family.parameters:
        kind, about = _TYPES[each.unit], " ".join(described(each).split())
        if each.unit == "count" and each.default == 0:
            kind = Annotated[int, Field(ge=0, lt=1 << 32)]
        if each.required:
            fields[each.name] = (kind, Field(description=about))
        elif is_left_out(each):
            fields[each.name] = (kind | None, Field(default=None, description=about))
        else:
            fields[each.name] = (kind, Field(default=each.default, description=about))
    name = "".join(word.capitalize() for word in family.name.split("_"))
    about = family.about.partition("\n")[0]
    return create_model(f"{name}File", __base__=FamilyFile, __doc__=about, **fields)


BUILDERS = {name: _model(family) for name, family in FAMILIES.items()}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of topology files, for editors."""
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
