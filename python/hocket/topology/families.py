"""Families of networks: a builder for each."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

from hocket import _core
from hocket._checks import one_of, truth
from hocket._core import Topology
from hocket.errors import SpecError
from hocket.topology.text import KINDS
from hocket.units import Duration, Quantity, parse_bandwidth, parse_time, shown

__all__ = [
    "bigraph",
    "clos",
    "dragonfly",
    "fat_tree",
    "fully_connected",
    "hypercube",
    "line",
    "mesh",
    "product",
    "ring",
    "switch",
    "torus",
]


def line(npus: int, *, bandwidth: Quantity, latency: Duration) -> Topology:
    """NPUs in a row: 0 - 1 - 2 - 3."""
    return _core.build_line(count_of("npus", npus), *link_of(bandwidth, latency))


def ring(npus: int, *, bandwidth: Quantity, latency: Duration, both_ways: bool = True) -> Topology:
    """NPUs in a cycle, with links one way or both."""
    truth("both_ways", both_ways)
    return _core.build_ring(count_of("npus", npus), *link_of(bandwidth, latency), both_ways)


def fully_connected(npus: int, *, bandwidth: Quantity, latency: Duration) -> Topology:
    """A link each way between every pair of NPUs."""
    return _core.build_fully_connected(count_of("npus", npus), *link_of(bandwidth, latency))


def switch(
    npus: int, *, bandwidth: Quantity, latency: Duration, limit: Quantity | None = None
) -> Topology:
    """NPUs around one switch; ``limit`` is the switch's own bandwidth, all ports together."""
    rate = None if limit is None else parse_bandwidth(limit, field="limit")
    return _core.build_switch(count_of("npus", npus), *link_of(bandwidth, latency), rate)


def mesh(*sizes: int | Sequence[int], bandwidth: Quantity, latency: Duration) -> Topology:
    """Give a mesh of any number of axes, as ``mesh(4, 4, ...)`` or ``mesh((4, 4), ...)``.

    NPU numbers vary fastest along the first.
    """
    return _core.build_mesh(_counts(sizes), *link_of(bandwidth, latency))


def torus(*sizes: int | Sequence[int], bandwidth: Quantity, latency: Duration) -> Topology:
    """Give a mesh whose axes close, as :func:`mesh`; an axis of 2 has one link each way."""
    return _core.build_torus(_counts(sizes), *link_of(bandwidth, latency))


def hypercube(log2_npus: int, *, bandwidth: Quantity, latency: Duration) -> Topology:
    """``2 ** log2_npus`` NPUs, joined where their numbers differ in one bit."""
    return _core.build_hypercube(count_of("log2_npus", log2_npus), *link_of(bandwidth, latency))


def product(
    kinds: str,
    sizes: Sequence[int],
    *,
    bandwidth: Sequence[Quantity],
    latency: Sequence[Duration],
    offload: Sequence[bool] | None = None,
    switching: str | None = None,
) -> Topology:
    """Give a product of dimensions, named as ASTRA-sim names them.

    Parameters
    ----------
    kinds
        ``Ring``, ``FullyConnected`` (``FC``), ``Switch`` (``SW``) and ``Line``, joined by ``_``, such
        as ``"Ring_FC_SW"``; NPU numbers vary fastest in the first dimension.
    sizes, bandwidth, latency
        Of each dimension: NPUs, and its links'; one of 1 NPU is skipped.
    offload
        Whether each dimension's switches sum and multicast; only those of a ``Switch`` can.
    switching
        ``"store-and-forward"`` or ``"cut-through"``: how devices pass messages on; by default the
        latter where there is a ``Switch``, so that from NPU to NPU is one step.
    """
    if not isinstance(kinds, str):
        raise SpecError("kinds", f"{shown(kinds)} is not text", "give it as 'Ring_FC_SW'")
    names = kinds.split("_")
    sums = [False] * len(names) if offload is None else offload
    columns: dict[str, object]
    columns = {"sizes": sizes, "bandwidth": bandwidth, "latency": latency, "offload": sums}
    for field, given in columns.items():
        is_text = isinstance(given, str)
        many = len(given) if isinstance(given, Sequence) and not is_text else None
        if many != len(names):
            count = f"only {shown(given)}" if many is None else str(many)
            raise SpecError(
                field,
                f"{count} given for the {len(names)} dimensions of {kinds!r}",
                "give a list with one for each",
            )
    dimensions = []
    for i, name in enumerate(names):
        kind = KINDS.get(name.lower())
        if kind is None:
            raise SpecError(
                "kinds",
                f"{name!r} is not a dimension",
                "use Ring, FullyConnected (FC), Switch (SW) or Line",
            )
        rate = parse_bandwidth(bandwidth[i], field=f"bandwidth[{i}]")
        delay = parse_time(latency[i], field=f"latency[{i}]")
        truth(f"offload[{i}]", sums[i])
        if sums[i] and kind != "Switch":
            raise SpecError(
                f"offload[{i}]", f"a {kind} has no switches that could sum", "leave it to a Switch"
            )
        dimensions.append((kind, count_of(f"sizes[{i}]", sizes[i]), rate, delay, sums[i]))
    made = _core.build_product(dimensions)
    if switching is None:
        return made
    one_of("switching", switching, ("store-and-forward", "cut-through"))
    return made.with_switching(switching)


def dragonfly(
    groups: int,
    group_size: int,
    npus_per_router: int | None = None,
    *,
    bandwidth: Quantity,
    latency: Duration,
    global_bandwidth: Quantity | None = None,
    global_latency: Duration | None = None,
) -> Topology:
    """Fully connected groups of routers, and a link each way between every two groups.

    Routers are the NPUs themselves, or switches with `npus_per_router` NPUs each, whose links are local
    ones. The global links are like the local ones where nothing else is said.
    """
    rate, delay = link_of(bandwidth, latency)
    far = (
        rate
        if global_bandwidth is None
        else parse_bandwidth(global_bandwidth, field="global_bandwidth")
    )
    late = delay if global_latency is None else parse_time(global_latency, field="global_latency")
    members = count_of("group_size", group_size)
    each = None if npus_per_router is None else count_of("npus_per_router", npus_per_router)
    return _core.build_dragonfly(count_of("groups", groups), members, rate, delay, far, late, each)


def clos(
    spines: int,
    tors: int,
    hosts_per_tor: int = 1,
    *,
    bandwidth: Quantity,
    latency: Duration,
    host_bandwidth: Quantity | None = None,
) -> Topology:
    """Give a two-level Clos: NPUs below ToR switches, every ToR joined to every spine.

    ``bandwidth`` is that of the fabric's links, and of the hosts' where ``host_bandwidth`` is left out.
    """
    rate, delay = link_of(bandwidth, latency)
    host = (
        rate if host_bandwidth is None else parse_bandwidth(host_bandwidth, field="host_bandwidth")
    )
    counts = (
        count_of("spines", spines),
        count_of("tors", tors),
        count_of("hosts_per_tor", hosts_per_tor),
    )
    return _core.build_clos(*counts, host, rate, delay)


def bigraph(
    switches_per_side: int, npus_per_switch: int, *, bandwidth: Quantity, latency: Duration
) -> Topology:
    """Give two sides of switches, every one joined to every one across, and NPUs at all of them.

    There are ``2 * switches_per_side * npus_per_switch`` NPUs, those at the upper switches first.

    References
    ----------
    Dong et al.: EFLOPS, algorithm and system co-design for a high performance distributed training
    platform, 2020.
    """
    counts = (
        count_of("switches_per_side", switches_per_side),
        count_of("npus_per_switch", npus_per_switch),
    )
    return _core.build_bigraph(*counts, *link_of(bandwidth, latency))


def fat_tree(k: int, *, bandwidth: Quantity, latency: Duration) -> Topology:
    """Give a three-level fat tree of k-port switches with ``k**3 / 4`` NPUs.

    References
    ----------
    Al-Fares, Loukissas, Vahdat: A scalable, commodity data center network architecture, 2008.
    """
    return _core.build_fat_tree(count_of("k", k), *link_of(bandwidth, latency))


def link_of(bandwidth: Quantity, latency: Duration) -> tuple[int, int]:
    """Give a link's bandwidth [bytes/s] and latency [ps]."""
    return parse_bandwidth(bandwidth, field="bandwidth"), parse_time(latency, field="latency")


def _counts(sizes: Sequence[int | Sequence[int]]) -> list[int]:
    """Give sizes that stand by themselves, or in one sequence."""
    values: Sequence[object] = sizes
    if len(sizes) == 1 and isinstance(sizes[0], Sequence) and not isinstance(sizes[0], str):
        values = sizes[0]
    return [count_of(f"size {i}", value) for i, value in enumerate(values)]


def count_of(field: str, value: object) -> int:
    """Give a count that the core takes, or SpecError."""
    try:
        count = -1 if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:
        count = -1
    if not 1 <= count < 1 << 32:
        raise SpecError(field, f"{shown(value)} is not a whole number from 1 to 2^32 - 1")
    return count
