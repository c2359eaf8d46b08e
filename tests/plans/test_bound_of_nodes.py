"""Lower bounds that count nodes, against plans on random clusters."""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path

import pytest

import hocket as hk

CASES = int(os.environ.get("HOCKET_BOUND_CASES", "24"))
"""How many; a long run sets more."""
PARTS = 2
TRIED = [("greedy", 1), ("greedy", 7), ("greedy", 64), ("trees", None), ("direct", None)]
KINDS = ("broadcast", "reduce", "all-reduce", "all-gather", "reduce-scatter")


def cluster(seed: random.Random, folder: Path) -> hk.Topology:
    """Two to four nodes of one to three NPUs behind a switch each, joined by one or two switches.

    Rates and latencies differ; NPUs of a node, and single ports, may be joined directly too.
    """
    nodes = [[f"n{i}g{j}" for j in range(seed.randint(1, 3))] for i in range(seed.randint(2, 4))]
    middles = [f"middle{i}" for i in range(seed.randint(1, 2))]
    ports = [f"port{i}" for i in range(len(nodes))]
    rate = {port: seed.choice([1, 1, 1, 2, 3]) for port in ports}
    links = []
    for port, npus in zip(ports, nodes, strict=True):
        for npu in npus:
            links.append(
                f"[{npu}, {port}, {seed.choice([2, 4])} GB/s, {seed.choice([0, 100, 300])} ns]"
            )
        for middle in middles:
            links.append(f"[{port}, {middle}, {rate[port]} GB/s, {seed.choice([400, 900])} ns]")
        if len(npus) > 1 and seed.random() < 0.5:
            links.append(f"[{npus[0]}, {npus[1]}, 5 GB/s, 50 ns]")
    if seed.random() < 0.3:
        links.append(f"[{nodes[0][0]}, {nodes[1][-1]}, 1 GB/s, 700 ns]")
    groups = ", ".join(f"[{', '.join(npus)}]" for npus in nodes)
    npus, switches = (", ".join(names) for names in (itertools.chain(*nodes), ports + middles))
    text = f"name: cluster\nnpus: [{npus}]\nswitches: [{switches}]\n"
    text += f"groups: [{groups}]\nlinks:\n" + "".join(f"  - {link}\n" for link in links)
    (folder / "cluster.yml").write_text(text)
    return hk.topology.load(folder / "cluster.yml")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_plan_is_quicker_than_the_bound(part: int, tmp_path: Path) -> None:
    near = 0
    for case in range(part, CASES, PARTS):
        seed = random.Random(case)
        topology = cluster(seed, tmp_path)
        kind = seed.choice(KINDS)
        size = seed.choice([100, 700, 2_000, 5_000, 20_000, 1_000_000])
        collective = hk.collective_on(kind, topology, size)
        bound = hk.bound(topology, collective)
        gaps = []
        for algorithm, chunks in TRIED:
            try:
                plan = hk.plan(kind, topology, size=size, algorithm=algorithm, chunks=chunks)
            except hk.Error:  # too few bytes for so many chunks
                continue
            time = hk.simulate(plan).time_ps
            assert time >= bound.time_ps, (case, kind, size, algorithm, chunks, bound.witness)
            gaps.append(time / bound.time_ps - 1)
        near += min(gaps) < 0.05
    assert near >= CASES // PARTS // 6, near
