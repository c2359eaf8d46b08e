"""The pick of NCCL or RCCL for a collective on a topology."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING

from hocket._checks import one_of
from hocket._core import Bound, Topology
from hocket._results import HIDDEN, Result, TableResult, figure, said
from hocket.collectives.bounds import bound
from hocket.collectives.collective import collective_on
from hocket.collectives.outcome import bound_ps
from hocket.errors import SpecError
from hocket.nccl.constants import POSTING, VERSION, Generation
from hocket.nccl.gpus import check_gpu, gpu_named
from hocket.nccl.model import (
    USUAL_CPU,
    Host,
    NcclChoice,
    check_kind,
    choices,
    communicator_channels,
    generation_of,
    version_of,
)
from hocket.nccl.rccl import VERSION as RCCL_VERSION
from hocket.nccl.rccl import Tuning, rccl_choices
from hocket.profiles.flows import Flows
from hocket.profiles.hardware import Hardware, hardware_of
from hocket.topology.build import build_topology
from hocket.topology.sources import TopologyLike, as_topology
from hocket.topology.text import from_text
from hocket.units import format_time_ps, parse_size

if TYPE_CHECKING:
    from hocket.units import Quantity


@dataclass(frozen=True)
class WeighedChoice(Result):
    """An algorithm with a protocol."""

    choice: NcclChoice = field(metadata=said(inline=NcclChoice))
    below_bound: str | None
    """Why it stands below the bound on any plan; None where it does not."""


@dataclass(frozen=True)
class NcclPrediction(TableResult):
    """The pick of NCCL or RCCL, and its other choices.

    Attributes
    ----------
    kind, npus, nodes, size
        The collective; size as nccl-tests states it [bytes].
    gpu
        Architecture whose constants were used.
    library, version
        ``"NCCL"`` or ``"RCCL"``, and the version whose model it is.
    choices
        Every algorithm and protocol, the fastest by NCCL's prediction first.
    bound
        What any plan takes at least on the topology, and why.
    reasons
        For each choice why it stands below the bound; ``None`` where it does not.
    notes
        What was assumed.
    coll_channels, nvls_channels
        How many channels a communicator has, and how many for sums in switches, as NCCL's log says it;
        ``None`` for RCCL.
    """

    _table = "_weighed"

    kind: str = field(metadata=said("collective"))
    npus: int
    nodes: int
    size: int = field(metadata=said("size_bytes"))
    gpu: str
    library: str
    version: str = field(metadata=said("library_version"))
    choices: tuple[NcclChoice, ...] = field(metadata=HIDDEN)
    bound: Bound = field(metadata=said("bound_ps", of=bound_ps))
    reasons: tuple[str | None, ...] = field(metadata=HIDDEN)
    notes: tuple[str, ...] = ()
    coll_channels: int | None = None
    nvls_channels: int | None = None

    @property
    @figure("choices")
    def _weighed(self) -> list[WeighedChoice]:
        return [WeighedChoice(*each) for each in zip(self.choices, self.reasons, strict=True)]

    @property
    @figure()
    def algorithm(self) -> str:
        """The algorithm of its pick, such as ``"ring"``, ``"tree"``, ``"nvls"`` or ``"nvls-tree"``."""
        return self.choices[0].algorithm

    @property
    @figure()
    def protocol(self) -> str:
        """The protocol of its pick: ``"LL"``, ``"LL128"`` or ``"Simple"``."""
        return self.choices[0].protocol

    @property
    @figure()
    def channels(self) -> int:
        """The number of channels of the graph of its pick."""
        return self.choices[0].channels

    @property
    @figure("time_s")
    def seconds(self) -> float:
        """The prediction for its pick."""
        return self.choices[0].seconds

    @property
    @figure()
    def below_bound(self) -> str | None:
        """Why its pick stands below the bound; ``None`` where it does not."""
        return self.reasons[0]


def predict(
    kind: str,
    topology: TopologyLike,
    *,
    size: Quantity,
    gpu: str | None = None,
    cpu: str = USUAL_CPU,
    version: str = VERSION,
) -> NcclPrediction:
    """Predict which algorithm, protocol and channels NCCL picks on a topology, and its times.

    Parameters
    ----------
    kind
        ``"all-reduce"``, ``"all-gather"``, ``"reduce-scatter"``, ``"broadcast"`` or ``"reduce"``, among all
        NPUs.
    topology
        A network, or text as of :func:`hocket.topology.load`; its ``groups:`` are the nodes.
    size
        As nccl-tests states it.
    gpu
        ``"volta"``, ``"ampere"``, ``"hopper"``, ``"blackwell"`` or a compute capability such as ``"sm86"``.
        By default the one that its dump states or its profile is of, if the topology is given as text;
        otherwise the one whose NVLinks have the bandwidth that the topology states. ``"mi250"``,
        ``"mi300x"`` and names such as ``"gfx942"`` ask RCCL.
    cpu
        Whose processors the nodes have, which counts where there are several: ``"intel"``, ``"amd"``,
        ``"other"``, or ``"mixed"``. RCCL does not ask.
    version
        Of NCCL, from 2.21 on, such as ``"2.26.2"``: the model of older ones differs. RCCL does not ask.

    Raises
    ------
    SpecError
        If NCCL's model has no such collective, there is no such GPU, processor or version, or the topology
        says that its GPUs are others: by its profile or dump, or because RCCL's machines are not built so.
    InfeasibleError
        If no GPU of NVIDIA has links as in the topology, or RCCL has no model of such GPUs.

    Examples
    --------
    >>> import hocket as hk
    >>> pick = hk.nccl.predict("all-reduce", "hgx_h200_8gpu", size="1 GiB")
    >>> pick.algorithm, pick.protocol
    ('nvls', 'Simple')
    """
    network, named = network_and_gpu(topology, gpu)
    read = parse_size(size, field="size")
    library = library_on(network, named, cpu, version)
    check_kind(kind, library.name)
    limit = bound(network, collective_on(kind, network, read))
    return prediction_on(library, kind, read, limit)


def network_and_gpu(topology: TopologyLike, gpu: str | None) -> tuple[Topology, str | None]:
    """Return a network, and the GPU that is named or that its dump states.

    Raises
    ------
    SpecError
        If there is no such network, or it has other GPUs.
    """
    if not isinstance(topology, str | PathLike):
        return as_topology(topology), gpu
    spec = from_text(str(topology), bandwidth=None, latency=None, option="topology")
    return build_topology(spec), check_gpu(spec, gpu)


def prediction_on(library: Library, kind: str, size: int, bound: Bound) -> NcclPrediction:
    """Return what a library picks for a size [bytes], beside the bound on any plan."""
    found = library.choices(kind, size)
    return NcclPrediction(
        kind,
        library.npus,
        library.nodes,
        size,
        library.gpu,
        library.name,
        library.version,
        tuple(found),
        bound,
        tuple(library.why_below(each, bound) for each in found),
        tuple(filter(None, [library.hardware.about_nics])),
        *library.communicator,
    )


@dataclass(frozen=True)
class Library:
    """NCCL or RCCL on a machine, to be asked for many sizes.

    Attributes
    ----------
    name, version
        ``"NCCL"`` or ``"RCCL"``, and the version whose model it is.
    known
        The GPUs whose constants are used.
    npus, nodes
        Of the communicator.
    hardware
        The machine; RCCL's tables ask nothing of it.
    cpu
        Whose processors its nodes have.
    """

    name: str
    version: str
    known: Generation | Tuning
    npus: int
    nodes: int
    hardware: Hardware
    cpu: str = USUAL_CPU

    @property
    def gpu(self) -> str:
        """Architecture whose constants are used."""
        return self.known.name

    @property
    def communicator(self) -> tuple[int | None, int | None]:
        """How many channels NCCL's log says a communicator has, and how many for sums in switches."""
        if isinstance(self.known, Tuning):
            return None, None
        return communicator_channels(self.known, self.hardware, self.nodes, self.version)

    def choices(self, kind: str, size: int) -> list[NcclChoice]:
        """Return every algorithm and protocol that it weighs for a size [bytes], the fastest first.

        Raises
        ------
        SpecError
            If its model has no such collective.
        """
        asked = (kind, size, self.npus, self.nodes)
        if isinstance(self.known, Tuning):
            found = list(rccl_choices(*asked, self.known))
        else:
            host = Host(self.cpu, self.hardware.is_on_pci)
            on = (self.hardware, self.known)
            found = list(choices(*asked, *on, host=host, version=self.version))
        return sorted(found, key=lambda each: each.seconds)

    def why_below(self, choice: NcclChoice, bound: Bound) -> str | None:
        """Explain why a prediction is below the bound of any plan, or return ``None`` if it is not."""
        if choice.seconds * 1e12 >= bound.time_ps:
            return None
        late = by_latency(self.name, choice, bound)
        if late is not None:
            return late
        if isinstance(self.known, Tuning):
            return f"{self.name} has tables of its own machines and asks nothing of the network"
        if choice.algorithm in ("tree", "nvls-tree") and self.nodes == 2:
            return f"{self.name} counts trees of two nodes at up to twice what NICs carry"
        return f"{self.name}'s search is idealised: so many channels do not fit side by side here"


def by_latency(who: str, choice: NcclChoice, bound: Bound) -> str | None:
    """Explain that a prediction below a bound counts too little latency, or return None.

    It is why if the latencies that the network states are longer by half of what is missing, or more.
    """
    farthest = dict(bound.components).get("latency", 0)
    missing = bound.time_ps - choice.seconds * 1e12
    if 2 * (farthest - choice.latency * 1e6) < missing:
        return None
    return (
        f"{who} counts steps by constants of its own, and from end to end the latencies stated here come "
        f"to {format_time_ps(farthest)}"
    )


def _check_machine(network: Topology, hardware: Hardware, known: Tuning) -> None:
    """Refuse a network that is not made of machines that RCCL knows: its tables ask no network."""
    gpu, (least, most) = known.name, known.links
    own = (hardware.most or hardware.bandwidth) * 1e-9
    node = list(network.groups[0]) if network.groups else list(range(network.npu_count))
    if hardware.sums:
        wrong = "its switches sum, as NVIDIA's do"
    elif not 0.99 * least <= own <= 1.01 * most:
        wrong = f"its links carry {own:g} GB/s from a GPU, those of {gpu} {least:g} to {most:g}"
    elif known.is_linked and not Flows(network).are_joined(node):
        wrong = f"its GPUs are not linked to one another, as those of a node of {gpu} are"
    else:
        return
    raise SpecError(
        "gpu", f"{network.name!r} has no {gpu}: {wrong}", "leave it out, or name another"
    )


def library_on(
    network: Topology, gpu: str | None = None, cpu: str = USUAL_CPU, version: str = VERSION
) -> Library:
    """Return what runs on a network: NCCL by the bandwidth of NVLinks, or what a GPU's name says.

    Raises
    ------
    SpecError, InfeasibleError
        As :func:`predict`.
    """
    known = None if gpu is None else gpu_named(gpu)
    one_of("cpu", cpu, list(POSTING))
    hardware = hardware_of(network)
    counts = network.npu_count, max(len(network.groups), 1)
    if isinstance(known, Tuning):
        _check_machine(network, hardware, known)
        return Library("RCCL", RCCL_VERSION, known, *counts, hardware)
    version_of(version)
    return Library("NCCL", version, known or generation_of(hardware), *counts, hardware, cpu)
