"""What NCCL, or RCCL, picks for a collective on a topology."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hocket._checks import one_of
from hocket._core import Topology
from hocket._results import TableResult
from hocket.nccl.constants import GENERATIONS, VERSION
from hocket.nccl.model import Choice, choices, generation_of
from hocket.nccl.rccl import MACHINES, rccl_choices
from hocket.nccl.rccl import VERSION as RCCL_VERSION
from hocket.profiles.hardware import Hardware, hardware_of
from hocket.topology.sources import TopologyLike, as_topology
from hocket.units import parse_size

if TYPE_CHECKING:
    from hocket.nccl.data import NcclData
    from hocket.units import Quantity

__all__ = ["NcclPrediction", "predict"]


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
    kind: str, topology: TopologyLike, *, size: Quantity, gpu: str | None = None
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

    Raises
    ------
    SpecError
        If NCCL's model has no such collective, or there is no such GPU.
    InfeasibleError
        If no GPU of NVIDIA has links as in the topology.

    Examples
    --------
    >>> import hocket as hk
    >>> pick = hk.nccl.predict("all-reduce", "hgx_h200_8gpu", size="1 GiB")
    >>> pick.algorithm, pick.protocol
    ('nvls', 'Simple')
    """
    network = as_topology(topology)
    read = parse_size(size, field="size")
    library = library_on(network, gpu)
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
    """

    name: str
    version: str
    gpu: str
    npus: int
    nodes: int
    hardware: Hardware | None

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
            found = list(choices(*asked, self.hardware, GENERATIONS[self.gpu]))
        return sorted(found, key=lambda each: each.seconds)


def library_on(network: Topology, gpu: str | None = None) -> Library:
    """Give what runs on a network: NCCL by the bandwidth of NVLinks, or what a GPU's name says.

    Raises
    ------
    SpecError, InfeasibleError
        As :func:`predict`.
    """
    counts = network.npu_count, max(len(network.groups), 1)
    if gpu is not None:
        one_of("gpu", gpu, [*GENERATIONS, *MACHINES])
    if gpu in MACHINES:
        return Library("RCCL", RCCL_VERSION, gpu, *counts, None)
    hardware = hardware_of(network)
    generation = generation_of(hardware, gpu)
    return Library("NCCL", VERSION, generation.name, *counts, hardware)
