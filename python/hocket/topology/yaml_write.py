"""Networks of devices and links written as files of hocket's own."""

from __future__ import annotations

import json
from collections import Counter

from hocket.topology.spec import LinkSpec, TopologySpec


def yaml_of_links(spec: TopologySpec) -> str:
    """Return the text of a file that describes a network of devices and links, with all its notes."""
    lines = [f"name: {json.dumps(spec.name)}"]
    if spec.notes:
        lines += ["notes:", *(f"  - {json.dumps(note)}" for note in spec.notes)]
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
            entry = {"switches": switches, "operations": each.operations}
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
