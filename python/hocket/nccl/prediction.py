"""What NCCL, or RCCL, picks for a collective on a topology."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from hocket._checks import one_of
from hocket._core import Topology
from hocket._results import TableResult
from hocket.errors import SpecError
from hocket.nccl.constants import GENERATIONS, POSTING, VERSION
from hocket.nccl.model import USUAL_CPU, Choice, Host, choices, generation_of
from hocket.nccl.rccl import MACHINES, rccl_choices
from hocket.nccl.rccl import VERSION as RCCL_VERSION
from hocket.profiles.flows import Flows
from hocket.profiles.hardware import Hardware, hardware_of
from hocket.topology.sources import TopologyLike, as_topology
from hocket.topology.spec import TopologySpec
from hocket.topology.text import from_text
from hocket.units import parse_size

if TYPE_CHECKING:
    from hocket.nccl.data import NcclData
    from hocket.units import Quantity

__all__ = ["Library", "NcclPrediction", "check_gpu", "library_on", "predict"]

_OF_PROFILES = {
    "v100": "volta",
    "a100": "ampere",
    "h100": "hopper",
    "gh200": "hopper",
    "b200": "blackwell",
    "mi300x": "mi300x",
}
"""GPUs by the families of shipped profiles."""


@dataclass(frozen=True)
class NcclPrediction(TableResult):
    """What NCCL or RCCL picks, and what else it weighed.

    Attributes
    ----------
    kind, npus, nodes, size
        The collective; size as nccl-tests states it [bytes].
    gpu
        Architecture whose constants were used.
    library, version
        ``"NCCL"`` or ``"RCCL"``, and the version whose model it is.
    choices
        Every algorithm and protocol, the quickest by NCCL's prediction first.
    """

    kind: str
    npus: int
    nodes: int
    size: int
    gpu: str
    library: str
    version: str
    choices: tuple[Choice, ...]

    @property
    def algorithm(self) -> str:
        """Of its pick, as ``"ring"``, ``"tree"``, ``"nvls"`` or ``"nvls-tree"``."""
        return self.choices[0].algorithm

    @property
    def protocol(self) -> str:
        """Of its pick: ``"LL"``, ``"LL128"`` or ``"Simple"``."""
        return self.choices[0].protocol

    @property
    def channels(self) -> int:
        """Of the graph of its pick."""
        return self.choices[0].channels

    @property
    def seconds(self) -> float:
        """What it predicts for its pick."""
        return self.choices[0].seconds

    def to_dict(self) -> NcclData:
        """Give it as values of JSON."""
        return {
            "collective": self.kind,
            "npus": self.npus,
            "nodes": self.nodes,
            "size_bytes": self.size,
            "library": self.library,
            "library_version": self.version,
            "gpu": self.gpu,
            "algorithm": self.algorithm,
            "protocol": self.protocol,
            "channels": self.channels,
            "time_s": self.seconds,
            "choices": [
                {
                    "algorithm": each.algorithm,
                    "protocol": each.protocol,
                    "channels": each.channels,
                    "latency_us": each.latency,
                    "bandwidth_bytes_per_s": each.bandwidth * 1e9,
                    "time_s": each.seconds,
                }
                for each in self.choices
            ],
        }

    def _rows(self) -> list[dict[str, Any]]:
        return [dict(row) for row in self.to_dict()["choices"]]


def predict(
    kind: str,
    topology: TopologyLike,
    *,
    size: Quantity,
    gpu: str | None = None,
    cpu: str = USUAL_CPU,
) -> NcclPrediction:
    """Say which algorithm, protocol and channels NCCL picks on a topology, and what it predicts.

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
        ``"volta"``, ``"ampere"``, ``"hopper"`` or ``"blackwell"``; by default the one whose NVLinks have
        the bandwidth that the topology states. Of ``"mi250"`` and ``"mi300x"`` it is RCCL that is asked.
    cpu
        Whose processors the nodes have, which counts where there are several: ``"intel"``, ``"amd"``,
        ``"other"``, or ``"mixed"``. RCCL does not ask.

    Raises
    ------
    SpecError
        If NCCL's model has no such collective, there is no such GPU or processor, or the topology says that
        its GPUs are others: by its profile, or because RCCL's machines are not built so.
    InfeasibleError
        If no GPU of NVIDIA has links as in the topology.

    Examples
    --------
    >>> import hocket as hk
    >>> pick = hk.nccl.predict("all-reduce", "hgx_h200_8gpu", size="1 GiB")
    >>> pick.algorithm, pick.protocol
    ('nvls', 'Simple')
    """
    if gpu is not None and isinstance(topology, str | PathLike):
        check_gpu(from_text(str(topology), bandwidth=None, latency=None, option="topology"), gpu)
    network = as_topology(topology)
    read = parse_size(size, field="size")
    library = library_on(network, gpu, cpu)
    found = library.choices(kind, read)
    return NcclPrediction(
        kind,
        network.npu_count,
        library.nodes,
        read,
        library.gpu,
        library.name,
        library.version,
        tuple(found),
    )


@dataclass(frozen=True)
class Library:
    """NCCL or RCCL on a machine, to be asked for many sizes.

    Attributes
    ----------
    name, version
        ``"NCCL"`` or ``"RCCL"``, and the version whose model it is.
    gpu
        Architecture whose constants are used.
    npus, nodes
        Of the communicator.
    cpu
        Whose processors its nodes have.
    """

    name: str
    version: str
    gpu: str
    npus: int
    nodes: int
    hardware: Hardware | None
    cpu: str = USUAL_CPU

    def choices(self, kind: str, size: int) -> list[Choice]:
        """Give every algorithm and protocol that it weighs for a size [bytes], the quickest first.

        Raises
        ------
        SpecError
            If its model has no such collective.
        """
        asked = (kind, size, self.npus, self.nodes)
        if self.hardware is None:
            found = list(rccl_choices(*asked, MACHINES[self.gpu]))
        else:
            found = list(choices(*asked, self.hardware, GENERATIONS[self.gpu], host=Host(self.cpu)))
        return sorted(found, key=lambda each: each.seconds)


def check_gpu(spec: TopologySpec, gpu: str | None) -> None:
    """Refuse a GPU that is not the one whose profile a topology names.

    Raises
    ------
    SpecError
        Naming both.
    """
    if gpu is None or spec.profile is None or spec.profile.name is None:
        return
    one_of("gpu", gpu, [*GENERATIONS, *MACHINES])
    family = spec.profile.name.partition("-")[0]
    own = _OF_PROFILES.get(family, gpu)
    if own != gpu:
        wrong = f"{spec.name!r} has GPUs of {own} by its profile {spec.profile.name!r}, not {gpu}"
        raise SpecError("gpu", wrong, "leave it out, or name a topology that has such GPUs")


def _check_machine(network: Topology, hardware: Hardware, gpu: str) -> None:
    """Refuse a network that is not made of machines that RCCL knows: its tables ask no network."""
    known = MACHINES[gpu]
    least, most = known.links
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


def library_on(network: Topology, gpu: str | None = None, cpu: str = USUAL_CPU) -> Library:
    """Give what runs on a network: NCCL by the bandwidth of NVLinks, or what a GPU's name says.

    Raises
    ------
    SpecError, InfeasibleError
        As :func:`predict`.
    """
    counts = network.npu_count, max(len(network.groups), 1)
    if gpu is not None:
        one_of("gpu", gpu, [*GENERATIONS, *MACHINES])
    one_of("cpu", cpu, list(POSTING))
    hardware = hardware_of(network)
    if gpu in MACHINES:
        _check_machine(network, hardware, gpu)
        return Library("RCCL", RCCL_VERSION, gpu, *counts, None)
    generation = generation_of(hardware, gpu)
    return Library("NCCL", VERSION, generation.name, *counts, hardware, cpu)
