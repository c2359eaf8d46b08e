"""The oddities of a valid network."""

from __future__ import annotations

from hocket._core import Inspection, Topology


def warnings_of(topology: Topology, found: Inspection) -> list[str]:
    """Return a line for what keeps collectives from running; `found` is what its inspection found."""
    if topology.npu_count < 2:
        return ["there is one NPU, and nothing to communicate with"]
    if not topology.link_count:
        return [f"there are no links, so that its {topology.npu_count} NPUs cannot communicate"]
    if found.connected or found.unreachable is None:
        return []
    src, dst = found.unreachable
    return [f"it is not connected: {src} does not reach {dst}; collectives of both cannot run"]
