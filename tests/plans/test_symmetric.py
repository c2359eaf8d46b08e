"""Plans by symmetry: the plan of one block is that of all, in time and in proof."""

from __future__ import annotations

import pytest

import hocket as hk

KINDS = ("all-gather", "reduce-scatter", "all-reduce")
NETWORKS = (
    "torus:3x4@25GB/s,500ns",
    "hypercube:3@50GB/s,20ns",
    "Ring_FC_SW:2x3x2@25GB/s,1us",
    "dgx_a100_2box",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("network", NETWORKS)
def test_the_whole_plan_is_proved_and_takes_as_long(kind: str, network: str) -> None:
    topology = hk.topology.as_topology(network)
    made = hk.plan_symmetric(kind, topology, size=topology.npu_count * 720_720, chunks=4)
    whole = made.expand()
    whole.verify()
    assert len(whole) == made.transfers == len(made.block) * topology.npu_count
    run = hk.simulate(whole)
    assert run.time <= made.time
    if whole.collective.size == made.block.collective.size * topology.npu_count:
        assert run.time == made.time
    assert made.bound <= run.time


def test_where_chunks_differ_by_a_byte_the_time_is_the_latest() -> None:
    # Blocks of 5 B in 4 chunks are simulated as 8 B: 7 x 8 B over 10 MB/s and 2 us, instead of 7 x 5 B.
    made = hk.plan_symmetric("all-gather", "switch:8@10MB/s,1us", size=40, chunks=4)
    assert round(made.time * 1e12) == 7_600_000
    assert hk.simulate(made.expand().verify()).time_ps == 5_500_000


def test_what_it_is() -> None:
    made = hk.plan_symmetric("all-gather", "torus:8x8x8@50GB/s,500ns", size="1 GB")
    assert made.group == (8, 8, 8)
    assert made.orbits == 6
    assert made.gap < 0.005
    assert made.block.collective.kind == "broadcast"
    assert made.block.to_dict()["verified"]
    data = made.to_dict()
    assert data["group"] == [8, 8, 8]
    assert data["time_ps"] == round(made.time * 1e12)
    assert data["transfers"] == 512 * data["kept_transfers"]


def test_as_an_algorithm_by_name() -> None:
    torus = hk.topology.as_topology("torus:4x4@25GB/s,500ns")
    plan = hk.plan("all-reduce", torus, size="16 MB", algorithm="symmetric")
    plan.verify()
    assert plan.algorithm == "symmetric"
    found = hk.compare("all-reduce", torus, size="16 MB", algorithms=["symmetric", "ring"])
    assert found.best.algorithm == "symmetric"


def test_a_large_torus_takes_little() -> None:
    made = hk.plan_symmetric("all-gather", "torus:16x16x16@50GB/s,500ns", size="1 GB")
    assert made.group == (16, 16, 16)
    assert len(made.block) * 4096 == made.transfers
    assert made.gap < 0.01
    with pytest.raises(hk.SpecError, match="needs about") as caught:
        made.expand(1 << 30)
    assert caught.value.remedy is not None


@pytest.mark.parametrize(
    ("kind", "network", "why"),
    [
        (
            "all-gather",
            "mesh:3x3@25GB/s,500ns",
            "npu0 (2 links out) and npu1 (3) do not have the same links",
        ),
        ("broadcast", "torus:3x3@25GB/s,500ns", "broadcast does not ask the same of every NPU"),
        ("all-gather", "fat-tree:4@25GB/s,500ns", "several NPUs would use the link"),
        ("all-gather", "dgx1_v100", "where there is none like it"),
    ],
)
def test_refusals_say_why(kind: str, network: str, why: str) -> None:
    with pytest.raises(hk.InfeasibleError) as caught:
        hk.plan_symmetric(kind, network, size="1 MB")
    assert caught.value.origin == "symmetric"
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_input_is_refused() -> None:
    torus = hk.topology.as_topology("torus:3x3@25GB/s,500ns")
    with pytest.raises(hk.InfeasibleError, match="2 of 9 NPUs take part"):
        hk.plan_symmetric("all-gather", torus, size=900, npus=[0, 1])
    with pytest.raises(hk.SpecError, match="cannot be cut into"):
        hk.plan_symmetric("all-gather", torus, size=90, chunks=200)
    with pytest.raises(hk.SpecError, match="seed: symmetric does not use it"):
        hk.plan_symmetric("all-gather", torus, size=900, seed=3)
    with pytest.raises(hk.SpecError, match="there is none"):
        hk.plan_symmetric("all-gather", torus)
    failed = torus.without(links=[("npu0", "npu1")])
    with pytest.raises(hk.InfeasibleError, match="do not have the same links"):
        hk.plan_symmetric("all-gather", failed, size=900)
