"""A network as data: its devices, links and figures, and the statements of its file."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from hocket import _core
from hocket._results import HIDDEN, Column, Result, TableResult, figure, said
from hocket.topology.costs import NetworkCost, cost_of
from hocket.topology.spec import TopologySpec
from hocket.topology.warnings import warnings_of


@dataclass(frozen=True)
class Machine(Result):
    """A shipped machine."""

    name: str = field(metadata=said(column=Column("machine")))
    description: str = field(metadata=said(column=Column("what it is", is_prose=True)))


@dataclass(frozen=True)
class Dimension(Result):
    """A dimension of a network."""

    kind: str
    size: int
    bandwidth_bytes_per_s: int
    latency_ps: int
    offload: bool


@dataclass(frozen=True)
class Link(Result):
    """A link of a network."""

    src: str = field(metadata=said(column=Column("from")))
    dst: str = field(metadata=said(column=Column("to")))
    bandwidth_bytes_per_s: int = field(metadata=said(column=Column("bandwidth")))
    latency_ps: int = field(metadata=said(column=Column("latency")))


@dataclass(frozen=True)
class SwitchOffload(Result):
    """A switch that sums or multicasts."""

    switch: str
    operations: list[str]
    """sum, multicast and all-reduce."""
    rate_bytes_per_s: int | None
    trees: int | None


@dataclass(frozen=True)
class NetworkFigures(TableResult):
    """A network; as a table, its links."""

    name: str
    npus: list[str]
    switches: list[str]
    link_count: int
    out_degree: tuple[int, int]
    """The least and the largest number of links out of a device."""
    in_degree: tuple[int, int]
    connected: bool
    unreachable: tuple[str, str] | None
    """Two NPUs without a path from the first to the second."""
    diameter_hops: int | None
    diameter_latency_ps: int | None
    total_bandwidth: int = field(metadata=said("total_bandwidth_bytes_per_s"))
    link_bandwidth: tuple[int, int] | None = field(metadata=said("link_bandwidth_bytes_per_s"))
    """Of the slowest link and the fastest."""
    bisection_bandwidth: int | None = field(metadata=said("bisection_bytes_per_s"))
    bisection_is_minimum: bool
    """Else it is an upper bound: the least of the halvings that were tried."""
    switching: str
    profile: str | None
    """What real runs cost there: a shipped profile, or the file's own."""
    cost: NetworkCost | None
    """By the prices of its file; None where it has none."""
    dimensions: list[Dimension]
    failed_nodes: list[str]
    failed_links: list[list[str]]
    """Both ends of each."""
    groups: list[list[str]]
    """Names of the NPUs of each node."""
    offload: list[SwitchOffload]
    """Switches that do more than forward."""
    warnings: list[str]
    notes: list[str]
    source: list[str]
    network: _core.Topology = field(repr=False, metadata=HIDDEN)

    _table = "links"

    @classmethod
    def of(cls, spec: TopologySpec, network: _core.Topology) -> NetworkFigures:
        """Return those of a network that was built as its file says."""
        found, names = network.inspect(), network.device_names
        switches = names[network.npu_count :]
        offloads = zip(switches, network.switch_offloads, strict=False)
        return cls.taken_from(
            found,
            name=spec.name,
            npus=names[: network.npu_count],
            switches=switches,
            link_count=found.links,
            switching=network.switching,
            profile=None if spec.profile is None else spec.profile.name or spec.name,
            cost=cost_of(spec),
            dimensions=[Dimension(*each) for each in network.dimensions],
            failed_nodes=list(spec.failed_nodes),
            failed_links=[list(each) for each in spec.failed_links],
            groups=[[names[npu] for npu in group] for group in network.groups],
            offload=[
                SwitchOffload(name, list(can[0]), can[1], can[2])
                for name, can in offloads
                if can is not None
            ],
            warnings=warnings_of(network, found),
            notes=list(spec.notes),
            source=list(spec.source),
            network=network,
        )

    @cached_property
    @figure()
    def links(self) -> list[Link]:
        """Its links, each one way."""
        core, names = self.network, self.network.device_names
        ends = [[names[i] for i in end.tolist()] for end in (core.link_src, core.link_dst)]
        rates = (core.link_bandwidth.tolist(), core.link_latency_ps.tolist())
        return [Link(*each) for each in zip(*ends, *rates, strict=True)]
