"""Topologies as JSON values, for the metadata of plans and for ``--json``."""

from __future__ import annotations

from typing import Any

import numpy as np

from hocket import _core
from hocket.files.blob import pack, unpack

_COLUMNS = {
    "link_src": "uint32",
    "link_dst": "uint32",
    "link_bandwidth": "uint64",
    "link_latency_ps": "uint64",
}


def topology_to_json(topology: _core.Topology) -> dict[str, Any]:
    """Return a topology as JSON values; link columns are packed."""
    fields: dict[str, Any] = {
        "name": topology.name,
        "devices": topology.device_names,
        "npu_count": topology.npu_count,
        "switch_limits": topology.switch_limits,
        "dimensions": topology.dimensions,
        "switching": topology.switching,
        "groups": topology.groups,
    }
    if topology.switch_offloads:
        fields["switch_offloads"] = topology.switch_offloads
    for column in _COLUMNS:
        fields[column] = pack(np.ascontiguousarray(getattr(topology, column)))
    return fields


def topology_from_json(fields: dict[str, Any]) -> _core.Topology:
    """Return what :func:`topology_to_json` was given.

    Where switching is not said, messages are stored and forwarded; a dimension of four values has
    no offload; without groups, no nodes are stated; without switch_offloads, switches only forward.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the values are not a topology.
    """
    columns = {name: unpack(fields[name], dtype) for name, dtype in _COLUMNS.items()}
    return _core.Topology.from_arrays(
        fields["name"],
        fields["devices"],
        fields["npu_count"],
        fields["switch_limits"],
        columns["link_src"],
        columns["link_dst"],
        columns["link_bandwidth"],
        columns["link_latency_ps"],
        [tuple(dimension) for dimension in fields["dimensions"]],
        fields.get("switching", "store-and-forward"),
        fields.get("groups", []),
        [each and tuple(each) for each in fields.get("switch_offloads", [])],
    )
