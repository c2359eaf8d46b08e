"""Dumps of machines, made by the rules of NCCL's format, as real ones of most machines may not be copied.

What a machine has is public: its PCI tree, NVLinks and NICs. The orders of channels are those that NCCL
is known to find there, or any that its search allows: of eight GPUs behind NVSwitches all are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

NVSWITCH = "0x068000"
GPU_CLASS = "0x030200"


@dataclass(frozen=True)
class Made:
    """A machine: GPUs with their NVLinks, and NICs, each at a PCI switch of a processor."""

    name: str
    gpus: int
    sm: int
    links: Callable[[int], Sequence[tuple[str, int, str]]]
    """Of a GPU: target, count and class."""
    at: Callable[[int], int]
    """PCI switch of a GPU."""
    nics: Sequence[int] = ()
    """PCI switch of each NIC."""
    mbps: int = 200_000
    speed: str = "16 GT/s"
    cpu: str = 'arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49"'
    switches: int = 4
    cpus: int = 2
    arch: str = ""
    """Of RCCL."""
    down: frozenset[int] = field(default_factory=frozenset)
    """NICs that are down."""

    def topology(self) -> str:
        """What NCCL_TOPO_DUMP_FILE holds."""
        tag, version = ("xgmi", 2) if self.arch else ("nvlink", 1)
        each = self.switches // self.cpus
        out = [f'<system version="{version}">']
        for cpu in range(self.cpus):
            out.append(f'  <cpu host_hash="0x1" numaid="{cpu}" affinity="ffff" {self.cpu}>')
            for switch in range(cpu * each, (cpu + 1) * each):
                out.append(f'    <pci busid="0000:f{switch:x}:00.0" class="0x060400" {self._pci}>')
                for gpu in (gpu for gpu in range(self.gpus) if self.at(gpu) == switch):
                    out.append(f'      <pci busid="{bus(gpu)}" class="{GPU_CLASS}" {self._pci}>')
                    arch = f' gcn="{self.arch}"' if self.arch else ""
                    out.append(
                        f'        <gpu dev="{gpu}" sm="{self.sm}"{arch} rank="{gpu}" gdr="1">'
                    )
                    out += [
                        f'          <{tag} target="{target}" count="{count}" tclass="{kind}"/>'
                        for target, count, kind in self.links(gpu)
                    ]
                    out += ["        </gpu>", "      </pci>"]
                for nic in (nic for nic, at in enumerate(self.nics) if at == switch):
                    if nic not in self.down:
                        out += self._nic(nic)
                out.append("    </pci>")
            out.append("  </cpu>")
        return "\n".join([*out, "</system>"]) + "\n"

    @property
    def _pci(self) -> str:
        return f'link_speed="{self.speed}" link_width="16"'

    def _nic(self, nic: int) -> list[str]:
        number = nic - sum(1 for other in self.down if other < nic)
        return [
            f'      <pci busid="0000:e{nic:x}:00.0" class="0x020700" {self._pci}>',
            "        <nic>",
            f'          <net name="mlx5_{nic}" dev="{number}" latency="0.000000" speed="{self.mbps}" '
            f'port="1" guid="0x{nic + 1:x}" maxconn="131072" gdr="1"/>',
            "        </nic>",
            "      </pci>",
        ]


def bus(gpu: int) -> str:
    return f"0000:{gpu:x}0:00.0"


def switched(count: int) -> Callable[[int], list[tuple[str, int, str]]]:
    """All links to NVSwitches."""
    return lambda _: [("0000:c0:00.0", count, NVSWITCH)]


def direct(pairs: dict[tuple[int, int], int]) -> Callable[[int], list[tuple[str, int, str]]]:
    """Links between GPUs."""

    def of(gpu: int) -> list[tuple[str, int, str]]:
        ends = [(a, b, count) for (a, b), count in pairs.items() if gpu in (a, b)]
        return [(bus(b if a == gpu else a), count, GPU_CLASS) for a, b, count in ends]

    return of


DGX1_PAIRS = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2,
    (2, 6): 1, (3, 7): 1, (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2,
}  # fmt: skip
"""NVLinks of a DGX-1 with V100 (NVIDIA, DGX-1 with Tesla V100 system architecture, 2017)."""

DGX1 = Made(
    "dgx1_v100",
    8,
    70,
    direct(DGX1_PAIRS),
    lambda gpu: gpu // 2,
    nics=range(4),
    mbps=100_000,
    speed="8 GT/s",
    cpu='arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="79"',
)
DGX_A100 = Made(
    "dgx_a100", 8, 80, switched(12), lambda gpu: gpu // 2, nics=[nic // 2 for nic in range(8)]
)
DGX_H100 = Made(
    "dgx_h100",
    8,
    90,
    switched(18),
    lambda gpu: gpu,
    nics=range(8),
    mbps=400_000,
    speed="32 GT/s",
    cpu='arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"',
    switches=8,
)
PCI_T4 = Made(
    "pci_4gpu",
    4,
    75,
    lambda _: [],
    lambda gpu: gpu // 2,
    nics=[0],
    mbps=100_000,
    speed="8 GT/s",
    cpu='arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85"',
    switches=2,
)
MI300X = Made(
    "mi300x",
    8,
    304,
    lambda gpu: [(bus(other), 1, GPU_CLASS) for other in range(8) if other != gpu],
    lambda gpu: gpu,
    nics=range(8),
    mbps=400_000,
    speed="32 GT/s",
    switches=8,
    arch="gfx942",
)
GB200 = Made(
    "gb200_nvl4",
    4,
    100,
    switched(18),
    lambda gpu: gpu // 2,
    nics=[0, 0, 1, 1],
    mbps=400_000,
    speed="32 GT/s",
    cpu='arch="arm64"',
    switches=2,
)
ALL = (DGX1, DGX_A100, DGX_H100, PCI_T4, MI300X, GB200)


def graph(
    number: int,
    pattern: int,
    channels: Sequence[Sequence[int]],
    speed: float,
    *,
    nets: Sequence[tuple[int, int]] = (),
    intra: str = "NVL",
    inter: str = "PXB",
    cross: int = 0,
) -> str:
    """One graph as NCCL dumps it: numbers in hexadecimal, ranks in decimal."""
    out = [
        f'  <graph id="{number}" pattern="{pattern}" crossnic="{cross}" nchannels="{len(channels)}" '
        f'speedintra="{speed:g}" speedinter="{speed:g}" latencyinter="0" typeintra="{intra}" '
        f'typeinter="{inter}" samechannels="0">'
    ]
    for place, order in enumerate(channels):
        out.append("    <channel>")
        if nets:
            out.append(f'      <net dev="{nets[place][0]:#x}"/>')
        out += [f'      <gpu dev="{dev:#x}" rank="{dev}"/>' for dev in order]
        if nets:
            out.append(f'      <net dev="{nets[place][1]:#x}"/>')
        out.append("    </channel>")
    return "\n".join([*out, "  </graph>"]) + "\n"


def graphs(*each: str) -> str:
    """A file of graphs."""
    return '<graphs version="1">\n' + "".join(each) + "</graphs>\n"


def alike(order: Sequence[int], channels: int, speed: float, **more: str) -> str:
    """Rings and trees that all have one order."""
    return graphs(
        graph(0, 4, [order] * channels, speed, **more),
        graph(1, 3, [order] * channels, speed, **more),
    )


CUBE_RINGS = (
    (0, 3, 2, 1, 5, 6, 7, 4),
    (0, 3, 2, 1, 5, 6, 7, 4),
    (0, 1, 3, 7, 5, 4, 6, 2),
)
"""Rings of a DGX-1: twice over its double links, once over its single ones."""

MESH_RINGS = (
    (0, 1, 2, 3, 4, 5, 6, 7),
    (0, 2, 1, 3, 5, 4, 7, 6),
    (0, 3, 1, 4, 6, 2, 7, 5),
    (0, 4, 1, 5, 7, 2, 6, 3),
    (0, 5, 3, 6, 1, 7, 4, 2),
    (0, 6, 5, 2, 4, 3, 7, 1),
    (0, 7, 3, 2, 5, 1, 6, 4),
)
"""Rings of eight GPUs that are all linked: every link once, each way."""


def rings_of(machine: Made) -> str:
    """The file of graphs of one machine alone."""
    order = list(range(machine.gpus))
    if machine is DGX1:
        both = [*CUBE_RINGS, *([ring[0], *reversed(ring[1:])] for ring in CUBE_RINGS)]
        return graphs(graph(0, 4, both, 20), graph(1, 3, both, 20))
    if machine is PCI_T4:
        return alike(order, 2, 5, intra="SYS")
    if machine is MI300X:
        return graphs(graph(0, 4, MESH_RINGS, 48), graph(1, 3, MESH_RINGS, 48))
    if machine is DGX_A100:
        return alike(order, 12, 20)
    heads = graph(3, 5, [[dev] for dev in order], 40)
    each = alike(order, 12 if machine is DGX_H100 else 24, 30)
    return each.replace("</graphs>\n", heads + "</graphs>\n")


def rails_of(machine: Made, channels: Sequence[int], *, speed: float) -> str:
    """Rings and trees over several nodes: channel k by NIC k, from a GPU at its switch to another there."""
    rows, nets = [], []
    for nic in channels:
        near = [gpu for gpu in range(machine.gpus) if machine.at(gpu) == machine.nics[nic]]
        # NICs of one switch begin with another GPU each, so that none has the data of both on its PCI link.
        near = near[nic % len(near) :] + near[: nic % len(near)]
        first, last = near[0], near[-1] if len(near) > 1 else (near[0] + 1) % machine.gpus
        rest = [gpu for gpu in range(machine.gpus) if gpu not in (first, last)]
        rows.append([first, *rest, last])
        dev = nic - sum(1 for other in machine.down if other < nic)
        nets.append((dev, dev))
    trees = [[row[0], row[-1], *row[1:-1]] for row in rows]
    return graphs(graph(0, 4, rows, speed, nets=nets), graph(1, 1, trees, speed, nets=nets))
