"""Where ASTRA-sim and hocket differ on training iterations, ASTRA-sim's own rules are why."""

from __future__ import annotations

import pytest

import hocket as hk

from .astra_rules import Replay

RING = hk.topology.ring(8, bandwidth="50 GB/s", latency="500 ns")

# Microseconds that ASTRA-sim 518bd51 took, with its congestion-aware back end.
ASTRA = {
    "dp=8": 792.206,
    "dp=4,tp=2": 978.575,
    "tp=2,pp=4": 826.208,
    "dp=2,tp=2,pp=2": 1312.563,
}


@pytest.mark.parametrize("parallel", ASTRA)
def test_its_rules_give_its_times(parallel: str) -> None:
    run = hk.train(
        "alexnet", RING, parallel=parallel, algorithm="ring", samples=32, memory_check=False
    )
    assert Replay(run).time_ps() / 1e6 == pytest.approx(ASTRA[parallel], rel=2e-4)
