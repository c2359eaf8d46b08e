"""All-reduces along trees with many pieces: one piece of each tree stands for all."""

from __future__ import annotations

from typing import Any

import pytest

import hocket as hk
from hocket.plans.pipelined import pipeline

BROKEN = "torus:23x23@50GB/s,700ns"


def broken() -> hk.Topology:
    return hk.topology.as_topology(BROKEN).without(["npu5"])


@pytest.mark.slow
def test_the_whole_plan_is_proved_and_takes_as_long() -> None:
    made = hk.plan_pipelined("all-reduce", broken(), size=256 * 65_536, chunks=2)
    assert made.simulated == ((2, made.time_ps),)
    whole = made.expand()
    whole.verify()
    assert len(whole) == made.transfers == 2 * len(made.block)
    assert hk.simulate(whole).time_ps == made.time_ps >= made.bound_ps
    assert made.block.to_dict()["verified"]
    with pytest.raises(hk.SpecError, match="transfers needs about"):
        made.expand(memory_limit=1_000_000)


@pytest.mark.parametrize(
    ("kind", "network", "keywords", "why"),
    [
        ("all-reduce", "torus:4x4@25GB/s,500ns", {}, "448 NPUs or more"),
        ("all-gather", BROKEN, {}, "448 NPUs or more"),
        ("all-reduce", BROKEN, {"npus": "0-520"}, "448 NPUs or more"),
        ("all-reduce", "switch:600@25GB/s,500ns", {"size": 40}, "a byte for each piece"),
    ],
)
def test_what_it_cannot_do_is_a_line(
    kind: str, network: str, keywords: dict[str, Any], why: str
) -> None:
    with pytest.raises(hk.InfeasibleError, match=why):
        hk.plan_pipelined(kind, network, **{"size": "1 MB", **keywords})


def test_options_of_others_are_refused() -> None:
    with pytest.raises(hk.SpecError, match="trials: trees does not use it"):
        hk.plan_pipelined("all-reduce", BROKEN, size="1 MB", trials=3)


def test_a_time_limit_that_ends_it_is_named() -> None:
    with pytest.raises(hk.InfeasibleError, match=r"trees found no plan within 0\.001 s"):
        hk.plan_pipelined("all-reduce", BROKEN, size="64 MB", time_limit="1 ms")


def test_fewer_trees_are_kept_where_so_many_are_named() -> None:
    topology = hk.topology.load("torus:32x16@50GB/s,1us", failed=["npu0,npu1"])
    collective = hk.collective_on("all-reduce", topology, "16 MB")
    made = pipeline(collective, topology, hk.PlanOptions(chunks=4), trees=8)
    assert made.trees == 8
    assert len(made.block) == 8 * 2 * 511
    assert made.bound_ps <= made.time_ps
