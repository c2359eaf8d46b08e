"""Makes the core's topology from a specification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hocket import _core
from hocket._core import families
from hocket.errors import SpecError
from hocket.topology.groups import grouped
from hocket.topology.offload import offloaded
from hocket.topology.slow import slowed
from hocket.topology.spec import OffloadSpec, TopologySpec


class Counts(NamedTuple):
    """The counts of a network before any failure: NPUs, switches, links and dimensions."""

    npus: int
    switches: int
    links: int
    dimensions: Sequence[tuple[str, int, int, int, bool]] = ()


def counts_of(spec: TopologySpec) -> Counts:
    """Count what a network has that may be far too large to build."""
    if spec.builder is not None:
        return Counts(*families.counts(spec.builder.family, spec.builder.arguments))
    if spec.dimensions:
        return Counts(*families.product_counts(_dimensions(spec)))
    return Counts(len(spec.npus), len(spec.switches), len(spec.links))


def _dimensions(spec: TopologySpec) -> list[tuple[str, int, int, int, bool]]:
    return [
        (each.kind, each.size, each.bandwidth, each.latency_ps, each.offload)
        for each in spec.dimensions
    ]


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
        if spec.origin and not (error.origin or "").startswith(spec.origin):
            raise error.within(spec.origin) from None
        raise


def _build(spec: TopologySpec) -> _core.Topology:
    if spec.builder is not None:
        topology = families.build(spec.builder.family, spec.builder.arguments)
    elif spec.dimensions:
        topology = _core.build_product(_dimensions(spec))
    else:
        topology = _from_links(spec)
    if spec.named:
        topology = topology.with_name(spec.name)
    if spec.groups:
        topology = _grouped(spec, topology)
    for number, offload in enumerate(spec.offloads):
        topology = _offloaded(spec, topology, number, offload)
    if spec.switching is not None:
        topology = topology.with_switching(spec.switching)
    if spec.failed_nodes or spec.failed_links:
        topology = _without(spec, topology)
    if spec.slow:
        topology = _slowed(spec, topology)
    return topology


def _grouped(spec: TopologySpec, topology: _core.Topology) -> _core.Topology:
    try:
        return grouped(topology, spec.groups)
    except SpecError as error:
        names = {name: i for i, name in enumerate(topology.device_names[: topology.npu_count])}
        seen: set[object] = set()
        for i, group in enumerate(spec.groups if isinstance(spec.groups, tuple) else ()):
            npus = {names.get(npu) for npu in group}
            if len(npus) < len(group) or None in npus or npus & seen:
                raise _at(_of_groups(error, spec), spec, ("groups", i), "") from None
            seen |= npus
        raise _at(_of_groups(error, spec), spec, ("groups",), "") from None


def _offloaded(
    spec: TopologySpec, topology: _core.Topology, number: int, offload: OffloadSpec
) -> _core.Topology:
    """Make switches sum and multicast; a refusal names the line that asks for it."""
    switches = "all" if offload.switches is None else offload.switches
    try:
        return offloaded(
            topology, switches, offload.operations, rate=offload.rate, trees=offload.trees
        )
    except SpecError as error:
        field = f"offload[{number}].{error.field}"
        raise _at(error.but(field=field), spec, ("offload", number), "") from None


def _of_groups(error: SpecError, spec: TopologySpec) -> SpecError:
    """Name the option that said which NPUs form a node, in place of the key."""
    if spec.groups_from == "groups":
        return error
    return error.but(field=spec.groups_from + (error.field or "").removeprefix("groups"))


def _without(spec: TopologySpec, topology: _core.Topology) -> _core.Topology:
    """Take away what has failed; a refusal names the line of the first that is not there."""
    try:
        return topology.without(list(spec.failed_nodes), list(spec.failed_links))
    except SpecError as error:
        each: list[tuple[tuple[str | int, ...], list[str], list[tuple[str, str]]]] = [
            (("failed", "nodes", i), [name], []) for i, name in enumerate(spec.failed_nodes)
        ]
        each += [(("failed", "links", i), [], [ends]) for i, ends in enumerate(spec.failed_links)]
        for place, nodes, links in each:
            try:
                topology.without(nodes, links)
            except SpecError as one:
                raise _at(one, spec, place, spec.failed_from) from None
        raise _at(error, spec, ("failed",), spec.failed_from) from None


def _slowed(spec: TopologySpec, topology: _core.Topology) -> _core.Topology:
    """Slow down what is slow; a refusal names the line of the first that cannot be."""
    try:
        return slowed(topology, spec.slow)
    except SpecError as error:
        for i, each in enumerate(spec.slow):
            try:
                slowed(topology, [each])
            except SpecError as one:
                raise _at(one, spec, ("slow", i), spec.slow_from) from None
        raise _at(error, spec, ("slow",), spec.slow_from) from None


def _at(
    error: SpecError, spec: TopologySpec, place: tuple[str | int, ...], source: str
) -> SpecError:
    """Name the line of a file that an error is about, and the key or option."""
    while place and place not in spec.lines:
        place = place[:-1]
    is_option = not place or source.startswith("-") or (error.field or "").startswith("-")
    line = "" if is_option else f"{spec.origin}, line {spec.lines[place]}"
    return error.but(origin=": ".join(filter(None, (line, source))) or None)


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
