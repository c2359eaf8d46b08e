"""Networks as InfraGraph files.

NPUs are XPUs of devices of as many as a node has, switches are instances of one device, and a pair of
links, one each way, is an edge. What the format has no place for stands in annotations: names, the order
of NPUs, limits of switches, how messages are passed on.
"""

from __future__ import annotations

import re
from collections import Counter
from os import PathLike
from typing import Any

from hocket._checks import path_of
from hocket._core import Topology
from hocket.errors import InfeasibleError
from hocket.files.atomic import write_text
from hocket.files.yaml_tree import dump_yaml

_TITLE = re.compile(r"[\sa-zA-Z0-9\-_()><\[\]]+")
_SWITCHING = "store-and-forward"


def write_infragraph(topology: Topology, path: str | PathLike[str]) -> None:
    """Write a network as an InfraGraph file, YAML, whole or not at all.

    Raises
    ------
    SpecError
        If the file cannot be written.
    InfeasibleError
        If the format cannot express the network, with the reason.
    """
    target = path_of("path", path)
    write_text(target, dump_yaml(infragraph_values(topology), width=100))


def infragraph_values(topology: Topology) -> dict[str, Any]:
    """Return a network as the values of an InfraGraph file.

    Dimensions of a product are not among them: it has its links alone.

    Raises
    ------
    InfeasibleError
        If the format cannot express the network, with the reason.
    """
    if topology.switch_offloads and any(topology.switch_offloads):
        raise InfeasibleError(None, "InfraGraph has no switches that sum or multicast")
    ends = _edges(topology)
    devices, instances, paths = _devices(topology)
    kinds = sorted({rates for _, _, rates in ends})
    called = {rates: f"link{i}" for i, rates in enumerate(kinds)}
    links = [
        {
            "name": called[rate, delay_ps],
            "physical": {
                "bandwidth": {
                    "choice": "gigabytes_per_second",
                    "gigabytes_per_second": rate / 10**9,
                },
                "latency": {"choice": "ns", "ns": delay_ps / 10**3},
            },
        }
        for rate, delay_ps in kinds
    ]
    edges = [
        {
            "ep1": _endpoint(paths[a]),
            "ep2": _endpoint(paths[b]),
            "scheme": "one2one",
            "link": called[rates],
        }
        for a, b, rates in ends
    ]
    title = topology.name if _TITLE.fullmatch(topology.name) else "network"
    infrastructure = {
        "name": title,
        "devices": devices,
        "links": links,
        "instances": instances,
        "edges": edges,
    }
    annotations = _annotations(topology, paths, title)
    if not annotations:
        return infrastructure
    return {"infrastructure": infrastructure, "annotations": annotations}


def _edges(topology: Topology) -> list[tuple[int, int, tuple[int, int]]]:
    """Return the pairs of devices that are joined, with bandwidth and latency."""
    names = topology.device_names
    columns = (
        topology.link_src,
        topology.link_dst,
        topology.link_bandwidth,
        topology.link_latency_ps,
    )
    links = list(zip(*(column.tolist() for column in columns), strict=True))
    count = Counter((src, dst) for src, dst, *_ in links)
    rates = {(src, dst): (rate, delay_ps) for src, dst, rate, delay_ps in links}
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for (src, dst), number in count.items():
        both = f"{names[src]} and {names[dst]}"
        if number > 1:
            why = f"between {both} are {number} links in parallel, and InfraGraph has one edge"
            raise InfeasibleError(None, why)
        if rates.get((dst, src)) != rates[src, dst]:
            why = f"between {both} the ways differ, and InfraGraph's edges are alike both ways"
            raise InfeasibleError(None, why)
        if (dst, src) not in found:
            found[src, dst] = rates[src, dst]
    for rate, delay_ps in set(found.values()):
        if round(rate / 10**9 * 10**9) != rate or round(delay_ps / 10**3 * 10**3) != delay_ps:
            raise InfeasibleError(
                None, f"{rate} bytes/s or {delay_ps} ps is no number of InfraGraph"
            )
    return [(src, dst, values) for (src, dst), values in found.items()]


_Path = tuple[str, int, str, int]
"""Instance, its number, component, its number."""


def _devices(
    topology: Topology,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[_Path]]:
    """Return devices, their instances, and where each device of the network is."""
    paths: list[_Path | None] = [None] * topology.device_count
    groups = topology.groups or [[npu] for npu in range(topology.npu_count)]
    sizes = [len(group) for group in groups]
    is_even = len(set(sizes)) == 1
    devices, instances = [], []
    for size in dict.fromkeys(sizes):
        title = ("node" if topology.groups else "npu") + ("" if is_even else f"{size}")
        own = [group for group in groups if len(group) == size]
        devices.append(_device(title, "xpu", size))
        instances.append({"name": title, "device": title, "count": len(own)})
        for number, group in enumerate(own):
            for place, npu in enumerate(group):
                paths[npu] = (title, number, "xpu", place)
    switches = topology.device_count - topology.npu_count
    if switches:
        devices.append(_device("switch", "switch", 1))
        instances.append({"name": "switch", "device": "switch", "count": switches})
        for number in range(switches):
            paths[topology.npu_count + number] = ("switch", number, "switch", 0)
    return devices, instances, [path for path in paths if path is not None]


def _device(title: str, component: str, count: int) -> dict[str, Any]:
    part = {"name": component, "count": count, "choice": component, component: {}}
    return {"name": title, "components": [part], "links": [], "edges": []}


def _endpoint(path: _Path) -> dict[str, str]:
    instance, number, component, place = path
    return {"instance": f"{instance}[{number}]", "component": f"{component}[{place}]"}


def _annotations(topology: Topology, paths: list[_Path], title: str) -> dict[str, Any]:
    dotted = [".".join(map(str, path)) for path in paths]
    order = {path: i for i, path in enumerate(_in_file(paths[: topology.npu_count]))}
    is_ranked = any(order[path] != npu for npu, path in enumerate(paths[: topology.npu_count]))
    nodes = []
    for device, (path, name) in enumerate(zip(dotted, topology.device_names, strict=True)):
        said = {} if name == path else {"name": name}
        if is_ranked and device < topology.npu_count:
            said["rank"] = str(device)
        if device >= topology.npu_count:
            limit = topology.switch_limits[device - topology.npu_count]
            if limit is not None:
                said["limit"] = f"{limit} B/s"
        if said:
            nodes.append({"name": path, "attributes": _attributes(said)})
    graph = {} if title == topology.name else {"name": topology.name}
    if topology.switching != _SWITCHING:
        graph["switching"] = topology.switching
    found: dict[str, Any] = {}
    if nodes:
        found["nodes"] = nodes
    if graph:
        found["graph"] = _attributes(graph)
    return found


def _in_file(paths: list[_Path]) -> list[_Path]:
    """Put paths in the order in which a reader finds them: instances as listed, then by number."""
    titles = {title: i for i, title in enumerate(dict.fromkeys(title for title, *_ in paths))}
    return sorted(paths, key=lambda path: (titles[path[0]], path[1], path[3]))


def _attributes(said: dict[str, str]) -> list[dict[str, str]]:
    return [{"attribute": key, "value": value} for key, value in said.items()]
