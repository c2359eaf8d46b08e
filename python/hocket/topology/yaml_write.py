"""Networks of devices and links written as files of hocket's own."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace

from hocket._core import Topology
from hocket.topology.build import build_topology
from hocket.topology.spec import LinkSpec, OffloadSpec, TopologySpec


def spec_of(topology: Topology) -> TopologySpec:
    """Return what describes a network by its devices and links."""
    names = topology.device_names
    npus, switches = names[: topology.npu_count], names[topology.npu_count :]
    columns = (
        topology.link_src,
        topology.link_dst,
        topology.link_bandwidth,
        topology.link_latency_ps,
    )
    offloads: dict[tuple[tuple[str, ...], int | None, int | None], list[str]] = {}
    # No switch sums where there are no entries.
    for switch, offload in zip(switches, topology.switch_offloads, strict=False):
        if offload is not None:
            operations, rate, trees = offload
            offloads.setdefault((tuple(operations), rate, trees), []).append(switch)
    return TopologySpec(
        topology.name,
        npus=tuple(npus),
        switches=tuple(zip(switches, topology.switch_limits, strict=True)),
        links=tuple(
            LinkSpec(names[src], names[dst], rate, delay)
            for src, dst, rate, delay in zip(*(each.tolist() for each in columns), strict=True)
        ),
        groups=tuple(tuple(names[npu] for npu in group) for group in topology.groups),
        offloads=tuple(
            OffloadSpec(tuple(which), operations, rate, trees)  # type: ignore[arg-type]
            for (operations, rate, trees), which in offloads.items()
        ),
        switching=topology.switching,
        named=True,
    )


def spec_by_links(spec: TopologySpec) -> TopologySpec:
    """Return what describes the network of a specification by devices and links, less what has failed."""
    found = spec_of(build_topology(spec))
    is_whole = not (spec.failed_nodes or spec.failed_links or spec.slow)
    links = spec.links if spec.links and is_whole else found.links  # with their kinds
    return replace(found, links=links, notes=spec.notes, gpu=spec.gpu, profile=spec.profile)


def yaml_of_links(spec: TopologySpec) -> str:
    """Return the text of a file that describes a network of devices and links, with all its notes."""
    # A name in a file has neither spaces nor commas.
    lines = [f"name: {json.dumps(re.sub('[ ,]+', '-', spec.name))}"]
    if spec.notes:
        lines += ["notes:", *(f"  - {json.dumps(note)}" for note in spec.notes)]
    if spec.switching is not None:
        lines.append(f"switching: {spec.switching}")
    if spec.gpu is not None:
        lines.append(f"gpu: {spec.gpu}")
    if spec.profile is not None and spec.profile.name is not None:
        lines.append(f"profile: {spec.profile.name}")
    lines.append(f"npus: {json.dumps(spec.npus)}")
    if spec.switches:
        lines.append("switches:")
        for name, limit in spec.switches:
            with_limit = {"name": name, "limit": f"{limit} B/s"}
            lines.append(f"  - {json.dumps(name if limit is None else with_limit)}")
    lines.append("links:")
    lines += [f"  - {json.dumps(entry)}" for entry in _entries(spec.links)]
    if spec.groups:
        lines.append(f"groups: {json.dumps(spec.groups)}")
    if spec.offloads:
        lines.append("offload:")
        for each in spec.offloads:
            switches = "all" if each.switches is None else each.switches
            entry: dict[str, object] = {"switches": switches, "operations": each.operations}
            if each.rate is not None:
                entry["rate"] = f"{each.rate} B/s"
            if each.trees is not None:
                entry["trees"] = each.trees
            lines.append(f"  - {json.dumps(entry)}")
    return "\n".join(lines) + "\n"


def _entries(links: tuple[LinkSpec, ...]) -> list[dict[str, object]]:
    """Return links as entries, one for both ways where these are equal."""
    left = Counter(links)
    found = []
    for link in dict.fromkeys(links):
        count = left[link]
        if count == 0:
            continue
        back = LinkSpec(link.dst, link.src, link.bandwidth, link.latency_ps, link.kind)
        entry: dict[str, object] = {"a": link.src, "b": link.dst}
        if link.kind is not None:
            entry["kind"] = link.kind
        entry["bandwidth"], entry["latency"] = f"{link.bandwidth} B/s", f"{link.latency_ps} ps"
        if left[back] == count:
            left[back] = 0
        else:
            entry["ways"] = "one"
        if count > 1:
            entry["count"] = count
        left[link] = 0
        found.append(entry)
    return found
