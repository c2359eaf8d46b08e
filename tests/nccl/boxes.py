"""Boxes that nobody built: dumps of machines by chance, and what NCCL's model says of them.

GPUs of every generation at PCI switches of one to four processors; NVLinks between pairs, around a ring, as
a mesh with holes, to NVSwitches, or none; NICs at any switch, or none.
"""

from __future__ import annotations

from random import Random

from hocket import _core
from hocket.topology.dump import spec_from_systems
from hocket.topology.spec import TopologySpec

from .dumps import GPU_CLASS, NVSWITCH, bus

_PROCESSORS = (
    'arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1"',
    'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85"',
    'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"',
    'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="207"',
    'arch="arm64"',
)
_LINKS = {60: 4, 70: 6, 80: 12, 86: 4, 90: 18, 100: 18, 120: 0, 89: 0, 75: 0}
"""NVLinks of a GPU by its compute capability."""


def box(seed: int) -> TopologySpec:
    """Give one machine, or two that are alike, joined by their NICs."""
    chance = Random(seed)
    gpus, sm = chance.choice((2, 3, 4, 4, 6, 8, 8)), chance.choice(list(_LINKS))
    cpus = chance.choice((1, 2, 2, 4))
    switches = cpus * chance.choice((1, 2))
    at = [gpu * switches // gpus for gpu in range(gpus)]
    nics = [chance.randrange(switches) for _ in range(chance.choice((0, 0, 1, 2, gpus)))]
    links = _nvlinks(chance, gpus, _LINKS[sm])
    mbps = chance.choice((100_000, 200_000, 400_000))
    pci = (
        f'link_speed="{chance.choice((8, 16, 32))} GT/s" link_width="{chance.choice((8, 16, 16))}"'
    )
    cpu = chance.choice(_PROCESSORS)
    has_switches = chance.random() < 0.7
    out = ['<system version="1">']
    for number in range(cpus):
        out.append(f'<cpu host_hash="0x1" numaid="{number}" affinity="ffff" {cpu}>')
        for switch in range(number * switches // cpus, (number + 1) * switches // cpus):
            if has_switches:
                out.append(f'<pci busid="0000:f{switch:x}:00.0" class="0x060400" {pci}>')
            for gpu in (gpu for gpu in range(gpus) if at[gpu] == switch):
                out.append(f'<pci busid="{bus(gpu)}" class="{GPU_CLASS}" {pci}>')
                out.append(f'<gpu dev="{gpu}" sm="{sm}" rank="{gpu}" gdr="1">')
                out += [
                    f'<nvlink target="{target}" count="{count}" tclass="{kind}"/>'
                    for target, count, kind in links[gpu]
                ]
                out += ["</gpu>", "</pci>"]
            for nic in (nic for nic, place in enumerate(nics) if place == switch):
                out.append(f'<pci busid="0000:e{nic:x}:00.0" class="0x020700" {pci}><nic>')
                out.append(
                    f'<net name="mlx5_{nic}" dev="{nic}" latency="0.000000" speed="{mbps}" port="1" '
                    f'guid="0x{nic + 1:x}" maxconn="131072" gdr="1"/></nic></pci>'
                )
            if has_switches:
                out.append("</pci>")
        out.append("</cpu>")
    nodes = 2 if nics and chance.random() < 0.5 else 1
    return spec_of("\n".join([*out, "</system>"]), f"box{seed}", nodes)


def spec_of(text: str, name: str, nodes: int = 1) -> TopologySpec:
    """Give some nodes that are as a dump says."""
    spec, _ = spec_from_systems([_core.nccl.System.parse(text.encode())] * nodes, name)
    return spec


def _nvlinks(chance: Random, gpus: int, most: int) -> list[list[tuple[str, int, str]]]:
    """Give the NVLinks of each GPU: targets, counts and classes."""
    shape = chance.choice(("none", "pairs", "ring", "mesh", "holes", "switch"))
    if most == 0 or shape == "none":
        return [[] for _ in range(gpus)]
    if shape == "switch":
        return [[("0000:c0:00.0", most, NVSWITCH)] for _ in range(gpus)]
    pairs = {
        "pairs": [(gpu, gpu + 1) for gpu in range(0, gpus - 1, 2)],
        "ring": [(gpu, (gpu + 1) % gpus) for gpu in range(gpus if gpus > 2 else 1)],
    }.get(shape, [(a, b) for b in range(gpus) for a in range(b)])
    if shape == "holes":
        pairs = [pair for pair in pairs if chance.random() < 0.6]
    ends = [sum(gpu in pair for pair in pairs) for gpu in range(gpus)]
    each = max(1, most // max(*ends, 1))
    return [
        [(bus(b if a == gpu else a), each, GPU_CLASS) for a, b in pairs if gpu in (a, b)]
        for gpu in range(gpus)
    ]
