"""Dispatch and combine: which tokens go where, and the plans that take them there and back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.collectives.test_custom import check_done

import hocket as hk
from hocket.collectives.experts import Experts, routed

LINKS = {
    "bandwidth": "50 GB/s",
    "latency": "2 us",
    "node_bandwidth": "450 GB/s",
    "node_latency": "500 ns",
}
RAIL = hk.topology.rail(4, 8, 0, **LINKS)
SMALL = hk.topology.rail(2, 4, 0, **LINKS)
NPUS = range(RAIL.npu_count)


def crossings(tokens: Counter[tuple[int, tuple[int, ...]]], count: int) -> float:
    """Into how many other nodes of eight NPUs a token goes, on average."""
    into = sum(
        count * len({taker // 8 for taker in takers} - {source // 8})
        for (source, takers), count in tokens.items()
    )
    return into / count


def test_tokens_are_as_many_and_go_to_as_many_experts_as_is_said() -> None:
    found = routed(Experts(tokens=50, experts=32, top=4), RAIL, NPUS)
    for npu in NPUS:
        of_it = {takers: count for (source, takers), count in found.items() if source == npu}
        assert sum(of_it.values()) == 50
        assert all(npu not in takers and 3 <= len(takers) <= 4 for takers in of_it)


@pytest.mark.parametrize(("nodes", "expected"), [(2, 1.00), (4, 2.71), (8, 4.63)])
def test_crossings_are_those_of_experts_drawn_evenly(nodes: int, expected: float) -> None:
    npus = range(8 * nodes)
    topology = hk.topology.rail(nodes, 8, 0, **LINKS)
    found = routed(Experts(tokens=256, experts=256), topology, npus)
    assert crossings(found, 256 * len(npus)) == pytest.approx(expected, abs=0.02)


def test_a_limit_of_nodes_holds() -> None:
    found = routed(Experts(tokens=100, skew=20, nodes=2), RAIL, NPUS)
    most = max(len({taker // 8 for taker in takers}) for _, takers in found)
    assert most == 2
    assert crossings(found, 3200) < crossings(routed(Experts(tokens=100), RAIL, NPUS), 3200)


def test_experts_are_drawn_by_their_popularity() -> None:
    even, skewed = (
        np.bincount(
            [
                taker
                for (_, takers), count in routed(
                    Experts(tokens=200, experts=32, top=1, skew=skew), RAIL, NPUS
                ).items()
                for taker in takers
                for _ in range(count)
            ]
        )
        for skew in (1.0, 20.0)
    )
    assert even.max() / even.mean() < 1.3
    popularity = 1 + 19 * np.random.RandomState(0).random_sample(32) ** 3
    assert skewed / skewed.sum() == pytest.approx(popularity / popularity.sum(), abs=0.02)


def test_copies_and_balance_relieve_the_busiest() -> None:
    def busiest(**how: object) -> int:
        loads: Counter[int] = Counter()
        for (_, takers), count in routed(
            Experts(tokens=100, skew=50, **how),  # type: ignore[arg-type]
            RAIL,
            NPUS,
        ).items():
            loads.update(dict.fromkeys((taker // 8 for taker in takers), count))
        return max(loads.values())

    balanced = busiest(placement="balanced")
    assert busiest(placement="balanced", replicas=64) < balanced < busiest()


def test_routes_that_are_given_are_followed(tmp_path: Path) -> None:
    file = tmp_path / "moe.yml"
    text = """
dispatch:
  size: 1 KiB
  experts: 8
  placement: [0, 1, 2, 3, 4, 5, 6, [7, 0]]
  routes:
    - {npu: 1, experts: [0, 1, 5], tokens: 3}
    - {npu: 1, experts: [5, 0]}
    - {npu: 2, experts: [2]}
    - {npu: 5, experts: [7]}
"""
    file.write_text(text)
    there = hk.load_collective(file, SMALL)
    assert there.name == "dispatch"
    assert there.demands() == [(4096, False, [1], [0, 5]), (1024, False, [5], [7])]
    file.write_text(text.replace("dispatch", "combine"))
    back = hk.load_collective(file, SMALL)
    assert back.demands() == [(4096, True, [0, 5], [1]), (1024, False, [7], [5])]


@pytest.mark.parametrize("kind", ["dispatch", "combine"])
@pytest.mark.parametrize("algorithm", ["steiner", "greedy"])
def test_plans_do_what_is_asked(kind: str, algorithm: str) -> None:
    moe = hk.load_collective(f"{kind}:experts=16,top=3,tokens=4,skew=4,size=64KiB", SMALL)
    plan = hk.plan(moe, SMALL, algorithm=algorithm, chunks=1).verify()
    check_done(plan)
    assert hk.simulate(plan).time_ps >= hk.bound(SMALL, moe).time_ps


def test_sums_over_nodes_do_not_queue_at_nics() -> None:
    network = hk.topology.rail(8, 4, 0, **LINKS)
    moe = hk.load_collective("combine:tokens=8,size=1MiB", network)
    plan = hk.plan(moe, network, algorithm="steiner").verify()
    assert hk.simulate(plan).time_ps <= 1.005 * hk.bound(network, moe).time_ps


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("dispatch:expert=3", "did you mean 'experts'"),
        ("dispatch:top=300", "top 300 is more than experts 256"),
        ("dispatch:skew", "'skew' has no value; write it as top=8"),
        ("combine:skew=nan", "not finite"),
        ("dispatch:nodes=1,experts=8,top=8", "dispatch.nodes: 1 of them may have only 4 experts"),
        ("dispatch:placement=anywhere", "use in-order or balanced"),
        ("dispatch:tokens=100000000", "dispatch.tokens: 100000000 tokens on 8 NPUs"),
        ("dispatch:size=0", "dispatch.size"),
        ("dispatch:nodes=0", "dispatch.nodes: 0 is too small; give at least 1"),
        ("dispatch:skew=0.5", "dispatch.skew: 0.5 is too small; give at least 1"),
        ("dispatch:top=8,top=4", "dispatch: top is given twice; give it once"),
        ("dispatch:experts=4000000000", "dispatch.experts: 4000000000 is too large"),
        ("dispatch:size=4000000000000000000", "dispatch.size: all tokens have more than 2^62"),
        ("dispatch:experts=1,top=1,tokens=0", "give at least 1"),
    ],
)
def test_what_makes_no_sense_is_refused(words: str, why: str) -> None:
    with pytest.raises(hk.SpecError) as caught:
        hk.load_collective(words, SMALL)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("routes: [{npu: 8, experts: [0]}]", "line 2: dispatch.routes: row 0: there is no rank 8"),
        ("routes: [{npu: 0, experts: [256]}]", "row 0: there is no expert 256"),
        ("routes: [{npu: 0, experts: [7, 7]}]", "row 0: an expert is there twice; name each once"),
        ("routes: [{npu: 0, experts: []}]", "dispatch.routes[0].experts: has too few entries"),
        ("routes: [{npu: 0, experts: [0]}]", "no token leaves its NPU"),
        ("placement: [0]", "placement has 1 entries for 256 experts"),
        ("{experts: 2, top: 1, placement: [0, 8]}", "expert 1 is on [8], and ranks are 0 to 7"),
    ],
)
def test_files_that_make_no_sense_are_refused(tmp_path: Path, lines: str, why: str) -> None:
    file = tmp_path / "moe.yml"
    file.write_text(f"dispatch:\n  {lines}\n")
    with pytest.raises(hk.SpecError) as caught:
        hk.load_collective(file, SMALL)
    assert why in str(caught.value)


def test_a_limit_of_nodes_needs_nodes() -> None:
    ring = hk.topology.ring(4, bandwidth="25 GB/s", latency="1 us")
    with pytest.raises(hk.SpecError, match="does not say which NPUs form a node"):
        hk.load_collective("dispatch:nodes=2", ring)
