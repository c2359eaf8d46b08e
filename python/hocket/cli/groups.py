"""Options that belong together, as values: a command has a parameter for each group, not for each option.

Help shows each group in a panel of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar, TypeAlias

from hocket import _core
from hocket.cli import options
from hocket.cli.command import Option, Panel
from hocket.cli.wording import typed
from hocket.collectives.collective import collective_on
from hocket.collectives.custom import is_own, load_collective
from hocket.collectives.sizes import sizes_of
from hocket.deployment.groups import at_once, collectives_of
from hocket.errors import SpecError
from hocket.plans.synthesis import PlanOptions
from hocket.simulation.options import (
    PRESETS,
    DimensionOptions,
    FidelityOptions,
    FlowOptions,
    LinkOptions,
    PacketOptions,
    TransferOptions,
    fidelity_options,
)
from hocket.topology.build import build_topology
from hocket.topology.spec import TopologySpec
from hocket.units import shown


@dataclass(frozen=True)
class Network:
    """The network."""

    panel: ClassVar[str] = "Network"

    topology: options.TopologyText
    bandwidth: options.Bandwidth = None
    latency: options.LatencyText = None
    failed: options.Failed = None
    nodes: options.LikeNodes = None
    slow: options.SlowParts = None

    def read(self) -> TopologySpec:
        """Read what is said of the network, before anything is built."""
        return options.read_spec(
            self.topology, self.bandwidth, self.latency, self.failed, self.nodes, self.slow
        )

    def spec(self) -> TopologySpec:
        """Read it, and say what its file leaves open."""
        spec = self.read()
        for line in spec.assumed:
            options.aside(f"{spec.name}: {line}")
        return spec

    def build(self) -> _core.Topology:
        """Make the network."""
        return build_topology(self.spec())

    def words(self) -> str:
        """Return the options that were given, to paste."""
        given = ((each.name, getattr(self, each.name)) for each in fields(self))
        lists = ((name, value if isinstance(value, list) else [value]) for name, value in given)
        words = [typed(name, each) for name, values in lists for each in values if each is not None]
        return " ".join(words)


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
    process_groups: options.ProcessGroups = None

    def collective(
        self, kind: str, network: _core.Topology, *, in_place: bool = True
    ) -> _core.Collective:
        """Make the collective, of a kind or of a file."""
        if is_own(kind):
            return _of_file(kind, network, self)
        if self.size is None:
            raise SpecError("--size", "there is none", 'give bytes, as in --size "256 MB"')
        if self.process_groups is not None:
            return at_once(self.named(kind, network, in_place=in_place))
        return collective_on(
            kind, network, self.size, npus=self.npus, root=self.root, in_place=in_place
        )

    def named(
        self, kind: str, network: _core.Topology, *, in_place: bool = True
    ) -> list[tuple[str, list[_core.Collective]]]:
        """Make the collectives of the process groups of each name, in the order of :meth:`collective`."""
        assert self.process_groups is not None
        assert self.size is not None
        given = {"npus": self.npus, "root": self.root, "in_place": in_place}
        return collectives_of(self.process_groups, kind, network, self.size, given)


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
    """The collective at one size or several, among the NPUs of one group or of several at once."""

    npus: options.Npus = None
    root: options.Root = None
    process_groups: options.ProcessGroups = None

    def collectives(self, kind: str, network: _core.Topology) -> list[_core.Collective]:
        """Make the collective at each size, or that of a file."""
        if is_own(kind):
            return [_of_file(kind, network, self)]
        rest = (self.npus, self.root, self.process_groups)
        return [Task(f"{size} B", *rest).collective(kind, network) for size in self.read()]


def _of_file(file: str, network: _core.Topology, task: Task | Tasks) -> _core.Collective:
    """Read a collective from its file, which says all that the options say."""
    for name, given in vars(task).items():
        if given is not None:
            option = f"--{name.replace('_', '-')}"
            raise SpecError(option, f"{shown(file)} has its own", "leave it out")
    return load_collective(file, network)


SYNTHESIS = ("chunk_size", "seed", "unwind", "trials", "window", "slot", "relays", "cache")
Planning = Annotated[
    PlanOptions,
    Panel("Planning", rare=(*SYNTHESIS, "effort"), but=("memory_limit", "latency_model")),
]
"""How plans are made; the model of latency is that of the simulation."""
LinkPlanning = Annotated[
    PlanOptions, Panel("Planning", rare=(*SYNTHESIS, "latency_model"), but=("memory_limit",))
]
"""How plans are made that are not simulated."""
TimedPlanning = Annotated[PlanOptions, Panel("Planning", only=["effort", "time_limit"])]
"""How plans are made that other options say nothing of."""
RARE_IN_TRAINING = ("bucket", "overlap_tensor", "update", "order", "cache", "dispatch")
Given: TypeAlias = dict[str, Any]
"""Options by name, those that are given."""


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """The options of simulations, other than those on dimensions."""

    panel: ClassVar[str] = "Simulation"

    fidelity: options.LinkFidelity = "link"
    link: Annotated[
        Given, Panel("Simulation", rare=("order", "switching", "latency_model"), of=LinkOptions)
    ]
    flow: Annotated[Given, Panel("Simulation", rare=True, of=FlowOptions)]
    packet: Annotated[Given, Panel("Packet fidelity", rare=True, of=PacketOptions)]
    preset: Annotated[
        str | None,
        Option(
            "--preset",
            rare=True,
            help="Preset of all packet options; mcm is a mesh of chiplets at 1 GHz.",
            panel="Packet fidelity",
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
        return fidelity_options(fidelity, {**self.link, **self.flow, **self.packet})

    def transfers(self) -> TransferOptions:
        """Return the fidelity with its options, one at which transfers are simulated."""
        found = self.any_fidelity()
        if isinstance(found, DimensionOptions):
            raise SpecError("--fidelity", "dimension has no links", "use link, flow or packet")
        return found

    def planned(self, planning: PlanOptions) -> tuple[PlanOptions, TransferOptions]:
        """Return how plans are made and simulated, under one model of latency."""
        found = self.transfers()
        model = getattr(found, "latency_model", planning.latency_model)
        return replace(planning, latency_model=model), found


@dataclass(frozen=True)
class Output:
    """Further output."""

    panel: ClassVar[str] = "Output"

    plot: options.Plot = None
    json: options.Json = False
