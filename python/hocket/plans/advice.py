"""Advice on how a product's bandwidth is split between its dimensions."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from hocket import _core
from hocket._core import multirail
from hocket._results import Column, Result, TableResult, name_of, said
from hocket.errors import InfeasibleError
from hocket.plans.schedule import check_rails
from hocket.topology.sources import TopologyLike, as_topology

_EQUAL = 0.01
MAX_DIMENSIONS = 6
"""Most dimensions of more than one NPU that can be judged."""


@dataclass(frozen=True)
class DimensionAdvice(Result):
    """One dimension of more than one NPU."""

    number: int = field(metadata=said(column=Column("dimension")))
    """Its place among the topology's dimensions, from 1."""
    kind: str = field(metadata=said(column=Column("kind")))
    size: int = field(metadata=said(column=Column("NPUs")))
    bandwidth: int = field(metadata=said("bandwidth_bytes_per_s", column=Column("bandwidth")))
    """What one NPU can send over it [bytes/s]."""
    busy_fixed: float = field(metadata=said(column=Column("busy, fixed order")))
    """Share of the time that it is busy in the fixed order of hierarchical, 0 to 1."""
    busy_best: float = field(metadata=said(column=Column("busy, best orders")))
    """Share of the time that it is busy in the best mix of orders."""
    suits_best: float = field(
        metadata=said("suits_best_bytes_per_s", column=Column("split that suits the best orders"))
    )
    """Its part of the same total bandwidth that keeps all dimensions busy in that mix [bytes/s]."""
    suits_fixed: float = field(
        metadata=said("suits_fixed_bytes_per_s", column=Column("split that suits the fixed order"))
    )
    """Its part of the same total bandwidth that keeps all busy in the fixed order [bytes/s]."""


@dataclass(frozen=True)
class Advice(TableResult):
    """The value of the dimensions' bandwidths for an all-reduce, without latencies."""

    _table = "dimensions"

    topology: _core.Topology = field(metadata=said(of=name_of))
    dimensions: list[DimensionAdvice]
    utilization_fixed: float
    """Of all bandwidth, in the fixed order."""
    utilization_best: float
    """Of all bandwidth, in the best mix of orders."""
    limiting: list[int]
    """Numbers of the dimensions that are busy all the time while others are not; none if all are."""
    pairs: list[str]
    """For each pair of dimensions: just enough, over- or under-provisioned."""
    verdict: str
    """What to do, in a sentence."""


def advise_dimensions(topology: TopologyLike) -> Advice:
    """Return how well the bandwidth is split between the dimensions of a product.

    Raises
    ------
    InfeasibleError
        If the topology is not a product, or has more than six dimensions of more than one NPU.
    SpecError
        If links have failed, or a switch has a limit of its own.

    References
    ----------
    Rashidi et al.: Themis, ISCA 2022, sections 3.3 and 6.3. Where the paper says that no schedule can
    fill an under-provisioned network, hocket solves the linear program over all orders.
    """
    topology = as_topology(topology)
    rails = multirail.rails(topology)
    check_rails(topology)
    if not rails:
        raise InfeasibleError(
            None,
            f"topology advise: topology {topology.name!r} states no dimensions",
            "use a product such as Ring_Switch:4x8",
        )
    fixed, best = multirail.balance(topology, fixed=True), multirail.balance(topology)
    if fixed is None or best is None:
        raise InfeasibleError(
            None,
            f"topology advise: {len(rails)} dimensions have more than one NPU",
            f"at most {MAX_DIMENSIONS} can be judged",
        )
    bandwidths = [rail[3] for rail in rails]
    busy_fixed, busy_best = (_busy(each.loads, bandwidths) for each in (fixed, best))
    suits_best, suits_fixed = (_split(each.loads, bandwidths) for each in (best, fixed))
    dimensions = [
        DimensionAdvice(
            rail[0] + 1,
            rail[1],
            rail[2],
            rail[3],
            busy_fixed[i],
            busy_best[i],
            suits_best[i],
            suits_fixed[i],
        )
        for i, rail in enumerate(rails)
    ]
    is_full = best.utilization > 1 - _EQUAL
    limiting = (
        []
        if is_full
        else [each.number for each, busy in zip(dimensions, best.busy, strict=True) if busy]
    )
    return Advice(
        topology,
        dimensions,
        fixed.utilization,
        best.utilization,
        limiting,
        _pairs(dimensions),
        _verdict(fixed.utilization, best.utilization, limiting),
    )


def _busy(loads: list[float], bandwidths: list[int]) -> list[float]:
    times = [load / bandwidth for load, bandwidth in zip(loads, bandwidths, strict=True)]
    return [time / max(times) for time in times]


def _split(loads: list[float], bandwidths: list[int]) -> list[float]:
    """Split the total bandwidth as the loads are."""
    return [sum(bandwidths) * load / sum(loads) for load in loads]


def _pairs(dimensions: list[DimensionAdvice]) -> list[str]:
    """Compare each pair with the rule of section 6.3: BW(K) = P_K ... P_(L-1) BW(L)."""
    lines = []
    for i, first in enumerate(dimensions):
        for j in range(i + 1, len(dimensions)):
            second = dimensions[j]
            right = prod(each.size for each in dimensions[i:j]) * second.bandwidth
            ratio = first.bandwidth / right
            if abs(ratio - 1) <= _EQUAL:
                what = "just enough: the fixed order fills both"
            elif ratio < 1:
                what = f"dimension {second.number} is over-provisioned: the fixed order does not fill it"
            else:
                what = f"dimension {second.number} is under-provisioned"
            lines.append(
                f"dimensions {first.number} and {second.number}: BW({first.number}) is {ratio:.3g} times "
                f"P BW({second.number}): {what}"
            )
    return lines


def _verdict(fixed: float, best: float, limiting: list[int]) -> str:
    if limiting:
        names = " and ".join(str(number) for number in limiting)
        noun = "dimension" if len(limiting) == 1 else "dimensions"
        return (
            f"limited by {noun} {names}: no order of the chunks uses more than {best:.1%} of the "
            f"bandwidth; the split that suits the best orders would use all of it"
        )
    if fixed > 1 - _EQUAL:
        return f"just enough: the fixed order (hierarchical) uses {fixed:.1%} of the bandwidth"
    return (
        f"over-provisioned: the fixed order uses {fixed:.1%} of the bandwidth at most, the best orders "
        f"all of it where the data is large; multirail-optimal finds the best for a size"
    )
