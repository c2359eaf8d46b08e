"""Faults of a machine or of NCCL's graphs on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hocket.nccl.machine import Machine

_FAR = {
    "PHB": "by way of a processor",
    "SYS": "by way of two processors",
}


def findings_of(machine: Machine) -> Iterator[str]:
    """Return a sentence for each thing that costs bandwidth or that a search of NCCL's would not do."""
    yield from uneven_links(machine)
    yield from _counts(machine)
    yield from _paths(machine)
    yield from _nics(machine)
    yield from _rates(machine)


def _at(machine: Machine, number: int) -> str:
    return "" if len(machine.nodes) == 1 else f"node {number}: "


def uneven_links(machine: Machine) -> Iterator[str]:
    """Return a sentence for each node with GPUs that have fewer NVLinks than their like."""
    most = max(gpu[4] for node in machine.nodes for gpu in node.system.gpus)
    seen: set[str] = set()
    for number, node in enumerate(machine.nodes):
        few = [f"{gpu[5]} has {gpu[4]}" for gpu in node.system.gpus if gpu[4] < most]
        if few and node.file not in seen and len(few) < len(node.system.gpus):
            seen.add(node.file)
            kind = "NVLinks" if machine.arch is None else "xGMI links"
            yield f"{_at(machine, number)}{', '.join(few)} {kind}, others {most}: some may be down"


def _counts(machine: Machine) -> Iterator[str]:
    """Nodes and graphs that have more channels than are used."""
    for number, node in enumerate(machine.nodes):
        for algorithm in ("ring", "tree"):
            graph = node.graph(algorithm)
            if graph is None:
                yield f"{_at(machine, number)}there is no graph of a {algorithm}, so NCCL does not use it"
            elif len(graph.channels) > machine.count:
                has = f"{len(graph.channels)} channels of the {algorithm} graph"
                what = f"of {has} {machine.count} are used"
                fewest = "as many as the fewest of rings and trees of any node"
                yield f"{_at(machine, number)}{what}: {fewest}"


def _paths(machine: Machine) -> Iterator[str]:
    """Paths that leave NVLink or PCI switches."""
    found: dict[tuple[str, str], str] = {}
    for number, node in enumerate(machine.nodes):
        ring = node.graph("ring")
        if ring is None:
            continue
        if ring.type_intra in _FAR and len(node.system.gpus) > 1:
            far = _FAR[ring.type_intra]
            found.setdefault(
                ("gpu", ring.type_intra), f"{_at(machine, number)}rings pass between GPUs {far}"
            )
        if ring.type_inter in _FAR and len(machine.nodes) > 1:
            far = _FAR[ring.type_inter]
            found.setdefault(
                ("nic", ring.type_inter), f"{_at(machine, number)}rings reach NICs {far}"
            )
    for (_, kind), sentence in found.items():
        yield f"{sentence} ({kind})"


def _nics(machine: Machine) -> Iterator[str]:
    """NICs that no ring uses, or that several use while others are idle."""
    if len(machine.nodes) == 1:
        return
    for number, node in enumerate(machine.nodes):
        ring = node.graph("ring")
        if ring is None:
            continue
        used = Counter(ports[-1] for ports, *_ in ring.channels[: machine.count] if ports)
        idle = [name or device for net, name, _, device in node.system.nets if net not in used]
        if idle and used:
            what = f"{', '.join(idle)} of {len(node.system.nets)} NICs"
            yield f"{_at(machine, number)}no ring uses {what}"


def _rates(machine: Machine) -> Iterator[str]:
    """Rings that are counted at much less than the NICs of their node carry."""
    if len(machine.nodes) == 1:
        return
    for number, node in enumerate(machine.nodes):
        ring = node.graph("ring")
        nics = sum(mbps for *_, mbps, _ in node.system.nets) / 8000
        if ring is None:
            continue
        rate = machine.count * ring.speed_inter
        if rate < 0.75 * nics:
            yield (
                f"{_at(machine, number)}rings are counted at {rate:.4g} GB/s, NICs carry {nics:.4g}"
            )
            return
