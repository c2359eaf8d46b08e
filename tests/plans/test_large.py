"""Plans of 448 NPUs or more, which ``auto`` finds without waiting for slower searches."""

import pytest

import hocket as hk


@pytest.mark.slow
def test_a_large_damaged_network_is_planned_near_its_bound() -> None:
    torus = hk.topology.torus(23, 23, bandwidth="50 GB/s", latency="700 ns")
    damaged = torus.without(["npu5"])
    plan = hk.plan("all-gather", damaged, size="1 GB", cache=False)
    run = hk.simulate(plan)
    assert plan.selection is not None
    assert (plan.selection.algorithm, plan.selection.ended) == ("trees", "near")
    assert run.gap is not None
    assert run.gap < 0.03
