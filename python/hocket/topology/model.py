"""The keys of hocket's own topology files, as pydantic models: the source of the JSON Schema."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BeforeValidator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)

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
from hocket.topology.defaults import Default, default
from hocket.topology.offload import Operation
from hocket.units import parse_bandwidth, parse_time, parse_written


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
    """What has failed, by name."""

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


PositiveNumber: TypeAlias = Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)]


class Profile(Strict):
    """What a machine costs beside latency and bandwidth of its links: constants of the law of times."""

    source: list[Source] = Field(default=[])
    notes: list[Words] = Field(default=[])
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


class ProfileFile(Strict):
    """A profile that stands alone."""

    profile: Profile


Profiled: TypeAlias = Annotated[
    Annotated[Name, Tag("<str>")] | Annotated[Profile, Tag("<dict>")],
    one_of(
        "<str>", "<dict>", right="name a shipped profile, or give {launch: ..., constants: ...}"
    ),
]


class Common(Strict):
    """Keys of every form."""

    name: Name | None = None
    source: list[Source] = Field(default=[])
    notes: list[Words] = Field(default=[])
    failed: Failures = Failures()
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
    npus_per_router: Count | None = None
    global_bandwidth: Rate | None = None
    global_latency: Delay | None = None

    def arguments(self) -> tuple[object, ...]:
        """Give what the builder of the core takes."""
        far = self.bandwidth if self.global_bandwidth is None else self.global_bandwidth
        late = self.latency if self.global_latency is None else self.global_latency
        link = (self.bandwidth, self.latency)
        each = () if self.npus_per_router is None else (self.npus_per_router,)
        return (self.groups, self.group_size, *link, far, late, *each)


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


class _NodesFile(Linked):
    """Keys of the builders of nodes: links inside them may be others."""

    nodes: Count
    npus: Count
    node_bandwidth: Rate | None = None
    node_latency: Delay | None = None

    def _links(self) -> tuple[int, int, int, int]:
        near = self.bandwidth if self.node_bandwidth is None else self.node_bandwidth
        soon = self.latency if self.node_latency is None else self.node_latency
        return (near, soon, self.bandwidth, self.latency)


class RailFile(_NodesFile):
    """Nodes whose NPU i is linked to rail switch i, and those to every spine."""

    builder: Literal["rail"]
    spines: Annotated[int, Field(ge=0, lt=1 << 32)] = 0

    def arguments(self) -> tuple[object, ...]:
        """Give what the builder of the core takes."""
        return (self.nodes, self.npus, self.spines, self._links())


class BoxFile(_NodesFile):
    """Nodes with network interfaces, all of which one switch joins."""

    builder: Literal["box"]
    nics: Count | None = None

    def arguments(self) -> tuple[object, ...]:
        """Give what the builder of the core takes."""
        return (self.nodes, self.npus, self.nics or self.npus, self._links())


class PlanesFile(Linked):
    """NPUs, each linked to every one of some switches."""

    builder: Literal["planes"]
    npus: Count
    planes: Count

    def arguments(self) -> tuple[object, ...]:
        """Give what the builder of the core takes."""
        return (self.npus, self.planes, self.bandwidth, self.latency)


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
    "rail": RailFile,
    "box": BoxFile,
    "planes": PlanesFile,
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
