"""Networks that a budget buys: shapes, and how much of the budget each of their dimensions gets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import prod

from hocket.topology.costs import cables_of
from hocket.topology.spec import CostsSpec, PriceSpec
from hocket.units import format_bandwidth

KINDS = ("Ring", "FullyConnected", "Switch")
"""Kinds of dimensions that are tried."""
CLOS = "clos"
"""The kind that is two levels of switches, or three: a fat tree."""
_SHORT = {"Ring": "Ring", "FullyConnected": "FC", "Switch": "SW", "Line": "L"}
_STEP = 10**6
"""Bandwidths are whole MB/s, rounded down."""


@dataclass(frozen=True)
class Shape:
    """A network without bandwidths.

    Attributes
    ----------
    dimensions
        Kind and size of each; empty for a Clos.
    clos
        Spines, ToRs, NPUs of a ToR.
    ports
        Of each switch of a fat tree of three levels, all of whose links are alike.
    """

    dimensions: tuple[tuple[str, int], ...] = ()
    clos: tuple[int, int, int] | None = None
    ports: int | None = None

    @property
    def npus(self) -> int:
        """The number of NPUs that it joins."""
        if self.clos is not None:
            return self.clos[1] * self.clos[2]
        if self.ports is not None:
            return self.ports**3 // 4
        return prod(size for _, size in self.dimensions)

    @property
    def ways(self) -> int:
        """The number of parts of a budget."""
        if self.ports is not None:
            return 1
        return 2 if self.clos is not None else len(self.dimensions)

    def fixed(self, costs: CostsSpec) -> Fraction:
        """Return what it costs whatever its bandwidth."""
        npus = self.npus * Fraction(costs.npu)
        cable, box = Fraction(costs.link.each), Fraction(costs.switch.each)
        if self.clos is not None:
            spines, tors, below = self.clos
            cables = tors * below + tors * spines
            return npus + cables * cable + (spines + tors) * box
        if self.ports is not None:
            return npus + 3 * self.npus * cable + 5 * self.ports**2 // 4 * box
        cables = switches = 0
        for kind, size in self.dimensions:
            groups = self.npus // size
            cables += cables_of(kind, size) * groups
            switches += groups if kind == "Switch" else 0
        return npus + cables * cable + switches * box

    def rates(self, costs: CostsSpec) -> tuple[Fraction, ...]:
        """Return what a byte/s of all links of a dimension costs; of a Clos, of NPUs and of ToRs."""
        link, switch = costs.link.per_byte_per_s, costs.switch.per_byte_per_s
        if self.clos is not None:
            spines, tors, below = self.clos
            return (tors * below * (link + switch), tors * spines * (link + 2 * switch))
        if self.ports is not None:
            # NPUs to edge switches; as many cables from these to the next level, and to the highest.
            return (self.npus * (link + switch + 2 * (link + 2 * switch)),)
        found = []
        for kind, size in self.dimensions:
            groups = self.npus // size
            ports = groups * size if kind == "Switch" else 0
            found.append(cables_of(kind, size) * groups * link + ports * switch)
        return tuple(found)


@dataclass(frozen=True)
class Candidate:
    """A network that a budget buys.

    Attributes
    ----------
    shape
        What it is.
    split
        How the budget for bandwidth is shared out: parts of each dimension; of a Clos 1 and its
        oversubscription.
    budget
        What it may cost.
    bandwidths
        Of the links of each dimension, or of NPUs and of ToRs [bytes/s].
    """

    shape: Shape
    split: tuple[float, ...]
    budget: float
    bandwidths: tuple[int, ...]

    def text(self, latency: str) -> str:
        """Return it as ``--topology`` takes it."""
        rates = [format_bandwidth(each).replace(" ", "") for each in self.bandwidths]
        links = "@".join([f"{rates[0]},{latency}", *rates[1:]])
        if self.shape.clos is not None:
            return f"clos:{'x'.join(map(str, self.shape.clos))}@{links}"
        if self.shape.ports is not None:
            return f"fat_tree:{self.shape.ports}@{links}"
        kinds = "_".join(_SHORT[kind] for kind, _ in self.shape.dimensions)
        sizes = "x".join(str(size) for _, size in self.shape.dimensions)
        return f"{kinds}:{sizes}@{links}"

    @property
    def oversubscription(self) -> float | None:
        """Bandwidth below a ToR for that above it; None of what is no Clos."""
        return self.split[1] if self.shape.clos is not None else None


def bought(
    shape: Shape, split: tuple[float, ...], budget: float, costs: CostsSpec, most: int | None
) -> Candidate | None:
    """Return the network that a budget buys, or None if there is nothing left for bandwidth.

    Parameters
    ----------
    most
        The largest bandwidth of a link [bytes/s].
    """
    left = Fraction(budget) - shape.fixed(costs)
    if left <= 0:
        return None
    rates = shape.rates(costs)
    found: list[Fraction] = []
    if shape.clos is not None:
        spines, _, below = shape.clos
        up = Fraction(below) / (spines * Fraction(split[1]))  # of an uplink, by that of an NPU
        rate = rates[0] + rates[1] * up
        limits = [left / rate] if rate > 0 else []
        limits += [] if most is None else [Fraction(most), most / up]
        found = [min(limits), min(limits) * up] if limits else []
    else:
        total = sum(map(Fraction, split))
        for share, rate in zip(split, rates, strict=True):
            limits = [left * Fraction(share) / total / rate] if rate > 0 else []
            limits += [] if most is None else [Fraction(most)]
            found += [min(limits)] if limits else []
    if len(found) < shape.ways:  # of something all bandwidth is free
        return None
    bandwidths = tuple(int(each) // _STEP * _STEP for each in found)
    return Candidate(shape, split, budget, bandwidths) if min(bandwidths) > 0 else None


def product_shapes(npus: int, kinds: Sequence[str], most: int) -> list[Shape]:
    """Return products of at most so many dimensions, in each order, since plans go dimension by dimension.

    Of dimensions of two NPUs one kind alone stands for a ring and a full mesh, which are the same there.
    """
    found: dict[Shape, None] = {}
    own = [kind for kind in kinds if kind in KINDS]
    for count in range(1, most + 1):
        for sizes in _factors(npus, count):
            for chosen in product(own, repeat=count):
                pairs = tuple(zip(chosen, sizes, strict=True))
                if "Ring" in own and ("FullyConnected", 2) in pairs:
                    continue
                found[Shape(pairs)] = None
    return list(found)


def clos_shapes(npus: int) -> list[Shape]:
    """Return two levels of switches: ToRs with as many NPUs each, and 1, 2, 4, ... spines."""
    found = []
    for tors in range(2, npus // 2 + 1):
        if npus % tors:
            continue
        below, spines = npus // tors, 1
        while spines <= below:
            found.append(Shape(clos=(spines, tors, below)))
            spines *= 2
    return found


def fat_trees(npus: int) -> list[Shape]:
    """Return the three levels of switches that join just as many NPUs, if there are such."""
    return [Shape(ports=k) for k in range(4, 256, 2) if k**3 // 4 == npus]


def splits(ways: int, steps: int) -> Iterator[tuple[float, ...]]:
    """Return every way to share out so many equal parts, at least one each."""
    if steps < ways:
        yield (1.0,) * ways
        return
    for cuts in combinations(range(1, steps), ways - 1):
        ends = (0, *cuts, steps)
        yield tuple(float(b - a) for a, b in pairwise(ends))


def _factors(number: int, count: int) -> Iterator[tuple[int, ...]]:
    """Return every way to write a number as a product of so many factors above 1, in order."""
    if count == 1:
        if number > 1:
            yield (number,)
        return
    for first in range(2, number // 2 + 1):
        if number % first == 0:
            for rest in _factors(number // first, count - 1):
                yield (first, *rest)


_SHARED = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1}
"""How many times all data but an own part go into every part of a network: once as sums, once as copies."""


def least_time(candidate: Candidate, kind: str, size: int, latency_ps: int) -> int:
    """Return a closed form of a collective's time that is at most its lower bound [ps]; 0 of other kinds.

    Data travels to the farthest NPU. Cut a product along some of its dimensions: each part has the links of
    these, and all that the others hold goes in.
    """
    if kind not in _SHARED:
        return 0
    shape = candidate.shape
    if not shape.dimensions:
        links = 4 if shape.clos is not None else 6
        cuts = [(Fraction(shape.npus), Fraction(candidate.bandwidths[0]))]
        if shape.clos is not None:
            spines, tors, _ = shape.clos
            cuts.append((Fraction(tors), Fraction(spines * candidate.bandwidths[1])))
    else:
        far = {"FullyConnected": 1, "Switch": 2}
        links = sum(far.get(kind, n // 2) for kind, n in shape.dimensions)
        cuts = []
        rates = [
            _into(kind, n) * rate
            for (kind, n), rate in zip(shape.dimensions, candidate.bandwidths, strict=True)
        ]
        for which in product((False, True), repeat=shape.ways):
            parts = prod(n for (_, n), cut in zip(shape.dimensions, which, strict=True) if cut)
            into = sum(rate for rate, cut in zip(rates, which, strict=True) if cut)
            if parts > 1:
                cuts.append((Fraction(parts), Fraction(into * shape.npus, parts)))
    times = [_SHARED[kind] * size * (1 - 1 / parts) / into for parts, into in cuts]
    return max(int(max(times) * 10**12), links * latency_ps)


def _into(kind: str, size: int) -> int:
    """Return how many links of a dimension lead into an NPU."""
    if kind == "Ring":
        return min(size - 1, 2)
    return size - 1 if kind == "FullyConnected" else 1


def as_yaml(candidate: Candidate, latency: str, costs: CostsSpec, note: str) -> str:
    """Return a candidate as the text of a topology file, with prices."""
    shape, rates = candidate.shape, [format_bandwidth(each) for each in candidate.bandwidths]
    lines = []
    if shape.clos is not None:
        spines, tors, below = shape.clos
        lines += ["builder: clos", f"spines: {spines}", f"tors: {tors}", f"hosts_per_tor: {below}"]
        lines += [f"host_bandwidth: {rates[0]}", f"bandwidth: {rates[1]}"]
        lines += [f"latency: {latency}"]
    elif shape.ports is not None:
        lines += ["builder: fat_tree", f"k: {shape.ports}", f"bandwidth: {rates[0]}"]
        lines += [f"latency: {latency}"]
    else:
        lines.append("dims:")
        for (kind, size), rate in zip(shape.dimensions, rates, strict=True):
            link = f"bandwidth: {rate}, latency: {latency}"
            lines.append(f"  - {{kind: {kind}, size: {size}, {link}}}")
    lines += ["costs:", f"  npu: {costs.npu:g}"]
    lines += [f"  link: {_price(costs.link)}", f"  switch: {_price(costs.switch)}"]
    lines.append(f'notes: ["{note}"]')
    return "\n".join(lines) + "\n"


def _price(price: PriceSpec) -> str:
    units = float(price.per_byte_per_s * 10**9)
    return f"{{each: {price.each:g}, bandwidth: {units:g} per GB/s}}"
