"""A topology as read from a file or an option, before the core builds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

from hocket.topology.offload import Operation
from hocket.topology.slow import Slow

Groups: TypeAlias = int | tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class DimensionSpec:
    """One dimension of a product.

    Kind, NPUs, its links' bandwidth [bytes/s] and latency [ps], and whether its switches sum.
    """

    kind: str
    size: int
    bandwidth: int
    latency_ps: int
    offload: bool = False


def skipped(dimensions: Sequence[DimensionSpec]) -> tuple[str, ...]:
    """Return a note about each dimension that joins nothing, having one NPU."""
    return tuple(
        f"dimension {i} ({each.kind}) has size 1 and is skipped"
        for i, each in enumerate(dimensions, 1)
        if each.size == 1
    )


@dataclass(frozen=True)
class OffloadSpec:
    """Switches that sum or multicast: names (None: all), operations, rate [bytes/s] and number of trees."""

    switches: tuple[str, ...] | None
    operations: tuple[Operation, ...]
    rate: int | None = None
    trees: int | None = None


@dataclass(frozen=True)
class BuilderSpec:
    """A family of networks and its parameters by name: sizes, bytes/s and ps."""

    family: str
    arguments: dict[str, object]


@dataclass(frozen=True)
class LinkSpec:
    """A directed link: device names, bandwidth [bytes/s], latency [ps], kind, and what is a default."""

    src: str
    dst: str
    bandwidth: int
    latency_ps: int
    kind: str | None = None


@dataclass(frozen=True)
class ProfileSpec:
    """The costs of a machine other than latency and bandwidth, as in a file.

    Attributes
    ----------
    name
        Of a shipped profile; then the rest is empty.
    launch
        What launching takes, by kind of program [us].
    launch_per_npu
        What each NPU of a process that drives several adds [us].
    constants
        By name: the value, and the ends of its interval where they are known.
    source
        Where they come from, a line each.
    origin
        The file, for messages.
    blocks
        Constants of thread blocks by name, as `constants`.
    fitted_to
        The files of measured times that it was fitted to: what identifies their contents, by name.
    box, fabric
        Classes of its nodes and of what joins them; empty if the file states none.
    errors
        Of times of this machine that were kept back, by band of sizes: median and 90th percentile.
    """

    name: str | None = None
    launch: Mapping[str, float] = field(default_factory=dict)
    launch_per_npu: float = 0.0
    constants: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    source: tuple[str, ...] = ()
    origin: str = ""
    blocks: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    fitted_to: Mapping[str, str] = field(default_factory=dict)
    box: str = ""
    fabric: str = ""
    errors: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class PriceSpec:
    """The cost of one link or switch: units for each, and for each byte/s of its bandwidth."""

    each: float = 0.0
    per_byte_per_s: Fraction = Fraction(0)

    def of(self, bandwidth: int) -> Fraction:
        """Return exactly what one of this bandwidth costs [bytes/s]."""
        return Fraction(self.each) + self.per_byte_per_s * bandwidth


@dataclass(frozen=True)
class CostsSpec:
    """The costs of the parts of a network.

    Attributes
    ----------
    npu
        Each NPU.
    link, switch
        Each cable and each switch.
    kinds
        Cables by the kind of their links, instead of `link`.
    dimensions
        Cables and switches of each dimension, instead of `link` and `switch`.
    """

    npu: float = 0.0
    link: PriceSpec = PriceSpec()
    switch: PriceSpec = PriceSpec()
    kinds: Mapping[str, PriceSpec] = field(default_factory=dict)
    dimensions: tuple[tuple[PriceSpec, PriceSpec], ...] = ()


@dataclass(frozen=True)
class TopologySpec:
    """A network: a builder, dimensions, or devices and links; and what of it has failed.

    Attributes
    ----------
    name
        What it is called in reports.
    builder, dimensions, links
        Exactly one says what the network is.
    npus, switches
        Names of the devices of ``links``; a switch with its own limit [bytes/s] or None.
    failed_nodes, failed_links
        Names of devices, and of both ends of links.
    switching
        How devices pass messages on; None: as the builder has it.
    notes
        What a user should know, such as which values are defaults.
    source
        Where the facts come from, a line each.
    origin
        The file or option that said so, for messages.
    failed_from
        The key or option that named what has failed, for messages.
    slow, slow_from
        Which devices and links are slow, with their rates [bytes/s], and what said so.
    named
        Whether a file names it, so that the network itself is called so.
    groups
        Which NPUs form a node, by name; how many that follow one another do; or text, as of
        :func:`hocket.topology.grouped`.
    groups_from
        The key or option that said so, for messages.
    offloads
        Which switches sum and multicast.
    profile
        What real runs cost beside latency and bandwidth.
    costs
        What its parts cost.
    node
        The dump that it is one node of, where nobody stated how many nodes there are.
    dumps
        The dump of each node, where it was made of such.
    gpu
        What its NPUs are, as a dump of NCCL or RCCL or a file states it: ``"sm80"``, ``"gfx942"``.
    assumed
        Those of the notes without which bandwidths mean little: what the file leaves open.
    lines
        Lines of a file by their places, for messages: of what has failed or is slow, of groups and of
        offload.
    """

    name: str
    builder: BuilderSpec | None = None
    dimensions: tuple[DimensionSpec, ...] = ()
    npus: tuple[str, ...] = ()
    switches: tuple[tuple[str, int | None], ...] = ()
    links: tuple[LinkSpec, ...] = ()
    failed_nodes: tuple[str, ...] = ()
    failed_links: tuple[tuple[str, str], ...] = ()
    switching: str | None = None
    notes: tuple[str, ...] = ()
    source: tuple[str, ...] = field(default=())
    origin: str = ""
    failed_from: str = "failed"
    slow: tuple[Slow, ...] = ()
    slow_from: str = "slow"
    named: bool = False
    groups: Groups | str = ()
    groups_from: str = "groups"
    offloads: tuple[OffloadSpec, ...] = ()
    profile: ProfileSpec | None = None
    costs: CostsSpec | None = None
    node: Path | None = None
    dumps: tuple[Path, ...] = ()
    gpu: str | None = None
    assumed: tuple[str, ...] = ()
    lines: Mapping[tuple[str | int, ...], int] = field(
        default_factory=dict, compare=False, repr=False
    )

    def with_failures(self, nodes: Sequence[str], links: Sequence[tuple[str, str]]) -> TopologySpec:
        """Return the same network with these failures instead, those of ``--failed`` among them."""
        same = (tuple(nodes), tuple(links)) == (self.failed_nodes, self.failed_links)
        source = self.failed_from if same else "--failed"
        return replace(
            self, failed_nodes=tuple(nodes), failed_links=tuple(links), failed_from=source
        )

    def with_slow(self, slow: Sequence[Slow], source: str = "--slow") -> TopologySpec:
        """Return the same network with these parts slow too."""
        return replace(self, slow=(*self.slow, *slow), slow_from=source) if slow else self
