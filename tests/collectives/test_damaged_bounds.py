"""Bounds of 30 small damaged networks beside linear programs that know of no cut and no partition.

In the programs, data are cut at will and latency is zero. NPUs copy and sum. Switches only forward.

All-gather: trees from all NPUs exist if and only if each NPU can get a flow from all others, where the
flows to one NPU share the links and those to different NPUs do not: Edmonds, "Edge-disjoint branchings",
1973. So the program finds the least time of any plan. A reduce-scatter is an all-gather turned round.
All-reduce: each share of the data is summed up a tree to some NPU and copied down another, at the same
time as all other shares. Plans reach this time, so no bound may be above it. Other plans may be faster.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

import hocket as hk

SIZE = 720_720_000_000
"""Bytes, which any number of NPUs up to 16 shares evenly."""
LINK = "50GB/s,0ns"
FAMILIES = (
    f"torus:4x4@{LINK}",
    f"torus:2x3x2@{LINK}",
    f"mesh:4x3@{LINK}",
    f"hypercube:3@{LINK}",
    f"fully_connected:5@{LINK}",
    f"dragonfly:4x3@{LINK}",
    f"clos:2x3x3@{LINK}",
    f"fat_tree:4@{LINK}",
    f"rail:3x4@300GB/s,0ns@{LINK}",
    f"box:3x4x2@300GB/s,0ns@{LINK}",
)
PARTS = {"box": "NIC", "clos": "switch", "fat_tree": "switch", "rail": "switch"}
"""What a family loses in its first case; others lose an NPU."""
OLDER = {
    "rail": ["switch1=150GB/s", *(f"npu{4 + rail},rail{rail}=25GB/s" for rail in range(4))],
    "box": ["switch1=150GB/s", "nic1_0=25GB/s", "nic1_1=25GB/s"],
}
"""A box of an older generation, in the last ten cases."""


def parts(network: hk.Topology) -> dict[str, list[str]]:
    """Return what can fail, by kind. Of the switches, these are the ones without NPUs of their own."""
    names = network.device_names
    ends = zip(network.link_src, network.link_dst, strict=True)
    switches = ("spine", "core", "agg", "rail")
    return {
        "cable": [f"{names[a]},{names[b]}" for a, b in ends if a < b],
        "NPU": names[: network.npu_count],
        "NIC": [name for name in names if name.startswith("nic")],
        "switch": [name for name in names if name.startswith(switches)],
    }


def damaged(case: int) -> tuple[str, hk.Topology]:
    """Return a case in words and its network. What is left of it is connected."""
    text = FAMILIES[case % len(FAMILIES)]
    family, round_ = text.partition(":")[0], case // len(FAMILIES) % 3
    part = PARTS.get(family, "NPU")
    draw = random.Random(case)
    while True:
        several = [draw.choice([part, "NPU"]), "cable", "slow", "slow", "slow"]
        kinds = [[part], [draw.choice(["cable", "slow"])], several][round_]
        failed, slow = [], OLDER.get(family, [])[:] if round_ == 2 else []
        network = hk.topology.load(text, slow=slow)
        try:
            for kind in kinds:
                broken = draw.choice(parts(network)["cable" if kind == "slow" else kind])
                if kind == "slow":
                    slow.append(f"{broken}={draw.randrange(5, 45)}GB/s")
                else:
                    failed.append(broken)
                network = hk.topology.load(text, failed=failed, slow=slow)
        except hk.SpecError:  # What is slow has failed, or was slower.
            continue
        if nx.is_strongly_connected(hk.topology.to_networkx(network)):
            return f"{text}; failed: {', '.join(failed)}; slow: {', '.join(slow)}", network


class Program:
    """The linear program of one network: the least time in which links carry one byte of data."""

    def __init__(self, network: hk.Topology) -> None:
        self.npus = range(network.npu_count)
        self.links = list(zip(network.link_src, network.link_dst, strict=True))
        self.rates = np.array(network.link_bandwidth) / 50e9
        self.width = 1  # Column 0 is the time [20 ps].
        self.most: list[dict[int, float]] = []
        """Rows that are at most 0."""
        self.exact: list[tuple[dict[int, float], float]] = []
        self.columns_of_links: list[list[int]] = [[] for _ in self.links]
        self.hops = self.between_npus()

    def new(self) -> int:
        self.width += 1
        return self.width - 1

    def between_npus(self) -> dict[tuple[int, int], list[int]]:
        """Return what ends at an NPU and came from another by way of switches alone, as columns."""
        hops: dict[tuple[int, int], list[int]] = {}
        for npu in self.npus:
            kept: dict[int, dict[int, float]] = {}
            reached, ahead = {npu}, [npu]
            while ahead:
                here = ahead.pop()
                for link, (a, b) in enumerate(self.links):
                    if a != here or b == npu:
                        continue
                    column = self.new()
                    self.columns_of_links[link].append(column)
                    if a != npu:
                        kept.setdefault(a, {})[column] = -1
                    if b in self.npus:
                        hops.setdefault((npu, b), []).append(column)
                        continue
                    kept.setdefault(b, {})[column] = 1
                    if b not in reached:
                        reached.add(b)
                        ahead.append(b)
            self.exact += [(row, 0.0) for row in kept.values()]
        return hops

    def add_trees(self, shares: list[int], direction: int) -> dict[tuple[int, int], int]:
        """Let trees lead from each NPU with its share (1), or to it (-1), and return what hops carry."""
        carried = {pair: self.new() for pair in self.hops}
        for end in self.npus:
            flow = {pair: self.new() for pair in self.hops}
            self.most += [{flow[pair]: 1, carried[pair]: -1} for pair in self.hops]
            for npu in self.npus:
                row: dict[int, float] = {shares[npu]: -1}
                for (a, b), column in flow.items():
                    if npu in (a, b):
                        row[column] = direction if a == npu else -direction
                if npu != end:
                    self.exact.append((row, 0.0))
        return carried

    def least(self, trees: list[dict[tuple[int, int], int]]) -> float:
        """Return the least time for one byte [s]."""
        for pair, columns in self.hops.items():
            row: dict[int, float] = dict.fromkeys(columns, -1)
            self.most.append(row | {carried[pair]: 1 for carried in trees})
        for rate, columns in zip(self.rates, self.columns_of_links, strict=True):
            self.most.append({0: -float(rate), **dict.fromkeys(columns, 1)})
        costs = np.zeros(self.width)
        costs[0] = 1
        solved = linprog(
            costs,
            self.matrix(self.most),
            np.zeros(len(self.most)),
            self.matrix([row for row, _ in self.exact]),
            np.array([right for _, right in self.exact]),
            method="highs-ipm",
        )
        assert solved.x is not None, solved.message
        return float(solved.x[0]) / 50e9

    def matrix(self, rows: list[dict[int, float]]) -> Any:
        at = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        columns = list(itertools.chain.from_iterable(rows))
        values = [value for row in rows for value in row.values()]
        return csr_array((values, (at, columns)), shape=(len(rows), self.width))


def best(kind: str, network: hk.Topology) -> float:
    """Return the time of the best trees for `SIZE` bytes [s]."""
    program = Program(network)
    shares = [program.new() for _ in program.npus]
    if kind == "all-reduce":
        program.exact.append((dict.fromkeys(shares, 1), 1.0))
    else:
        program.exact += [({share: 1}, 1 / len(shares)) for share in shares]
    directions = {"all-gather": [1], "reduce-scatter": [-1], "all-reduce": [1, -1]}[kind]
    return SIZE * program.least([program.add_trees(shares, each) for each in directions])


def compare(words: str, network: hk.Topology) -> dict[str, float]:
    """Return how far the bound is above the program, by kind, and print it."""
    above = {}
    for kind in ("all-gather", "reduce-scatter", "all-reduce"):
        bound = hk.bound(network, hk.collective_on(kind, network, SIZE)).time_ps * 1e-12
        above[kind] = bound / best(kind, network) - 1
    print(words, *(f"{kind} {gap:+.1e}" for kind, gap in above.items()), sep="; ")
    return above


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.slow if case < 20 or case % 10 == 7 else ())
        for case in range(30)
    ],
)
def test_bounds_of_damaged_networks_are_the_linear_programs(case: int) -> None:
    words, network = damaged(case)
    above = compare(words, network)
    assert max(map(abs, above.values())) < 1e-6, (words, above)


@pytest.mark.parametrize("case", [0, 1, 3, 4, 5, 6, 8, 9, 43, 182])
def test_links_that_fail_one_way_leave_bounds_of_all_reduces_lower(case: int) -> None:
    words, network = damaged(case)
    whole = hk.topology.to_networkx(network)
    draw = random.Random(case)
    left = whole
    while left is whole or not nx.is_strongly_connected(left):
        left = whole.copy()
        for _ in range(draw.randrange(1, 4)):
            link = draw.choice(list(left.edges))
            if draw.random() < 0.5:
                left.remove_edge(*link)
            else:
                left.edges[link]["bandwidth"] *= draw.choice([0.1, 0.3, 0.5, 0.7])
    above = compare(words, hk.topology.from_networkx(left))
    gathered = [above["all-gather"], above["reduce-scatter"]]
    assert max(map(abs, gathered)) < 1e-6, (words, above)
    # Neither a plan below the trees nor a proof of their time is known.
    assert -0.1 < above["all-reduce"] < 1e-6, (words, above)
