"""How near plans of groups come to the best trees: ``python bench/groups.py [--cases 60] [--size 64MB]``.

Each case draws a network, 1 to 16 disjoint groups and a kind. A linear program over trees gives the best
packing: it adds the cheapest tree of each group by the prices of links until no tree is cheap enough. The
cheapest tree is exact: Dreyfus and Wagner, The Steiner problem in graphs, 1971. So prices prove a least
time, mostly within 0.1 % of the best packing. They are the mean of the program's and of those that prove
the most so far: Wentges, Weighted Dantzig-Wolfe decomposition for linear mixed-integer programming, 1997.
The program shares no code with hocket. Prints a line per case, and percentiles of time / least time.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

os.environ["HOCKET_CACHE"] = "off"
import hocket as hk
from hocket._core import Topology
from hocket.collectives.collective import joined

FAST = {"bandwidth": "50 GB/s", "latency": "700 ns"}
CLOSE = 1.001
"""Where the program stops: its time over what its prices prove."""
ROUNDS = 200


def random_graph(draw: random.Random) -> Topology:
    """Give a network of 20 NPUs with 4 links each."""
    graph = nx.random_regular_graph(4, 20, seed=draw.randrange(10**9)).to_directed()
    for link in graph.edges:
        graph.edges[link].update(bandwidth=25e9, latency=1e-6)
    return hk.topology.from_networkx(graph)


def rail(draw: random.Random) -> Topology:
    """Give four boxes of four, of which two NPUs have lost their NICs."""
    made = hk.topology.rail(4, 4, 0, node_bandwidth="450 GB/s", node_latency="500 ns", **FAST)
    names = made.device_names
    switches = range(made.npu_count, made.device_count)
    rails = {at for at in switches if "rail" in names[at]} or set(switches)
    links = zip(made.link_src.tolist(), made.link_dst.tolist(), strict=True)
    nics = [(names[a], names[b]) for a, b in links if a < made.npu_count and b in rails]
    return made.without(links=draw.sample(nics, 2))


NETWORKS: dict[str, Callable[[random.Random], Topology]] = {
    "torus 4x4": lambda _: hk.topology.torus(4, 4, **FAST),
    "torus 3x3x3": lambda _: hk.topology.torus(3, 3, 3, **FAST),
    "mesh 5x5": lambda _: hk.topology.mesh(5, 5, **FAST),
    "hypercube 4": lambda _: hk.topology.hypercube(4, **FAST),
    "hypercube 5": lambda _: hk.topology.hypercube(5, **FAST),
    "dragonfly": lambda _: hk.topology.dragonfly(4, 4, bandwidth="50 GB/s", latency="700 ns"),
    "clos": lambda _: hk.topology.clos(2, 4, 4, **FAST),
    "rail, dead NICs": rail,
    "random": random_graph,
}


@dataclass
class Trees:
    """The cheapest trees of a network by the prices of its links, exactly; only NPUs branch."""

    network: Topology

    def __post_init__(self) -> None:
        self.src = self.network.link_src.astype(np.intp)
        self.dst = self.network.link_dst.astype(np.intp)
        self.nodes = self.network.device_count
        ends = list(zip(self.src.tolist(), self.dst.tolist(), strict=True))
        self.link = {pair: number for number, pair in enumerate(ends)}
        self.back = np.array([self.link[b, a] for a, b in ends])

    def ways(self, price: NDArray[np.floating[Any]]) -> None:
        """Find the cheapest ways between all devices."""
        near = np.full((self.nodes, self.nodes), np.inf)
        near[self.src, self.dst] = price
        np.fill_diagonal(near, 0.0)
        self.step = np.tile(np.arange(self.nodes), (self.nodes, 1))
        for middle in range(self.nodes):
            through = near[:, middle, None] + near[None, middle, :]
            is_better = through < near
            near = np.where(is_better, through, near)
            self.step = np.where(is_better, self.step[:, middle, None], self.step)
        self.near = near

    def cheapest(self, root: int, ends: Sequence[int]) -> tuple[float, list[int]]:
        """Return the cost of the cheapest tree from a root to all ends, and its links."""
        full = (1 << len(ends)) - 1
        cost = np.full((full + 1, self.nodes), np.inf)
        split = np.zeros((full + 1, self.nodes), dtype=np.intp)
        branch = np.zeros((full + 1, self.nodes), dtype=np.intp)
        for some in range(1, full + 1):
            if some & (some - 1) == 0:
                here = np.full(self.nodes, np.inf)
                here[ends[some.bit_length() - 1]] = 0.0
            else:
                here = np.full(self.nodes, np.inf)
                part = (some - 1) & some
                while part:
                    both = cost[part] + cost[some ^ part]
                    is_better = both < here
                    here = np.where(is_better, both, here)
                    split[some] = np.where(is_better, part, split[some])
                    part = (part - 1) & some
                here[self.network.npu_count :] = np.inf
            ahead = self.near + here[None, :]
            branch[some] = ahead.argmin(axis=1)
            cost[some] = ahead.min(axis=1)
        links: list[int] = []
        todo = [(full, root)]
        while todo:
            some, at = todo.pop()
            to = int(branch[some, at])
            while at != to:
                after = int(self.step[at, to])
                links.append(self.link[at, after])
                at = after
            if some & (some - 1):
                part = int(split[some, to])
                todo += [(part, to), (some ^ part, to)]
        return float(cost[full, root]), links


def optimum(network: Topology, kind: str, groups: Sequence[Sequence[int]], size: int) -> float:
    """Return a time that no packing of trees for all groups beats [s]: to 0.1 %, or after 200 rounds."""
    is_both = kind == "all-reduce"
    demands = [
        (
            root,
            [each for each in group if each != root],
            size * 1e-6 / (1 if is_both else len(group)),
        )
        for group in groups
        for root in (group[:1] if is_both else group)
    ]
    trees = Trees(network)
    rates = network.link_bandwidth * 1e-12
    price = center = 1.0 / rates
    columns: dict[tuple[int, tuple[int, ...]], None] = {}
    least, best = 0.0, np.inf
    for _ in range(ROUNDS):
        trees.ways(price + price[trees.back] if is_both else price)
        proved = 0.0
        for number, (root, ends, wanted) in enumerate(demands):
            cost, links = trees.cheapest(root, ends)
            proved += wanted * cost
            both = [*links, *trees.back[links].tolist()]
            columns[number, tuple(sorted(both if is_both else links))] = None
        if proved / float(price @ rates) > least:
            least, center = proved / float(price @ rates), price / float(price @ rates)
        if best <= CLOSE * least:
            break
        best, price = packed(list(columns), rates, [wanted for _, _, wanted in demands])
        price = (price / float(price @ rates) + center) / 2.0
        price += 1e-9 * price.max()
    return least * 1e-6


def packed(
    columns: Sequence[tuple[int, tuple[int, ...]]],
    rates: NDArray[np.floating[Any]],
    wanted: list[float],
) -> tuple[float, NDArray[np.float64]]:
    """Return the least time of the trees for all demands [us, MB], and prices of links [us/MB]."""
    links = [(link, place) for place, (_, used) in enumerate(columns) for link in used]
    links += [(link, len(columns)) for link in range(len(rates))]
    ones = np.ones(len(links) - len(rates))
    loads: Any = csr_array((np.concatenate([ones, -rates]), np.array(links).T))
    owners = [number for number, _ in columns]
    shape = (len(wanted), len(columns) + 1)
    shares: Any = csr_array((np.ones(len(columns)), (owners, range(len(columns)))), shape=shape)
    costs = np.zeros(len(columns) + 1)
    costs[-1] = 1.0
    solved = linprog(costs, loads, np.zeros(len(rates)), shares, wanted)
    assert solved.x is not None, solved.message
    return float(solved.x[-1]), np.maximum(0.0, -solved.ineqlin.marginals)


def main() -> None:
    """Print the cases."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="seed of the first case")
    parser.add_argument("--size", default="64MB")
    given = parser.parse_args()
    ratios, bounds = [], []
    for seed in range(given.first, given.first + given.cases):
        draw = random.Random(seed)
        name = list(NETWORKS)[seed % len(NETWORKS)]
        network = NETWORKS[name](draw)
        order = draw.sample(range(network.npu_count), network.npu_count)
        groups: list[list[int]] = []
        for _ in range(draw.choice([1, 1, 2, 3, 4, 8, 16])):
            count = draw.randrange(2, 7)
            if len(order) >= count:
                groups.append([order.pop() for _ in range(count)])
        kind = draw.choice(["all-reduce", "all-gather"])
        several = [hk.collective_on(kind, network, given.size, npus=group) for group in groups]
        best = optimum(network, kind, groups, several[0].size)
        began = time.perf_counter()
        run = hk.simulate(hk.plan_together(several, network))
        took = time.perf_counter() - began
        bound = hk.bound(network, joined(several)).time_ps * 1e-12
        ratios.append(run.time / best)
        bounds.append(best / bound)
        sizes = "+".join(str(len(group)) for group in groups)
        print(
            f"{seed:3} {name:16} {kind:10} {sizes:32} {run.plan.algorithm:8} {run.time * 1e6:9.1f} us, "
            f"best trees {best * 1e6:9.1f}, bound {bound * 1e6:9.1f}, planned in {took:.2f} s",
            flush=True,
        )
    for what, values in (("time / best trees", ratios), ("best trees / bound", bounds)):
        shown = ", ".join(f"{np.percentile(values, each):.3f}" for each in (50, 90, 100))
        print(f"{what}: 50 %, 90 % and all of {len(values)}: {shown}")


if __name__ == "__main__":
    main()
