"""The cost of a network: its NPUs, cables and switches, by the section ``costs:`` of its file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from hocket._checks import path_of
from hocket._results import Result
from hocket.errors import SpecError
from hocket.topology.build import build_topology
from hocket.topology.spec import CostsSpec, DimensionSpec, TopologySpec
from hocket.topology.text import from_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hocket.units import Duration, Quantity


@dataclass(frozen=True)
class NetworkCost(Result):
    """The cost of a network, in the units of its prices.

    Attributes
    ----------
    npus, links, switches
        What all of them cost.
    cables
        How many cables there are: a link both ways is one, and each of parallel links.
    switch_count
        How many switches there are.
    total
        What the network costs.
    """

    npus: float
    links: float
    switches: float
    cables: int
    switch_count: int
    total: float

    @classmethod
    def of(
        cls, npus: Fraction, links: Fraction, switches: Fraction, cables: int, switch_count: int
    ) -> NetworkCost:
        """Return what the parts cost, which are rounded each, and exactly what the whole does."""
        parts = (float(npus), float(links), float(switches))
        return cls(*parts, cables, switch_count, float(npus + links + switches))


def price(
    name_or_path: str | PathLike[str],
    *,
    costs: str | PathLike[str] | None = None,
    bandwidth: Quantity | Sequence[Quantity] | None = None,
    latency: Duration | Sequence[Duration] | None = None,
) -> NetworkCost:
    """Return the cost of a network; failed parts count, too.

    Parameters
    ----------
    name_or_path, bandwidth, latency
        As of :func:`hocket.topology.load`.
    costs
        A file with ``costs:``, for a network whose own file has none.

    Raises
    ------
    SpecError
        If there is no such network, or nothing says what its parts cost.

    Examples
    --------
    >>> import hocket as hk
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "prices.yml"
    >>> _ = file.write_text("costs: {link: {each: 10, bandwidth: 2 per GB/s}}")
    >>> hk.topology.price("ring:4@25GB/s,1us", costs=file).total
    240.0
    """
    spec = from_text(str(name_or_path), bandwidth=bandwidth, latency=latency, option="name_or_path")
    if spec.costs is None and costs is not None:
        spec = replace(spec, costs=costs_from_file(path_of("costs", costs)))
    found = cost_of(spec)
    if found is None:
        right = "give costs=, or a section costs: in its file"
        raise SpecError("costs", f"nothing says what {spec.name} costs", right)
    return found


def costs_from_file(path: Path) -> CostsSpec:
    """Read a file that has ``costs:`` alone.

    Raises
    ------
    SpecError
        Naming file, line, key and remedy.
    """
    from hocket.files.complaint import shown_path
    from hocket.files.yaml_tree import FileKind, read_yaml
    from hocket.topology.yaml import costs_from_values

    values, lines = read_yaml(path, FileKind("costs", "costs:", "leave keys out"))
    return costs_from_values(values, lines, shown_path(path))


def cost_of(spec: TopologySpec) -> NetworkCost | None:
    """Return the cost of a network, or None if no prices are given.

    Complexity: O(links log links); of a product O(dimensions).

    Raises
    ------
    SpecError
        If the network cannot be made, or its costs are of kinds or dimensions that it does not have.
    """
    if spec.costs is None:
        return None
    if spec.dimensions:
        return _of_dimensions(spec.dimensions, spec.costs)
    if spec.costs.dimensions:
        raise SpecError("costs.dimensions", "the network has none", "price link and switch instead")
    return _of_links(spec, spec.costs)


def _of_dimensions(dimensions: Sequence[DimensionSpec], costs: CostsSpec) -> NetworkCost:
    if costs.kinds:
        raise SpecError("costs.kinds", "dims: has no kinds of links", "price dimensions instead")
    if costs.dimensions and len(costs.dimensions) != len(dimensions):
        why = f"these are {len(costs.dimensions)} of {len(dimensions)} dimensions"
        raise SpecError("costs.dimensions", why, "price each of them")
    each_price = costs.dimensions or ((costs.link, costs.switch),) * len(dimensions)
    npus = 1
    for each in dimensions:
        npus *= each.size
    cables, switches, link_cost, switch_cost = 0, 0, Fraction(0), Fraction(0)
    for each, (link, switch) in zip(dimensions, each_price, strict=True):
        groups = npus // each.size
        count = cables_of(each.kind, each.size) * groups
        cables += count
        link_cost += count * link.of(each.bandwidth)
        if each.kind == "Switch" and each.size > 1:
            switches += groups
            switch_cost += groups * switch.of(each.size * each.bandwidth)
    own = npus * Fraction(costs.npu)
    return NetworkCost.of(own, link_cost, switch_cost, cables, switches)


def cables_of(kind: str, size: int) -> int:
    """Return how many cables join the NPUs of a group of one dimension."""
    if size == 1:
        return 0
    if kind == "Ring":
        return size if size > 2 else 1
    if kind == "Line":
        return size - 1
    return size if kind == "Switch" else size * (size - 1) // 2


def _of_links(spec: TopologySpec, costs: CostsSpec) -> NetworkCost:
    import numpy as np

    whole = build_topology(replace(spec, failed_nodes=(), failed_links=()))
    if spec.links:
        number = {name: i for i, name in enumerate(whole.device_names)}
        src = np.array([number[link.src] for link in spec.links], dtype=np.int64)
        dst = np.array([number[link.dst] for link in spec.links], dtype=np.int64)
        rate = np.array([link.bandwidth for link in spec.links], dtype=np.int64)
        prices = [costs.kinds.get(link.kind or "", costs.link) for link in spec.links]
    else:
        if costs.kinds:
            raise SpecError("costs.kinds", "a builder has no kinds of links", "price link instead")
        src = whole.link_src.astype(np.int64)
        dst = whole.link_dst.astype(np.int64)
        rate = whole.link_bandwidth.astype(np.int64)
        prices = [costs.link] * len(src)
    pairs = list(zip(prices, rate.tolist(), strict=True))
    known = sorted({one.of(bandwidth) for one, bandwidth in dict.fromkeys(pairs)})
    rank = {cost: i for i, cost in enumerate(known)}
    cost_of_pair = {pair: rank[pair[0].of(pair[1])] for pair in dict.fromkeys(pairs)}
    ranks = np.array([cost_of_pair[pair] for pair in pairs], dtype=np.int64)
    counts = np.bincount(_cables(src, dst, ranks), minlength=len(known)).tolist()
    links = sum((count * cost for count, cost in zip(counts, known, strict=True)), Fraction(0))
    ports = np.zeros(whole.device_count, dtype=np.int64)
    np.add.at(ports, src, rate)
    own = ports[whole.npu_count :].tolist()
    switches = sum((costs.switch.of(each) for each in own), Fraction(0))
    npus = whole.npu_count * Fraction(costs.npu)
    return NetworkCost.of(npus, links, switches, sum(counts), len(own))


def _cables(
    src: NDArray[np.int64], dst: NDArray[np.int64], cost: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the rank of the cost of each cable, from those of links.

    A link and one back between the same devices are a cable, which costs what the dearer of them does; of
    parallel links the dearest go together.
    """
    import numpy as np

    low, high, back = np.minimum(src, dst), np.maximum(src, dst), src > dst
    order = np.lexsort((-cost, back, high, low))
    low, high, back, cost = low[order], high[order], back[order], cost[order]
    begins = np.ones(len(low), dtype=bool)
    begins[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1]) | (back[1:] != back[:-1])
    starts = np.flatnonzero(begins)
    turn = np.arange(len(low)) - np.repeat(starts, np.diff(np.append(starts, len(low))))
    order = np.lexsort((turn, high, low))
    low, high, turn, cost = low[order], high[order], turn[order], cost[order]
    begins[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1]) | (turn[1:] != turn[:-1])
    starts = np.flatnonzero(begins)
    return np.maximum.reduceat(cost, starts) if len(starts) else cost
