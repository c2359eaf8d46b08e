"""Makes the core's topology from a specification."""

from __future__ import annotations

from collections.abc import Callable

from hocket import _core
from hocket.errors import SpecError
from hocket.topology.groups import grouped
from hocket.topology.spec import TopologySpec

_BUILDERS: dict[str, Callable[..., _core.Topology]] = {
    "line": _core.build_line,
    "ring": _core.build_ring,
    "fully_connected": _core.build_fully_connected,
    "switch": _core.build_switch,
    "mesh": _core.build_mesh,
    "torus": _core.build_torus,
    "hypercube": _core.build_hypercube,
    "dragonfly": _core.build_dragonfly,
    "clos": _core.build_clos,
    "bigraph": _core.build_bigraph,
    "fat_tree": _core.build_fat_tree,
    "rail": _core.build_rail,
    "box": _core.build_boxes,
    "planes": _core.build_planes,
}


def build_topology(spec: TopologySpec) -> _core.Topology:
    """Make the topology, less what has failed.

    Raises
    ------
    SpecError
        If it cannot be made, or something has failed that is not there.
    """
    try:
        return _build(spec)
    except SpecError as error:
        if spec.origin:
            raise error.within(spec.origin) from None
        raise


def _build(spec: TopologySpec) -> _core.Topology:
    if spec.builder is not None:
        topology = _BUILDERS[spec.builder.family](*spec.builder.arguments)
    elif spec.dimensions:
        topology = _core.build_product(
            [
                (each.kind, each.size, each.bandwidth, each.latency_ps, each.offload)
                for each in spec.dimensions
            ]
        )
    else:
        topology = _from_links(spec)
    if spec.named:
        topology = topology.with_name(spec.name)
    if spec.groups:
        topology = grouped(topology, spec.groups)
    if spec.switching is not None:
        topology = topology.with_switching(spec.switching)
    if spec.failed_nodes or spec.failed_links:
        try:
            topology = topology.without(list(spec.failed_nodes), list(spec.failed_links))
        except SpecError as error:
            raise error.but(origin=spec.failed_from) from None
    return topology


def _from_links(spec: TopologySpec) -> _core.Topology:
    names = [*spec.npus, *(name for name, _ in spec.switches)]
    number = {name: i for i, name in enumerate(names)}
    return _core.Topology.from_arrays(
        spec.name,
        names,
        len(spec.npus),
        [limit for _, limit in spec.switches],
        [number[link.src] for link in spec.links],
        [number[link.dst] for link in spec.links],
        [link.bandwidth for link in spec.links],
        [link.latency_ps for link in spec.links],
    )
