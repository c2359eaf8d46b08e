"""Files of NCCL, and plans along the channels that they name."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, final

from hocket._core import Collective, Plan, Topology

__all__ = [
    "Graph",
    "Network",
    "System",
    "design_channels",
    "join",
    "parse_graphs",
    "parse_tuner",
    "plan_channels",
    "plan_heads",
    "write_graphs",
    "write_tuner",
]

@final
class System:
    """A machine as a dump says it."""

    @staticmethod
    def parse(bytes: bytes) -> System:
        """Read what NCCL or RCCL writes to ``NCCL_TOPO_DUMP_FILE``."""

    @staticmethod
    def read_smi(bytes: bytes) -> System:
        """Read what ``nvidia-smi topo -m`` prints, and after it ``nvidia-smi nvlink -s``."""

    @property
    def gpus(self) -> list[tuple[int, int, int, str | None, int, str]]:
        """By rank: number in graphs, rank, compute capability, RCCL's architecture, NVLinks, name."""

    @property
    def nets(self) -> list[tuple[int, str, int, str]]:
        """By number: number in graphs, name, Mb/s, name of the device."""

    @property
    def processor(self) -> Literal["intel", "amd", "other", "mixed"] | None:
        """The make of its processors, as NCCL's model distinguishes them, or ``None`` if unknown."""

    @property
    def sums(self) -> bool:
        """Whether its switches sum and multicast."""

@final
class Network:
    """A network of machines: NPUs first, then switches."""

    @property
    def names(self) -> list[str]:
        """Of all devices."""

    @property
    def npus(self) -> int:
        """How many of them are NPUs."""

    @property
    def links(self) -> list[tuple[int, int, int, str]]:
        """Ends, bandwidth [bytes/s] and medium."""

    @property
    def nodes(self) -> list[list[int]]:
        """For each machine its NPUs, by rank."""

    @property
    def nics(self) -> list[list[int]]:
        """For each machine the devices of its NICs, as ``System.nets``; none where it is alone."""

    @property
    def sums(self) -> list[int]:
        """Switches that sum and multicast."""

    @property
    def notes(self) -> list[str]:
        """Notes for the reader, one sentence each."""

def join(systems: Sequence[System]) -> Network:
    """Join machines by one switch at which every NIC has its full rate."""

_Gpu: TypeAlias = tuple[int, int | None]

@final
class Graph:
    """All channels of an algorithm."""

    def __new__(
        cls,
        id: int,
        pattern: int,
        *,
        cross_nic: int,
        speed_intra: float,
        speed_inter: float,
        latency_inter: float,
        type_intra: str,
        type_inter: str,
        same_channels: int,
        channels: Sequence[tuple[Sequence[int], Sequence[_Gpu]]],
    ) -> Graph:
        """Make one of its attributes, and of each channel the NICs and the GPUs by number and rank."""

    @property
    def id(self) -> int:
        """0 ring, 1 tree, 2 CollNet chain, 3 sums in switches (NVLS), 4 CollNet direct."""

    @property
    def pattern(self) -> int:
        """1 balanced tree, 2 split tree, 3 tree, 4 ring, 5 NVLS, 6 CollNet direct."""

    @property
    def cross_nic(self) -> int:
        """Whether a ring may leave a node by another NIC than it came in by."""

    @property
    def speed_intra(self) -> float:
        """Bandwidth of a channel in a node [GB/s]."""

    @property
    def speed_inter(self) -> float:
        """Bandwidth of a channel between nodes [GB/s]."""

    @property
    def latency_inter(self) -> float:
        """Time that the network adds to latencies [us]."""

    @property
    def type_intra(self) -> str:
        """How far apart GPUs are that follow one another."""

    @property
    def type_inter(self) -> str:
        """How far apart GPUs and their NICs are."""

    @property
    def same_channels(self) -> int:
        """Whether all channels have one order."""

    @property
    def channels(self) -> list[tuple[list[int], list[_Gpu], int]]:
        """NICs, GPUs by number and rank, and the line of the file, 0 without one."""

    @property
    def line(self) -> int:
        """Line of the file, 0 without one."""

def parse_graphs(bytes: bytes) -> list[Graph]:
    """Read what NCCL writes to ``NCCL_GRAPH_DUMP_FILE``."""

def write_graphs(graphs: Sequence[Graph]) -> str:
    """Write a file for ``NCCL_GRAPH_FILE``, of which NCCL's limits are checked."""

def design_channels(
    topology: Topology, nics: Sequence[Sequence[tuple[int, int]]]
) -> list[list[tuple[list[int], int | None, int | None]]]:
    """Find channels for a file of graphs: of every node its NICs are given by device and rail."""

def plan_channels(
    topology: Topology,
    collective: Collective,
    joint: Literal["ring", "balanced-tree", "split-tree", "tree"],
    channels: Sequence[Sequence[tuple[Sequence[int], int | None, int | None]]],
    chunks: int,
    memory_limit: int,
) -> Plan:
    """Plan along channels, each the NPUs of every node in order with the devices of their NICs."""

def plan_heads(
    topology: Topology,
    collective: Collective,
    heads: Sequence[Sequence[int]],
    chunks: int,
    memory_limit: int,
) -> Plan:
    """Plan sums in switches whose heads in each node are given."""

_Row: TypeAlias = tuple[str, int, int, str, str, int | None, int | None, int | None]

def parse_tuner(bytes: bytes) -> tuple[list[_Row], list[str]]:
    """Read a table for tuners: collective, sizes, algorithm, protocol, channels, nodes, ranks; comments."""

def write_tuner(rows: Sequence[_Row], comments: Sequence[str]) -> str:
    """Write a table for tuners, which must answer for every size."""
