"""Options that belong together, as values: a command has a parameter for each group, not for each option.

Help shows each group in a panel of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Annotated, ClassVar, cast

from hocket import _core
from hocket.cli import options
from hocket.cli.command import Option
from hocket.collectives.collective import collective_on
from hocket.collectives.custom import is_file, load_collective
from hocket.collectives.sizes import sizes_of
from hocket.collectives.timing import Latency
from hocket.errors import SpecError
from hocket.plans.synthesis import PlanOptions
from hocket.simulation.options import (
    PRESETS,
    DimensionOptions,
    FidelityOptions,
    TransferOptions,
    fidelity_options,
)
from hocket.topology.build import build_topology
from hocket.topology.spec import TopologySpec
from hocket.units import shown

_PACKETS = "Packet fidelity"
_OF_FIDELITY = ("fidelity", "preset", "latency_model")
"""What says which fidelity it is, and what has another name in Python."""


@dataclass(frozen=True)
class Network:
    """The network."""

    panel: ClassVar[str] = "Network"

    topology: options.TopologyText
    bandwidth: options.Bandwidth = None
    latency: options.LatencyText = None
    failed: options.Failed = None

    def spec(self) -> TopologySpec:
        """Read what is said of the network, before anything is built; say what its file leaves open."""
        spec = options.read_spec(self.topology, self.bandwidth, self.latency, self.failed)
        for line in spec.assumed:
            options.aside(f"{spec.name}: {line}")
        return spec

    def build(self) -> _core.Topology:
        """Make the network."""
        return build_topology(self.spec())


@dataclass(frozen=True)
class Nodes(Network):
    """The network, and which of its NPUs form a node."""

    groups: options.Groups = None

    def spec(self) -> TopologySpec:
        """Read what is said of the network, before anything is built."""
        spec = super().spec()
        if self.groups is None:
            return spec
        return replace(spec, groups=self.groups, groups_from="--groups")


@dataclass(frozen=True)
class Task:
    """The collective, apart from its kind."""

    panel: ClassVar[str] = "Collective"

    size: options.FileOrSize = None
    npus: options.Npus = None
    root: options.Root = None

    def collective(
        self, kind: str, network: _core.Topology, *, in_place: bool = True
    ) -> _core.Collective:
        """Make the collective, of a kind or of a file."""
        if is_file(kind):
            return _of_file(kind, network, self)
        if self.size is None:
            raise SpecError("--size", "there is none", 'give bytes, as in --size "256 MB"')
        return collective_on(
            kind, network, self.size, npus=self.npus, root=self.root, in_place=in_place
        )


@dataclass(frozen=True)
class Sizes:
    """One size of a collective, or several."""

    panel: ClassVar[str] = "Collective"

    size: options.Sizes = None
    sizes: options.Sweep = None

    def read(self) -> list[int]:
        """Return them [bytes] in the order in which they are asked for.

        Raises
        ------
        SpecError
            If one is not a size, or there is none.
        """
        if not self.size and self.sizes is None:
            raise SpecError("--size", "there is none", "give -s 256MB, or --sizes 8K:1G:x4")
        found = sizes_of(self.size, field="size") if self.size else []
        found += sizes_of(self.sizes) if self.sizes is not None else []
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Tasks(Sizes):
    """The collective at one size or several, apart from its kind."""

    npus: options.Npus = None
    root: options.Root = None

    def collectives(self, kind: str, network: _core.Topology) -> list[_core.Collective]:
        """Make the collective at each size, or that of a file."""
        if is_file(kind):
            return [_of_file(kind, network, self)]
        return [
            collective_on(kind, network, size, npus=self.npus, root=self.root)
            for size in self.read()
        ]


def _of_file(file: str, network: _core.Topology, task: Task | Tasks) -> _core.Collective:
    """Read a collective from its file, which says all that the options say."""
    for name, given in vars(task).items():
        if given is not None:
            raise SpecError(f"--{name}", f"{shown(file)} has its own", "leave it out")
    return load_collective(file, network)


@dataclass(frozen=True)
class Search:
    """How plans are made."""

    panel: ClassVar[str] = "Planning"

    chunks: options.Chunks = None
    chunk_size: Annotated[
        str | None,
        Option(
            "--chunk-size",
            rare=True,
            help='Bytes of each slice of the data, such as "96 KiB", instead of --chunks.',
        ),
    ] = None
    routing: options.Routing = "balanced"
    time_limit: options.TimeLimit = None
    seed: options.SeedNumber = 0
    unwind: options.Unwind = None
    trials: Annotated[
        int | None,
        Option(
            "--trials",
            rare=True,
            help="Largest number of random trials of a synthesizer. Default: 64.",
        ),
    ] = None
    window: Annotated[
        int | None,
        Option(
            "--window",
            rare=True,
            help="For exact: plan N slots at a time, one window after the other.",
        ),
    ] = None
    slot: Annotated[
        str | None,
        Option(
            "--slot",
            rare=True,
            help='For exact: length of a slot, such as "2.3 us". Default: chosen by hocket.',
        ),
    ] = None
    cache: options.Cache = True

    def planning(self, latency: str | None = None) -> PlanOptions:
        """Return the options as one value; `latency` is the model of latency."""
        values = {each.name: getattr(self, each.name) for each in fields(Search)}
        given = {name: value for name, value in values.items() if value is not None}
        return PlanOptions(latency=cast(Latency, latency or "overlapped"), **given)


@dataclass(frozen=True)
class Simulation:
    """How plans are simulated, other than on dimensions."""

    panel: ClassVar[str] = "Simulation"

    fidelity: options.LinkFidelity = "link"
    order: options.Order = None
    switching: options.SwitchingText = None
    latency_model: options.LatencyModel = None
    flow_rate: options.FlowRate = None
    preset: Annotated[
        str | None,
        Option(
            "--preset",
            rare=True,
            help="Preset of all packet options; mcm is a mesh of chiplets at 1 GHz.",
            panel=_PACKETS,
        ),
    ] = None
    packet_size: Annotated[
        str | None,
        Option(
            "--packet-size", rare=True, help='Bytes of a packet. Default: "8192 B".', panel=_PACKETS
        ),
    ] = None
    flit_size: Annotated[
        str | None,
        Option("--flit-size", rare=True, help='Bytes of a flit. Default: "512 B".', panel=_PACKETS),
    ] = None
    header_flits: Annotated[
        int | None,
        Option(
            "--header-flits",
            rare=True,
            help="Header flits of each packet. Default: 0.",
            panel=_PACKETS,
        ),
    ] = None
    virtual_channels: Annotated[
        int | None,
        Option(
            "--virtual-channels",
            rare=True,
            help="Virtual channels of each link. Default: 4.",
            panel=_PACKETS,
        ),
    ] = None
    buffer_flits: Annotated[
        int | None,
        Option(
            "--buffer-flits",
            rare=True,
            help="Flits in the buffer of each virtual channel. Default: 318.",
            panel=_PACKETS,
        ),
    ] = None
    clock: Annotated[
        str | None,
        Option(
            "--clock",
            rare=True,
            help='Clock of the routers. Default: "1 GHz", or higher for fast links.',
            panel=_PACKETS,
        ),
    ] = None
    reduction_rate: Annotated[
        str | None,
        Option(
            "--reduction-rate",
            rare=True,
            help='Rate at which an NPU sums, such as "100 GB/s". Default: sums take no time.',
            panel=_PACKETS,
        ),
    ] = None

    def any_fidelity(self) -> FidelityOptions:
        """Return the fidelity with its options."""
        fidelity = self.fidelity
        if self.preset is not None:
            options.choice("--preset", self.preset, tuple(PRESETS))
            if fidelity != "packet":
                raise SpecError(
                    "--preset",
                    f"{fidelity} fidelity does not use it",
                    "leave it out, or use --fidelity packet",
                )
            fidelity = f"packet:{self.preset}"
        names = [each.name for each in fields(Simulation) if each.name not in _OF_FIDELITY]
        given = {name: getattr(self, name) for name in names}
        return fidelity_options(fidelity, {**given, "latency": self.latency_model})

    def transfers(self) -> TransferOptions:
        """Return the fidelity with its options, one at which transfers are simulated."""
        found = self.any_fidelity()
        if isinstance(found, DimensionOptions):
            raise SpecError("--fidelity", "dimension has no links", "use link, flow or packet")
        return found


@dataclass(frozen=True)
class Output:
    """Further output."""

    panel: ClassVar[str] = "Output"

    plot: options.Plot = None
    json: options.Json = False
